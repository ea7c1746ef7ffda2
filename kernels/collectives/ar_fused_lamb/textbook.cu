/* Reduce-scatter, LAMB and all-gather in one kernel, each rank's kernel on its own GPU.
 *
 * With P ranks, whose gradients are g_0 .. g_(P-1), a launch takes the step (You et al., "Large
 * Batch Optimization for Deep Learning: Training BERT in 76 minutes", ICLR 2020, algorithm 2, with
 * phi(x) = x, and the n parameters as one layer)
 *
 *     g = (g_0 + ... + g_(P-1)) / P,   m' = b1 m + (1 - b1) g,   v' = b2 v + (1 - b2) g^2,
 *     u = (m' / c1) / (sqrt(v' / c2) + epsilon) + lambda p,   p' = p - eta (|p| / |u|) u
 *
 * where c1 and c2 are 1 - b1^step and 1 - b2^step, and |.| is the Euclidean norm over the shards of
 * all ranks. As usual, the trust ratio |p| / |u| is 1 where one of the norms is 0. The schedule is
 * fused(RS-C-AG) of Jangda et al., ASPLOS 2022.
 *
 * Rank r owns shard r of the parameters and its moments. A block owns a piece of 1024 elements of
 * every shard. It sends the rank's gradients of each shard to the shard's owner, into the row
 * `stage[rank]` there, waits for those of its own shard, and updates the moments. Then the norms:
 * each block leaves the squares of its piece in `partial`; the last block of the rank to do so adds
 * them up in the order of the pieces and sends the two sums to all ranks. Each block waits for the
 * sums of all ranks, and adds them up in the order of the ranks. Squares of floats neither overflow
 * nor vanish in double precision. At last the block stores its new parameters on all ranks.
 *
 * Launches are numbered by `epoch`, from 1. A flag of a piece and a rank is 2 epoch - 1 when that
 * rank's gradients are there, and 2 epoch when its parameters are; the flag of a rank's norms is
 * epoch when they are there. A rank ends a launch behind the parameters of all owners, who by then
 * have read their stages and norms: so neither needs a second half.
 */
#include "evoke_cuda.h"
#include "evoke_plain.h"

#ifndef BLOCK
#define BLOCK 256
#endif

extern "C" __global__ void
ar_fused_lamb(const float *__restrict__ gradient, float *parameter,
              float *const *__restrict__ parameters, float *m, float *v, float *stage,
              float *const *__restrict__ stages, unsigned *flags,
              unsigned *const *__restrict__ all_flags, double *partial, double *norms,
              double *const *__restrict__ all_norms, unsigned *norm_flags,
              unsigned *const *__restrict__ all_norm_flags, unsigned *ticket, int n, int ranks,
              int rank, unsigned epoch, float rate, float beta1, float beta2, float epsilon,
              float decay, float correction1, float correction2) {
    int shard = shard_of(n, ranks);
    int first = blockIdx.x * PLAIN_PIECE, last = min(shard, first + PLAIN_PIECE);

    send_plain<BLOCK>(gradient, stages, n, ranks, rank, shard, first, last);
    meet(flags, all_flags, ranks, rank, 2 * epoch - 1);

    double old_squares = 0.0, step_squares = 0.0;
    for (int i = first + threadIdx.x; i < min(last, n - rank * shard); i += BLOCK) {
        float g = mean_plain(gradient, stage, ranks, rank, shard, i);

        m[i] = beta1 * m[i] + (1.0f - beta1) * g;
        v[i] = beta2 * v[i] + (1.0f - beta2) * g * g;
        float old = parameter[rank * shard + i];
        float step = m[i] / correction1 / (sqrtf(v[i] / correction2) + epsilon) + decay * old;
        old_squares += (double)old * old;
        step_squares += (double)step * step;
    }
    old_squares = sum_plain<BLOCK>(old_squares);
    step_squares = sum_plain<BLOCK>(step_squares);

    if (threadIdx.x == 0) {
        partial[2 * blockIdx.x] = old_squares;
        partial[2 * blockIdx.x + 1] = step_squares;
        __threadfence();
        if (atomicAdd(ticket, 1u) == gridDim.x - 1) {
            __threadfence();
            atomicExch(ticket, 0u);
            double all_old = 0.0, all_step = 0.0;
            for (unsigned piece = 0; piece < gridDim.x; piece++) {
                all_old += partial[2 * piece];
                all_step += partial[2 * piece + 1];
            }
            for (int q = 0; q < ranks; q++) {
                all_norms[q][2 * rank] = all_old;
                all_norms[q][2 * rank + 1] = all_step;
            }
            __threadfence_system();
            for (int q = 0; q < ranks; q++)
                *(volatile unsigned *)&all_norm_flags[q][rank] = epoch;
        }
    }
    if ((int)threadIdx.x < ranks) {
        while ((int)(*(volatile unsigned *)&norm_flags[threadIdx.x] - epoch) < 0)
            ;
        __threadfence_system();
    }
    __syncthreads();

    old_squares = step_squares = 0.0;
    for (int q = 0; q < ranks; q++) {
        old_squares += norms[2 * q];
        step_squares += norms[2 * q + 1];
    }
    float trust = 1.0f;
    if (old_squares != 0.0 && step_squares != 0.0)
        trust = (float)(sqrt(old_squares) / sqrt(step_squares));

    for (int i = first + threadIdx.x; i < min(last, n - rank * shard); i += BLOCK) {
        float old = parameter[rank * shard + i];
        float step = m[i] / correction1 / (sqrtf(v[i] / correction2) + epsilon) + decay * old;
        float next = old - rate * trust * step;
        for (int q = 0; q < ranks; q++)
            parameters[q][rank * shard + i] = next;
    }
    meet(flags, all_flags, ranks, rank, 2 * epoch);
}
