// Strided loads that hit the L1, for fitness/model/silicon/strides.csv: lane i reads element
// i * stride, at LOADS places one aligned line or more apart, the same ones in each turn. `zero`
// is 0, which the compiler does not know. (a, out, stride, turns, zero).
#include "evoke_cuda.h"

#define LOADS 8

#define STRIDES(name, type)                                                                        \
    extern "C" __global__ void name(const type *__restrict__ a, type *__restrict__ out,            \
                                    int stride, int turns, int zero) {                             \
        const type *at = a + (int)(threadIdx.x % 32) * stride;                                     \
        type sums[4] = {0, 0, 0, 0};                                                               \
        for (int turn = 0; turn < turns; turn++) {                                                 \
            for (int i = 0; i < LOADS; i++)                                                        \
                sums[i % 4] += at[i * 32];                                                         \
            at += zero;                                                                            \
        }                                                                                          \
        out[threadIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];                                  \
    }

STRIDES(strides_float, float)
STRIDES(strides_double, double)
