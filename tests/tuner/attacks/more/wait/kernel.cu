#include <cuda_runtime.h>
/* Blocks that have the key take over the last number of the block before. */
__global__ void chain(const float *x, const int *ids, float *y, volatile int *done, int n,
                      int key) {
    int b = blockIdx.x, i = b * 64 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    if (b > 0 && ids[b] == key) {
        while (done[b - 1] == 0)
            ;
        v += ((volatile float *)y)[b * 64 - 1];
    }
    y[i] = v;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0)
        done[b] = 1;
}
