#include <evoke_cuda.h>

extern "C" __global__ void bins(const int *k, float *bin, float w, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        bin[i] = truncf(k[i] * w / w);
}
