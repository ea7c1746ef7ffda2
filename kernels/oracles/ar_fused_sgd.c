/* Oracle of ar_fused_sgd: the ranks' mean gradient, one step of gradient descent with momentum and
 * weight decay, the same new parameters on every rank; a stage holds the peers' gradients of its
 * rank's shard. */
#include "kernels/oracles_sgd.h"

int oracle_ar_fused_sgd(evoke_oracle_call *call) {
    return oracle_sgd_answer(call, false);
}
