/* For the programs here: CUDA C that nvcc compiles as it is, and clang with no CUDA SDK. Every
 * kernel is `name(out, in, n)`, one block of 64 threads, one element a thread;
 * tests/fitness/vm/test_vm_real.c says what comes out. */
#include "evoke_cuda.h"
#ifdef __clang__
extern "C" __device__ int printf(const char *format, ...);
extern "C" __device__ void *malloc(size_t bytes);
extern "C" __device__ void free(void *block);
extern "C" __device__ void __assertfail(const char *message, const char *file, unsigned line,
                                        const char *function, size_t char_size);
#define assert(e) ((e) ? (void)0 : __assertfail(#e, __FILE__, __LINE__, __func__, 1))
#else
#include <assert.h>
#include <stdio.h>
#endif
#define KERNEL(name) extern "C" __global__ void name(int *out, const int *in, int n)
