/* Inverse two-dimensional Fourier transforms of a batch of half spectra, to real tiles of 8, 16 or
 * 32 rows, by hand.
 *
 * The steps are those of rfft2d's hand-tuned start from the end on. Half as many lanes as a tile
 * has columns transform it in registers. A spectrum comes through shared memory, four numbers at a
 * time. A lane takes a row, whose columns behind the middle are the conjugates of the row opposite;
 * rows 0 and the middle are transforms of real numbers, and one lane takes both as one row. Rows
 * change to columns through shared memory. A lane takes two neighbouring columns, which are real in
 * the end, as one complex column, so that the lanes write whole rows. All of a tile is done by
 * lanes of one warp, so blocks have no barriers. */
#include "evoke_cuda.h"
#include "evoke_fft.h"

#ifndef WARPS
#define WARPS 2
#endif

/* The inverse transform is the transform with real and imaginary parts exchanged before and after.
 */
static __device__ __forceinline__ float2 exchanged(float2 v) {
    return make_float2(v.y, v.x);
}

static __device__ __forceinline__ float2 conjugate(float2 v) {
    return make_float2(v.x, -v.y);
}

/* a + i b */
static __device__ __forceinline__ float2 joined(float2 a, float2 b) {
    return make_float2(a.x - b.y, a.y + b.x);
}

/* Row `lane` of the spectrum, exchanged; of lane 0, rows 0 and the middle as one. Of columns 0 and
 * the middle, the part counts that the row opposite mirrors. */
template <int TILE>
static __device__ __forceinline__ void load_rows(const float2 *own, int lane, float2 (&v)[TILE]) {
    constexpr int LANES = TILE / 2, COLUMNS = LANES + 1;
    const float2 *upper = own + lane * COLUMNS;
    const float2 *lower = own + (lane == 0 ? LANES : TILE - lane) * COLUMNS;
#pragma unroll
    for (int k = 0; k <= LANES; k++) {
        const float2 a = upper[k], b = lower[k];
        if (k == 0 || k == LANES) {
            v[k] = exchanged(lane == 0 ? make_float2(a.x, b.x)
                                       : make_float2(0.5f * (a.x + b.x), 0.5f * (a.y - b.y)));
        } else {
            v[k] = exchanged(lane == 0 ? joined(a, b) : a);
            v[TILE - k] = exchanged(lane == 0 ? joined(conjugate(a), conjugate(b)) : conjugate(b));
        }
    }
}

/* Shared memory of a warp, in float2: 32 / LANES tiles, padded where the tiles of half a warp would
 * meet in the same banks. */
template <int TILE>
static __device__ __forceinline__ void
invert_tiles(const float *__restrict__ S, float *__restrict__ X, int tiles, float2 *shared) {
    constexpr int LANES = TILE / 2, PITCH = TILE + 2, COLUMNS = LANES + 1;
    constexpr int SCRATCH = LANES * PITCH + (TILE == 16 ? 8 : 0);
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int at = blockIdx.x * (32 * WARPS / LANES) + group;
    float2 *own = shared + group * SCRATCH;

    const float4 *from = (const float4 *)(S + (size_t)at * (2 * TILE * COLUMNS)) + lane;
    float4 *stage = (float4 *)own + lane;
#pragma unroll
    for (int i = 0; i < COLUMNS; i++)
        stage[i * LANES] = at < tiles ? __ldg(from + i * LANES) : make_float4(0, 0, 0, 0);
    __syncwarp();
    float2 v[TILE];
    load_rows(own, lane, v);
    __syncwarp();
    transform<TILE>(v);
#pragma unroll
    for (int x = 0; x < TILE; x += 2) {
        const float2 a = exchanged(v[order<TILE>(x)]), b = exchanged(v[order<TILE>(x + 1)]);
        *(float4 *)(own + lane * PITCH + x) = make_float4(a.x, a.y, b.x, b.y);
    }
    __syncwarp();

    const float4 first = *(const float4 *)(own + 2 * lane);
    v[0] = make_float2(first.z, first.x);
    v[LANES] = make_float2(first.w, first.y);
#pragma unroll
    for (int k = 1; k < LANES; k++) {
        const float4 w = *(const float4 *)(own + k * PITCH + 2 * lane);
        const float2 a = make_float2(w.x, w.y), b = make_float2(w.z, w.w);
        v[k] = exchanged(joined(a, b));
        v[TILE - k] = exchanged(joined(conjugate(a), conjugate(b)));
    }
    transform<TILE>(v);
    if (at < tiles) {
        const float scale = 1.0f / (TILE * TILE);
        float2 *to = (float2 *)X + (size_t)at * (TILE * LANES) + lane;
#pragma unroll
        for (int r = 0; r < TILE; r++) {
            const float2 w = exchanged(v[order<TILE>(r)]);
            __stwb(to + r * LANES, make_float2(w.x * scale, w.y * scale));
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    irfft2d(const float *__restrict__ S, float *__restrict__ X, int tiles, int levels) {
    extern __shared__ float4 shared[];
    if (levels == 3)
        invert_tiles<8>(S, X, tiles, (float2 *)shared);
    else if (levels == 4)
        invert_tiles<16>(S, X, tiles, (float2 *)shared);
    else
        invert_tiles<32>(S, X, tiles, (float2 *)shared);
}
