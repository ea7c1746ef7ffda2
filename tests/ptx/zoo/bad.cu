/* Kernels that each do one thing wrong; bad.ptx is made from this file (see README.md). All take the
 * same arguments; tests/test_vm_zoo.c has the table of what each must be stopped for. */
#include "kernels/include/evoke_cuda.h"

#define KERNEL extern "C" __global__ void
#define ARGS const int *in, int *out, int *both, int n
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define T ((int)threadIdx.x)

KERNEL read_past_end(ARGS) { out[I] = in[I + 1]; }
KERNEL read_before_start(ARGS) { out[I] = in[I - 1]; }
KERNEL write_past_end(ARGS) { out[I * 2] = in[I]; }
KERNEL read_null(ARGS) { out[I] = *(const int *)(unsigned long long)(in[I] * 0 + 64); }
KERNEL shared_past_end(ARGS) {
    __shared__ int s[64];
    s[T + in[0] * 0 + 32] = in[I];
    __syncthreads();
    out[I] = s[63 - T];
}
KERNEL local_past_end(ARGS) {
    int a[8];
    for (int k = 0; k < 8; k++)
        a[(k + in[k]) & 7] = k;
    a[in[T] * 0 + n] = 1;
    out[I] = a[in[I] & 7];
}
KERNEL misaligned_word(ARGS) { out[I] = *(const int *)((const char *)in + 1); }
KERNEL misaligned_vector(ARGS) {
    int4 v = *(const int4 *)(in + 1);
    ((int4 *)out)[I] = v;
}
KERNEL uninitialised_global(ARGS) { out[I] = out[63 - I] + 1; }
KERNEL uninitialised_shared(ARGS) {
    __shared__ int s[128];
    s[T] = in[I];
    __syncthreads();
    out[I] = s[T + 1];
}
KERNEL uninitialised_local(ARGS) {
    volatile int a[8];
    a[in[T] & 3] = 1;
    out[I] = a[4 + (in[T] & 3)];
}
KERNEL write_input(ARGS) { ((int *)in)[I] = 0; }
KERNEL race_shared_no_barrier(ARGS) {
    __shared__ int s[64];
    s[T] = 0;
    __syncthreads();
    s[T] = in[I];
    out[I] = s[63 - T];
}
KERNEL race_shared_before_write(ARGS) {
    __shared__ int s[64];
    s[T] = in[I];
    __syncthreads();
    int v = s[63 - T];
    s[T] = v;
    __syncthreads();
    out[I] = s[T];
}
KERNEL race_shared_in_warp(ARGS) {
    __shared__ volatile int s[32];
    __shared__ int t[32];
    t[T] = 0;
    s[T] = 0;
    __syncthreads();
    t[T] = in[I];
    out[I] = t[T ^ 1];
}
KERNEL race_shared_two_writers(ARGS) {
    __shared__ int s[1];
    s[0] = T / 32;
    __syncthreads();
    out[I] = s[0];
}
KERNEL race_global_blocks(ARGS) { both[T] = (int)blockIdx.x; }
KERNEL race_global_read(ARGS) {
    if (blockIdx.x == 0)
        both[T] = 1;
    else
        out[I] = both[T];
}
KERNEL race_global_warps(ARGS) {
    both[T & 31] = T;
}
KERNEL race_one_instruction(ARGS) { out[0] = T; }
KERNEL race_atomic_plain(ARGS) {
    if (T < 32)
        atomicAdd(both, 1);
    else
        out[I] = both[0];
}
KERNEL race_flag_without_fence(ARGS) {
    if (T == 0 && blockIdx.x == 0) {
        both[8] = 7;
        *(volatile int *)both = 1;
    }
    if (T == 0 && blockIdx.x == 1) {
        while (*(volatile int *)both == 0)
            ;
        out[0] = both[8];
    }
}
KERNEL spin_for_ever(ARGS) {
    while (*(volatile int *)(both + 1) == 0)
        ;
    out[I] = 1;
}
KERNEL loop_for_ever(ARGS) {
    for (int k = 0;; k++)
        *(volatile int *)(out + I) = k;
}
KERNEL wait_for_later_block(ARGS) {
    volatile int *flags = both;
    flags[blockIdx.x] = 1;
    while (flags[1 - blockIdx.x] == 0)
        ;
}
KERNEL divide_by_zero(ARGS) { out[I] = n / both[I]; }
KERNEL remainder_by_zero(ARGS) { out[I] = n % both[I]; }
__device__ __noinline__ int deep(int n) { return n == 0 ? 0 : deep(n - 1) * 3 + n; }
KERNEL endless_recursion(ARGS) { out[I] = deep(n * 100000); }
KERNEL shuffle_from_nobody(ARGS) {
    if (T < 16)
        out[I] = __shfl_sync(0xffff, in[I], T + 16);
}
KERNEL shuffle_not_in_mask(ARGS) { out[I] = __shfl_sync(0xffff, in[I], 0); }
KERNEL trap_executed(ARGS) {
    if (in[I] >= 0)
        __builtin_trap();
    out[I] = 1;
}
KERNEL barrier_never_full(ARGS) {
    __asm__ volatile("bar.sync 1, 96;");
    out[I] = 1;
}
KERNEL barrier_half_of_warp(ARGS) {
    if (T % 32 < 16)
        __asm__ volatile("bar.sync 0;");
    else
        __asm__ volatile("bar.sync 1;");
    out[I] = 1;
}
KERNEL syncwarp_absent_lane(ARGS) {
    if (T < 16)
        __syncwarp(0xffffffff);
    else
        __syncthreads();
    out[I] = 1;
}
