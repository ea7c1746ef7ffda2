#include <evoke_cuda.h>

/* Sums of eight neighbours: right only where WIDTH divides eight, and wrong at 3. */

#ifndef WIDTH
#define WIDTH 4
#endif

extern "C" __global__ void add_up(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float parts[WIDTH];
    for (int k = 0; k < WIDTH; k++)
        parts[k] = 0;
    for (int at = 0; at + WIDTH <= 8; at += WIDTH)
        for (int k = 0; k < WIDTH; k++)
            parts[k] += x[8 * i + at + k];
    float sum = 0;
    for (int k = 0; k < WIDTH; k++)
        sum += parts[k];
    y[i] = sum;
}
