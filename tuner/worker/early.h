/* Early: what a worker keeps of early IR (docs/structure.md), so that a structural prefix is
 * applied once, and a place that refused an edit is not tried again. Entries belong to a start, its
 * macros and a structural prefix. What was used least recently is dropped when there is no more
 * room. What is kept changes no result. */
#ifndef TUNER_WORKER_EARLY_H
#define TUNER_WORKER_EARLY_H

#include "ir/ir.h"

typedef struct early early;

/* `room`: most bytes kept at once. NULL: out of memory. */
early *early_new(size_t room);
void early_free(early *e); /* NULL is fine */
/* The functions of an ir_early_store. Only what early_find does not find is kept. */
bool early_find(void *of, const ir_genome *genome, size_t edits, ir_early *out);
ev_status early_keep(void *of, const ir_genome *genome, size_t edits, const ir_early *what,
                     ev_error *err) EV_CHECKED;
/* The places of structural edits on the genome's early IR, borrowed until the next call with
 * another genome. NULL: out of memory. */
ir_places *early_places(early *e, const ir_genome *genome);

#endif
