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

#ifndef WARPS
#define WARPS 2
#endif

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
