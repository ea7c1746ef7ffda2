/* All-reduce of several ranks around a ring, by hand.
 *
 * As the textbook's, with four neighbours a thread by float4 and PIECES pieces a block, so that
 * each step has enough bytes under way over the link. A rank's own numbers of a step are loaded
 * before the wait for the sum that they are added to. A flag is stored with release semantics and
 * polled with acquire semantics: no step has a fence of its own, which would wait for all that the
 * thread did before. At most BLOCKS blocks go over the pieces in order: blocks wait for each other,
 * so all of them must be on the GPU at once. */
#include "evoke_cuda.h"
#include "evoke_flags.h"

#ifndef BLOCK
#define BLOCK 256
#endif
#ifndef PIECES
#define PIECES 2
#endif
#ifndef BLOCKS
#define BLOCKS 128
#endif
#define PIECE 1024
#define GROUP (PIECES * PIECE)
#define STEPS (GROUP / 4 / BLOCK)

/* The flags of a group: a thread for each of its pieces. */
struct post {
    unsigned *to, *from;
    unsigned before; /* messages of the launches before */

    /* All that the block has stored is there before the flags are. */
    __device__ __forceinline__ void sent(int step) const {
        __syncthreads();
        if (to != nullptr)
            flag_set(to, before + step + 1);
    }
    __device__ __forceinline__ void wait(int step) const {
        if (to != nullptr) {
            while ((int)(flag_read(from) - (before + step)) < 0)
                ;
        }
        __syncthreads();
    }
};

/* What a thread has of a group of a slice: elements at, at + 4 BLOCK, ... below `end`, by fours. */
struct part {
    int at, end, n;

    __device__ __forceinline__ bool has(int s) const { return at + s * BLOCK * 4 < end; }
    __device__ __forceinline__ bool is_whole(int i) const { return i + 4 <= n; }
    template <bool CONSTANT> __device__ __forceinline__ float4 load(const float *p, int s) const {
        const int i = at + s * BLOCK * 4;
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (has(s) && is_whole(i)) {
            v = CONSTANT ? __ldg((const float4 *)(p + i)) : *(const float4 *)(p + i);
        } else if (has(s)) {
            v.x = p[i];
            v.y = i + 1 < n ? p[i + 1] : 0.0f;
            v.z = i + 2 < n ? p[i + 2] : 0.0f;
        }
        return v;
    }
    __device__ __forceinline__ void store(float *p, int s, const float4 &v) const {
        const int i = at + s * BLOCK * 4;
        if (has(s) && is_whole(i)) {
            *(float4 *)(p + i) = v;
        } else if (has(s)) {
            p[i] = v.x;
            if (i + 1 < n)
                p[i + 1] = v.y;
            if (i + 2 < n)
                p[i + 2] = v.z;
        }
    }
};

extern "C" __global__ void __launch_bounds__(BLOCK)
    ar_ring(const float *__restrict__ input, float *output, float *const *__restrict__ outputs,
            float *inbox, float *const *__restrict__ inboxes, unsigned *flags,
            unsigned *const *__restrict__ all_flags, int n, int ranks, int rank, unsigned epoch) {
    const int next = rank + 1 < ranks ? rank + 1 : 0;
    const int slice = ((n + ranks - 1) / ranks + 3) / 4 * 4;
    const int pieces = (slice + PIECE - 1) / PIECE;
    float *const to_output = outputs[next], *const to_inbox = inboxes[next];
    unsigned *const to_flags = all_flags[next];

    for (int group = blockIdx.x; group * PIECES < pieces; group += gridDim.x) {
        const int first = group * GROUP, piece = group * PIECES + threadIdx.x;
        post mail = {nullptr, nullptr, (epoch - 1) * 2 * (ranks - 1)};
        if (threadIdx.x < PIECES && piece < pieces)
            mail = {to_flags + piece, flags + piece, mail.before};

        int from = rank; /* the slice of the step */
        float4 sum[STEPS];
        part own = {from * slice + first + (int)threadIdx.x * 4, min(n, (from + 1) * slice), n};
#pragma unroll
        for (int s = 0; s < STEPS; s++)
            sum[s] = own.load<true>(input, s);
#pragma unroll
        for (int s = 0; s < STEPS; s++)
            own.store(to_inbox, s, sum[s]);
        mail.sent(0);

#pragma unroll 1
        for (int step = 1; step < ranks; step++) {
            from = from > 0 ? from - 1 : ranks - 1;
            own = {from * slice + first + (int)threadIdx.x * 4, min(n, (from + 1) * slice), n};
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                sum[s] = own.load<true>(input, s);
            mail.wait(step);
            float4 came[STEPS];
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                came[s] = own.load<false>(inbox, s);
            const bool is_total = step == ranks - 1;
            float *const to = is_total ? to_output : to_inbox;
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                sum[s].x += came[s].x;
                sum[s].y += came[s].y;
                sum[s].z += came[s].z;
                sum[s].w += came[s].w;
                own.store(to, s, sum[s]);
                if (is_total)
                    own.store(output, s, sum[s]);
            }
            mail.sent(step);
        }
#pragma unroll 1
        for (int step = ranks; step < 2 * (ranks - 1); step++) {
            from = from > 0 ? from - 1 : ranks - 1;
            own = {from * slice + first + (int)threadIdx.x * 4, min(n, (from + 1) * slice), n};
            mail.wait(step);
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                sum[s] = own.load<false>(output, s);
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                own.store(to_output, s, sum[s]);
            mail.sent(step);
        }
        mail.wait(2 * (ranks - 1));
    }
}
