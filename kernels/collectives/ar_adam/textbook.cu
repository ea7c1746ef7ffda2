/* Reduce-scatter, Adam and all-gather in one kernel, over the buffers of several ranks.
 *
 * Rank r owns shard r of the n parameters: it adds up that shard of every rank's gradient, takes
 * one step of Adam on it with its part of the moments m and v, and writes the new parameters into
 * every rank's copy. One thread owns one element. The buffers of all ranks stand in one memory:
 * gradient[ranks][n] and parameter[ranks][n]. correction1 and correction2 are 1 - beta^step. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif

extern "C" __global__ void ar_adam(const float *gradient, float *parameter, float *m, float *v,
                                   int n, int ranks, float rate, float beta1, float beta2,
                                   float epsilon, float correction1, float correction2) {
    int shard = (n + ranks - 1) / ranks;
    int rank = blockIdx.y;
    int at = blockIdx.x * BLOCK + threadIdx.x;
    int i = rank * shard + at;
    if (at >= shard || i >= n)
        return;

    float sum = 0.0f;
    for (int r = 0; r < ranks; r++)
        sum += gradient[(size_t)r * n + i];
    float g = sum / ranks;

    m[i] = beta1 * m[i] + (1.0f - beta1) * g;
    v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
    float mean = m[i] / correction1;
    float variance = v[i] / correction2;
    float next = parameter[(size_t)rank * n + i] - rate * mean / (sqrtf(variance) + epsilon);

    for (int r = 0; r < ranks; r++)
        parameter[(size_t)r * n + i] = next;
}
