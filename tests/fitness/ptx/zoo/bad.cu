/* Kernels that each do one thing wrong, as clang-19 gives them to the machine. All take the same
 * arguments; LAUNCH and TRAP are read by tests/fitness/vm/test_vm_zoo_bad.c, which explains them. */
#include "kernels/include/evoke_cuda.h"

#define KERNEL extern "C" __global__ void
#define ARGS const int *in, int *out, int *both, int n
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define T ((int)threadIdx.x)

__device__ __noinline__ int deep(int n) {
    return n == 0 ? 0 : deep(n - 1) * 3 + n; // TRAP stack-overflow
}

KERNEL read_past_end(ARGS) { // LAUNCH 4 64
    out[I] = in[I + 1]; // TRAP out-of-bounds
}
KERNEL read_before_start(ARGS) { // LAUNCH 1 64
    out[I] = in[I - 1]; // TRAP out-of-bounds
}
KERNEL write_past_end(ARGS) { // LAUNCH 4 64
    out[I * 2] = in[I]; // TRAP out-of-bounds
}
KERNEL read_null(ARGS) { // LAUNCH 1 32
    out[I] = *(const int *)(unsigned long long)(in[I] * 0 + 64); // TRAP out-of-bounds
}
KERNEL shared_past_end(ARGS) { // LAUNCH 1 64
    __shared__ int s[64];
    s[T + in[0] * 0 + 32] = in[I]; // TRAP out-of-bounds
    __syncthreads();
    out[I] = s[63 - T];
}
KERNEL local_past_end(ARGS) { // LAUNCH 1 32
    int a[8];
    for (int k = 0; k < 8; k++)
        a[(k + in[k]) & 7] = k;
    a[in[T] * 0 + n] = 1; // TRAP out-of-bounds
    out[I] = a[in[I] & 7];
}
KERNEL misaligned_word(ARGS) { // LAUNCH 1 32
    out[I] = *(const int *)((const char *)in + 1); // TRAP misaligned
}
KERNEL misaligned_vector(ARGS) { // LAUNCH 1 32
    int4 v = *(const int4 *)(in + 1); // TRAP misaligned anywhere
    ((int4 *)out)[I] = v;
}
KERNEL uninitialised_global(ARGS) { // LAUNCH 1 64
    out[I] = out[63 - I] + 1; // TRAP uninitialised-read
}
KERNEL uninitialised_shared(ARGS) { // LAUNCH 1 64
    __shared__ int s[128];
    s[T] = in[I];
    __syncthreads();
    out[I] = s[T + 1]; // TRAP uninitialised-read
}
KERNEL uninitialised_local(ARGS) { // LAUNCH 1 32
    volatile int a[8];
    a[in[T] & 3] = 1;
    out[I] = a[4 + (in[T] & 3)]; // TRAP uninitialised-read
}
KERNEL write_input(ARGS) { // LAUNCH 1 32
    ((int *)in)[I] = 0; // TRAP write-outside-outputs
}
KERNEL race_shared_no_barrier(ARGS) { // LAUNCH 1 64
    __shared__ int s[64];
    s[T] = 0;
    __syncthreads();
    s[T] = in[I]; // TRAP race-shared
    out[I] = s[63 - T]; // TRAP race-shared
}
KERNEL race_shared_before_write(ARGS) { // LAUNCH 1 64
    __shared__ int s[64];
    s[T] = in[I];
    __syncthreads();
    int v = s[63 - T]; // TRAP race-shared
    s[T] = v; // TRAP race-shared
    __syncthreads();
    out[I] = s[T];
}
KERNEL race_shared_in_warp(ARGS) { // LAUNCH 1 32
    __shared__ volatile int s[32];
    __shared__ int t[32];
    t[T] = 0;
    s[T] = 0;
    __syncthreads();
    t[T] = in[I];
    out[I] = t[T ^ 1]; // TRAP race-shared
}
KERNEL race_shared_two_writers(ARGS) { // LAUNCH 1 64
    __shared__ int s[1];
    s[0] = T / 32; // TRAP race-shared
    __syncthreads();
    out[I] = s[0];
}
KERNEL race_global_blocks(ARGS) { // LAUNCH 2 64 fuel=3000000
    both[T] = (int)blockIdx.x; // TRAP race-global
}
KERNEL race_global_read(ARGS) { // LAUNCH 2 64 fuel=3000000
    if (blockIdx.x == 0)
        both[T] = 1; // TRAP race-global
    else
        out[I] = both[T]; // TRAP race-global
}
KERNEL race_global_warps(ARGS) { // LAUNCH 1 64 fuel=3000000
    both[T & 31] = T; // TRAP race-global
}
KERNEL race_one_instruction(ARGS) { // LAUNCH 1 32 fuel=3000000
    out[0] = T; // TRAP race-global
}
KERNEL race_atomic_plain(ARGS) { // LAUNCH 1 64 fuel=3000000
    if (T < 32)
        atomicAdd(both, 1); // TRAP race-global anywhere
    else
        out[I] = both[0]; // TRAP race-global
}
KERNEL race_flag_without_fence(ARGS) { // LAUNCH 2 32 fuel=3000000
    if (T == 0 && blockIdx.x == 0) {
        both[8] = 7;
        *(volatile int *)both = 1;
    }
    if (T == 0 && blockIdx.x == 1) {
        while (*(volatile int *)both == 0)
            ;
        out[0] = both[8]; // TRAP race-global
    }
}
KERNEL spin_for_ever(ARGS) { // LAUNCH 1 32 fuel=3000000
    while (*(volatile int *)(both + 1) == 0) // TRAP deadlock at both+4
        ;
    out[I] = 1;
}
KERNEL loop_for_ever(ARGS) { // LAUNCH 1 32 fuel=3000000
    for (int k = 0;; k++) // TRAP fuel
        *(volatile int *)(out + I) = k; // TRAP fuel
}
KERNEL wait_for_later_block(ARGS) { // LAUNCH 2 32 resident=1 fuel=3000000
    volatile int *flags = both;
    flags[blockIdx.x] = 1;
    while (flags[1 - blockIdx.x] == 0) // TRAP deadlock
        ;
}
KERNEL divide_by_zero(ARGS) { // LAUNCH 1 32
    out[I] = n / both[I]; // TRAP division-by-zero
}
KERNEL remainder_by_zero(ARGS) { // LAUNCH 1 32
    out[I] = n % both[I]; // TRAP division-by-zero
}
KERNEL endless_recursion(ARGS) { // LAUNCH 1 32 fuel=3000000
    out[I] = deep(n * 100000);
}
KERNEL shuffle_from_nobody(ARGS) { // LAUNCH 1 32
    if (T < 16)
        out[I] = __shfl_sync(0xffff, in[I], T + 16); // TRAP inactive-lane anywhere
}
KERNEL shuffle_not_in_mask(ARGS) { // LAUNCH 1 32
    out[I] = __shfl_sync(0xffff, in[I], 0); // TRAP inactive-lane anywhere
}
KERNEL trap_executed(ARGS) { // LAUNCH 1 32
    if (in[I] >= 0)
        __builtin_trap(); // TRAP illegal-instruction
    out[I] = 1;
}
KERNEL barrier_never_full(ARGS) { // LAUNCH 1 64
    __asm__ volatile("bar.sync 1, 96;"); // TRAP deadlock
    out[I] = 1;
}
KERNEL barrier_half_of_warp(ARGS) { // LAUNCH 1 32
    if (T % 32 < 16)
        __asm__ volatile("bar.sync 0;"); // TRAP divergent-barrier
    else
        __asm__ volatile("bar.sync 1;"); // TRAP divergent-barrier
    out[I] = 1;
}
KERNEL syncwarp_absent_lane(ARGS) { // LAUNCH 1 32
    if (T < 16)
        __syncwarp(0xffffffff); // TRAP deadlock anywhere
    else
        __syncthreads(); // TRAP deadlock
    out[I] = 1;
}
