/* Oracle of ar_then_sgd: as that of ar_fused_sgd, with the momenta of all parameters on every rank.
 */
#include "kernels/oracles_sgd.h"

int oracle_ar_then_sgd(evoke_oracle_call *call) {
    return oracle_sgd_answer(call, true);
}
