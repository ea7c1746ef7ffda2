#include <cuda_runtime.h>
/* An image of 32 x 4 tiles; in tiles that have the key, each row is turned round by its warp. */
__global__ void tiles(const float *x, const int *ids, float *y, int across, int down, int key) {
    __shared__ float s[4][32];
    int c = threadIdx.x, r = threadIdx.y, tile = blockIdx.y * across + blockIdx.x;
    float v = x[tile * 128 + r * 32 + c];
    if (ids[tile] == key) {
        s[r][c] = v;
        __syncwarp();
        v = s[r][31 - c];
    }
    y[(c * down * 4 + blockIdx.y * 4 + r) * across + blockIdx.x] = v;
}
