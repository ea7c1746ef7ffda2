/* A forked child and the pipe it answers over: status, message, text. */
#include "tuner/isolate.h"

#include "base/proc.h"
#include "ir/ir.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Where the child's last word goes when LLVM gives up: its handler takes no context. */
static int answer_fd = -1;

typedef struct answer_head {
    uint32_t status;
    uint32_t message_bytes;
} answer_head;

static bool write_all(int fd, const void *data, size_t bytes) {
    const char *at = data;
    while (bytes > 0) {
        ssize_t put = write(fd, at, bytes);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += put;
        bytes -= (size_t)put;
    }
    return true;
}

static bool answer(ev_status status, const char *message, const ev_str *text) {
    answer_head head = {(uint32_t)status, (uint32_t)strlen(message)};
    return write_all(answer_fd, &head, sizeof head) &&
           write_all(answer_fd, message, head.message_bytes) &&
           (text == NULL || write_all(answer_fd, ev_str_text(text), text->length));
}

static void on_fatal(const char *reason) {
    ev_error err = {0};
    (void)ev_fail(&err, EV_BAD, "LLVM gave up: %.400s", reason);
    (void)answer(EV_BAD, err.text, NULL);
    _exit(1);
}

static _Noreturn void child_main(isolate_work *work, void *context, int fd) {
    answer_fd = fd;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    ir_set_fatal_handler(on_fatal);
    ev_str out = EV_STR_EMPTY;
    ev_error err = {0};
    ev_status status = work(context, &out, &err);
    if (status == EV_OK)
        status = ev_str_status(&out, &err);
    _exit(answer(status, status == EV_OK ? "" : err.text, &out) ? 0 : 1);
}

/* Reads to the end of the pipe; a child that is not done by then is killed. A limit on its CPU time
 * would be simpler, but Linux keeps a process's CPU clock coarsely while it has one, and the
 * benches read that clock. */
static ev_status read_answer(int fd, pid_t pid, double seconds, ev_str *all, ev_error *err) {
    char buffer[65536];
    double deadline = ev_clock_now() + seconds;
    for (;;) {
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        double left = deadline - ev_clock_now();
        int ready = poll(&watched, 1, left > 0 ? (int)(fmin(left, 1e5) * 1000) + 1 : 0);
        if (ready == 0 && left <= 0) {
            (void)kill(pid, SIGKILL);
            return ev_fail(err, EV_BAD, "building took longer than %.0f s: it hangs", seconds);
        }
        ssize_t got = ready > 0 ? read(fd, buffer, sizeof buffer) : -1;
        if (ready == 0)
            continue;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return ev_fail_errno(err, "cannot read from", "a child process");
        if (got == 0)
            return ev_str_status(all, err);
        ev_str_append_n(all, buffer, (size_t)got);
    }
}

static ev_status fail_death(int ended, ev_error *err) {
    if (WIFSIGNALED(ended))
        return ev_fail(err, EV_BAD, "building died of signal %d (%s)", WTERMSIG(ended),
                       strsignal(WTERMSIG(ended)));
    return ev_fail(err, EV_BAD, "building ended without an answer");
}

static ev_status take_answer(const ev_str *all, int ended, ev_str *out, ev_error *err) {
    answer_head head;
    if (all->length < sizeof head)
        return fail_death(ended, err);
    memcpy(&head, all->data, sizeof head);
    const char *message = all->data + sizeof head;
    size_t left = all->length - sizeof head;
    if (left < head.message_bytes)
        return fail_death(ended, err);
    if (head.status != EV_OK)
        return ev_fail(err, (ev_status)head.status, "%.*s", (int)head.message_bytes, message);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        return fail_death(ended, err);
    ev_str_append_n(out, message + head.message_bytes, left - head.message_bytes);
    return ev_str_status(out, err);
}

ev_status isolate_run(isolate_work *work, void *context, double seconds, ev_str *out,
                      ev_error *err) {
    int ends[2];
    if (pipe(ends) != 0)
        return ev_fail_errno(err, "cannot make a pipe for", "a child process");
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        child_main(work, context, ends[1]);
    }
    int code = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        errno = code;
        return ev_fail_errno(err, "cannot fork", "a child process");
    }
    ev_str all = EV_STR_EMPTY;
    ev_status status = read_answer(ends[0], pid, seconds, &all, err);
    (void)close(ends[0]);
    int ended = 0;
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        continue;
    if (status == EV_OK)
        status = take_answer(&all, ended, out, err);
    ev_str_free(&all);
    return status;
}
