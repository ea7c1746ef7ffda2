// A scan of each block's elements with CUB, as an application has it.
#include <cstdio>
#include <cub/block/block_load.cuh>
#include <cub/block/block_scan.cuh>
#include <cuda/std/array>
#include <thrust/complex.h>
#include <thrust/device_vector.h>

template <int Threads, int Items>
__global__ void scan_blocks(const int *in, int *out, float *norms, int n) {
    using Scan = cub::BlockScan<int, Threads>;
    __shared__ typename Scan::TempStorage scratch;
    cuda::std::array<int, Items> mine{};
    int first = (blockIdx.x * Threads + threadIdx.x) * Items;
    for (int k = 0; k < Items; k++)
        mine[k] = first + k < n ? in[first + k] : 0;
    int before[Items], total;
    Scan(scratch).ExclusiveSum(reinterpret_cast<int(&)[Items]>(mine[0]), before, total);
    for (int k = 0; k < Items; k++)
        if (first + k < n)
            out[first + k] = before[k];
    thrust::complex<float> z(sinf(total * 0.01f), 1.0f);
    if (threadIdx.x == 0)
        norms[blockIdx.x] = abs(z);
}

int main() {
    const int n = 1 << 20, per_block = 128 * 4;
    thrust::device_vector<int> in(n, 1), out(n);
    thrust::device_vector<float> norms((n + per_block - 1) / per_block);
    scan_blocks<128, 4><<<(n + per_block - 1) / per_block, 128>>>(
        thrust::raw_pointer_cast(in.data()), thrust::raw_pointer_cast(out.data()),
        thrust::raw_pointer_cast(norms.data()), n);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
