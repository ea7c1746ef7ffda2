/* The pointwise part of a backward step of an LSTM layer, by hand.
 *
 * A thread has UNITS neighbouring units of a sequence, which move as one vector where H allows it:
 * 650 and 1150 are even. All loads come before the first use of one. A tanh is made of one
 * exponential and one division, and that of small numbers of a polynomial. */
#include "evoke_cuda.h"

#ifndef BLOCK
#define BLOCK 64
#endif
#ifndef UNITS
#define UNITS 2
#endif

/* Elements `j` on of a row of H, as vectors of W; zeros behind the row. */
template <int W>
static __device__ __forceinline__ void load(const float *__restrict__ row, int j, int H,
                                            float v[UNITS]) {
#pragma unroll
    for (int u = 0; u < UNITS; u += W) {
        if (W == 4) {
            const float4 t = j + u < H ? __ldg((const float4 *)(row + j + u))
                                       : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            v[u] = t.x;
            v[(u + 1) % UNITS] = t.y;
            v[(u + 2) % UNITS] = t.z;
            v[(u + 3) % UNITS] = t.w;
        } else if (W == 2) {
            const float2 t =
                j + u < H ? __ldg((const float2 *)(row + j + u)) : make_float2(0.0f, 0.0f);
            v[u] = t.x;
            v[(u + 1) % UNITS] = t.y;
        } else {
            v[u] = j + u < H ? __ldg(row + j + u) : 0.0f;
        }
    }
}

template <int W>
static __device__ __forceinline__ void store(float *__restrict__ row, int j, int H,
                                             const float v[UNITS]) {
#pragma unroll
    for (int u = 0; u < UNITS; u += W) {
        if (j + u < H) {
            if (W == 4)
                __stwb(
                    (float4 *)(row + j + u),
                    make_float4(v[u], v[(u + 1) % UNITS], v[(u + 2) % UNITS], v[(u + 3) % UNITS]));
            else if (W == 2)
                __stwb((float2 *)(row + j + u), make_float2(v[u], v[(u + 1) % UNITS]));
            else
                row[j + u] = v[u];
        }
    }
}

/* Beyond 0.25 by the exponential, below by Taylor's series to x^9: its rest is below 2^-26 x. */
static __device__ __forceinline__ float tanh_of(float x) {
    const float s = x * x;
    const float small =
        x + x * s * (-0.333333333f + s * (0.133333333f + s * (-0.0539682540f + s * 0.0218694885f)));
    const float e = __expf(-2.0f * fabsf(x));
    const float large = copysignf(__fdividef(1.0f - e, 1.0f + e), x);
    return fabsf(x) < 0.25f ? small : large;
}

template <int W>
static __device__ __forceinline__ void
step(const float *__restrict__ dH, const float *__restrict__ dC, const float *__restrict__ gates,
     const float *__restrict__ C, const float *__restrict__ C_out, float *__restrict__ dG,
     float *__restrict__ dC_in, int b, int j, int H) {
    float a[4][UNITS], dh[UNITS], dc[UNITS], before[UNITS], after[UNITS];
    const size_t row = (size_t)b * 4 * H, cell = (size_t)b * H;
#pragma unroll
    for (int gate = 0; gate < 4; gate++)
        load<W>(gates + row + gate * H, j, H, a[gate]);
    load<W>(C_out + cell, j, H, after);
    load<W>(dH + cell, j, H, dh);
    load<W>(dC + cell, j, H, dc);
    load<W>(C + cell, j, H, before);
#pragma unroll
    for (int u = 0; u < UNITS; u++) {
        const float i = a[0][u], f = a[1][u], g = a[2][u], o = a[3][u];
        const float t = tanh_of(after[u]), d = dc[u] + dh[u] * o * (1.0f - t * t);
        a[0][u] = d * g * i * (1.0f - i);
        a[1][u] = d * before[u] * f * (1.0f - f);
        a[2][u] = d * i * (1.0f - g * g);
        a[3][u] = dh[u] * t * o * (1.0f - o);
        dc[u] = d * f;
    }
#pragma unroll
    for (int gate = 0; gate < 4; gate++)
        store<W>(dG + row + gate * H, j, H, a[gate]);
    store<W>(dC_in + cell, j, H, dc);
}

extern "C" __global__ void __launch_bounds__(BLOCK)
    lstm_gates_bp(const float *__restrict__ dH, const float *__restrict__ dC,
                  const float *__restrict__ gates, const float *__restrict__ C,
                  const float *__restrict__ C_out, float *__restrict__ dG,
                  float *__restrict__ dC_in, int B, int H) {
    const int j = (blockIdx.x * BLOCK + threadIdx.x) * UNITS, b = blockIdx.y;
    if (j >= H || b >= B)
        return;
    if (H % UNITS == 0)
        step<UNITS>(dH, dC, gates, C, C_out, dG, dC_in, b, j, H);
    else
        step<1>(dH, dC, gates, C, C_out, dG, dC_in, b, j, H);
}
