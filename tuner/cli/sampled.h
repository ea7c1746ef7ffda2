/* Sampled: random candidates of a task, as searches make them, for tests and benches without a
 * search. A group has one start at one setting of its macros. One group in four edits optimised
 * code, as `gevo` does. A candidate depends only on the task, the target, the seed, the group and
 * its place there. */
#ifndef TUNER_CLI_SAMPLED_H
#define TUNER_CLI_SAMPLED_H

#include "base/status.h"
#include "kernels/task.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLED_GROUP 10

typedef struct sampled {
    const char *start;
    uint32_t threads; /* a block, at the task's first timed case; 0: not known */
    const char *ptx;  /* NUL-terminated */
    size_t bytes;
    bool is_sketch; /* PTX of the direct emitter; the same candidate's PTX by LLVM comes next */
} sampled;

typedef ev_status sampled_fn(void *context, const sampled *s, ev_error *err);

/* Calls `fn` for each PTX of the group's candidates: SAMPLED_GROUP candidates, or fewer if the
 * start has too few places for edits. A child process builds them. EV_INFRA: fork failed; else as
 * `fn`. */
ev_status sampled_each(const task *t, int sm, uint64_t seed, size_t group, sampled_fn *fn,
                       void *context, ev_error *err) EV_CHECKED;

#endif
