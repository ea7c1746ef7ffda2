/* Commands: the texts of --worker-command, expanded to one shell command for each worker. */
#ifndef TUNER_WORKER_COMMANDS_H
#define TUNER_WORKER_COMMANDS_H

#include "base/status.h"

#include <stddef.h>

typedef struct commands {
    const char **each; /* [count]: the command of each worker, borrowed from the texts */
    size_t count;
} commands;

/* Expands the texts. Each is "CMD", or "N:CMD" for N workers, N at least 1. EV_BAD: a malformed
 * count, an empty command, or more than `most` workers in all. Without texts the list is empty. */
ev_status commands_parse(const char *const *texts, size_t text_count, size_t most, commands *out,
                         ev_error *err) EV_CHECKED;
void commands_free(commands *c);

#endif
