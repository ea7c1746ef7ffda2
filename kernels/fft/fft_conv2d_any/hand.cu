/* Convolution by the fast Fourier transform with filters of any size up to 11, by hand, in three
 * launches: all spectra, their products, and the inverse.
 *
 * Tiles are TILE x TILE and real, so half of a spectrum tells the other half. TILE / 2 lanes
 * transform a tile in registers: a lane takes two rows as one complex row and tells their spectra
 * apart by symmetry; the rows change to columns through shared memory; and a lane takes one of the
 * columns 1 to TILE / 2 - 1, or columns 0 and TILE / 2, which are real, as one. That leaves BINS
 * complex numbers a tile. Both spectra have the factor two, which telling apart leaves.
 *
 * A spectrum's numbers lie far apart, [bin][channel][tile], and a warp has two or four tiles side
 * by side. The sum over the channels is then a product of two matrices for each bin, tiled in
 * shared memory and registers. The numbers of tiles and of outputs are rounded up to whole fours;
 * what stands there is zero. */
#include "evoke_cuda.h"

#ifndef TILE
#define TILE 16
#endif
#ifndef WARPS
#define WARPS 4
#endif
#ifndef MAPS
#define MAPS 8
#endif
#ifndef COLUMNS
#define COLUMNS 8
#endif
#ifndef CHANNELS
#define CHANNELS 8
#endif

#define MOST 11                     /* rows of a filter */
#define LANES (TILE / 2)            /* of a tile */
#define GROUPS (32 * WARPS / LANES) /* tiles of a block */
#define PRODUCTS (COLUMNS * MAPS)   /* threads of a block of products */
#define X_LOADS ((CHANNELS * 2 * COLUMNS + PRODUCTS - 1) / PRODUCTS)
#define F_LOADS ((CHANNELS * 2 * MAPS + PRODUCTS - 1) / PRODUCTS)
/* From tile to tile, in float2. */
#define SCRATCH (TILE * (LANES + 1) + 1)

static __device__ __forceinline__ float2 operator+(float2 a, float2 b) {
    return make_float2(a.x + b.x, a.y + b.y);
}
static __device__ __forceinline__ float2 operator-(float2 a, float2 b) {
    return make_float2(a.x - b.x, a.y - b.y);
}
/* cos(2 pi n / 32), for 0 <= n <= 8; of a constant, once loops are unrolled. */
static __device__ __forceinline__ float cosine(int n) {
    return n == 0   ? 1.0f
           : n == 1 ? 0.980785280f
           : n == 2 ? 0.923879533f
           : n == 3 ? 0.831469612f
           : n == 4 ? 0.707106781f
           : n == 5 ? 0.555570233f
           : n == 6 ? 0.382683432f
           : n == 7 ? 0.195090322f
                    : 0.0f;
}

/* v exp(-2 pi i n / 32), 0 <= n < 24 */
static __device__ __forceinline__ float2 turned(float2 v, int n) {
    if (n >= 16)
        v = make_float2(-v.x, -v.y);
    if (n % 16 >= 8)
        v = make_float2(v.y, -v.x);
    const float c = cosine(n % 8), s = cosine(8 - n % 8);
    if (n % 8 == 0)
        return v;
    if (n % 8 == 4)
        return make_float2(c * (v.x + v.y), c * (v.y - v.x));
    return make_float2(v.x * c + v.y * s, v.y * c - v.x * s);
}

/* Four points, in place, in natural order. */
static __device__ __forceinline__ void radix4(float2 &a, float2 &b, float2 &c, float2 &d) {
    float2 s = a + c, t = a - c, u = b + d, w = b - d;
    a = s + u;
    c = s - u;
    b = make_float2(t.x + w.y, t.y - w.x);
    d = make_float2(t.x - w.y, t.y + w.x);
}

/* COUNT points, in place. */
template <int COUNT> static __device__ __forceinline__ void transform(float2 *v) {
    if constexpr (COUNT == 2) {
        const float2 a = v[0], b = v[1];
        v[0] = a + b;
        v[1] = a - b;
    } else if constexpr (COUNT == 4) {
        radix4(v[0], v[1], v[2], v[3]);
    } else {
        const int part = COUNT / 4;
#pragma unroll
        for (int n = 0; n < part; n++) {
            radix4(v[n], v[n + part], v[n + 2 * part], v[n + 3 * part]);
#pragma unroll
            for (int k = 1; k < 4; k++)
                v[n + k * part] = turned(v[n + k * part], n * k * (32 / COUNT));
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            transform<part>(v + k * part);
    }
}

/* Where element k of the result stands. */
template <int COUNT> static __device__ __forceinline__ int order(int k) {
    if constexpr (COUNT <= 4)
        return k;
    else
        return (k & 3) * (COUNT / 4) + order<COUNT / 4>(k >> 2);
}

/* Of the transform v of a + i b, a and b real: twice the transforms of a and b at k. */
static __device__ __forceinline__ float2 real_part(const float2 v[TILE], int k) {
    const float2 p = v[order<TILE>(k)], q = v[order<TILE>((TILE - k) % TILE)];
    return make_float2(p.x + q.x, p.y - q.y);
}
static __device__ __forceinline__ float2 imaginary_part(const float2 v[TILE], int k) {
    const float2 p = v[order<TILE>(k)], q = v[order<TILE>((TILE - k) % TILE)];
    return make_float2(p.y + q.y, q.x - p.x);
}

/* From two rows a lane, as real and imaginary part, to the spectrum at out[bin * pitch]. */
static __device__ __forceinline__ void transform_tile(float2 v[TILE], float2 *scratch, int lane,
                                                      float2 *out, size_t pitch) {
    transform<TILE>(v);
    float2 *upper = scratch + lane * (LANES + 1), *lower = upper + LANES * (LANES + 1);
    upper[0] = make_float2(real_part(v, 0).x, real_part(v, LANES).x);
    lower[0] = make_float2(imaginary_part(v, 0).x, imaginary_part(v, LANES).x);
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
    transform<TILE>(t);
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
            out[k * pitch] = t[order<TILE>(k)];
    }
}

/* Row `y` of a map as v.x (part 0) or v.y (part 1), zero outside. */
template <int PART>
static __device__ __forceinline__ void load_row(const float *__restrict__ map, int y, int left,
                                                int height, int width, float2 v[TILE]) {
    const float *row = map + (size_t)y * width + left;
    const bool is_there = y < height, is_even = ((width | left) & 1) == 0;
#pragma unroll
    for (int x = 0; x < TILE; x += 2) {
        float2 w = make_float2(0, 0);
        if (is_there && is_even) {
            if (left + x < width)
                w = __ldg((const float2 *)(row + x));
        } else if (is_there) {
            w.x = left + x < width ? row[x] : 0.0f;
            w.y = left + x + 1 < width ? row[x + 1] : 0.0f;
        }
        (PART ? v[x].y : v[x].x) = w.x;
        (PART ? v[x + 1].y : v[x + 1].x) = w.y;
    }
}

/* Row `y` of a filter as v.x (part 0) or v.y (part 1), zero behind. */
template <int PART>
static __device__ __forceinline__ void load_filter(const float *__restrict__ F, int y, int filter,
                                                   float2 v[TILE]) {
#pragma unroll
    for (int x = 0; x < MOST; x++) {
        if (y < filter && x < filter)
            (PART ? v[x].y : v[x].x) = F[y * filter + x];
    }
}

/* XS[bin, c, tile] and FS[bin, c, o]: the first `input_blocks` blocks along x have tiles, the
 * others filters. */
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_spectra(const float *__restrict__ X, const float *__restrict__ F, float *__restrict__ XS,
                float *__restrict__ FS, int channels, int outputs, int height, int width,
                int filter, int tiles, int input_blocks) {
    __shared__ float2 scratch[GROUPS * SCRATCH];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, c = blockIdx.y;
    const int kept = TILE - filter + 1;
    const int tiles_y = (height - filter + kept) / kept, tiles_x = (width - filter + kept) / kept;
    const bool is_input = (int)blockIdx.x < input_blocks;
    const int count = is_input ? tiles : outputs, pitch = (count + 3) / 4 * 4;
    const int at = (blockIdx.x - (is_input ? 0 : input_blocks)) * GROUPS + group;

    float2 v[TILE] = {};
    if (is_input && at < count) {
        const int tile = at % (tiles_y * tiles_x), n = at / (tiles_y * tiles_x);
        const int y = tile / tiles_x * kept + lane, left = tile % tiles_x * kept;
        const float *map = X + ((size_t)n * channels + c) * height * width;
        load_row<0>(map, y, left, height, width, v);
        load_row<1>(map, y + LANES, left, height, width, v);
    } else if (at < count) {
        const float *of = F + ((size_t)at * channels + c) * filter * filter;
        load_filter<0>(of, lane, filter, v);
        if (LANES < MOST)
            load_filter<1>(of, lane + LANES, filter, v);
    }
    if (at < pitch) /* by whole warps */
        transform_tile(v, scratch + group * SCRATCH, lane,
                       (float2 *)(is_input ? XS : FS) + (size_t)c * pitch + at,
                       (size_t)channels * pitch);
}

/* sum += a conj(b) */
static __device__ __forceinline__ void add_product(float2 &sum, float2 a, float2 b) {
    sum.x += a.x * b.x;
    sum.x += a.y * b.y;
    sum.y += a.y * b.x;
    sum.y -= a.x * b.y;
}

/* The thread's part of the numbers [c, c + CHANNELS) x [first, first + 2 * PAIRS), two at a time,
 * zeros where there are none; `pitch` is even. */
template <int PAIRS, int LOADS>
static __device__ __forceinline__ void load_pairs(float4 (&v)[LOADS], const float2 *from, int c,
                                                  int channels, int first, int pitch) {
#pragma unroll
    for (int q = 0; q < LOADS; q++) {
        const int i = threadIdx.x + q * PRODUCTS, at = first + i % PAIRS * 2, k = c + i / PAIRS;
        v[q] = make_float4(0, 0, 0, 0);
        if (k < channels && i < CHANNELS * PAIRS && at < pitch)
            v[q] = *(const float4 *)(from + (size_t)k * pitch + at);
    }
}

template <int PAIRS, int LOADS>
static __device__ __forceinline__ void store_pairs(float2 (&to)[CHANNELS][2 * PAIRS],
                                                   const float4 (&v)[LOADS]) {
#pragma unroll
    for (int q = 0; q < LOADS; q++) {
        const int i = threadIdx.x + q * PRODUCTS;
        if (i < CHANNELS * PAIRS)
            *(float4 *)&to[i / PAIRS][i % PAIRS * 2] = v[q];
    }
}

/* YS[bin, o, tile] = sum over c of XS[bin, c, tile] conj FS[bin, c, o]. A thread has four tiles, in
 * two pairs, of four outputs. The numbers of the next channels are loaded ahead. */
extern "C" __global__ void __launch_bounds__(PRODUCTS)
    fft_products(const float *__restrict__ XS, const float *__restrict__ FS, float *__restrict__ YS,
                 int channels, int outputs, int tiles) {
    __shared__ __align__(16) float2 x[CHANNELS][4 * COLUMNS], f[CHANNELS][4 * MAPS];
    const int tx = threadIdx.x % COLUMNS, ty = threadIdx.x / COLUMNS, bin = blockIdx.z;
    const int first_tile = blockIdx.x * 4 * COLUMNS, first_map = blockIdx.y * 4 * MAPS;
    const int tile_pitch = (tiles + 3) / 4 * 4, map_pitch = (outputs + 3) / 4 * 4;
    const float2 *xs = (const float2 *)XS + (size_t)bin * channels * tile_pitch;
    const float2 *fs = (const float2 *)FS + (size_t)bin * channels * map_pitch;

    float2 sum[4][4] = {};
    float4 next_x[X_LOADS], next_f[F_LOADS];
    load_pairs<2 * COLUMNS>(next_x, xs, 0, channels, first_tile, tile_pitch);
    load_pairs<2 * MAPS>(next_f, fs, 0, channels, first_map, map_pitch);
    for (int c = 0; c < channels; c += CHANNELS) {
        store_pairs<2 * COLUMNS>(x, next_x);
        store_pairs<2 * MAPS>(f, next_f);
        __syncthreads();
        load_pairs<2 * COLUMNS>(next_x, xs, c + CHANNELS, channels, first_tile, tile_pitch);
        load_pairs<2 * MAPS>(next_f, fs, c + CHANNELS, channels, first_map, map_pitch);
#pragma unroll
        for (int k = 0; k < CHANNELS; k++) {
            float2 a[4], b[4];
#pragma unroll
            for (int p = 0; p < 2; p++) {
                const float4 u = *(const float4 *)&x[k][2 * COLUMNS * p + 2 * tx];
                const float4 w = *(const float4 *)&f[k][4 * ty + 2 * p];
                a[2 * p] = make_float2(u.x, u.y);
                a[2 * p + 1] = make_float2(u.z, u.w);
                b[2 * p] = make_float2(w.x, w.y);
                b[2 * p + 1] = make_float2(w.z, w.w);
            }
#pragma unroll
            for (int o = 0; o < 4; o++) {
#pragma unroll
                for (int t = 0; t < 4; t++)
                    add_product(sum[o][t], a[t], b[o]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int o = 0; o < 4; o++) {
        const int map = first_map + 4 * ty + o;
        float2 *to = (float2 *)YS + ((size_t)bin * outputs + map) * tile_pitch;
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const int at = first_tile + 2 * COLUMNS * p + 2 * tx;
            if (map < outputs && at < tile_pitch)
                *(float4 *)(to + at) = make_float4(sum[o][2 * p].x, sum[o][2 * p].y,
                                                   sum[o][2 * p + 1].x, sum[o][2 * p + 1].y);
        }
    }
}

/* The inverse transform of TILE points is the transform with real and imaginary parts exchanged
 * before and after; unscaled. Element k stands in v[order<TILE>(k)], still exchanged. */
static __device__ __forceinline__ void inverse(float2 v[TILE]) {
#pragma unroll
    for (int k = 0; k < TILE; k++)
        v[k] = make_float2(v[k].y, v[k].x);
    transform<TILE>(v);
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

static __device__ __forceinline__ void store_row(float *__restrict__ row, int left, int width,
                                                 int kept, const float v[TILE]) {
    const bool is_even = ((width | kept) & 1) == 0;
#pragma unroll
    for (int k = 0; k < TILE; k += 2) {
        if (is_even && k < kept && left + k < width) {
            __stwb((float2 *)(row + left + k), make_float2(v[k], v[k + 1]));
        } else if (!is_even) {
            if (k < kept && left + k < width)
                row[left + k] = v[k];
            if (k + 1 < kept && left + k + 1 < width)
                row[left + k + 1] = v[k + 1];
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    fft_outputs(const float *__restrict__ YS, float *__restrict__ Y, int outputs, int height,
                int width, int filter, int tiles) {
    __shared__ float2 scratch[GROUPS * SCRATCH];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES, o = blockIdx.y;
    const int kept = TILE - filter + 1;
    const int out_height = height - filter + 1, out_width = width - filter + 1;
    const int tiles_y = (out_height + kept - 1) / kept, tiles_x = (out_width + kept - 1) / kept;
    const int pitch = (tiles + 3) / 4 * 4, at = blockIdx.x * GROUPS + group;
    if (at >= pitch) /* by whole warps */
        return;

    float2 v[TILE], w[TILE], *own = scratch + group * SCRATCH;
    load_columns((const float2 *)YS + (size_t)o * pitch + at, (size_t)outputs * pitch, lane, v);
    inverse(v);
#pragma unroll
    for (int r = 0; r < TILE; r++)
        own[r * (LANES + 1) + lane] = make_float2(v[order<TILE>(r)].y, v[order<TILE>(r)].x);
    __syncwarp();
    const float2 *upper = own + lane * (LANES + 1), *lower = upper + LANES * (LANES + 1);
    w[0] = make_float2(upper[0].x, lower[0].x);
    w[TILE / 2] = make_float2(upper[0].y, lower[0].y);
#pragma unroll
    for (int k = 1; k < LANES; k++) {
        const float2 a = upper[k], b = lower[k];
        w[k] = make_float2(a.x - b.y, a.y + b.x);
        w[TILE - k] = make_float2(a.x + b.y, b.x - a.y);
    }
    inverse(w);

    const float scale = 0.25f / (TILE * TILE); /* both spectra had the factor two */
    float a[TILE], b[TILE];
#pragma unroll
    for (int k = 0; k < TILE; k++) {
        a[k] = w[order<TILE>(k)].y * scale;
        b[k] = w[order<TILE>(k)].x * scale;
    }
    const int tile = at % (tiles_y * tiles_x), n = at / (tiles_y * tiles_x);
    const int y = tile / tiles_x * kept + lane, left = tile % tiles_x * kept;
    float *map = Y + ((size_t)n * outputs + o) * out_height * out_width;
    if (at < tiles && lane < kept && y < out_height)
        store_row(map + (size_t)y * out_width, left, out_width, kept, a);
    if (at < tiles && lane + LANES < kept && y + LANES < out_height)
        store_row(map + (size_t)(y + LANES) * out_width, left, out_width, kept, b);
}
