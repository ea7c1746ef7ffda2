/* Sampled: random candidates of a task as searches make them, for tests and benches that want many
 * unlike ones and no search. They come in groups of one start and setting of its macros; one group
 * in four is of optimised code, as `gevo` edits it. A candidate depends on the task, the target,
 * the seed, the group and its place there alone. */
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
    const char *ptx; /* NUL-terminated */
    size_t bytes;
    bool is_sketch; /* of the direct emitter; the same candidate's by LLVM comes next */
} sampled;

typedef ev_status sampled_fn(void *context, const sampled *s, ev_error *err);

/* Calls `fn` for what the candidates of the group become, SAMPLED_GROUP of them unless the start
 * has too few places for edits. They are built in a child process. EV_INFRA: no child could be
 * made; else as `fn`. */
ev_status sampled_each(const task *t, int sm, uint64_t seed, size_t group, sampled_fn *fn,
                       void *context, ev_error *err) EV_CHECKED;

#endif
