/* Minimise: removes edits from a genome as long as the gain stays, by delta debugging (Zeller and
 * Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002; complements only).
 *
 * The trials of a round are scored a few at a time, and the first in order that keeps the gain is
 * taken. The outcome therefore does not depend on the number of workers. */
#ifndef TUNER_RUN_MINIMISE_H
#define TUNER_RUN_MINIMISE_H

#include "base/status.h"
#include "ir/genome.h"

#include <stdbool.h>
#include <stddef.h>

/* Scores `count` genomes: ns[i] is the time of genomes[i] in ns; 0: it failed a gate. */
typedef ev_status minimise_score(void *context, const ir_genome *const *genomes, size_t count,
                                 double *ns, ev_error *err);

/* Whether a genome that keeps the gain may replace its parent. */
typedef ev_status minimise_confirm(void *context, const ir_genome *genome, bool *good,
                                   ev_error *err);

typedef struct minimise_request {
    const ir_genome *genome; /* borrowed */
    double ns;               /* time of the genome */
    double reference_ns;     /* time from which the gain is counted */
    double keep;             /* share of the gain to keep, 0.98 */
    size_t budget;           /* trials at most */
    minimise_score *score;
    minimise_confirm *confirm; /* NULL: the time decides alone */
    /* A genome that was too small, since it was not confirmed: its edits are removed last. NULL:
     * edits are removed in any order. */
    const ir_genome *core;
    void *context;
} minimise_request;

/* `out`: a new reference, the genome itself where no edit can be removed; `out_ns`: its time.
 * Returns the status of a failed `score` or `confirm`. */
ev_status minimise_genome(const minimise_request *request, const ir_genome **out, double *out_ns,
                          ev_error *err) EV_CHECKED;

#endif
