/* The step of LAMB (You et al., "Large Batch Optimization for Deep Learning: Training BERT in 76
 * minutes", ICLR 2020, algorithm 2) with all parameters as one layer, for the oracles that take it.
 * Private to kernels/.
 *
 * With u the update before the trust ratio T = |p| / |u|, an element of T u is off by T du, and by
 * T |u| times the relative error of |u|, which is that of the sum of its squares, halved. An
 * element of T u has at most the size |p|, so it is never off by more than 2 |p|, however
 * ill-conditioned the update is. */
#ifndef KERNELS_ORACLES_LAMB_H
#define KERNELS_ORACLES_LAMB_H

#include "kernels/oracles_adam.h"
#include "kernels/oracles_stage.h"

typedef struct oracle_lamb {
    oracle_adam adam;
    oracle_stage at;
    double rate, decay;
} oracle_lamb;

/* Sums of squares of old parameters and of updates, with the error of the latter over reach. */
typedef struct oracle_lamb_norms {
    double old, update, update_size;
} oracle_lamb_norms;

static inline bool oracle_lamb_read(const evoke_oracle_call *call, oracle_lamb *l) {
    l->rate = oracle_real(call, "rate");
    l->decay = oracle_real(call, "decay");
    return oracle_adam_read(call, &l->adam) && oracle_stage_read(call, &l->at);
}

static inline oracle_real_sized oracle_lamb_update(const oracle_lamb *l, uint64_t i) {
    oracle_moments next = oracle_adam_moments(&l->adam, i);
    oracle_real_sized step = oracle_adam_step(&l->adam, &next);
    double decay = l->decay * (double)l->adam.parameter[i];
    return (oracle_real_sized){step.value + decay, step.size + fabs(decay)};
}

static inline oracle_lamb_norms oracle_lamb_squares(const oracle_lamb *l, uint64_t first,
                                                    uint64_t end) {
    oracle_sum old = {0, 0, 0}, update = {0, 0, 0};
    oracle_lamb_norms s = {0, 0, 0};
    for (uint64_t i = first; i < end && i < l->at.n; i++) {
        oracle_real_sized u = oracle_lamb_update(l, i);
        double p = (double)l->adam.parameter[i];
        oracle_add(&old, p * p);
        oracle_add(&update, u.value * u.value);
        s.update_size += 2 * fabs(u.value) * u.size + l->adam.reach * u.size * u.size;
    }
    s.old = oracle_total(&old);
    s.update = oracle_total(&update);
    return s;
}

static inline oracle_real_sized oracle_lamb_parameter(const oracle_lamb *l,
                                                      const oracle_lamb_norms *all, uint64_t i) {
    oracle_real_sized u = oracle_lamb_update(l, i);
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

/* What outputs beside parameters and moments hold; false: there is no such output. */
typedef bool (*oracle_lamb_rest)(const oracle_lamb *l, const evoke_oracle_call *call, uint64_t at,
                                 oracle_real_sized *r);

/* An oracle as a whole. `has_all`: every rank has the moments of all parameters; else those of its
 * shard. */
static inline int oracle_lamb_answer(evoke_oracle_call *call, bool has_all, oracle_lamb_rest rest) {
    const char *output = call->arguments[call->output].name;
    bool is_parameter = strcmp(output, "parameter") == 0;
    oracle_lamb l;
    if (!oracle_lamb_read(call, &l))
        return 1;
    oracle_lamb_norms all = {0, 0, 0};
    if (is_parameter)
        all = oracle_lamb_squares(&l, 0, l.at.n);
    for (uint64_t k = 0; k < call->count; k++) {
        uint64_t at = call->first + k;
        oracle_real_sized r = {0, 0};
        if (strcmp(output, "m") == 0 || strcmp(output, "v") == 0) {
            oracle_adam_moment(&l.adam, output[0] == 'm', has_all ? at % l.at.n : at, call, k);
            continue;
        }
        if (is_parameter)
            r = oracle_lamb_parameter(&l, &all, at % l.at.n);
        else if (!rest(&l, call, at, &r))
            return 1;
        call->value[k] = r.value;
        call->scale[k] = r.size;
    }
    return 0;
}

#endif
