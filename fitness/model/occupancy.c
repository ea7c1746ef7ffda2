/* Occupancy: how many blocks an SM holds, by the rules of NVIDIA's occupancy calculator. */
#include "fitness/model/registers.h"

#include <assert.h>

static const char *const LIMITER_NAMES[] = {
    [MODEL_BY_WARPS] = "warps",   [MODEL_BY_BLOCKS] = "blocks", [MODEL_BY_REGISTERS] = "registers",
    [MODEL_BY_SHARED] = "shared", [MODEL_BY_GRID] = "grid",
};

const char *model_limiter_name(model_limiter limiter) {
    assert((unsigned)limiter < sizeof LIMITER_NAMES / sizeof LIMITER_NAMES[0]);
    return LIMITER_NAMES[limiter];
}

static uint64_t round_up(uint64_t value, uint64_t unit) {
    return (value + unit - 1) / unit * unit;
}

static uint32_t key(const gpu *g, gpu_key k) {
    return (uint32_t)gpu_get(g, k);
}

/* Warps whose registers an SM holds, in multiples of the allocation's granularity. */
static uint64_t warps_by_registers(const gpu *g, uint32_t registers) {
    uint64_t a_warp =
        round_up((uint64_t)registers * key(g, GPU_WARP_SIZE), key(g, GPU_REGISTER_UNIT));
    uint64_t warps = key(g, GPU_REGISTERS_SM) / a_warp;
    return warps / key(g, GPU_WARP_UNIT) * key(g, GPU_WARP_UNIT);
}

/* The registers a thread with which an SM holds the block's warps at all, at most those asked for:
 * told the size of the block, the assembler keeps to so many and spills the rest. */
static uint32_t registers_that_fit(const gpu *g, uint32_t registers, uint64_t warps) {
    uint32_t step = key(g, GPU_REGISTER_UNIT) / key(g, GPU_WARP_SIZE);
    uint32_t fit = registers > 0 ? registers : 1;
    while (fit > step && warps_by_registers(g, fit) < warps)
        fit = (fit - 1) / step * step;
    return fit;
}

static void limit(model_occupancy *o, uint64_t blocks, model_limiter by) {
    if (blocks < o->blocks_per_sm) {
        o->blocks_per_sm = (uint32_t)blocks;
        o->limiter = by;
    }
}

model_occupancy model_occupancy_of(const gpu *g, const vm_entry *entry, uint32_t registers,
                                   const uint32_t grid[3], const uint32_t block[3],
                                   uint32_t dynamic_shared) {
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint64_t blocks = (uint64_t)grid[0] * grid[1] * grid[2];
    uint64_t warps = round_up(threads, key(g, GPU_WARP_SIZE)) / key(g, GPU_WARP_SIZE);
    uint64_t asked = (uint64_t)entry->shared_bytes + dynamic_shared;
    uint64_t shared = round_up(asked + key(g, GPU_SHARED_RESERVED), key(g, GPU_SHARED_UNIT));
    model_occupancy o = {.registers = registers,
                         .shared_bytes = (uint32_t)shared,
                         .max_warps = key(g, GPU_MAX_WARPS)};
    if (threads == 0 || threads > key(g, GPU_MAX_THREADS) || asked > key(g, GPU_SHARED_BLOCK))
        return o;
    if (registers > 0)
        o.registers = registers_that_fit(g, registers, warps);
    o.blocks_per_sm = key(g, GPU_MAX_BLOCKS);
    o.limiter = MODEL_BY_BLOCKS;
    limit(&o, key(g, GPU_MAX_WARPS) / warps, MODEL_BY_WARPS);
    limit(&o, warps_by_registers(g, o.registers > 0 ? o.registers : 1) / warps, MODEL_BY_REGISTERS);
    if (shared > 0)
        limit(&o, key(g, GPU_SHARED_SM) / shared, MODEL_BY_SHARED);
    uint64_t sms = key(g, GPU_SM_COUNT);
    limit(&o, (blocks + sms - 1) / sms, MODEL_BY_GRID);
    o.warps_per_sm = (uint32_t)(o.blocks_per_sm * warps);
    return o;
}
