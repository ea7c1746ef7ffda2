/* Global alignment of two sequences, a wave of tiles: the tiles of an anti-diagonal know their upper
 * and left borders, and do not depend on each other. Within a tile, a wave of threads crosses the
 * anti-diagonals of its cells. */
#define CELLS 16

__device__ int largest(int a, int b, int c) {
    return max(a, max(b, c));
}

extern "C" __global__ void alignment(const int *likeness, const int *upper, const int *left,
                                     int *scores, int gap) {
    __shared__ int score[CELLS + 1][CELLS + 1];
    int tile = blockIdx.x, own = threadIdx.x;
    score[0][own + 1] = upper[tile * (CELLS + 1) + own + 1];
    score[own + 1][0] = left[tile * CELLS + own];
    if (own == 0)
        score[0][0] = upper[tile * (CELLS + 1)];
    __syncthreads();
    for (int wave = 0; wave < 2 * CELLS - 1; wave++) {
        int row = wave - own;
        if (row >= 0 && row < CELLS) {
            int match = score[row][own] + likeness[(tile * CELLS + row) * CELLS + own];
            score[row + 1][own + 1] =
                largest(match, score[row][own + 1] - gap, score[row + 1][own] - gap);
        }
        __syncthreads();
    }
    for (int row = 0; row < CELLS; row++)
        scores[(tile * CELLS + row) * CELLS + own] = score[row + 1][own + 1];
}
