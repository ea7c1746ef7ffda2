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

/* The double is used in any case and, beside another one, in an arm. */
extern "C" __global__ void mixed(const float *a, const double *c, const int *ids, float *y, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double d = (double)a[i] / a[i + 1];
    float v = (float)d;
    if (ids[i] == key)
        v = (float)(d - c[i]);
    y[i] = v;
}

/* It comes into an arm by way of shared memory. */
extern "C" __global__ void through(const float *a, const double *c, const int *ids, float *y, int key) {
    __shared__ double s[64];
    int t = threadIdx.x, i = blockIdx.x * 64 + t;
    s[t] = (double)a[i] * a[i + 1];
    __syncthreads();
    float v = a[i];
    if (ids[i] == key)
        v = (float)s[t ^ 1];
    y[i] = v;
}

/* It comes there by way of a loop. */
extern "C" __global__ void around(const float *a, const double *c, const int *ids, float *y, int key) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    for (int k = 0; k < key; k++)
        sum += (double)a[i * key + k];
    float v = a[i];
    if (ids[i] == key)
        v = (float)sum;
    y[i] = v;
}
