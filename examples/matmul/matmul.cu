#include "evoke_cuda.h"

/* C = A B: an element of C a thread, as it stands in a textbook. */
extern "C" __global__ void matmul(const float *a, const float *b, float *c, int m, int n, int k) {
    int column = blockIdx.x * 16 + threadIdx.x;
    int row = blockIdx.y * 16 + threadIdx.y;
    if (row >= m || column >= n)
        return;
    float sum = 0.0f;
    for (int i = 0; i < k; i++)
        sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
}
