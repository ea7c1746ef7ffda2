/* Parts of the textbook starts of collectives: a block owns a piece of every rank's shard, and a
 * thread takes one number at a time. THREADS: of a block. */
#ifndef EVOKE_PLAIN_H
#define EVOKE_PLAIN_H

#include "evoke_shards.h"

#define PLAIN_PIECE 1024

/* Sends the rank's gradients of elements first .. last - 1 of each shard to the shard's owner, into
 * the row stage[rank] there. */
template <int THREADS>
static __device__ __forceinline__ void send_plain(const float *gradient, float *const *stages,
                                                  int n, int ranks, int rank, int shard, int first,
                                                  int last) {
    for (int q = 0; q < ranks; q++) {
        if (q == rank)
            continue;
        for (int i = first + threadIdx.x; i < min(last, n - q * shard); i += THREADS)
            stages[q][rank * shard + i] = gradient[q * shard + i];
    }
}

/* The mean gradient of element i of the own shard, when all ranks' gradients are there. */
static __device__ __forceinline__ float mean_plain(const float *gradient, const float *stage,
                                                   int ranks, int rank, int shard, int i) {
    float sum = 0.0f;
    for (int q = 0; q < ranks; q++)
        sum += q == rank ? gradient[rank * shard + i] : stage[q * shard + i];
    return sum / ranks;
}

/* Mean gradients of all n elements, to all ranks: means[rank][element]. */
template <int THREADS>
static __device__ __forceinline__ void
all_reduce_plain(const float *gradient, const float *stage, float *const *stages, unsigned *flags,
                 unsigned *const *all_flags, float *const *means, int n, int ranks, int rank,
                 unsigned epoch) {
    int shard = shard_of(n, ranks);
    int first = blockIdx.x * PLAIN_PIECE, last = min(shard, first + PLAIN_PIECE);

    send_plain<THREADS>(gradient, stages, n, ranks, rank, shard, first, last);
    meet(flags, all_flags, ranks, rank, 2 * epoch - 1);

    for (int i = first + threadIdx.x; i < min(last, n - rank * shard); i += THREADS) {
        float mean = mean_plain(gradient, stage, ranks, rank, shard, i);
        for (int q = 0; q < ranks; q++)
            means[q][rank * shard + i] = mean;
    }
    meet(flags, all_flags, ranks, rank, 2 * epoch);
}

/* The sum over all threads of the block, to all of them. */
template <int THREADS> static __device__ double sum_plain(double x) {
    __shared__ double all[THREADS];
    all[threadIdx.x] = x;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            all[threadIdx.x] += all[threadIdx.x + half];
        __syncthreads();
    }
    double sum = all[0];
    __syncthreads();
    return sum;
}

#endif
