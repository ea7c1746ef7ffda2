/* Forward product of a block-circulant layer by the fast Fourier transform, by hand.
 *
 * A warp transforms 128 numbers at once, four a lane: one vector of 128, two of 64, ... 32 of 4.
 * Butterflies at a distance below 32 exchange their halves by shuffles, and the twiddle factors of
 * a stage do not depend on k. The forward transform leaves its bins in bit-reversed order, which
 * the inverse takes, so that nothing is reordered. Two rows of the batch share a transform, one as
 * the real and one as the imaginary part, since a weight's spectrum multiplies both alike. A
 * spectrum is made once for all products of the block. The sum over the input blocks is taken
 * before the inverse transform, which runs once for each output; SPLIT teams of warps take turns at
 * the terms. Loads of the next 128 numbers begin before the products of these. */
#include "evoke_cuda.h"

#ifndef OUTS
#define OUTS 4
#endif
#ifndef PAIRS
#define PAIRS 4
#endif
#ifndef SPLIT
#define SPLIT 2
#endif

#define CHUNK 128
#define PARTS (CHUNK / 32)
#define WARPS 8 /* of a team */
#define THREADS (32 * WARPS * SPLIT)
#define TASKS ((OUTS + PAIRS + WARPS - 1) / WARPS) /* spectra that a warp makes of a chunk */
#define GROUPS (WARPS / OUTS)                      /* of warps, each with all output blocks */
#define OWN (PAIRS / GROUPS)                       /* pairs of a warp */
#define STAGES 7

/* The twiddle factors of a lane: of the five stages between lanes (1 in the lower half of a
 * butterfly), of the stage at distance 32, and of the two butterflies at distance 64. */
typedef struct twiddles {
    float2 lane[5], near, far[2];
} twiddles;

static __device__ __forceinline__ float2 unit(float turns) {
    float2 v;
    sincospif(turns, &v.y, &v.x);
    return v;
}

static __device__ __forceinline__ float2 times(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

static __device__ __forceinline__ float2 times_conjugate(float2 a, float2 b) {
    return make_float2(a.x * b.x + a.y * b.y, a.y * b.x - a.x * b.y);
}

static __device__ __forceinline__ twiddles make_twiddles(int lane) {
    twiddles t;
#pragma unroll
    for (int s = 0; s < 5; s++) {
        int half = 1 << s;
        t.lane[s] = make_float2(1.0f, 0.0f);
        if (lane & half)
            t.lane[s] = unit(-(float)(lane & (half - 1)) / half);
    }
    t.near = unit(-lane * (1.0f / 32));
    t.far[0] = unit(-lane * (1.0f / 64));
    t.far[1] = make_float2(t.far[0].y, -t.far[0].x); /* a quarter of a turn on */
    return t;
}

static __device__ __forceinline__ float2 exchange(float2 v, int half) {
    return make_float2(__shfl_xor_sync(0xffffffffu, v.x, half),
                       __shfl_xor_sync(0xffffffffu, v.y, half));
}

/* From natural to bit-reversed order (decimation in frequency). */
static __device__ __forceinline__ void transform(float2 v[PARTS], const twiddles *t, int lane,
                                                 int k) {
    if (k > 64) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float2 a = v[r], b = v[r + 2];
            v[r] = make_float2(a.x + b.x, a.y + b.y);
            v[r + 2] = times(make_float2(a.x - b.x, a.y - b.y), t->far[r]);
        }
    }
    if (k > 32) {
#pragma unroll
        for (int r = 0; r < PARTS; r += 2) {
            float2 a = v[r], b = v[r + 1];
            v[r] = make_float2(a.x + b.x, a.y + b.y);
            v[r + 1] = times(make_float2(a.x - b.x, a.y - b.y), t->near);
        }
    }
#pragma unroll
    for (int s = 4; s >= 0; s--) {
        if (k > 1 << s) {
            float sign = lane & 1 << s ? -1.0f : 1.0f;
#pragma unroll
            for (int r = 0; r < PARTS; r++) {
                float2 o = exchange(v[r], 1 << s);
                v[r] = make_float2(o.x + sign * v[r].x, o.y + sign * v[r].y);
                if (s > 0)
                    v[r] = times(v[r], t->lane[s]);
            }
        }
    }
}

/* From bit-reversed to natural order (decimation in time), times k. */
static __device__ __forceinline__ void invert(float2 v[PARTS], const twiddles *t, int lane, int k) {
#pragma unroll
    for (int s = 0; s < 5; s++) {
        if (k > 1 << s) {
            float sign = lane & 1 << s ? -1.0f : 1.0f;
#pragma unroll
            for (int r = 0; r < PARTS; r++) {
                if (s > 0)
                    v[r] = times_conjugate(v[r], t->lane[s]);
                float2 o = exchange(v[r], 1 << s);
                v[r] = make_float2(o.x + sign * v[r].x, o.y + sign * v[r].y);
            }
        }
    }
    if (k > 32) {
#pragma unroll
        for (int r = 0; r < PARTS; r += 2) {
            float2 a = v[r], b = times_conjugate(v[r + 1], t->near);
            v[r] = make_float2(a.x + b.x, a.y + b.y);
            v[r + 1] = make_float2(a.x - b.x, a.y - b.y);
        }
    }
    if (k > 64) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            float2 a = v[r], b = times_conjugate(v[r + 2], t->far[r]);
            v[r] = make_float2(a.x + b.x, a.y + b.y);
            v[r + 2] = make_float2(a.x - b.x, a.y - b.y);
        }
    }
}

/* Adds up the bins of the vectors that share the warp; the first k elements then have the sums. */
static __device__ __forceinline__ void sum_vectors(float2 v[PARTS], int k) {
    if (k < CHUNK) {
#pragma unroll
        for (int r = 0; r < 2; r++)
            v[r] = make_float2(v[r].x + v[r + 2].x, v[r].y + v[r + 2].y);
    }
    if (k < 64)
        v[0] = make_float2(v[0].x + v[1].x, v[0].y + v[1].y);
#pragma unroll
    for (int half = 16; half >= 4; half /= 2) {
        if (k <= half) {
            float2 o = exchange(v[0], half);
            v[0] = make_float2(v[0].x + o.x, v[0].y + o.y);
        }
    }
}

/* What a warp transforms: a row of weights (imaginary part 0), or two rows of the batch. */
typedef struct source {
    const float *re, *im; /* nullptr: zeros */
} source;

static __device__ __forceinline__ void load(const source *from, int first, int size, int lane,
                                            float2 v[PARTS]) {
#pragma unroll
    for (int r = 0; r < PARTS; r++) {
        int e = first + 32 * r + lane;
        v[r] = make_float2(0.0f, 0.0f);
        if (e < size && from->re)
            v[r].x = __ldg(from->re + e);
        if (e < size && from->im)
            v[r].y = __ldg(from->im + e);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bc_fp(const float *__restrict__ x, const float *__restrict__ w, float *__restrict__ y,
          int batch, int p, int q, int k) {
    __shared__ float2 spectra[SPLIT * (OUTS + PAIRS)][CHUNK];

    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32 % WARPS;
    const int team = threadIdx.x / (32 * WARPS);
    float2(*spectrum)[CHUNK] = spectra + team * (OUTS + PAIRS);
    const int first_out = blockIdx.x * OUTS, first_row = blockIdx.y * (2 * PAIRS);
    const int size = q * k; /* of a row of the batch, and of the weights of an output block */
    const twiddles t = make_twiddles(lane);

    source from[TASKS];
#pragma unroll
    for (int m = 0; m < TASKS; m++) {
        const int task = warp + m * WARPS;
        from[m].re = from[m].im = nullptr;
        if (task < OUTS && first_out + task < p)
            from[m].re = w + (size_t)(first_out + task) * size;
        const int row = first_row + 2 * (task - OUTS);
        if (task >= OUTS && task < OUTS + PAIRS && row < batch)
            from[m].re = x + (size_t)row * size;
        if (task >= OUTS && task < OUTS + PAIRS && row + 1 < batch)
            from[m].im = x + (size_t)(row + 1) * size;
    }

    const int out = warp % OUTS, pair = warp / OUTS * OWN;
    float2 sum[OWN][PARTS] = {};
    float2 next[TASKS][PARTS];
#pragma unroll
    for (int m = 0; m < TASKS; m++)
        load(&from[m], team * CHUNK, size, lane, next[m]);

    for (int first = team * CHUNK; first - team * CHUNK < size; first += SPLIT * CHUNK) {
#pragma unroll
        for (int m = 0; m < TASKS; m++) {
            const int task = warp + m * WARPS;
            float2 v[PARTS];
#pragma unroll
            for (int r = 0; r < PARTS; r++)
                v[r] = next[m][r];
            load(&from[m], first + SPLIT * CHUNK, size, lane, next[m]);
            transform(v, &t, lane, k);
            if (task < OUTS + PAIRS) {
#pragma unroll
                for (int r = 0; r < PARTS; r++)
                    spectrum[task][32 * r + lane] = v[r];
            }
        }
        __syncthreads();
        float2 f[PARTS];
#pragma unroll
        for (int r = 0; r < PARTS; r++)
            f[r] = spectrum[out][32 * r + lane];
#pragma unroll
        for (int n = 0; n < OWN; n++) {
#pragma unroll
            for (int r = 0; r < PARTS; r++) {
                float2 z = spectrum[OUTS + pair + n][32 * r + lane];
                sum[n][r].x += f[r].x * z.x - f[r].y * z.y;
                sum[n][r].y += f[r].x * z.y + f[r].y * z.x;
            }
        }
        __syncthreads();
    }

#pragma unroll
    for (int n = 0; n < OWN; n++) {
        for (int other = 1; other < SPLIT; other++) {
            if (team == other) {
#pragma unroll
                for (int r = 0; r < PARTS; r++)
                    spectra[warp][32 * r + lane] = sum[n][r];
            }
            __syncthreads();
            if (team == 0) {
#pragma unroll
                for (int r = 0; r < PARTS; r++) {
                    float2 o = spectra[warp][32 * r + lane];
                    sum[n][r] = make_float2(sum[n][r].x + o.x, sum[n][r].y + o.y);
                }
            }
            __syncthreads();
        }
    }
    if (team > 0)
        return;

    const float scale = 1.0f / k;
#pragma unroll
    for (int n = 0; n < OWN; n++) {
        sum_vectors(sum[n], k);
        invert(sum[n], &t, lane, k);
        const int i = first_out + out, row = first_row + 2 * (pair + n);
        float *to = y + ((size_t)row * p + i) * k;
#pragma unroll
        for (int r = 0; r < PARTS; r++) {
            const int e = 32 * r + lane;
            if (e < k && i < p && row < batch)
                to[e] = sum[n][r].x * scale;
            if (e < k && i < p && row + 1 < batch)
                to[(size_t)p * k + e] = sum[n][r].y * scale;
        }
    }
}
