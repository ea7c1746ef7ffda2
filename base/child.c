/* A forked child and the pipe it answers over: status, message, text. And long messages. */
#include "base/child.h"

#include "base/proc.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- long messages: the last one is kept beside its first lines, by which an error is known ----
 */

#define PLACES_ROOM 400 /* bytes of an ev_error that are left for the places in front */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *kept_whole, *kept_first; /* what err->text has of it; both NULL: nothing is kept */

static void keep(const char *whole, const char *first) {
    char *own_whole = strdup(whole), *own_first = strdup(first);
    if (own_whole == NULL || own_first == NULL) { /* the first lines must do */
        free(own_whole);
        free(own_first);
        own_whole = own_first = NULL;
    }
    (void)pthread_mutex_lock(&lock);
    free(kept_whole);
    free(kept_first);
    kept_whole = own_whole;
    kept_first = own_first;
    (void)pthread_mutex_unlock(&lock);
}

ev_status ev_fail_long(ev_error *err, ev_status status, const char *message) {
    size_t fits = sizeof err->text - PLACES_ROOM, length = strlen(message), end = fits;
    if (err == NULL || length < fits)
        return ev_fail(err, status, "%s", message);
    while (end > 0 && message[end - 1] != '\n')
        end--;
    if (end == 0)
        end = fits;
    (void)ev_fail(err, status, "%.*s... (%zu more bytes)", (int)end, message, length - end);
    keep(message, err->text);
    return status;
}

/* A hostile file's texts get into messages: a terminal must not obey them. */
static void append_printable(ev_str *out, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;
        ev_str_char(out, (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : *text);
    }
}

void ev_error_whole(const ev_error *err, ev_str *out) {
    (void)pthread_mutex_lock(&lock);
    const char *first = kept_first != NULL ? strstr(err->text, kept_first) : NULL;
    if (first == NULL) {
        ev_str_append(out, err->text);
    } else {
        ev_str_append_n(out, err->text, (size_t)(first - err->text));
        append_printable(out, kept_whole);
        ev_str_append(out, first + strlen(kept_first));
    }
    (void)pthread_mutex_unlock(&lock);
}

/* ---- children ---- */

/* Where the child's last word goes, which a handler without a context may say. */
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

_Noreturn void ev_child_leave(const char *why) {
    (void)answer(EV_BAD, why, NULL);
    _exit(1);
}

static _Noreturn void child_main(ev_child_work *work, void *context, int fd) {
    answer_fd = fd;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    ev_str out = EV_STR_EMPTY;
    ev_error err = {0};
    ev_status status = work(context, &out, &err);
    if (status == EV_OK)
        status = ev_str_status(&out, &err);
    ev_str message = EV_STR_EMPTY;
    if (status != EV_OK)
        ev_error_whole(&err, &message);
    _exit(answer(status, ev_str_text(&message), &out) ? 0 : 1);
}

/* Reads to the end of the pipe; a child that is not done by then is killed. A limit on its CPU time
 * would be simpler, but Linux keeps a process's CPU clock coarsely while it has one, and the
 * benches read that clock. */
static ev_status read_answer(int fd, pid_t pid, const ev_child *c, ev_str *all, ev_error *err) {
    char buffer[65536];
    double deadline = ev_clock_now() + c->seconds;
    for (;;) {
        struct pollfd watched = {.fd = fd, .events = POLLIN};
        double left = deadline - ev_clock_now();
        int ready = poll(&watched, 1, left > 0 ? (int)(fmin(left, 1e5) * 1000) + 1 : 0);
        if (ready == 0 && left <= 0) {
            (void)kill(pid, SIGKILL);
            return ev_fail(err, c->death, "%s took longer than %.0f s: it hangs", c->what,
                           c->seconds);
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

static ev_status fail_death(const ev_child *c, int ended, ev_error *err) {
    if (WIFSIGNALED(ended))
        return ev_fail(err, ev_signal_is_sent(WTERMSIG(ended)) ? EV_INFRA : c->death,
                       "%s died of signal %d (%s)", c->what, WTERMSIG(ended),
                       strsignal(WTERMSIG(ended)));
    return ev_fail(err, c->death, "%s ended without an answer", c->what);
}

static ev_status take_failure(const answer_head *head, const char *message, ev_error *err) {
    char *text = strndup(message, head->message_bytes);
    if (text == NULL)
        return ev_fail_memory(err, head->message_bytes);
    ev_status status = ev_fail_long(err, (ev_status)head->status, text);
    free(text);
    return status;
}

static ev_status take_answer(const ev_child *c, const ev_str *all, int ended, ev_str *out,
                             ev_error *err) {
    answer_head head;
    if (all->length < sizeof head)
        return fail_death(c, ended, err);
    memcpy(&head, all->data, sizeof head);
    const char *message = all->data + sizeof head;
    size_t left = all->length - sizeof head;
    if (left < head.message_bytes)
        return fail_death(c, ended, err);
    if (head.status != EV_OK)
        return take_failure(&head, message, err);
    if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0)
        return fail_death(c, ended, err);
    ev_str_append_n(out, message + head.message_bytes, left - head.message_bytes);
    return ev_str_status(out, err);
}

ev_status ev_child_run(const ev_child *c, ev_str *out, ev_error *err) {
    int ends[2];
    if (pipe(ends) != 0)
        return ev_fail_errno(err, "cannot make a pipe for", "a child process");
    pid_t pid = fork();
    if (pid == 0) {
        (void)close(ends[0]);
        child_main(c->work, c->context, ends[1]);
    }
    int code = errno;
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        errno = code;
        return ev_fail_errno(err, "cannot fork", "a child process");
    }
    ev_str all = EV_STR_EMPTY;
    ev_status status = read_answer(ends[0], pid, c, &all, err);
    (void)close(ends[0]);
    int ended = 0;
    while (waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        continue;
    if (status == EV_OK)
        status = take_answer(c, &all, ended, out, err);
    ev_str_free(&all);
    return status;
}
