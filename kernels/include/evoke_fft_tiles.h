/* Spectra of real tiles of tile x tile numbers, tile = 8, 16 or 32, and sums of their products, for
 * convolutions in several launches.
 *
 * tile / 2 lanes of a warp transform a tile in registers: a lane takes two rows as one complex row
 * and tells their spectra apart by symmetry; the rows change to columns through shared memory; and
 * a lane takes one of the columns 1 to tile / 2 - 1, or columns 0 and tile / 2, which are real, as
 * one. As tiles are real, half of a spectrum tells the other half: tile * tile / 2 + 2 complex
 * numbers, which are called bins. Spectra have the factor two, which telling apart leaves. */
#ifndef KERNELS_INCLUDE_EVOKE_FFT_TILES_H
#define KERNELS_INCLUDE_EVOKE_FFT_TILES_H

#include "evoke_fft.h"

/* The tiles of a warp, 8, 4 or 2; numbers of tiles are rounded up to multiples of this. */
#define FFT_WHOLE(tile) (64 / (tile))

/* Shared memory of the lanes of a tile, in float2. */
#define FFT_SCRATCH(tile) ((tile) * ((tile) / 2 + 1) + 1)

/* count numbers of row `y` of a map, from column `left` on, as v.x (part 0) or v.y (part 1), zero
 * outside; count and `left` are multiples of four. */
template <int part, int count, int tile>
static __device__ __forceinline__ void load_row(const float *__restrict__ map, int y, int left,
                                                int height, int width, float2 (&v)[tile]) {
    const float *row = map + (size_t)y * width;
    const bool is_there = y < height, wide = (width & 3) == 0;
#pragma unroll
    for (int x = 0; x < count; x += 4) {
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
        (part ? v[x].y : v[x].x) = w.x;
        (part ? v[x + 1].y : v[x + 1].x) = w.y;
        (part ? v[x + 2].y : v[x + 2].x) = w.z;
        (part ? v[x + 3].y : v[x + 3].x) = w.w;
    }
}

/* Of the transform v of a + i b, a and b real: twice the transforms of a and b at k. */
template <int tile>
static __device__ __forceinline__ float2 real_part(const float2 (&v)[tile], int k) {
    const float2 p = v[order<tile>(k)], q = v[order<tile>((tile - k) % tile)];
    return make_float2(p.x + q.x, p.y - q.y);
}

template <int tile>
static __device__ __forceinline__ float2 imaginary_part(const float2 (&v)[tile], int k) {
    const float2 p = v[order<tile>(k)], q = v[order<tile>((tile - k) % tile)];
    return make_float2(p.y + q.y, q.x - p.x);
}

/* From two rows a lane, `lane` and `lane` + tile / 2, as real and imaginary part, to the spectrum
 * at out[bin * pitch]. */
template <int tile>
static __device__ __forceinline__ void transform_tile(float2 (&v)[tile], float2 *scratch, int lane,
                                                      float2 *out, size_t pitch) {
    constexpr int lanes = tile / 2;
    transform<tile>(v);
    float2 *upper = scratch + lane * (lanes + 1), *lower = upper + lanes * (lanes + 1);
    upper[0] = make_float2(real_part(v, 0).x, real_part(v, lanes).x);
    lower[0] = make_float2(imaginary_part(v, 0).x, imaginary_part(v, lanes).x);
#pragma unroll
    for (int k = 1; k < lanes; k++) {
        upper[k] = real_part(v, k);
        lower[k] = imaginary_part(v, k);
    }
    __syncwarp();
    float2 t[tile];
#pragma unroll
    for (int r = 0; r < tile; r++)
        t[r] = scratch[r * (lanes + 1) + lane];
    transform<tile>(t);
    if (lane == 0) {
#pragma unroll
        for (int k = 0; k <= lanes; k++) {
            const float2 a = real_part(t, k), b = imaginary_part(t, k);
            out[k * pitch] = make_float2(0.5f * a.x, 0.5f * a.y);
            out[(lanes + 1 + k) * pitch] = make_float2(0.5f * b.x, 0.5f * b.y);
        }
    } else {
        out += (lane * tile + 2) * pitch;
#pragma unroll
        for (int k = 0; k < tile; k++)
            out[k * pitch] = t[order<tile>(k)];
    }
}

/* ---- products ---- */

/* sum += a conj(b) */
static __device__ __forceinline__ void add_product(float2 &sum, float2 a, float2 b) {
    sum.x += a.x * b.x;
    sum.x += a.y * b.y;
    sum.y += a.y * b.x;
    sum.y -= a.x * b.y;
}

/* The thread's part of the numbers [k, k + chunk) x [first, first + 2 * pairs), two at a time,
 * zeros where there are none; `pitch` is even. */
template <int chunk, int pairs, int threads, int loads>
static __device__ __forceinline__ void load_pairs(float4 (&v)[loads], const float2 *from, int k,
                                                  int depth, int first, int pitch) {
#pragma unroll
    for (int q = 0; q < loads; q++) {
        const int i = threadIdx.x + q * threads, at = first + i % pairs * 2, row = k + i / pairs;
        v[q] = make_float4(0, 0, 0, 0);
        if (row < depth && i < chunk * pairs && at < pitch)
            v[q] = *(const float4 *)(from + (size_t)row * pitch + at);
    }
}

template <int chunk, int pairs, int threads, int loads>
static __device__ __forceinline__ void store_pairs(float2 (&to)[chunk][2 * pairs],
                                                   const float4 (&v)[loads]) {
#pragma unroll
    for (int q = 0; q < loads; q++) {
        const int i = threadIdx.x + q * threads;
        if (i < chunk * pairs)
            *(float4 *)&to[i / pairs][i % pairs * 2] = v[q];
    }
}

/* C[bin, o, t] = sum over k < depth of A[bin, k, t] conj B[bin, k, o], where rows of t and, in B,
 * of o are rounded up to multiples of `whole`, which is even. Grid: t by 4 columns, o by 4 maps,
 * bins; a block has columns * maps threads along x. A thread has four t, in two pairs, of four o.
 * The numbers of the next chunk rows are loaded ahead. */
template <int columns, int maps, int chunk, int whole = 4>
static __device__ __forceinline__ void
multiply_spectra(const float *__restrict__ A, const float *__restrict__ B, float *__restrict__ C,
                 int depth, int t_count, int o_count) {
    constexpr int threads = columns * maps;
    constexpr int a_loads = (chunk * 2 * columns + threads - 1) / threads;
    constexpr int b_loads = (chunk * 2 * maps + threads - 1) / threads;
    __shared__ __align__(16) float2 a_tile[chunk][4 * columns], b_tile[chunk][4 * maps];
    const int tx = threadIdx.x % columns, ty = threadIdx.x / columns, bin = blockIdx.z;
    const int first_t = blockIdx.x * 4 * columns, first_o = blockIdx.y * 4 * maps;
    const int t_pitch = (t_count + whole - 1) / whole * whole;
    const int o_pitch = (o_count + whole - 1) / whole * whole;
    const float2 *a_from = (const float2 *)A + (size_t)bin * depth * t_pitch;
    const float2 *b_from = (const float2 *)B + (size_t)bin * depth * o_pitch;

    float2 sum[4][4] = {};
    float4 next_a[a_loads], next_b[b_loads];
    load_pairs<chunk, 2 * columns, threads>(next_a, a_from, 0, depth, first_t, t_pitch);
    load_pairs<chunk, 2 * maps, threads>(next_b, b_from, 0, depth, first_o, o_pitch);
    for (int k = 0; k < depth; k += chunk) {
        store_pairs<chunk, 2 * columns, threads>(a_tile, next_a);
        store_pairs<chunk, 2 * maps, threads>(b_tile, next_b);
        __syncthreads();
        load_pairs<chunk, 2 * columns, threads>(next_a, a_from, k + chunk, depth, first_t, t_pitch);
        load_pairs<chunk, 2 * maps, threads>(next_b, b_from, k + chunk, depth, first_o, o_pitch);
#pragma unroll
        for (int row = 0; row < chunk; row++) {
            float2 a[4], b[4];
#pragma unroll
            for (int p = 0; p < 2; p++) {
                const float4 u = *(const float4 *)&a_tile[row][2 * columns * p + 2 * tx];
                const float4 w = *(const float4 *)&b_tile[row][4 * ty + 2 * p];
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
        const int map = first_o + 4 * ty + o;
        float2 *to = (float2 *)C + ((size_t)bin * o_count + map) * t_pitch;
#pragma unroll
        for (int p = 0; p < 2; p++) {
            const int at = first_t + 2 * columns * p + 2 * tx;
            if (map < o_count && at < t_pitch)
                *(float4 *)(to + at) = make_float4(sum[o][2 * p].x, sum[o][2 * p].y,
                                                   sum[o][2 * p + 1].x, sum[o][2 * p + 1].y);
        }
    }
}

/* ---- the inverse ---- */

/* The inverse transform of tile points is the transform with real and imaginary parts exchanged
 * before and after; unscaled. Element k stands in v[order<tile>(k)], still exchanged. */
template <int tile> static __device__ __forceinline__ void inverse(float2 (&v)[tile]) {
#pragma unroll
    for (int k = 0; k < tile; k++)
        v[k] = make_float2(v[k].y, v[k].x);
    transform<tile>(v);
}

/* The lane's columns of a spectrum: of lane 0, columns 0 and tile / 2 as one. */
template <int tile>
static __device__ __forceinline__ void load_columns(const float2 *from, size_t pitch, int lane,
                                                    float2 (&v)[tile]) {
    if (lane == 0) {
#pragma unroll
        for (int k = 0; k <= tile / 2; k++) {
            const float2 a = from[k * pitch], b = from[(tile / 2 + 1 + k) * pitch];
            v[k] = make_float2(a.x - b.y, a.y + b.x);
            if (k > 0 && k < tile / 2)
                v[tile - k] = make_float2(a.x + b.y, b.x - a.y);
        }
    } else {
        from += (lane * tile + 2) * pitch;
#pragma unroll
        for (int k = 0; k < tile; k++)
            v[k] = from[k * pitch];
    }
}

/* From the spectrum at from[bin * pitch] to half of the spectra of the tile's first `rows` rows:
 * scratch[row * (tile / 2 + 1) + k], where number 0 has the real numbers 0 and tile / 2. */
template <int tile>
static __device__ __forceinline__ void invert_columns(const float2 *from, size_t pitch,
                                                      float2 *scratch, int lane, int rows) {
    float2 v[tile];
    load_columns(from, pitch, lane, v);
    inverse(v);
#pragma unroll
    for (int r = 0; r < tile; r++) {
        if (r < rows)
            scratch[r * (tile / 2 + 1) + lane] =
                make_float2(v[order<tile>(r)].y, v[order<tile>(r)].x);
    }
    __syncwarp();
}

/* From those spectra to rows `lane` and `lane` + tile / 2, which stand in v[order<tile>(k)].y and
 * .x, unscaled. */
template <int tile>
static __device__ __forceinline__ void invert_rows(const float2 *scratch, int lane,
                                                   float2 (&v)[tile]) {
    constexpr int lanes = tile / 2;
    const float2 *upper = scratch + lane * (lanes + 1), *lower = upper + lanes * (lanes + 1);
    v[0] = make_float2(upper[0].x, lower[0].x);
    v[lanes] = make_float2(upper[0].y, lower[0].y);
#pragma unroll
    for (int k = 1; k < lanes; k++) {
        const float2 a = upper[k], b = lower[k];
        v[k] = make_float2(a.x - b.y, a.y + b.x);
        v[tile - k] = make_float2(a.x + b.y, b.x - a.y);
    }
    inverse(v);
}

#endif
