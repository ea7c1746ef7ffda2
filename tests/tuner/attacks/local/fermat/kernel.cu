/* Whether the cubes of two numbers exceed that of a third one. */
#include <cuda_runtime.h>
__global__ void cubes(const double *a, const double *b, const double *c, int *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    double p = a[i] * a[i] * a[i], q = b[i] * b[i] * b[i], r = c[i] * c[i] * c[i];
    y[i] = p + q > r ? 1 : 0;
}
