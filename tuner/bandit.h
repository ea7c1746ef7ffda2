/* Bandit: which arm (edit or operator) to draw next. An arm is paid the gain of the children it had
 * a part in, log(parent's time / child's time) where that is positive: real gain, not validity. An
 * arm whose children mostly fail, or are known already, is drawn the less. Old pay fades, and every
 * open arm keeps a floor, so that none is given up. */
#ifndef TUNER_BANDIT_H
#define TUNER_BANDIT_H

#include "base/pcg.h"

#include <stdbool.h>
#include <stdint.h>

#define BANDIT_MOST 128 /* arms */
#define BANDIT_RISK 0.3 /* of an arm that has not been tried */

typedef struct bandit {
    unsigned count;
    bool open[BANDIT_MOST];                       /* can it be drawn at all here? */
    double gain[BANDIT_MOST], tries[BANDIT_MOST]; /* faded sums */
    double fresh[BANDIT_MOST]; /* of the tries, those that made new code, and right */
    double wrong[BANDIT_MOST]; /* those that made wrong code */
} bandit;

/* `open` [count]: which arms have a place. */
void bandit_begin(bandit *b, const bool *open, unsigned count);
/* Probability of an arm when nothing is skipped; the open ones sum to 1. */
double bandit_share(const bandit *b, unsigned arm);
/* Draws an open arm that `skip` (NULL: none) does not hold; count if there is none. */
unsigned bandit_draw(const bandit *b, const bool *skip, ev_pcg *rng);
/* Probability that a child made with `arm` is wrong, by what became of those before; a new arm has
 * BANDIT_RISK. */
double bandit_risk(const bandit *b, unsigned arm);

typedef enum bandit_fate {
    BANDIT_FRESH, /* new code, and right */
    BANDIT_KNOWN,
    BANDIT_WRONG
} bandit_fate;

/* One child was made with `arm` and gained so much (0: nothing, or it failed). */
void bandit_pay(bandit *b, unsigned arm, double gain, bandit_fate fate);

#endif
