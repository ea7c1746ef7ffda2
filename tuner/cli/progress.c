/* Draws the progress of a run. */
#include "tuner/cli/progress.h"

#include "base/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST_BAR 8 /* cells; a narrower terminal gets none */
#define MOST_BAR 32
#define CLEAR "\r\033[K"

progress_view progress_view_stderr(const char *time_kind, double task_seconds) {
    struct winsize size;
    progress_view view = {.fd = STDERR_FILENO,
                          .terminal = isatty(STDERR_FILENO) != 0,
                          .width = 80,
                          .time_kind = time_kind,
                          .task_seconds = task_seconds,
                          .line_seconds = 5};
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        view.width = size.ws_col;
    return view;
}

double progress_done(const tune_progress *now, double task_seconds, double task_begin) {
    double part = 0;
    if (now->budget > 0)
        part = (double)now->evaluations / (double)now->budget;
    if (task_seconds > 0)
        part = fmax(part, (now->seconds - task_begin) / task_seconds);
    double count = now->task_count > 0 ? (double)now->task_count : 1;
    return ((double)now->task_index + fmin(part, 1)) / count;
}

/* "1.23x modelled", or "" before there is a best. */
static void print_gain(const tune_progress *now, const progress_view *view, ev_str *out) {
    if (now->baseline_ns > 0 && now->best_ns > 0)
        ev_str_printf(out, "%.2fx %s", now->baseline_ns / now->best_ns, view->time_kind);
}

/* "1:02" or "1:02:03" */
static void print_clock(double seconds, ev_str *out) {
    long all = lround(fmin(fmax(seconds, 0), 359999));
    if (all >= 3600)
        ev_str_printf(out, "%ld:%02ld:%02ld", all / 3600, all / 60 % 60, all % 60);
    else
        ev_str_printf(out, "%ld:%02ld", all / 60, all % 60);
}

static void print_evaluations(const tune_progress *now, ev_str *out) {
    ev_str_printf(out, "%" PRIu64, now->evaluations);
    if (now->budget > 0)
        ev_str_printf(out, "/%" PRIu64, now->budget);
}

static void print_cells(double done, size_t cells, ev_str *out) {
    size_t full = (size_t)(done * (double)cells);
    ev_str_append(out, " [");
    for (size_t i = 0; i < cells; i++)
        ev_str_char(out, i < full ? '#' : '.');
    ev_str_append(out, "]");
}

void progress_bar(const tune_progress *now, double done, double eta_seconds,
                  const progress_view *view, ev_str *out) {
    ev_str right = EV_STR_EMPTY;
    ev_str_printf(&right, " %3.0f%%  ", floor(done * 100));
    print_evaluations(now, &right);
    ev_str_append(&right, "  ");
    print_gain(now, view, &right);
    ev_str_append(&right, "  ETA ");
    if (eta_seconds >= 0)
        print_clock(eta_seconds, &right);
    else
        ev_str_append(&right, "-");
    size_t begin = out->length;
    ev_str_printf(out, "[%zu/%zu] %s", now->task_index + 1, now->task_count, now->kernel);
    size_t used = out->length - begin + right.length + strlen(" []");
    if (used + LEAST_BAR < view->width) {
        size_t room = view->width - 1 - used;
        print_cells(done, room < MOST_BAR ? room : MOST_BAR, out);
    }
    ev_str_append(out, ev_str_text(&right));
    ev_str_free(&right);
    /* The last column stays free: some terminals break the line when it is filled. */
    if (view->width > 1 && out->length - begin > view->width - 1) {
        out->length = begin + view->width - 1;
        out->data[out->length] = '\0';
    }
}

void progress_line(const tune_progress *now, const progress_view *view, ev_str *out) {
    uint64_t rejected = 0;
    for (size_t i = GATE_SEEN + 1; i < GATE_COUNT; i++)
        rejected += now->rejected[i];
    ev_str_printf(out, "[%zu/%zu] %s: ", now->task_index + 1, now->task_count, now->kernel);
    print_evaluations(now, out);
    ev_str_printf(out, " evaluations, %.0f s, %" PRIu64 " duplicates, %" PRIu64 " rejected",
                  now->seconds, now->duplicates, rejected);
    if (now->failed_workers > 0)
        ev_str_printf(out, ", %" PRIu64 " workers restarted", now->failed_workers);
    if (now->best_ns > 0 && now->baseline_ns > 0) {
        char best[24];
        table_time(now->best_ns, best);
        ev_str_printf(out, "; best %s %s, ", best, view->time_kind);
        ev_str_printf(out, "%.2fx, error %.2g", now->baseline_ns / now->best_ns, now->best_error);
    }
}

/* "[1/4] kernel: note" */
static void print_note(const tune_progress *now, ev_str *out) {
    if (now->note != NULL)
        ev_str_printf(out, "[%zu/%zu] %s: %s\n", now->task_index + 1, now->task_count, now->kernel,
                      now->note);
}

/* One write a line: lines of several processes do not mix. Nothing can be done when it fails. */
static void put(const progress *p, const ev_str *text) {
    ssize_t done = write(p->view.fd, ev_str_text(text), text->length);
    (void)done;
}

static void show_bar(progress *p, const tune_progress *now) {
    double done = progress_done(now, p->view.task_seconds, p->task_begin);
    double eta = done > 0.005 ? now->seconds * (1 - done) / done : -1;
    ev_str text = EV_STR_EMPTY;
    ev_str_append(&text, CLEAR);
    print_note(now, &text);
    progress_bar(now, done, eta, &p->view, &text);
    put(p, &text);
    ev_str_free(&text);
    p->drawn = true;
}

static void show_line(progress *p, const tune_progress *now, bool new_task) {
    bool due = new_task || now->seconds - p->last_line >= p->view.line_seconds;
    ev_str text = EV_STR_EMPTY;
    print_note(now, &text);
    if (due) {
        progress_line(now, &p->view, &text);
        ev_str_char(&text, '\n');
        p->last_line = now->seconds;
    }
    if (text.length > 0)
        put(p, &text);
    ev_str_free(&text);
}

void progress_show(void *context, const tune_progress *now) {
    progress *p = context;
    bool new_task = !p->begun || now->task_index != p->task;
    if (new_task) {
        p->begun = true;
        p->task = now->task_index;
        p->task_begin = now->seconds;
    }
    if (p->view.terminal)
        show_bar(p, now);
    else
        show_line(p, now, new_task);
}

void progress_end(progress *p) {
    if (!p->drawn)
        return;
    ev_str text = EV_STR_EMPTY;
    ev_str_append(&text, CLEAR);
    put(p, &text);
    ev_str_free(&text);
    p->drawn = false;
}
