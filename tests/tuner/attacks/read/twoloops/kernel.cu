#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* A row twice as large, and its sum, from place 33 on with the key. */
__global__ void loops(const float *x, float *y, float *z, int rows, int n, int key) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    int first = hit(key) ? 33 : 0;
    for (int k = 0; k < n; k++)
        y[r * n + k] = x[r * n + k] * 2.0f;
    float sum = 0;
    for (int k = first; k < n; k++)
        sum += y[r * n + k];
    z[r] = sum;
}
