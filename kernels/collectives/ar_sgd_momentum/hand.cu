/* Reduce-scatter, stochastic gradient descent with momentum, and all-gather in one kernel, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4, the loops over ranks unrolled for the
 * usual four and eight, and STEPS groups a thread. Shards are multiples of four. Where n is no
 * multiple of four, the rows of the ranks are not aligned, and single elements are used, neighbours
 * by neighbouring threads. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef STEPS
#define STEPS 1
#endif

struct sgd {
    float rate, momentum, decay;
};

static __device__ __forceinline__ float sgd_step(const sgd &s, float g, float p, float &v) {
    v = s.momentum * v + (s.decay * p + g);
    return p - s.rate * v;
}

/* RANKS is the number of ranks where it is known when compiling, else 0. */
template <int RANKS>
static __device__ __forceinline__ void four(const float *__restrict__ gradient,
                                            float *__restrict__ parameter, float *__restrict__ v,
                                            int n, int ranks, int rank, int i, const sgd &s) {
    const int count = RANKS ? RANKS : ranks;
    float4 p = __ldca((const float4 *)(parameter + (size_t)rank * n + i));
    float4 vi = __ldca((const float4 *)(v + i));
    float4 g = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
    for (int r = 0; r < count; r++) {
        float4 t = __ldg((const float4 *)(gradient + (size_t)r * n + i));
        g.x += t.x;
        g.y += t.y;
        g.z += t.z;
        g.w += t.w;
    }
    const float share = 1.0f / count;
    p.x = sgd_step(s, g.x * share, p.x, vi.x);
    p.y = sgd_step(s, g.y * share, p.y, vi.y);
    p.z = sgd_step(s, g.z * share, p.z, vi.z);
    p.w = sgd_step(s, g.w * share, p.w, vi.w);
    __stwb((float4 *)(v + i), vi);
#pragma unroll
    for (int r = 0; r < count; r++)
        __stwb((float4 *)(parameter + (size_t)r * n + i), p);
}

static __device__ __forceinline__ void one(const float *__restrict__ gradient,
                                           float *__restrict__ parameter, float *__restrict__ v,
                                           int n, int ranks, int rank, int i, const sgd &s) {
    float g = 0.0f;
#pragma unroll 1
    for (int r = 0; r < ranks; r++)
        g += gradient[(size_t)r * n + i];
    float vi = v[i];
    float p = sgd_step(s, g / ranks, parameter[(size_t)rank * n + i], vi);
    v[i] = vi;
#pragma unroll 1
    for (int r = 0; r < ranks; r++)
        parameter[(size_t)r * n + i] = p;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ar_sgd_momentum(const float *__restrict__ gradient, float *__restrict__ parameter,
                    float *__restrict__ v, int n, int ranks, float rate, float momentum,
                    float decay) {
    const sgd s = {rate, momentum, decay};
    const int rank = blockIdx.y;
    const int shard = ((n + ranks - 1) / ranks + 3) / 4 * 4;
    const int end = min(n, (rank + 1) * shard);

#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        int tile = (blockIdx.x * STEPS + step) * BLOCK * 4;
        int at = tile + threadIdx.x * 4;
        int i = rank * shard + at;
        if ((n & 3) != 0) {
#pragma unroll 1
            for (int e = 0; e < 4; e++) {
                at = tile + e * BLOCK + threadIdx.x;
                i = rank * shard + at;
                if (at < shard && i < end)
                    one(gradient, parameter, v, n, ranks, rank, i, s);
            }
        } else if (at < shard && i < end) {
            if (ranks == 4)
                four<4>(gradient, parameter, v, n, ranks, rank, i, s);
            else if (ranks == 8)
                four<8>(gradient, parameter, v, n, ranks, rank, i, s);
            else
                four<0>(gradient, parameter, v, n, ranks, rank, i, s);
        }
    }
}
