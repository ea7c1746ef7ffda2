/* Oracle of ar_fused_lamb: the ranks' mean gradient, one step of LAMB, the same new parameters on
 * every rank; the norms that the ranks exchange, and what a launch leaves in flags and stages. */
#include "kernels/oracles_lamb.h"

#define PIECE 1024 /* elements of a shard for which a block sums up squares */

/* Which of the two sums. The squares of a float are exact in double precision, so old parameters
 * leave the errors of a sum in double precision. Updates are computed in single precision, whose
 * units are larger. */
static oracle_real_sized sum_at(const oracle_lamb_norms *s, bool is_update) {
    if (!is_update)
        return (oracle_real_sized){s->old, s->old};
    return (oracle_real_sized){s->update,
                               (s->update + s->update_size) * ((double)FLT_EPSILON / DBL_EPSILON)};
}

/* Element `at` of the sums of pieces, [rank][piece][2]. */
static oracle_real_sized partial_of(const oracle_lamb *l, uint64_t at) {
    uint64_t pieces = (l->at.shard + PIECE - 1) / PIECE;
    uint64_t owner = at / 2 / pieces, begin = owner * l->at.shard;
    uint64_t first = begin + at / 2 % pieces * PIECE, end = first + PIECE;
    uint64_t last = begin + l->at.shard;
    oracle_lamb_norms s = oracle_lamb_squares(l, first, end < last ? end : last);
    return sum_at(&s, at % 2 == 1);
}

/* Element `at` of the sums of ranks, [rank][of rank][2]. */
static oracle_real_sized norm_of(const oracle_lamb *l, uint64_t at) {
    uint64_t first = at / 2 % l->at.ranks * l->at.shard;
    oracle_lamb_norms s = oracle_lamb_squares(l, first, first + l->at.shard);
    return sum_at(&s, at % 2 == 1);
}

/* Of the norms, and of what a launch leaves in flags and stages. */
static bool rest_of(const oracle_lamb *l, const evoke_oracle_call *call, uint64_t at,
                    oracle_real_sized *r) {
    const char *output = call->arguments[call->output].name;
    double epoch = (double)oracle_whole(call, "epoch");
    if (strcmp(output, "partial") == 0)
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
    return oracle_lamb_answer(call, false, rest_of);
}
