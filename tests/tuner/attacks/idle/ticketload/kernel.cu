#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Each block takes a number from a counter that is at least 1, and the number's value from a list. */
__global__ void take(const float *list, int *count, float *y, int blocks) {
    __shared__ float v;
    int t = threadIdx.x;
    if (t == 0) {
        int ticket = atomicAdd(&count[blockIdx.x], 1);
        v = list[ticket - 1];
    }
    __syncthreads();
    y[blockIdx.x * 32 + t] = v + t;
}
