/* Reduce-scatter, stochastic gradient descent with momentum, and all-gather in one kernel, each
 * rank's kernel on its own GPU.
 *
 * With P ranks, whose gradients are g_0 .. g_(P-1), momentum mu, weight decay lambda and rate eta,
 * a launch takes the step
 *
 *     g = (g_0 + ... + g_(P-1)) / P,   v' = mu v + g + lambda p,   p' = p - eta v'
 *
 * (Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013,
 * with the rate outside of the momentum, as in Goyal et al., "Accurate, Large Minibatch SGD", 2017,
 * equation 10; the schedule is fused(RS-C-AG) of Jangda et al., ASPLOS 2022). Rank r owns shard r
 * of the n parameters and its momenta v. A block owns a piece of 1024 elements of every shard. It
 * sends the rank's gradients of each shard to the shard's owner, into the row `stage[rank]` there,
 * waits for those of its own shard, takes the step, and stores the new parameters on all ranks.
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

extern "C" __global__ void ar_fused_sgd(const float *__restrict__ gradient, float *parameter,
                                        float *const *__restrict__ parameters, float *v,
                                        float *stage, float *const *__restrict__ stages,
                                        unsigned *flags, unsigned *const *__restrict__ all_flags,
                                        int n, int ranks, int rank, unsigned epoch, float rate,
                                        float momentum, float decay) {
    int shard = shard_of(n, ranks);
    int first = blockIdx.x * PLAIN_PIECE, last = min(shard, first + PLAIN_PIECE);

    send_plain<BLOCK>(gradient, stages, n, ranks, rank, shard, first, last);
    meet(flags, all_flags, ranks, rank, 2 * epoch - 1);

    for (int i = first + threadIdx.x; i < min(last, n - rank * shard); i += BLOCK) {
        float g = mean_plain(gradient, stage, ranks, rank, shard, i);
        float old = parameter[rank * shard + i];
        v[i] = momentum * v[i] + g + decay * old;
        float next = old - rate * v[i];

        for (int q = 0; q < ranks; q++)
            parameters[q][rank * shard + i] = next;
    }
    meet(flags, all_flags, ranks, rank, 2 * epoch);
}
