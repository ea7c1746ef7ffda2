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
#include "evoke_plain.h"

#ifndef BLOCK
#define BLOCK 256
#endif

extern "C" __global__ void ar_fused_adam(const float *__restrict__ gradient, float *parameter,
                                         float *const *__restrict__ parameters, float *m, float *v,
                                         float *stage, float *const *__restrict__ stages,
                                         unsigned *flags, unsigned *const *__restrict__ all_flags,
                                         int n, int ranks, int rank, unsigned epoch, float rate,
                                         float beta1, float beta2, float epsilon, float decay,
                                         float correction1, float correction2) {
    int shard = shard_of(n, ranks);
    int first = blockIdx.x * PLAIN_PIECE, last = min(shard, first + PLAIN_PIECE);

    send_plain<BLOCK>(gradient, stages, n, ranks, rank, shard, first, last);
    meet(flags, all_flags, ranks, rank, 2 * epoch - 1);

    for (int i = first + threadIdx.x; i < min(last, n - rank * shard); i += BLOCK) {
        float g = mean_plain(gradient, stage, ranks, rank, shard, i);

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
