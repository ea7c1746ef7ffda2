/* Commands: what --worker-command asks for, one shell command a worker. */
#ifndef TUNER_WORKER_COMMANDS_H
#define TUNER_WORKER_COMMANDS_H

#include "base/status.h"

#include <stddef.h>

typedef struct commands {
    const char **each; /* [count], a worker each; they borrow from the texts */
    size_t count;
} commands;

/* Each text is "CMD" or "N:CMD", N workers from 1. EV_BAD: a count or command that is none, or more
 * than `most` workers in all. No texts: none. */
ev_status commands_parse(const char *const *texts, size_t text_count, size_t most, commands *out,
                         ev_error *err) EV_CHECKED;
void commands_free(commands *c);

#endif
