// Halves, and groups of threads.
#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
__global__ void sums(const half *x, const half2 *w, half *y, half2 *z, float *total, int n, half scale) {
    cg::thread_block block = cg::this_thread_block();
    auto tile = cg::tiled_partition<32>(block);
    int i = blockIdx.x * blockDim.x + block.thread_rank();
    float v = 0;
    if (i < n) {
        half h = x[i] * scale + __float2half(0.5f);
        h += __hmul(h, x[i]);
        if (h > half(1.0f)) h = __hfma(h, h, x[i]);
        y[i] = h;
        z[i] = __hfma2(w[i], __half2half2(h), w[i]);
        v = __half2float(h);
    }
    v = cg::reduce(tile, v, cg::plus<float>());
    block.sync();
    if (tile.thread_rank() == 0) total[blockIdx.x * (blockDim.x / 32) + tile.meta_group_rank()] = v;
}
void go(half *x, half2 *w, half *y, half2 *z, float *t, int n) { sums<<<(n + 127) / 128, 128>>>(x, w, y, z, t, n, half(2.0f)); }
