/* Sums of rows by cooperative groups: a block has a row, its tiles of 32 threads sum by shuffles, and
 * the first tile adds what the tiles found. */
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

namespace cg = cooperative_groups;

extern "C" __global__ void groups(const float *x, float *sums, int columns) {
    __shared__ float part[32];
    cg::thread_block block = cg::this_thread_block();
    cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
    const float *row = x + (size_t)blockIdx.x * columns;
    float sum = 0.0f;
    for (int i = block.thread_rank(); i < columns; i += block.size())
        sum += row[i];
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0)
        part[tile.meta_group_rank()] = sum;
    block.sync();
    if (tile.meta_group_rank() == 0) {
        float own = tile.thread_rank() < tile.meta_group_size() ? part[tile.thread_rank()] : 0.0f;
        own = cg::reduce(tile, own, cg::plus<float>());
        if (tile.thread_rank() == 0)
            sums[blockIdx.x] = own;
    }
}
