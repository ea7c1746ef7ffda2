/* Forks a process for each share and takes their results over pipes. */
#include "tests/gpu/shares.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct worker {
    pid_t pid; /* 0: none */
    int fd;    /* reads its answer */
} worker;

static bool write_all(int fd, const char *data, size_t bytes) {
    while (bytes > 0) {
        ssize_t put = write(fd, data, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        data += put;
        bytes -= (size_t)put;
    }
    return true;
}

/* The answer is the status as a letter, then the result or the message. */
static _Noreturn void worker_main(const shares *s, unsigned share, int fd) {
    ev_str out = EV_STR_EMPTY;
    ev_error err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    ev_status status = s->work(s->context, share, &out, &err);
    if (status == EV_OK)
        status = ev_str_status(&out, &err);
    char letter = (char)('a' + (int)status);
    const char *text = status == EV_OK ? ev_str_text(&out) : err.text;
    bool written = write_all(fd, &letter, 1) && write_all(fd, text, strlen(text));
    _exit(written ? 0 : 1);
}

static ev_status start(const shares *s, worker *all, unsigned share, ev_error *err) {
    int ends[2];
    if (pipe(ends) != 0)
        return ev_fail_errno(err, "cannot make", "a pipe");
    pid_t pid = fork();
    if (pid == 0) {
        for (unsigned i = 0; i < share; i++)
            (void)close(all[i].fd);
        (void)close(ends[0]);
        worker_main(s, share, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return ev_fail_errno(err, "cannot fork", "a process for a share of the work");
    }
    all[share] = (worker){.pid = pid, .fd = ends[0]};
    return EV_OK;
}

static void read_to_end(int fd, ev_str *out) {
    char buffer[65536];
    for (;;) {
        ssize_t got = read(fd, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return;
        ev_str_append_n(out, buffer, (size_t)got);
    }
}

static ev_status judge(const shares *s, const ev_str *answer, ev_error *err) {
    const char *text = ev_str_text(answer);
    if (answer->length == 0)
        return ev_fail(err, EV_INFRA, "a process that did a share of the work died");
    if (text[0] != 'a' + EV_OK)
        return ev_fail(err, (ev_status)(text[0] - 'a'), "%s", text + 1);
    ev_str result = EV_STR_EMPTY;
    ev_str_append_n(&result, text + 1, answer->length - 1);
    ev_status status = ev_str_status(&result, err);
    if (status == EV_OK)
        status = s->take(s->context, &result, err);
    ev_str_free(&result);
    return status;
}

static ev_status finish(const shares *s, const worker *w, ev_error *err) {
    ev_str answer = EV_STR_EMPTY;
    read_to_end(w->fd, &answer);
    (void)close(w->fd);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    ev_status status = ev_str_status(&answer, err);
    if (status == EV_OK)
        status = judge(s, &answer, err);
    ev_str_free(&answer);
    return status;
}

static ev_status run_here(const shares *s, ev_error *err) {
    ev_str out = EV_STR_EMPTY;
    ev_status status = s->work(s->context, 0, &out, err);
    if (status == EV_OK)
        status = ev_str_status(&out, err);
    if (status == EV_OK)
        status = s->take(s->context, &out, err);
    ev_str_free(&out);
    return status;
}

ev_status shares_run(const shares *s, ev_error *err) {
    if (s->count <= 1)
        return run_here(s, err);
    worker *all = calloc(s->count, sizeof *all);
    if (all == NULL)
        return ev_fail_memory(err, s->count * sizeof *all);
    ev_status status = EV_OK;
    unsigned started = 0;
    for (; started < s->count && status == EV_OK; started += status == EV_OK)
        status = start(s, all, started, err);
    for (unsigned i = 0; i < started; i++) {
        ev_error why = {0};
        ev_status one = finish(s, &all[i], &why);
        if (one != EV_OK && status == EV_OK) {
            status = one;
            *err = why;
        }
    }
    free(all);
    return status;
}
