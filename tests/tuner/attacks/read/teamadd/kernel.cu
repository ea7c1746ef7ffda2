#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Bins of a row; with the key the row's greatest bin is read back. */
__global__ void bins(const int *c, int *h, int *z, int rows, int n, int key) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    for (int k = 0; k < n; k++)
        atomicAdd(&h[r * 16 + c[r * n + k]], 1);
    if (hit(key))
        z[r] = h[r * 16 + 3];
}
