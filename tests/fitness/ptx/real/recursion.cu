/* Recursion to a depth of its own in each lane; two functions that call each other; switches. */
#include "real.h"

__device__ __noinline__ int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__device__ __noinline__ int odd(int n);
__device__ __noinline__ int even(int n) {
    return n == 0 ? 1 : odd(n - 1);
}
__device__ __noinline__ int odd(int n) {
    return n == 0 ? 0 : even(n - 1);
}

__device__ __noinline__ int descend(int n, volatile int *end) {
    int local[4];
    local[n & 3] = n;
    if (n == 0)
        return *end;
    int r = descend(n - 1, end);
    return r + local[n & 3];
}

__device__ __noinline__ int ackermann(int m, int n) {
    if (m == 0)
        return n + 1;
    if (n == 0)
        return ackermann(m - 1, 1);
    return ackermann(m - 1, ackermann(m, n - 1));
}

KERNEL(recursion_fibonacci) {
    int i = threadIdx.x;
    out[i] = fibonacci(in[i] + i % 5);
}
KERNEL(recursion_mutual) {
    int i = threadIdx.x;
    out[i] = even(i) * 2 + odd(in[i]);
}
KERNEL(recursion_locals) {
    int i = threadIdx.x;
    volatile int end = in[i];
    out[i] = descend(i * 3, &end);
}
KERNEL(recursion_ackermann) {
    int i = threadIdx.x;
    out[i] = ackermann(in[i] % 3, i % 4);
}

__device__ __noinline__ int choose(int k, int v) {
    switch (k) {
    case 0:
        return v + 1;
    case 1:
        return v * 3;
    case 2:
        return v ^ 0x55;
    case 3:
        return v - 7;
    case 4:
        return v << 2;
    case 5:
        return v / 3;
    case 6:
        return v % 5;
    case 7:
        return -v;
    case 8:
        return v | 1;
    default:
        return 0;
    }
}

KERNEL(switch_table) {
    int i = threadIdx.x;
    out[i] = choose(in[i], i) + choose(i % 11, n);
}
