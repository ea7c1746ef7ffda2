/* An all-reduce of the ranks' gradients, then LAMB on all parameters on every rank, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and the loops over two, four or eight
 * ranks unrolled. The all-reduce sends the gradients of all its pieces before it waits for one, as
 * the hand-tuned start of ar_fused_lamb does; both sums of squares go through the shuffles of a
 * warp together. */
#include "evoke_cuda.h"

#include "evoke_lamb.h"
#include "evoke_unfused.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef BLOCKS
#define BLOCKS 128
#endif
#define STEPS (UNFUSED_PIECE / 4 / BLOCK)

extern "C" __global__ void __launch_bounds__(BLOCK, 512 / BLOCK)
    all_reduce_gradients(const float *__restrict__ gradient, float *stage,
                         float *const *__restrict__ stages, unsigned *flags,
                         unsigned *const *__restrict__ all_flags, float *const *__restrict__ means,
                         int n, int ranks, int rank, unsigned epoch) {
    all_reduce<BLOCK>(unfused_of(gradient, stage, stages, flags, all_flags, n, ranks, rank, epoch),
                      means);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    moments_of_all(const float *__restrict__ mean, const float *__restrict__ parameter,
                   float *__restrict__ m, float *__restrict__ v, float *__restrict__ update,
                   double *partial, int n, float beta1, float beta2, float epsilon, float decay,
                   float correction1, float correction2) {
    const lamb a = {0.0f, beta1, beta2, epsilon, decay, 1.0f / correction1, 1.0f / correction2};
    squares sum = {0.0, 0.0};
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        const int at = place_of<BLOCK>(blockIdx.x, s);
        const float4 g = load4<true>(mean, at, n), p = load4<true>(parameter, at, n);
        float4 new_m = load4<false>(m, at, n), new_v = load4<false>(v, at, n);
        const float4 u = moments4(a, g, p, new_m, new_v);
        store4(m, at, n, new_m);
        store4(v, at, n, new_v);
        store4(update, at, n, u);
        sum.old = square_up(sum.old, p);
        sum.update = square_up(sum.update, u);
    }
    sum = block_sum<BLOCK>(sum);
    if (threadIdx.x == 0)
        ((squares *)partial)[blockIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    update_all(const float *__restrict__ update, float *__restrict__ parameter,
               const double *__restrict__ partial, int n, float rate) {
    float4 u[STEPS], p[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        u[s] = load4<true>(update, place_of<BLOCK>(blockIdx.x, s), n);
        p[s] = load4<false>(parameter, place_of<BLOCK>(blockIdx.x, s), n);
    }
    squares sum = {0.0, 0.0};
    for (int piece = threadIdx.x; piece < (int)gridDim.x; piece += BLOCK)
        sum.add(((const squares *)partial)[piece]);
    sum = block_sum<BLOCK>(sum);
    const bool is_zero = sum.old == 0.0 || sum.update == 0.0;
    const float scale = is_zero ? rate : rate * (float)(sqrt(sum.old) / sqrt(sum.update));
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        apply4(p[s], scale, u[s]);
        store4(parameter, place_of<BLOCK>(blockIdx.x, s), n, p[s]);
    }
}
