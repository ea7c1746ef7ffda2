/* PTX texts for the assembler, several of one head and target in one module: a quarter of the
 * assembler's time on a text is its own start. Each text that is refused or spills is named. */
#ifndef TESTS_PTX_BATCHES_H
#define TESTS_PTX_BATCHES_H

#include "base/status.h"
#include "fitness/device/cuda/ptxas.h"

#include <stdbool.h>
#include <stddef.h>

#define PTX_NAME_BYTES 200

/* What the assembler says of a text. */
typedef struct ptx_verdict {
    unsigned kind; /* the caller's */
    const char *name, *text;
    int sm;
    const ev_error *refused; /* NULL: the assembler takes it, and */
    unsigned long spilled;   /* bytes of spill stores of one of its functions, more than 0 */
} ptx_verdict;

typedef void ptx_on_verdict(void *context, const ptx_verdict *verdict);

typedef struct ptx_batches ptx_batches;

/* Uses `p`, which is copied. `on` hears of texts that are refused or spill, before ptx_batches_end
 * returns. The caller frees by ptx_batches_end; aborts without memory. */
ptx_batches *ptx_batches_new(const ptxas *p, ptx_on_verdict *on, void *context);
/* Adds a text, which is copied, for compute capability `sm`. */
void ptx_batches_add(ptx_batches *b, unsigned kind, const char *text, const char *name, int sm);
/* Assembles what is left, and frees; returns the starts of the assembler. */
unsigned ptx_batches_end(ptx_batches *b);

/* That a text which is refused or spills among others is named, and no other. */
bool ptx_batches_prove(const ptxas *p, int sm);

#endif
