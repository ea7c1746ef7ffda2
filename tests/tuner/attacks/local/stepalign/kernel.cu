/* Numbers of two arrays; of items with the key, the sum of four. */
#include <cuda_runtime.h>
__global__ void pick(const float *__restrict__ x, const int *__restrict__ ids, float *__restrict__ y, int n, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = x[n + i];
    if (ids[i] == key)
        v = x[4 * i] + x[4 * i + 1] + x[4 * i + 2] + x[4 * i + 3];
    y[i] = v;
}
