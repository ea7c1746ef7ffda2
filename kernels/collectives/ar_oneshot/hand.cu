/* All-reduce of several ranks in one step, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and the loop over two, four or eight
 * ranks unrolled, so that the loads from all peers are under way together. The peers' addresses are
 * loaded before the wait, and the rank's own numbers stay in registers. Elements behind the last
 * group of four are added up one by one. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#define CHUNK 1024
#define STEPS (CHUNK / 4 / BLOCK)

/* The flags of one pair of ranks at a chunk. */
struct pair {
    volatile unsigned *to, *from;
};

static __device__ __forceinline__ pair pair_of(unsigned *flags, unsigned *const *all_flags,
                                               int ranks, int rank) {
    pair p = {nullptr, nullptr};
    int peer = threadIdx.x;
    if (peer < ranks) {
        p.to = all_flags[peer] + blockIdx.x * ranks + rank;
        p.from = flags + blockIdx.x * ranks + peer;
    }
    return p;
}

static __device__ __forceinline__ void meet(const pair &p, int ranks, unsigned epoch) {
    __syncthreads();
    if ((int)threadIdx.x < ranks) {
        __threadfence_system();
        *p.to = epoch;
        while ((int)(*p.from - epoch) < 0)
            ;
        __threadfence_system();
    }
    __syncthreads();
}

static __device__ __forceinline__ void add(float4 &sum, const float4 &t) {
    sum.x += t.x;
    sum.y += t.y;
    sum.z += t.z;
    sum.w += t.w;
}

/* RANKS is the number of ranks. */
template <int RANKS>
static __device__ __forceinline__ void
reduce(const float *__restrict__ input, float *__restrict__ output, float *stage,
       float *const *__restrict__ stages, const pair &flags, size_t half, int begin, int fours,
       int rank, unsigned epoch) {
    const float *from[RANKS];
    float4 own[STEPS];
#pragma unroll
    for (int r = 0; r < RANKS; r++)
        from[r] = stages[r] + half;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int i = begin + (s * BLOCK + threadIdx.x) * 4;
        own[s] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i < fours) {
            own[s] = __ldg((const float4 *)(input + i));
            *(float4 *)(stage + half + i) = own[s];
        }
    }
    meet(flags, RANKS, epoch);
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        int i = begin + (s * BLOCK + threadIdx.x) * 4;
        if (i < fours) {
            float4 all[RANKS];
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll
            for (int r = 0; r < RANKS; r++) {
                all[r] = own[s];
                if (r != rank)
                    all[r] = *(const float4 *)(from[r] + i);
            }
#pragma unroll
            for (int r = 0; r < RANKS; r++)
                add(sum, all[r]);
            *(float4 *)(output + i) = sum;
        }
    }
}

/* Elements [begin, end) of any number of ranks, one by one. */
static __device__ __forceinline__ void reduce_any(const float *__restrict__ input,
                                                  float *__restrict__ output, float *stage,
                                                  float *const *__restrict__ stages,
                                                  const pair &flags, size_t half, int begin,
                                                  int end, int ranks, unsigned epoch) {
#pragma unroll 1
    for (int i = begin + threadIdx.x; i < end; i += BLOCK)
        stage[half + i] = input[i];
    meet(flags, ranks, epoch);
#pragma unroll 1
    for (int i = begin + threadIdx.x; i < end; i += BLOCK) {
        float sum = 0.0f;
#pragma unroll 1
        for (int r = 0; r < ranks; r++)
            sum += stages[r][half + i];
        output[i] = sum;
    }
}

extern "C" __global__ void __launch_bounds__(BLOCK, 1024 / BLOCK)
    ar_oneshot(const float *__restrict__ input, float *__restrict__ output, float *stage,
               float *const *__restrict__ stages, unsigned *flags,
               unsigned *const *__restrict__ all_flags, int n, int ranks, int rank,
               unsigned epoch) {
    const int begin = blockIdx.x * CHUNK;
    const int fours = n / 4 * 4;
    const size_t half = (size_t)(epoch & 1) * ((n + 3) / 4 * 4);
    const pair own = pair_of(flags, all_flags, ranks, rank);

    /* A chunk with an odd end is small, or the last of many. */
    if (begin + CHUNK > fours && fours < n)
        reduce_any(input, output, stage, stages, own, half, begin, min(n, begin + CHUNK), ranks,
                   epoch);
    else if (ranks == 2)
        reduce<2>(input, output, stage, stages, own, half, begin, fours, rank, epoch);
    else if (ranks == 4)
        reduce<4>(input, output, stage, stages, own, half, begin, fours, rank, epoch);
    else if (ranks == 8)
        reduce<8>(input, output, stage, stages, own, half, begin, fours, rank, epoch);
    else
        reduce_any(input, output, stage, stages, own, half, begin, min(n, begin + CHUNK), ranks,
                   epoch);
}
