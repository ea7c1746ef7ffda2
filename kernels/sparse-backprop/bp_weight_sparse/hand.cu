/* Weight gradient of a convolution behind a ReLU, by hand.
 *
 * A warp makes 128 output channels of COLUMNS columns (a column is a filter element and an input
 * channel): a lane has four neighbouring channels of each column, so that X is the same for the
 * whole warp and an X of zero costs the warp nothing. Pixels come in groups of four. When a tile of
 * X is stored, a vote of the warp says which columns have an X other than zero in the group, and
 * the products of the others are skipped. X is read in place: no lowered matrix exists, and a table
 * says where a pixel is. While a tile is multiplied, the next one is loaded into registers. */
#include "evoke_cuda.h"

#ifndef WARPS
#define WARPS 4
#endif
#ifndef COLUMNS
#define COLUMNS 16
#endif
#ifndef SKIP
#define SKIP 1
#endif

#define DEPTH 16 /* pixels of a tile; with 32, two tiles do not fit into static shared memory */
#define THREADS (32 * WARPS)
#define BLOCK_COLUMNS (WARPS * COLUMNS)
#define GROUPS (DEPTH / 4)                         /* of four pixels, in a tile */
#define GROUP_STEP (32 / COLUMNS)                  /* between the groups of a thread */
#define X_LOADS (BLOCK_COLUMNS * GROUPS / THREADS) /* a thread: one column, X_LOADS groups */
#define Y_LOADS (DEPTH / WARPS)

struct tiles {
    float4 y[DEPTH][32];                             /* [pixel][four output channels] */
    float4 x[GROUPS][BLOCK_COLUMNS];                 /* four pixels of a column */
    unsigned int live[GROUPS][WARPS * COLUMNS / 32]; /* a bit a column */
};

static __device__ __forceinline__ float4 axpy4(float a, float4 x, float4 y) {
    return make_float4(y.x + a * x.x, y.y + a * x.y, y.z + a * x.z, y.w + a * x.w);
}

/* Four neighbouring elements of a row of dY. */
static __device__ __forceinline__ float4 load_channels(const float *__restrict__ row, int o,
                                                       int outputs, bool vector) {
    if (vector)
        return o < outputs ? __ldg((const float4 *)(row + o)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    return make_float4(o < outputs ? row[o] : 0.0f, o + 1 < outputs ? row[o + 1] : 0.0f,
                       o + 2 < outputs ? row[o + 2] : 0.0f, o + 3 < outputs ? row[o + 3] : 0.0f);
}

/* Where pixel m is in X, in elements; -1 from `end` on. */
static __device__ __forceinline__ int place_of(int m, int end, int side, int width, int channels) {
    const int n = m / (side * side), y = m / side % side, x = m % side;
    return m < end ? ((n * width + y) * width + x) * channels : -1;
}

/* Four pixels of a column; `X` points to the column's element of pixel 0. */
static __device__ __forceinline__ float4 load_pixels(const float *__restrict__ X, int4 place) {
    return make_float4(
        place.x >= 0 ? __ldg(X + place.x) : 0.0f, place.y >= 0 ? __ldg(X + place.y) : 0.0f,
        place.z >= 0 ? __ldg(X + place.z) : 0.0f, place.w >= 0 ? __ldg(X + place.w) : 0.0f);
}

static __device__ __forceinline__ void multiply(const tiles &t, int warp, int lane,
                                                float4 sum[COLUMNS]) {
#pragma unroll 1
    for (int g = 0; g < GROUPS; g++) {
        float4 y[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            y[i] = t.y[4 * g + i][lane];
        const unsigned int live = t.live[g][warp * COLUMNS / 32] >> (warp * COLUMNS % 32);
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            if (!SKIP || (live >> c & 1u) != 0) {
                float4 x = t.x[g][warp * COLUMNS + c];
                sum[c] = axpy4(x.x, y[0], sum[c]);
                sum[c] = axpy4(x.y, y[1], sum[c]);
                sum[c] = axpy4(x.z, y[2], sum[c]);
                sum[c] = axpy4(x.w, y[3], sum[c]);
            }
        }
    }
}

/* The columns of one output channel. */
static __device__ __forceinline__ void store_row(float *__restrict__ row, int column, int columns,
                                                 const float v[COLUMNS]) {
    if ((columns & 3) == 0) {
#pragma unroll
        for (int c = 0; c < COLUMNS; c += 4) {
            if (column + c < columns)
                __stwb((float4 *)(row + column + c),
                       make_float4(v[c], v[c + 1], v[c + 2], v[c + 3]));
        }
    } else {
#pragma unroll
        for (int c = 0; c < COLUMNS; c++) {
            if (column + c < columns)
                row[column + c] = v[c];
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_weight_sparse(const float *__restrict__ dY, const float *__restrict__ X,
                     float *__restrict__ dW, int M, int outputs, int channels, int side, int filter,
                     int part) {
    __shared__ tiles shared[2];
    __shared__ int4 places[2][GROUPS]; /* of the pixels of a tile in X */

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int columns = filter * filter * channels;
    const int end = min(M, (int)(blockIdx.z + 1) * part);
    const int o = blockIdx.y * 128 + lane * 4;
    const bool vector = (outputs & 3) == 0;
    const int width = side + filter - 1;

    /* The column and the first group that this thread loads. */
    const int own = thread % BLOCK_COLUMNS, own_group = thread / BLOCK_COLUMNS;
    const int column = blockIdx.x * BLOCK_COLUMNS + own;
    const int tap = column / channels;
    const float *x_column =
        X + (tap / filter * width + tap % filter) * channels + column % channels;

    float4 sum[COLUMNS] = {};
    float4 y_next[Y_LOADS], x_next[X_LOADS];
    const int begin = blockIdx.z * part;
    int buffer = 0;
    if (thread < DEPTH)
        ((int *)places[0])[thread] = place_of(begin + thread, end, side, width, channels);
    __syncthreads();
#pragma unroll 1
    for (int m = begin; m == begin || m < end + DEPTH; m += DEPTH) {
        /* Load the tile at m, multiply the one before. */
#pragma unroll
        for (int i = 0; i < Y_LOADS; i++) {
            int pixel = m + i * WARPS + warp;
            y_next[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (pixel < end)
                y_next[i] = load_channels(dY + (size_t)pixel * outputs, o, outputs, vector);
        }
#pragma unroll
        for (int i = 0; i < X_LOADS; i++)
            x_next[i] = column < columns
                            ? load_pixels(x_column, places[buffer][i * GROUP_STEP + own_group])
                            : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (thread < DEPTH)
            ((int *)places[buffer ^ 1])[thread] =
                place_of(m + DEPTH + thread, end, side, width, channels);
        if (m > begin)
            multiply(shared[buffer ^ 1], warp, lane, sum);
#pragma unroll
        for (int i = 0; i < Y_LOADS; i++)
            shared[buffer].y[i * WARPS + warp][lane] = y_next[i];
#pragma unroll
        for (int i = 0; i < X_LOADS; i++) {
            float4 x = x_next[i];
            int g = i * GROUP_STEP + own_group;
            bool any = x.x != 0.0f || x.y != 0.0f || x.z != 0.0f || x.w != 0.0f;
            unsigned int live = __ballot_sync(0xffffffffu, any);
            shared[buffer].x[g][own] = x;
            if (lane == 0)
                shared[buffer].live[g][own / 32] = live;
        }
        __syncthreads();
        buffer ^= 1;
    }

    const int first = blockIdx.x * BLOCK_COLUMNS + warp * COLUMNS;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float v[COLUMNS];
#pragma unroll
        for (int c = 0; c < COLUMNS; c++)
            v[c] = i == 0 ? sum[c].x : i == 1 ? sum[c].y : i == 2 ? sum[c].z : sum[c].w;
        if (o + i < outputs)
            store_row(dW + ((size_t)blockIdx.z * outputs + o + i) * columns, first, columns, v);
    }
}
