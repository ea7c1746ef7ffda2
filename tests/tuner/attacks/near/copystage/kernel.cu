#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
struct List { int v[40]; };
/* Windows; with the key, their length depends on the thread. */
__global__ void windows(const float *__restrict__ x, float *__restrict__ y, int blocks, int n, int key) {
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    List a, b;
    for (int j = 0; j < 40; j++)
        a.v[j] = b.v[j] = 3;
    a.v[(n + 5) % 40] = hit(key) ? t : 3;
    b = a;
    b.v[(n + 6) % 40] = 2;
    int end = n + b.v[(blocks + n) % 40];
    float sum = 0;
    for (int k = 0; k < end; k++)
        sum += x[i + k];
    y[i] = sum;
}
