/* Function pointers: in tables of global and constant memory, in linked structs, as values. */
#include "real.h"

typedef int (*operation)(int, int);

__device__ __noinline__ int add(int a, int b) {
    return a + b;
}
__device__ __noinline__ int mul(int a, int b) {
    return a * b;
}
__device__ __noinline__ int less3(int a, int b) {
    return a - b * 3;
}

__device__ operation table[3] = {add, mul, less3};
__constant__ operation constant_table[2] = {mul, add};

struct node {
    int value;
    const node *next;
    operation apply;
};
__device__ node last = {7, nullptr, mul};
__device__ node middle = {5, &last, add};
__constant__ node first = {3, &middle, less3};

KERNEL(pointer_table) {
    int i = threadIdx.x;
    out[i] = table[in[i] % 3](in[i], i) + constant_table[i & 1](i, 3);
}

KERNEL(pointer_list) {
    int i = threadIdx.x, s = in[i];
    for (const node *p = &first; p; p = p->next)
        s = p->apply(s, p->value);
    out[i] = s;
}

KERNEL(pointer_value) {
    int i = threadIdx.x;
    operation f = in[i] & 1 ? add : in[i] & 2 ? mul : less3, g = i & 4 ? f : add;
    out[i] = f(g(i, 2), in[i]);
}
