/* Plans: what following a batch of a warp came to, kept for the next batch that is the same. */
#ifndef FITNESS_MODEL_PLANS_H
#define FITNESS_MODEL_PLANS_H

#include "fitness/model/scoreboard.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct model_plan model_plan;

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

#endif
