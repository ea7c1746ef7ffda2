// The six streaming kernels of fitness/model/silicon/stream.csv: one element a thread. All take
// (a, b, c, d, n); a is written, the others are read.
#include "evoke_cuda.h"

#define STREAM(name)                                                                               \
    extern "C" __global__ void name(double *__restrict__ a, const double *__restrict__ b,          \
                                    const double *__restrict__ c, const double *__restrict__ d,    \
                                    int n)
#define INDEX (int)(blockIdx.x * blockDim.x + threadIdx.x)

STREAM(init) {
    int i = INDEX;
    if (i >= n)
        return;
    a[i] = 0.23;
}

STREAM(read) {
    int i = INDEX;
    if (i >= n)
        return;
    double value = b[i];
    if (value == 0.23) /* never: b is zero */
        a[i] = value;
}

STREAM(scale) {
    int i = INDEX;
    if (i >= n)
        return;
    a[i] = b[i] * 1.2;
}

STREAM(triad) {
    int i = INDEX;
    if (i >= n)
        return;
    a[i] = b[i] * d[i] + c[i];
}

STREAM(stencil3) {
    int i = INDEX;
    if (i >= n - 1 || i < 1)
        return;
    a[i] = 0.5 * b[i] + 0.25 * (b[i - 1] + b[i + 1]);
}

STREAM(stencil5) {
    int i = INDEX;
    if (i >= n - 2 || i < 2)
        return;
    a[i] = 0.5 * b[i] + 0.15 * (b[i - 1] + b[i + 1]) + 0.1 * (b[i - 2] + b[i + 2]);
}
