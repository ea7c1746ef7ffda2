/* Bandit: chooses the next arm (an edit or an operator) by probability matching.
 *
 * A child pays each of its arms its gain, ln(parent's time / child's time), or 0 where the child
 * failed or is no faster. The weight of an arm is its mean gain times its freshness, the share of
 * its children that were new and right, times the arm's own weight. Old payments fade. A fixed
 * share of all draws goes to the open arms by freshness alone, so that no arm is given up. */
#ifndef TUNER_SEARCH_BANDIT_H
#define TUNER_SEARCH_BANDIT_H

#include "base/pcg.h"

#include <stdbool.h>
#include <stdint.h>

#define BANDIT_MOST 128 /* arms */

/* Arm statistics: what became of the children of each arm, as faded counts. They depend on the edit
 * and the kernel alone, so that all islands of a search share one. */
typedef struct arm_statistics {
    double made[BANDIT_MOST];
    double fresh[BANDIT_MOST]; /* children that were new code and right */
} arm_statistics;

/* Begins with prior counts. `odds` [count]: the expected share of fresh children, by arm; NULL:
 * nothing is known, all arms begin alike and are soon told apart. */
void bandit_expect(arm_statistics *statistics, const double *odds, unsigned count);
/* Counts one child that `arm` alone made. */
void bandit_note(arm_statistics *statistics, unsigned arm, bool is_fresh);

typedef struct bandit {
    unsigned count;
    const arm_statistics *statistics;             /* borrowed; NULL: all arms are equally fresh */
    bool open[BANDIT_MOST];                       /* the arm has a place in this start */
    double weight[BANDIT_MOST];                   /* greater than 0; at the beginning 1 */
    double gain[BANDIT_MOST], tries[BANDIT_MOST]; /* faded sums */
} bandit;

/* `open` [count]: which arms may be drawn. `statistics`: NULL, or borrowed as long as the bandit
 * lives. */
void bandit_begin(bandit *b, const bool *open, unsigned count, const arm_statistics *statistics);
/* Probability of drawing an arm when nothing is skipped; over the open arms the sum is 1. */
double bandit_share(const bandit *b, unsigned arm);
/* Draws an open arm outside `skip` [count] (NULL: none is skipped). Returns `count` where no such
 * arm is left. */
unsigned bandit_draw(const bandit *b, const bool *skip, ev_pcg *rng);
/* Pays an arm for one child. `gain`: at least 0; 0 for a child that failed or is no faster. */
void bandit_pay(bandit *b, unsigned arm, double gain);

#endif
