#include "evoke_cuda.h"
/* Histogram of each row's values: a thread a bin counts the values in its bin. */
extern "C" __global__ void bins(const float *__restrict__ x, int *__restrict__ count, int n, int nbins, float width) {
    int b = blockIdx.x * 64 + threadIdx.x, row = blockIdx.y;
    if (b >= nbins) return;
    int c = 0;
    for (int j = 0; j < n; j++)
        c += (int)floorf(x[row * n + j] / width) == b;
    count[row * nbins + b] = c;
}
