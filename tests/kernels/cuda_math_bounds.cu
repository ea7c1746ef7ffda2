/* For tests/kernels/test_cuda_math_bounds.c: of each function of CUDA's mathematics one kernel by
 * its C name in single precision, one by the overload of floats, one in double precision. */
#include <cmath>

#include "evoke_cuda.h"

#define MAP(kernel, type, call)                                                                    \
    extern "C" __global__ void kernel(const type *x, const type *y, type *z, int n) {              \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                             \
        if (i < n) {                                                                               \
            type a = x[i], b = y[i];                                                               \
            z[i] = call;                                                                           \
        }                                                                                          \
    }
#define ONE(name, f32, f64, low, high)                                                             \
    MAP(f32_##name, float, name##f(a))                                                             \
    MAP(over_##name, float, name(a))                                                               \
    MAP(f64_##name, double, name(a))
#define TWO(name, f32, f64)                                                                        \
    MAP(f32_##name, float, name##f(a, b))                                                          \
    MAP(over_##name, float, name(a, b))                                                            \
    MAP(f64_##name, double, name(a, b))
#include "evoke_cuda_math_bounds.def"

/* Of two results one, by b. */
template <typename T> static __device__ T sincos_of(T a, T b) {
    T s, c;
    sincos(a, &s, &c);
    return b < 0 ? s : c;
}
MAP(f32_sincos, float, sincos_of(a, b))
MAP(f64_sincos, double, sincos_of(a, b))
template <typename T> static __device__ T kind_of(T a) {
    return isnan(a) ? 1 : (isinf(a) ? 2 : (isfinite(a) ? 3 : 4));
}
MAP(f32_kind, float, kind_of(a))
MAP(f64_kind, double, kind_of(a))
/* Mixed arguments are computed in double precision, std:: has the same functions. */
MAP(mixed, double, pow((float)a, 2) + pow(3, b) + std::pow(a, 2.0f) + std::exp((float)b) + exp(3))
