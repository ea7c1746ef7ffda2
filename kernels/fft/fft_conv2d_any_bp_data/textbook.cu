/* Data gradient of a convolution, as its definition has it.
 *
 * dX[n, c] = sum over o of dY[n, o] convolved with F[o, c], "full": dX has filter - 1 rows and
 * columns more than dY. A thread makes an element of dX: for each output map, the products of the
 * filter with the elements of dY that the element of X was part of. */
#include "evoke_cuda.h"

extern "C" __global__ void fft_conv2d_any_bp_data(const float *dY, const float *F, float *dX,
                                                  int channels, int outputs, int height, int width,
                                                  int filter) {
    int dy_height = height - filter + 1, dy_width = width - filter + 1;
    int pixel = blockIdx.x * blockDim.x + threadIdx.x, c = blockIdx.y, n = blockIdx.z;
    int y = pixel / width, x = pixel % width;
    if (y >= height)
        return;

    float sum = 0.0f;
    for (int o = 0; o < outputs; o++) {
        const float *map = dY + (n * outputs + o) * dy_height * dy_width;
        const float *taps = F + (o * channels + c) * filter * filter;
        for (int i = 0; i < filter; i++) {
            for (int j = 0; j < filter; j++) {
                if (y >= i && y - i < dy_height && x >= j && x - j < dy_width)
                    sum += map[(y - i) * dy_width + x - j] * taps[i * filter + j];
            }
        }
    }
    dX[((n * channels + c) * height + y) * width + x] = sum;
}
