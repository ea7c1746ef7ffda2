/* The state of a model during a launch: the blocks (model.c) and their warps (follow.c). Times are
 * in cycles of an SM's clock if no unit is named. The model owns all of it, except `launch`, the
 * GPU description, and the code and scratch pool that its caller lent. */
#ifndef FITNESS_MODEL_MODEL_STATE_H
#define FITNESS_MODEL_MODEL_STATE_H

#include "fitness/model/access/cache.h"
#include "fitness/model/access/links.h"
#include "fitness/model/account.h"
#include "fitness/model/plans.h"
#include "fitness/model/repeat.h"

#define L1_MOST_LINES 64 /* most lines of one request */

enum { KIND_EDGE, KIND_INNER, KIND_LEADERS };

/* The last read of a warp in a polling loop. */
typedef struct warp_poll {
    uint32_t pc, active; /* active 0: the warp is in no such loop */
    uint64_t sector;
    bool again; /* the read repeats the one before */
} warp_poll;

typedef struct warp_state {
    board_warp at;
    uint32_t epoch;   /* number of barriers that all lanes of the warp arrived at */
    uint32_t live;    /* lanes that have not ended */
    uint32_t arrived; /* lanes at the barrier while other lanes are still on their way */
    bool at_barrier;
    uint32_t first, end; /* range of pcs executed and not followed yet: straight-line code */
    uint32_t stop;       /* end of the basic block of that range */
    model_plan *plan;    /* plan of the warp's previous batch; NULL: there was none */
    warp_poll poll;
} warp_state;

typedef struct warp_queue warp_queue; /* events of a warp that are not followed yet */

typedef struct block_state {
    bool used;
    bool is_live; /* the block is followed; else it repeats the leader's log so far */
    uint32_t block, warps;
    double weight;   /* number of blocks of the grid that the block stands for */
    unsigned kind;   /* KIND_*: the group whose waits a live block's waits are added to */
    size_t leader;   /* index of the leader whose log the block repeats, or, if live, writes;
                        MODEL_LEADERS: none */
    model_repeat at; /* position in the log */
    warp_state *warp;
    uint64_t *ready;  /* [warp][register] */
    uint64_t *memory; /* [warp][pc]: times of the accesses that are not followed yet */
    size_t ready_room, memory_room, warp_room;
    warp_queue *queues;         /* by warp; interleave.c */
    size_t queue_count, queued; /* number of queues; bytes in them */
    uint64_t *turns;            /* by warp: its clock; UINT64_MAX: it has nothing to do */
    uint32_t queued_last;       /* the warp whose batch was put there last */
    uint32_t barriers_passed;   /* by the warp that has passed most */
    model_cache cache;
    uint32_t epoch_seen; /* number of the latest barrier that any warp arrived at */
    uint64_t arrived[2], arrived_wait[2];
    model_sums sums;              /* sums of this block alone */
    uint64_t read, missed, wrote; /* sectors loaded, sectors loaded that missed the L1, sectors
                                     stored */
    uint64_t remote;              /* sectors missed or stored that belong to peers' memory */
    model_stores stores;
    uint32_t again[MODEL_AGAIN]; /* as in the sums */
    uint64_t path[2];            /* work of the L1 and of the shared memory, UNITS a cycle */
    int64_t *runs;               /* [pc]: differences of the execution counts */
} block_state;

struct model_scratch {
    model_tables *tables;
    model_log *logs[MODEL_LEADERS]; /* NULL: not needed yet */
};

/* A leader: a block whose log other blocks repeat. */
typedef struct leader {
    model_log *log; /* memory of the scratch pool */
    model_sums sums;
    double weight; /* number of blocks of the grid that the leader and its repeats stand for */
} leader;

struct model_code {
    const gpu *gpu;
    const vm_module *module;
    const vm_entry *entry;
    uint32_t live_registers, least_registers; /* model_need */
    model_insns insns;
    model_rows rows;
    model_schedule schedule;
};

struct model {
    model_shape shape;
    const vm_launch *launch;
    model_code *own_code;       /* NULL: the code is borrowed */
    model_scratch *own_scratch; /* NULL: the scratch pool is borrowed */
    model_scratch *scratch;
    model_rows rows;         /* borrowed from the code */
    model_schedule schedule; /* the code's */
    model_board *board;
    vm_observer observer;
    model_buffers buffers;
    uint64_t l1_bytes;                  /* a block's share of the L1 */
    uint64_t latency[MODEL_TERM_COUNT]; /* latency of a load from the L1, the L2 and DRAM */
    uint64_t lat_barrier, lat_peer, lat_network;
    /* by number of lines: cycles that the last one comes later from DRAM than one alone */
    uint64_t spread[L1_MOST_LINES + 1];
    model_links *links; /* NULL: no peers */
    uint8_t *polls;     /* by pc: 1 in a loop that may wait for a peer; NULL: no peers */
    model_hot hot;      /* allocated only if the kernel has atomics */
    double l1_tag_cycles[L1_MOST_LINES + 1]; /* cycles of a request by its number of lines; at
                                                least those of the unit */
    double l1_byte_cycles, shared_byte_cycles, lsu_cycles;
    block_state **blocks;
    size_t block_count, last_block;
    uint32_t longest_block; /* length in instructions of the longest basic block */
    access_cost *costs;     /* by pc: cost of the last access */
    model_step **waits;     /* by the pc after a barrier: the step found last; or NULL */
    model_plans *plans;
    model_plan *making; /* plan under construction from the batch that is followed; NULL: none */
    double weights[KIND_LEADERS];
    leader leaders[MODEL_LEADERS];
    size_t leader_count;
    uint64_t ended, repeated; /* blocks that ended, and of these the blocks that repeated a
                                 leader */
    bool follows_all;
    uint8_t *marks;        /* by pc: what ends a slice */
    bool has_cached_loads; /* some load of the kernel goes through the L1 */
    model_site *sites;     /* NULL: not asked for */
    model_copy copy;
    model_sums sums;
    int64_t *runs_before; /* execution counts of the block summed up before this one; all 0 at
                             first */
    double pipes_before[MODEL_TERM_COUNT]; /* pipe cycles of runs_before */
    double accesses_before;                /* access slots of runs_before */
    uint64_t *stored;                      /* list of stored sectors */
    size_t stored_count, stored_room;
    double *stalls; /* by pc: cycles; after the end, shares */
    bool finished;
    bool failed; /* memory ran out during the launch; the model reports it at the end */
};

static inline unsigned kind_of(const model *m, uint32_t block) {
    return block == 0 || block == m->shape.blocks - 1 ? KIND_EDGE : KIND_INNER;
}

/* ---- interleave.c ---- */

/* Call once a launch, and for each block before its batches. False: out of memory. */
bool model_interleave_begin(model *m);
bool model_interleave_block(block_state *b);
/* Takes one batch of a warp in a live block, and follows it when the block's other warps have come
 * as far. */
void model_interleave_batch(model *m, block_state *b, const vm_batch *batch);
/* Follows what still waits, at the block's end. */
void model_interleave_rest(model *m, block_state *b);
void model_queues_free(warp_queue *queues, size_t count); /* NULL is fine */

/* ---- follow.c ---- */

/* Follows one batch of a warp in a live block. `like`: a plan of equal events, or NULL. */
void model_follow_batch(model *m, block_state *b, const vm_batch *batch, model_plan *like);
/* Follows the remaining instructions of a warp at its end. */
void model_follow_rest(model *m, block_state *b, uint32_t warp);
/* Notes a sector that a block stores to for the first time. */
void model_note_stored(model *m, uint64_t sector);

#endif
