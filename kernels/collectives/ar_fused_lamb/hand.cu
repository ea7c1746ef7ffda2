/* Reduce-scatter, LAMB and all-gather in one kernel, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and the loops over two, four or eight
 * ranks unrolled. At most BLOCKS blocks go over the pieces: they send the gradients of all their
 * pieces, update the moments of each piece, exchange norms, store the new parameters, and wait for
 * those of the peers. Parameters and updates of a block's last piece stay in registers over the
 * exchange of norms; where each block has one piece, nothing is loaded twice. Those of other pieces
 * are computed again from the moments, which costs no more traffic than keeping them would.
 *
 * Both sums of squares go through the shuffles of a warp together, then through shared memory. The
 * sums of pieces are added up by all threads of the rank's last block, in an order that does not
 * depend on the schedule, and each rank is told by a thread of its own. Flags are stored with
 * release semantics and polled with acquire semantics. A rank begins with the peer behind it, so
 * that not all send to one. */
#include "evoke_cuda.h"

#include "evoke_lamb.h"
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
    squares *partial;
    const squares *norms;
    squares *const *all_norms;
    unsigned *norm_flags;
    unsigned *const *all_norm_flags;
    unsigned *ticket;
    int n, ranks, rank, shard, pieces;
    unsigned epoch;
};

static __device__ __forceinline__ float4 updates_of(const lamb &a, const float4 &p, const float4 &m,
                                                    const float4 &v) {
    return make_float4(update_of(a, p.x, m.x, v.x), update_of(a, p.y, m.y, v.y),
                       update_of(a, p.z, m.z, v.z), update_of(a, p.w, m.w, v.w));
}

/* Moments of the rank's own piece. Keeps parameters and updates, and leaves their squares. */
template <int RANKS>
static __device__ __forceinline__ void update(const launch &l, const lamb &a, int piece, float4 *p,
                                              float4 *u) {
    constexpr int UNROLL = RANKS ? RANKS : 1;
    const int count = RANKS ? RANKS : l.ranks;
    const int own = l.rank * l.shard, end = min(l.shard, l.n - own);
    const float share = 1.0f / count;
    float4 g[STEPS], m[STEPS], v[STEPS];
    squares sum = {0.0, 0.0};
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = piece * PIECE + (s * BLOCK + (int)threadIdx.x) * 4;
        g[s] = load4<true>(l.gradient + own, at, end);
        p[s] = load4<false>(l.parameter + own, at, end);
        m[s] = load4<false>(l.m, at, end);
        v[s] = load4<false>(l.v, at, end);
        sum.old = square_up(sum.old, p[s]);
    }
    wait_all(l, piece, 2 * l.epoch - 1);
    __syncthreads();
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = piece * PIECE + (s * BLOCK + (int)threadIdx.x) * 4;
        float4 mean = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll UNROLL
        for (int q = 0; q < count; q++)
            add(mean, q == l.rank ? g[s] : load4<false>(l.stage + q * l.shard, at, end));
        u[s].x = moments_of(a, mean.x * share, p[s].x, m[s].x, v[s].x);
        u[s].y = moments_of(a, mean.y * share, p[s].y, m[s].y, v[s].y);
        u[s].z = moments_of(a, mean.z * share, p[s].z, m[s].z, v[s].z);
        u[s].w = moments_of(a, mean.w * share, p[s].w, m[s].w, v[s].w);
        store4(l.m, at, end, m[s]);
        store4(l.v, at, end, v[s]);
        sum.update = square_up(sum.update, u[s]);
    }
    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        l.partial[piece] = sum;
}

/* New parameters of a piece, to all ranks. */
template <int RANKS>
static __device__ __forceinline__ void spread(const launch &l, int piece, float scale,
                                              const float4 *p, const float4 *u) {
    constexpr int UNROLL = RANKS ? RANKS : 1;
    const int count = RANKS ? RANKS : l.ranks;
    const int own = l.rank * l.shard, end = min(l.shard, l.n - own);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = piece * PIECE + (s * BLOCK + (int)threadIdx.x) * 4;
        const float4 next = make_float4(p[s].x - scale * u[s].x, p[s].y - scale * u[s].y,
                                        p[s].z - scale * u[s].z, p[s].w - scale * u[s].w);
#pragma unroll UNROLL
        for (int i = 1; i <= count; i++) {
            int q = l.rank + i < count ? l.rank + i : l.rank + i - count;
            store4(l.parameters[q] + own, at, end, next);
        }
    }
}

/* Parameters and updates of a piece whose moments are new. */
static __device__ __forceinline__ void again(const launch &l, const lamb &a, int piece, float4 *p,
                                             float4 *u) {
    const int own = l.rank * l.shard, end = min(l.shard, l.n - own);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = piece * PIECE + (s * BLOCK + (int)threadIdx.x) * 4;
        p[s] = load4<false>(l.parameter + own, at, end);
        u[s] = updates_of(a, p[s], load4<false>(l.m, at, end), load4<false>(l.v, at, end));
    }
}

template <int RANKS> static __device__ __forceinline__ void run(const launch &l, const lamb &a) {
    float4 p[STEPS], u[STEPS];
    int last = blockIdx.x;
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x) {
        send<RANKS, STEPS, BLOCK, STEPS>(l, piece);
        tell_all(l, piece, 2 * l.epoch - 1);
    }
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x) {
        update<RANKS>(l, a, piece, p, u);
        last = piece;
    }
    if (is_last(l))
        send_norms<BLOCK>(l);
    const float scale = a.rate * trust_of<RANKS>(l);
    spread<RANKS>(l, last, scale, p, u);
    tell_all(l, last, 2 * l.epoch);
#pragma unroll 1
    for (int piece = blockIdx.x; piece < last; piece += gridDim.x) {
        again(l, a, piece, p, u);
        spread<RANKS>(l, piece, scale, p, u);
        tell_all(l, piece, 2 * l.epoch);
    }
#pragma unroll 1
    for (int piece = blockIdx.x; piece < l.pieces; piece += gridDim.x)
        wait_all(l, piece, 2 * l.epoch);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 512 / BLOCK)
    ar_fused_lamb(const float *__restrict__ gradient, float *parameter,
                  float *const *__restrict__ parameters, float *m, float *v, float *stage,
                  float *const *__restrict__ stages, unsigned *flags,
                  unsigned *const *__restrict__ all_flags, double *partial, double *norms,
                  double *const *__restrict__ all_norms, unsigned *norm_flags,
                  unsigned *const *__restrict__ all_norm_flags, unsigned *ticket, int n, int ranks,
                  int rank, unsigned epoch, float rate, float beta1, float beta2, float epsilon,
                  float decay, float correction1, float correction2) {
    const lamb a = {rate, beta1, beta2, epsilon, decay, 1.0f / correction1, 1.0f / correction2};
    const int shard = shard_of(n, ranks);
    const launch l = {gradient,
                      parameter,
                      m,
                      v,
                      parameters,
                      stage,
                      stages,
                      flags,
                      all_flags,
                      (squares *)partial,
                      (const squares *)norms,
                      (squares *const *)all_norms,
                      norm_flags,
                      all_norm_flags,
                      ticket,
                      n,
                      ranks,
                      rank,
                      shard,
                      (shard + PIECE - 1) / PIECE,
                      epoch};

    by_ranks(ranks, [&](auto count) { run<decltype(count)::value>(l, a); });
}
