/* The timing model: turns the virtual machine's execution of a launch into a modelled time, and
 * says where the time goes (docs/model.md).
 *
 * The parts: throughput terms by pipe and memory level, a latency term by a scoreboard over each
 * warp's stream, occupancy from registers, shared memory and threads, waves over the SMs, and a
 * start-up cost a block. A smooth maximum joins them. All constants come from the GPU description.
 * Times are modelled nanoseconds. */
#ifndef FITNESS_MODEL_MODEL_H
#define FITNESS_MODEL_MODEL_H

#include "base/status.h"
#include "fitness/model/gpu.h"
#include "fitness/vm/vm.h"

#include <stdint.h>

/* Registers a thread needs, estimated from the liveness of the PTX's registers (32-bit words alive
 * at once, plus what the hardware reserves), rounded as the GPU allocates them. Deterministic. */
uint32_t model_registers(const vm_module *module, const vm_entry *entry);
/* Registers a thread needs, before cap and rounding. Registers above the cap are spilled. 0: out
 * of memory. */
uint32_t model_live_registers(const vm_module *module, const vm_entry *entry);
/* Upper limit of registers a thread, from the kernel's own bounds (.maxnreg, .maxntid,
 * .minnctapersm). `sm`: the module's target; a .minnctapersm of more blocks than an SM of that
 * target holds counts as none. */
uint32_t model_register_cap(const vm_entry *entry, int sm);
/* The same in blocks of so many threads: what leaves room for one block. An assembler that is told
 * the block's size keeps to it, so a kernel is not refused for its registers. */
uint32_t model_block_cap(const vm_entry *entry, int sm, uint64_t threads);

typedef enum model_limiter {
    MODEL_BY_WARPS,
    MODEL_BY_BLOCKS,
    MODEL_BY_REGISTERS,
    MODEL_BY_SHARED,
    MODEL_BY_GRID
} model_limiter;

const char *model_limiter_name(model_limiter limiter);

typedef struct model_occupancy {
    uint32_t registers;     /* a thread: those given, or fewer so that one block fits */
    uint32_t shared_bytes;  /* a block, static + dynamic + reserved */
    uint32_t blocks_per_sm; /* 0: the block does not fit at all */
    uint32_t warps_per_sm;
    uint32_t max_warps; /* limit of an SM of this GPU */
    model_limiter limiter;
} model_occupancy;

model_occupancy model_occupancy_of(const gpu *g, const vm_entry *entry, uint32_t registers,
                                   const uint32_t grid[3], const uint32_t block[3],
                                   uint32_t dynamic_shared);

/* Terms of the modelled time: one row each of fitness/model/terms.def. */
typedef enum model_term {
#define MODEL_TERM(id, name, meaning) MODEL_##id,
#include "fitness/model/terms.def"
#undef MODEL_TERM
    MODEL_TERM_COUNT
} model_term;

const char *model_term_name(model_term term);

typedef struct model_time {
    double
        ns; /* modelled time of the whole grid, launch overhead included; cold: nothing of the
               buffers is in the L2 before the launch, and it writes all that it stores to DRAM */
    double warm_ns; /* the same where the same launch was the one before: what the L2 holds of its
                       bytes is not read, and not written back. All below is of the cold one */
    double term_ns[MODEL_TERM_COUNT]; /* each term alone; the time is their smooth maximum +
                                         overhead */
    model_term bound_by;              /* the largest */
    model_occupancy occupancy;
    double stall_share[MODEL_TERM_COUNT]; /* of a warp's cycles; sums to 1 */
    double waves;                         /* of blocks: the last may be a part of one */
    uint64_t blocks, sampled_blocks;
    uint64_t repeated_blocks; /* sampled blocks that did the same as an earlier one, at moved
                                 addresses */
    double floor_ns; /* speed of light: the bytes read, once, at DRAM's peak; the bytes written at
                        the L2's bandwidth; the floating-point work at the pipes' peak */
    double dram_bytes, l2_bytes; /* of the whole grid, extrapolated */
    double link_in, link_out;    /* the same: bytes over links and network, headers included */
    double l1_hit_rate;          /* of load sectors; 0 when there were none */
    uint32_t spilled;            /* registers that the kernel's own bounds do not leave room for */
} model_time;

/* Facts of a kernel's code that do not depend on the launch. The arguments are borrowed until the
 * code is freed. */
typedef struct model_code model_code;

ev_status model_code_new(const gpu *g, const vm_module *module, const vm_entry *entry,
                         model_code **out, ev_error *err) EV_CHECKED;
void model_code_free(model_code *code);                /* NULL is fine */
uint32_t model_code_registers(const model_code *code); /* as model_registers */

typedef struct model model;

/* A model of one launch. Set the launch's `observer` to model_observer, run, then model_finish. */
ev_status model_new(const gpu *g, const vm_launch *launch, model **out, ev_error *err) EV_CHECKED;
/* Scratch pool: memory that one model after another works in. */
typedef struct model_scratch model_scratch;
ev_status model_scratch_new(model_scratch **out, ev_error *err) EV_CHECKED;
void model_scratch_free(model_scratch *scratch); /* NULL is fine */
/* As model_new, for a kernel that is launched more than once. `code` is of the launch's module and
 * entry. `code` and `scratch` are borrowed until the model is freed; no other model may use
 * `scratch` meanwhile. */
ev_status model_new_of(const model_code *code, const vm_launch *launch, model_scratch *scratch,
                       model **out, ev_error *err) EV_CHECKED;
void model_free(model *m);
const vm_observer *model_observer(model *m);

/* Tells the model the launch's buffers, and so how many bytes of each DRAM must deliver. Without
 * them, each block's first reads come from DRAM. Call before the run. The array is copied; buffers
 * past the 32nd count as unknown. */
typedef struct model_buffer {
    uint64_t address, bytes;
} model_buffer;

void model_set_buffers(model *m, const model_buffer *buffers, size_t count);

/* ---- ranks: launches that run side by side, each on a GPU with peers ---- */

/* Distance of the peers. */
typedef enum model_reach {
    MODEL_ONE_GPU,  /* peers' memory is as near as the rank's own: the compute time alone */
    MODEL_ONE_NODE, /* over links */
    MODEL_TWO_NODES /* half of the ranks on each node: the other half over the network */
} model_reach;

typedef struct model_ranks {
    const model_buffer *memory; /* the address range of each rank's memory; borrowed */
    uint32_t count, self;
    model_reach reach;
} model_ranks;

/* Call before the run. */
ev_status model_set_ranks(model *m, const model_ranks *ranks, ev_error *err) EV_CHECKED;
/* Adds the traffic of peers' accesses to each rank's links. Call when all have run, before the
 * first model_finish. */
void model_join_ranks(model *const *models, uint32_t count);

/* `result`: of the finished run. */
ev_status model_finish(model *m, const vm_result *result, model_time *out,
                       ev_error *err) EV_CHECKED;
/* Share of the warps' stall cycles, by pc of the module. NULL before model_finish; zeros without
 * model_watch_stalls. */
const double *model_stalls_by_pc(const model *m);
/* Counts stalls by pc and by site. Call before the run. A model by model_new does so already. */
ev_status model_watch_stalls(model *m, ev_error *err) EV_CHECKED;

/* A profile of one instruction. Counts are of the blocks that were followed; repeated blocks are
 * not counted again. */
typedef struct model_site {
    double stall[MODEL_TERM_COUNT]; /* share of all warps' stall cycles, by what it waited for */
    uint64_t requests;              /* accesses of warps; the members below are of these */
    uint64_t lanes;
    uint64_t sectors; /* of 32 bytes; global or local */
    uint64_t passes;  /* over the banks */
} model_site;

/* Fills `sites`, one a pc of the module: counts during the run, stalls in model_finish if they are
 * watched. Call before the run. The caller zeroes the array and keeps it until model_finish. */
void model_watch_sites(model *m, model_site *sites);

/* Leaves out the repeated reads of loops that only poll memory: how often a block polls depends on
 * the order in which the virtual machine runs blocks. Call before the run. */
ev_status model_skip_polls(model *m, ev_error *err) EV_CHECKED;

/* Simulates repeated blocks too. Tests compare the result with and without repeats; benchmarks
 * measure the cost of a sample without repeats. Call before the run. */
void model_follow_all(model *m);

/* Stored sectors (address / 32), each once a block, in the order of the stores. */
const uint64_t *model_stored(const model *m, size_t *count);

/* Chooses at most `limit` of `blocks` blocks to execute, ascending: one is the middle; two are the
 * first and the middle; more are the first, the last and evenly spaced ones between. Returns the
 * number written to `sample`. */
size_t model_sample_blocks(uint64_t blocks, size_t limit, uint32_t *sample);

#endif
