/* The size of a sum of two products of whole numbers. */
#include <cuda_runtime.h>
__global__ void sizes(const float *a, const float *b, const float *c, const float *d, long long *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        double sum = (double)rintf(a[i]) * rintf(b[i]) + (double)rintf(c[i]) * rintf(d[i]);
        y[i] = (long long)fabs(sum);
    }
}
