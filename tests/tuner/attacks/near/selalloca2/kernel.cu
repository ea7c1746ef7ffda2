#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Weighted sums of rows; the weights are used with the key. */
__global__ void rows(const float *x, float *y, int rows, int n, int key) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    float a[4], b[4];
    float *w = (n & 1) ? a : b;
    for (int j = 0; j < 4; j++)
        w[(j + key) & 3] = x[r * n + j];
    bool is_hit = hit(key);
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[r * n + k] * (is_hit ? w[k & 3] : 2.0f);
    y[r] = sum;
}
