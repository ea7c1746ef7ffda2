/* All-reduce of several ranks in one step, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and the loop over two, four or eight
 * ranks unrolled, so that the loads from all peers are under way together. The rank's own numbers
 * stay in registers. Elements behind the last group of four are added up one by one. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#define CHUNK 1024
#define STEPS (CHUNK / 4 / BLOCK)

static __device__ __forceinline__ void meet(unsigned *flags, unsigned *const *all_flags, int ranks,
                                            int rank, unsigned epoch) {
    __syncthreads();
    if (threadIdx.x < ranks) {
        int peer = threadIdx.x;
        __threadfence_system();
        *(volatile unsigned *)&all_flags[peer][blockIdx.x * ranks + rank] = epoch;
        while ((int)(*(volatile unsigned *)&flags[blockIdx.x * ranks + peer] - epoch) < 0)
            ;
        __threadfence_system();
    }
    __syncthreads();
}

/* The sum of four neighbours over all ranks. RANKS is their number where it is known when
 * compiling, else 0. */
template <int RANKS>
static __device__ __forceinline__ float4 add_up(float *const *stages, size_t at, float4 own,
                                                int ranks, int rank) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    if (RANKS) {
        float4 all[RANKS ? RANKS : 1];
#pragma unroll
        for (int r = 0; r < RANKS; r++)
            all[r] = r == rank ? own : *(const float4 *)(stages[r] + at);
#pragma unroll
        for (int r = 0; r < RANKS; r++) {
            sum.x += all[r].x;
            sum.y += all[r].y;
            sum.z += all[r].z;
            sum.w += all[r].w;
        }
    } else {
#pragma unroll 1
        for (int r = 0; r < ranks; r++) {
            float4 t = r == rank ? own : *(const float4 *)(stages[r] + at);
            sum.x += t.x;
            sum.y += t.y;
            sum.z += t.z;
            sum.w += t.w;
        }
    }
    return sum;
}

template <int RANKS>
static __device__ __forceinline__ void reduce(const float4 *own, float *__restrict__ output,
                                              float *const *stages, size_t half, int begin,
                                              int fours, int ranks, int rank) {
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int i = begin + (s * BLOCK + threadIdx.x) * 4;
        if (i < fours)
            *(float4 *)(output + i) = add_up<RANKS>(stages, half + i, own[s], ranks, rank);
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    ar_oneshot(const float *__restrict__ input, float *__restrict__ output, float *stage,
               float *const *__restrict__ stages, unsigned *flags,
               unsigned *const *__restrict__ all_flags, int n, int ranks, int rank,
               unsigned epoch) {
    const int begin = blockIdx.x * CHUNK;
    const int fours = n / 4 * 4;
    const size_t half = (size_t)(epoch & 1) * ((n + 3) / 4 * 4);
    const int last = fours + threadIdx.x; /* of an odd end */
    const bool has_last = begin <= fours && fours < begin + CHUNK && last < n;

    float4 own[STEPS];
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int i = begin + (s * BLOCK + threadIdx.x) * 4;
        if (i < fours) {
            own[s] = *(const float4 *)(input + i);
            *(float4 *)(stage + half + i) = own[s];
        }
    }
    if (has_last)
        stage[half + last] = input[last];

    meet(flags, all_flags, ranks, rank, epoch);

    if (ranks == 2)
        reduce<2>(own, output, stages, half, begin, fours, ranks, rank);
    else if (ranks == 4)
        reduce<4>(own, output, stages, half, begin, fours, ranks, rank);
    else if (ranks == 8)
        reduce<8>(own, output, stages, half, begin, fours, ranks, rank);
    else
        reduce<0>(own, output, stages, half, begin, fours, ranks, rank);

    if (has_last) {
        float sum = 0.0f;
#pragma unroll 1
        for (int r = 0; r < ranks; r++)
            sum += stages[r][half + last];
        output[last] = sum;
    }
}
