/* Stands in for NVIDIA's cooperative_groups.h: the block, tiles of a warp, and what they do. What
 * it lacks (grids, clusters, coalesced groups, memcpy_async) is refused by its name. */
#ifndef KERNELS_INCLUDE_CUDA_COOPERATIVE_GROUPS_H
#define KERNELS_INCLUDE_CUDA_COOPERATIVE_GROUPS_H
#include "evoke_cuda.h"

#define EVOKE_GROUP __device__ __forceinline__

namespace cooperative_groups {

class thread_block {
  public:
    EVOKE_GROUP static void sync() { __syncthreads(); }
    EVOKE_GROUP static unsigned int thread_rank() {
        return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    }
    EVOKE_GROUP static unsigned int num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
    EVOKE_GROUP static unsigned int size() { return num_threads(); }
    EVOKE_GROUP static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    EVOKE_GROUP static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    EVOKE_GROUP static dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
    EVOKE_GROUP static dim3 dim_threads() { return group_dim(); }
};

EVOKE_GROUP thread_block this_thread_block() {
    return thread_block();
}

/* `Size` neighbouring threads of a block, a power of two up to a warp. */
template <unsigned int Size, typename Parent = thread_block> class thread_block_tile {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0,
                  "a tile has 1, 2, 4, 8, 16 or 32 threads");

    EVOKE_GROUP static unsigned int mask() {
        return (0xffffffffu >> (32 - Size)) << (evoke_lane() & ~(Size - 1));
    }

  public:
    EVOKE_GROUP static void sync() { __syncwarp(mask()); }
    EVOKE_GROUP static unsigned int thread_rank() {
        return thread_block::thread_rank() & (Size - 1);
    }
    EVOKE_GROUP static constexpr unsigned int num_threads() { return Size; }
    EVOKE_GROUP static constexpr unsigned int size() { return Size; }
    EVOKE_GROUP static unsigned int meta_group_rank() { return thread_block::thread_rank() / Size; }
    EVOKE_GROUP static unsigned int meta_group_size() {
        return (thread_block::num_threads() + Size - 1) / Size;
    }
    template <typename T> EVOKE_GROUP T shfl(T value, int rank) const {
        return __shfl_sync(mask(), value, rank, Size);
    }
    template <typename T> EVOKE_GROUP T shfl_down(T value, unsigned int by) const {
        return __shfl_down_sync(mask(), value, (int)by, Size);
    }
    template <typename T> EVOKE_GROUP T shfl_up(T value, unsigned int by) const {
        return __shfl_up_sync(mask(), value, (int)by, Size);
    }
    template <typename T> EVOKE_GROUP T shfl_xor(T value, unsigned int lanes) const {
        return __shfl_xor_sync(mask(), value, (int)lanes, Size);
    }
    EVOKE_GROUP int any(int predicate) const { return __any_sync(mask(), predicate); }
    EVOKE_GROUP int all(int predicate) const { return __all_sync(mask(), predicate); }
    EVOKE_GROUP unsigned int ballot(int predicate) const {
        return __ballot_sync(mask(), predicate) >> (evoke_lane() & ~(Size - 1));
    }
};

template <unsigned int Size, typename Parent>
EVOKE_GROUP thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
    return thread_block_tile<Size, Parent>();
}

template <typename Group> EVOKE_GROUP void sync(const Group &group) {
    group.sync();
}

} // namespace cooperative_groups

#undef EVOKE_GROUP
#endif
