/* Kernels of test_structure_run.c: each shape of code that a structural edit meets. All take
 * (x, w, y, m, n): x and w are inputs of small whole numbers, so that every order of a sum gives the
 * same bits; y is the output of m * n numbers. */
#include "evoke_cuda.h"

#define PARAMETERS const float *x, const float *w, float *y, int m, int n

/* One element a thread, behind a test of coordinates; grid (n, m), block 8 x 4. */
extern "C" __global__ void product(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k] * w[k * n + j];
    y[i * n + j] = sum;
}

/* The test the other way round, with the sizes of block and grid read from the registers. */
extern "C" __global__ void inside(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < m * n)
        y[at] = x[at] + (float)gridDim.x;
}

/* No test at all: one block a row. */
extern "C" __global__ void rows(PARAMETERS) {
    for (int j = threadIdx.x; j < n; j += 32)
        y[blockIdx.x * n + j] = x[blockIdx.x * n + j] * w[j];
}

/* The same by way of shared memory, on a grid that no argument tells. */
extern "C" __global__ void untold(PARAMETERS) {
    __shared__ float row[32];
    for (int first = 0; first < n; first += 32) {
        int j = first + threadIdx.x;
        row[threadIdx.x] = j < n ? x[blockIdx.x * n + j] : 0.0f;
        __syncthreads();
        if (j < n)
            y[blockIdx.x * n + j] = row[threadIdx.x] * w[j] + row[threadIdx.x ^ 1] + gridDim.x;
        __syncthreads();
    }
}

/* Sides of a branch, a select, and a loop whose turns depend on the coordinates. */
extern "C" __global__ void branches(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m)
        return;
    if (j >= n)
        return;
    float sum = x[i * n + j];
    if (sum > 3) {
        for (int k = 0; k < (i + j) % 5; k++)
            sum += w[k] * (float)(k + 1);
    } else if (i % 2 == 0) {
        sum = sum * 2 + w[j];
    }
    for (int k = 0; k < n; k++) {
        if (x[i * n + k] > 6)
            break;
        sum += 1;
    }
    y[i * n + j] = sum;
    if (sum > 20)
        y[i * n + j] = sum - 1;
}

/* A sum over a block's threads in shared memory: one block a row. */
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
    __syncthreads();
    for (int j = t; j < n; j += 32)
        y[i * n + j] = part[0] - w[j];
}

/* As `reduced`, with loops that step by the size of the block. */
extern "C" __global__ void own_steps(PARAMETERS) {
    __shared__ float part[32];
    int i = blockIdx.x, t = threadIdx.x;
    float sum = 0;
    for (int j = t; j < n; j += blockDim.x)
        sum += x[i * n + j];
    part[t] = sum;
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
        __syncthreads();
        if (t < width)
            part[t] += part[t + width];
    }
    __syncthreads();
    for (long long j = t; j < n; j += blockDim.x)
        y[i * n + j] = part[0] - w[j];
}

/* As `reduced`, with more shared memory than eight rows could have together. */
extern "C" __global__ void roomy(PARAMETERS) {
    __shared__ float part[64 * 32];
    int i = blockIdx.x, t = threadIdx.x;
    float sum = 0;
    for (int j = t; j < n; j += 32)
        part[j] = x[i * n + j];
    __syncthreads();
    for (int j = 0; j < n; j++)
        sum += part[j];
    for (int j = t; j < n; j += 32)
        y[i * n + j] = sum - w[j];
}

/* A shared array that is first the same for all blocks of a column, then differs. */
extern "C" __global__ void phases(PARAMETERS) {
    __shared__ float tile[32];
    int i = blockIdx.y, t = threadIdx.x;
    float sum = 0;
    for (int j = 0; j < n; j += 32) {
        tile[t] = j + t < n ? w[j + t] : 0;
        __syncthreads();
        for (int k = 0; k < 32 && j + k < n; k++)
            sum += tile[k] * x[i * n + j + k];
        __syncthreads();
    }
    tile[t] = sum + (float)(t % 4);
    __syncthreads();
    for (int j = t; j < n; j += 32)
        y[i * n + j] = tile[31 - t] + tile[t];
}

/* An array of the thread's own, with indices that are not constant. */
extern "C" __global__ void local_array(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    float bins[4] = {0, 0, 0, 0};
    if (at >= m * n)
        return;
#pragma unroll 1
    for (int k = 0; k < 9; k++)
        bins[((int)x[at] + k) & 3] += w[k % n];
    y[at] = bins[at & 3] * 2 + bins[0];
}

/* Atomic sums of small numbers, one a column; y starts at zero. */
extern "C" __global__ void counted(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i < m && j < n)
        atomicAdd(&y[j], x[i * n + j]);
}

/* The threads of a warp exchange values. */
extern "C" __global__ void exchanged(PARAMETERS) {
    int i = blockIdx.x, t = threadIdx.x;
    float sum = 0;
    for (int j = t; j < n; j += 32)
        sum += x[i * n + j];
    for (int width = 16; width > 0; width /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, width);
    for (int j = t; j < n; j += 32)
        y[i * n + j] = sum * w[j];
}

/* Loops with several results: a conditional sum and a greatest value, then a recurrence. */
extern "C" __global__ void sums(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float sum = w[i % n], greatest = -1;
    int count = 2;
    for (int j = n - 1; j >= 0; j--) {
        float value = x[i * n + j];
        greatest = fmaxf(greatest, value);
        if (value > 2) {
            sum += value;
            count++;
        }
    }
    float squares = 0;
    for (int j = 0; j < n; j += 3)
        squares += x[i * n + j] * x[i * n + j] + greatest;
    float chain = 1;
    for (int j = 0; j < n; j++)
        chain = chain * 0.5f + x[i * n + j];
    y[i * n] = sum + (float)count * 2 + squares + chain;
    for (int j = 1; j < n; j++)
        y[i * n + j] = sum + greatest;
}

/* Results of a loop that are used where a value is large, or below the diagonal. */
extern "C" __global__ void masked(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0, other = 1;
    for (int k = 0; k < n; k++) {
        sum += x[i * n + k] * w[k * n + j];
        other += x[i * n + k];
    }
    if (x[i * n + j] > 5)
        y[i * n + j] = sum;
    else if (i > j)
        y[i * n + j] = other;
    else
        y[i * n + j] = 0;
}

/* A result that is selected, and one whose condition depends on the loop. */
extern "C" __global__ void lower(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0, other = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k] * w[k * n + j];
    for (int k = 0; k < n; k++)
        other += x[i * n + k];
    float value = i >= j ? sum * 2 : 1;
    y[i * n + j] = other > 9 ? value : other;
}

/* A window that slides over rows: one element a thread; grid (n, m), block 8 x 4. */
extern "C" __global__ void window(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m - 2 || j >= n - 2)
        return;
    float sum = 0;
    for (int u = 0; u < 3; u++)
        for (int v = 0; v < 3; v++)
            sum += x[(i + u) * n + j + v] * w[u * 3 + v];
    y[i * n + j] = sum;
}

/* A window along each of m rows, whose sums are added; the rows are counted down. */
extern "C" __global__ void channels(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x;
    if (j + 2 < n) {
        float sum = 0;
        for (int i = m - 1; i >= 0; i--)
            for (int v = 0; v < 3; v++)
                sum += x[i * n + j + v] * w[i + v];
        y[j] = sum;
    }
}

/* A window with zeros around the rows. */
extern "C" __global__ void bordered(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int u = 0; u < 3; u++)
        for (int v = 0; v < 3; v++) {
            int row = i + u - 1, column = j + v - 1;
            if (row >= 0 && row < m && column >= 0 && column < n)
                sum += x[row * n + column] * w[u * 3 + v];
        }
    y[i * n + j] = sum;
}

/* Through the read-only path. */
extern "C" __global__ void read_only(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    if (at >= m * n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += __ldg(&x[at / n * n + k]) * __ldg(&w[k]);
    y[at] = sum;
}

/* Loads at loaded addresses. */
extern "C" __global__ void gathered(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float sum = 0;
    for (int j = 0; j < n; j++)
        sum += x[i * n + (int)w[j] % n] * (float)(j + 1);
    for (int j = 0; j < n; j++)
        y[i * n + j] = sum;
}

/* Calls functions that stay calls: the reduction of large angles, and a long remainder. */
extern "C" __global__ void waves(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    if (at >= m * n)
        return;
    y[at] = sinf(x[at] * 20000.0f) + fmodf(x[at] * 1e15f + 3.0f, 7.0f);
}

static __device__ __noinline__ void keep(float *to, float value) {
    *to = value;
}

/* Calls a function whose effect is not known. */
extern "C" __global__ void keeps(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    if (at < m * n)
        keep(&y[at], x[at]);
}

/* Rows of compressed storage: each loop's end is loaded in each turn. The second loop stores. */
extern "C" __global__ void compressed(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float sum = 0;
    for (int k = (int)w[i % 9]; k < (int)w[i % 9 + 1]; k++)
        sum += x[i * n + k % n] * (float)(k + 1);
    y[i * n] = sum;
    for (int k = (int)w[i % 9]; k < (int)w[i % 9 + 1]; k++)
        y[i * n + k % n] += 1;
}

/* Refused: the loop loads what the kernel writes. */
extern "C" __global__ void writes_back(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    for (int j = 1; j < n; j++)
        y[i * n + j] = y[i * n + j - 1] + w[j];
    for (int j = 0; j < n; j++)
        y[i * n] += y[j];
}

/* A product with large blocks, 32 x 32. */
extern "C" __global__ void wide(PARAMETERS) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y * 32 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < n; k++)
        sum += x[i * n + k] * w[k * n + j];
    y[i * n + j] = sum;
}

/* Refused: neighbouring threads load neighbouring values already, each its own. */
extern "C" __global__ void columns(PARAMETERS) {
    int j = blockIdx.x * 32 + threadIdx.x;
    if (j >= n)
        return;
    float sum = 0;
    for (int i = 0; i < m; i++)
        sum += x[i * n + j];
    y[j] = sum;
}

/* Refused: threads that end early would vote. */
extern "C" __global__ void some_bits(PARAMETERS) {
    int j = blockIdx.x * 32 + threadIdx.x, i = blockIdx.y;
    if (j >= n)
        return;
    float sum = 0;
    for (int k = 0; k < m; k++)
        sum += w[k];
    y[i * n + j] = sum + (float)__popc(__ballot_sync(__activemask(), sum > 2));
}

/* Refused: the barrier depends on the block. */
extern "C" __global__ void half_barrier(PARAMETERS) {
    __shared__ float part[32];
    int i = blockIdx.x, t = threadIdx.x;
    part[t] = x[i * n + t % n];
    if (x[i * n] > 4)
        __syncthreads();
    for (int j = t; j < n; j += 32)
        y[i * n + j] = part[t];
}

/* Refused: the test at the beginning reads memory. */
extern "C" __global__ void tests_memory(PARAMETERS) {
    int at = blockIdx.x * 32 + threadIdx.x;
    if (at >= m * n || x[at] > 5)
        return;
    for (int k = 0; k < n; k++)
        y[at] = w[k];
}

/* Two tiles that go through shared memory by columns; one is counted in as well. */
extern "C" __global__ void turned(PARAMETERS) {
    __shared__ float tile[8][8];
    __shared__ int seen[2][8][8];
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    bool inside = i < m && j < n;
    tile[threadIdx.y][threadIdx.x] = inside ? x[i * n + j] : 0;
    seen[0][threadIdx.x][threadIdx.y] = (int)threadIdx.x;
    seen[1][threadIdx.y][threadIdx.x] = 0;
    __syncthreads();
    atomicAdd(&seen[1][threadIdx.x][3], (int)tile[threadIdx.x][threadIdx.y]);
    __syncthreads();
    if (inside)
        y[i * n + j] = tile[threadIdx.x][threadIdx.y] * 2 +
                       (float)(seen[0][threadIdx.x][threadIdx.y] + seen[1][threadIdx.y][3]);
}

/* A flat array of rows, with a place that no form tells. */
extern "C" __global__ void flat(PARAMETERS) {
    __shared__ float tile[64];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 8 + tx, i = blockIdx.y * 8 + ty;
    float sum = 0;
    tile[ty * 8 + tx] = i < m && j < n ? x[i * n + j] : 0;
    __syncthreads();
    for (int k = 0; k < 8; k++)
        sum += tile[tx * 8 + k] + tile[(tx * 5 + k * 7 + ty) & 63];
    if (i < m && j < n)
        y[i * n + j] = sum;
}

/* Pairs of elements that are read at once, which a pad of one would tear apart. */
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

/* Refused: an address of the array is chosen by the thread. */
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

/* Columns that run over the ends of rows, as the array's layout lets them. */
extern "C" __global__ void overruns(PARAMETERS) {
    __shared__ float tile[9][8];
    int t = threadIdx.y * 8 + threadIdx.x, i = blockIdx.y;
    (&tile[0][0])[t] = (float)(t % 7) + x[i * n];
    if (t < 8)
        tile[8][t] = 1;
    __syncthreads();
    for (int j = t; j < n; j += 64)
        y[i * n + j] = (&tile[threadIdx.x][0])[threadIdx.y + 3] + w[j];
}

/* A row a thread: the first and the last place of the greatest, by real and by whole numbers; loops
 * that count up and down. */
extern "C" __global__ void picked(PARAMETERS) {
    int i = blockIdx.x * 4 + threadIdx.x;
    if (i >= m)
        return;
    float best = -1;
    int first = 0, last = 0, least = 100, where = 7;
    for (int j = 0; j < n; j++) {
        float value = x[i * n + j];
        if (value > best) {
            best = value;
            first = j;
        }
    }
    for (int j = n - 1; j >= 0; j--) {
        float value = x[i * n + j];
        if (!(value < best))
            last = j;
        best = value < best ? best : value;
    }
    for (unsigned int j = 0; j < (unsigned int)n; j += 3) {
        int value = (int)x[i * n + j];
        if (value < least) {
            least = value;
            where = (int)j;
        }
    }
    y[i * n] = (float)(first * 10000 + where * 100 + last) + best + (float)least;
}

/* A row a thread, written in each turn from what earlier loops made of it. */
extern "C" __global__ void scaled(PARAMETERS) {
    int i = blockIdx.x * 8 + threadIdx.x;
    if (i >= m)
        return;
    float most = 0, sum = 1;
    for (int j = 0; j < n; j++)
        most = fmaxf(most, x[i * n + j]);
    for (int j = 0; j < n; j++) {
        float part = most - x[i * n + j];
        y[i * n + j] = part;
        sum += part * w[j];
    }
    for (int j = 0; j < n; j++)
        y[i * n + j] = y[i * n + j] + sum;
}

/* Sums in a loop that is not spread, since what it sums up is written in each of its turns. */
extern "C" __global__ void groups(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x;
    if (j >= n)
        return;
    float all = 0, before = 1;
    for (int i = 0; i < m; i++) {
        float sum = 0;
        for (int k = 0; k < n; k++)
            sum += x[i * n + k] * w[k * n + j];
        before = before * 0.5f + sum;
        all += (float)(int)before;
        y[i * n + j] = before;
    }
    if (j > 2)
        y[j] = all;
}

/* A loop over the grid: block and grid size are read from the registers. */
extern "C" __global__ void strides(PARAMETERS) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < m; i += blockDim.x * gridDim.x) {
        float sum = 0;
        for (int j = 0; j < n; j++)
            sum += x[i * n + j];
        y[i * n] = sum;
    }
}

/* Loads of one place, computed in several ways, with stores between them. */
extern "C" __global__ void renewed(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 4 + threadIdx.y;
    if (i >= m || j >= n)
        return;
    y[i * n + j] = 1;
    for (int k = 0; k < 3; k++) {
        float before = y[(i + k) * n + j - k * n];
        y[i * n + j] = before * 2 + x[i * n + j];
        y[i * n + j] = y[(i + k + 1) * n + j - (k + 1) * n] + (float)k;
    }
}

/* Threads of a block exchange values through shared memory, behind tests of coordinates. */
extern "C" __global__ void swapped(PARAMETERS) {
    __shared__ float tile[8][8];
    int tx = threadIdx.x, ty = threadIdx.y, j = blockIdx.x * 8 + tx, i = blockIdx.y * 8 + ty;
    tile[ty][tx] = i < m && j < n ? x[i * n + j] : 0;
    __syncthreads();
    if (i < m && j < n)
        y[i * n + j] = tile[ty ^ 1][tx] + tile[ty][tx ^ 1];
}

/* Tiles of 8 x 8 values, one for each thread, under conditions; the loops over a tile's values run
 * one turn. */
extern "C" __global__ void copied(PARAMETERS) {
    __shared__ float a[8][9], b[8][8];
    int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 8 + tx;
    int row = blockIdx.y * 8, column = blockIdx.x * 8, even = (n & 1) == 0;
    float sum = 0;
    for (int k = 0; k < n; k += 8) {
        for (int i = thread; i < 64; i += 64) {
            int r = row + i / 8, c = k + i % 8;
            float v = 0;
            if (r < m) {
                if (even)
                    v = c < n ? x[r * n + c] : 0;
                else if (c < n)
                    v = __ldg(x + r * n + c);
            }
            a[i % 8][i / 8] = v;
        }
        for (int i = thread; i < 64; i += 64)
            b[i / 8][i % 8] = k + i / 8 < n && column + i % 8 < n
                                  ? w[(k + i / 8) * n + column + i % 8]
                                  : 0;
        __syncthreads();
        for (int kk = 0; kk < 8; kk++)
            sum += a[kk][ty] * b[kk][tx];
        __syncthreads();
    }
    if (row + ty < m && column + tx < n)
        y[(row + ty) * n + column + tx] = sum;
}

/* A load under a condition that was loaded, a loop of which threads take one turn or none, and one
 * of which some take two. */
extern "C" __global__ void chosen(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    float sum = 0;
    if (i >= m || j >= n)
        return;
    for (int k = 0; k < n; k++) {
        if (w[k] > 3)
            sum += x[i * n + k] + (float)j;
        for (int t = threadIdx.x + threadIdx.y; t < 8; t += 8)
            sum += w[t * n % 8];
        for (int t = threadIdx.x; t < 12; t += 8)
            sum += w[t * n % 8] * 2;
    }
    y[i * n + j] = sum;
}

/* All rows but the first and the last, whose bound each turn computes anew; the other rows are 0. */
extern "C" __global__ void middle(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x;
    if (j >= n)
        return;
    y[j] = 0;
    y[(m - 1) * n + j] = 0;
    for (int i = 1; i < m - 1; i++)
        y[i * n + j] = x[(i - 1) * n + j] + 2 * x[i * n + j] + x[(i + 1) * n + j];
}

/* Half of the rows, and no more than 30. */
extern "C" __global__ void half(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x;
    if (j >= n)
        return;
    for (int i = 0; i < min(m / 2, 30); i++)
        y[i * n + j] = x[i * n + j] * 3;
    for (int i = min(m / 2, 30); i < m; i++)
        y[i * n + j] = w[j];
}

/* A bound that the turns change. */
extern "C" __global__ void shrinking(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, last = m;
    if (j >= n)
        return;
    float sum = 0;
    for (int i = 0; i < last - 1; i++) {
        sum += x[i * n + j];
        if (sum > 20)
            last--;
    }
    for (int i = 0; i < m; i++)
        y[i * n + j] = sum;
}

/* An index along x that stands for a row and a column, and a window that may lie outside. */
extern "C" __global__ void taps(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= m * n)
        return;
    int column = at % n, row = at / n;
    float sum = 0;
    for (int a = -1; a <= 1; a++) {
        for (int b = -1; b <= 1; b++) {
            if (row + a >= 0 && row + a < m && column + b >= 0 && column + b < n)
                sum += x[(row + a) * n + column + b] * w[(a + 1) * 3 + b + 1];
        }
    }
    y[at] = sum;
}

/* An index that is divided twice, in 64 bits, and by a product. */
extern "C" __global__ void planes(PARAMETERS) {
    long long at = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (long long)m * n)
        return;
    long long column = at % n, row = at / n % m, plane = at / ((long long)n * m);
    long long inside = at % ((long long)m * n);
    y[(plane * m + row) * n + column] = x[inside] * 2 + (float)(column + 100 * row);
}

/* Every second column of x; a row of y is as long as arguments say, and of six elements. */
extern "C" __global__ void halves(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, half = (n + 1) / 2;
    if (at >= m * half)
        return;
    int column = 2 * (at % half), row = at / half;
    y[at] = x[row * n + column] + (column + 1 < n ? x[row * n + column + 1] : w[row % 2]);
}

extern "C" __global__ void sixes(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < m * n)
        y[at] = x[at] * (float)(at % 6) + (float)(at / 6);
}

/* A divisor whose parts may be negative, beside a value that differs from it where they are. */
extern "C" __global__ void rounded(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    int cut = n + 4 + (m - 9) / 2, down = n + 4 + ((m - 9) >> 1);
    if (at < m * n)
        y[at] = x[at] * (float)(at % cut) + (float)(at / cut + 7 * down);
}

extern "C" __global__ void floors(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x, down = n + 4 + ((m - 9) >> 1);
    if (at < m * n)
        y[at] = x[at] * (float)(at % down) + (float)(at / down);
}

/* No test keeps the index inside: the grid is exact. */
extern "C" __global__ void exact(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    y[at * n + at % n] = (float)(1 + at / n);
}

/* The index is not the only use of the thread's number. */
extern "C" __global__ void beside(PARAMETERS) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < m * n)
        y[at] = x[at] + (float)(at % n + threadIdx.x);
}

/* Threads that wait for each other divide their index. */
extern "C" __global__ void awaited(PARAMETERS) {
    __shared__ float last[32];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    last[threadIdx.x] = at < m * n ? x[at] : 0;
    __syncthreads();
    if (at < m * n)
        y[at] = last[31 - threadIdx.x] + (float)(at % n);
}

/* Loads of one address under conditions of which one follows from another, and one does not. */
extern "C" __global__ void doubted(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m * n)
        return;
    float a = 0, b = 0, c = 0, d = 0;
    if (i + 1 < m * n - 3)
        a = x[i + 1];
    if (i + 1 < m * n) /* where the first may not have run */
        b = x[i + 1];
    if (i + 2 < m * n - 3) /* only where it has */
        c = x[i + 1];
    if (m * n - 3 >= i && i + 1 < m * n) /* the same number on another side */
        d = x[i + 1];
    y[i] = a + 2 * b + 4 * c + 8 * d;
}

/* A load that data and a turn decide upon, and one that only the turn decides upon. */
extern "C" __global__ void passed_by(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m * n)
        return;
    float a = 0;
    for (int k = 0; k < 3; k++) {
        if (w[5 + k] > 5)
            continue;
        if (i > k)
            a += w[k];
    }
    for (int k = 0; k < 3; k++)
        if (i > k)
            a += 2 * w[k];
    y[i] = a;
}

/* A store between loads of one address, and one between guarded loads. */
extern "C" __global__ void stored_between(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m * n)
        return;
    float a = 0, b = 0;
    if (i > 2)
        a = y[i] + x[i];
    y[i] = a + 3;
    if (i > 2)
        b = y[i] * x[i];
    y[i] = a + b;
}

/* Loads that need other loads, and code that needs them. */
extern "C" __global__ void chained(PARAMETERS) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= m * n)
        return;
    float sum = 0;
    for (int k = 0; k < 4; k++) {
        int at = (int)x[i] % 4 + k;
        sum = sum * 2 + w[at];
        if (sum > 40)
            sum -= w[(int)sum % 8];
    }
    y[i] = sum;
}

#include "kernels_atomics.cu"
#include "kernels_nests.cu"
#include "kernels_places.cu"
#include "kernels_running.cu"
#include "kernels_turns.cu"

/* A function without effects that reads where it runs. */
static __device__ __noinline__ __attribute__((const)) int place(int scale) {
    return scale * (int)(blockIdx.x * 8 + threadIdx.x);
}
extern "C" __global__ void placed(PARAMETERS) {
    int j = blockIdx.x * 8 + threadIdx.x, i = blockIdx.y * 8 + threadIdx.y;
    if (i < m && j < n)
        y[i * n + j] = x[i * n + j] + (float)place(n);
}
