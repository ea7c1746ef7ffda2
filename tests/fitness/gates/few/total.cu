#include <evoke_cuda.h>

extern "C" __global__ void total(const int *x, int *sum, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        int half = (int)((unsigned)x[i] >> 1);
        atomicAdd(sum, half);
        atomicAdd(sum, x[i] - half);
    }
}
