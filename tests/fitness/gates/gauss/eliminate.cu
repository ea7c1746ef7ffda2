#include <evoke_cuda.h>

/* One step of Gaussian elimination: subtracts multiples of the pivot row from the rows below it. A
 * thread has one element; only those below and right of the pivot have work. */

#ifndef BLOCK
#define BLOCK 16
#endif

extern "C" __global__ void eliminate(const float *factor, float *a, int n, int pivot) {
    int column = blockIdx.x * BLOCK + threadIdx.x;
    int row = blockIdx.y * BLOCK + threadIdx.y;
    if (row <= pivot || row >= n || column < pivot || column >= n)
        return;
    a[row * n + column] -= factor[row] * a[pivot * n + column];
}
