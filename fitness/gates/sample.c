/* Sample: chooses blocks of a grid in which all blocks do about the same.
 *
 * A grid's last row, column and layer of blocks are cut off where the tile does not divide the
 * array: such a block moves fewer bytes than others, in the same number of instructions. So the
 * grid is taken apart into zones: the inner blocks, and those that are last in one coordinate, in
 * two, or in three. Places at equal distances in the order of block numbers would not do: where
 * their distance is near a multiple of the rows' length, all of them lie in one column. */
#include "fitness/gates/sample.h"

#include "base/divisor.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>

enum { ZONES = 8 }; /* bit d of a zone's number: last in coordinate d */

/* Zones with a smaller share of the grid join another one. Cut off to nothing, such a zone would
 * change a time by this share. */
#define LEAST_SHARE (1.0 / 32)
/* The golden section: steps of this share of a zone spread over it at any number of steps. */
#define STEP 0.6180339887

typedef struct zone {
    uint64_t blocks;
    uint64_t size[3], from[3];
    uint64_t stands_for; /* its own blocks and those of zones that joined it */
    size_t places;
} zone;

static zone zone_of(const uint32_t grid[3], unsigned number) {
    zone z = {.blocks = 1};
    for (unsigned d = 0; d < 3; d++) {
        bool is_last = (number >> d & 1) != 0, has_last = grid[d] > 1;
        z.from[d] = is_last ? grid[d] - 1u : 0;
        uint32_t inner = has_last ? grid[d] - 1u : 1;
        z.size[d] = is_last ? has_last : inner;
        z.blocks *= z.size[d];
    }
    z.stands_for = z.blocks;
    return z;
}

/* The largest edge zone that has no places, if its share is fair; ZONES: there is none. */
static unsigned next_edge(const zone *zones, uint64_t blocks) {
    unsigned best = ZONES;
    for (unsigned i = 1; i < ZONES; i++) {
        bool fair = (double)zones[i].blocks >= LEAST_SHARE * (double)blocks;
        if (fair && zones[i].places == 0 && (best == ZONES || zones[i].blocks > zones[best].blocks))
            best = i;
    }
    return best;
}

/* The zones that have places, each edge by its share, the inner one the rest. */
static void share_places(zone *zones, uint64_t blocks, size_t limit) {
    size_t left = limit;
    for (size_t edges = 0; edges < limit && limit > 1; edges++) {
        unsigned i = next_edge(zones, blocks);
        if (i == ZONES)
            break;
        double share = (double)zones[i].blocks / (double)blocks * (double)limit;
        size_t places = share > 1 ? (size_t)share : 1;
        zones[i].places = places;
        left -= places < left ? places : left;
    }
    left = left > 0 ? left : 1;
    zones[0].places = left > zones[0].blocks ? zones[0].blocks : left;
}

/* Each zone without places joins the largest that has some and is last in no other coordinate; of
 * the edges, if there is one. */
static void join_zones(zone *zones) {
    for (unsigned i = 1; i < ZONES; i++) {
        unsigned best = 0;
        for (unsigned k = 1; k < ZONES; k++) {
            bool fits = zones[k].places > 0 && (k & ~i) == 0;
            if (fits && (best == 0 || zones[k].blocks > zones[best].blocks))
                best = k;
        }
        if (zones[i].places == 0) {
            zones[best].stands_for += zones[i].blocks;
            zones[i].stands_for = 0;
        }
    }
}

static uint32_t block_at(const zone *z, const uint32_t grid[3], uint64_t index) {
    uint64_t x = z->from[0] + index % z->size[0];
    uint64_t y = z->from[1] + index / z->size[0] % z->size[1];
    uint64_t w = z->from[2] + index / z->size[0] / z->size[1];
    return (uint32_t)((w * grid[1] + y) * grid[0] + x);
}

/* Adds a block to the sample, which stays in order. */
static void add(uint32_t *sample, double *weights, size_t count, uint32_t block, double weight) {
    size_t at = count;
    for (; at > 0 && sample[at - 1] > block; at--) {
        sample[at] = sample[at - 1];
        weights[at] = weights[at - 1];
    }
    sample[at] = block;
    weights[at] = weight;
}

/* The middle of the zone, and from there on in steps without a common factor with its size, so that
 * no block comes twice. */
static size_t add_zone(const zone *z, const uint32_t grid[3], uint32_t *sample, double *weights,
                       size_t count) {
    uint64_t step = (uint64_t)(STEP * (double)z->blocks), at = z->size[2] / 2;
    at = (at * z->size[1] + z->size[1] / 2) * z->size[0] + z->size[0] / 2;
    while (ev_divisor(step, z->blocks) != 1)
        step++;
    for (size_t i = 0; i < z->places; i++, at = (at + step) % z->blocks)
        add(sample, weights, count++, block_at(z, grid, at),
            (double)z->stands_for / (double)z->places);
    return count;
}

/* A row of many blocks: its ends, of which at least one is of no account, and equal distances. */
static size_t sample_row(uint64_t blocks, size_t limit, uint32_t *sample, double *weights) {
    bool has_ends = limit >= 3;
    uint64_t last = has_ends ? blocks - 1 : blocks / 2;
    for (size_t i = 0; i < limit; i++) {
        bool is_end = i == 0 || i + 1 == limit;
        sample[i] = limit == 1 ? (uint32_t)last : (uint32_t)(last * i / (limit - 1));
        weights[i] = (double)blocks / (double)limit;
        if (has_ends)
            weights[i] = is_end ? 1 : (double)(blocks - 2) / (double)(limit - 2);
    }
    return limit;
}

size_t sample_grid(const uint32_t grid[3], size_t limit, uint32_t *sample, double *weights,
                   size_t *inner) {
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    assert(limit > 0 && blocks > limit);
    bool is_row = grid[0] == blocks || grid[1] == blocks || grid[2] == blocks;
    if (is_row && (limit != 2 || (double)blocks * LEAST_SHARE > 1))
        return *inner = sample_row(blocks, limit, sample, weights);
    zone zones[ZONES];
    size_t count = 0;
    for (unsigned i = 0; i < ZONES; i++)
        zones[i] = zone_of(grid, i);
    share_places(zones, blocks, limit);
    join_zones(zones);
    for (unsigned i = 0; i < ZONES; i++) {
        if (zones[i].places > 0)
            count = add_zone(&zones[i], grid, sample, weights, count);
    }
    *inner = zones[0].places;
    assert(count <= limit + 1);
    return count;
}
