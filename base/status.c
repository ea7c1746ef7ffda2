/* Writes and forwards the messages that go with a status. */
#define BASE_STATUS_C
#include "base/status.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A hostile file's texts get into messages: a terminal must not obey them. */
static void make_printable(char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f)
            *text = '?';
    }
}

ev_status ev_fail(ev_error *err, ev_status status, const char *format, ...) {
    assert(status != EV_OK);
    if (err == NULL)
        return status;
    /* Through a buffer of its own: an argument may point into err->text. */
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    make_printable(text);
    memcpy(err->text, text, sizeof text);
    err->status = status;
    return status;
}

ev_status ev_fail_memory(ev_error *err, unsigned long long bytes) {
    return ev_fail(err, EV_INFRA, "out of memory (%llu bytes requested)", bytes);
}

ev_status ev_fail_errno(ev_error *err, const char *what, const char *path) {
    char reason[128];
    const char *words = strerror_r(errno, reason, sizeof reason);
    return ev_fail(err, EV_INFRA, "%s %s: %s", what, path, words);
}

ev_status ev_wrap(ev_error *err, ev_status status, const char *format, ...) {
    if (err == NULL)
        return status;
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof text)
        return status; /* a place longer than any message: the message itself is worth more */
    size_t used = (size_t)length;
    const char *parts[] = {": ", err->text};
    for (size_t i = 0; i < 2; i++) {
        size_t part = strnlen(parts[i], sizeof text - 1 - used); /* cut at the end of the room */
        memcpy(text + used, parts[i], part);
        used += part;
    }
    text[used] = '\0';
    make_printable(text);
    memcpy(err->text, text, used + 1);
    return status;
}

int ev_status_exit_code(ev_status status) {
    switch (status) {
    case EV_OK:
        return 0;
    case EV_BAD:
        return 2;
    case EV_INFRA:
        return 3;
    }
    return 3;
}
