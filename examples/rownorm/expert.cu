#include "evoke_cuda.h"

__device__ static float square(float4 v, float sum) {
    return v.x * v.x + (v.y * v.y + (v.z * v.z + (v.w * v.w + sum)));
}

/* The Euclidean norm of each row: a warp a row, four numbers a load, four loads under way, sums
 * joined by shuffles. */
extern "C" __global__ void __launch_bounds__(256)
    rownorm_expert(const float *x, float *y, int rows, int columns) {
    int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= rows)
        return;
    const float *from = x + (size_t)row * columns;
    float sum[4] = {};
    int i = 0; /* numbers that are done by fours */
    if (columns % 4 == 0) {
        const float4 *fours = (const float4 *)from;
        int count = columns / 4, at = lane;
        for (; at + 96 < count; at += 128) {
            float4 a = fours[at], b = fours[at + 32], c = fours[at + 64], d = fours[at + 96];
            sum[0] = square(a, sum[0]);
            sum[1] = square(b, sum[1]);
            sum[2] = square(c, sum[2]);
            sum[3] = square(d, sum[3]);
        }
        for (; at < count; at += 32)
            sum[0] = square(fours[at], sum[0]);
        i = columns;
    }
    for (i += lane; i < columns; i += 32)
        sum[0] += from[i] * from[i];
    float all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    for (int step = 16; step > 0; step /= 2)
        all += __shfl_xor_sync(0xffffffffu, all, step);
    if (lane == 0)
        y[row] = sqrtf(all);
}
