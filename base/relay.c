/* Relay: one child after another, until one has the result. */
#include "base/relay.h"

#include "base/child.h"

#include <stdint.h>
#include <string.h>

#define SECONDS 1e9 /* the work's own limits hold */
#define AGAIN 'a'
#define RESULT 'r'

static ev_status run_marked(const ev_relay *r, ev_str *out, ev_error *err) {
    ev_str baton = EV_STR_EMPTY;
    bool again = false;
    ev_status status = r->run(r->context, &baton, &again, err);
    ev_str_char(out, again ? AGAIN : RESULT);
    ev_str_append_n(out, ev_str_text(&baton), baton.length);
    if (status == EV_OK)
        status = ev_str_status(&baton, err);
    ev_str_free(&baton);
    return status;
}

static ev_status work(void *context, ev_str *out, ev_error *err) {
    return run_marked(context, out, err);
}

/* A child that dies is no finding about what it worked on. */
static ev_status run_child(const ev_relay *r, ev_str *out, ev_error *err) {
    const ev_child child = {.what = "a process that does the work of this command",
                            .work = work,
                            .context = (void *)(uintptr_t)r,
                            .seconds = SECONDS,
                            .death = EV_INFRA};
    return ev_child_run(&child, out, err);
}

static ev_status take(const ev_relay *r, const ev_str *out, bool *again, ev_error *err) {
    const char *text = ev_str_text(out);
    ev_str baton = EV_STR_EMPTY;
    *again = text[0] == AGAIN;
    ev_str_append_n(&baton, text + 1, out->length - 1);
    ev_status status = ev_str_status(&baton, err);
    if (status == EV_OK)
        status = r->take(r->context, &baton, *again, err);
    ev_str_free(&baton);
    return status;
}

static bool is_same(const ev_str *a, const ev_str *b) {
    return a->length == b->length && memcmp(ev_str_text(a), ev_str_text(b), a->length) == 0;
}

ev_status ev_relay_run(const ev_relay *r, ev_error *err) {
    ev_str last = EV_STR_EMPTY;
    ev_status status = EV_OK;
    for (bool again = true; again && status == EV_OK;) {
        ev_str out = EV_STR_EMPTY;
        status = r->apart ? run_child(r, &out, err) : run_marked(r, &out, err);
        if (status == EV_OK)
            status = take(r, &out, &again, err);
        if (status == EV_OK && again && (!r->apart || is_same(&out, &last)))
            status = ev_fail(err, EV_INFRA,
                             "the device fails in every process that opens it; no work was "
                             "done since the last failure");
        ev_str_free(&last);
        last = out;
    }
    ev_str_free(&last);
    return status;
}
