/* An all-reduce of the ranks' gradients, then gradient descent with momentum and weight decay on
 * all parameters on every rank, in a launch each: data parallel training without shards.
 *
 * The all-reduce is that of ar_then_adam. Equal means and momenta give equal parameters: no rank
 * sends any. */
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

extern "C" __global__ void sgd_of_all(const float *mean, float *parameter, float *v, int n,
                                      float rate, float momentum, float decay) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    v[i] = momentum * v[i] + (mean[i] + decay * parameter[i]);
    parameter[i] -= rate * v[i];
}
