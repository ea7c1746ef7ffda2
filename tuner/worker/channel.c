/* Channel: reads and writes JSON objects, one a line. */
#include "tuner/worker/channel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_LINE ((size_t)256 << 20) /* a longer one is noise, not a message */

void channel_free(channel *c) {
    free(c->data);
    *c = (channel){.in = -1, .out = -1};
}

static ev_status write_all(int fd, const char *data, size_t bytes, ev_error *err) {
    while (bytes > 0) {
        ssize_t put = write(fd, data, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return ev_fail_errno(err, "cannot write to", "the other side's pipe");
        data += put;
        bytes -= (size_t)put;
    }
    return EV_OK;
}

ev_status channel_send(channel *c, const json_t *object, ev_error *err) {
    /* The order of keys does not matter. */
    char *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17));
    if (!text)
        return ev_fail_memory(err, 0);
    /* The NUL becomes the newline, so that one write carries the whole line. */
    size_t length = strlen(text);
    text[length] = '\n';
    ev_status status = write_all(c->out, text, length + 1, err);
    free(text);
    return status;
}

ev_status channel_next(channel *c, json_t **out, ev_error *err) {
    if (c->length == c->start)
        return EV_OK;
    char *line = c->data + c->start;
    char *end = memchr(line, '\n', c->length - c->start);
    if (!end)
        return EV_OK;
    json_error_t error;
    json_t *object = json_loadb(line, (size_t)(end - line), 0, &error);
    *end = '\0';
    c->start += (size_t)(end - line) + 1;
    if (c->start == c->length)
        c->start = c->length = 0;
    if (!json_is_object(object)) {
        json_decref(object);
        return ev_fail(err, EV_INFRA, "what came is no message (%s): %.200s", error.text, line);
    }
    *out = object;
    return EV_OK;
}

static ev_status make_room(channel *c, ev_error *err) {
    if (c->start > 0) {
        memmove(c->data, c->data + c->start, c->length - c->start);
        c->length -= c->start;
        c->start = 0;
    }
    if (c->capacity - c->length >= 4096)
        return EV_OK;
    size_t capacity = c->capacity < 16384 ? 16384 : 2 * c->capacity;
    if (capacity > LONGEST_LINE)
        return ev_fail(err, EV_INFRA, "a line of more than %zu bytes is no message", LONGEST_LINE);
    char *data = realloc(c->data, capacity);
    if (!data)
        return ev_fail_memory(err, capacity);
    c->data = data;
    c->capacity = capacity;
    return EV_OK;
}

ev_status channel_fill(channel *c, bool *closed, ev_error *err) {
    EV_TRY(make_room(c, err));
    ssize_t got = 0;
    do
        got = read(c->in, c->data + c->length, c->capacity - c->length);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return ev_fail_errno(err, "cannot read from", "the other side's pipe");
    c->length += (size_t)got;
    *closed = got == 0;
    return EV_OK;
}
