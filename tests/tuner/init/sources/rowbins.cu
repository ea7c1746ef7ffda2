// A histogram of each row, in shared memory whose size is made of an enumerator.
#include <cassert>
#include <cooperative_groups.h>
#include <cstdio>

namespace cg = cooperative_groups;
enum { bins_of_row = 64 };

__global__ void row_bins(const unsigned char *pixels, unsigned *bins, int width, int height) {
    extern __shared__ unsigned own[];
    cg::thread_block block = cg::this_thread_block();
    for (unsigned i = block.thread_rank(); i < bins_of_row; i += block.size())
        own[i] = 0;
    block.sync();
    int row = blockIdx.x;
    assert(row < height);
    for (int x = threadIdx.x; x < width; x += blockDim.x) {
        unsigned bin = pixels[row * width + x] >> 2;
        if (bin >= bins_of_row)
            printf("no bin %u at %d, %d\n", bin, row, x);
        atomicAdd(&own[bin], 1u);
    }
    block.sync();
    if (threadIdx.x == 0) {
        unsigned most = 0;
        for (int i = 0; i < bins_of_row; i++)
            most = own[i] > own[most] ? i : most;
        bins[row] = most;
    }
}

void run(const unsigned char *pixels, unsigned *bins) {
    int width = 1000, height = 600;
    size_t shared = bins_of_row * sizeof(unsigned);
    row_bins<<<height, 256, shared>>>(pixels, bins, width, height);
}
