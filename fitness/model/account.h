/* Account: from the sums over the blocks to a time. */
#ifndef FITNESS_MODEL_ACCOUNT_H
#define FITNESS_MODEL_ACCOUNT_H

#include "fitness/model/buffers.h"
#include "fitness/model/model.h"

#include <stddef.h>
#include <stdint.h>

/* Sums over the grid: each sampled block counts for as many blocks as it stands for. */
typedef struct model_sums {
    double cycles[MODEL_TERM_COUNT]; /* of an SM's unit; of ISSUE: machine instructions of warps */
    double chain;                    /* cycles of the longest warp of each block */
    double chain_wait;               /* of these, at most so many fewer if DRAM loads hit the L2 */
    double longest, longest_wait;    /* the slowest block; not a sum */
    double load_sectors, load_hits;  /* at the L1 */
    double l2_sectors;               /* loads that missed the L1, stores, atomics */
    double atomic_sectors;
    double read_bytes[MODEL_MAX_BUFFERS + 1]; /* sectors that a block read for the first time, by
                                                 buffer; last: in none of them */
    double written_bytes[MODEL_MAX_BUFFERS + 1];
    double warps;                   /* executed */
    double stall[MODEL_TERM_COUNT]; /* cycles of all warps */
} model_sums;

typedef struct model_shape {
    const gpu *g;
    uint64_t blocks, sampled;
    uint32_t live_registers, given_registers; /* before and after the kernel's own bounds */
    model_occupancy occupancy;
    const model_buffer *buffers;
    size_t buffer_count;
    double link_ns; /* that the links need for the whole grid */
    double hottest; /* requests of atomics to the sector that has most, of the whole grid */
} model_shape;

void model_account(const model_shape *shape, const model_sums *sums, model_time *out);

#endif
