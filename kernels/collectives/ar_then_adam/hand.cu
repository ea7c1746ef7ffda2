/* An all-reduce of the ranks' gradients, then Adam on all parameters on every rank, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and the loops over two, four or eight
 * ranks unrolled. The all-reduce sends the gradients of all its pieces before it waits for one, as
 * the hand-tuned start of ar_fused_adam does. */
#include "evoke_cuda.h"

#include "evoke_adam.h"
#include "evoke_unfused.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef BLOCKS
#define BLOCKS 128
#endif

extern "C" __global__ void __launch_bounds__(BLOCK, 512 / BLOCK)
    all_reduce_gradients(const float *__restrict__ gradient, float *stage,
                         float *const *__restrict__ stages, unsigned *flags,
                         unsigned *const *__restrict__ all_flags, float *const *__restrict__ means,
                         int n, int ranks, int rank, unsigned epoch) {
    all_reduce<BLOCK>(unfused_of(gradient, stage, stages, flags, all_flags, n, ranks, rank, epoch),
                      means);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    adam_of_all(const float *__restrict__ mean, float *__restrict__ parameter,
                float *__restrict__ m, float *__restrict__ v, int n, float rate, float beta1,
                float beta2, float epsilon, float decay, float correction1, float correction2) {
    const adam a = {rate, beta1, beta2, epsilon, decay, correction1, correction2};
    const int at = ((int)blockIdx.x * BLOCK + (int)threadIdx.x) * 4;
    const float4 g = load4<true>(mean, at, n);
    float4 p = load4<false>(parameter, at, n);
    float4 new_m = load4<false>(m, at, n), new_v = load4<false>(v, at, n);
    adam_step4(a, g, p, new_m, new_v);
    store4(m, at, n, new_m);
    store4(v, at, n, new_v);
    store4(parameter, at, n, p);
}
