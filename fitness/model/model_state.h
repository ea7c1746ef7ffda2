/* A model while its launch runs: what model.c keeps of blocks, and follow.c of their warps. */
#ifndef FITNESS_MODEL_MODEL_STATE_H
#define FITNESS_MODEL_MODEL_STATE_H

#include "fitness/model/model_impl.h"

#define L1_MOST_LINES 64 /* of one request */

enum { KIND_EDGE, KIND_INNER, KIND_LEADERS };

typedef struct model_plan model_plan;

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

/* Sums of whole numbers are the same in any order. */
#define UNITS 4294967296.0

/* What an access cost when its instruction was executed last, with as many lanes, lines and passes:
 * mostly it is the same again. */
typedef struct access_cost {
    uint32_t active; /* 0: it was not executed yet */
    uint16_t lines, passes;
    uint64_t path;   /* of the L1's time, or of the shared memory's: UNITS a cycle */
    uint64_t later;  /* cycles that they hold its result up by */
    uint32_t buffer; /* that its line was in */
} access_cost;

/* ---- plans.c ---- */

typedef enum plan_way {
    PLAN_RECALL, /* a block of code, all of whose accesses are in the plan */
    PLAN_FOLLOW,
    PLAN_LEAVE, /* not followed yet when the plan ends: its last stretch */
} plan_way;

/* How far each of a stretch's accesses had to come from, 2 bits each, the last one's lowest: 0 the
 * L1, 1 the L2, 2 DRAM; of others than loads 0. With it the times of all are known. */
typedef uint64_t plan_code;
#define PLAN_CODE_ACCESSES 32

/* What is known of a stretch; `step` NULL: nothing. */
typedef struct plan_known {
    plan_code code;
    model_step *step;
    uint32_t epoch; /* of the board */
} plan_known;

#define PLAN_KNOWN 4 /* a power of two */

/* Instructions that are followed together. */
typedef struct plan_stretch {
    uint32_t first, end;         /* pcs */
    uint32_t times, times_end;   /* of its accesses, in the plan's */
    uint32_t access, access_end; /* those of them whose sectors are looked up */
    uint32_t code, code_end;     /* of these, in the plan's */
    plan_way way;
    plan_known known[PLAN_KNOWN]; /* where it has one code at most */
} plan_stretch;

typedef enum plan_read {
    PLAN_NO_READ,    /* of the L1 */
    PLAN_READ_APART, /* its sectors, of which there are some, are each of another line */
    PLAN_READ_ONE,   /* all of one line */
    PLAN_READ,
} plan_read;

/* One whose sectors are looked up. */
typedef struct plan_access {
    uint64_t later;    /* as of its cost */
    access_cost *cost; /* of its instruction: as of last */
    uint32_t first_sector, time;
    uint32_t pc;
    uint16_t sectors;
    uint8_t way; /* plan_read */
    bool is_load;
} plan_access;

#define PLAN_MEMOS 4

/* How often a memo's stretches take a step. */
typedef struct plan_use {
    uint32_t *of_step;
    uint32_t count;
} plan_use;

/* What stretches in a row, whose loads had given codes, made of a warp's state. */
typedef struct plan_memo {
    size_t from, to;  /* stretches; from == to: nothing */
    plan_code *codes; /* of the plan's, as they were */
    plan_use *uses;
    size_t use_count;
    uint32_t state_in, state_out;
    uint32_t epoch;       /* of the board */
    uint64_t clock, wait; /* what the warp's grew by */
} plan_memo;

/* Of a block's `runs`: what following a plan adds there. */
typedef struct plan_run {
    uint32_t pc;
    int32_t more;
} plan_run;

struct model_plan {
    size_t count;        /* events */
    uint32_t first, end; /* collected before it */
    vm_event *events;
    plan_stretch *stretches;
    plan_access *accesses;
    plan_code *codes; /* as of the last run of the plan */
    uint32_t *coded;  /* by code: the access after its last */
    uint64_t *times;  /* of all accesses; those of loads, where they were asked for last */
    uint32_t *slots;  /* of these: in the warp's memory */
    uint32_t **uses;  /* by stretch: of the step that was recalled last */
    plan_run *runs;
    size_t run_count;
    size_t stretch_count, stretch_room, access_count, time_count, code_count;
    uint64_t path[2]; /* UNITS a cycle: of the L1, of the shared memory */
    uint64_t read;    /* sectors that it loads */
    plan_memo memos[PLAN_MEMOS];
    unsigned memo_next;    /* to be overwritten */
    const model_row *last; /* NULL, or of its last event: a barrier or an end of lanes */
    uint32_t last_active;
    struct model_plan *then; /* the plan of the warp's next batch, last time */
};

typedef struct model_plans model_plans;

model_plans *model_plans_new(void);
void model_plans_free(model_plans *plans); /* NULL is fine */
/* Whether they are found often enough. */
bool model_plans_help(const model_plans *plans);
/* The plan of a batch before which [first, end) was collected; NULL: there is none. `before`: that
 * of the warp's batch before, or NULL. */
model_plan *model_plans_find(model_plans *plans, model_plan *before, const vm_batch *batch,
                             uint32_t first, uint32_t end);
/* A new one, of the batch's first `count` events; NULL: no room, or such a batch was not seen
 * before. It stays where it is. */
model_plan *model_plans_begin(model_plans *plans, const vm_batch *batch, size_t count,
                              uint32_t first, uint32_t end);

/* Its next access, and the time it took. */
void model_plan_access(model_plan *plan, const vm_event *e, const model_row *row, access_cost *cost,
                       uint64_t time, uint32_t slot);
/* Its next stretch ends here. */
void model_plan_stretch(model_plan *plan, uint32_t first, uint32_t end, plan_way way);
/* It is whole. */
void model_plan_end(model_plan *plan);

/* ---- rooms.c ---- */

struct model_rooms {
    model_tables *tables;
    model_log *logs[MODEL_LEADERS]; /* NULL: not wanted yet */
};

/* An empty log for the leader of that number; NULL: there is no memory. */
model_log *model_rooms_log(model_rooms *rooms, size_t number);

/* A block that others repeat. */
typedef struct leader {
    model_log *log; /* the rooms' */
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
    model_code *own_code;   /* NULL: the code is borrowed */
    model_rooms *own_rooms; /* likewise */
    model_rooms *rooms;
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
