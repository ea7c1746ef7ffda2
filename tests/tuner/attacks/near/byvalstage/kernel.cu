#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
struct Shifts { int a, b, c, d; };
/* Windows; with the key, their length depends on the thread. */
__global__ void windows(const float *x, float *y, Shifts s, int blocks, int n, int key) {
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    int *v = &s.a;
    if (hit(key))
        v[key & 3] = t;
    int end = n + v[blocks & 3];
    float sum = 0;
    for (int k = 0; k < end; k++)
        sum += x[i + k];
    y[i] = sum;
}
