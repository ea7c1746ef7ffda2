/* An all-reduce of the ranks' gradients, then gradient descent with momentum on all
 * parameters on every rank, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and the loops over two, four or eight
 * ranks unrolled. The all-reduce sends the gradients of all its pieces before it waits for one, as
 * the hand-tuned start of ar_fused_sgd does. */
#include "evoke_cuda.h"

#include "evoke_sgd.h"
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
    sgd_of_all(const float *__restrict__ mean, float *__restrict__ parameter, float *__restrict__ v,
               int n, float rate, float momentum, float decay) {
    const sgd a = {rate, momentum, decay};
    const int at = ((int)blockIdx.x * BLOCK + (int)threadIdx.x) * 4;
    const float4 g = load4<true>(mean, at, n);
    float4 p = load4<false>(parameter, at, n), new_v = load4<false>(v, at, n);
    sgd_step4(a, g, p, new_v);
    store4(v, at, n, new_v);
    store4(parameter, at, n, p);
}
