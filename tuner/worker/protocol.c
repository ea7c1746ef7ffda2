/* Protocol: the message table, and JSON lines over two file descriptors. */
#include "tuner/worker/protocol.h"

#include "base/json.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONGEST_LINE ((size_t)256 << 20) /* a longer one is noise, not a message */

static const char *const message_names[MESSAGE_COUNT] = {
#define MESSAGE(id, name, from, meaning) [MESSAGE_##id] = name,
#include "tuner/worker/messages.def"
#undef MESSAGE
};

static const char *const stage_names[STAGE_COUNT] = {
    [STAGE_IDLE] = "idle", [STAGE_OPEN] = "open",     [STAGE_DRAW] = "draw",
    [STAGE_EDIT] = "edit", [STAGE_VERIFY] = "verify", [STAGE_OPTIMISE] = "optimise",
    [STAGE_EMIT] = "emit", [STAGE_SCORE] = "score",   [STAGE_PROMOTE] = "promote",
};

const char *message_name(message_kind kind) {
    assert(kind < MESSAGE_COUNT);
    return message_names[kind];
}

message_kind message_kind_of(const json_t *message) {
    const char *name = ev_json_text(message, "type", "");
    unsigned kind = 0;
    while (kind < MESSAGE_COUNT && strcmp(message_names[kind], name) != 0)
        kind++;
    return (message_kind)kind;
}

json_t *message_new(message_kind kind) {
    return json_pack("{s:s}", "type", message_name(kind));
}

const char *stage_name(stage s) {
    assert(s < STAGE_COUNT);
    return stage_names[s];
}

bool stage_find(const char *name, stage *out) {
    for (unsigned s = 0; s < STAGE_COUNT; s++) {
        if (strcmp(stage_names[s], name) == 0) {
            *out = (stage)s;
            return true;
        }
    }
    return false;
}

static const char *const role_names[ROLE_COUNT] = {
    [ROLE_WHOLE] = "whole", [ROLE_SCREENER] = "screener", [ROLE_TIMER] = "timer"};

const char *worker_role_name(worker_role role) {
    assert(role < ROLE_COUNT);
    return role_names[role];
}

bool worker_role_find(const char *name, worker_role *out) {
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        if (strcmp(role_names[role], name) == 0) {
            *out = (worker_role)role;
            return true;
        }
    }
    return false;
}

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

ev_status channel_send(channel *c, json_t *message, ev_error *err) {
    /* Nothing hangs on the order of its keys. */
    size_t shape = JSON_COMPACT | JSON_REAL_PRECISION(17);
    char *text = message ? json_dumps(message, shape) : NULL;
    json_decref(message);
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
    json_t *message = json_loadb(line, (size_t)(end - line), 0, &error);
    *end = '\0';
    c->start += (size_t)(end - line) + 1;
    if (c->start == c->length)
        c->start = c->length = 0;
    if (!json_is_object(message)) {
        json_decref(message);
        return ev_fail(err, EV_INFRA, "what came is no message (%s): %.200s", error.text, line);
    }
    *out = message;
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

ev_status channel_receive(channel *c, json_t **out, ev_error *err) {
    json_t *message = NULL;
    bool closed = false;
    EV_TRY(channel_next(c, &message, err));
    while (!message && !closed) {
        EV_TRY(channel_fill(c, &closed, err));
        EV_TRY(channel_next(c, &message, err));
    }
    *out = message;
    return EV_OK;
}
