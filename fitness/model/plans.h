/* Plans: the result of following a batch of a warp, kept for the next equal batch. plans.c explains
 * how plans are used. */
#ifndef FITNESS_MODEL_PLANS_H
#define FITNESS_MODEL_PLANS_H

#include "fitness/model/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct model_plan model_plan;

/* Sums of whole numbers are the same in any order. */
#define UNITS 4294967296.0

/* Cache of an instruction: the cost of its last access. It is reused if lanes, lines and passes are
 * equal. */
typedef struct access_cost {
    uint32_t active; /* 0: it was not executed yet */
    uint16_t lines, passes;
    uint64_t path;   /* time of the L1 or of the shared memory, UNITS a cycle */
    uint64_t later;  /* cycles by which this delays its result */
    uint32_t buffer; /* the buffer of its line */
} access_cost;

/* What stores do to sectors of global memory; atomics are not among them. */
typedef struct model_stores {
    uint64_t sectors, parts; /* requests' sectors, and those of which a request writes a part */
    uint64_t bytes;          /* of the lanes */
} model_stores;

/* Adds the stores of one request. The bytes that a request leaves out are those of its parts, each
 * of which has one lane's bytes at least. */
static inline void model_stores_add(model_stores *s, const vm_event *e, const model_row *row) {
    uint64_t bytes = (uint64_t)__builtin_popcount(e->active) * row->access_bytes;
    uint64_t all = (uint64_t)e->sectors * 32,
             most = row->access_bytes < 32 ? row->access_bytes : 31;
    uint64_t parts = all > bytes ? (all - bytes + 31 - most) / (32 - most) : 0;
    s->sectors += e->sectors;
    s->parts += parts < e->sectors ? parts : e->sectors;
    s->bytes += bytes;
}

typedef enum plan_way {
    PLAN_RECALL, /* a block of code, all of whose accesses are in the plan */
    PLAN_FOLLOW,
    PLAN_LEAVE, /* not followed yet when the plan ends: its last stretch */
} plan_way;

/* The level that served each access of a stretch, 2 bits each, the last access in the lowest bits:
 * 0 the L1 (and all but loads), 1 the L2, 2 DRAM. The code determines the times of all accesses. */
typedef uint64_t plan_code;
#define PLAN_CODE_ACCESSES 32

/* A known outcome of a stretch; `step` NULL: empty. */
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
    uint32_t access, access_end; /* accesses whose sectors are looked up */
    uint32_t code, code_end;     /* of these, in the plan's */
    plan_way way;
    plan_known known[PLAN_KNOWN]; /* where it has one code at most */
} plan_stretch;

typedef enum plan_read {
    PLAN_NO_READ,    /* of the L1 */
    PLAN_READ_APART, /* each of its sectors is in a different line */
    PLAN_READ_ONE,   /* all sectors are in one line */
    PLAN_READ,
} plan_read;

/* An access whose sectors are looked up. */
typedef struct plan_access {
    uint64_t later;    /* copy of its cost's */
    access_cost *cost; /* of its instruction */
    uint32_t first_sector, time;
    uint32_t pc;
    uint16_t sectors;
    uint8_t way; /* plan_read */
    bool is_load;
} plan_access;

#define PLAN_MEMOS 4

/* Whether the events of a plan are a whole slice (interleave.c), perhaps up to a barrier. */
typedef enum plan_whole { PLAN_NOT_ASKED, PLAN_PART, PLAN_WHOLE, PLAN_BARRIER } plan_whole;

/* Number of times that a memo's stretches take a step. */
typedef struct plan_use {
    uint32_t *of_step;
    uint32_t count;
} plan_use;

/* A memo: the effect of consecutive stretches on a warp's state, for given codes of their loads. */
typedef struct plan_memo {
    size_t from, to;  /* stretches; from == to: nothing */
    plan_code *codes; /* of the plan's, as they were */
    plan_use *uses;
    size_t use_count;
    uint32_t state_in, state_out;
    uint32_t epoch;       /* of the board */
    uint64_t clock, wait; /* increments of the warp's */
} plan_memo;

/* What a plan adds to one element of its block's `runs`. */
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
    uint64_t *times;  /* of all accesses; those of loads as of their last use */
    uint32_t *slots;  /* of these: in the warp's memory */
    uint32_t **uses;  /* by stretch: of the step that was recalled last */
    plan_run *runs;
    size_t run_count;
    size_t stretch_count, stretch_room, access_count, time_count, time_room, code_count;
    uint64_t path[2]; /* work of the L1 and of the shared memory, UNITS a cycle */
    uint64_t read;    /* sectors that it loads */
    model_stores stores;
    plan_memo memos[PLAN_MEMOS];
    unsigned memo_next;    /* to be overwritten */
    const model_row *last; /* NULL, or of its last event: a barrier or an end of lanes */
    uint32_t last_active;
    struct model_plan *then; /* the plan of the warp's next batch, last time */
    struct model_plan *next; /* what model_plans_like found after it, last time */
    plan_whole whole;
};

typedef struct model_plans model_plans;

model_plans *model_plans_new(void);
void model_plans_free(model_plans *plans); /* NULL is fine */
/* True if plans are found often enough to pay. */
bool model_plans_help(const model_plans *plans);
/* The plan of a batch; NULL: none. [first, end): pcs collected before the batch. `before`: the plan
 * of the warp's previous batch, or NULL. */
model_plan *model_plans_find(model_plans *plans, model_plan *before, const vm_batch *batch,
                             uint32_t first, uint32_t end);
/* Says that the warp's next batch has this plan, which the caller found. */
void model_plans_found(model_plans *plans, model_plan *before, model_plan *plan);
/* The plan whose events are the first of the batch's, which follow those of the plan `before`; its
 * own may count their sectors from another place. It may have been made after other pcs. NULL:
 * there is none in the places looked at. */
model_plan *model_plans_like(const model_plans *plans, model_plan *before, const vm_batch *batch);
/* Begins a plan of the batch's first `count` events. NULL: no room, or no such batch was seen
 * before. The plan's address stays valid until model_plans_free. */
model_plan *model_plans_begin(model_plans *plans, const vm_batch *batch, size_t count,
                              uint32_t first, uint32_t end);

/* Adds the plan's next access, and its time. */
void model_plan_access(model_plan *plan, const vm_event *e, const model_row *row, access_cost *cost,
                       uint64_t time, uint32_t slot);
/* Adds an access that all lanes stepped over. */
void model_plan_skip(model_plan *plan, uint32_t slot);
/* Adds the plan's next stretch, [first, end). */
void model_plan_stretch(model_plan *plan, uint32_t first, uint32_t end, plan_way way);
/* Completes the plan. */
void model_plan_end(model_plan *plan);

#endif
