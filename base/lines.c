/* A file of JSON lines, written past any buffer. */
#include "base/lines.h"

#include "base/json.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ev_lines {
    int fd;
    char *path;
};

ev_status ev_lines_open(const char *path, ev_lines **out, ev_error *err) {
    *out = NULL;
    if (path == NULL)
        return EV_OK;
    ev_lines *lines = calloc(1, sizeof *lines);
    char *name = strdup(path);
    if (lines == NULL || name == NULL) {
        free(lines);
        free(name);
        return ev_fail_memory(err, strlen(path));
    }
    *lines =
        (ev_lines){open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666), name};
    if (lines->fd < 0) {
        char reason[128];
        ev_status status = ev_fail(err, EV_BAD, "cannot write %s: %s", path,
                                   strerror_r(errno, reason, sizeof reason));
        ev_lines_close(lines);
        return status;
    }
    *out = lines;
    return EV_OK;
}

static ev_status write_line(const ev_lines *lines, const char *text, size_t bytes, ev_error *err) {
    while (bytes > 0) {
        ssize_t put = write(lines->fd, text, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return ev_fail_errno(err, "cannot write to", lines->path);
        text += put;
        bytes -= (size_t)put;
    }
    return EV_OK;
}

ev_status ev_lines_add(ev_lines *lines, const json_t *row, ev_error *err) {
    if (lines == NULL)
        return EV_OK;
    char *text = ev_json_print(row, true);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    size_t length = strlen(text);
    text[length] = '\n'; /* in the place of the NUL */
    ev_status status = write_line(lines, text, length + 1, err);
    free(text);
    return status;
}

void ev_lines_close(ev_lines *lines) {
    if (lines == NULL)
        return;
    if (lines->fd >= 0)
        (void)close(lines->fd);
    free(lines->path);
    free(lines);
}
