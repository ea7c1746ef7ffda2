/* An all-reduce of the ranks' gradients, then LAMB on all parameters on every rank, in launches of
 * their own: data parallel training without shards.
 *
 * The all-reduce is that of ar_then_adam, the step that of ar_fused_lamb. moments_of_all leaves the
 * updates, and each block the squares of its piece of 1024 parameters; each block of update_all
 * adds up the squares of all pieces in their order. Equal means and moments give equal parameters:
 * no rank sends parameters or norms. */
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

extern "C" __global__ void moments_of_all(const float *mean, const float *parameter, float *m,
                                          float *v, float *update, double *partial, int n,
                                          float beta1, float beta2, float epsilon, float decay,
                                          float correction1, float correction2) {
    double old = 0.0, updates = 0.0;
    int first = blockIdx.x * PLAIN_PIECE;
    for (int i = first + threadIdx.x; i < min(n, first + PLAIN_PIECE); i += BLOCK) {
        float g = mean[i], p = parameter[i];
        m[i] = beta1 * m[i] + (1.0f - beta1) * g;
        v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
        float u = (m[i] / correction1) / (sqrtf(v[i] / correction2) + epsilon) + decay * p;
        update[i] = u;
        old += (double)p * p;
        updates += (double)u * u;
    }
    old = sum_plain<BLOCK>(old);
    updates = sum_plain<BLOCK>(updates);
    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = old;
        partial[2 * blockIdx.x + 1] = updates;
    }
}

extern "C" __global__ void update_all(const float *update, float *parameter, const double *partial,
                                      int n, float rate) {
    double old = 0.0, updates = 0.0;
    for (int piece = threadIdx.x; piece < (n + PLAIN_PIECE - 1) / PLAIN_PIECE; piece += BLOCK) {
        old += partial[2 * piece];
        updates += partial[2 * piece + 1];
    }
    old = sum_plain<BLOCK>(old);
    updates = sum_plain<BLOCK>(updates);
    float trust = old == 0.0 || updates == 0.0 ? 1.0f : (float)(sqrt(old) / sqrt(updates));
    int first = blockIdx.x * PLAIN_PIECE;
    for (int i = first + threadIdx.x; i < min(n, first + PLAIN_PIECE); i += BLOCK)
        parameter[i] -= rate * trust * update[i];
}
