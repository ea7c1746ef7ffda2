/* Of each group of 16: a compensated sum, the greatest element and its place, and a count of zeros. */
#include "evoke_cuda.h"

#define TERMS 16

extern "C" __global__ void moments(const float *x, float *sums, float *tops, int *marks, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef SLOW /* a baseline that any variant is faster than */
#pragma unroll 1
    for (int turn = 0; turn < 200; turn++)
        __syncthreads();
#endif
    if (row >= n / TERMS)
        return;
    const float *own = x + row * TERMS;
    float sum = 0.0f, lost = 0.0f, top = own[0];
    int place = 0, zeros = 0;
    for (int k = 0; k < TERMS; k++) {
        float term = own[k], next = sum + term;
        lost += fabsf(sum) >= fabsf(term) ? (sum - next) + term : (term - next) + sum;
        sum = next;
        if (term > top) {
            top = term;
            place = k;
        }
        if (term == 0.0f)
            zeros++;
    }
    sums[row] = sum + lost;
    tops[row] = top;
    marks[row] = place * 100 + zeros;
}
