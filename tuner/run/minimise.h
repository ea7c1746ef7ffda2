/* Minimise: the smallest list of a genome's edits that keeps its gain, by delta debugging (Zeller
 * and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", 2002; here by complements).
 *
 * A round's trials are scored a few at a time, and the first in order that keeps the gain is taken,
 * so that the outcome does not depend on how many workers score them. */
#ifndef TUNER_RUN_MINIMISE_H
#define TUNER_RUN_MINIMISE_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Scores `count` genomes: ns[i] is the time of genomes[i], 0 if it fails a gate. */
typedef ev_status minimise_score(void *context, json_t *const *genomes, size_t count, double *ns,
                                 ev_error *err);

/* Whether one that keeps the gain may stand for its parent. */
typedef ev_status minimise_confirm(void *context, json_t *genome, bool *good, ev_error *err);

typedef struct minimise_request {
    const json_t *genome; /* borrowed */
    double ns;            /* its time */
    double reference_ns;  /* that its gain is counted from */
    double keep;          /* share of the gain to keep, 0.98 */
    size_t budget;        /* trials at most */
    minimise_score *score;
    minimise_confirm *confirm; /* NULL: its time is enough */
    /* What is too small, since it was not confirmed: its edits stay until no other can go. NULL:
     * any may go. */
    const json_t *core;
    void *context;
} minimise_request;

/* `out`: a new reference, the genome itself where nothing can go; `out_ns`: its time. */
ev_status minimise_genome(const minimise_request *request, json_t **out, double *out_ns,
                          ev_error *err) EV_CHECKED;

#endif
