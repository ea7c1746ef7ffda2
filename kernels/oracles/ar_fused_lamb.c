/* Oracle of ar_fused_lamb: the ranks' mean gradient, one step of LAMB (You et al., "Large Batch
 * Optimization for Deep Learning: Training BERT in 76 minutes", ICLR 2020, algorithm 2) with all
 * parameters as one layer, the same new parameters on every rank; the norms that the ranks
 * exchange, and what a launch leaves in flags and stages.
 *
 * With u the update before the trust ratio T = |p| / |u|, an element of T u is off by T du, and by
 * T |u| times the relative error of |u|, which is that of the sum of its squares, halved. An
 * element of T u has at most the size |p|, so it is never off by more than 2 |p|, however
 * ill-conditioned the update is. */
#include "kernels/oracles_adam.h"
#include "kernels/oracles_stage.h"

#define PIECE 1024 /* elements of a shard for which a block sums up squares */

typedef struct lamb {
    oracle_adam adam;
    oracle_stage at;
    double rate, decay;
} lamb;

/* Sums of squares of old parameters and of updates, with the error of the latter over reach. */
typedef struct squares {
    double old, update, update_size;
} squares;

static bool read_lamb(const evoke_oracle_call *call, lamb *l) {
    l->rate = oracle_real(call, "rate");
    l->decay = oracle_real(call, "decay");
    return oracle_adam_read(call, &l->adam) && oracle_stage_read(call, &l->at);
}

static oracle_real_sized update_of(const lamb *l, uint64_t i) {
    oracle_moments next = oracle_adam_moments(&l->adam, i);
    oracle_real_sized step = oracle_adam_step(&l->adam, &next);
    double decay = l->decay * (double)l->adam.parameter[i];
    return (oracle_real_sized){step.value + decay, step.size + fabs(decay)};
}

static squares squares_of(const lamb *l, uint64_t first, uint64_t end) {
    oracle_sum old = {0, 0, 0}, update = {0, 0, 0};
    squares s = {0, 0, 0};
    for (uint64_t i = first; i < end && i < l->at.n; i++) {
        oracle_real_sized u = update_of(l, i);
        double p = (double)l->adam.parameter[i];
        oracle_add(&old, p * p);
        oracle_add(&update, u.value * u.value);
        s.update_size += 2 * fabs(u.value) * u.size + l->adam.reach * u.size * u.size;
    }
    s.old = oracle_total(&old);
    s.update = oracle_total(&update);
    return s;
}

/* Which of the two sums. The squares of a float are exact in double precision, so old parameters
 * leave the errors of a sum in double precision. Updates are computed in single precision, whose
 * units are larger. */
static oracle_real_sized sum_at(const squares *s, bool is_update) {
    if (!is_update)
        return (oracle_real_sized){s->old, s->old};
    return (oracle_real_sized){s->update,
                               (s->update + s->update_size) * ((double)FLT_EPSILON / DBL_EPSILON)};
}

/* Element `at` of the sums of pieces, [rank][piece][2]. */
static oracle_real_sized partial_of(const lamb *l, uint64_t at) {
    uint64_t pieces = (l->at.shard + PIECE - 1) / PIECE;
    uint64_t owner = at / 2 / pieces, begin = owner * l->at.shard;
    uint64_t first = begin + at / 2 % pieces * PIECE, end = first + PIECE;
    uint64_t last = begin + l->at.shard;
    squares s = squares_of(l, first, end < last ? end : last);
    return sum_at(&s, at % 2 == 1);
}

/* Element `at` of the sums of ranks, [rank][of rank][2]. */
static oracle_real_sized norm_of(const lamb *l, uint64_t at) {
    uint64_t first = at / 2 % l->at.ranks * l->at.shard;
    squares s = squares_of(l, first, first + l->at.shard);
    return sum_at(&s, at % 2 == 1);
}

static oracle_real_sized parameter_of(const lamb *l, const squares *all, uint64_t i) {
    oracle_real_sized u = update_of(l, i);
    double p = (double)l->adam.parameter[i], reach = l->adam.reach;
    double trust = 1, greatest = 1, most = INFINITY;
    if (all->old > 0 && all->update > 0) {
        trust = sqrt(all->old / all->update);
        greatest = sqrt(all->old / fmax(all->update - reach * all->update_size, 0));
        most = 2 * sqrt(all->old) / reach;
    }
    double size = greatest * u.size + (greatest - trust) / reach * fabs(u.value);
    size = trust * fabs(u.value) + fmin(size, most);
    return (oracle_real_sized){p - l->rate * trust * u.value, fabs(p) + fabs(l->rate) * size};
}

/* false: no such output. */
static bool answer_of(const lamb *l, const evoke_oracle_call *call, const squares *all, uint64_t at,
                      oracle_real_sized *r) {
    const char *output = call->arguments[call->output].name;
    double epoch = (double)oracle_whole(call, "epoch");
    if (strcmp(output, "parameter") == 0)
        *r = parameter_of(l, all, at % l->at.n);
    else if (strcmp(output, "partial") == 0)
        *r = partial_of(l, at);
    else if (strcmp(output, "norms") == 0)
        *r = norm_of(l, at);
    else if (strcmp(output, "norm_flags") == 0)
        *r = (oracle_real_sized){epoch, epoch};
    else if (strcmp(output, "ticket") == 0)
        *r = (oracle_real_sized){0, 0};
    else
        return oracle_stage_answer(&l->at, call, output, at, r);
    return true;
}

int oracle_ar_fused_lamb(evoke_oracle_call *call) {
    const char *output = call->arguments[call->output].name;
    bool is_parameter = strcmp(output, "parameter") == 0;
    lamb l;
    if (!read_lamb(call, &l))
        return 1;
    squares all = {0, 0, 0};
    if (is_parameter)
        all = squares_of(&l, 0, l.at.n);
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t at = call->first + k;
        oracle_real_sized r = {0, 0};
        if (strcmp(output, "m") == 0 || strcmp(output, "v") == 0) {
            oracle_adam_moment(&l.adam, output[0] == 'm', at, call, k);
            continue;
        }
        if (!answer_of(&l, call, &all, at, &r))
            return 1;
        call->value[k] = r.value;
        call->scale[k] = r.size;
    }
    return 0;
}
