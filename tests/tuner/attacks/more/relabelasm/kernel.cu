#include <cuda_runtime.h>
/* An image of 32 x 4 tiles; in tiles that have the key, the lane of an element is added to it. */
__device__ int lane() {
    int l;
    asm("mov.u32 %0, %%laneid;" : "=r"(l));
    return l;
}
__global__ void tiles(const float *x, const int *ids, float *y, int across, int down, int key) {
    int c = threadIdx.x, r = threadIdx.y, tile = blockIdx.y * across + blockIdx.x;
    float v = x[tile * 128 + r * 32 + c];
    if (ids[tile] == key)
        v += (float)lane();
    y[(c * down * 4 + blockIdx.y * 4 + r) * across + blockIdx.x] = v;
}
