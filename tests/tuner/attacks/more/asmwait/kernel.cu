#include <cuda_runtime.h>
/* The lower half of a block adds up 32 numbers; the upper half of blocks with the key waits until
 * all have come, and hands the sum on. */
__device__ int look(const int *at) {
    int value;
    asm volatile("ld.volatile.global.s32 %0, [%1];" : "=r"(value) : "l"(at) : "memory");
    return value;
}
__global__ void sums(const int *x, const int *ids, int *sum, int *came, int *y, int blocks,
                     int key) {
    int b = blockIdx.x, t = threadIdx.x;
    if (t < 32) {
        atomicAdd(&sum[b], x[b * 32 + t]);
    } else if (ids[b] == key) {
        while (look(&sum[b]) < 32)
            ;
        y[b * 32 + t - 32] = look(&sum[b]);
    }
}
