/* nvcuda::wmma in all its types and shapes: y = 2 (A B) + C for one warp, matrices as floats in rows, one
 * behind the other in x. The names of the entries say shape, type and layouts of A, B and C. */
#include <cuda_pipeline.h>
#include <mma.h>

using namespace nvcuda;

#define MORE(n) ((n) < 16 ? 16 : (n)) /* elements between rows are a multiple of 16 bytes */

template <class L> struct is_row { enum { yes = 0 }; };
template <> struct is_row<wmma::row_major> { enum { yes = 1 }; };

template <class T> static __device__ void put(T *to, bool rows, int height, int width, const float *x) {
    for (int i = (int)threadIdx.x; i < height * width; i += 32) {
        int r = i / width, c = i % width;
        to[rows ? r * MORE(width) + c : c * MORE(height) + r] = (T)x[i];
    }
}

template <int M, int N, int K, class T, class MEMORY, class SUM, class A, class B, bool C>
static __device__ void product(const float *x, float *y) {
    __shared__ __align__(32) MEMORY a[MORE(M) * MORE(K)], b[MORE(K) * MORE(N)];
    __shared__ __align__(32) SUM c[MORE(M) * MORE(N)];
    put(a, is_row<A>::yes, M, K, x);
    put(b, is_row<B>::yes, K, N, x + M * K);
    put(c, C, M, N, x + M * K + K * N);
    __syncwarp();
    wmma::fragment<wmma::matrix_a, M, N, K, T, A> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, B> fb;
    wmma::fragment<wmma::accumulator, M, N, K, SUM> fc, twice;
    wmma::load_matrix_sync(fa, a, is_row<A>::yes ? MORE(K) : MORE(M));
    wmma::load_matrix_sync(fb, b, is_row<B>::yes ? MORE(N) : MORE(K));
    wmma::load_matrix_sync(fc, c, C ? MORE(N) : MORE(M), C ? wmma::mem_row_major : wmma::mem_col_major);
    wmma::fill_fragment(twice, (SUM)0.0f);
    wmma::mma_sync(twice, fa, fb, twice);
    for (int i = 0; i < twice.num_elements; i++)
        fc.x[i] = (SUM)((float)fc.x[i] + (float)twice.x[i]);
    wmma::mma_sync(fc, fa, fb, fc);
    __syncwarp();
    wmma::store_matrix_sync(c, fc, C ? MORE(N) : MORE(M), C ? wmma::mem_row_major : wmma::mem_col_major);
    __syncwarp();
    for (int i = (int)threadIdx.x; i < M * N; i += 32)
        y[i] = (float)c[C ? i / N * MORE(N) + i % N : i % N * MORE(M) + i / N];
}

#define ENTRY(NAME, M, N, K, T, MEMORY, SUM, A, B, C)                                              \
    extern "C" __global__ void NAME(const float *x, float *y) {                                    \
        product<M, N, K, T, MEMORY, SUM, wmma::A##_major, wmma::B##_major, C>(x, y);               \
    }
#define LAYOUTS(TYPE, M, N, K, T, MEMORY, SUM)                                                     \
    ENTRY(TYPE##_##M##_##N##_##K##_rrr, M, N, K, T, MEMORY, SUM, row, row, true)                   \
    ENTRY(TYPE##_##M##_##N##_##K##_rcr, M, N, K, T, MEMORY, SUM, row, col, true)                   \
    ENTRY(TYPE##_##M##_##N##_##K##_crc, M, N, K, T, MEMORY, SUM, col, row, false)                  \
    ENTRY(TYPE##_##M##_##N##_##K##_ccc, M, N, K, T, MEMORY, SUM, col, col, false)
#define SHAPES(TYPE, T, SUM)                                                                       \
    LAYOUTS(TYPE, 16, 16, 16, T, T, SUM)                                                           \
    LAYOUTS(TYPE, 32, 8, 16, T, T, SUM)                                                            \
    LAYOUTS(TYPE, 8, 32, 16, T, T, SUM)

SHAPES(half, half, half)
SHAPES(float, half, float)
SHAPES(brain, __nv_bfloat16, float)
SHAPES(s8, signed char, int)
SHAPES(u8, unsigned char, int)
LAYOUTS(tf32, 16, 16, 8, wmma::precision::tf32, float, float)
LAYOUTS(double, 8, 8, 4, double, double, double)

/* Sums of another type than the sums that they are added to. */
extern "C" __global__ void mixed(const float *x, float *y) {
    __shared__ __align__(32) half a[256], b[256], h[256];
    __shared__ __align__(32) float f[256];
    put(a, true, 16, 16, x);
    put(b, true, 16, 16, x + 256);
    put(h, true, 16, 16, x + 512);
    __syncwarp();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, half> fh;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> ff;
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, b, 16);
    wmma::load_matrix_sync(fh, h, 16, wmma::mem_row_major);
    wmma::mma_sync(ff, fa, fb, fh);
    wmma::mma_sync(fh, fa, fb, ff);
    wmma::store_matrix_sync(h, fh, 16, wmma::mem_row_major);
    wmma::store_matrix_sync(f, ff, 16, wmma::mem_row_major);
    __syncwarp();
    for (int i = (int)threadIdx.x; i < 256; i += 32)
        y[i] = (float)h[i] - f[i]; /* (2 A B + C) - (A B + C) */
}

/* A sum of bytes that stops at the largest int, and one that wraps around. x[0]: 1 or 0. */
extern "C" __global__ void saturated(const float *x, float *y) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> c;
    wmma::fill_fragment(a, 100);
    wmma::fill_fragment(b, 100);
    wmma::fill_fragment(c, 0x7fffffff);
    wmma::mma_sync(c, a, b, c, x[0] > 0.0f);
    y[threadIdx.x] = (float)c.x[0];
}

/* 10 bits of fraction, ties away from zero. */
extern "C" __global__ void to_tf32(const float *x, float *y) {
    y[threadIdx.x] = wmma::__float_to_tf32(x[threadIdx.x]);
}

/* Copies 4, 8 and 16 bytes to shared memory without registers; the last with zeros at its end. */
extern "C" __global__ void copied(const float *x, float *y) {
    __shared__ __align__(16) float s[3][128];
    const int t = (int)threadIdx.x;
    __pipeline_memcpy_async(&s[0][t], &x[t], 4);
    __pipeline_commit();
    __pipeline_memcpy_async(&s[1][2 * t], &x[2 * t], 8);
    __pipeline_commit();
    __pipeline_memcpy_async(&s[2][4 * t], &x[4 * t], 16, t % 2 ? 4 : 0);
    __pipeline_commit();
    __pipeline_wait_prior(2);
    __syncthreads();
    y[t] = s[0][31 - t];
    __pipeline_wait_prior(0);
    __syncthreads();
    for (int i = t; i < 64; i += 32)
        y[32 + i] = s[1][63 - i];
    for (int i = t; i < 128; i += 32)
        y[96 + i] = s[2][127 - i];
}
