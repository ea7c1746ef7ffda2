// The norm of each row by a warp, in the precision of the template: shuffles of double.
#include <cuda_runtime.h>
#include <vector>

namespace rows {
template <typename Real>
__global__ void norms(int count, int width, const Real *__restrict__ values, Real *__restrict__ out) {
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, lane = threadIdx.x & 31;
    if (warp >= count)
        return;
    Real sum = Real(0);
    for (int k = lane; k < width; k += 32)
        sum += values[warp * width + k] * values[warp * width + k];
    for (int d = 16; d > 0; d /= 2)
        sum += __shfl_down_sync(0xffffffff, sum, d);
    if (lane == 0)
        out[warp] = sqrt(sum);
}
} // namespace rows

int main() {
    int count = 4096, width = 300;
    double *values, *out;
    cudaMalloc(&values, sizeof(double) * count * width);
    cudaMalloc(&out, sizeof(double) * count);
    rows::norms<double><<<(count * 32 + 127) / 128, 128>>>(count, width, values, out);
    cudaDeviceSynchronize();
}
