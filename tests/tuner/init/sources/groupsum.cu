// Sums of halves by tiles of a warp, with the toolkit's cooperative groups and its generator.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>
#include <curand_kernel.h>
#include <vector>

namespace cg = cooperative_groups;

__global__ void noisy_sums(const __half2 *x, float *sums, unsigned long long seed, int n) {
    auto tile = cg::tiled_partition<32>(cg::this_thread_block());
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, i, 0, &state);
    float v = 0;
    if (i < n) {
        __half2 both = h2exp(__hmul2(x[i], __float2half2_rn(-0.5f)));
        v = __low2float(both) + __high2float(both) * curand_uniform(&state);
    }
    v = cg::reduce(tile, v, cg::plus<float>());
    if (tile.thread_rank() == 0)
        sums[i / 32] = v;
}

int main() {
    int n = 1 << 18;
    std::vector<__half2> host(n);
    __half2 *x;
    float *sums;
    cudaMalloc(&x, n * sizeof(*x));
    cudaMalloc(&sums, n / 32 * sizeof(float));
    cudaMemcpy(x, host.data(), n * sizeof(*x), cudaMemcpyHostToDevice);
    noisy_sums<<<n / 256, 256>>>(x, sums, 42, n);
    return cudaDeviceSynchronize() != cudaSuccess;
}
