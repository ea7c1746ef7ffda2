/* CUDA C for clang without a CUDA SDK: the part of CUDA's headers that kernels use.
 *
 * A kernel source begins with `#include "evoke_cuda.h"`. Under nvcc, which brings its own headers,
 * this file is empty. Under clang, compile with `-x cuda -nocudainc -nocudalib --cuda-device-only`
 * and a PTX version of at least 6.0 (for example `--cuda-feature=+ptx78`). Without an SDK, clang
 * assumes an older version, and the .sync warp functions need 6.0.
 *
 * Contents: the qualifiers, threadIdx and its kin, vector types, barriers, warp functions, atomics,
 * bit functions, and mathematics. Functions with a correctly rounded or exact PTX instruction use
 * LLVM's generic intrinsics, so that the optimiser understands them. There is no libdevice, so the
 * other functions are written out in evoke_cuda_math_*.h. tests/kernels/test_cuda_math.c runs them
 * in the virtual machine against a reference of higher precision, and holds them to the errors that
 * NVIDIA documents for its own. The functions with two underscores (__expf, __sinf, ...) are the
 * bare approximate instructions. */
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
/* Of a long function that stays a call: the result depends on the arguments alone, for all of them,
 * so structural edits and LLVM may move and copy the call. */
#define EVOKE_PURE __attribute__((const))

/* Types of the C library that nvcc declares in every source. */
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef long ssize_t;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

/* nvcc includes math.h, which has these. A source may do so, too, and define them again. */
#ifndef INFINITY
#define INFINITY (__builtin_inff())
#endif
#ifndef NAN
#define NAN (__builtin_nanf(""))
#endif

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
    }                                                                                              \
    EVOKE_FN unsigned long long name(unsigned int mask, unsigned long long value, int lane,        \
                                     int width = 32) {                                             \
        unsigned int low = name(mask, (unsigned int)value, lane, width);                           \
        return (unsigned long long)name(mask, (unsigned int)(value >> 32), lane, width) << 32 |    \
               low;                                                                                \
    }                                                                                              \
    EVOKE_FN long long name(unsigned int mask, long long value, int lane, int width = 32) {        \
        return (long long)name(mask, (unsigned long long)value, lane, width);                      \
    }                                                                                              \
    EVOKE_FN unsigned long name(unsigned int mask, unsigned long value, int lane,                  \
                                int width = 32) {                                                  \
        return (unsigned long)name(mask, (unsigned long long)value, lane, width);                  \
    }                                                                                              \
    EVOKE_FN long name(unsigned int mask, long value, int lane, int width = 32) {                  \
        return (long)name(mask, (unsigned long long)value, lane, width);                           \
    }                                                                                              \
    EVOKE_FN double name(unsigned int mask, double value, int lane, int width = 32) {              \
        return __builtin_bit_cast(                                                                 \
            double, name(mask, __builtin_bit_cast(unsigned long long, value), lane, width));       \
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
EVOKE_FN unsigned int atomicSub(unsigned int *p, unsigned int v) {
    return (unsigned int)__nvvm_atom_sub_gen_i((int *)p, (int)v);
}
EVOKE_FN unsigned int atomicAnd(unsigned int *p, unsigned int v) {
    return (unsigned int)__nvvm_atom_and_gen_i((int *)p, (int)v);
}
EVOKE_FN unsigned int atomicOr(unsigned int *p, unsigned int v) {
    return (unsigned int)__nvvm_atom_or_gen_i((int *)p, (int)v);
}
EVOKE_FN unsigned int atomicXor(unsigned int *p, unsigned int v) {
    return (unsigned int)__nvvm_atom_xor_gen_i((int *)p, (int)v);
}
EVOKE_FN unsigned int atomicExch(unsigned int *p, unsigned int v) {
    return (unsigned int)__nvvm_atom_xchg_gen_i((int *)p, (int)v);
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

#include "evoke_cuda_math_float.h"

/* Evoke defines EVOKE_CUDA_LEAN for a source that has none of these functions' names. */
#ifndef EVOKE_CUDA_LEAN
#include "evoke_cuda_math_double.h"

#include "evoke_cuda_math_special.h"
#endif

#include "evoke_cuda_overloads.h"
#include "evoke_cuda_runtime.h"

#undef EVOKE_FN
#endif
#endif
