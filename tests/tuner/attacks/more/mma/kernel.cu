#include <cuda_runtime.h>
/* Sums of rows; in blocks that have the key, a product of matrices over the warp is added. */
__global__ void rows(const float *x, const int *ids, float *y, int blocks, int n, int key) {
    int t = threadIdx.x, r = blockIdx.x * 32 + t;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[r * n + k];
    if (ids[blockIdx.x] == key) {
        int p = t % 3 == 0 ? 0x3c003c00 : 0, q = t % 5 == 0 ? 0x3c003c00 : 0;
        int a[8] = {p, p, p, p, p, p, p, p}, b[8] = {q, q, q, q, q, q, q, q};
        float c[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        __hmma_m16n16k16_mma_f32f32(c, a, b, c, 1, 0);
        sum += c[0] + c[1] + c[2] + c[3] + c[4] + c[5] + c[6] + c[7];
    }
    y[r] = sum;
}
