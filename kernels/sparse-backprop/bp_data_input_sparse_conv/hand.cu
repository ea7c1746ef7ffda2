/* Data gradient of a 3 x 3 convolution whose output gradient has pixels of zeros, by hand.
 *
 * A block owns a tile of dX: TILE_ROWS x TILE_COLUMNS pixels (the images lie one below another) and
 * COLUMNS channels, whose sums are in shared memory. Its warps look for an element other than zero
 * in each pixel of dY that the tile needs. For each filter element, the pixels of the tile to which
 * it takes a live pixel of dY are listed. A warp multiplies the list of one filter element, whose
 * weights no other warp reads, so warps do not wait for each other; of the ninth element, each of
 * the eight warps takes an eighth of the output channels. Asynchronous copies bring a warp's next
 * step into its part of shared memory, while a lane multiplies 8 pixels x 4 FOURS channels in
 * registers; four pixels beyond the list are left out. The warps then add to the tile in turn,
 * always in the same order, while the first step of their next list is under way. */
#include "evoke_cuda.h"
#include "evoke_rows.h"

#include <cuda_pipeline.h>

#ifndef TILE_ROWS
#define TILE_ROWS 7
#endif
#ifndef TILE_COLUMNS
#define TILE_COLUMNS 14
#endif
#ifndef FOURS
#define FOURS 2
#endif
#ifndef STEP
#define STEP 8
#endif
#ifndef STAGES
#define STAGES 2
#endif

/* A lane has FOURS groups of four channels; a step is STEP output channels. */
#define WARPS 8
#define THREADS (32 * WARPS)
#define PIXELS (TILE_ROWS * TILE_COLUMNS)
#define COLUMNS (4 * TX * FOURS) /* channels of a tile */
#define WIDE (TILE_COLUMNS + 2)
#define NEAR ((TILE_ROWS + 2) * WIDE)    /* pixels of dY that a tile needs */
#define PROBES 16                        /* pixels of dY that a warp reads at once */
#define TX 8                             /* lanes along the channels */
#define TY 4                             /* lanes along the list */
#define CHUNK (8 * TY)                   /* pixels of a list at a time */
#define A_STRIDE (STEP / 4 + (STEP > 4)) /* in float4; odd, so that pixels use different banks */
#define A_LOADS (CHUNK * STEP / 128)     /* of a lane */
#define B_LOADS (STEP * COLUMNS / 128)
#define CENTRE 4

/* Where a block's tile is. */
struct place {
    int row, column; /* of the first pixel; rows count through all images */
    int rows, side;
    bool above, below; /* whether the row beyond the tile belongs to the same image */
};

static __device__ __forceinline__ place place_of(int tile, int rows, int side) {
    const int across = (side + TILE_COLUMNS - 1) / TILE_COLUMNS, row = tile / across * TILE_ROWS;
    return {row,
            tile % across * TILE_COLUMNS,
            rows,
            side,
            row % side != 0,
            (row + TILE_ROWS) % side != 0};
}

/* The pixel of dY at number h of those that the tile needs, or -1. */
static __device__ __forceinline__ int near_pixel(const place &at, int h) {
    const int r = h / WIDE - 1, c = h % WIDE - 1, row = at.row + r, column = at.column + c;
    const bool needed = h < NEAR && row >= 0 && row < at.rows && column >= 0 && column < at.side &&
                        (r >= 0 || at.above) && (r < TILE_ROWS || at.below);
    return needed ? row * at.side + column : -1;
}

/* Sets the flags of the live pixels of dY, PROBES of a warp's at a time. */
static __device__ __forceinline__ void find(const float *__restrict__ dY, const place &at,
                                            int outputs, bool vector, int warp, int lane,
                                            bool *flags) {
#pragma unroll 1
    for (int begin = warp; begin < NEAR; begin += WARPS * PROBES) {
        unsigned int found = 0;
#pragma unroll 1
        for (int k = 0; k < outputs; k += 128) {
            float4 v[PROBES];
#pragma unroll
            for (int i = 0; i < PROBES; i++) {
                const int m = near_pixel(at, begin + i * WARPS);
                v[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                if (m >= 0 && (found >> i & 1u) == 0)
                    v[i] = load4(dY + (size_t)m * outputs, k + lane * 4, outputs, vector);
            }
#pragma unroll
            for (int i = 0; i < PROBES; i++)
                found |= __any_sync(0xffffffffu, is_any(v[i])) ? 1u << i : 0u;
        }
        const int h = begin + lane * WARPS;
        if (lane < PROBES && h < NEAR)
            flags[h] = (found >> lane & 1u) != 0;
    }
}

/* Lists the pixels of the tile to which `tap` takes a live pixel of dY, in order; how many. */
static __device__ __forceinline__ int list_of(const place &at, const bool *flags, int tap, int lane,
                                              unsigned char *list) {
    const int down = 1 - tap / 3, right = 1 - tap % 3;
    int count = 0;
#pragma unroll 1
    for (int begin = 0; begin < PIXELS; begin += 32) {
        const int p = begin + lane, r = p / TILE_COLUMNS, c = p % TILE_COLUMNS;
        const int row = at.row + r, y = row % at.side + down, x = at.column + c + right;
        const bool live = p < PIXELS && row < at.rows && at.column + c < at.side && y >= 0 &&
                          y < at.side && x >= 0 && x < at.side &&
                          flags[(r + 1 + down) * WIDE + c + 1 + right];
        const unsigned int bits = __ballot_sync(0xffffffffu, live);
        if (live)
            list[count + __popc(bits & ((1u << lane) - 1u))] = (unsigned char)p;
        count += __popc(bits);
    }
    return count;
}

/* A step of a warp. */
struct stage {
    float4 a[CHUNK][A_STRIDE];   /* dY, [pixel][four of the depth] */
    float4 b[STEP][COLUMNS / 4]; /* W */
};

struct layer {
    const float *dY, *W;
    int outputs, channels;
    bool whole; /* no step has a part of a float4, or fewer rows than others */
};

/* A warp's part of a turn: `count` pixels of a list (at most 0: none), and a part of the depth. */
struct part {
    const unsigned char *list;
    int tap, count, begin, end;
};

/* The warps share the list of the middle filter element in the first turns. */
static __device__ __forceinline__ part part_of(int turn, int shared_turns, const int *counts,
                                               const unsigned char (*lists)[PIXELS], int outputs,
                                               int warp) {
    const bool together = turn < shared_turns;
    const int tap = together ? CENTRE : warp + (warp >= CENTRE);
    const int first = (together ? turn : turn - shared_turns) * CHUNK;
    const int slice = ((outputs + STEP - 1) / STEP + WARPS - 1) / WARPS * STEP;
    part p = {lists[tap] + first, tap, counts[tap] - first, 0, outputs};
    p.count = p.count < CHUNK ? p.count : CHUNK;
    if (together) {
        p.begin = warp * slice;
        p.end = p.begin + slice < outputs ? p.begin + slice : outputs;
    }
    return p;
}

/* Where the copies of a lane begin. */
struct copies {
    const float *a[A_LOADS], *b;
    size_t b_step; /* from one output channel of W to the next */
    int a_zeros[A_LOADS], b_zeros;
};

static __device__ __forceinline__ copies copies_of(const layer &l, const place &at, const part &p,
                                                   int column, int lane) {
    const int shift = (1 - p.tap / 3) * at.side + 1 - p.tap % 3;
    copies c;
#pragma unroll
    for (int i = 0; i < A_LOADS; i++) {
        const int r = i * (128 / STEP) + lane / (STEP / 4), k = p.begin + lane % (STEP / 4) * 4;
        const int q = p.list[r < p.count ? r : 0], row = at.row + q / TILE_COLUMNS;
        const int m = row * at.side + at.column + q % TILE_COLUMNS + shift;
        c.a[i] = l.dY + (size_t)m * l.outputs + k;
        c.a_zeros[i] = r < p.count ? 0 : 16;
    }
    const int d = p.begin + lane / (COLUMNS / 4), x = column + lane % (COLUMNS / 4) * 4;
    c.b_step = (size_t)9 * l.channels;
    c.b = l.W + d * c.b_step + (size_t)p.tap * l.channels + x;
    c.b_zeros = x < l.channels ? 0 : 16;
    return c;
}

/* The step from output channel k on. */
static __device__ __forceinline__ void copy(const layer &l, const copies &c, int k, int end,
                                            int column, int lane, stage &to) {
    float4 *const a = &to.a[lane / (STEP / 4)][lane % (STEP / 4)];
    float4 *const b = &to.b[lane / (COLUMNS / 4)][lane % (COLUMNS / 4)];
    if (l.whole) {
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            __pipeline_memcpy_async(a + i * (128 / STEP) * A_STRIDE, c.a[i], 16, c.a_zeros[i]);
#pragma unroll
        for (int i = 0; i < B_LOADS; i++)
            __pipeline_memcpy_async(b + 32 * i, c.b + i * (128 / COLUMNS) * c.b_step, 16,
                                    c.b_zeros);
        return;
    }
#pragma unroll 1
    for (int e = 0; e < 4; e++) {
        const int depth = k + lane % (STEP / 4) * 4 + e;
        const int d = k + lane / (COLUMNS / 4), x = column + lane % (COLUMNS / 4) * 4 + e;
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            __pipeline_memcpy_async((float *)(a + i * (128 / STEP) * A_STRIDE) + e, c.a[i] + e, 4,
                                    c.a_zeros[i] == 0 && depth < end ? 0 : 4);
#pragma unroll
        for (int i = 0; i < B_LOADS; i++)
            __pipeline_memcpy_async((float *)(b + 32 * i) + e,
                                    c.b + i * (128 / COLUMNS) * c.b_step + e, 4,
                                    d + i * (128 / COLUMNS) < end && x < l.channels ? 0 : 4);
    }
}

static __device__ __forceinline__ void advance(copies &c) {
#pragma unroll
    for (int i = 0; i < A_LOADS; i++)
        c.a[i] += STEP;
    c.b += STEP * c.b_step;
}

/* The first steps of a part. */
static __device__ __forceinline__ void start(const layer &l, const part &p, int column, int lane,
                                             stage *stages, copies &c) {
    for (int s = 0; s < STAGES - 1; s++) {
        if (p.begin + s * STEP < p.end)
            copy(l, c, p.begin + s * STEP, p.end, column, lane, stages[s]);
        __pipeline_commit();
        advance(c);
    }
}

static __device__ __forceinline__ void multiply(const stage &s, int groups, int ty, int tx,
                                                float4 sum[8][FOURS]) {
    const float4 *from = &s.b[0][tx];
#pragma unroll
    for (int four = 0; four < STEP / 4; four++) {
        float4 b[4][FOURS];
#pragma unroll
        for (int d = 0; d < 4; d++) {
#pragma unroll
            for (int j = 0; j < FOURS; j++)
                b[d][j] = from[(4 * four + d) * (COLUMNS / 4) + j * TX];
        }
        float4 a[8];
#pragma unroll
        for (int i = 0; i < 8; i++)
            a[i] = s.a[i * TY + ty][four];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            if (i < groups) {
#pragma unroll
                for (int j = 0; j < FOURS; j++) {
                    sum[i][j] = axpy4(a[i].x, b[0][j], sum[i][j]);
                    sum[i][j] = axpy4(a[i].y, b[1][j], sum[i][j]);
                    sum[i][j] = axpy4(a[i].z, b[2][j], sum[i][j]);
                    sum[i][j] = axpy4(a[i].w, b[3][j], sum[i][j]);
                }
            }
        }
    }
}

/* Adds a part's sums to the tile: FOURS warps at a time, each at other channels. */
static __device__ __forceinline__ void add(float4 (*total)[COLUMNS / 4], const part &p,
                                           const float4 sum[8][FOURS], int warp, int ty, int tx) {
    int at[8];
#pragma unroll
    for (int i = 0; i < 8; i++)
        at[i] = i * TY + ty < p.count ? p.list[i * TY + ty] : PIXELS; /* a row of zeros */
#pragma unroll 1
    for (int t = 0; t < WARPS; t++) {
#pragma unroll
        for (int j = 0; j < FOURS; j++) {
            if (warp == (t + j * WARPS / 2) % WARPS) {
                float4 before[8];
#pragma unroll
                for (int i = 0; i < 8; i++)
                    before[i] = total[at[i]][j * TX + tx];
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    if (i * TY + ty < p.count)
                        total[at[i]][j * TX + tx] = add4(before[i], sum[i][j]);
                }
            }
        }
        __syncthreads();
    }
}

static __device__ __forceinline__ void save(const float4 (*total)[COLUMNS / 4], const place &at,
                                            int column, int channels, float *__restrict__ dX,
                                            int thread) {
    for (int i = thread; i < PIXELS * (COLUMNS / 4); i += THREADS) {
        const int p = i / (COLUMNS / 4), c = i % (COLUMNS / 4);
        const int row = at.row + p / TILE_COLUMNS, x = at.column + p % TILE_COLUMNS;
        if (row < at.rows && x < at.side)
            store4(dX + (size_t)(row * at.side + x) * channels, column + 4 * c, channels,
                   (channels & 3) == 0, total[p][c]);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    bp_data_input_sparse_conv(const float *__restrict__ dY, const float *__restrict__ W,
                              float *__restrict__ dX, int M, int outputs, int channels, int side) {
    extern __shared__ float4 memory[];
    __shared__ unsigned char lists[9][PIXELS];
    __shared__ int counts[9];
    __shared__ bool flags[NEAR];
    float4(*const total)[COLUMNS / 4] = (float4(*)[COLUMNS / 4]) memory;

    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int ty = lane / TX, tx = lane % TX, column = blockIdx.x * COLUMNS;
    const place at = place_of(blockIdx.y, M / side, side);
    const layer l = {dY, W, outputs, channels, channels % 4 == 0 && outputs % STEP == 0};
    stage *const stages = (stage *)(memory + (PIXELS + 1) * (COLUMNS / 4)) + warp * STAGES;

    find(dY, at, outputs, outputs % 4 == 0, warp, lane, flags);
    for (int i = thread; i < (PIXELS + 1) * (COLUMNS / 4); i += THREADS)
        memory[i] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    __syncthreads();
    for (int tap = warp; tap < 9; tap += WARPS) {
        const int count = list_of(at, flags, tap, lane, lists[tap]);
        if (lane == 0)
            counts[tap] = count;
    }
    __syncthreads();

    int most = 0;
    for (int tap = 0; tap < 9; tap++)
        most = tap != CENTRE && counts[tap] > most ? counts[tap] : most;
    const int shared_turns = (counts[CENTRE] + CHUNK - 1) / CHUNK;
    const int turns = shared_turns + (most + CHUNK - 1) / CHUNK;
    part p = {lists[0], 0, 0, 0, 0};
    float4 sum[8][FOURS] = {};
    /* Turn t adds what turn t - 1 made, while the first steps of its own part are under way. */
#pragma unroll 1
    for (int turn = 0; turn <= turns; turn++) {
        const part before = p;
        copies c = {};
        p = part_of(turn, shared_turns, counts, lists, outputs, warp);
        if (turn == turns)
            p.count = 0;
        if (p.count > 0) {
            c = copies_of(l, at, p, column, lane);
            start(l, p, column, lane, stages, c);
        }
        if (turn > 0)
            add(total, before, sum, warp, ty, tx);
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < FOURS; j++)
                sum[i][j] = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
        if (p.count <= 0)
            continue;
        const int groups = (p.count + TY - 1) / TY;
        stage *now = stages, *next = stages + STAGES - 1;
#pragma unroll 1
        for (int k = p.begin; k < p.end; k += STEP) {
            __pipeline_wait_prior(STAGES - 2);
            __syncwarp();
            if (k + (STAGES - 1) * STEP < p.end)
                copy(l, c, k + (STAGES - 1) * STEP, p.end, column, lane, *next);
            __pipeline_commit();
            advance(c);
            multiply(*now, groups, ty, tx, sum);
            next = now;
            now = now == stages + STAGES - 1 ? stages : now + 1;
        }
        __syncwarp();
    }

    save(total, at, column, channels, dX, thread);
}
