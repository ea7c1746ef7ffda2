/* An all-reduce of the ranks' gradients, then Adam on all parameters on every rank, in a launch
 * each: data parallel training without shards.
 *
 * all_reduce: rank r owns shard r of the n gradients. A block owns a piece of 1024 elements of
 * every shard. It sends the rank's gradients of each shard to the shard's owner, into the row
 * `stage[rank]` there, waits for those of its own shard, and stores their mean on all ranks.
 * Launches and flags are as in ar_fused_adam, whose flags tell of parameters where these tell of
 * means. The rank ends the launch behind the means of all owners, so the next one waits for no one.
 *
 * adam: one step with decoupled weight decay on each parameter, with moments of them all. Equal
 * means and moments give equal parameters: no rank sends any. */
#include "evoke_cuda.h"
#include "evoke_plain.h"

#ifndef BLOCK
#define BLOCK 256
#endif

extern "C" __global__ void all_reduce_gradients(const float *__restrict__ gradient, float *stage,
                                                float *const *__restrict__ stages, unsigned *flags,
                                                unsigned *const *__restrict__ all_flags,
                                                float *const *__restrict__ means, int n, int ranks,
                                                int rank, unsigned epoch) {
    all_reduce_plain<BLOCK>(gradient, stage, stages, flags, all_flags, means, n, ranks, rank,
                            epoch);
}

extern "C" __global__ void adam_of_all(const float *mean, float *parameter, float *m, float *v,
                                       int n, float rate, float beta1, float beta2, float epsilon,
                                       float decay, float correction1, float correction2) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    float g = mean[i];
    m[i] = beta1 * m[i] + (1.0f - beta1) * g;
    v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
    float step = (m[i] / correction1) / (sqrtf(v[i] / correction2) + epsilon);
    parameter[i] -= rate * (step + decay * parameter[i]);
}
