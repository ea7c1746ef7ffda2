#include "evoke_cuda.h"

/* Products of pairs; of pairs with the key, the difference of squares, computed in double. */
extern "C" __global__ void rounds(const float *a, const float *b, const int *ids, float *y, int n,
                                  int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float v = a[i] * b[i];
    if (ids[i] == key)
        v = (float)((double)a[i] * a[i] - (double)b[i] * b[i]);
    y[i] = v;
}
