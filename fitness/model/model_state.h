/* A model while its launch runs: what model.c keeps of blocks, and follow.c of their warps. */
#ifndef FITNESS_MODEL_MODEL_STATE_H
#define FITNESS_MODEL_MODEL_STATE_H

#include "fitness/model/account.h"
#include "fitness/model/cache.h"
#include "fitness/model/links.h"
#include "fitness/model/plans.h"
#include "fitness/model/repeat.h"

#define L1_MOST_LINES 64 /* of one request */

enum { KIND_EDGE, KIND_INNER, KIND_LEADERS };

/* What a warp read last in a loop that only waits. */
typedef struct warp_poll {
    uint32_t pc, active; /* active 0: it is in none */
    uint64_t sector;
    bool again; /* the same as the time before */
} warp_poll;

typedef struct warp_state {
    board_warp at;
    uint32_t epoch;   /* barriers that all its lanes arrived at */
    uint32_t live;    /* lanes that have not ended */
    uint32_t arrived; /* lanes that are at the barrier, while others are on their way */
    bool at_barrier;
    uint32_t first, end; /* pcs executed and not followed yet: straight-line code */
    uint32_t stop;       /* where their block ends */
    model_plan *plan;    /* of its batch before; NULL: there was none */
    warp_poll poll;
} warp_state;

typedef struct block_state {
    bool used;
    bool is_live; /* followed; else it repeats so far what the leader's log says */
    uint32_t block, warps;
    unsigned kind;   /* of a live block: whose waits its own are summed with */
    size_t leader;   /* whose log it repeats, or, live, writes; MODEL_LEADERS: none */
    model_repeat at; /* where in the log */
    warp_state *warp;
    uint64_t *ready;  /* [warp][register] */
    uint64_t *memory; /* [warp][pc]: times of the accesses that are not followed yet */
    size_t ready_room, memory_room, warp_room;
    model_cache cache;
    uint32_t epoch_seen; /* the latest barrier that a warp arrived at */
    uint64_t arrived[2], arrived_wait[2];
    model_sums sums;              /* of this block alone */
    uint64_t read, missed, wrote; /* sectors: loaded, of these not in the L1, stored */
    uint64_t remote;              /* of those missed and stored: of peers' memory */
    uint64_t path[2];             /* UNITS a cycle: of the L1, of the shared memory */
    int64_t *runs;                /* [pc], differences of how often each was executed */
} block_state;

struct model_scratch {
    model_tables *tables;
    model_log *logs[MODEL_LEADERS]; /* NULL: not wanted yet */
};

/* A block that others repeat. */
typedef struct leader {
    model_log *log; /* of the scratch pool */
    model_sums sums;
    double weight; /* blocks of the grid that it stands for, with those that repeat it */
} leader;

struct model_code {
    const gpu *gpu;
    const vm_module *module;
    const vm_entry *entry;
    uint32_t live_registers;
    model_insns insns;
    model_rows rows;
    model_schedule schedule;
};

struct model {
    model_shape shape;
    const vm_launch *launch;
    model_code *own_code;       /* NULL: the code is borrowed */
    model_scratch *own_scratch; /* likewise */
    model_scratch *scratch;
    model_rows rows;         /* the code's */
    model_schedule schedule; /* the code's */
    model_board *board;
    vm_observer observer;
    model_buffers buffers;
    uint64_t l1_bytes;                  /* a block's share */
    uint64_t latency[MODEL_TERM_COUNT]; /* of a load from the L1, the L2 and DRAM */
    uint64_t lat_barrier, lat_peer, lat_network;
    model_links *links; /* NULL: no peers */
    uint8_t *polls;     /* by pc: 1 in a loop that may wait for a peer; NULL: no peers */
    model_hot hot;      /* made where there are atomics */
    double
        l1_tag_cycles[L1_MOST_LINES + 1]; /* of a request of so many lines, at least the unit's */
    double l1_pass_cycles, l1_byte_cycles, lsu_cycles, shared_byte_cycles;
    block_state **blocks;
    size_t block_count, last_block;
    uint32_t longest_block; /* instructions */
    access_cost *costs;     /* by pc */
    model_step **waits;     /* by pc that a warp goes on at after a barrier: found last; or NULL */
    model_plans *plans;
    model_plan *making; /* of the batch that is followed; NULL: none is made of it */
    double weights[KIND_LEADERS];
    leader leaders[MODEL_LEADERS];
    size_t leader_count;
    uint64_t ended, repeated; /* blocks */
    bool follows_all;
    model_site *sites; /* NULL: not wanted */
    model_copy copy;
    model_sums sums;
    int64_t *runs_before; /* of the block that was summed up before; all 0 at first */
    double pipes_before[MODEL_TERM_COUNT]; /* what they came to */
    uint64_t *stored;                      /* sectors */
    size_t stored_count, stored_room;
    double *stalls; /* by pc: cycles, then shares */
    bool finished;
    bool failed; /* memory ran out in the observer */
};

static inline unsigned kind_of(const model *m, uint32_t block) {
    return block == 0 || block == m->shape.blocks - 1 ? KIND_EDGE : KIND_INNER;
}

static inline double weight_of(const model *m, uint32_t block) {
    return m->weights[kind_of(m, block)];
}

/* ---- follow.c ---- */

/* A warp of a block that is followed goes on by a batch. */
void model_follow_batch(model *m, block_state *b, const vm_batch *batch);
/* What is left of it at its end. */
void model_follow_rest(model *m, block_state *b, uint32_t warp);
/* A sector that a block stored to for the first time. */
void model_note_stored(model *m, uint64_t sector);

#endif
