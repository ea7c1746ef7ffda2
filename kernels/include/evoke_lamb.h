/* A step of LAMB, as the hand-tuned and the unfused starts of ar_fused_lamb and ar_then_lamb take
 * it: moments and updates, sums of squares over the shards of all ranks, the trust ratio.
 *
 * LAUNCH is a kernel's own struct. These functions read its members n, ranks, rank, shard, pieces
 * and epoch, and partial (of each piece), norms and all_norms (of each rank), norm_flags and
 * all_norm_flags, and ticket, as in the task. */
#ifndef EVOKE_LAMB_H
#define EVOKE_LAMB_H

#include "evoke_flags.h"

/* unbias1 and unbias2: one over the bias corrections. */
struct lamb {
    float rate, beta1, beta2, epsilon, decay, unbias1, unbias2;
};

/* Sums of squares: of old parameters, and of updates. */
struct squares {
    double old, update;

    __device__ __forceinline__ void add(const squares &s) {
        old += s.old;
        update += s.update;
    }
};

/* The update before the trust ratio. */
static __device__ __forceinline__ float update_of(const lamb &a, float p, float m, float v) {
    return m * a.unbias1 / (sqrtf(v * a.unbias2) + a.epsilon) + a.decay * p;
}

static __device__ __forceinline__ float moments_of(const lamb &a, float g, float p, float &m,
                                                   float &v) {
    m = a.beta1 * m + (1.0f - a.beta1) * g;
    v = a.beta2 * v + (1.0f - a.beta2) * g * g;
    return update_of(a, p, m, v);
}

static __device__ __forceinline__ float4 moments4(const lamb &a, const float4 &g, const float4 &p,
                                                  float4 &m, float4 &v) {
    return make_float4(moments_of(a, g.x, p.x, m.x, v.x), moments_of(a, g.y, p.y, m.y, v.y),
                       moments_of(a, g.z, p.z, m.z, v.z), moments_of(a, g.w, p.w, m.w, v.w));
}

/* Updates with the trust ratio, and the rate, in `scale`. */
static __device__ __forceinline__ void apply4(float4 &p, float scale, const float4 &u) {
    p.x -= scale * u.x;
    p.y -= scale * u.y;
    p.z -= scale * u.z;
    p.w -= scale * u.w;
}

static __device__ __forceinline__ double square_up(double sum, const float4 &t) {
    sum = fma((double)t.x, (double)t.x, sum);
    sum = fma((double)t.y, (double)t.y, sum);
    sum = fma((double)t.z, (double)t.z, sum);
    return fma((double)t.w, (double)t.w, sum);
}

/* The sums over the block of THREADS, to all of its threads. */
template <int THREADS> static __device__ __forceinline__ squares block_sum(squares s) {
    __shared__ squares all[THREADS / 32];
#pragma unroll
    for (int by = 16; by > 0; by /= 2) {
        squares t = {__shfl_xor_sync(~0u, s.old, by), __shfl_xor_sync(~0u, s.update, by)};
        s.add(t);
    }
    if (threadIdx.x % 32 == 0)
        all[threadIdx.x / 32] = s;
    __syncthreads();
    s = all[0];
#pragma unroll
    for (int w = 1; w < THREADS / 32; w++)
        s.add(all[w]);
    __syncthreads();
    return s;
}

/* Whether the block is the rank's last one to leave the squares of its pieces. */
template <class LAUNCH> static __device__ __forceinline__ bool is_last(const LAUNCH &l) {
    __shared__ bool last;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicAdd(l.ticket, 1u) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    return last;
}

/* The rank's squares, to all ranks. */
template <int THREADS, class LAUNCH>
static __device__ __forceinline__ void send_norms(const LAUNCH &l) {
    squares sum = {0.0, 0.0};
    for (int piece = threadIdx.x; piece < l.pieces; piece += THREADS)
        sum.add(l.partial[piece]);
    sum = block_sum<THREADS>(sum);
    if ((int)threadIdx.x < l.ranks) {
        l.all_norms[threadIdx.x][l.rank] = sum;
        flag_set(l.all_norm_flags[threadIdx.x] + l.rank, l.epoch);
    }
    if (threadIdx.x == 0)
        atomicExch(l.ticket, 0u);
}

/* |p| / |u| over all ranks, when their squares have come. RANKS is the number of ranks where it is
 * known when compiling, else 0. */
template <int RANKS, class LAUNCH>
static __device__ __forceinline__ float trust_of(const LAUNCH &l) {
    constexpr int UNROLL = RANKS ? RANKS : 1;
    const int count = RANKS ? RANKS : l.ranks;
    if ((int)threadIdx.x < count) {
        while ((int)(flag_read(l.norm_flags + threadIdx.x) - l.epoch) < 0)
            ;
    }
    __syncthreads();
    squares sum = l.norms[0];
#pragma unroll UNROLL
    for (int q = 1; q < count; q++)
        sum.add(l.norms[q]);
    if (sum.old == 0.0 || sum.update == 0.0)
        return 1.0f;
    return (float)(sqrt(sum.old) / sqrt(sum.update));
}

#endif
