/* Portfolio: the few variants of a kernel that together take the least time over several shapes,
 * where each shape is given the fastest of them. Times are in ns. */
#ifndef TUNER_SEARCH_PORTFOLIO_H
#define TUNER_SEARCH_PORTFOLIO_H

#include "base/status.h"
#include "fitness/gates/score.h"
#include "kernels/task.h"

#include <stdbool.h>
#include <stddef.h>

#define PORTFOLIO_SHAPES SCORE_MAX_CASES
#define PORTFOLIO_MOST 16 /* variants */

/* The shapes that a portfolio is for: timed cases of the task's split "search". */
typedef struct portfolio_shapes {
    const task_case *at[PORTFOLIO_SHAPES]; /* borrowed from the task */
    double weights[PORTFOLIO_SHAPES];      /* above 0 */
    size_t count;
} portfolio_shapes;

/* Reads the shapes from names of cases with commas between, with the weights of the task, or from a
 * JSON file {"CASE": WEIGHT, ...}. EV_BAD: a name that the task lacks, or that is no timed case of
 * the search, or that comes twice; a weight that is not above 0; too many shapes. */
ev_status portfolio_read_shapes(const char *text, const task *t, portfolio_shapes *out,
                                ev_error *err) EV_CHECKED;

/* The times of one candidate. */
typedef struct portfolio_times {
    double ns[PORTFOLIO_SHAPES]; /* 0: not timed, and never chosen there */
    size_t edits;                /* of equal candidates, the one with fewer is chosen */
    bool is_out;                 /* the candidate may not be chosen */
} portfolio_times;

typedef struct portfolio_problem {
    const portfolio_times *list;
    size_t count;
    const double *weights;
    const double *base_ns; /* what a shape takes without any of the candidates */
    size_t shapes;
    size_t most;       /* members, up to PORTFOLIO_MOST */
    double least_gain; /* one more member has to save this share of the weighted time */
} portfolio_problem;

/* The weighted time with these members: the sum over the shapes of weight x time of the fastest. */
double portfolio_cost(const portfolio_problem *p, const size_t *members, size_t count);
/* Chooses at most p->most members: by greedy steps, then by exchanges of one member for another as
 * long as they gain. The first member is the one that saves most alone. Of equal candidates with
 * as many edits the earlier one is chosen. `members` has room for PORTFOLIO_MOST. Returns their
 * number. */
size_t portfolio_choose(const portfolio_problem *p, size_t *members);

#endif
