/* Bandit: probability matching on the faded mean gain of each arm, with a floor. Both are reduced
 * for arms whose children are known or wrong. */
#include "tuner/search/bandit.h"

#include <assert.h>
#include <string.h>

#define FLOOR_SHARE 0.3 /* share of all draws that the open arms get by their freshness alone */
#define FADE 0.99       /* factor on earlier payments at each payment of the same arm */
#define PRIOR_TRIES 3.0 /* tries that a new arm is credited with */
#define PRIOR_GAIN 0.02 /* and the mean gain of these tries, between hopeless and a winner */
/* Children that a new arm is credited with: with the expected results, or with even ones where
 * nothing is expected. */
#define PRIOR_CHILDREN 8.0
#define EVEN_CHILDREN 2.0
#define EVEN_ODDS 0.5
/* the least factor on the weight of an arm that makes nothing new and correct */
#define LEAST_FRESH 0.05

/* ---- arm statistics ---- */

void bandit_expect(arm_statistics *statistics, const double *odds, unsigned count) {
    assert(count <= BANDIT_MOST);
    *statistics = (arm_statistics){0};
    for (unsigned arm = 0; arm < count; arm++) {
        statistics->made[arm] = odds ? PRIOR_CHILDREN : EVEN_CHILDREN;
        statistics->fresh[arm] = statistics->made[arm] * (odds ? odds[arm] : EVEN_ODDS);
    }
}

void bandit_note(arm_statistics *statistics, unsigned arm, bool is_fresh) {
    assert(arm < BANDIT_MOST);
    statistics->made[arm] = statistics->made[arm] * FADE + 1;
    statistics->fresh[arm] = statistics->fresh[arm] * FADE + is_fresh;
}

/* ---- arms ---- */

void bandit_begin(bandit *b, const bool *open, unsigned count, const arm_statistics *statistics) {
    assert(count > 0 && count <= BANDIT_MOST);
    *b = (bandit){.count = count, .statistics = statistics};
    memcpy(b->open, open, count * sizeof *open);
    for (unsigned arm = 0; arm < count; arm++)
        b->weight[arm] = 1;
}

/* The arm's own weight times its freshness. */
static double freshness(const bandit *b, unsigned arm) {
    if (!b->statistics)
        return b->weight[arm];
    double fresh = b->statistics->fresh[arm] / b->statistics->made[arm];
    return b->weight[arm] * (fresh > LEAST_FRESH ? fresh : LEAST_FRESH);
}

static double mean_gain(const bandit *b, unsigned arm) {
    return (b->gain[arm] + PRIOR_GAIN * PRIOR_TRIES) / (b->tries[arm] + PRIOR_TRIES);
}

static bool may_draw(const bandit *b, const bool *skip, unsigned arm) {
    return b->open[arm] && !(skip && skip[arm]);
}

/* Sums over the arms that may be drawn. */
typedef struct totals {
    double gain, fresh;
} totals;

static totals totals_of(const bandit *b, const bool *skip) {
    totals t = {0};
    for (unsigned arm = 0; arm < b->count; arm++) {
        if (may_draw(b, skip, arm)) {
            t.gain += mean_gain(b, arm) * freshness(b, arm);
            t.fresh += freshness(b, arm);
        }
    }
    return t;
}

static double share_of(const bandit *b, const totals *t, unsigned arm) {
    double fresh = freshness(b, arm);
    return FLOOR_SHARE * fresh / t->fresh + (1 - FLOOR_SHARE) * mean_gain(b, arm) * fresh / t->gain;
}

double bandit_share(const bandit *b, unsigned arm) {
    assert(arm < b->count);
    if (!b->open[arm])
        return 0;
    totals t = totals_of(b, NULL);
    return share_of(b, &t, arm);
}

unsigned bandit_draw(const bandit *b, const bool *skip, ev_pcg *rng) {
    unsigned last = b->count;
    totals t = totals_of(b, skip);
    double at = ev_pcg_unit(rng);
    for (unsigned arm = 0; arm < b->count; arm++) {
        if (!may_draw(b, skip, arm))
            continue;
        last = arm;
        at -= share_of(b, &t, arm);
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
