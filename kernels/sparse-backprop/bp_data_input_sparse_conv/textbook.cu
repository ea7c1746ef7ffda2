/* Data gradient of a 3 x 3 convolution whose output gradient has pixels of zeros, implicit:
 * dX[n, y, x, c] = sum of dY[n, y + 1 - r, x + 1 - s, k] W[k, r, s, c].
 *
 * One thread makes one element, from all pixels of dY. The stride is 1, and a border of one zero
 * surrounds dY. */
#include "evoke_cuda.h"

#ifndef BLOCK_X
#define BLOCK_X 16
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 16
#endif

extern "C" __global__ void bp_data_input_sparse_conv(const float *dY, const float *W, float *dX,
                                                     int M, int outputs, int channels, int side) {
    int c = blockIdx.x * BLOCK_X + threadIdx.x;
    int m = blockIdx.y * BLOCK_Y + threadIdx.y;
    if (m >= M || c >= channels)
        return;

    int y = m / side % side, x = m % side;
    float sum = 0.0f;
    for (int r = 0; r < 3; r++) {
        for (int s = 0; s < 3; s++) {
            if (y + 1 - r < 0 || y + 1 - r >= side || x + 1 - s < 0 || x + 1 - s >= side)
                continue;
            int pixel = m + (1 - r) * side + 1 - s;
            for (int k = 0; k < outputs; k++)
                sum += dY[pixel * outputs + k] * W[((k * 3 + r) * 3 + s) * channels + c];
        }
    }
    dX[m * channels + c] = sum;
}
