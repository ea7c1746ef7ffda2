/* Weight gradient of a convolution behind a ReLU in bfloat16: dW[o, r, s, c] = sum of dY[n, y, x,
 * o] times X[n, y + r, x + s, c], summed and stored in float.
 *
 * The pixels come in parts of `part`, and each part has a dW of its own: dW[p] is the sum over the
 * pixels of part p. One thread makes one element. X has filter - 1 rows and columns more than dY.
 */
#include "evoke_cuda.h"
#include <cuda_bf16.h>

#ifndef BLOCK_X
#define BLOCK_X 32
#endif
#ifndef BLOCK_Y
#define BLOCK_Y 8
#endif

extern "C" __global__ void bp_weight_sparse_bf16(const __nv_bfloat16 *dY, const __nv_bfloat16 *X,
                                                 float *dW, int M, int outputs, int channels,
                                                 int side, int filter, int part) {
    int columns = filter * filter * channels;
    int column = blockIdx.x * BLOCK_X + threadIdx.x;
    int o = blockIdx.y * BLOCK_Y + threadIdx.y;
    int p = blockIdx.z;
    if (column >= columns || o >= outputs)
        return;

    int tap = column / channels, c = column % channels;
    int width = side + filter - 1;
    int end = min(M, (p + 1) * part);
    float sum = 0.0f;
    for (int m = p * part; m < end; m++) {
        int n = m / (side * side), y = m / side % side, x = m % side;
        int row = y + tap / filter, at = x + tap % filter;
        sum += __bfloat162float(dY[m * outputs + o]) *
               __bfloat162float(X[((n * width + row) * width + at) * channels + c]);
    }
    dW[(p * outputs + o) * columns + column] = sum;
}
