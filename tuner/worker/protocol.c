/* Protocol: words of roles and stages, and messages over a channel. */
#include "tuner/worker/protocol.h"

#include <assert.h>
#include <string.h>
#include <unistd.h>

static const char *const stage_names[STAGE_COUNT] = {
    [STAGE_IDLE] = "idle", [STAGE_OPEN] = "open",     [STAGE_DRAW] = "draw",
    [STAGE_EDIT] = "edit", [STAGE_VERIFY] = "verify", [STAGE_OPTIMISE] = "optimise",
    [STAGE_EMIT] = "emit", [STAGE_SCORE] = "score",   [STAGE_PROMOTE] = "promote",
};

const char *stage_name(stage s) {
    assert(s < STAGE_COUNT);
    return stage_names[s];
}

static const char *const role_names[ROLE_COUNT] = {
    [ROLE_WHOLE] = "whole", [ROLE_SCREENER] = "screener", [ROLE_TIMER] = "timer"};

const char *worker_role_name(worker_role role) {
    assert(role < ROLE_COUNT);
    return role_names[role];
}

ev_status message_send(channel *c, const message *m, ev_error *err) {
    json_t *object = NULL;
    EV_TRY(message_encode(m, &object, err));
    ev_status status = channel_send(c, object, err);
    json_decref(object);
    return status;
}

ev_status message_next(channel *c, message *out, bool *got, ev_error *err) {
    json_t *object = NULL;
    *got = false;
    EV_TRY(channel_next(c, &object, err));
    if (object)
        EV_TRY(message_decode(object, out, err));
    *got = object != NULL;
    return EV_OK;
}

ev_status message_receive(channel *c, message *out, bool *got, ev_error *err) {
    bool closed = false;
    EV_TRY(message_next(c, out, got, err));
    while (!*got && !closed) {
        EV_TRY(channel_fill(c, &closed, err));
        EV_TRY(message_next(c, out, got, err));
    }
    return EV_OK;
}

/* ---- the last word ---- */

static void write_text(int fd, const char *text) {
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t put = write(fd, text, left);
        if (put <= 0)
            return;
        text += put;
        left -= (size_t)put;
    }
}

void message_write_fatal(int fd, stage at, const char *reason) {
    write_text(fd, "{\"type\":\"fatal\",\"stage\":\"");
    write_text(fd, stage_names[at]);
    write_text(fd, "\",\"reason\":\"");
    write_text(fd, reason);
    write_text(fd, "\"}\n");
}
