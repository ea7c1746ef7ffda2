/* Kernels that are right, in ways that a careless machine takes for wrong; good.ptx is made from this
 * file (see README.md). All take the same arguments; tests/fitness/vm/test_vm_zoo.c knows what they must give. */
#include "kernels/include/evoke_cuda.h"

#define KERNEL extern "C" __global__ void
#define ARGS const int *in, int *out, int *both, int n
#define I ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define T ((int)threadIdx.x)

KERNEL copy(ARGS) {
    if (I < n)
        out[I] = in[I];
}
KERNEL copy_vector(ARGS) {
    if (I < n / 4)
        ((int4 *)out)[I] = ((const int4 *)in)[I];
}
KERNEL copy_bytes(ARGS) {
    for (int k = I; k < n * 4; k += (int)(blockDim.x * gridDim.x))
        ((char *)out)[k] = ((const char *)in)[k];
}
KERNEL sum_shared(ARGS) {
    __shared__ int s[64];
    s[T] = in[I];
    __syncthreads();
    for (int k = 32; k > 0; k /= 2) {
        if (T < k)
            s[T] += s[T + k];
        __syncthreads();
    }
    out[I] = s[0];
}
KERNEL sum_shuffle(ARGS) {
    int v = in[I];
    for (int k = 16; k > 0; k /= 2)
        v += __shfl_xor_sync(0xffffffff, v, k);
    out[I] = v;
}
KERNEL sum_syncwarp(ARGS) {
    __shared__ int s[64];
    int base = T & ~31, lane = T & 31;
    s[T] = in[I];
    __syncwarp(0xffffffff);
    for (int k = 1; k < 32; k *= 2) {
        int v = s[base + ((lane + k) & 31)];
        __syncwarp(0xffffffff);
        s[T] += v;
        __syncwarp(0xffffffff);
    }
    out[I] = s[T];
}
KERNEL scan(ARGS) {
    __shared__ int s[2][64];
    int now = 0;
    s[0][T] = in[I];
    __syncthreads();
    for (int k = 1; k < 64; k *= 2) {
        s[1 - now][T] = s[now][T] + (T >= k ? s[now][T - k] : 0);
        now = 1 - now;
        __syncthreads();
    }
    out[I] = s[now][T];
}
KERNEL histogram(ARGS) {
    __shared__ int h[16];
    if (T < 16)
        h[T] = 0;
    __syncthreads();
    atomicAdd(&h[in[I] & 15], 1);
    __syncthreads();
    if (T < 16)
        atomicAdd(&both[T], h[T]);
    out[I] = 0;
}
KERNEL transpose(ARGS) {
    __shared__ int tile[8][9];
    int x = T % 8, y = T / 8;
    tile[y][x] = in[I];
    __syncthreads();
    out[I] = tile[x][y];
}
KERNEL stencil(ARGS) {
    __shared__ int s[66];
    s[T + 1] = in[I];
    if (T == 0) {
        s[0] = I > 0 ? in[I - 1] : 0;
        s[65] = I + 64 < n ? in[I + 64] : 0;
    }
    __syncthreads();
    out[I] = s[T] + s[T + 1] + s[T + 2];
}
KERNEL lock_in_warp(ARGS) {
    bool done = false;
    while (!done)
        if (atomicCAS(&both[0], 0, 1) == 0) {
            __threadfence();
            ((volatile int *)both)[1] += in[I];
            __threadfence();
            atomicExch(&both[0], 0);
            done = true;
        }
    out[I] = 0;
}
KERNEL lock_spin(ARGS) {
    while (atomicCAS(&both[0], 0, 1) != 0)
        ;
    __threadfence();
    both[1] += in[I];
    __threadfence();
    atomicExch(&both[0], 0);
    out[I] = 0;
}
KERNEL flag_between_blocks(ARGS) {
    int b = (int)blockIdx.x, last = (int)gridDim.x - 1;
    if (b == last) {
        both[16 + T] = in[T] + 1;
        __threadfence();
        __syncthreads();
        if (T == 0)
            atomicExch(&both[0], 1);
        out[I] = 0;
    } else {
        if (T == 0)
            while (atomicAdd(&both[0], 0) == 0)
                ;
        __threadfence();
        __syncthreads();
        out[I] = both[16 + T];
    }
}
KERNEL last_block_sums(ARGS) {
    __shared__ int last;
    if (T == 0) {
        int s = 0;
        for (int k = 0; k < 64; k++)
            s += in[I + k];
        both[16 + blockIdx.x] = s;
        __threadfence();
        last = atomicAdd(&both[0], 1) == (int)gridDim.x - 1;
    }
    __syncthreads();
    if (last && T == 0) {
        __threadfence();
        int s = 0;
        for (int k = 0; k < (int)gridDim.x; k++)
            s += both[16 + k];
        both[1] = s;
    }
    out[I] = 0;
}
KERNEL producer_consumer(ARGS) {
    volatile int *flag = both;
    if (blockIdx.x == 0 && T == 0)
        for (int k = 0; k < 8; k++) {
            both[16] = in[k];
            __threadfence();
            flag[0] = k + 1;
            while (flag[1] != k + 1)
                ;
            __threadfence();
        }
    if (blockIdx.x == 1 && T == 0)
        for (int k = 0; k < 8; k++) {
            while (flag[0] != k + 1)
                ;
            __threadfence();
            both[32 + k] = both[16];
            __threadfence();
            flag[1] = k + 1;
        }
    out[I] = 0;
}
KERNEL collatz(ARGS) {
    int x = in[I] + 1, steps = 0;
    while (x != 1) {
        x = x % 2 ? 3 * x + 1 : x / 2;
        steps++;
    }
    out[I] = steps;
}
__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
KERNEL recursion(ARGS) { out[I] = fibonacci(in[I] & 7); }
KERNEL exits_early(ARGS) {
    __shared__ int s[64];
    s[T] = 0;
    __syncthreads();
    if (T >= 40) {
        out[I] = 0;
        return;
    }
    s[T] = in[I];
    __syncthreads();
    out[I] = s[39 - T];
}
KERNEL local_array(ARGS) {
    int a[16];
    for (int k = 0; k < 16; k++)
        a[(k * 5 + in[I]) & 15] = k;
    out[I] = a[T & 15];
}
KERNEL dynamic_shared(ARGS) {
    extern __shared__ int d[];
    d[T] = in[I];
    __syncthreads();
    out[I] = d[T ^ 33];
}
__constant__ int table[8] = {1, 3, 5, 7, 11, 13, 17, 19};
KERNEL constant_table(ARGS) { out[I] = table[in[I] & 7]; }
KERNEL compact(ARGS) {
    unsigned keep = __ballot_sync(0xffffffff, in[I] & 1);
    int lane = T & 31, warp = I & ~31;
    out[I] = 0;
    __syncwarp(0xffffffff);
    if (in[I] & 1)
        out[warp + __popc(keep & ((1u << lane) - 1))] = in[I];
}
KERNEL count_barrier(ARGS) { out[I] = __syncthreads_count(in[I] & 1); }
KERNEL named_barriers(ARGS) {
    __shared__ int s[32];
    if (T < 32) {
        s[T] = in[I];
        __asm__ volatile("bar.arrive 1, 64;" ::: "memory");
        out[I] = 0;
    } else {
        __asm__ volatile("bar.sync 1, 64;" ::: "memory");
        out[I] = s[63 - T];
    }
}
KERNEL same_value(ARGS) {
    if (I < 32)
        both[0] = 7;
    out[I] = 0;
}
KERNEL float_maximum(ARGS) {
    float v = (float)in[I];
    int *at = &both[0], old = atomicAdd(at, 0);
    while (__int_as_float(old) < v) {
        int seen = atomicCAS(at, old, __float_as_int(v));
        if (seen == old)
            break;
        old = seen;
    }
    out[I] = 0;
}
KERNEL persistent(ARGS) {
    __shared__ int work;
    for (;;) {
        if (T == 0)
            work = atomicAdd(&both[0], 1);
        __syncthreads();
        int w = work;
        __syncthreads();
        if (w >= n / 64)
            return;
        out[w * 64 + T] = in[w * 64 + T] * 2;
    }
}
KERNEL doubles(ARGS) {
    double x = in[I];
    out[I] = (int)(sqrt(x * x) + 0.5);
}
