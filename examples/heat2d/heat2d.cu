/* Temperatures on a chip, two time steps a launch: a block loads a tile with a border of two cells,
 * and the part of the tile that it knows shrinks by one cell a step. Every launch reads and writes
 * DRAM once for two steps. */
#ifndef TILE
#define TILE 16
#endif
#define STEPS 2

struct Chip {
    int columns, rows;
    float sideways, upward, sink; /* heat that flows in a step, a degree of difference */
    float ambient;
};

__global__ void heat2d(Chip chip, const float *power, const float *before, float *after) {
    __shared__ float now[TILE][TILE], next[TILE][TILE];
    const int inner = TILE - 2 * STEPS;
    int tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * inner + tx - STEPS, y = blockIdx.y * inner + ty - STEPS;
    bool inside = x >= 0 && x < chip.columns && y >= 0 && y < chip.rows;
    int at = y * chip.columns + x;
    float own = inside ? power[at] : 0.0f;
    now[ty][tx] = inside ? before[at] : 0.0f;
    __syncthreads();
    for (int step = 1; step <= STEPS; step++) {
        float value = now[ty][tx];
        if (inside && tx >= step && tx < TILE - step && ty >= step && ty < TILE - step) {
            float left = x > 0 ? now[ty][tx - 1] : value;
            float right = x + 1 < chip.columns ? now[ty][tx + 1] : value;
            float above = y > 0 ? now[ty - 1][tx] : value;
            float below = y + 1 < chip.rows ? now[ty + 1][tx] : value;
            value += own + chip.sideways * (left + right - 2.0f * value) +
                     chip.upward * (above + below - 2.0f * value) +
                     chip.sink * (chip.ambient - value);
        }
        next[ty][tx] = value;
        __syncthreads();
        now[ty][tx] = next[ty][tx];
        __syncthreads();
    }
    bool owns = tx >= STEPS && tx < TILE - STEPS && ty >= STEPS && ty < TILE - STEPS;
    if (inside && owns)
        after[at] = now[ty][tx];
}
