/* For tests/kernels/test_cuda_math.c: cooperative groups and halves, y[i] of x. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;

/* The sum of x over the eight threads of a tile. */
extern "C" __global__ void map_tile(const float *x, float *y, int n) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<8>(block);
    int i = blockIdx.x * block.size() + block.thread_rank();
    float v = i < n ? x[i] : 0.0f;
    v = cg::reduce(tile, v, cg::plus<float>());
    tile.sync();
    if (i < n)
        y[i] = v + 1000.0f * tile.thread_rank() + 100000.0f * tile.meta_group_rank();
}

/* Halves: each operation rounds once. */
extern "C" __global__ void map_half(const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    half h = __float2half(x[i]), one = half(1.0f);
    half2 pair = __hfma2(__half2half2(h), __halves2half2(h, one), __float2half2_rn(0.25f));
    half sum = h + __hmul(h, h);
    y[i] = h > one ? __half2float(sum) : __low2float(pair) + __high2float(pair);
}
