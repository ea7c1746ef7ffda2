/* Bases: the base modules of a task, one a start and setting of its macros, loaded once and kept
 * while there is room. What is dear about one, its compiled source and its profile, is made once
 * for all that use the same shelf. */
#ifndef TUNER_WORKER_BASES_H
#define TUNER_WORKER_BASES_H

#include "base/status.h"
#include "ir/ir.h"
#include "kernels/task.h"

#include <jansson.h>

typedef struct bases bases;

/* Where things are put under a key that names task, thing, start and macros. */
typedef struct bases_shelf {
    void *context;
    /* *value: a new reference; NULL: it is not there. */
    ev_status (*want)(void *context, const char *key, json_t **value, ev_error *err);
    /* Takes `value` over; NULL: out of memory. */
    ev_status (*made)(void *context, const char *key, json_t *value, ev_error *err);
} bases_shelf;

/* `t` is borrowed. `sm`: the target. EV_INFRA: the folder with the kernels' header is not there. */
ev_status bases_new(const task *t, int sm, size_t limit, bases **out, ev_error *err) EV_CHECKED;
void bases_free(bases *b); /* NULL is fine */
/* Copied; NULL: from now on none, as at first. */
void bases_use_shelf(bases *b, const bases_shelf *shelf);
/* Borrowed until the next call. EV_BAD: no such start, or a source that does not compile with these
 * macros. */
ev_status bases_get(bases *b, const ir_genome *genome, const ir_base **out,
                    ev_error *err) EV_CHECKED;

/* What was set for a base that bases_get gave last; false: nothing. `heat` is taken over and goes
 * with the base. */
bool bases_heat(bases *b, const ir_genome *genome, const double **out);
void bases_set_heat(bases *b, const ir_genome *genome, double *heat);

/* Things of a genome's base on the shelf. *value: a new reference; NULL: it is not there. */
ev_status bases_want(const bases *b, const char *thing, const ir_genome *genome, json_t **value,
                     ev_error *err) EV_CHECKED;
/* Takes `value` over; NULL: out of memory. */
ev_status bases_made(const bases *b, const char *thing, const ir_genome *genome, json_t *value,
                     ev_error *err) EV_CHECKED;

#endif
