#include <cstdio>
const int W = 1024, H = 1024;
__global__ void life(const bool *cur, bool *next, int w, int h) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= w * h) return;
    int x = i % w, y = i / w, alive = 0;
    for (int dy = -1; dy <= 1; dy++) for (int dx = -1; dx <= 1; dx++)
        if (dx || dy) alive += cur[((y + dy + h) % h) * w + (x + dx + w) % w];
    next[i] = alive == 3 || (alive == 2 && cur[i]);
}
int main(int argc, char **argv) {
    int gens = argc > 1 ? atoi(argv[1]) : 100;
    bool *a, *b; cudaMalloc(&a, W * H); cudaMalloc(&b, W * H);
    int total = W * H, block = 256, grid = (total + block - 1) / block;
    for (int g = 0; g < gens; g++) { life<<<grid, block>>>(a, b, W, H); }
}
