/* Filter gradient of a convolution by the fast Fourier transform with each transform made once, by
 * hand, in three launches: the spectra of all tiles of X and dY, their products, and the inverse.
 *
 * Tiles are 16 x 16 and real, so half of a spectrum tells the other half. Eight lanes transform a
 * tile in registers, sixteen points at a time in two radix-4 steps: a lane takes two rows as one
 * complex row and tells their spectra apart by symmetry; the rows change to columns through shared
 * memory; and a lane takes one of the columns 1 to 7, or columns 0 and 8, which are real, as one.
 * That leaves BINS complex numbers a tile. Both spectra have the factor two, which telling apart
 * leaves.
 *
 * A spectrum's numbers lie far apart, [bin][tile][map], and a warp has four maps side by side, so
 * that it reads and writes whole sectors. The sum over all tiles of all images is then a product of
 * two matrices for each bin, tiled in shared memory and registers. The numbers of maps are rounded
 * up to whole fours; what stands there is zero. */
#include "evoke_cuda.h"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef MAPS
#define MAPS 8
#endif
#ifndef COLUMNS
#define COLUMNS 4
#endif
#ifndef DEPTH
#define DEPTH 8
#endif

#define TILE 16
#define FILTER 5
#define KEPT (TILE - FILTER + 1)
#define BINS 130
#define LANES 8                   /* of a tile */
#define GROUPS (4 * WARPS)        /* tiles of a block */
#define PRODUCTS (COLUMNS * MAPS) /* threads of a block of products */
#define X_LOADS ((DEPTH * 2 * COLUMNS + PRODUCTS - 1) / PRODUCTS)
#define D_LOADS ((DEPTH * 2 * MAPS + PRODUCTS - 1) / PRODUCTS)
/* From tile to tile, in float2. */
#define SCRATCH (TILE * (LANES + 1) + 1)

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

static __device__ __forceinline__ void transform16(float2 v[TILE]) {
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

/* Of the transform v of a + i b, a and b real: twice the transforms of a and b at k. */
static __device__ __forceinline__ float2 real_part(const float2 v[TILE], int k) {
    const float2 p = v[order(k)], q = v[order((TILE - k) % TILE)];
    return make_float2(p.x + q.x, p.y - q.y);
}
static __device__ __forceinline__ float2 imaginary_part(const float2 v[TILE], int k) {
    const float2 p = v[order(k)], q = v[order((TILE - k) % TILE)];
    return make_float2(p.y + q.y, q.x - p.x);
}

/* From two rows a lane, as real and imaginary part, to the spectrum at out[bin * pitch]. */
static __device__ __forceinline__ void transform_tile(float2 v[TILE], float2 *scratch, int lane,
                                                      float2 *out, size_t pitch) {
    transform16(v);
    float2 *upper = scratch + lane * (LANES + 1), *lower = upper + LANES * (LANES + 1);
    upper[0] = make_float2(real_part(v, 0).x, real_part(v, 8).x);
    lower[0] = make_float2(imaginary_part(v, 0).x, imaginary_part(v, 8).x);
#pragma unroll
    for (int k = 1; k < LANES; k++) {
        upper[k] = real_part(v, k);
        lower[k] = imaginary_part(v, k);
    }
    __syncwarp();
    float2 t[TILE];
#pragma unroll
    for (int r = 0; r < TILE; r++)
        t[r] = scratch[r * (LANES + 1) + lane];
    transform16(t);
    if (lane == 0) {
#pragma unroll
        for (int k = 0; k <= TILE / 2; k++) {
            const float2 a = real_part(t, k), b = imaginary_part(t, k);
            out[k * pitch] = make_float2(0.5f * a.x, 0.5f * a.y);
            out[(TILE / 2 + 1 + k) * pitch] = make_float2(0.5f * b.x, 0.5f * b.y);
        }
    } else {
        out += (lane * TILE + 2) * pitch;
#pragma unroll
        for (int k = 0; k < TILE; k++)
            out[k * pitch] = t[order(k)];
    }
}

/* COUNT numbers of row `y` of a map as v.x (part 0) or v.y (part 1), zero outside. */
template <int PART, int COUNT>
static __device__ __forceinline__ void load_row(const float *__restrict__ map, int y, int left,
                                                int height, int width, float2 v[TILE]) {
    const float *row = map + (size_t)y * width;
    const bool is_there = y < height, wide = (width & 3) == 0;
#pragma unroll
    for (int x = 0; x < COUNT; x += 4) {
        float4 w = make_float4(0, 0, 0, 0);
        if (is_there && wide) {
            if (left + x < width)
                w = *(const float4 *)(row + left + x);
        } else if (is_there) {
            w.x = left + x < width ? row[left + x] : 0.0f;
            w.y = left + x + 1 < width ? row[left + x + 1] : 0.0f;
            w.z = left + x + 2 < width ? row[left + x + 2] : 0.0f;
            w.w = left + x + 3 < width ? row[left + x + 3] : 0.0f;
        }
        (PART ? v[x].y : v[x].x) = w.x;
        (PART ? v[x + 1].y : v[x + 1].x) = w.y;
        (PART ? v[x + 2].y : v[x + 2].x) = w.z;
        (PART ? v[x + 3].y : v[x + 3].x) = w.w;
    }
}

/* XS[bin, tile, c] and DS[bin, tile, o]: the first `input_blocks` blocks along y have tiles of X,
 * 16 x 16, the others tiles of dY, 12 x 12. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ X, const float *__restrict__ dY, float *__restrict__ XS,
                float *__restrict__ DS, int channels, int outputs, int height, int width,
                int input_blocks) {
    __shared__ float2 scratch[GROUPS * SCRATCH];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, tile = blockIdx.x;
    const int dy_height = height - FILTER + 1, dy_width = width - FILTER + 1;
    const int tiles_y = (dy_height + KEPT - 1) / KEPT, tiles_x = (dy_width + KEPT - 1) / KEPT;
    const int n = tile / (tiles_y * tiles_x), place = tile % (tiles_y * tiles_x);
    const int y = place / tiles_x * KEPT + lane, left = place % tiles_x * KEPT;
    const bool is_input = (int)blockIdx.y < input_blocks;
    const int count = is_input ? channels : outputs, pitch = (count + 3) / 4 * 4;
    const int at = (blockIdx.y - (is_input ? 0 : input_blocks)) * GROUPS + group;

    float2 v[TILE] = {};
    if (is_input && at < count) {
        const float *map = X + ((size_t)n * channels + at) * height * width;
        load_row<0, TILE>(map, y, left, height, width, v);
        load_row<1, TILE>(map, y + LANES, left, height, width, v);
    } else if (at < count) {
        const float *map = dY + ((size_t)n * outputs + at) * dy_height * dy_width;
        load_row<0, KEPT>(map, y, left, dy_height, dy_width, v);
        if (lane + LANES < KEPT)
            load_row<1, KEPT>(map, y + LANES, left, dy_height, dy_width, v);
    }
    if (at < pitch) /* by whole warps */
        transform_tile(v, scratch + group * SCRATCH, lane,
                       (float2 *)(is_input ? XS : DS) + (size_t)tile * pitch + at,
                       (size_t)gridDim.x * pitch);
}

/* sum += a conj(b) */
static __device__ __forceinline__ void add_product(float2 &sum, float2 a, float2 b) {
    sum.x += a.x * b.x;
    sum.x += a.y * b.y;
    sum.y += a.y * b.x;
    sum.y -= a.x * b.y;
}

/* The thread's part of the numbers [t, t + DEPTH) x [first, first + 2 * PAIRS), two at a time,
 * zeros where there are none; `pitch` is even. */
template <int PAIRS, int LOADS>
static __device__ __forceinline__ void load_pairs(float4 (&v)[LOADS], const float2 *from, int t,
                                                  int tiles, int first, int pitch) {
#pragma unroll
    for (int q = 0; q < LOADS; q++) {
        const int i = threadIdx.x + q * PRODUCTS, at = first + i % PAIRS * 2, k = t + i / PAIRS;
        v[q] = make_float4(0, 0, 0, 0);
        if (k < tiles && i < DEPTH * PAIRS && at < pitch)
            v[q] = *(const float4 *)(from + (size_t)k * pitch + at);
    }
}

template <int PAIRS, int LOADS>
static __device__ __forceinline__ void store_pairs(float2 (&to)[DEPTH][2 * PAIRS],
                                                   const float4 (&v)[LOADS]) {
#pragma unroll
    for (int q = 0; q < LOADS; q++) {
        const int i = threadIdx.x + q * PRODUCTS;
        if (i < DEPTH * PAIRS)
            *(float4 *)&to[i / PAIRS][i % PAIRS * 2] = v[q];
    }
}

/* FS[bin, o, c] = sum over all tiles of XS[bin, tile, c] conj DS[bin, tile, o]. A thread has four
 * input maps, in two pairs, of four output maps. The numbers of the next tiles are loaded ahead. */
extern "C" __global__ void __launch_bounds__(PRODUCTS)
    fft_products(const float *__restrict__ XS, const float *__restrict__ DS, float *__restrict__ FS,
                 int channels, int outputs, int tiles) {
    __shared__ __align__(16) float2 x[DEPTH][4 * COLUMNS], d[DEPTH][4 * MAPS];
    const int tx = threadIdx.x % COLUMNS, ty = threadIdx.x / COLUMNS, bin = blockIdx.z;
    const int first_channel = blockIdx.x * 4 * COLUMNS, first_map = blockIdx.y * 4 * MAPS;
    const int channel_pitch = (channels + 3) / 4 * 4, map_pitch = (outputs + 3) / 4 * 4;
    const float2 *xs = (const float2 *)XS + (size_t)bin * tiles * channel_pitch;
    const float2 *ds = (const float2 *)DS + (size_t)bin * tiles * map_pitch;

    float2 sum[4][4] = {};
    float4 next_x[X_LOADS], next_d[D_LOADS];
    load_pairs<2 * COLUMNS>(next_x, xs, 0, tiles, first_channel, channel_pitch);
    load_pairs<2 * MAPS>(next_d, ds, 0, tiles, first_map, map_pitch);
    for (int t = 0; t < tiles; t += DEPTH) {
        store_pairs<2 * COLUMNS>(x, next_x);
        store_pairs<2 * MAPS>(d, next_d);
        __syncthreads();
        load_pairs<2 * COLUMNS>(next_x, xs, t + DEPTH, tiles, first_channel, channel_pitch);
        load_pairs<2 * MAPS>(next_d, ds, t + DEPTH, tiles, first_map, map_pitch);
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            float2 a[4], b[4];
#pragma unroll
            for (int p = 0; p < 2; p++) {
                const float4 u = *(const float4 *)&x[k][2 * COLUMNS * p + 2 * tx];
                const float4 w = *(const float4 *)&d[k][4 * ty + 2 * p];
                a[2 * p] = make_float2(u.x, u.y);
                a[2 * p + 1] = make_float2(u.z, u.w);
                b[2 * p] = make_float2(w.x, w.y);
                b[2 * p + 1] = make_float2(w.z, w.w);
            }
#pragma unroll
            for (int o = 0; o < 4; o++) {
#pragma unroll
                for (int c = 0; c < 4; c++)
                    add_product(sum[o][c], a[c], b[o]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int o = 0; o < 4; o++) {
        const int map = first_map + 4 * ty + o;
        float2 *to = (float2 *)FS + ((size_t)bin * outputs + map) * channel_pitch;
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const int at = first_channel + 2 * COLUMNS * p + 2 * tx;
            if (map < outputs && at < channel_pitch)
                *(float4 *)(to + at) = make_float4(sum[o][2 * p].x, sum[o][2 * p].y,
                                                   sum[o][2 * p + 1].x, sum[o][2 * p + 1].y);
        }
    }
}

/* The inverse transform of sixteen points is the transform with real and imaginary parts exchanged
 * before and after; unscaled. Element k stands in v[order(k)], still exchanged. */
static __device__ __forceinline__ void inverse16(float2 v[TILE]) {
#pragma unroll
    for (int k = 0; k < TILE; k++)
        v[k] = make_float2(v[k].y, v[k].x);
    transform16(v);
}

/* The lane's columns of a spectrum: of lane 0, columns 0 and 8 as one. */
static __device__ __forceinline__ void load_columns(const float2 *from, size_t pitch, int lane,
                                                    float2 v[TILE]) {
    if (lane == 0) {
#pragma unroll
        for (int k = 0; k <= TILE / 2; k++) {
            const float2 a = from[k * pitch], b = from[(TILE / 2 + 1 + k) * pitch];
            v[k] = make_float2(a.x - b.y, a.y + b.x);
            if (k > 0 && k < TILE / 2)
                v[TILE - k] = make_float2(a.x + b.y, b.x - a.y);
        }
    } else {
        from += (lane * TILE + 2) * pitch;
#pragma unroll
        for (int k = 0; k < TILE; k++)
            v[k] = from[k * pitch];
    }
}

/* A group makes the filter of input map `at` and output map blockIdx.y: the five rows and columns
 * that are kept of the inverse. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_filters(const float *__restrict__ FS, float *__restrict__ dF, int channels) {
    __shared__ float2 scratch[GROUPS * SCRATCH];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int pitch = (channels + 3) / 4 * 4, at = blockIdx.x * GROUPS + group;
    const int o = blockIdx.y, outputs = gridDim.y;
    if (at >= pitch) /* by whole warps */
        return;

    float2 v[TILE], w[TILE], *own = scratch + group * SCRATCH;
    load_columns((const float2 *)FS + (size_t)o * pitch + at, (size_t)outputs * pitch, lane, v);
    inverse16(v);
#pragma unroll
    for (int r = 0; r < FILTER; r++)
        own[r * (LANES + 1) + lane] = make_float2(v[order(r)].y, v[order(r)].x);
    __syncwarp();
    if (lane >= FILTER || at >= channels)
        return;

    /* Half of the spectrum of a real row, whose elements are the real parts. */
    const float2 *half = own + lane * (LANES + 1);
    w[0] = make_float2(half[0].x, 0);
    w[TILE / 2] = make_float2(half[0].y, 0);
#pragma unroll
    for (int k = 1; k < LANES; k++) {
        w[k] = half[k];
        w[TILE - k] = make_float2(half[k].x, -half[k].y);
    }
    inverse16(w);
    const float scale = 0.25f / (TILE * TILE); /* both spectra had the factor two */
    float *row = dF + (((size_t)o * channels + at) * FILTER + lane) * FILTER;
#pragma unroll
    for (int k = 0; k < FILTER; k++)
        row[k] = w[order(k)].y * scale;
}
