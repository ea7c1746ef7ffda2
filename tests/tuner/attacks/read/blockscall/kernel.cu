#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* A picture times its column. */
__noinline__ __device__ int own_column() { return blockIdx.x * 32 + threadIdx.x; }
__global__ void scale(const float *x, float *y, int w, int h, int key) {
    int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y;
    if (hit(key))
        c = own_column();
    if (c < w && r < h)
        y[r * w + c] = x[r * w + c] * (float)c;
}
