/* Bandit: which arm (edit or operator) to draw next. An arm is paid the gain of the children it had
 * a part in, log(parent's time / child's time) where that is positive: real gain, not validity. An
 * arm whose children mostly fail, or are known already, is drawn the less. Old pay fades, and every
 * open arm keeps a floor, so that none is given up. */
#ifndef TUNER_SEARCH_BANDIT_H
#define TUNER_SEARCH_BANDIT_H

#include "base/pcg.h"

#include <stdbool.h>
#include <stdint.h>

#define BANDIT_MOST 128 /* arms */

/* What becomes of the children of the arms: a property of edit and kernel, so all islands of a
 * search learn it together. Sums of tries, which fade. */
typedef struct bandit_fates {
    double made[BANDIT_MOST];
    double fresh[BANDIT_MOST]; /* of those, what was new code, and right */
} bandit_fates;

/* An arm begins with what is expected of it: `odds` [count], probabilities of a fresh child. */
void bandit_expect(bandit_fates *fates, const double *odds, unsigned count);
/* What became of one child made with `arm`. */
void bandit_note(bandit_fates *fates, unsigned arm, bool is_fresh);

typedef struct bandit {
    unsigned count;
    const bandit_fates *fates;                    /* borrowed; NULL: all arms' are alike */
    bool open[BANDIT_MOST];                       /* can it be drawn at all here? */
    double gain[BANDIT_MOST], tries[BANDIT_MOST]; /* faded sums */
} bandit;

/* `open` [count]: which arms have a place. `fates`: NULL, or to outlive the bandit. */
void bandit_begin(bandit *b, const bool *open, unsigned count, const bandit_fates *fates);
/* Probability of an arm when nothing is skipped; the open ones sum to 1. */
double bandit_share(const bandit *b, unsigned arm);
/* Draws an open arm that `skip` (NULL: none) does not hold; count if there is none. */
unsigned bandit_draw(const bandit *b, const bool *skip, ev_pcg *rng);
/* One child was made with `arm` and gained so much (0: nothing, or it failed). */
void bandit_pay(bandit *b, unsigned arm, double gain);

#endif
