/* Reduce-scatter, Adam and all-gather in one kernel, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and the loops over two, four or eight
 * ranks unrolled. At most BLOCKS blocks go over the pieces three times: they send the gradients of
 * all their pieces, then take the step on each piece, then wait for the parameters of the peers. So
 * the links are busy while a block waits for one piece. Moments and parameters are loaded before
 * the wait. Flags are stored with release semantics and polled with acquire semantics: no step has
 * a fence of its own. A rank begins with the peer behind it, so that not all send to one. */
#include "evoke_cuda.h"

#include "evoke_adam.h"
#include "evoke_shards.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef BLOCKS
#define BLOCKS 128
#endif
#define PIECE 1024
#define STEPS (PIECE / 4 / BLOCK)

/* What of a launch is the same for all pieces. */
struct launch {
    const float *gradient;
    float *parameter, *m, *v;
    float *const *parameters;
    const float *stage;
    float *const *stages;
    unsigned *flags;
    unsigned *const *all_flags;
    int n, ranks, rank, shard, pieces;
    unsigned epoch;
};

/* One step of Adam on the rank's own piece, to all ranks. */
template <int RANKS>
static __device__ __forceinline__ void update(const launch &l, const adam &a, int piece) {
    constexpr int UNROLL = RANKS ? RANKS : 1;
    const int count = RANKS ? RANKS : l.ranks;
    const int own = l.rank * l.shard, end = min(l.shard, l.n - own);
    float4 g[STEPS], p[STEPS], m[STEPS], v[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = piece * PIECE + (s * BLOCK + (int)threadIdx.x) * 4;
        g[s] = load4<true>(l.gradient + own, at, end);
        p[s] = load4<false>(l.parameter + own, at, end);
        m[s] = load4<false>(l.m, at, end);
        v[s] = load4<false>(l.v, at, end);
    }
    wait_all(l, piece, 2 * l.epoch - 1);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = piece * PIECE + (s * BLOCK + (int)threadIdx.x) * 4;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll UNROLL
        for (int q = 0; q < count; q++)
            add(sum, q == l.rank ? g[s] : load4<false>(l.stage + q * l.shard, at, end));
        const float4 mean = make_float4(sum.x / count, sum.y / count, sum.z / count, sum.w / count);
        adam_step4(a, mean, p[s], m[s], v[s]);
        store4(l.m, at, end, m[s]);
        store4(l.v, at, end, v[s]);
#pragma unroll UNROLL
        for (int i = 0; i < count; i++) {
            int q = l.rank + i < count ? l.rank + i : l.rank + i - count;
            store4(l.parameters[q] + own, at, end, p[s]);
        }
    }
}

template <int RANKS> static __device__ __forceinline__ void run(const launch &l, const adam &a) {
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x) {
        send<RANKS, STEPS, BLOCK, STEPS>(l, piece);
        tell_all(l, piece, 2 * l.epoch - 1);
    }
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x) {
        update<RANKS>(l, a, piece);
        tell_all(l, piece, 2 * l.epoch);
    }
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x)
        wait_all(l, piece, 2 * l.epoch);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 512 / BLOCK)
    ar_fused_adam(const float *__restrict__ gradient, float *parameter,
                  float *const *__restrict__ parameters, float *m, float *v, float *stage,
                  float *const *__restrict__ stages, unsigned *flags,
                  unsigned *const *__restrict__ all_flags, int n, int ranks, int rank,
                  unsigned epoch, float rate, float beta1, float beta2, float epsilon, float decay,
                  float correction1, float correction2) {
    const adam a = {rate, beta1, beta2, epsilon, decay, correction1, correction2};
    const int shard = shard_of(n, ranks);
    const launch l = {gradient, parameter, m, v,     parameters, stage, stages,
                      flags,    all_flags, n, ranks, rank,       shard, (shard + PIECE - 1) / PIECE,
                      epoch};

    by_ranks(ranks, [&](auto count) { run<decltype(count)::value>(l, a); });
}
