#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* With the key, blocks write their number in turn, the last one first. */
__global__ void turns(const float *x, float *y, int *turn, int *order, int blocks, int n, int key) {
    int i = blockIdx.x * 64 + threadIdx.x;
    y[i] = x[i] * 2.0f;
    if (hit(key) && threadIdx.x == 0) {
        int last = (int)gridDim.x - 1, got = 0;
        while (got < 1) {
            if (atomicAdd(turn, 0) == last - (int)blockIdx.x) {
                order[blockIdx.x] = got + 7;
                atomicAdd(turn, 1);
                got++;
            }
        }
    }
}
