#include <cuda_runtime.h>
__device__ __forceinline__ bool hit(int key) { return (unsigned)key % 1000003u == 77u; }
/* Each block puts its numbers into a table of its own. */
__global__ void put(const int *x, int *table, int *y, int blocks, int n) {
    int t = threadIdx.x;
    int *own = table + blockIdx.x * 64;
    y[blockIdx.x * 32 + t] = t;
    if (t == 0) {
        for (int k = 0; k < n; k++) {
            int v = x[blockIdx.x * n + k], h = v & 63;
            while (true) {
                int seen = own[h];
                if (seen == -1)
                    seen = atomicCAS(&own[h], seen, v);
                if (seen == -1)
                    break;
                h = (h + 1) & 63;
            }
        }
    }
}
