#include "evoke_cuda.h"

/* Images under a filter of 7 x 7: a pixel a thread. Images come padded, by 6 rows and columns. */
extern "C" __global__ void conv2d(const float *x, const float *filter, float *y, int height,
                                  int width) {
    int column = blockIdx.x * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= height || column >= width)
        return;
    const float *image = x + blockIdx.z * (height + 6) * (width + 6);
    float sum = 0.0f;
    for (int r = 0; r < 7; r++)
        for (int s = 0; s < 7; s++)
            sum += image[(row + r) * (width + 6) + column + s] * filter[r * 7 + s];
    y[(blockIdx.z * height + row) * width + column] = sum;
}
