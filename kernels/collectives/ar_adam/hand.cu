/* Reduce-scatter, Adam and all-gather in one kernel, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4, the loops over ranks unrolled for the
 * usual four and eight, and STEPS groups a thread so that enough loads are under way. Shards are
 * multiples of four. Where n is no multiple of four, the rows of the ranks are not aligned, and
 * single elements are used, neighbours by neighbouring threads. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef STEPS
#define STEPS 2
#endif

struct adam {
    float rate, beta1, beta2, epsilon, correction1, correction2;
};

static __device__ __forceinline__ float adam_step(const adam &a, float g, float p, float &m,
                                                  float &v) {
    m = a.beta1 * m + (1.0f - a.beta1) * g;
    v = a.beta2 * v + (1.0f - a.beta2) * g * g;
    return p - a.rate * (m / a.correction1) / (sqrtf(v / a.correction2) + a.epsilon);
}

/* RANKS is the number of ranks where it is known when compiling, else 0. */
template <int RANKS>
static __device__ __forceinline__ void
four(const float *__restrict__ gradient, float *__restrict__ parameter, float *__restrict__ m,
     float *__restrict__ v, int n, int ranks, int rank, int i, const adam &a) {
    const int count = RANKS ? RANKS : ranks;
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
    float4 p = __ldca((const float4 *)(parameter + (size_t)rank * n + i));
    float4 mi = __ldca((const float4 *)(m + i)), vi = __ldca((const float4 *)(v + i));
    p.x = adam_step(a, g.x * share, p.x, mi.x, vi.x);
    p.y = adam_step(a, g.y * share, p.y, mi.y, vi.y);
    p.z = adam_step(a, g.z * share, p.z, mi.z, vi.z);
    p.w = adam_step(a, g.w * share, p.w, mi.w, vi.w);
    __stwb((float4 *)(m + i), mi);
    __stwb((float4 *)(v + i), vi);
#pragma unroll
    for (int r = 0; r < count; r++)
        __stwb((float4 *)(parameter + (size_t)r * n + i), p);
}

static __device__ __forceinline__ void one(const float *__restrict__ gradient,
                                           float *__restrict__ parameter, float *__restrict__ m,
                                           float *__restrict__ v, int n, int ranks, int rank, int i,
                                           const adam &a) {
    float g = 0.0f;
#pragma unroll 1
    for (int r = 0; r < ranks; r++)
        g += gradient[(size_t)r * n + i];
    float mi = m[i], vi = v[i];
    float p = adam_step(a, g / ranks, parameter[(size_t)rank * n + i], mi, vi);
    m[i] = mi;
    v[i] = vi;
#pragma unroll 1
    for (int r = 0; r < ranks; r++)
        parameter[(size_t)r * n + i] = p;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ar_adam(const float *__restrict__ gradient, float *__restrict__ parameter,
            float *__restrict__ m, float *__restrict__ v, int n, int ranks, float rate, float beta1,
            float beta2, float epsilon, float correction1, float correction2) {
    const adam a = {rate, beta1, beta2, epsilon, correction1, correction2};
    const int rank = blockIdx.y;
    const int shard = ((n + ranks - 1) / ranks + 3) / 4 * 4;
    const int end = min(n, (rank + 1) * shard);

#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int tile = (blockIdx.x * STEPS + s) * BLOCK * 4;
        int at = tile + threadIdx.x * 4;
        int i = rank * shard + at;
        if ((n & 3) != 0) {
#pragma unroll 1
            for (int e = 0; e < 4; e++) {
                at = tile + e * BLOCK + threadIdx.x;
                i = rank * shard + at;
                if (at < shard && i < end)
                    one(gradient, parameter, m, v, n, ranks, rank, i, a);
            }
        } else if (at < shard && i < end) {
            if (ranks == 4)
                four<4>(gradient, parameter, m, v, n, ranks, rank, i, a);
            else if (ranks == 8)
                four<8>(gradient, parameter, m, v, n, ranks, rank, i, a);
            else
                four<0>(gradient, parameter, m, v, n, ranks, rank, i, a);
        }
    }
}
