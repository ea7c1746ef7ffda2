/* Data gradient of a convolution by the fast Fourier transform, in tiles of 16 x 16, by hand.
 *
 * As the forward kernel: sixteen lanes transform a tile, a row of sixteen points in registers, then
 * a column after an exchange through shared memory. Two input maps share a transform, one as the
 * real and one as the imaginary part, since dY's spectrum multiplies both alike. The spectra of a
 * group of output maps are made once for all pairs of the block. */
#include "evoke_cuda.h"

#ifndef PAIRS
#define PAIRS 4
#endif

#define TILE 16
#define FILTER 5
#define KEPT (TILE - FILTER + 1)
#define THREADS (TILE * PAIRS)

static __device__ __forceinline__ float2 operator+(float2 a, float2 b) {
    return make_float2(a.x + b.x, a.y + b.y);
}
static __device__ __forceinline__ float2 operator-(float2 a, float2 b) {
    return make_float2(a.x - b.x, a.y - b.y);
}
static __device__ __forceinline__ float2 operator*(float2 a, float2 b) {
    return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

/* Four points, in place, in natural order. */
static __device__ __forceinline__ void radix4(float2 &a, float2 &b, float2 &c, float2 &d) {
    float2 s = a + c, t = a - c, u = b + d, w = b - d;
    a = s + u;
    c = s - u;
    b = make_float2(t.x + w.y, t.y - w.x);
    d = make_float2(t.x - w.y, t.y + w.x);
}

/* Sixteen points: element k of the result stands in v[order(k)]. */
static __device__ __forceinline__ int order(int k) {
    return (k & 3) * 4 + (k >> 2);
}

static __device__ __forceinline__ void transform16(float2 v[16]) {
    const float c1 = 0.923879533f, s1 = 0.382683432f, h = 0.707106781f;
#pragma unroll
    for (int n = 0; n < 4; n++)
        radix4(v[n], v[n + 4], v[n + 8], v[n + 12]);
    v[5] = v[5] * make_float2(c1, -s1);
    v[6] = v[6] * make_float2(h, -h);
    v[7] = v[7] * make_float2(s1, -c1);
    v[9] = v[9] * make_float2(h, -h);
    v[10] = make_float2(v[10].y, -v[10].x);
    v[11] = v[11] * make_float2(-h, -h);
    v[13] = v[13] * make_float2(s1, -c1);
    v[14] = v[14] * make_float2(-h, -h);
    v[15] = v[15] * make_float2(-c1, s1);
#pragma unroll
    for (int k = 0; k < 4; k++)
        radix4(v[4 * k], v[4 * k + 1], v[4 * k + 2], v[4 * k + 3]);
}

/* From rows to the columns of the two-dimensional transform: on return v[k] is row k of the lane's
 * column. */
static __device__ __forceinline__ void transform_tile(float2 v[16], float2 (*scratch)[TILE + 1],
                                                      int lane) {
    transform16(v);
    __syncwarp();
#pragma unroll
    for (int k = 0; k < TILE; k++)
        scratch[lane][k] = v[order(k)];
    __syncwarp();
    float2 t[TILE];
#pragma unroll
    for (int k = 0; k < TILE; k++)
        t[k] = scratch[k][lane];
    transform16(t);
#pragma unroll
    for (int k = 0; k < TILE; k++)
        v[k] = t[order(k)];
}

/* The row of a tile that begins at `left`, which may be negative; zeros outside of dY. */
static __device__ __forceinline__ void load_row(const float *__restrict__ row, int left, int width,
                                                float2 v[16]) {
    if ((width & 3) == 0) {
#pragma unroll
        for (int k = 0; k < TILE; k += 4) {
            float4 x = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (left + k >= 0 && left + k < width)
                x = __ldg((const float4 *)(row + left + k));
            v[k] = make_float2(x.x, 0.0f);
            v[k + 1] = make_float2(x.y, 0.0f);
            v[k + 2] = make_float2(x.z, 0.0f);
            v[k + 3] = make_float2(x.w, 0.0f);
        }
    } else {
#pragma unroll
        for (int k = 0; k < TILE; k++)
            v[k] = make_float2(left + k >= 0 && left + k < width ? row[left + k] : 0.0f, 0.0f);
    }
}

static __device__ __forceinline__ void store_row(float *__restrict__ row, int left, int width,
                                                 const float v[KEPT]) {
    if ((width & 3) == 0) {
#pragma unroll
        for (int k = 0; k < KEPT; k += 4) {
            if (left + k < width)
                __stwb((float4 *)(row + left + k), make_float4(v[k], v[k + 1], v[k + 2], v[k + 3]));
        }
    } else {
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            if (left + k < width)
                row[left + k] = v[k];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 512 / THREADS)
    fft_conv2d_bp_data(const float *__restrict__ dY, const float *__restrict__ F,
                       float *__restrict__ dX, int channels, int outputs, int height, int width) {
    __shared__ float2 spectrum[PAIRS][TILE][TILE];
    __shared__ float2 scratch[PAIRS][TILE][TILE + 1];

    const int dy_height = height - FILTER + 1, dy_width = width - FILTER + 1;
    const int tiles_x = (width + KEPT - 1) / KEPT;
    const int top = blockIdx.x / tiles_x * KEPT, left = blockIdx.x % tiles_x * KEPT;
    const int lane = threadIdx.x, group = threadIdx.y;
    const int c = (blockIdx.y * PAIRS + group) * 2, n = blockIdx.z;
    const int y = top - (FILTER - 1) + lane; /* of dY, and of dX four further on */

    float2 sum[TILE] = {};
    for (int first = 0; first < outputs; first += PAIRS) {
        float2 v[TILE] = {};
        int own = first + group;
        if (own < outputs && y >= 0 && y < dy_height)
            load_row(dY + (((size_t)n * outputs + own) * dy_height + y) * dy_width,
                     left - (FILTER - 1), dy_width, v);
        transform_tile(v, scratch[group], lane);
#pragma unroll
        for (int k = 0; k < TILE; k++)
            spectrum[group][k][lane] = v[k];
        __syncthreads();

        for (int q = 0; q < PAIRS && first + q < outputs; q++) {
            float2 f[TILE] = {};
            if (lane < FILTER && c < channels) {
                const float *a =
                    F + (((size_t)(first + q) * channels + c) * FILTER + lane) * FILTER;
                const float *b = a + FILTER * FILTER;
#pragma unroll
                for (int k = 0; k < FILTER; k++)
                    f[k] = make_float2(a[k], c + 1 < channels ? b[k] : 0.0f);
            }
            transform_tile(f, scratch[group], lane);
#pragma unroll
            for (int k = 0; k < TILE; k++)
                sum[k] = sum[k] + f[k] * spectrum[q][k][lane];
        }
        __syncthreads();
    }

    /* The inverse is the transform with real and imaginary parts exchanged before and after. It
     * begins with the columns and so ends with rows: sum[k] is element k of the tile's row `lane`.
     * The first four rows and columns are wrapped around, and are not kept. */
#pragma unroll
    for (int k = 0; k < TILE; k++)
        sum[k] = make_float2(sum[k].y, sum[k].x);
    transform_tile(sum, scratch[group], lane);
    const int row = top + lane - (FILTER - 1);
    if (lane >= FILTER - 1 && row < height) {
        const float scale = 1.0f / (TILE * TILE);
        float a[KEPT], b[KEPT];
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            a[k] = sum[k + FILTER - 1].y * scale;
            b[k] = sum[k + FILTER - 1].x * scale;
        }
        float *to = dX + (((size_t)n * channels + c) * height + row) * width;
        if (c < channels)
            store_row(to, left, width, a);
        if (c + 1 < channels)
            store_row(to + (size_t)height * width, left, width, b);
    }
}
