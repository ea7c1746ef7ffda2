/* The instruction set of the virtual machine as text: one row a form, and all tables as a page. */
#ifndef FITNESS_VM_ISA_H
#define FITNESS_VM_ISA_H

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>

/* A row of ptx_ops.def. In `form`, braces hold optional parts, .T and .U are types, and .<rnd> is
 * one of the group `rnd` of ptx_mods.def. */
typedef struct vm_isa_row {
    const char *name;
    char form[160];
    char operands[80];
    char types[120], types2[120]; /* .T and .U; "" if the form has none */
    int version;                  /* first PTX version, times ten */
    int sm;                       /* first target */
    const char *pipe;             /* the executing pipe, or on what it depends */
    const char *meaning;
} vm_isa_row;

/* Gets row `index` of the forms that PTX text can have. False: no more rows. */
bool vm_isa_row_get(size_t index, vm_isa_row *out);
/* All tables as Markdown: docs/isa.md. */
void vm_isa_print_markdown(ev_str *s);

#endif
