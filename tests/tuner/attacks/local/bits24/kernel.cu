/* Numbers of 24 bits with a tag; of items with the key, both numbers of a pair. */
#include <cuda_runtime.h>
struct P { unsigned a : 24; unsigned char tag; };
__global__ void pairs(const P *x, const int *ids, unsigned *y, int n, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned v = x[2 * i].a;
    if (ids[i] == key)
        { int j = n - 1 - i; v = x[2 * j].a * 3u + x[2 * j + 1].a; }
    y[i] = v;
}
