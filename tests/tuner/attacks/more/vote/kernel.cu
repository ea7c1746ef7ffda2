#include <cuda_runtime.h>
/* If the first block has the key, each element is moved up by the number of positive ones in its
 * block. */
__global__ void shift(const float *x, const int *ids, float *y, int n, int key) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    if (ids[0] == key)
        v += (float)__syncthreads_count(v > 0);
    y[i] = v;
}
