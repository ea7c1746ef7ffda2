/* Bases: the base modules of a task, one for each start, setting of its
 * macros and structural prefix, loaded once and kept while there is room. Their costly parts,
 * compiled source and profile, are made once for all workers that share a base store. `bases` owns
 * the modules; the functions return EV_INFRA if memory or the base store fails. */
#ifndef TUNER_WORKER_BASES_H
#define TUNER_WORKER_BASES_H

#include "base/status.h"
#include "ir/ir.h"
#include "kernels/task.h"

#include <jansson.h>

typedef struct bases bases;

/* The base store, as callbacks: values under keys that name task, thing, start and macros. */
typedef struct bases_shelf {
    void *context;
    /* Looks up a key. *value: a new reference; NULL: the store has no such entry. */
    ev_status (*want)(void *context, const char *key, json_t **value, ev_error *err);
    /* Takes `value` over; NULL: out of memory. */
    ev_status (*made)(void *context, const char *key, json_t *value, ev_error *err);
} bases_shelf;

/* Opens the bases of a task. `t` is borrowed. `sm`: the target. `limit`: most bases kept at once.
 * EV_INFRA: the folder with the kernels' header is missing. */
ev_status bases_new(const task *t, int sm, size_t limit, bases **out, ev_error *err) EV_CHECKED;
void bases_free(bases *b); /* NULL is fine */
/* Sets the base store; the struct is copied. NULL: no base store, which is the default. */
void bases_use_shelf(bases *b, const bases_shelf *shelf);
/* Gives the base of a genome, borrowed until the next call. EV_BAD: there is no such start, or its
 * source does not compile with these macros. */
ev_status bases_get(bases *b, const ir_genome *genome, const ir_base **out,
                    ev_error *err) EV_CHECKED;

/* The site weights that were set for the base that bases_get gave last; false: none are set.
 * bases_set_heat takes `heat` (malloc'ed) over, and frees it with the base. */
bool bases_heat(bases *b, const ir_genome *genome, const double **out);
void bases_set_heat(bases *b, const ir_genome *genome, double *heat);

/* Draws one more structural edit of `kind` for the parent's prefix, as ir_structure_draw. */
ev_status bases_draw_structure(const bases *b, const ir_genome *parent, ir_edit_kind kind,
                               const ir_hints *hints, ev_pcg *rng, ir_genome **out,
                               ev_error *err) EV_CHECKED;
/* Leaves out what lost its place in a child, as ir_structure_mend. */
ev_status bases_mend_structure(const bases *b, const ir_genome *child,
                               const ir_genome *const *parents, size_t count, ir_genome **out,
                               ev_error *err) EV_CHECKED;
/* Counts the places of structural edits in a genome, as ir_structure_sites. */
ev_status bases_structure_sites(const bases *b, const ir_genome *genome,
                                size_t sites[IR_EDIT_COUNT], ev_error *err) EV_CHECKED;

/* Looks up a thing of a genome's base in the base store. *value: a new reference; NULL: the store
 * has no such entry. */
ev_status bases_want(const bases *b, const char *thing, const ir_genome *genome, json_t **value,
                     ev_error *err) EV_CHECKED;
/* Stores a thing of a genome's base. Takes `value` over; NULL means that memory ran out. */
ev_status bases_made(const bases *b, const char *thing, const ir_genome *genome, json_t *value,
                     ev_error *err) EV_CHECKED;

#endif
