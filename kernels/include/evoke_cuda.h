/* CUDA C for clang without a CUDA SDK: the part of CUDA's headers that kernels use.
 *
 * A kernel source begins with `#include "evoke_cuda.h"`. Under nvcc, which brings its own headers,
 * this file is empty. Under clang, compile with `-x cuda -nocudainc -nocudalib --cuda-device-only`
 * and a PTX version of at least 6.0 (for example `--cuda-feature=+ptx78`). Without an SDK, clang
 * assumes an older version, and the .sync warp functions need 6.0.
 *
 * Contents: the qualifiers, threadIdx and its kin, vector types, barriers, warp functions, atomics,
 * bit functions, and float mathematics. Functions with a correctly rounded or exact PTX instruction
 * use LLVM's generic intrinsics, so that the optimiser understands them. There is no libdevice, so
 * the other functions are written out below. tests/kernels/test_cuda_math.c runs expf, exp2f, logf,
 * log2f, tanhf, sinf, cosf, sinpif and cospif in the virtual machine, and holds them to 3 units in
 * the last place of the double-precision result at any finite argument. The functions with two
 * underscores (__expf, __sinf, ...) are the bare approximate instructions. */
#ifndef KERNELS_INCLUDE_EVOKE_CUDA_H
#define KERNELS_INCLUDE_EVOKE_CUDA_H

#if defined(__clang__) && defined(__CUDA__)

/* ---- qualifiers --------------------------------------------------------------------------------
 */

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(n) __attribute__((aligned(n)))

/* Attributes of the functions that this header defines. */
#define EVOKE_FN static __device__ __forceinline__

typedef __SIZE_TYPE__ size_t;

/* The device's part of C's library (the virtual machine knows these). Declared here, because the
 * C++ headers that a source may include call them. */
extern "C" {
__device__ int vprintf(const char *format, const char *values);
__device__ int printf(const char *format, ...);
__device__ void *malloc(size_t bytes);
__device__ void free(void *at);
__device__ void __assertfail(const char *says, const char *file, unsigned int line,
                             const char *function, size_t char_bytes);
static __inline__ __device__ void __assert_fail(const char *says, const char *file,
                                                unsigned int line, const char *function) {
    __assertfail(says, file, line, function, 1);
}
}

/* ---- vector types ------------------------------------------------------------------------------
 */

#define EVOKE_VECTOR(scalar, name, align2, align4)                                                 \
    struct name##1 {                                                                               \
        scalar x;                                                                                  \
    };                                                                                             \
    struct __attribute__((aligned(align2))) name##2 {                                              \
        scalar x, y;                                                                               \
    };                                                                                             \
    struct name##3 {                                                                               \
        scalar x, y, z;                                                                            \
    };                                                                                             \
    struct __attribute__((aligned(align4))) name##4 {                                              \
        scalar x, y, z, w;                                                                         \
    };                                                                                             \
    static __inline__ __host__ __device__ name##1 make_##name##1(scalar x) {                       \
        return {x};                                                                                \
    }                                                                                              \
    static __inline__ __host__ __device__ name##2 make_##name##2(scalar x, scalar y) {             \
        return {x, y};                                                                             \
    }                                                                                              \
    static __inline__ __host__ __device__ name##3 make_##name##3(scalar x, scalar y, scalar z) {   \
        return {x, y, z};                                                                          \
    }                                                                                              \
    static __inline__ __host__ __device__ name##4 make_##name##4(scalar x, scalar y, scalar z,     \
                                                                 scalar w) {                       \
        return {x, y, z, w};                                                                       \
    }

EVOKE_VECTOR(signed char, char, 2, 4)
EVOKE_VECTOR(unsigned char, uchar, 2, 4)
EVOKE_VECTOR(short, short, 4, 8)
EVOKE_VECTOR(unsigned short, ushort, 4, 8)
EVOKE_VECTOR(int, int, 8, 16)
EVOKE_VECTOR(unsigned int, uint, 8, 16)
EVOKE_VECTOR(long long, longlong, 16, 16)
EVOKE_VECTOR(unsigned long long, ulonglong, 16, 16)
EVOKE_VECTOR(float, float, 8, 16)
EVOKE_VECTOR(double, double, 16, 16)
#undef EVOKE_VECTOR

struct dim3 {
    unsigned int x, y, z;
    constexpr __host__ __device__ dim3(unsigned int of_x = 1, unsigned int of_y = 1,
                                       unsigned int of_z = 1)
        : x(of_x), y(of_y), z(of_z) {}
    constexpr __host__ __device__ dim3(uint3 of) : x(of.x), y(of.y), z(of.z) {}
    constexpr __host__ __device__ operator uint3() const { return {x, y, z}; }
};

/* ---- coordinates of a thread --------------------------------------------------------------------
 */

/* Reading threadIdx.x calls a getter (a property declaration of clang), and the getter reads the
 * special register. */
#define EVOKE_PLACE(type, reg)                                                                     \
    struct type {                                                                                  \
        __declspec(property(get = read_x)) unsigned int x;                                         \
        __declspec(property(get = read_y)) unsigned int y;                                         \
        __declspec(property(get = read_z)) unsigned int z;                                         \
        static __inline__ __attribute__((always_inline, device)) unsigned int read_x(void) {       \
            return __nvvm_read_ptx_sreg_##reg##_x();                                               \
        }                                                                                          \
        static __inline__ __attribute__((always_inline, device)) unsigned int read_y(void) {       \
            return __nvvm_read_ptx_sreg_##reg##_y();                                               \
        }                                                                                          \
        static __inline__ __attribute__((always_inline, device)) unsigned int read_z(void) {       \
            return __nvvm_read_ptx_sreg_##reg##_z();                                               \
        }                                                                                          \
        __attribute__((device)) operator uint3() const {                                           \
            return {read_x(), read_y(), read_z()};                                                 \
        }                                                                                          \
        __attribute__((device)) operator dim3() const {                                            \
            return {read_x(), read_y(), read_z()};                                                 \
        }                                                                                          \
    };
EVOKE_PLACE(evoke_thread_index, tid)
EVOKE_PLACE(evoke_block_index, ctaid)
EVOKE_PLACE(evoke_block_size, ntid)
EVOKE_PLACE(evoke_grid_size, nctaid)
#undef EVOKE_PLACE

extern const __device__ __attribute__((weak)) evoke_thread_index threadIdx;
extern const __device__ __attribute__((weak)) evoke_block_index blockIdx;
extern const __device__ __attribute__((weak)) evoke_block_size blockDim;
extern const __device__ __attribute__((weak)) evoke_grid_size gridDim;
#define warpSize 32

/* ---- barriers and fences -----------------------------------------------------------------------
 */

/* __syncthreads() itself is a builtin function of clang. */
EVOKE_FN int __syncthreads_or(int predicate) {
    return __nvvm_bar0_or(predicate);
}
EVOKE_FN int __syncthreads_and(int predicate) {
    return __nvvm_bar0_and(predicate);
}
EVOKE_FN int __syncthreads_count(int predicate) {
    return __nvvm_bar0_popc(predicate);
}
EVOKE_FN void __syncwarp(unsigned int mask = 0xffffffffu) {
    __nvvm_bar_warp_sync(mask);
}
EVOKE_FN void __threadfence_block(void) {
    __nvvm_membar_cta();
}
EVOKE_FN void __threadfence(void) {
    __nvvm_membar_gl();
}
EVOKE_FN void __threadfence_system(void) {
    __nvvm_membar_sys();
}

/* ---- warp functions ----------------------------------------------------------------------------
 */

/* The last operand of shfl packs the clamp and the segment mask (PTX ISA, "shfl.sync"). */
#define EVOKE_SHUFFLE(name, builtin, clamp)                                                        \
    EVOKE_FN int name(unsigned int mask, int value, int lane, int width = 32) {                    \
        return __nvvm_shfl_sync_##builtin##_i32(mask, value, lane, ((32 - width) << 8) | clamp);   \
    }                                                                                              \
    EVOKE_FN unsigned int name(unsigned int mask, unsigned int value, int lane, int width = 32) {  \
        return (unsigned int)__nvvm_shfl_sync_##builtin##_i32(mask, (int)value, lane,              \
                                                              ((32 - width) << 8) | clamp);        \
    }                                                                                              \
    EVOKE_FN float name(unsigned int mask, float value, int lane, int width = 32) {                \
        return __nvvm_shfl_sync_##builtin##_f32(mask, value, lane, ((32 - width) << 8) | clamp);   \
    }
EVOKE_SHUFFLE(__shfl_sync, idx, 0x1f)
EVOKE_SHUFFLE(__shfl_down_sync, down, 0x1f)
EVOKE_SHUFFLE(__shfl_xor_sync, bfly, 0x1f)
EVOKE_SHUFFLE(__shfl_up_sync, up, 0)
#undef EVOKE_SHUFFLE

EVOKE_FN unsigned int __ballot_sync(unsigned int mask, int predicate) {
    return __nvvm_vote_ballot_sync(mask, predicate != 0);
}
EVOKE_FN int __any_sync(unsigned int mask, int predicate) {
    return __nvvm_vote_any_sync(mask, predicate != 0);
}
EVOKE_FN int __all_sync(unsigned int mask, int predicate) {
    return __nvvm_vote_all_sync(mask, predicate != 0);
}
EVOKE_FN unsigned int __activemask(void) {
    return __nvvm_activemask();
}
EVOKE_FN unsigned int evoke_lane(void) {
    return __nvvm_read_ptx_sreg_laneid();
}

/* ---- memory ------------------------------------------------------------------------------------
 */

/* Loads through the read-only path (ld.global.nc). The memory must not be written during the
 * launch. */
typedef float evoke_f2 __attribute__((ext_vector_type(2)));
typedef float evoke_f4 __attribute__((ext_vector_type(4)));
typedef int evoke_i2 __attribute__((ext_vector_type(2)));
typedef int evoke_i4 __attribute__((ext_vector_type(4)));
EVOKE_FN float __ldg(const float *p) {
    return __nvvm_ldg_f(p);
}
EVOKE_FN double __ldg(const double *p) {
    return __nvvm_ldg_d(p);
}
EVOKE_FN int __ldg(const int *p) {
    return __nvvm_ldg_i(p);
}
EVOKE_FN unsigned int __ldg(const unsigned int *p) {
    return __nvvm_ldg_ui(p);
}
EVOKE_FN float2 __ldg(const float2 *p) {
    evoke_f2 v = __nvvm_ldg_f2((const evoke_f2 *)p);
    return {v.x, v.y};
}
EVOKE_FN float4 __ldg(const float4 *p) {
    evoke_f4 v = __nvvm_ldg_f4((const evoke_f4 *)p);
    return {v.x, v.y, v.z, v.w};
}
EVOKE_FN int2 __ldg(const int2 *p) {
    evoke_i2 v = __nvvm_ldg_i2((const evoke_i2 *)p);
    return {v.x, v.y};
}
EVOKE_FN int4 __ldg(const int4 *p) {
    evoke_i4 v = __nvvm_ldg_i4((const evoke_i4 *)p);
    return {v.x, v.y, v.z, v.w};
}

/* Loads and stores of a whole vector with the default cache policy. clang splits `*p` into the
 * members of the struct; these functions stay one instruction under any optimisation. */
EVOKE_FN float __ldca(const float *p) {
    return *p;
}
EVOKE_FN float2 __ldca(const float2 *p) {
    evoke_f2 v = *(const evoke_f2 *)p;
    return {v.x, v.y};
}
EVOKE_FN float4 __ldca(const float4 *p) {
    evoke_f4 v = *(const evoke_f4 *)p;
    return {v.x, v.y, v.z, v.w};
}
EVOKE_FN void __stwb(float *p, float v) {
    *p = v;
}
EVOKE_FN void __stwb(float2 *p, float2 v) {
    *(evoke_f2 *)p = evoke_f2{v.x, v.y};
}
EVOKE_FN void __stwb(float4 *p, float4 v) {
    *(evoke_f4 *)p = evoke_f4{v.x, v.y, v.z, v.w};
}

/* ---- atomics -----------------------------------------------------------------------------------
 */

EVOKE_FN int atomicAdd(int *p, int v) {
    return __nvvm_atom_add_gen_i(p, v);
}
EVOKE_FN unsigned int atomicAdd(unsigned int *p, unsigned int v) {
    return (unsigned int)__nvvm_atom_add_gen_i((int *)p, (int)v);
}
EVOKE_FN unsigned long long atomicAdd(unsigned long long *p, unsigned long long v) {
    return (unsigned long long)__nvvm_atom_add_gen_ll((long long *)p, (long long)v);
}
EVOKE_FN float atomicAdd(float *p, float v) {
    return __nvvm_atom_add_gen_f(p, v);
}
EVOKE_FN double atomicAdd(double *p, double v) {
    return __nvvm_atom_add_gen_d(p, v);
}
EVOKE_FN int atomicSub(int *p, int v) {
    return __nvvm_atom_sub_gen_i(p, v);
}
EVOKE_FN int atomicMin(int *p, int v) {
    return __nvvm_atom_min_gen_i(p, v);
}
EVOKE_FN int atomicMax(int *p, int v) {
    return __nvvm_atom_max_gen_i(p, v);
}
EVOKE_FN unsigned int atomicMin(unsigned int *p, unsigned int v) {
    return __nvvm_atom_min_gen_ui(p, v);
}
EVOKE_FN unsigned int atomicMax(unsigned int *p, unsigned int v) {
    return __nvvm_atom_max_gen_ui(p, v);
}
EVOKE_FN int atomicAnd(int *p, int v) {
    return __nvvm_atom_and_gen_i(p, v);
}
EVOKE_FN int atomicOr(int *p, int v) {
    return __nvvm_atom_or_gen_i(p, v);
}
EVOKE_FN int atomicXor(int *p, int v) {
    return __nvvm_atom_xor_gen_i(p, v);
}
EVOKE_FN int atomicExch(int *p, int v) {
    return __nvvm_atom_xchg_gen_i(p, v);
}
EVOKE_FN int atomicCAS(int *p, int expected, int v) {
    return __nvvm_atom_cas_gen_i(p, expected, v);
}
EVOKE_FN unsigned int atomicCAS(unsigned int *p, unsigned int expected, unsigned int v) {
    return (unsigned int)__nvvm_atom_cas_gen_i((int *)p, (int)expected, (int)v);
}
EVOKE_FN unsigned int atomicInc(unsigned int *p, unsigned int limit) {
    return __nvvm_atom_inc_gen_ui(p, limit);
}
EVOKE_FN unsigned int atomicDec(unsigned int *p, unsigned int limit) {
    return __nvvm_atom_dec_gen_ui(p, limit);
}

/* ---- bits and conversions ----------------------------------------------------------------------
 */

EVOKE_FN int __popc(unsigned int x) {
    return __builtin_popcount(x);
}
EVOKE_FN int __popcll(unsigned long long x) {
    return __builtin_popcountll(x);
}
EVOKE_FN int __clz(int x) {
    return x ? __builtin_clz((unsigned int)x) : 32;
}
EVOKE_FN int __clzll(long long x) {
    return x ? __builtin_clzll((unsigned long long)x) : 64;
}
EVOKE_FN int __ffs(int x) {
    return __builtin_ffs(x);
}
EVOKE_FN int __ffsll(long long x) {
    return __builtin_ffsll(x);
}
EVOKE_FN unsigned int __brev(unsigned int x) {
    return __builtin_bitreverse32(x);
}
EVOKE_FN unsigned int __byte_perm(unsigned int a, unsigned int b, unsigned int s) {
    return __nvvm_prmt(a, b, s);
}
EVOKE_FN unsigned int __umulhi(unsigned int a, unsigned int b) {
    return (unsigned int)(((unsigned long long)a * b) >> 32);
}
EVOKE_FN int __float_as_int(float x) {
    return __builtin_bit_cast(int, x);
}
EVOKE_FN unsigned int __float_as_uint(float x) {
    return __builtin_bit_cast(unsigned int, x);
}
EVOKE_FN float __int_as_float(int x) {
    return __builtin_bit_cast(float, x);
}
EVOKE_FN float __uint_as_float(unsigned int x) {
    return __builtin_bit_cast(float, x);
}
EVOKE_FN int __float2int_rn(float x) {
    return __nvvm_f2i_rn(x);
}
EVOKE_FN int __float2int_rz(float x) {
    return __nvvm_f2i_rz(x);
}
EVOKE_FN float __int2float_rn(int x) {
    return (float)x;
}

/* ---- minimum, maximum, absolute value ----------------------------------------------------------
 */

EVOKE_FN int min(int a, int b) {
    return a < b ? a : b;
}
EVOKE_FN int max(int a, int b) {
    return a > b ? a : b;
}
EVOKE_FN unsigned int min(unsigned int a, unsigned int b) {
    return a < b ? a : b;
}
EVOKE_FN unsigned int max(unsigned int a, unsigned int b) {
    return a > b ? a : b;
}
EVOKE_FN long long min(long long a, long long b) {
    return a < b ? a : b;
}
EVOKE_FN long long max(long long a, long long b) {
    return a > b ? a : b;
}
EVOKE_FN float min(float a, float b) {
    return __builtin_fminf(a, b);
}
EVOKE_FN float max(float a, float b) {
    return __builtin_fmaxf(a, b);
}
EVOKE_FN int abs(int a) {
    return a < 0 ? -a : a;
}
EVOKE_FN float fminf(float a, float b) {
    return __builtin_fminf(a, b);
}
EVOKE_FN float fmaxf(float a, float b) {
    return __builtin_fmaxf(a, b);
}
EVOKE_FN double fmin(double a, double b) {
    return __builtin_fmin(a, b);
}
EVOKE_FN double fmax(double a, double b) {
    return __builtin_fmax(a, b);
}
EVOKE_FN float fabsf(float x) {
    return __builtin_fabsf(x);
}
EVOKE_FN double fabs(double x) {
    return __builtin_fabs(x);
}
EVOKE_FN float copysignf(float x, float sign) {
    return __builtin_copysignf(x, sign);
}

/* ---- exact and correctly rounded ---------------------------------------------------------------
 */

EVOKE_FN float fmaf(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
EVOKE_FN double fma(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
EVOKE_FN float sqrtf(float x) {
    return __builtin_sqrtf(x);
}
EVOKE_FN double sqrt(double x) {
    return __builtin_sqrt(x);
}
EVOKE_FN float floorf(float x) {
    return __builtin_floorf(x);
}
EVOKE_FN float ceilf(float x) {
    return __builtin_ceilf(x);
}
EVOKE_FN float truncf(float x) {
    return __builtin_truncf(x);
}
EVOKE_FN float rintf(float x) {
    return __builtin_rintf(x);
}
EVOKE_FN float __fadd_rn(float a, float b) {
    return __nvvm_add_rn_f(a, b);
}
EVOKE_FN float __fmul_rn(float a, float b) {
    return __nvvm_mul_rn_f(a, b);
}
EVOKE_FN float __fmaf_rn(float a, float b, float c) {
    return __nvvm_fma_rn_f(a, b, c);
}
EVOKE_FN float __fdiv_rn(float a, float b) {
    return __nvvm_div_rn_f(a, b);
}
EVOKE_FN float __frcp_rn(float a) {
    return __nvvm_rcp_rn_f(a);
}
EVOKE_FN float __fsqrt_rn(float a) {
    return __nvvm_sqrt_rn_f(a);
}

/* ---- bare approximate instructions -------------------------------------------------------------
 */

EVOKE_FN float rsqrtf(float x) {
    return __nvvm_rsqrt_approx_f(x);
}
EVOKE_FN float __fdividef(float a, float b) {
    return __nvvm_div_approx_f(a, b);
}
EVOKE_FN float __expf(float x) {
    return __nvvm_ex2_approx_f(x * 1.44269504f);
}
EVOKE_FN float __exp10f(float x) {
    return __nvvm_ex2_approx_f(x * 3.32192809f);
}
EVOKE_FN float __log2f(float x) {
    return __nvvm_lg2_approx_f(x);
}
EVOKE_FN float __logf(float x) {
    return __nvvm_lg2_approx_f(x) * 0.693147181f;
}
EVOKE_FN float __log10f(float x) {
    return __nvvm_lg2_approx_f(x) * 0.301029996f;
}
EVOKE_FN float __powf(float x, float y) {
    return __nvvm_ex2_approx_f(y * __nvvm_lg2_approx_f(x));
}
EVOKE_FN float __sinf(float x) {
    return __nvvm_sin_approx_f(x);
}
EVOKE_FN float __cosf(float x) {
    return __nvvm_cos_approx_f(x);
}
EVOKE_FN float __tanf(float x) {
    return __nvvm_div_approx_f(__sinf(x), __cosf(x));
}

/* ---- exponentials ------------------------------------------------------------------------------
 */

/* 2^n for n in [-126, 127], exactly. */
EVOKE_FN float evoke_power_of_two(int n) {
    return __int_as_float((n + 127) << 23);
}

EVOKE_FN float exp2f(float x) {
    return __nvvm_ex2_approx_f(x);
}

/* exp(x) = 2^n exp(r), with r = x - n ln 2 in two steps (Cody and Waite), and exp(r) by ex2. 2^n is
 * applied in two halves, so that results down to the smallest subnormal are right. */
EVOKE_FN float expf(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -105.0f ? -105.0f : x;
    float n = rintf(x * 1.44269504f);
    float r = fmaf(n, -0.693145752f, x);
    r = fmaf(n, -1.42860677e-6f, r);
    int whole = __float2int_rn(n);
    int half = whole >> 1;
    return __nvvm_ex2_approx_f(r * 1.44269504f) * evoke_power_of_two(half) *
           evoke_power_of_two(whole - half);
}

/* tanh: small arguments by a convergent of Lambert's continued fraction, others by the exponential.
 */
EVOKE_FN float tanhf(float x) {
    float a = fabsf(x);
    if (a < 0.55f) {
        float s = x * x;
        float p = fmaf(s + 105.0f, s, 945.0f);
        float q = fmaf(fmaf(15.0f, s, 420.0f), s, 945.0f);
        return x * (p / q);
    }
    float e = expf(2.0f * a);
    return copysignf(1.0f - 2.0f / (e + 1.0f), x);
}

/* ---- logarithms --------------------------------------------------------------------------------
 */

/* Splits x > 0 into 2^n (1 + f), with 1 + f in [sqrt(1/2), sqrt(2)), and gives log(1 + f). This is
 * 2 artanh(s) with s = f / (2 + f), |s| < 0.172, by five terms of the series. */
EVOKE_FN float evoke_log_parts(float x, float *exponent) {
    float n = 0.0f;
    if (x < 1.17549435e-38f) {
        x *= 8388608.0f;
        n = -23.0f;
    }
    int bits = __float_as_int(x);
    int shift = (bits - 0x3f3504f3) & (int)0xff800000;
    *exponent = n + (float)(shift >> 23);
    float f = __int_as_float(bits - shift) - 1.0f;
    float s = f / (2.0f + f);
    float z = s * s;
    float series = fmaf(z, fmaf(z, fmaf(z, 0.222222222f, 0.285714286f), 0.4f), 0.666666667f);
    /* The form f - s (f - z series) of 2 artanh(s) keeps f exact. */
    return f - s * (f - z * series);
}

EVOKE_FN float evoke_log_edges(float x, float ordinary) {
    float zero_or_nan = x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
    float result = x > 0.0f ? ordinary : zero_or_nan;
    return x == __builtin_inff() ? x : result;
}

EVOKE_FN float logf(float x) {
    float n;
    float l = evoke_log_parts(x, &n);
    return evoke_log_edges(x, fmaf(n, 0.693145752f, fmaf(n, 1.42860677e-6f, l)));
}

EVOKE_FN float log2f(float x) {
    float n;
    float l = evoke_log_parts(x, &n);
    return evoke_log_edges(x, n + fmaf(l, 1.44269502f, l * 1.92596303e-8f));
}

/* ---- circular functions ------------------------------------------------------------------------
 */

/* sin and cos on [-pi/4, pi/4] by their power series. */
EVOKE_FN float evoke_sin_core(float r) {
    float z = r * r;
    float p =
        fmaf(z, fmaf(z, fmaf(z, 2.75573192e-6f, -1.98412698e-4f), 8.33333333e-3f), -0.166666667f);
    return fmaf(r * z, p, r);
}
EVOKE_FN float evoke_cos_core(float r) {
    float z = r * r;
    float p =
        fmaf(z, fmaf(z, fmaf(z, -2.75573192e-7f, 2.48015873e-5f), -1.38888889e-3f), 4.16666667e-2f);
    return fmaf(z, fmaf(z, p, -0.5f), 1.0f);
}
EVOKE_FN float evoke_sin_quadrant(float r, int quadrant) {
    float v = (quadrant & 1) ? evoke_cos_core(r) : evoke_sin_core(r);
    return (quadrant & 2) ? -v : v;
}

/* Payne and Hanek's reduction, for large arguments. With |x| = i 2^(e-31), only the bits of 2/pi
 * from the (e-32)th on matter modulo 4 quadrants, and 96 of these bits are enough. */
static __device__ __noinline__ float evoke_reduce_large(float x, int *quadrant) {
    static const __constant__ unsigned int two_over_pi[7] = {
        0x00000000u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u};
    unsigned int bits = __float_as_uint(x);
    int at = (int)((bits >> 23) & 0xffu) - 127 - 1;
    unsigned long long i = (unsigned long long)((bits << 8) | 0x80000000u);
    int word = at >> 5, shift = at & 31;
    unsigned long long w0 = two_over_pi[word], w1 = two_over_pi[word + 1];
    unsigned long long w2 = two_over_pi[word + 2], w3 = two_over_pi[word + 3];
    unsigned int a = (unsigned int)((((w0 << 32) | w1) << shift) >> 32);
    unsigned int b = (unsigned int)((((w1 << 32) | w2) << shift) >> 32);
    unsigned int c = (unsigned int)((((w2 << 32) | w3) << shift) >> 32);
    unsigned long long top = ((i * a) << 32) + i * b + ((i * c) >> 32);
    long long fraction = (long long)(top << 2);
    int q = (int)(top >> 62) + (fraction < 0);
    float r = (float)((double)fraction * 8.5153039502163865e-20); /* pi / 2 * 2^-64 */
    *quadrant = x < 0.0f ? -q : q;
    return x < 0.0f ? -r : r;
}

/* Reduces x to quadrant * pi/2 + r, |r| <= pi/4. Arguments up to 8192 take four steps of Cody and
 * Waite. The first three are exact: their parts of pi/2 have 11, 12 and 12 bits, and the quadrant
 * has 13. */
EVOKE_FN float evoke_reduce(float x, int *quadrant) {
    if (!(fabsf(x) <= 8192.0f))
        return fabsf(x) < __builtin_inff() ? evoke_reduce_large(x, quadrant)
                                           : (*quadrant = 0, __builtin_nanf(""));
    float n = rintf(x * 0.636619772f);
    *quadrant = __float2int_rn(n);
    float r = fmaf(n, -1.5703125f, x);
    r = fmaf(n, -4.83751297e-4f, r);
    r = fmaf(n, -7.54953362e-8f, r);
    return fmaf(n, -2.56334415e-12f, r);
}

EVOKE_FN float sinf(float x) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    return evoke_sin_quadrant(r, quadrant);
}
EVOKE_FN float cosf(float x) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    return evoke_sin_quadrant(r, quadrant + 1);
}
EVOKE_FN void sincosf(float x, float *s, float *c) {
    int quadrant;
    float r = evoke_reduce(x, &quadrant);
    *s = evoke_sin_quadrant(r, quadrant);
    *c = evoke_sin_quadrant(r, quadrant + 1);
}

/* sin(pi x) and cos(pi x): the reduction is exact. Floats above 2^24 are even integers. */
EVOKE_FN float evoke_reduce_pi(float x, int *quadrant) {
    if (!(fabsf(x) < 16777216.0f))
        x = x - x; /* 0; NaN if x is an infinity or NaN */
    float n = rintf(2.0f * x);
    *quadrant = __float2int_rn(n);
    float r = fmaf(n, -0.5f, x);
    return fmaf(r, 3.14159274f, r * -8.74227766e-8f);
}
EVOKE_FN float sinpif(float x) {
    int quadrant;
    float r = evoke_reduce_pi(x, &quadrant);
    return evoke_sin_quadrant(r, quadrant);
}
EVOKE_FN float cospif(float x) {
    int quadrant;
    float r = evoke_reduce_pi(x, &quadrant);
    return evoke_sin_quadrant(r, quadrant + 1);
}
EVOKE_FN void sincospif(float x, float *s, float *c) {
    int quadrant;
    float r = evoke_reduce_pi(x, &quadrant);
    *s = evoke_sin_quadrant(r, quadrant);
    *c = evoke_sin_quadrant(r, quadrant + 1);
}

#include "evoke_cuda_overloads.h"
#include "evoke_cuda_runtime.h"

#undef EVOKE_FN
#endif
#endif
