/* Bases: the base modules of a task, one a start and setting of its macros, loaded once and kept
 * while there is room. */
#ifndef TUNER_BASES_H
#define TUNER_BASES_H

#include "base/status.h"
#include "ir/ir.h"
#include "kernels/task.h"

typedef struct bases bases;

/* `t` is borrowed. `sm`: the target. EV_INFRA: the folder with the kernels' header is not there. */
ev_status bases_new(const task *t, int sm, size_t limit, bases **out, ev_error *err) EV_CHECKED;
void bases_free(bases *b); /* NULL is fine */
/* Borrowed until the next call. EV_BAD: no such start, or a source that does not compile with these
 * macros. */
ev_status bases_get(bases *b, const ir_genome *genome, const ir_base **out,
                    ev_error *err) EV_CHECKED;

/* What was set for a base that bases_get gave last; false: nothing. `heat` is taken over and goes
 * with the base. */
bool bases_heat(bases *b, const ir_genome *genome, const double **out);
void bases_set_heat(bases *b, const ir_genome *genome, double *heat);

#endif
