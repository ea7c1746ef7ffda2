/* Stands in for NVIDIA's cooperative_groups/reduce.h: sums and extremes over a tile. */
#ifndef KERNELS_INCLUDE_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#define KERNELS_INCLUDE_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#include <cooperative_groups.h>

namespace cooperative_groups {

template <typename T> struct plus {
    __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
};
template <typename T> struct less {
    __device__ __forceinline__ T operator()(T a, T b) const { return a < b ? a : b; }
};
template <typename T> struct greater {
    __device__ __forceinline__ T operator()(T a, T b) const { return a < b ? b : a; }
};

template <typename Tile, typename T, typename Op>
__device__ __forceinline__ T reduce(const Tile &tile, T value, const Op &op) {
    for (unsigned int by = Tile::size() / 2; by > 0; by /= 2)
        value = op(value, tile.shfl_xor(value, by));
    return value;
}

} // namespace cooperative_groups

#endif
