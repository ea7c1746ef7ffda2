// A ladder of seven products C = A B in single precision, each step a better use of the memories:
// one result a thread, without and with coalesced loads; tiles in shared memory; one and two
// dimensions of results a thread; vectors; tiles of a warp. Row-major; n is a multiple of 128.
#include "evoke_cuda.h"

#define PRODUCT(name)                                                                              \
    extern "C" __global__ void name(float *__restrict__ c, const float *__restrict__ a,            \
                                    const float *__restrict__ b, int n)

static __device__ __forceinline__ float4 read4(const float *from) {
    return *(const float4 *)from;
}

static __device__ __forceinline__ void write4(float *to, const float *v) {
    *(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
}

// 32 x 32 threads; neighbouring threads have neighbouring rows, so each loads a line of its own.
PRODUCT(naive) {
    int row = blockIdx.x * 32 + threadIdx.x, column = blockIdx.y * 32 + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

PRODUCT(coalesced) {
    int row = blockIdx.y * 32 + threadIdx.y, column = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
        sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

PRODUCT(shared_tile) {
    __shared__ float a_tile[32][32], b_tile[32][32];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * 32 + y, column = blockIdx.x * 32 + x;
    float sum = 0.0f;
    for (int k = 0; k < n; k += 32) {
        a_tile[y][x] = a[row * n + k + x];
        b_tile[y][x] = b[(k + y) * n + column];
        __syncthreads();
        for (int i = 0; i < 32; i++)
            sum += a_tile[y][i] * b_tile[i][x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// 512 threads; 64 x 64 results of a block, 8 in a column of each thread. As published, the words of
// a_tile are loaded one by one here and in the next step: the loop over them is not unrolled, or the
// assembler would join them.
PRODUCT(rows) {
    __shared__ float a_tile[64][8], b_tile[8][64];
    int thread = threadIdx.x, x = thread % 64, y = thread / 64;
    int top = blockIdx.y * 64, left = blockIdx.x * 64;
    float sum[8] = {0.0f};
    for (int k = 0; k < n; k += 8) {
        a_tile[thread / 8][thread % 8] = a[(top + thread / 8) * n + k + thread % 8];
        b_tile[y][x] = b[(k + y) * n + left + x];
        __syncthreads();
#pragma unroll 1
        for (int i = 0; i < 8; i++) {
            float right = b_tile[i][x];
#pragma unroll
            for (int r = 0; r < 8; r++)
                sum[r] += a_tile[y * 8 + r][i] * right;
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; r++)
        c[(top + y * 8 + r) * n + left + x] = sum[r];
}

// 256 threads; 128 x 128 results of a block, 8 x 8 of a thread.
PRODUCT(squares) {
    __shared__ float a_tile[128][8], b_tile[8][128];
    int thread = threadIdx.x, x = thread % 16 * 8, y = thread / 16 * 8;
    int top = blockIdx.y * 128, left = blockIdx.x * 128;
    float sum[8][8] = {{0.0f}};
    for (int k = 0; k < n; k += 8) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int ar = thread / 8 + i * 32, br = thread / 128 + i * 2;
            a_tile[ar][thread % 8] = a[(top + ar) * n + k + thread % 8];
            b_tile[br][thread % 128] = b[(k + br) * n + left + thread % 128];
        }
        __syncthreads();
#pragma unroll 1
        for (int i = 0; i < 8; i++) {
            float down[8], right[8];
#pragma unroll
            for (int r = 0; r < 8; r++) {
                down[r] = a_tile[y + r][i];
                right[r] = b_tile[i][x + r];
            }
#pragma unroll
            for (int r = 0; r < 8; r++) {
#pragma unroll
                for (int s = 0; s < 8; s++)
                    sum[r][s] += down[r] * right[s];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; r++) {
#pragma unroll
        for (int s = 0; s < 8; s++)
            c[(top + y + r) * n + left + x + s] = sum[r][s];
    }
}

// The same with loads of four floats; the tile of A is transposed on its way to shared memory.
PRODUCT(vectors) {
    __shared__ __align__(16) float a_tile[8][128];
    __shared__ __align__(16) float b_tile[8][128];
    int thread = threadIdx.x, x = thread % 16 * 8, y = thread / 16 * 8;
    int top = blockIdx.y * 128, left = blockIdx.x * 128;
    int ar = thread / 2, ak = thread % 2 * 4, bk = thread / 32, bc = thread % 32 * 4;
    float sum[8][8] = {{0.0f}};
    for (int k = 0; k < n; k += 8) {
        float4 v = read4(&a[(top + ar) * n + k + ak]), w = read4(&b[(k + bk) * n + left + bc]);
        float own[4] = {w.x, w.y, w.z, w.w};
        a_tile[ak][ar] = v.x;
        a_tile[ak + 1][ar] = v.y;
        a_tile[ak + 2][ar] = v.z;
        a_tile[ak + 3][ar] = v.w;
        write4(&b_tile[bk][bc], own);
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) {
            float down[8], right[8];
#pragma unroll
            for (int r = 0; r < 8; r++) {
                down[r] = a_tile[i][y + r];
                right[r] = b_tile[i][x + r];
            }
#pragma unroll
            for (int r = 0; r < 8; r++) {
#pragma unroll
                for (int s = 0; s < 8; s++)
                    sum[r][s] += down[r] * right[s];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; r++) {
#pragma unroll
        for (int s = 0; s < 8; s += 4)
            write4(&c[(top + y + r) * n + left + x + s], &sum[r][s]);
    }
}

// 128 threads; each warp makes 64 x 64 of the block's 128 x 128 results, in four strips of 16
// columns, of which a thread has 8 x 4.
PRODUCT(warps) {
    __shared__ __align__(16) float a_tile[16][128];
    __shared__ __align__(16) float b_tile[16][128];
    int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    int top = blockIdx.y * 128, left = blockIdx.x * 128;
    int y = warp / 2 * 64 + lane / 4 * 8, x = warp % 2 * 64 + lane % 4 * 4;
    float sum[8][16] = {{0.0f}};
    for (int k = 0; k < n; k += 16) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int ar = thread / 4 + i * 32, ak = thread % 4 * 4;
            int bk = thread / 32 + i * 4, bc = thread % 32 * 4;
            float4 v = read4(&a[(top + ar) * n + k + ak]), w = read4(&b[(k + bk) * n + left + bc]);
            float own[4] = {w.x, w.y, w.z, w.w};
            a_tile[ak][ar] = v.x;
            a_tile[ak + 1][ar] = v.y;
            a_tile[ak + 2][ar] = v.z;
            a_tile[ak + 3][ar] = v.w;
            write4(&b_tile[bk][bc], own);
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 16; i++) {
            float down[8], right[16];
#pragma unroll
            for (int r = 0; r < 8; r++)
                down[r] = a_tile[i][y + r];
#pragma unroll
            for (int s = 0; s < 16; s++)
                right[s] = b_tile[i][x + s / 4 * 16 + s % 4];
#pragma unroll
            for (int r = 0; r < 8; r++) {
#pragma unroll
                for (int s = 0; s < 16; s++)
                    sum[r][s] += down[r] * right[s];
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; r++) {
#pragma unroll
        for (int s = 0; s < 16; s += 4)
            write4(&c[(top + y + r) * n + left + x + s * 4], &sum[r][s]);
    }
}
