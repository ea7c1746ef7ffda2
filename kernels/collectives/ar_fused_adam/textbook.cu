/* Reduce-scatter, Adam and all-gather in one kernel, each rank's kernel on its own GPU.
 *
 * Rank r owns shard r of the n parameters and its moments m and v. A block owns a piece of 1024
 * elements of every shard. It sends the rank's gradients of each shard to the shard's owner, into
 * the row `stage[rank]` there, waits for those of its own shard, takes one step of Adam with
 * decoupled weight decay on their mean, and stores the new parameters on all ranks. correction1 and
 * correction2 are 1 - beta^step.
 *
 * Launches are numbered by `epoch`, from 1. A flag of a piece and a rank is 2 epoch - 1 when that
 * rank's gradients are there, and 2 epoch when its parameters are. A rank ends a launch behind the
 * parameters of all owners, who by then have read their stages: so the stage needs no second half.
 */
#include "evoke_cuda.h"
#include "evoke_flags.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#define PIECE 1024

extern "C" __global__ void ar_fused_adam(const float *__restrict__ gradient, float *parameter,
                                         float *const *__restrict__ parameters, float *m, float *v,
                                         float *stage, float *const *__restrict__ stages,
                                         unsigned *flags, unsigned *const *__restrict__ all_flags,
                                         int n, int ranks, int rank, unsigned epoch, float rate,
                                         float beta1, float beta2, float epsilon, float decay,
                                         float correction1, float correction2) {
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
        float g = sum / ranks;

        m[i] = beta1 * m[i] + (1.0f - beta1) * g;
        v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
        float mean = m[i] / correction1;
        float variance = v[i] / correction2;
        float old = parameter[rank * shard + i];
        float next = old - rate * (mean / (sqrtf(variance) + epsilon) + decay * old);

        for (int q = 0; q < ranks; q++)
            parameters[q][rank * shard + i] = next;
    }
    meet(flags, all_flags, ranks, rank, 2 * epoch);
}
