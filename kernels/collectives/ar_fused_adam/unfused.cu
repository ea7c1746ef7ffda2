/* Reduce-scatter, Adam and all-gather in a launch each: the unfused, sharded schedule, to compare
 * the fused one with.
 *
 * The first launch sends the rank's gradients to the owners of the shards, and leaves the means of
 * the own shard in `mean`; the second one takes a step of Adam on the shard, as on one GPU; the
 * third one sends the shard's new parameters to all peers. Loads, stores and flags are those of the
 * hand-tuned start. What fusing saves is two launches, and the memory traffic between them: of the
 * means, and of the parameters that the last launch reads again. */
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
    reduce_scatter_gradients(const float *__restrict__ gradient, float *stage,
                             float *const *__restrict__ stages, unsigned *flags,
                             unsigned *const *__restrict__ all_flags, float *mean, int n, int ranks,
                             int rank, unsigned epoch) {
    reduce_scatter<BLOCK>(
        unfused_of(gradient, stage, stages, flags, all_flags, n, ranks, rank, epoch), mean);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    adam_of_shard(const float *__restrict__ mean, float *__restrict__ parameter,
                  float *__restrict__ m, float *__restrict__ v, int n, int ranks, int rank,
                  float rate, float beta1, float beta2, float epsilon, float decay,
                  float correction1, float correction2) {
    const adam a = {rate, beta1, beta2, epsilon, decay, correction1, correction2};
    const int shard = shard_of(n, ranks), own = rank * shard, end = min(shard, n - own);
    const int at = ((int)blockIdx.x * BLOCK + (int)threadIdx.x) * 4;
    const float4 g = load4<true>(mean, at, end);
    float4 p = load4<false>(parameter + own, at, end);
    float4 new_m = load4<false>(m, at, end), new_v = load4<false>(v, at, end);
    adam_step4(a, g, p, new_m, new_v);
    store4(m, at, end, new_m);
    store4(v, at, end, new_v);
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
