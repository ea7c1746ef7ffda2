/* Reduce-scatter, LAMB and all-gather in launches of their own: the unfused, sharded schedule, to
 * compare the fused one with.
 *
 * As that of ar_fused_adam, with two launches for the optimizer: moments_of_shard leaves the
 * updates and sends their squares, with those of the parameters, to all ranks; update_shard waits
 * for the squares of all ranks. So an all-reduce of two numbers hides in launches that there are
 * anyway. */
#include "evoke_cuda.h"

#include "evoke_lamb.h"
#include "evoke_unfused.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef BLOCKS
#define BLOCKS 128
#endif

/* What the optimizer's launches know of the ranks. */
struct shard_launch {
    squares *partial;
    const squares *norms;
    squares *const *all_norms;
    unsigned *norm_flags;
    unsigned *const *all_norm_flags;
    unsigned *ticket;
    int ranks, rank, pieces;
    unsigned epoch;
};

extern "C" __global__ void __launch_bounds__(BLOCK, 512 / BLOCK)
    reduce_scatter_gradients(const float *__restrict__ gradient, float *stage,
                             float *const *__restrict__ stages, unsigned *flags,
                             unsigned *const *__restrict__ all_flags, float *mean, int n, int ranks,
                             int rank, unsigned epoch) {
    reduce_scatter<BLOCK>(
        unfused_of(gradient, stage, stages, flags, all_flags, n, ranks, rank, epoch), mean);
}

/* A block for each piece. */
extern "C" __global__ void __launch_bounds__(BLOCK)
    moments_of_shard(const float *__restrict__ mean, const float *__restrict__ parameter,
                     float *__restrict__ m, float *__restrict__ v, float *__restrict__ update,
                     double *partial, double *const *__restrict__ all_norms,
                     unsigned *const *__restrict__ all_norm_flags, unsigned *ticket, int n,
                     int ranks, int rank, unsigned epoch, float beta1, float beta2, float epsilon,
                     float decay, float correction1, float correction2) {
    const lamb a = {0.0f, beta1, beta2, epsilon, decay, 1.0f / correction1, 1.0f / correction2};
    const int shard = shard_of(n, ranks), own = rank * shard, end = min(shard, n - own);
    const shard_launch l = {(squares *)partial,
                            nullptr,
                            (squares *const *)all_norms,
                            nullptr,
                            all_norm_flags,
                            ticket,
                            ranks,
                            rank,
                            (int)gridDim.x,
                            epoch};
    squares sum = {0.0, 0.0};
#pragma unroll
    for (int s = 0; s < UNFUSED_PIECE / 4 / BLOCK; s++) {
        const int at = place_of<BLOCK>(blockIdx.x, s);
        const float4 g = load4<true>(mean, at, end), p = load4<true>(parameter + own, at, end);
        float4 new_m = load4<false>(m, at, end), new_v = load4<false>(v, at, end);
        const float4 u = moments4(a, g, p, new_m, new_v);
        store4(m, at, end, new_m);
        store4(v, at, end, new_v);
        store4(update, at, end, u);
        sum.old = square_up(sum.old, p);
        sum.update = square_up(sum.update, u);
    }
    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        l.partial[blockIdx.x] = sum;
    if (is_last(l))
        send_norms<BLOCK>(l);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    update_shard(const float *__restrict__ update, float *__restrict__ parameter,
                 const double *norms, unsigned *norm_flags, int n, int ranks, int rank,
                 unsigned epoch, float rate) {
    const int shard = shard_of(n, ranks), own = rank * shard, end = min(shard, n - own);
    const int at = ((int)blockIdx.x * BLOCK + (int)threadIdx.x) * 4;
    const shard_launch l = {
        nullptr, (const squares *)norms, nullptr, norm_flags, nullptr, nullptr, ranks, rank, 0,
        epoch};
    const float4 u = load4<true>(update, at, end);
    float4 p = load4<false>(parameter + own, at, end);
    const float scale = rate * trust_of<0>(l);
    apply4(p, scale, u);
    store4(parameter + own, at, end, p);
}

extern "C" __global__ void __launch_bounds__(BLOCK, 512 / BLOCK)
    all_gather_parameters(float *parameter, float *const *__restrict__ parameters, unsigned *flags,
                          unsigned *const *__restrict__ all_flags, int n, int ranks, int rank,
                          unsigned epoch) {
    all_gather<BLOCK>(
        unfused_of(nullptr, nullptr, nullptr, flags, all_flags, n, ranks, rank, epoch), parameter,
        parameters);
}
