/* Channel: JSON objects, one a line, over two file descriptors. Which objects they are is the
 * protocol's affair (tuner/worker/protocol.h). */
#ifndef TUNER_WORKER_CHANNEL_H
#define TUNER_WORKER_CHANNEL_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct channel {
    int in, out; /* borrowed */
    char *data;  /* read and not yet taken */
    size_t length, capacity, start;
} channel;

void channel_free(channel *c);
/* EV_INFRA: the other side is gone. The caller ignores SIGPIPE. */
ev_status channel_send(channel *c, const json_t *object, ev_error *err) EV_CHECKED;
/* Takes the next whole line that was read: a new reference; *out stays NULL where there is none.
 * EV_INFRA: the line is no JSON object. */
ev_status channel_next(channel *c, json_t **out, ev_error *err) EV_CHECKED;
/* One read(2), which waits for bytes; *closed at the end of the stream. */
ev_status channel_fill(channel *c, bool *closed, ev_error *err) EV_CHECKED;

#endif
