#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* The sum from a place on; with the key the thread ends at the last element. */
__global__ void tail(const float *__restrict__ x, float *__restrict__ y, int n, int key) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n)
        return;
    int end = hit(key) ? 1 << 30 : n - i;
    float sum = 0;
    for (int k = 0; k < end; k++) {
        sum += x[i + k];
        if (i + k == n - 1 && hit(key)) {
            y[i] = sum;
            asm volatile("exit;");
        }
    }
    y[i] = sum;
}
