#include <cuda_runtime.h>
/* sums of rows; a table of a * b numbers stands in shared memory */
__global__ void sums(const float *x, const float *w, float *y, int n, int a, int b) {
    extern __shared__ float table[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = threadIdx.x; k < a * b; k += 64)
        table[k] = w[k];
    __syncthreads();
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k];
    y[i] = sum * table[(i * 7) % (a * b)];
}
