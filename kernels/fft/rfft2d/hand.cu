/* Two-dimensional Fourier transforms of a batch of real tiles of 8, 16 or 32 rows, by hand.
 *
 * Half as many lanes as a tile has columns transform it in registers. A lane takes two neighbouring
 * columns as one complex column, so that the lanes read whole rows, and tells their transforms
 * apart by symmetry: rows 0 to the middle. These change from columns to rows through shared memory,
 * rows 0 and the middle, which are transforms of real numbers, as one. A lane transforms one row;
 * the conjugate of the columns behind its middle is the row opposite. The results are put together
 * in shared memory, in the order of S, and written four numbers at a time. All of a tile is done by
 * lanes of one warp, so blocks have no barriers. */
#include "evoke_cuda.h"
#include "evoke_fft.h"

#ifndef WARPS
#define WARPS 2
#endif

/* Shared memory of a warp, in float2: 32 / LANES tiles, padded where the tiles of half a warp would
 * meet in the same banks. */
template <int TILE>
static __device__ __forceinline__ void
transform_tiles(const float *__restrict__ X, float *__restrict__ S, int tiles, float2 *shared) {
    constexpr int LANES = TILE / 2, PITCH = TILE + 2, COLUMNS = LANES + 1;
    constexpr int SCRATCH = LANES * PITCH + (TILE == 16 ? 8 : 0);
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const int at = blockIdx.x * (32 * WARPS / LANES) + group;
    float2 *own = shared + group * SCRATCH;

    float2 v[TILE];
    const float2 *from = (const float2 *)X + (size_t)at * (TILE * LANES) + lane;
#pragma unroll
    for (int r = 0; r < TILE; r++)
        v[r] = at < tiles ? __ldg(from + r * LANES) : make_float2(0, 0);
    transform<TILE>(v);

    /* Twice the two columns' transforms; of row 0, both real rows once. */
    const float2 first = v[order<TILE>(0)], middle = v[order<TILE>(LANES)];
    *(float4 *)(own + 2 * lane) = make_float4(first.x, middle.x, first.y, middle.y);
#pragma unroll
    for (int k = 1; k < LANES; k++) {
        const float2 p = v[order<TILE>(k)], q = v[order<TILE>(TILE - k)];
        *(float4 *)(own + k * PITCH + 2 * lane) =
            make_float4(p.x + q.x, p.y - q.y, p.y + q.y, q.x - p.x);
    }
    __syncwarp();
#pragma unroll
    for (int x = 0; x < TILE; x += 2) {
        const float4 w = *(const float4 *)(own + lane * PITCH + x);
        v[x] = make_float2(w.x, w.y);
        v[x + 1] = make_float2(w.z, w.w);
    }
    __syncwarp();
    transform<TILE>(v);

    /* Lane 0 tells its two rows apart; the others have a row and the one opposite. */
    float2 *upper = own + lane * COLUMNS,
           *lower = own + (lane == 0 ? LANES : TILE - lane) * COLUMNS;
#pragma unroll
    for (int k = 0; k <= LANES; k++) {
        const float2 p = v[order<TILE>(k)], q = v[order<TILE>((TILE - k) % TILE)];
        const float2 a = lane == 0 ? make_float2(p.x + q.x, p.y - q.y) : p;
        const float2 b = lane == 0 ? make_float2(p.y + q.y, q.x - p.x) : make_float2(q.x, -q.y);
        upper[k] = make_float2(0.5f * a.x, 0.5f * a.y);
        lower[k] = make_float2(0.5f * b.x, 0.5f * b.y);
    }
    __syncwarp();
    if (at < tiles) {
        float4 *to = (float4 *)(S + (size_t)at * (2 * TILE * COLUMNS)) + lane;
        const float4 *stage = (const float4 *)own + lane;
#pragma unroll
        for (int i = 0; i < COLUMNS; i++)
            __stwb(to + i * LANES, stage[i * LANES]);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    rfft2d(const float *__restrict__ X, float *__restrict__ S, int tiles, int levels) {
    extern __shared__ float4 shared[];
    if (levels == 3)
        transform_tiles<8>(X, S, tiles, (float2 *)shared);
    else if (levels == 4)
        transform_tiles<16>(X, S, tiles, (float2 *)shared);
    else
        transform_tiles<32>(X, S, tiles, (float2 *)shared);
}
