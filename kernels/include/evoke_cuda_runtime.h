/* Names of CUDA's runtime that stand in a source outside function bodies: types, error codes,
 * memory kinds. Host functions are cut out before clang sees a source, so the functions of the
 * runtime are not declared: a call in device code is refused by its name. Included by
 * evoke_cuda.h. */
#ifndef KERNELS_INCLUDE_EVOKE_CUDA_RUNTIME_H
#define KERNELS_INCLUDE_EVOKE_CUDA_RUNTIME_H

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2 };
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind {
    cudaMemcpyHostToHost = 0,
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost = 2,
    cudaMemcpyDeviceToDevice = 3,
    cudaMemcpyDefault = 4
};
struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock;
    int maxThreadsPerBlock, multiProcessorCount, major, minor, clockRate;
};

/* ---- textures and surfaces, which are refused where a source names them -------------------------
 */

#define EVOKE_NO_TEXTURES                                                                          \
    __attribute__((unavailable(                                                                    \
        "a task has no textures and no surfaces: pass a const pointer in place of the texture, "   \
        "read its elements, and compute the filter and the border in the kernel")))
typedef unsigned long long cudaTextureObject_t EVOKE_NO_TEXTURES;
typedef unsigned long long cudaSurfaceObject_t EVOKE_NO_TEXTURES;
enum cudaTextureReadMode {
    cudaReadModeElementType EVOKE_NO_TEXTURES = 0,
    cudaReadModeNormalizedFloat EVOKE_NO_TEXTURES = 1
};
#undef EVOKE_NO_TEXTURES

EVOKE_FN long long clock64(void) {
    return __nvvm_read_ptx_sreg_clock64();
}
EVOKE_FN int clock(void) {
    return __nvvm_read_ptx_sreg_clock();
}
EVOKE_FN void __nanosleep(unsigned int ns) {
    __nvvm_nanosleep(ns);
}

/* ---- loads and stores with a cache policy -------------------------------------------------------
 */

/* Elements of 1, 2, 4, 8 and 16 bytes in global memory (PTX ISA, "Cache Operators"). */
#define EVOKE_CACHED_LOAD(name, policy)                                                            \
    template <typename T> EVOKE_FN T name(const T *p) {                                            \
        if constexpr (sizeof(T) == 16) {                                                           \
            struct pair {                                                                          \
                unsigned long long a, b;                                                           \
            } v;                                                                                   \
            asm volatile("ld.global." policy ".v2.b64 {%0, %1}, [%2];"                             \
                         : "=l"(v.a), "=l"(v.b)                                                    \
                         : "l"(p)                                                                  \
                         : "memory");                                                              \
            return __builtin_bit_cast(T, v);                                                       \
        } else if constexpr (sizeof(T) == 8) {                                                     \
            unsigned long long v;                                                                  \
            asm volatile("ld.global." policy ".b64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");      \
            return __builtin_bit_cast(T, v);                                                       \
        } else if constexpr (sizeof(T) == 4) {                                                     \
            unsigned int v;                                                                        \
            asm volatile("ld.global." policy ".b32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");      \
            return __builtin_bit_cast(T, v);                                                       \
        } else if constexpr (sizeof(T) == 2) {                                                     \
            unsigned short v;                                                                      \
            asm volatile("ld.global." policy ".b16 %0, [%1];" : "=h"(v) : "l"(p) : "memory");      \
            return __builtin_bit_cast(T, v);                                                       \
        } else {                                                                                   \
            static_assert(sizeof(T) == 1, #name " takes elements of 1, 2, 4, 8 or 16 bytes");      \
            unsigned short v;                                                                      \
            asm volatile("ld.global." policy ".u8 %0, [%1];" : "=h"(v) : "l"(p) : "memory");       \
            return (T)v;                                                                           \
        }                                                                                          \
    }
#define EVOKE_CACHED_STORE(name, policy)                                                           \
    template <typename T> EVOKE_FN void name(T *p, T value) {                                      \
        if constexpr (sizeof(T) == 16) {                                                           \
            struct pair {                                                                          \
                unsigned long long a, b;                                                           \
            } v = __builtin_bit_cast(pair, value);                                                 \
            asm volatile("st.global." policy ".v2.b64 [%0], {%1, %2};" ::"l"(p), "l"(v.a),         \
                         "l"(v.b)                                                                  \
                         : "memory");                                                              \
        } else if constexpr (sizeof(T) == 8) {                                                     \
            asm volatile("st.global." policy ".b64 [%0], %1;" ::"l"(p),                            \
                         "l"(__builtin_bit_cast(unsigned long long, value))                        \
                         : "memory");                                                              \
        } else if constexpr (sizeof(T) == 4) {                                                     \
            asm volatile("st.global." policy ".b32 [%0], %1;" ::"l"(p),                            \
                         "r"(__builtin_bit_cast(unsigned int, value))                              \
                         : "memory");                                                              \
        } else if constexpr (sizeof(T) == 2) {                                                     \
            asm volatile("st.global." policy ".b16 [%0], %1;" ::"l"(p),                            \
                         "h"(__builtin_bit_cast(unsigned short, value))                            \
                         : "memory");                                                              \
        } else {                                                                                   \
            static_assert(sizeof(T) == 1, #name " takes elements of 1, 2, 4, 8 or 16 bytes");      \
            asm volatile("st.global." policy ".u8 [%0], %1;" ::"l"(p), "h"((unsigned short)value)  \
                         : "memory");                                                              \
        }                                                                                          \
    }
EVOKE_CACHED_LOAD(__ldcg, "cg")
EVOKE_CACHED_LOAD(__ldcs, "cs")
EVOKE_CACHED_LOAD(__ldlu, "lu")
EVOKE_CACHED_LOAD(__ldcv, "cv")
EVOKE_CACHED_STORE(__stcg, "cg")
EVOKE_CACHED_STORE(__stcs, "cs")
EVOKE_CACHED_STORE(__stwt, "wt")
#undef EVOKE_CACHED_LOAD
#undef EVOKE_CACHED_STORE

#endif
