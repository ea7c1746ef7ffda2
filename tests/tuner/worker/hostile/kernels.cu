/* Kernels whose code breaks what a structural edit rests on. All take (x, w, y, m, n); y is zero. */
#include "evoke_cuda.h"

#define PARAMETERS const float *x, const float *w, float *y, int m, int n

/* A barrier under a condition that differs among blocks. */
extern "C" __global__ void half_barrier(PARAMETERS) {
    __shared__ float part[32];
    int i = blockIdx.x, t = threadIdx.x;
    part[t] = x[i * n + t % n];
    if (x[i * n] > 0)
        __syncthreads();
    for (int j = t; j < n; j += 32)
        y[i * n + j] = part[t];
}

/* A sum over the block in shared memory. */
extern "C" __global__ void reduced(PARAMETERS) {
    __shared__ float part[32];
    int i = blockIdx.x, t = threadIdx.x;
    float sum = 0;
    for (int j = t; j < n; j += 32)
        sum += x[i * n + j];
    part[t] = sum;
    for (int width = 16; width > 0; width /= 2) {
        __syncthreads();
        if (t < width)
            part[t] += part[t + width];
    }
    if (t == 0)
        y[i * n] = part[0];
}

/* As `reduced`, in shared memory whose size the launch gives. */
extern "C" __global__ void dynamic(PARAMETERS) {
    extern __shared__ float room[];
    int i = blockIdx.x, t = threadIdx.x;
    room[t] = t < n ? x[i * n + t] : 0;
    __syncthreads();
    if (t < n)
        y[i * n + t] = room[31 - t] + room[t];
}

/* A sum over a warp by shuffles. */
extern "C" __global__ void shuffled(PARAMETERS) {
    int i = blockIdx.x, t = threadIdx.x;
    float sum = 0;
    for (int j = t; j < n; j += 32)
        sum += x[i * n + j];
    for (int width = 16; width > 0; width /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, width);
    if (t == 0)
        y[i * n] = sum;
}

/* A block waits for the one before: a chain through global memory. */
extern "C" __global__ void chained(PARAMETERS) {
    int i = blockIdx.x;
    volatile float *flag = y;
    if (threadIdx.x == 0) {
        float before = 1;
        if (i > 0) {
            do
                before = flag[(i - 1) * n];
            while (before == 0);
        }
        flag[i * n] = before + 1 + x[0] * 0;
    }
}

/* Each row's running sum, read back from the output. */
extern "C" __global__ void read_back(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 1; j < n; j++)
        y[i * n + j] = y[i * n + j - 1] * 0.5f + x[i * n + j];
}

/* Each row's elements from the ones before: with x and y in one buffer, from what the last turn wrote. */
extern "C" __global__ void behind(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    y[i * n] = w[0];
    for (int j = 1; j < n; j++)
        y[i * n + j] = x[i * n + j - 1] * 0.5f + w[j];
}

/* The same by columns, so that each turn waits for DRAM. */
extern "C" __global__ void below(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    y[i] = w[0];
    for (int j = 1; j < n; j++)
        y[j * m + i] = x[(j - 1) * m + i] * 0.5f + w[j];
}

/* Sums over a column: with x and y in one buffer, of what the turns before wrote. */
extern "C" __global__ void behind_sums(PARAMETERS) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= n)
        return;
    for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int k = 0; k < m; k++)
            sum += fmaxf(x[k * n + j], (float)i);
        y[i * n + j] = sum * 0.01f;
    }
}

/* A recurrence: no sum. */
extern "C" __global__ void recurrence(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    float chain = 1;
    for (int j = 0; j < n; j++)
        chain = chain * 0.5f + x[i * n + j];
    y[i * n] = chain;
}

/* A greatest value by a comparison, which a NaN passes or not by the order. */
extern "C" __global__ void greatest(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    float best = x[i * n];
    for (int j = 1; j < n; j++) {
        float value = x[i * n + j];
        best = value > best ? value : best;
    }
    y[i * n] = best;
}

/* The first place of a negative number: the loop is left early. */
extern "C" __global__ void first(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    float sum = 0;
    for (int j = 0; j < n; j++) {
        if (x[i * n + j] < -1)
            break;
        sum += x[i * n + j];
    }
    y[i * n] = sum;
}

/* A product of a row and a column for each element. */
extern "C" __global__ void product(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k] * w[k * n + j];
    y[i * n + j] = sum;
}

/* The same with a test that the first thread of a block may fail where others pass. */
extern "C" __global__ void from_three(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (j < 3 || i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k] * w[k * n + j];
    y[i * n + j] = sum;
}

/* Turns that differ among the threads. */
extern "C" __global__ void triangle(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < j; k++)
        sum += x[i * n + k] * w[k * n + j];
    y[i * n + j] = sum;
}

/* A loop that adds to the output, which it also loads. */
extern "C" __global__ void adds_up(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    for (int k = 0; k < n; k++)
        y[i * n + j] += x[i * n + k] * w[k * n + j];
}

/* A vote behind early returns. */
extern "C" __global__ void votes(PARAMETERS) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
    if (j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += w[k];
    y[i * n + j] = sum + (float)__popc(__ballot_sync(__activemask(), x[i * n + j] > 0));
}

/* A test at the beginning that reads memory. */
extern "C" __global__ void tests_memory(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    if (at >= m * n || x[at] > 1)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += w[k];
    y[at] = sum;
}

/* A loop whose result is used in any case. */
extern "C" __global__ void needed(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k] * w[k * n + j];
    y[i * n + j] = x[i * n + j] > 0 ? sum : sum * 0.5f;
}

/* A loop that is left when another thread says so. */
extern "C" __global__ void watches(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += *(volatile const float *)&x[i * n + k];
    if (x[i * n + j] > 0)
        y[i * n + j] = sum;
}

/* The lane's number, which a tile of threads changes. */
extern "C" __global__ void lanes(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    if (i < m && j < n)
        y[i * n + j] = x[i * n + j] + (float)lane;
}

/* An address of a shared array that the thread chooses. */
extern "C" __global__ void wanders(PARAMETERS) {
    __shared__ float tile[8][8], other[8][8];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 8 + tx, i = blockIdx.y * 8 + ty;
    tile[ty][tx] = i < m && j < n ? x[i * n + j] : 0;
    other[ty][tx] = (float)tx;
    __syncthreads();
    float *from = tx > ty ? &tile[tx][0] : &other[0][ty];
    for (int k = 0; k < 3; k++)
        from += m & 1;
    if (i < m && j < n)
        y[i * n + j] = *from;
}

/* Pairs of elements that are read at once. */
extern "C" __global__ void pairs(PARAMETERS) {
    alignas(16) __shared__ float tile[8][8];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 8 + tx, i = blockIdx.y * 8 + ty;
    tile[ty][tx] = i < m && j < n ? x[i * n + j] : 0;
    __syncthreads();
    const long long *two = (const long long *)&tile[tx][ty & 6];
    long long v = *two;
    if (i < m && j < n)
        y[i * n + j] = (float)(int)(v >> 52) + (float)((int)v >> 20);
}

/* Rows of 10, no power of two; and nearly all of the shared memory. */
extern "C" __global__ void ten_wide(PARAMETERS) {
    __shared__ float tile[8][10], much[1180][10];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 8 + tx, i = blockIdx.y * 8 + ty;
    tile[ty][tx] = much[ty * 100][tx] = i < m && j < n ? x[i * n + j] : 0;
    __syncthreads();
    if (i < m && j < n)
        y[i * n + j] = tile[tx][ty] + much[tx * 100][ty];
}

/* Sums of whole numbers that wrap, which no order changes. */
extern "C" __global__ void wraps(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m)
        return;
    int sum = 0;
    for (int j = 0; j < n; j++)
        sum += __float_as_int(x[i * n + j]);
    y[i * n] = (float)(sum >> 8);
}

/* Bounds by an unsigned comparison, which a coordinate before the first passes by wrapping. */
extern "C" __global__ void unsigned_bound(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int u = 0; u < 3; u++)
        for (int v = 0; v < 3; v++)
            if ((unsigned)(i + u - 1) < (unsigned)m && (unsigned)(j + v - 1) < (unsigned)n)
                sum += x[(i + u - 1) * n + j + v - 1] * w[u * 3 + v];
    y[i * n + j] = sum;
}

/* The block's threads share rows of the tile through a window that the next turn overwrites. */
extern "C" __global__ void overlapped(PARAMETERS) {
    __shared__ float tile[40];
    int i = blockIdx.x, t = threadIdx.x;
    for (int j = 0; j < n; j += 32) {
        tile[t] = j + t < n ? x[i * n + j + t] : 0;
        if (t < 8)
            tile[32 + t] = j + 32 + t < n ? x[i * n + j + 32 + t] : 0;
        __syncthreads();
        if (j + t < n)
            y[i * n + j + t] = tile[t] + tile[t + 7];
        __syncthreads();
    }
}

/* A test that lets more blocks work than the grid has. */
extern "C" __global__ void loose_bound(PARAMETERS) {
    int i = blockIdx.x;
    if (i >= 1000)
        return;
    if (threadIdx.x == 0)
        atomicAdd(&y[i % m * n], 1.0f);
}

/* A sum over a warp in shared memory, in step. */
extern "C" __global__ void in_step(PARAMETERS) {
    __shared__ float part[32];
    int i = blockIdx.x, t = threadIdx.x;
    part[t] = t < n ? x[i * n + t] : 0;
    for (int width = 16; width > 0; width /= 2) {
        __syncwarp();
        float other = part[t ^ width];
        __syncwarp();
        part[t] += other;
    }
    if (t < n)
        y[i * n + t] = part[t];
}

/* Neighbours of one warp exchange values through shared memory, in step. */
extern "C" __global__ void crosses(PARAMETERS) {
    __shared__ float tile[8][8];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 8 + tx, i = blockIdx.y * 8 + ty;
    tile[ty][tx] = i < m && j < n ? x[i * n + j] : 0;
    __syncwarp();
    if (i < m && j < n)
        y[i * n + j] = tile[ty][tx ^ 4] * 2;
}

/* A test of the index that bounds nothing: the grid is exact. */
extern "C" __global__ void trusting(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at > 1000000000)
        return;
    for (int k = 0; k < n; k++)
        y[at * n + k] = x[at * n + k] + (float)(at % n + at / n);
}

/* A loop over the row below, where there is one. */
extern "C" __global__ void row_below(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    if (i + 1 < m) {
        for (int k = 0; k < n; k++)
            sum += x[(i + 1) * n + k];
    }
    y[i * n + j] = sum + x[i * n + j];
}

/* Threads end in the loop, where a sum is very large. */
extern "C" __global__ void leaves(PARAMETERS) {
    int i = blockIdx.x;
    float sum = 0;
    for (int k = 0; k < n; k++) {
        sum += x[i * n + k] * w[k];
        if (sum > 1e30f)
            asm volatile("exit;");
    }
    if (threadIdx.x == 0)
        y[i * n] = sum;
}
