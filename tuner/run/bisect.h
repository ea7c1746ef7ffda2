/* Bisection: finds the edits that make a genome wrong, and the genome without them.
 *
 * Let the first k edits be right and the first k + 1 wrong: halving finds such a k in a logarithmic
 * number of tests. That edit is removed, and the rest is searched again until it is right. (Zeller,
 * "Yesterday, my program worked. Today, it does not. Why?", 1999.) */
#ifndef TUNER_RUN_BISECT_H
#define TUNER_RUN_BISECT_H

#include "base/status.h"
#include "ir/genome.h"

#include <stdbool.h>
#include <stddef.h>

/* Tests a genome: *wrong. Any status but EV_OK ends the bisection. */
typedef ev_status bisect_test(void *context, const ir_genome *genome, bool *wrong, ev_error *err);

typedef struct bisect_request {
    const ir_genome *genome; /* known to be wrong; borrowed */
    size_t budget;           /* tests at most */
    bisect_test *test;
    void *context;
} bisect_request;

typedef struct bisect_result {
    const ir_genome
        *rest; /* the right genome that is left; NULL: none, or the budget was too small */
    /* Wrong genomes, each with a wrong edit last: that edit alone where it is wrong alone, else
     * with all edits before it; without edits, the base itself is wrong. */
    const ir_genome **wrong;
    size_t wrong_count;
} bisect_result;

/* `out` holds new references; free them by bisect_clear. Returns the status of a failed test. */
ev_status bisect_find(const bisect_request *request, bisect_result *out, ev_error *err) EV_CHECKED;
void bisect_clear(bisect_result *r);

#endif
