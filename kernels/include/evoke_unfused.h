/* The launches of unfused schedules, with which fused collectives are compared: reduce_scatter,
 * all_reduce and all_gather are each all that a kernel does. Between launches a rank waits for no
 * one: what a launch needs of the peers, it has waited for itself, or an earlier one has.
 *
 * Each rank owns a shard of n numbers, in pieces. A flag of a piece and a rank is 2 epoch - 1 when
 * that rank's gradients are in the stage, and 2 epoch when what it sent its peers of its own shard
 * is in place. Every number is sent as in the fused kernels (evoke_shards.h). */
#ifndef EVOKE_UNFUSED_H
#define EVOKE_UNFUSED_H

#include "evoke_shards.h"

#define UNFUSED_PIECE 1024

/* What of a launch is the same for all pieces. */
struct unfused {
    const float *gradient, *stage;
    float *const *stages;
    unsigned *flags;
    unsigned *const *all_flags;
    int n, ranks, rank, shard, pieces;
    unsigned epoch;
};

static __device__ __forceinline__ unfused unfused_of(const float *gradient, const float *stage,
                                                     float *const *stages, unsigned *flags,
                                                     unsigned *const *all_flags, int n, int ranks,
                                                     int rank, unsigned epoch) {
    const int shard = shard_of(n, ranks);
    return {gradient, stage, stages, flags, all_flags,
            n,        ranks, rank,   shard, (shard + UNFUSED_PIECE - 1) / UNFUSED_PIECE,
            epoch};
}

/* Where a thread's four numbers of a piece stand in the shard; the s-th of TIMES. */
template <int THREADS> static __device__ __forceinline__ int place_of(int piece, int s) {
    return piece * UNFUSED_PIECE + (s * THREADS + (int)threadIdx.x) * 4;
}

static __device__ __forceinline__ void wait_for_owners(const unfused &l) {
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x)
        wait_all(l, piece, 2 * l.epoch);
}

/* Sends the rank's gradients, and calls put(at, mean) with four means of the own shard. `tells`:
 * put sends them to the peers. RANKS is the number of ranks where it is known when compiling, else
 * 0. */
template <int RANKS, int THREADS, class PUT>
static __device__ __forceinline__ void reduce(const unfused &l, const PUT &put, bool tells) {
    constexpr int UNROLL = RANKS ? RANKS : 1, TIMES = UNFUSED_PIECE / 4 / THREADS;
    const int count = RANKS ? RANKS : l.ranks;
    const int own = l.rank * l.shard, end = min(l.shard, l.n - own);
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x) {
        send<RANKS, TIMES, THREADS, TIMES>(l, piece);
        tell_all(l, piece, 2 * l.epoch - 1);
    }
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x) {
        float4 g[TIMES];
#pragma unroll
        for (int s = 0; s < TIMES; s++)
            g[s] = load4<true>(l.gradient + own, place_of<THREADS>(piece, s), end);
        wait_all(l, piece, 2 * l.epoch - 1);
        __syncthreads();
#pragma unroll
        for (int s = 0; s < TIMES; s++) {
            const int at = place_of<THREADS>(piece, s);
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll UNROLL
            for (int q = 0; q < count; q++)
                add(sum, q == l.rank ? g[s] : load4<false>(l.stage + q * l.shard, at, end));
            put(at, make_float4(sum.x / count, sum.y / count, sum.z / count, sum.w / count));
        }
        if (tells)
            tell_all(l, piece, 2 * l.epoch);
    }
}

/* Numbers `at` .. `at` + 3 of the own shard, to to[rank] of all ranks, beginning with the peer that
 * is `first` behind it. */
template <int RANKS>
static __device__ __forceinline__ void spread4(const unfused &l, float *const *to, int first,
                                               int at, const float4 &t) {
    constexpr int UNROLL = RANKS ? RANKS : 1;
    const int count = RANKS ? RANKS : l.ranks;
    const int own = l.rank * l.shard, end = min(l.shard, l.n - own);
#pragma unroll UNROLL
    for (int i = first; i < count; i++) {
        int q = l.rank + i < count ? l.rank + i : l.rank + i - count;
        store4(to[q] + own, at, end, t);
    }
}

template <int RANKS, int THREADS>
static __device__ __forceinline__ void all_reduce_of(const unfused &l, float *const *means) {
    reduce<RANKS, THREADS>(
        l, [&](int at, const float4 &mean) { spread4<RANKS>(l, means, 0, at, mean); }, true);
    wait_for_owners(l);
}

template <int RANKS, int THREADS>
static __device__ __forceinline__ void reduce_scatter_of(const unfused &l, float *mean) {
    const int end = min(l.shard, l.n - l.rank * l.shard);
    reduce<RANKS, THREADS>(l, [&](int at, const float4 &t) { store4(mean, at, end, t); }, false);
}

template <int RANKS, int THREADS>
static __device__ __forceinline__ void all_gather_of(const unfused &l, const float *from,
                                                     float *const *to) {
    const int own = l.rank * l.shard, end = min(l.shard, l.n - own);
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x) {
#pragma unroll
        for (int s = 0; s < UNFUSED_PIECE / 4 / THREADS; s++) {
            const int at = place_of<THREADS>(piece, s);
            spread4<RANKS>(l, to, 1, at, load4<false>(from + own, at, end));
        }
        tell_all(l, piece, 2 * l.epoch);
    }
    wait_for_owners(l);
}

/* means[rank][element]: the same numbers at each rank. */
template <int THREADS>
static __device__ __forceinline__ void all_reduce(const unfused &l, float *const *means) {
    by_ranks(l.ranks,
             [&](auto ranks) { all_reduce_of<decltype(ranks)::value, THREADS>(l, means); });
}

/* mean[element of the own shard]. */
template <int THREADS>
static __device__ __forceinline__ void reduce_scatter(const unfused &l, float *mean) {
    by_ranks(l.ranks,
             [&](auto ranks) { reduce_scatter_of<decltype(ranks)::value, THREADS>(l, mean); });
}

/* The own shard of `from`, to its place in to[rank] at all peers. */
template <int THREADS>
static __device__ __forceinline__ void all_gather(const unfused &l, const float *from,
                                                  float *const *to) {
    by_ranks(l.ranks,
             [&](auto ranks) { all_gather_of<decltype(ranks)::value, THREADS>(l, from, to); });
}

#endif
