/* Bandit: probability matching on faded mean gain, with a floor. */
#include "tuner/bandit.h"

#include <assert.h>
#include <string.h>

#define FLOOR_SHARE 0.3 /* of all draws, spread evenly over the open arms */
#define FADE 0.99       /* of what was paid before, at each payment of the same arm */
#define PRIOR_TRIES 3.0 /* an arm begins as if it had been tried so often */
#define PRIOR_GAIN 0.02 /* with this mean gain: neither hopeless nor a winner */

void bandit_begin(bandit *b, const bool *open, unsigned count) {
    assert(count > 0 && count <= BANDIT_MOST);
    *b = (bandit){.count = count};
    memcpy(b->open, open, count * sizeof *open);
}

static double mean_gain(const bandit *b, unsigned arm) {
    return (b->gain[arm] + PRIOR_GAIN * PRIOR_TRIES) / (b->tries[arm] + PRIOR_TRIES);
}

static bool may_draw(const bandit *b, const bool *skip, unsigned arm) {
    return b->open[arm] && !(skip && skip[arm]);
}

/* Sum of mean gains and number of the arms that may be drawn. */
static double total_gain(const bandit *b, const bool *skip, unsigned *arms) {
    double total = 0;
    *arms = 0;
    for (unsigned arm = 0; arm < b->count; arm++) {
        if (may_draw(b, skip, arm)) {
            total += mean_gain(b, arm);
            *arms += 1;
        }
    }
    return total;
}

double bandit_share(const bandit *b, unsigned arm) {
    assert(arm < b->count);
    unsigned arms = 0;
    double total = total_gain(b, NULL, &arms);
    if (!b->open[arm])
        return 0;
    return FLOOR_SHARE / arms + (1 - FLOOR_SHARE) * mean_gain(b, arm) / total;
}

unsigned bandit_draw(const bandit *b, const bool *skip, ev_pcg *rng) {
    unsigned arms = 0, last = b->count;
    double total = total_gain(b, skip, &arms);
    double at = ev_pcg_unit(rng);
    for (unsigned arm = 0; arm < b->count; arm++) {
        if (!may_draw(b, skip, arm))
            continue;
        last = arm;
        at -= FLOOR_SHARE / arms + (1 - FLOOR_SHARE) * mean_gain(b, arm) / total;
        if (at < 0)
            break;
    }
    return last;
}

void bandit_pay(bandit *b, unsigned arm, double gain) {
    assert(arm < b->count && gain >= 0);
    b->gain[arm] = b->gain[arm] * FADE + gain;
    b->tries[arm] = b->tries[arm] * FADE + 1;
}
