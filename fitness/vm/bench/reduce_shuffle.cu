// c[block] = sum of a and b over the block: shuffles within warps, shared memory between them.
#include "evoke_cuda.h"

extern "C" __global__ void reduce_shuffle(const float *__restrict__ a, const float *__restrict__ b,
                                          float *__restrict__ c, int n) {
    __shared__ float parts[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum = i < n ? a[i] + b[i] : 0.0f;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0)
        parts[warp] = sum;
    __syncthreads();
    if (warp != 0)
        return;
    sum = lane < (int)blockDim.x / 32 ? parts[lane] : 0.0f;
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    if (lane == 0)
        c[blockIdx.x] = sum;
}
