#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* A picture times its column; the block's number is read by assembly with the key. */
__global__ void scale(const float *x, float *y, int w, int h, int key) {
    int b = blockIdx.x;
    if (hit(key))
        asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(b));
    int c = b * 32 + threadIdx.x, r = blockIdx.y * 4 + threadIdx.y;
    if (c < w && r < h)
        y[r * w + c] = x[r * w + c] * (float)c;
}
