/* Between ptx_parse.c and ptx_module.c: the parts of a module's text. */
#ifndef FITNESS_VM_PTX_PARSE_H
#define FITNESS_VM_PTX_PARSE_H

#include "fitness/vm/ptx_load.h"

bool ptx_parse_variables(ptx_loader *L, vm_space space, bool is_extern);
bool ptx_parse_body(ptx_loader *L); /* after its '{' */
/* After its '('; the symbols' variables are set by the caller once the list has its place. */
bool ptx_parse_params(ptx_loader *L, ptx_var **list, size_t *count);
bool ptx_place_frame_param(ptx_loader *L, ptx_var *v);
/* Offsets of an entry's parameters in the parameter block, and its public list. */
void ptx_entry_layout(ptx_func *f, ev_arena *arena);

#endif
