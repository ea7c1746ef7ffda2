/* Reduce-scatter, stochastic gradient descent with momentum and weight decay, and all-gather in one
 * kernel, over the buffers of several ranks.
 *
 * Rank r owns shard r of the n parameters: it adds up that shard of every rank's gradient, takes a
 * step, v = momentum v + g + decay p and p = p - rate v, with its part of the momenta v, and writes
 * the new parameters into every rank's copy. One thread owns one element. The buffers of all ranks
 * stand in one memory: gradient[ranks][n] and parameter[ranks][n]. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif

extern "C" __global__ void ar_sgd_momentum(const float *gradient, float *parameter, float *v, int n,
                                           int ranks, float rate, float momentum, float decay) {
    int shard = (n + ranks - 1) / ranks;
    int rank = blockIdx.y;
    int at = blockIdx.x * BLOCK + threadIdx.x;
    int i = rank * shard + at;
    if (at >= shard || i >= n)
        return;

    float sum = 0.0f;
    for (int r = 0; r < ranks; r++)
        sum += gradient[(size_t)r * n + i];

    float p = parameter[(size_t)rank * n + i];
    v[i] = momentum * v[i] + sum / ranks + decay * p;
    float next = p - rate * v[i];

    for (int r = 0; r < ranks; r++)
        parameter[(size_t)r * n + i] = next;
}
