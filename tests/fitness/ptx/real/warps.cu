/* Functions in which the threads of a warp or a block meet, called from both sides of a branch. */
#include "real.h"

__device__ __noinline__ int warp_sum(int v) {
    for (int o = 16; o; o >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, o);
    return v;
}

__device__ __noinline__ int block_sum(int v) {
    __shared__ int part[2];
    int s = warp_sum(v);
    if (threadIdx.x % 32 == 0)
        part[threadIdx.x / 32] = s;
    __syncthreads();
    int t = part[0] + part[1];
    __syncthreads();
    return t;
}

KERNEL(warp_both_sides) {
    int i = threadIdx.x, r;
    if (in[i] & 1)
        r = warp_sum(i) + 1;
    else
        r = warp_sum(in[i]) * 2;
    out[i] = r;
}

KERNEL(warp_block_sum) {
    int i = threadIdx.x;
    out[i] = block_sum(i) * 3 + block_sum(in[i]);
}

KERNEL(warp_votes) {
    int i = threadIdx.x;
    unsigned odd = __ballot_sync(~0u, in[i] & 1);
    int three = __any_sync(~0u, in[i] == 3), all = __all_sync(~0u, in[i] < 9);
    int up = __shfl_up_sync(~0u, i, 1), down = __shfl_down_sync(~0u, i, 2, 8);
    __syncwarp();
    out[i] = __popc(odd) + three * 2 + all * 4 + up + down * 3 + __shfl_sync(~0u, i, 3) * 5;
}

KERNEL(warp_lock) {
    __shared__ int lock, total;
    int i = threadIdx.x;
    if (i == 0)
        lock = total = 0;
    __syncthreads();
    for (bool done = false; !done;)
        if (atomicCAS(&lock, 0, 1) == 0) {
            __threadfence_block();
            total = total + in[i];
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    __syncthreads();
    out[i] = total;
}
