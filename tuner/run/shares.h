/* Shares: what each edit and each macro of a winner is worth, and which edits depend on each other.
 *
 * Leaving one out costs a part of the gain (of the logarithm of the speed-up over the reference):
 * that is its share. Of two that have nothing to do with each other, leaving out both costs the
 * sum; two whose costs do not add up depend on each other. */
#ifndef TUNER_RUN_SHARES_H
#define TUNER_RUN_SHARES_H

#include "tuner/run/minimise.h"

#define SHARES_MOST_PAIRED 12 /* edits up to which pairs are looked at: 66 more trials */

/* `request`: the minimised genome, its time, its reference, and how to score; `keep` and `budget`
 * are not looked at. *out: a new reference,
 *   {"edits": [part], "macros": {NAME: part}, "macros_alone": part,
 *    "pairs": [{"edits": [i, k], "share": part, "apart": part}]}
 * where a part is the share of the gain that is lost without it, or null where nothing passes
 * without it; a pair's "share" is lost without both, "apart" is the sum of what is lost without
 * each. Edits name instructions of one setting of the macros: "macros" is there without edits only,
 * and "macros_alone", what the macros bring without any edit, where there are both. */
ev_status shares_measure(const minimise_request *request, json_t **out, ev_error *err) EV_CHECKED;

/* Appends what the shares say to the edits' words (a line each), and a line for each macro and
 * pair. *out is malloc'ed. */
ev_status shares_tell(const json_t *shares, const json_t *genome, const char *words, char **out,
                      ev_error *err) EV_CHECKED;

#endif
