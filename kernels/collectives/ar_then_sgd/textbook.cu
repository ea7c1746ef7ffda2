/* An all-reduce of the ranks' gradients, then gradient descent with momentum and weight decay on
 * all parameters on every rank, in a launch each: data parallel training without shards.
 *
 * The all-reduce is that of ar_then_adam. Equal means and momenta give equal parameters: no rank
 * sends any. */
#include "evoke_cuda.h"
#include "evoke_flags.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#define PIECE 1024

extern "C" __global__ void all_reduce_gradients(const float *__restrict__ gradient, float *stage,
                                                float *const *__restrict__ stages, unsigned *flags,
                                                unsigned *const *__restrict__ all_flags,
                                                float *const *__restrict__ means, int n, int ranks,
                                                int rank, unsigned epoch) {
    int shard = ((n + ranks - 1) / ranks + 3) / 4 * 4;
    int first = blockIdx.x * PIECE, last = min(shard, first + PIECE);

    for (int q = 0; q < ranks; q++) {
        if (q == rank)
            continue;
        for (int i = first + threadIdx.x; i < min(last, n - q * shard); i += BLOCK)
            stages[q][rank * shard + i] = gradient[q * shard + i];
    }
    meet(flags, all_flags, ranks, rank, 2 * epoch - 1);

    for (int i = first + threadIdx.x; i < min(last, n - rank * shard); i += BLOCK) {
        float sum = 0.0f;
        for (int q = 0; q < ranks; q++)
            sum += q == rank ? gradient[rank * shard + i] : stage[q * shard + i];
        for (int q = 0; q < ranks; q++)
            means[q][rank * shard + i] = sum / ranks;
    }
    meet(flags, all_flags, ranks, rank, 2 * epoch);
}

extern "C" __global__ void sgd_of_all(const float *mean, float *parameter, float *v, int n,
                                      float rate, float momentum, float decay) {
    int i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= n)
        return;
    v[i] = momentum * v[i] + (mean[i] + decay * parameter[i]);
    parameter[i] -= rate * v[i];
}
