// Half the width of a filter as an argument, a grid of three dimensions, unsigned sizes.
#include <cstdint>
#ifndef BLOCK_X
#define BLOCK_X 16
#endif
#define BLOCK_Y 8
__global__ void blur(float *out, const float *in, const float *weights, uint32_t width, uint32_t height,
                     uint32_t planes, int radius) {
    uint32_t x = blockIdx.x * BLOCK_X + threadIdx.x;
    uint32_t y = blockIdx.y * BLOCK_Y + threadIdx.y;
    uint32_t z = blockIdx.z;
    if (x < width && y < height && z < planes) {
        float sum = 0.f;
        for (int dy = -radius; dy <= radius; dy++)
            for (int dx = -radius; dx <= radius; dx++) {
                int sx = min(max((int)x + dx, 0), (int)width - 1), sy = min(max((int)y + dy, 0), (int)height - 1);
                sum += weights[(dy + radius) * (2 * radius + 1) + dx + radius] * in[(z * height + sy) * width + sx];
            }
        out[(z * height + y) * width + x] = sum;
    }
}
#ifdef WITH_MAIN
int main() { return 0; }
#endif
