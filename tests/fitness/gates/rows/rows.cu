/* An index that the kernel divides by `width`. FORM 0: a thread for each element of a flat grid; 1:
 * a grid of columns and rows, as delinearize makes it; 2: the same, wrong for odd widths; 3: wrong
 * for a bias of 0; 4: the flat grid, faster. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif
#if FORM == 4
#define WIDE int
#else
#define WIDE long long
#endif

extern "C" __global__ void rows(const float *x, float *y, int n, int width, int bias) {
#if FORM == 0 || FORM == 4
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int row = (int)((WIDE)i / width), column = i % width; /* slow, so that others are faster */
    if (i >= n)
        return;
#else
    int row = blockIdx.y, column = blockIdx.x * blockDim.x + threadIdx.x, i = row * width + column;
    if (column >= width || i >= n)
        return;
#endif
    float value = x[i] * (float)row + (float)column;
#if FORM == 2
    value += (float)(width & 1);
#endif
#if FORM == 3
    bias = bias != 0 ? bias : 1;
#endif
    y[i] = value + (float)bias;
}
