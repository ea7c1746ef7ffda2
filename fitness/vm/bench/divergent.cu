// Lanes of a warp leave a loop at different times: c = steps of the Collatz walk from i + 1, plus a.
#include "evoke_cuda.h"

extern "C" __global__ void divergent(const float *__restrict__ a, const float *__restrict__ b,
                                     float *__restrict__ c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int x = (unsigned int)i + 1;
    int steps = 0;
    while (x != 1 && steps < 200) {
        if (x % 2 == 0)
            x /= 2;
        else
            x = 3 * x + 1;
        steps++;
    }
    c[i] = (float)steps + a[i] + b[i];
}
