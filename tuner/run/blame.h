/* Blame: which edits of a wrong genome make it wrong, and what is left without them.
 *
 * The edits are looked at in their order: the first k of them are right, the first k + 1 wrong, and
 * halving finds such a k with few tests. That edit goes, and what is left is looked at in turn. (A
 * bisection as Zeller's, "Yesterday, my program worked. Today, it does not. Why?", 1999.) */
#ifndef TUNER_RUN_BLAME_H
#define TUNER_RUN_BLAME_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef ev_status blame_test(void *context, json_t *genome, bool *wrong, ev_error *err);

typedef struct blame_request {
    const json_t *genome; /* known to be wrong; borrowed */
    size_t budget;        /* tests at most */
    blame_test *test;
    void *context;
} blame_request;

typedef struct blame_result {
    json_t *rest;  /* right; NULL: nothing is, or the budget was too small */
    json_t *wrong; /* a list of wrong genomes, each as small as was found: its last edit alone, or
                      what stands before that as well; without edits: the base itself is wrong */
} blame_result;

/* Both are new references in `out`; free with blame_clear. */
ev_status blame_find(const blame_request *request, blame_result *out, ev_error *err) EV_CHECKED;
void blame_clear(blame_result *r);

#endif
