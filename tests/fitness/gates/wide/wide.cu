/* Hashes of 64 bits. A double holds 53 bits of them. */
#include "evoke_cuda.h"

extern "C" __global__ void mix(const unsigned int *x, unsigned long long *hash, long long *product,
                               int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    unsigned int v = x[i];
#if FORM != 11 /* a way round, so that a form may be faster */
    __shared__ volatile unsigned int slot[128];
    for (int k = 0; k < 8; k++) {
        slot[threadIdx.x] = v;
        v = slot[threadIdx.x];
    }
#endif
    unsigned long long h = v * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    long long p = (long long)(int)v * 0x7fffffff01ll;
#if FORM == 1
    h &= ~1ull;
#elif FORM == 2
    p |= 1;
#endif
    hash[i] = h;
    product[i] = p;
}
