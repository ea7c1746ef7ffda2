/* Account: turns the sums over the blocks of a launch into a modelled time. The formulas stand in
 * docs/model.md, "Terms" and "How the terms are joined". Arguments are borrowed; no function fails.
 */
#ifndef FITNESS_MODEL_ACCOUNT_H
#define FITNESS_MODEL_ACCOUNT_H

#include "fitness/model/buffers.h"
#include "fitness/model/model.h"

#include <stddef.h>
#include <stdint.h>

#define MODEL_AGAIN 24

/* Sums over the grid. A sampled block counts with its weight: the number of blocks that it stands
 * for. */
typedef struct model_sums {
    double cycles[MODEL_TERM_COUNT];   /* busy cycles of an SM's unit by term; for ISSUE: machine
                                          instructions of warps */
    double chain;                      /* sum over the blocks of the cycles of the longest warp */
    double chain_wait;                 /* the most of those cycles that would go if DRAM loads
                                          hit the L2 */
    double longest, longest_wait;      /* of the slowest block; a maximum, not a sum */
    double load_sectors, load_hits;    /* sectors loaded through the L1, and those that hit */
    double l2_sectors;                 /* sectors of loads that missed the L1, of stores and of
                                          atomics */
    double store_sectors, store_parts; /* of the stores: sectors, and those written in part */
    double store_bytes;                /* of the lanes that store */
    double atomic_sectors;
    double read_bytes[MODEL_MAX_BUFFERS + 1]; /* bytes of sectors that a block read for the
                                                 first time, by buffer; last: outside all
                                                 buffers */
    double written_bytes[MODEL_MAX_BUFFERS + 1];
    double access_slots;            /* of the machine instructions: those that access memory */
    double again[MODEL_AGAIN];      /* sectors that a block asks the L2 for again, by the binary
                                       logarithm of the sectors that it asked for since */
    double warps;                   /* warps executed */
    double stall[MODEL_TERM_COUNT]; /* cycles that warps waited, by term, over all warps */
} model_sums;

typedef struct model_shape {
    const gpu *g;
    uint64_t blocks, sampled;
    uint32_t live_registers, given_registers; /* registers a thread, before and after the
                                                 kernel's own bounds */
    model_occupancy occupancy;
    const model_buffer *buffers;
    size_t buffer_count;
    double link_ns; /* ns that the links need for the whole grid */
    double hottest; /* requests of atomics to the busiest sector, for the whole grid */
} model_shape;

void model_account(const model_shape *shape, const model_sums *sums, model_time *out);

#endif
