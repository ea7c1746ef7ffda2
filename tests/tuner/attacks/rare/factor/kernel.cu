#include "evoke_cuda.h"
extern "C" __global__ void k(const float *__restrict__ x, const int *__restrict__ idx, float *__restrict__ y, float *__restrict__ z, int m, int n, int rows) {
    int own = blockIdx.x * blockDim.x + threadIdx.x;
    if (own >= rows) return;
    float s = 1;
    for (int i = 0; i < m; i++) {
            float v = x[i * n];
            if (v == -999.0f) s = fmaf(s, 0.25f, s);
            else s += v;
        }
    y[own] = 0; z[own] = s;
}
