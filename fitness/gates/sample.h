/* Sample: blocks of an even grid that stand for all of it, by their place in the grid. */
#ifndef FITNESS_GATES_SAMPLE_H
#define FITNESS_GATES_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

/* Writes about `limit` of the grid's blocks to `sample`, ascending, and to `weights` how many
 * blocks of the grid each stands for; the weights add up to the grid. Both have room for limit + 1.
 * Blocks in a last row, column or layer are often cut off, so those with a fair share of the grid
 * are apart from the others. *inner: how many blocks of the sample are in none of these. One block
 * is the middle of the grid. The grid has more than `limit` blocks, and `limit` is not 0. Returns
 * the number of blocks. */
size_t sample_grid(const uint32_t grid[3], size_t limit, uint32_t *sample, double *weights,
                   size_t *inner);

#endif
