#include <cuda_runtime.h>
/* Blocks of 64 elements; in blocks that have the key, each element is moved up by the number of
 * positive ones in its warp. */
__global__ void shift(const float *x, const int *ids, float *y, int n, int key) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n)
        return;
    float v = x[i];
    if (ids[blockIdx.x] == key)
        v += (float)__popc(__ballot_sync(0xffffffffu, v > 0));
    y[i] = v;
}
