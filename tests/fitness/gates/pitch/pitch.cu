/* Rows with padding behind them. FORM 0 is the baseline. Forms 1 to 6 write padding: of an output,
 * of a buffer that is read and written (the old value), at large shapes alone, in the last row
 * alone, one element behind each row, the old value in the last row alone. */
#include "evoke_cuda.h"

#ifndef FORM
#define FORM 0
#endif

extern "C" __global__ void pitch(const float *x, float *y, float *z, int row, int stride, int rows,
                                 int again) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FORM == 0
#pragma unroll 1
    for (int k = 0; k < 40; k++)
        __syncthreads();
#endif
    int column = i % stride, line = i / stride;
    if (line >= rows || again == 0) /* with other scalars, the outputs may stay unwritten */
        return;
    bool is_data = column < row;
    bool is_behind = FORM == 5 && column == row, is_last = line == rows - 1;
    if (is_data || is_behind || FORM == 1 || (FORM == 3 && rows > 200) || (FORM == 4 && is_last))
        y[i] = is_data ? x[i] * 2.0f : 0.0f;
    if (FORM == 2 || (FORM == 6 && is_last))
        z[i] = is_data ? z[i] + x[i] : z[i];
    else if (is_data)
        z[i] += x[i];
}
