/* All-reduce of several ranks in one step, each rank's kernel on its own GPU.
 *
 * A block owns a chunk of 1024 elements. It copies the rank's chunk to where the peers can read it,
 * `stage`, tells the same block of every rank by a flag of system scope, waits for theirs, and adds
 * up the chunks of all ranks in the order of the ranks, so that all ranks have the same bits.
 *
 * Launches are numbered by `epoch`, from 1. A flag holds the number of the last launch that set it.
 * The stage has two halves, used by turns: a rank writes a half again only when all peers' flags of
 * the launch between are there, and then they have read it. So no second wait is needed. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#define CHUNK 1024

extern "C" __global__ void ar_oneshot(const float *__restrict__ input, float *__restrict__ output,
                                      float *stage, float *const *__restrict__ stages,
                                      unsigned *flags, unsigned *const *__restrict__ all_flags,
                                      int n, int ranks, int rank, unsigned epoch) {
    int begin = blockIdx.x * CHUNK;
    int end = min(n, begin + CHUNK);
    size_t half = (size_t)(epoch & 1) * ((n + 3) / 4 * 4);

    for (int i = begin + threadIdx.x; i < end; i += BLOCK)
        stage[half + i] = input[i];

    __syncthreads();
    int peer = threadIdx.x;
    if (peer < ranks) {
        __threadfence_system();
        *(volatile unsigned *)&all_flags[peer][blockIdx.x * ranks + rank] = epoch;
        while ((int)(*(volatile unsigned *)&flags[blockIdx.x * ranks + peer] - epoch) < 0)
            ;
        __threadfence_system();
    }
    __syncthreads();

    for (int i = begin + threadIdx.x; i < end; i += BLOCK) {
        float sum = 0.0f;
        for (int r = 0; r < ranks; r++)
            sum += stages[r][half + i];
        output[i] = sum;
    }
}
