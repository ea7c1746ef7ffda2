/* Fourier transforms of 2 to 32 points in the registers of a thread, in steps of four points. */
#ifndef KERNELS_INCLUDE_EVOKE_FFT_H
#define KERNELS_INCLUDE_EVOKE_FFT_H

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

/* count points, in place. */
template <int count> static __device__ __forceinline__ void transform(float2 *v) {
    if constexpr (count == 2) {
        const float2 a = v[0], b = v[1];
        v[0] = a + b;
        v[1] = a - b;
    } else if constexpr (count == 4) {
        radix4(v[0], v[1], v[2], v[3]);
    } else {
        const int part = count / 4;
#pragma unroll
        for (int n = 0; n < part; n++) {
            radix4(v[n], v[n + part], v[n + 2 * part], v[n + 3 * part]);
#pragma unroll
            for (int k = 1; k < 4; k++)
                v[n + k * part] = turned(v[n + k * part], n * k * (32 / count));
        }
#pragma unroll
        for (int k = 0; k < 4; k++)
            transform<part>(v + k * part);
    }
}

/* Where element k of the result stands. */
template <int count> static __device__ __forceinline__ int order(int k) {
    if constexpr (count <= 4)
        return k;
    else
        return (k & 3) * (count / 4) + order<count / 4>(k >> 2);
}

#endif
