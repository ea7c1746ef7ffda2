/* An all-reduce of the ranks' gradients, then LAMB on all parameters on every rank, in launches of
 * their own: data parallel training without shards.
 *
 * The all-reduce is that of ar_then_adam, the step that of ar_fused_lamb. moments_of_all leaves the
 * updates, and each block the squares of its piece of 1024 parameters; each block of update_all
 * adds up the squares of all pieces in their order. Equal means and moments give equal parameters:
 * no rank sends parameters or norms. */
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

/* The sum over all threads of the block, to all of them. */
static __device__ double sum_up(double x) {
    __shared__ double all[BLOCK];
    all[threadIdx.x] = x;
    __syncthreads();
    for (int half = BLOCK / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            all[threadIdx.x] += all[threadIdx.x + half];
        __syncthreads();
    }
    double sum = all[0];
    __syncthreads();
    return sum;
}

extern "C" __global__ void moments_of_all(const float *mean, const float *parameter, float *m,
                                          float *v, float *update, double *partial, int n,
                                          float beta1, float beta2, float epsilon, float decay,
                                          float correction1, float correction2) {
    double old = 0.0, updates = 0.0;
    int first = blockIdx.x * PIECE;
    for (int i = first + threadIdx.x; i < min(n, first + PIECE); i += BLOCK) {
        float g = mean[i], p = parameter[i];
        m[i] = beta1 * m[i] + (1.0f - beta1) * g;
        v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
        float u = (m[i] / correction1) / (sqrtf(v[i] / correction2) + epsilon) + decay * p;
        update[i] = u;
        old += (double)p * p;
        updates += (double)u * u;
    }
    old = sum_up(old);
    updates = sum_up(updates);
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = old;
        partial[2 * blockIdx.x + 1] = updates;
    }
}

extern "C" __global__ void update_all(const float *update, float *parameter, const double *partial,
                                      int n, float rate) {
    double old = 0.0, updates = 0.0;
    for (int piece = threadIdx.x; piece < (n + PIECE - 1) / PIECE; piece += BLOCK) {
        old += partial[2 * piece];
        updates += partial[2 * piece + 1];
    }
    old = sum_up(old);
    updates = sum_up(updates);
    float trust = old == 0.0 || updates == 0.0 ? 1.0f : (float)(sqrt(old) / sqrt(updates));
    int first = blockIdx.x * PIECE;
    for (int i = first + threadIdx.x; i < min(n, first + PIECE); i += BLOCK)
        parameter[i] -= rate * trust * update[i];
}
