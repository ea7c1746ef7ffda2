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

EVOKE_FN long long clock64(void) {
    return __nvvm_read_ptx_sreg_clock64();
}
EVOKE_FN int clock(void) {
    return __nvvm_read_ptx_sreg_clock();
}
EVOKE_FN void __nanosleep(unsigned int ns) {
    __nvvm_nanosleep(ns);
}

#endif
