/* Channel: JSON objects over two file descriptors, one object a line. The protocol
 * (tuner/worker/protocol.h) defines the objects. */
#ifndef TUNER_WORKER_CHANNEL_H
#define TUNER_WORKER_CHANNEL_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct channel {
    int in, out; /* borrowed */
    char *data;  /* bytes read and not yet taken */
    size_t length, capacity, start;
} channel;

void channel_free(channel *c);
/* Sends an object. EV_INFRA: the other side has closed the connection. The caller must ignore
 * SIGPIPE. */
ev_status channel_send(channel *c, const json_t *object, ev_error *err) EV_CHECKED;
/* Takes the next complete line that was read. *out: a new reference, or NULL if there is no
 * complete line. EV_INFRA: the line is no JSON object. */
ev_status channel_next(channel *c, json_t **out, ev_error *err) EV_CHECKED;
/* Calls read(2) once, and blocks until there are bytes. *closed: the stream has ended. */
ev_status channel_fill(channel *c, bool *closed, ev_error *err) EV_CHECKED;

#endif
