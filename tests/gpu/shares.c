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
    pid_t pid;     /* 0: none */
    int fd;        /* reads its answer */
    bool is_open;  /* a process runs or ran that has not been waited for */
    bool is_done;  /* the answer is the last word */
    ev_str answer; /* of the last try */
} worker;

#define AGAIN 'A' /* for 'a' in an answer: to be tried again */

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

/* The answer is the status as a letter, a capital one for another try, then the result or the
 * message. */
static _Noreturn void worker_main(const shares *s, unsigned share, int fd) {
    ev_str out = EV_STR_EMPTY;
    ev_error err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    bool again = false;
    ev_status status = s->work(s->context, share, &out, &again, &err);
    if (status == EV_OK)
        status = ev_str_status(&out, &err);
    char letter = (char)((again && status != EV_OK ? AGAIN : 'a') + (int)status);
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
        for (unsigned i = 0; i < s->count; i++) {
            if (all[i].is_open)
                (void)close(all[i].fd);
        }
        (void)close(ends[0]);
        worker_main(s, share, ends[1]);
    }
    (void)close(ends[1]);
    if (pid < 0) {
        (void)close(ends[0]);
        return ev_fail_errno(err, "cannot fork", "a process for a share of the work");
    }
    all[share].pid = pid;
    all[share].fd = ends[0];
    all[share].is_open = true;
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

/* The last answer: a failure, or the result, which is taken. */
static ev_status judge(const shares *s, const ev_str *answer, ev_error *err) {
    EV_TRY(ev_str_status(answer, err));
    const char *text = ev_str_text(answer);
    if (answer->length == 0)
        return ev_fail(err, EV_INFRA, "a process that did a share of the work died");
    if (text[0] != 'a' + EV_OK)
        return ev_fail(err, (ev_status)(text[0] - (text[0] < 'a' ? AGAIN : 'a')), "%s", text + 1);
    ev_str result = EV_STR_EMPTY;
    ev_str_append_n(&result, text + 1, answer->length - 1);
    ev_status status = ev_str_status(&result, err);
    if (status == EV_OK)
        status = s->take(s->context, &result, err);
    ev_str_free(&result);
    return status;
}

/* Waits for a share's process and keeps its answer. */
static void finish(worker *w) {
    ev_str_free(&w->answer);
    w->answer = (ev_str)EV_STR_EMPTY;
    read_to_end(w->fd, &w->answer);
    (void)close(w->fd);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    w->is_open = false;
    char letter = w->answer.length > 0 ? ev_str_text(&w->answer)[0] : 'a';
    w->is_done = letter < AGAIN || letter > AGAIN + EV_INFRA;
}

static ev_status run_here(const shares *s, ev_error *err) {
    ev_str out = EV_STR_EMPTY;
    bool again = false;
    ev_status status = s->work(s->context, 0, &out, &again, err);
    if (status == EV_OK)
        status = ev_str_status(&out, err);
    if (status == EV_OK)
        status = s->take(s->context, &out, err);
    ev_str_free(&out);
    return status;
}

static unsigned count_done(const worker *all, unsigned count) {
    unsigned done = 0;
    for (unsigned i = 0; i < count; i++)
        done += all[i].is_done;
    return done;
}

/* Each share that is not done, in groups of `at_once`. */
static ev_status run_round(const shares *s, worker *all, unsigned at_once, ev_error *err) {
    ev_status status = EV_OK;
    for (unsigned from = 0; from < s->count && status == EV_OK;) {
        unsigned first = from;
        for (unsigned begun = 0; from < s->count && begun < at_once && status == EV_OK; from++) {
            if (all[from].is_done)
                continue;
            status = start(s, all, from, err);
            begun++;
        }
        for (unsigned i = first; i < from; i++) {
            if (all[i].is_open)
                finish(&all[i]);
        }
    }
    return status;
}

static ev_status run_rounds(const shares *s, worker *all, ev_error *err) {
    unsigned done = 0;
    for (unsigned at_once = s->count; done < s->count;
         at_once = at_once > 1 ? (at_once + 1) / 2 : 1) {
        EV_TRY(run_round(s, all, at_once, err));
        unsigned now = count_done(all, s->count);
        if (at_once == 1 && now == done)
            break;
        done = now;
    }
    return EV_OK;
}

ev_status shares_run(const shares *s, ev_error *err) {
    if (s->count <= 1)
        return run_here(s, err);
    worker *all = calloc(s->count, sizeof *all);
    if (all == NULL)
        return ev_fail_memory(err, s->count * sizeof *all);
    ev_status status = run_rounds(s, all, err);
    for (unsigned i = 0; i < s->count; i++) {
        ev_error why = {0};
        ev_status one = all[i].pid > 0 ? judge(s, &all[i].answer, &why) : EV_OK;
        if (one != EV_OK && status == EV_OK) {
            status = one;
            *err = why;
        }
        ev_str_free(&all[i].answer);
    }
    free(all);
    return status;
}
