/* What the hand-tuned starts of fused collectives share (ar_fused_adam, ar_fused_sgd,
 * ar_fused_lamb). Each rank owns a shard of n numbers, and a block goes over pieces of a shard.
 *
 * LAUNCH is a kernel's own struct of what is the same for all pieces. These functions read its
 * members flags and all_flags (the own flags and those of each rank, [piece][rank]), gradient
 * ([n]), stages (of each rank, [rank][shard]), n, ranks, rank and shard. */
#ifndef EVOKE_SHARDS_H
#define EVOKE_SHARDS_H

#include "evoke_flags.h"

/* All that the block has stored of the piece is there before the flags are. */
template <class LAUNCH>
static __device__ __forceinline__ void tell_all(const LAUNCH &l, int piece, unsigned value) {
    __syncthreads();
    if ((int)threadIdx.x < l.ranks)
        flag_set(l.all_flags[threadIdx.x] + piece * l.ranks + l.rank, value);
}

template <class LAUNCH>
static __device__ __forceinline__ void wait_all(const LAUNCH &l, int piece, unsigned value) {
    if ((int)threadIdx.x < l.ranks) {
        while ((int)(flag_read(l.flags + piece * l.ranks + threadIdx.x) - value) < 0)
            ;
    }
}

/* Elements at .. at + 3 below `end`, the others as zeros. */
template <bool CONSTANT>
static __device__ __forceinline__ float4 load4(const float *p, int at, int end) {
    float4 t = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (at + 4 <= end) {
        t = CONSTANT ? __ldg((const float4 *)(p + at)) : *(const float4 *)(p + at);
    } else if (at < end) {
        t.x = p[at];
        t.y = at + 1 < end ? p[at + 1] : 0.0f;
        t.z = at + 2 < end ? p[at + 2] : 0.0f;
    }
    return t;
}

static __device__ __forceinline__ void store4(float *p, int at, int end, const float4 &t) {
    if (at + 4 <= end) {
        *(float4 *)(p + at) = t;
    } else if (at < end) {
        p[at] = t.x;
        if (at + 1 < end)
            p[at + 1] = t.y;
        if (at + 2 < end)
            p[at + 2] = t.z;
    }
}

static __device__ __forceinline__ void add(float4 &sum, const float4 &t) {
    sum.x += t.x;
    sum.y += t.y;
    sum.z += t.z;
    sum.w += t.w;
}

/* The rank's gradients of a piece, to the owners of the shards. RANKS is the number of ranks where
 * it is known when compiling, else 0. A piece is TIMES times THREADS times four numbers, and
 * UNROLLED of the TIMES are unrolled. */
template <int RANKS, int TIMES, int THREADS, int UNROLLED, class LAUNCH>
static __device__ __forceinline__ void send(const LAUNCH &l, int piece) {
    constexpr int UNROLL = RANKS ? RANKS : 1;
    const int count = RANKS ? RANKS : l.ranks;
#pragma unroll UNROLLED
    for (int s = 0; s < TIMES; s++) {
        const int at = piece * (TIMES * THREADS * 4) + (s * THREADS + (int)threadIdx.x) * 4;
        float4 g[RANKS ? RANKS : 1];
#pragma unroll UNROLL
        for (int i = 1; i < count; i++) {
            int q = l.rank + i < count ? l.rank + i : l.rank + i - count;
            g[RANKS ? i : 0] =
                load4<true>(l.gradient + q * l.shard, at, min(l.shard, l.n - q * l.shard));
            if (RANKS == 0)
                store4(l.stages[q] + l.rank * l.shard, at, min(l.shard, l.n - q * l.shard), g[0]);
        }
#pragma unroll
        for (int i = 1; i < RANKS; i++) {
            int q = l.rank + i < RANKS ? l.rank + i : l.rank + i - RANKS;
            store4(l.stages[q] + l.rank * l.shard, at, min(l.shard, l.n - q * l.shard), g[i]);
        }
    }
}

/* Elements of a rank's shard of n: whole quarters, so that float4 loads of all shards are aligned.
 */
static __device__ __forceinline__ int shard_of(int n, int ranks) {
    return ((n + ranks - 1) / ranks + 3) / 4 * 4;
}

/* A number of ranks that is known when compiling; 0: it is not. */
template <int RANKS> struct rank_count {
    static constexpr int value = RANKS;
};

/* Calls launch(rank_count<RANKS>()) with the number of ranks, where code of its own pays for it. */
template <class LAUNCH>
static __device__ __forceinline__ void by_ranks(int ranks, const LAUNCH &launch) {
    if (ranks == 2)
        launch(rank_count<2>());
    else if (ranks == 4)
        launch(rank_count<4>());
    else if (ranks == 8)
        launch(rank_count<8>());
    else
        launch(rank_count<0>());
}

#endif
