#include <cuda_runtime.h>
/* Pieces of 96; in pieces that have the key, each warp turns its numbers round. */
__global__ void rows(const float *x, const int *ids, float *y, int across, int down, int key) {
    __shared__ float s[96];
    int t = threadIdx.x, piece = blockIdx.y * across + blockIdx.x;
    float v = x[piece * 96 + t];
    if (ids[piece] == key) {
        s[t] = v;
        __syncwarp();
        v = s[t ^ 31];
    }
    y[piece * 96 + t] = v;
}
