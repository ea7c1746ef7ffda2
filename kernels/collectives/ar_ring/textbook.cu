/* All-reduce of several ranks around a ring, each rank's kernel on its own GPU.
 *
 * The n elements are one slice a rank. In step t a rank sends slice (rank - t) mod P to the next
 * rank. In the first P - 1 steps, the reduce-scatter, it sends the sum of the slice so far, which
 * came in the step before, plus its own numbers, into the next rank's `inbox`. Then the sum of
 * slice rank + 1 is complete, and P - 1 steps of all-gather pass complete slices on from `output`
 * to `output`. Each sum is made on one rank and copied to the others, so all ranks have the same
 * bits.
 *
 * A block owns a piece of 1024 elements of every slice. Its flag counts the messages that the rank
 * before has sent it, in all launches so far; launches are numbered by `epoch`, from 1. The inbox
 * needs no second half: a rank ends a launch behind a slice that the next rank completed, and by
 * then the next rank has read all of its inbox. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#define PIECE 1024

extern "C" __global__ void ar_ring(const float *__restrict__ input, float *output,
                                   float *const *__restrict__ outputs, float *inbox,
                                   float *const *__restrict__ inboxes, unsigned *flags,
                                   unsigned *const *__restrict__ all_flags, int n, int ranks,
                                   int rank, unsigned epoch) {
    int next = (rank + 1) % ranks;
    int slice = ((n + ranks - 1) / ranks + 3) / 4 * 4;
    int first = blockIdx.x * PIECE, last = min(slice, first + PIECE);
    int steps = 2 * (ranks - 1);
    unsigned before = (epoch - 1) * steps;

    for (int step = 0; step <= steps; step++) {
        if (step > 0) {
            if (threadIdx.x == 0) {
                while ((int)(*(volatile unsigned *)&flags[blockIdx.x] - (before + step)) < 0)
                    ;
                __threadfence_system();
            }
            __syncthreads();
        }
        if (step == steps)
            break;

        int from = (rank - step + 2 * ranks) % ranks * slice;
        for (int i = from + first + threadIdx.x; i < min(n, from + last); i += BLOCK) {
            float sum = step < ranks ? input[i] : output[i];
            if (step > 0 && step < ranks)
                sum += inbox[i];
            if (step == ranks - 1)
                output[i] = sum;
            if (step < ranks - 1)
                inboxes[next][i] = sum;
            else
                outputs[next][i] = sum;
        }

        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence_system();
            *(volatile unsigned *)&all_flags[next][blockIdx.x] = before + step + 1;
        }
    }
}
