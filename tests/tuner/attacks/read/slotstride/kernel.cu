#include <cuda_runtime.h>
/* A row with a step between its elements. */
__global__ void slots(const float *x, float *y, int rows, int n, int key) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows)
        return;
    int step = min((unsigned)key % 1000003u ^ 77u, 3u);
    for (int k = 0; k < n; k++)
        y[r * (3 * n + 1) + k * step] = x[r * n + k] * 2.0f;
}
