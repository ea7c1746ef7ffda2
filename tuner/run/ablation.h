/* Ablation: the share of each edit and macro in a winner's gain, and the pairs that interact.
 *
 * The gain is the logarithm of the speed-up over the reference. The share of an edit is the part of
 * the gain that is lost without the edit. Two edits interact where the loss without both is not the
 * sum of the two losses. */
#ifndef TUNER_RUN_ABLATION_H
#define TUNER_RUN_ABLATION_H

#include "tuner/run/minimise.h"

#include <jansson.h>

#define ABLATION_MOST_PAIRED                                                                       \
    12 /* edits up to which pairs are looked at: at most 66 trials more                            \
        */

/* Measures the shares. `request`: the minimised genome, its time, its reference, and how to score;
 * `keep` and `budget` are ignored. *out: a new reference,
 *   {"edits": [share], "macros": {NAME: share}, "macros_alone": share,
 *    "pairs": [{"edits": [i, k], "share": share, "apart": share}]}
 * where a share is null if nothing passes without the part. A pair's "share" is lost without both
 * edits; "apart" is the sum of the two losses. Edits name instructions of one setting of the
 * macros, so that single macros are removed only from a genome without edits; a genome with both
 * has "macros_alone", the gain of its macros without any edit. */
ev_status ablation_measure(const minimise_request *request, json_t **out, ev_error *err) EV_CHECKED;

/* Prints the shares: each line of `words` describes an edit and gets its share, then a line for
 * each macro and each pair. *out is malloc'ed. */
ev_status ablation_tell(const json_t *shares, const ir_genome *genome, const char *words,
                        char **out, ev_error *err) EV_CHECKED;

#endif
