/* For tests/kernels/test_cuda_math.c: one kernel a function of evoke_cuda.h, y[i] = f(x[i]). */
#include "evoke_cuda.h"

#define MAP(name, call)                                                                            \
    extern "C" __global__ void map_##name(const float *x, float *y, int n) {                       \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                             \
        if (i < n) {                                                                               \
            float v = x[i];                                                                        \
            y[i] = call;                                                                           \
        }                                                                                          \
    }

MAP(expf, expf(v))
MAP(exp2f, exp2f(v))
MAP(logf, logf(v))
MAP(log2f, log2f(v))
MAP(tanhf, tanhf(v))
MAP(sinf, sinf(v))
MAP(cosf, cosf(v))
MAP(sinpif, sinpif(v))
MAP(cospif, cospif(v))
MAP(sqrtf, sqrtf(v))
MAP(rsqrtf, rsqrtf(v))
MAP(exp10f, exp10(v))
MAP(log10f, log10(v))
MAP(tanf, tan(v))
MAP(fmodf, fmod(v, 0.7f))
MAP(fmodf_turned, fmodf(1e30f, v))
MAP(roundf, round(v))
