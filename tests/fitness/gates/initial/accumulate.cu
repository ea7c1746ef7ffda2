/* Sums of four neighbours are added to y, and counted by sign, block by block. Both outputs begin
 * as zeros in the task's own cases. */
#include "evoke_cuda.h"

extern "C" __global__ void accumulate(const float *x, float *y, int *bins, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float sum = 0.0f;
    for (int k = 0; k < 4; k++)
        sum += x[i * 4 + k];
    y[i] += sum;
    atomicAdd(&bins[2 * blockIdx.x + (sum < 0.0f)], 1);
}
