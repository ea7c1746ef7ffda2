/* Launch plan: the launches of a kernel as expressions, from the task to the device, the gates, the
 * records and the bundle.
 *
 * Expressions (base/expr.h) see the names of the shape, the scalar arguments and the macros. A plan
 * is plain, read-only data: whoever makes a plan owns its memory, most often in an arena. No
 * pointer is NULL where its count is above 0. A plan that came from `launch_plan_decode`, or passed
 * `launch_plan_check`, holds texts of printable ASCII alone.
 *
 * The JSON form leaves out what is at its default (an empty list today). A key that is added later
 * therefore leaves the JSON and the hash of older plans as they are. */
#ifndef BASE_LAUNCH_PLAN_H
#define BASE_LAUNCH_PLAN_H

#include "base/arena.h"
#include "base/expr.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/status.h"
#include "base/type.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LAUNCH_PLAN_MOST 64 /* members of each list of a plan */

/* A parameter of a launch: an argument of the task or a scratch buffer by its name, or a value of
 * the launch's own. */
typedef struct launch_given {
    const char *name;  /* NULL: a value */
    ev_type type;      /* of a value */
    const char *value; /* an expression; NULL: a name */
} launch_given;

/* One launch. */
typedef struct launch_rule {
    const char *entry;         /* the kernel's name in the PTX */
    const char *grid[3];       /* blocks, expressions */
    const char *block[3];      /* threads a block, expressions */
    const char *shared;        /* bytes of dynamic shared memory a block, an expression */
    const launch_given *given; /* its parameters, in order */
    size_t given_count;        /* 0: the task's arguments, in their order */
} launch_rule;

/* Two buffers that change places. */
typedef struct launch_pair {
    const char *names[2];
} launch_pair;

/* Launches that are run again and again. At the end of each turn, the two names of a pair stand for
 * each other's buffers, also after the last turn. */
typedef struct launch_loop {
    size_t first, count; /* launches of the plan */
    const char *turns;   /* an expression, 0 or more */
    const char *counter; /* what the expressions of its launches know the turn by, from 0; NULL: by
                            no name */
    const launch_pair *swaps;
    size_t swap_count;
} launch_loop;

/* A buffer that lives for the launches of the plan alone. */
typedef struct launch_scratch {
    const char *name;
    const char *bytes;    /* an expression; where there are ranks, of one rank */
    const char *peers_of; /* a table of that earlier scratch buffer's address at each rank; NULL: no
                             table */
} launch_scratch;

/* A parameter behind the task's own, which an edit added. */
typedef struct launch_hidden {
    const char *name;
    ev_type type;
    const char *value; /* an expression */
} launch_hidden;

/* The values of a parameter for which the plan was validated: from low to high and, for whole
 * numbers, multiples of `multiple`. Whole numbers are exact up to 2^53. */
typedef struct launch_range {
    const char *name;
    bool is_real;
    double low, high;
    int64_t multiple; /* 0: no condition; 0 for reals */
} launch_range;

typedef struct launch_plan {
    const launch_rule *launches; /* in order, at least one */
    size_t launch_count;
    size_t main; /* the launch that matters most: edits of the structure change its kernel, and all
                    launches of that kernel */
    const launch_loop *loops; /* in order, none within another */
    size_t loop_count;
    const launch_scratch *scratch;
    size_t scratch_count;
    const launch_hidden *hidden;
    size_t hidden_count;
    const launch_range *ranges;
    size_t range_count;
} launch_plan;

/* The most that a device takes; the least is 1, and 0 for shared memory. */
typedef struct launch_limits {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t threads; /* a block */
    uint32_t shared;  /* bytes of dynamic shared memory a block */
} launch_limits;

/* CUDA's for every compute capability from 5.0 on; shared memory of those with the most, 9.0. */
extern const launch_limits LAUNCH_LIMITS_CUDA;

/* A launch at some values. */
typedef struct launch_geometry {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t shared_bytes; /* dynamic, a block */
} launch_geometry;

/* The expressions of a launch. Grid and block have the axes 0 to 2, shared has axis 0. */
typedef enum launch_field { LAUNCH_GRID, LAUNCH_BLOCK, LAUNCH_SHARED } launch_field;

/* Checks the plan without values: counts, entries, names, the syntax of each expression, ranges; an
 * expression without names is evaluated and held against LAUNCH_LIMITS_CUDA. EV_BAD names the
 * launch and the field. `names`: those that expressions and ranges may use; NULL: any. */
ev_status launch_plan_check(const launch_plan *plan, const expr_names *names,
                            ev_error *err) EV_CHECKED;

/* One expression of launch `index` (a caller's bug if there is none such). EV_BAD: it cannot be
 * evaluated, or its value is zero or over the limits; the message names the launch, the dimension,
 * the expression and the values of the names in it. */
ev_status launch_plan_eval(const launch_plan *plan, size_t index, launch_field field, int axis,
                           const expr_scope *values, const launch_limits *limits, uint32_t *out,
                           ev_error *err) EV_CHECKED;
/* All of them, and the threads of a block against their limit. */
ev_status launch_plan_geometry(const launch_plan *plan, size_t index, const expr_scope *values,
                               const launch_limits *limits, launch_geometry *out,
                               ev_error *err) EV_CHECKED;
/* Bytes of scratch buffer `index`, at least 1 and at most 2^40. EV_BAD as above. */
ev_status launch_plan_scratch(const launch_plan *plan, size_t index, const expr_scope *values,
                              uint64_t *bytes, ev_error *err) EV_CHECKED;
/* Value of hidden parameter `index`, as its type holds it. EV_BAD as above. */
ev_status launch_plan_hidden(const launch_plan *plan, size_t index, const expr_scope *values,
                             expr_value *out, ev_error *err) EV_CHECKED;
bool launch_range_holds(const launch_range *range, double value);

/* The main launch's entry. */
const char *launch_plan_entry(const launch_plan *plan);
/* Of one launch, once, with the task's arguments alone. */
bool launch_plan_is_plain(const launch_plan *plan);

#define LAUNCH_STEPS_MOST 1024 /* launches of a plan, with all turns */

/* A launch of a plan in one turn of its loop. */
typedef struct launch_step {
    size_t launch;           /* its number in the plan */
    const launch_loop *loop; /* NULL: none */
    int64_t turn;            /* 0 without a loop */
    uint64_t swapped;        /* bit i: the pairs of loop i stand exchanged */
} launch_step;

/* The launches in order, all turns written out; *out is malloc'ed. EV_BAD: a number of turns that
 * cannot be evaluated; no launch at all, or more than LAUNCH_STEPS_MOST. */
ev_status launch_plan_steps(const launch_plan *plan, const expr_scope *values, launch_step **out,
                            size_t *count, ev_error *err) EV_CHECKED;
/* The values that a step's expressions see: the first `count` of `names`, which has room for one
 * more, and the counter of its loop. */
expr_scope launch_step_scope(const launch_step *step, expr_name *names, size_t count);
/* The buffer whose place `name` takes at a step: `name` itself where nothing is exchanged. */
const char *launch_step_buffer(const launch_plan *plan, const launch_step *step, const char *name);

/* A copy with all its texts, in the arena. */
ev_status launch_plan_clone(const launch_plan *from, ev_arena *arena, const launch_plan **out,
                            ev_error *err) EV_CHECKED;

/* ---- JSON --------------------------------------------------------------------------------------
 */

/* The caller owns the object. */
ev_status launch_plan_encode(const launch_plan *plan, json_t **out, ev_error *err) EV_CHECKED;
/* {"name", "low", "high"} and, for whole numbers, "multiple"; NULL: out of memory. */
json_t *launch_range_encode(const launch_range *range);
/* Strict: unknown and missing keys, wrong kinds, and all that launch_plan_check refuses are EV_BAD
 * with FILE:LINE:COLUMN. `object` stands at `where` in `doc`; the arena holds the plan. */
ev_status launch_plan_decode(const ev_json *doc, const json_t *object, const char *where,
                             const expr_names *names, ev_arena *arena, const launch_plan **out,
                             ev_error *err) EV_CHECKED;
/* Of the compact JSON with sorted keys: equal plans have equal hashes. */
ev_status launch_plan_sha256(const launch_plan *plan, ev_sha256 *out, ev_error *err) EV_CHECKED;

#endif
