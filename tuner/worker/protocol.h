/* Protocol: what coordinator and worker say, and the channel it goes over: one JSON object a line
 * through two file descriptors. The rows are in tuner/worker/messages.def. */
#ifndef TUNER_WORKER_PROTOCOL_H
#define TUNER_WORKER_PROTOCOL_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define PROTOCOL_VERSION 9

typedef enum message_kind {
#define MESSAGE(id, name, from, meaning) MESSAGE_##id,
#include "tuner/worker/messages.def"
#undef MESSAGE
    MESSAGE_COUNT
} message_kind;

const char *message_name(message_kind kind);
/* MESSAGE_COUNT: no known "type". */
message_kind message_kind_of(const json_t *message);
/* {"type": NAME}; NULL: out of memory. */
json_t *message_new(message_kind kind);

/* What a worker does of an evaluation. Two processes on one GPU would be in each other's times, so
 * a GPU has one timer, and screeners keep that busy: they draw and build, put what they built
 * through gates 1 to 4 in the virtual machine, and pass on what is left. */
typedef enum worker_role {
    ROLE_WHOLE, /* all of it */
    ROLE_SCREENER,
    ROLE_TIMER,
    ROLE_COUNT
} worker_role;

const char *worker_role_name(worker_role role);
bool worker_role_find(const char *name, worker_role *out);

/* The stages of an evaluation in a worker, in their order; a fault in one counts at its gate. */
typedef enum stage {
    STAGE_IDLE,
    STAGE_OPEN, /* no candidate's affair: loading the task and its baseline */
    STAGE_DRAW,
    STAGE_EDIT,
    STAGE_VERIFY,
    STAGE_OPTIMISE,
    STAGE_EMIT,
    STAGE_SCORE,
    STAGE_PROMOTE,
    STAGE_COUNT
} stage;

const char *stage_name(stage s);
bool stage_find(const char *name, stage *out);

typedef struct channel {
    int in, out; /* borrowed */
    char *data;  /* what was read and not yet taken */
    size_t length, capacity, start;
} channel;

void channel_free(channel *c);
/* Sends and gives up the reference to `message` (NULL: out of memory). EV_INFRA: the other side is
 * gone. The caller sees to it that SIGPIPE is ignored. */
ev_status channel_send(channel *c, json_t *message, ev_error *err) EV_CHECKED;
/* Takes the next whole line that was read; *out stays NULL if there is none. EV_INFRA: what came is
 * no message. */
ev_status channel_next(channel *c, json_t **out, ev_error *err) EV_CHECKED;
/* One read(2), which waits for something to come; *closed at the end of the stream. */
ev_status channel_fill(channel *c, bool *closed, ev_error *err) EV_CHECKED;
/* Waits for a whole message; *out stays NULL at the end of the stream. */
ev_status channel_receive(channel *c, json_t **out, ev_error *err) EV_CHECKED;

#endif
