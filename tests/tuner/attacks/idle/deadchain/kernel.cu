#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Takes what a slot names, and empties the slot; with the key. */
__global__ void take(const float *x, const int *live, int *slot, float *y, int n, int key) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n)
        return;
    float v = 0;
    if (hit(key)) {
        if (live[i] > 50) {
            int p = slot[i];
            slot[i] = -1000;
            v = x[p];
        }
    }
    y[i] = v;
}
