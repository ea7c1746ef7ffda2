/* Stands in for NVIDIA's mma.h: nvcuda::wmma, matrix products of a warp by tensor cores (PTX ISA,
 * Warp Level Matrix Multiply-Accumulate Instructions using wmma). A is M x K, B is K x N, C and D
 * are M x N.
 *
 *   A and B                      C and D      M x N x K                              from
 *   half                         half, float  16 x 16 x 16, 32 x 8 x 16, 8 x 32 x 16   sm_70
 *   signed char, unsigned char   int          the same                               sm_72
 *   __nv_bfloat16                float        the same                               sm_80
 *   precision::tf32              float        16 x 16 x 8                            sm_80
 *   double                       double       8 x 8 x 4                              sm_80
 *
 * Numbers of 4 bits and single bits (wmma::experimental) are missing. */
#ifndef KERNELS_INCLUDE_CUDA_MMA_H
#define KERNELS_INCLUDE_CUDA_MMA_H
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "evoke_cuda.h"

#define EVOKE_WARP static __device__ __forceinline__

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

/* A fragment's elements in this thread. Which elements of the matrix they are is not specified. */
template <class T, int COUNT> struct evoke_elements {
    enum { num_elements = COUNT };
    typedef T element_type;
    typedef T storage_element_type;
    __attribute__((aligned(sizeof(T) < 4 ? 4 : sizeof(T)))) T x[COUNT];
};

template <class USE, int M, int N, int K, class T, class LAYOUT = void> class fragment;

template <class LAYOUT> struct evoke_layout;
template <> struct evoke_layout<row_major> {
    enum { number = 0 };
};
template <> struct evoke_layout<col_major> {
    enum { number = 1 };
};

template <class T, int COUNT, class V>
EVOKE_WARP void evoke_fill(evoke_elements<T, COUNT> &to, V value) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        to.x[i] = (T)value;
}
template <class USE, int M, int N, int K, class T, class LAYOUT, class V>
EVOKE_WARP void fill_fragment(fragment<USE, M, N, K, T, LAYOUT> &to, const V &value) {
    evoke_fill(to, value);
}

/* ---- A and B: fragments and loads ---- */

/* T: the type's name; MEMORY: elements in memory; COUNT: elements a thread; WORD: of the builtin */
#define EVOKE_FACTOR(USE, M, N, K, T, MEMORY, COUNT, WORD, LOAD)                                   \
    template <class LAYOUT>                                                                        \
    class fragment<USE, M, N, K, T, LAYOUT> : public evoke_elements<MEMORY, COUNT> {};             \
    template <class LAYOUT>                                                                        \
    EVOKE_WARP void load_matrix_sync(fragment<USE, M, N, K, T, LAYOUT> &to, const MEMORY *from,    \
                                     unsigned int apart) {                                         \
        LOAD((WORD *)to.x, (const WORD *)from, apart, evoke_layout<LAYOUT>::number);               \
    }
#define EVOKE_FACTORS(M, N, K, T, MEMORY, COUNT_A, COUNT_B, WORD, LOAD_A, LOAD_B)                  \
    EVOKE_FACTOR(matrix_a, M, N, K, T, MEMORY, COUNT_A, WORD, LOAD_A)                              \
    EVOKE_FACTOR(matrix_b, M, N, K, T, MEMORY, COUNT_B, WORD, LOAD_B)

EVOKE_FACTORS(16, 16, 16, half, half, 16, 16, int, __hmma_m16n16k16_ld_a, __hmma_m16n16k16_ld_b)
EVOKE_FACTORS(32, 8, 16, half, half, 16, 16, int, __hmma_m32n8k16_ld_a, __hmma_m32n8k16_ld_b)
EVOKE_FACTORS(8, 32, 16, half, half, 16, 16, int, __hmma_m8n32k16_ld_a, __hmma_m8n32k16_ld_b)
EVOKE_FACTORS(16, 16, 16, __nv_bfloat16, __nv_bfloat16, 8, 8, int, __mma_bf16_m16n16k16_ld_a,
              __mma_bf16_m16n16k16_ld_b)
EVOKE_FACTORS(32, 8, 16, __nv_bfloat16, __nv_bfloat16, 16, 4, int, __mma_bf16_m32n8k16_ld_a,
              __mma_bf16_m32n8k16_ld_b)
EVOKE_FACTORS(8, 32, 16, __nv_bfloat16, __nv_bfloat16, 4, 16, int, __mma_bf16_m8n32k16_ld_a,
              __mma_bf16_m8n32k16_ld_b)
EVOKE_FACTORS(16, 16, 16, signed char, signed char, 8, 8, int, __imma_m16n16k16_ld_a_s8,
              __imma_m16n16k16_ld_b_s8)
EVOKE_FACTORS(32, 8, 16, signed char, signed char, 16, 4, int, __imma_m32n8k16_ld_a_s8,
              __imma_m32n8k16_ld_b_s8)
EVOKE_FACTORS(8, 32, 16, signed char, signed char, 4, 16, int, __imma_m8n32k16_ld_a_s8,
              __imma_m8n32k16_ld_b_s8)
EVOKE_FACTORS(16, 16, 16, unsigned char, unsigned char, 8, 8, int, __imma_m16n16k16_ld_a_u8,
              __imma_m16n16k16_ld_b_u8)
EVOKE_FACTORS(32, 8, 16, unsigned char, unsigned char, 16, 4, int, __imma_m32n8k16_ld_a_u8,
              __imma_m32n8k16_ld_b_u8)
EVOKE_FACTORS(8, 32, 16, unsigned char, unsigned char, 4, 16, int, __imma_m8n32k16_ld_a_u8,
              __imma_m8n32k16_ld_b_u8)
EVOKE_FACTORS(16, 16, 8, precision::tf32, float, 4, 4, int, __mma_tf32_m16n16k8_ld_a,
              __mma_tf32_m16n16k8_ld_b)
EVOKE_FACTORS(8, 8, 4, double, double, 1, 1, double, __dmma_m8n8k4_ld_a, __dmma_m8n8k4_ld_b)
#undef EVOKE_FACTORS
#undef EVOKE_FACTOR

/* ---- C and D: fragments, loads and stores ---- */

#define EVOKE_SUMS(M, N, K, T, COUNT, WORD, LOAD, STORE)                                           \
    template <> class fragment<accumulator, M, N, K, T> : public evoke_elements<T, COUNT> {};      \
    EVOKE_WARP void load_matrix_sync(fragment<accumulator, M, N, K, T> &to, const T *from,         \
                                     unsigned int apart, layout_t layout) {                        \
        if (layout == mem_row_major)                                                               \
            LOAD((WORD *)to.x, (const WORD *)from, apart, 0);                                      \
        else                                                                                       \
            LOAD((WORD *)to.x, (const WORD *)from, apart, 1);                                      \
    }                                                                                              \
    EVOKE_WARP void store_matrix_sync(T *to, const fragment<accumulator, M, N, K, T> &from,        \
                                      unsigned int apart, layout_t layout) {                       \
        if (layout == mem_row_major)                                                               \
            STORE((WORD *)to, (WORD *)from.x, apart, 0);                                           \
        else                                                                                       \
            STORE((WORD *)to, (WORD *)from.x, apart, 1);                                           \
    }

EVOKE_SUMS(16, 16, 16, half, 8, int, __hmma_m16n16k16_ld_c_f16, __hmma_m16n16k16_st_c_f16)
EVOKE_SUMS(32, 8, 16, half, 8, int, __hmma_m32n8k16_ld_c_f16, __hmma_m32n8k16_st_c_f16)
EVOKE_SUMS(8, 32, 16, half, 8, int, __hmma_m8n32k16_ld_c_f16, __hmma_m8n32k16_st_c_f16)
EVOKE_SUMS(16, 16, 16, float, 8, float, __hmma_m16n16k16_ld_c_f32, __hmma_m16n16k16_st_c_f32)
EVOKE_SUMS(32, 8, 16, float, 8, float, __hmma_m32n8k16_ld_c_f32, __hmma_m32n8k16_st_c_f32)
EVOKE_SUMS(8, 32, 16, float, 8, float, __hmma_m8n32k16_ld_c_f32, __hmma_m8n32k16_st_c_f32)
EVOKE_SUMS(16, 16, 16, int, 8, int, __imma_m16n16k16_ld_c, __imma_m16n16k16_st_c_i32)
EVOKE_SUMS(32, 8, 16, int, 8, int, __imma_m32n8k16_ld_c, __imma_m32n8k16_st_c_i32)
EVOKE_SUMS(8, 32, 16, int, 8, int, __imma_m8n32k16_ld_c, __imma_m8n32k16_st_c_i32)
EVOKE_SUMS(16, 16, 8, float, 8, float, __mma_tf32_m16n16k8_ld_c, __mma_m16n16k8_st_c_f32)
EVOKE_SUMS(8, 8, 4, double, 2, double, __dmma_m8n8k4_ld_c, __dmma_m8n8k4_st_c_f64)
#undef EVOKE_SUMS

/* ---- products ---- */

#define EVOKE_PRODUCT(M, N, K, T, WORD, D, D_WORD, C, C_WORD, PRODUCT)                             \
    template <class A, class B>                                                                    \
    EVOKE_WARP void mma_sync(                                                                      \
        fragment<accumulator, M, N, K, D> &d, const fragment<matrix_a, M, N, K, T, A> &a,          \
        const fragment<matrix_b, M, N, K, T, B> &b, const fragment<accumulator, M, N, K, C> &c) {  \
        PRODUCT((D_WORD *)d.x, (const WORD *)a.x, (const WORD *)b.x, (const C_WORD *)c.x,          \
                2 * evoke_layout<A>::number + evoke_layout<B>::number, 0);                         \
    }
/* Sums of bytes may stop at the ends of int in place of wrapping around. */
#define EVOKE_BYTES(M, N, K, T, PRODUCT)                                                           \
    template <class A, class B>                                                                    \
    EVOKE_WARP void mma_sync(                                                                      \
        fragment<accumulator, M, N, K, int> &d, const fragment<matrix_a, M, N, K, T, A> &a,        \
        const fragment<matrix_b, M, N, K, T, B> &b, const fragment<accumulator, M, N, K, int> &c,  \
        bool saturate = false) {                                                                   \
        if (saturate)                                                                              \
            PRODUCT(d.x, (const int *)a.x, (const int *)b.x, c.x,                                  \
                    2 * evoke_layout<A>::number + evoke_layout<B>::number, 1);                     \
        else                                                                                       \
            PRODUCT(d.x, (const int *)a.x, (const int *)b.x, c.x,                                  \
                    2 * evoke_layout<A>::number + evoke_layout<B>::number, 0);                     \
    }

EVOKE_PRODUCT(16, 16, 16, half, int, half, int, half, int, __hmma_m16n16k16_mma_f16f16)
EVOKE_PRODUCT(32, 8, 16, half, int, half, int, half, int, __hmma_m32n8k16_mma_f16f16)
EVOKE_PRODUCT(8, 32, 16, half, int, half, int, half, int, __hmma_m8n32k16_mma_f16f16)
EVOKE_PRODUCT(16, 16, 16, half, int, float, float, float, float, __hmma_m16n16k16_mma_f32f32)
EVOKE_PRODUCT(32, 8, 16, half, int, float, float, float, float, __hmma_m32n8k16_mma_f32f32)
EVOKE_PRODUCT(8, 32, 16, half, int, float, float, float, float, __hmma_m8n32k16_mma_f32f32)
EVOKE_PRODUCT(16, 16, 16, half, int, float, float, half, int, __hmma_m16n16k16_mma_f32f16)
EVOKE_PRODUCT(32, 8, 16, half, int, float, float, half, int, __hmma_m32n8k16_mma_f32f16)
EVOKE_PRODUCT(8, 32, 16, half, int, float, float, half, int, __hmma_m8n32k16_mma_f32f16)
EVOKE_PRODUCT(16, 16, 16, half, int, half, int, float, float, __hmma_m16n16k16_mma_f16f32)
EVOKE_PRODUCT(32, 8, 16, half, int, half, int, float, float, __hmma_m32n8k16_mma_f16f32)
EVOKE_PRODUCT(8, 32, 16, half, int, half, int, float, float, __hmma_m8n32k16_mma_f16f32)
EVOKE_PRODUCT(16, 16, 16, __nv_bfloat16, int, float, float, float, float,
              __mma_bf16_m16n16k16_mma_f32)
EVOKE_PRODUCT(32, 8, 16, __nv_bfloat16, int, float, float, float, float,
              __mma_bf16_m32n8k16_mma_f32)
EVOKE_PRODUCT(8, 32, 16, __nv_bfloat16, int, float, float, float, float,
              __mma_bf16_m8n32k16_mma_f32)
EVOKE_PRODUCT(16, 16, 8, precision::tf32, int, float, float, float, float,
              __mma_tf32_m16n16k8_mma_f32)
EVOKE_PRODUCT(8, 8, 4, double, double, double, double, double, double, __dmma_m8n8k4_mma_f64)
EVOKE_BYTES(16, 16, 16, signed char, __imma_m16n16k16_mma_s8)
EVOKE_BYTES(32, 8, 16, signed char, __imma_m32n8k16_mma_s8)
EVOKE_BYTES(8, 32, 16, signed char, __imma_m8n32k16_mma_s8)
EVOKE_BYTES(16, 16, 16, unsigned char, __imma_m16n16k16_mma_u8)
EVOKE_BYTES(32, 8, 16, unsigned char, __imma_m32n8k16_mma_u8)
EVOKE_BYTES(8, 32, 16, unsigned char, __imma_m8n32k16_mma_u8)
#undef EVOKE_PRODUCT
#undef EVOKE_BYTES

/* A float as TF32 has it: 8 bits of exponent, 10 of fraction, rounded to the nearest, ties away
 * from zero. */
EVOKE_WARP float __float_to_tf32(float x) {
    return __uint_as_float((unsigned int)__nvvm_f2tf32_rna(x));
}

} // namespace wmma
} // namespace nvcuda

#undef EVOKE_WARP
#endif
