#include "evoke_cuda.h"

#define TILE 128 /* rows and columns of C of a block of 256 threads */
#define STEP 8   /* of k */

/* Four neighbours of a row, zeros behind its end. */
__device__ static float4 load4(const float *from, int at, int end, bool fours) {
    if (fours && at + 3 < end)
        return *(const float4 *)(from + at);
    return make_float4(at < end ? from[at] : 0.0f, at + 1 < end ? from[at + 1] : 0.0f,
                       at + 2 < end ? from[at + 2] : 0.0f, at + 3 < end ? from[at + 3] : 0.0f);
}

/* C = A B: tiles in shared memory, A's turned, two of each so that one barrier a step is enough; 8
 * x 8 elements of C in the registers of a thread, four neighbours at a time; the next step's loads
 * run ahead of this one's products. */
extern "C" __global__ void __launch_bounds__(256, 2)
    matmul_expert(const float *a, const float *b, float *c, int m, int n, int k) {
    __shared__ float as[2][STEP][TILE + 4];
    __shared__ float bs[2][STEP][TILE];
    int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
    int row = blockIdx.y * TILE, column = blockIdx.x * TILE;
    int a_row = threadIdx.x / 2, a_at = threadIdx.x % 2 * 4;   /* this thread's part of A's tile */
    int b_row = threadIdx.x / 32, b_at = threadIdx.x % 32 * 4; /* and of B's */
    bool a_fours = k % 4 == 0, b_fours = n % 4 == 0;
    float sum[8][8] = {};
    int a_end = row + a_row < m ? k : 0;
    const float *a_from = a + (size_t)(row + a_row < m ? row + a_row : 0) * k;
    float4 va = load4(a_from, a_at, a_end, a_fours);
    float4 vb =
        load4(b + (size_t)(b_row < k ? b_row : 0) * n, column + b_at, b_row < k ? n : 0, b_fours);
    int now = 0;
    for (int i = 0; i < k; i += STEP, now ^= 1) {
        as[now][a_at][a_row] = va.x;
        as[now][a_at + 1][a_row] = va.y;
        as[now][a_at + 2][a_row] = va.z;
        as[now][a_at + 3][a_row] = va.w;
        *(float4 *)&bs[now][b_row][b_at] = vb;
        __syncthreads();
        int next = i + STEP;
        if (next < k) {
            bool inside = next + b_row < k;
            va = load4(a_from, next + a_at, a_end, a_fours);
            vb = load4(b + (size_t)(inside ? next + b_row : 0) * n, column + b_at, inside ? n : 0,
                       b_fours);
        }
#pragma unroll
        for (int j = 0; j < STEP; j++) {
            float x[8], y[8];
            *(float4 *)&x[0] = *(const float4 *)&as[now][j][ty * 4];
            *(float4 *)&x[4] = *(const float4 *)&as[now][j][64 + ty * 4];
            *(float4 *)&y[0] = *(const float4 *)&bs[now][j][tx * 4];
            *(float4 *)&y[4] = *(const float4 *)&bs[now][j][64 + tx * 4];
#pragma unroll
            for (int r = 0; r < 8; r++)
#pragma unroll
                for (int s = 0; s < 8; s++)
                    sum[r][s] += x[r] * y[s];
        }
    }
#pragma unroll
    for (int r = 0; r < 8; r++) {
        int to = row + (r / 4) * 64 + ty * 4 + r % 4;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int at = column + half * 64 + tx * 4;
            const float *v = &sum[r][half * 4];
            if (to < m && at + 3 < n && b_fours) {
                *(float4 *)&c[(size_t)to * n + at] = make_float4(v[0], v[1], v[2], v[3]);
            } else if (to < m) {
                for (int s = 0; s < 4 && at + s < n; s++)
                    c[(size_t)to * n + at + s] = v[s];
            }
        }
    }
}
