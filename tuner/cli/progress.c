/* Draws the progress of a run.
 *
 * The status line of a kernel is drawn over itself until the next kernel begins, and then stays
 * with the counts that it ended with. Nothing of the terminal is changed but this line, so that a
 * signal or a failure leaves nothing to put right. */
#include "tuner/cli/progress.h"

#include "base/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define LEAST_BAR 8 /* cells; a narrower terminal gets none */
#define MOST_BAR 32
#define WIDE 110 /* columns from which on the line tells more of the best */
#define CLEAR "\r\033[K"

static void ask_width(progress_view *view) {
    struct winsize size;
    if (view->terminal && ioctl(view->fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        view->width = size.ws_col;
}

progress_view progress_view_stderr(const char *time_kind, double task_seconds) {
    const char *term = getenv("TERM"), *plain = getenv("NO_COLOR");
    bool redraws = isatty(STDERR_FILENO) != 0 && (term == NULL || strcmp(term, "dumb") != 0);
    progress_view view = {.fd = STDERR_FILENO,
                          .terminal = redraws,
                          .colours = redraws && (plain == NULL || plain[0] == '\0'),
                          .width = 80,
                          .time_kind = time_kind,
                          .task_seconds = task_seconds,
                          .line_seconds = 5};
    ask_width(&view);
    return view;
}

progress_pace progress_pace_of(const tune_progress *now, double task_seconds, double task_begin) {
    progress_pace pace = {.seconds = fmax(now->seconds - task_begin, 0), .left_seconds = -1};
    double left = INFINITY;
    if (pace.seconds >= 0.5)
        pace.rate = (double)now->evaluations / pace.seconds;
    if (now->budget > 0) {
        pace.done = (double)now->evaluations / (double)now->budget;
        if (pace.rate > 0)
            left = (double)(now->budget - now->evaluations) / pace.rate;
    }
    if (task_seconds > 0) {
        pace.done = fmin(fmax(pace.done, pace.seconds / task_seconds), 1);
        left = fmin(left, fmax(task_seconds - pace.seconds, 0));
    }
    if (isfinite(left))
        pace.left_seconds = left;
    return pace;
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

/* ---- the status line ---- */

/* A part of a status line; colours take no room. */
typedef struct bar_part {
    ev_str text;
    const char *colour; /* SGR; NULL: none */
} bar_part;

/* Behind the bar: evaluations, rate, the best, and what is left. A wide line has more of the best.
 */
static void print_parts(const tune_progress *now, const progress_pace *pace,
                        const progress_view *view, bar_part parts[3]) {
    ev_str_append(&parts[0].text, "  ");
    print_evaluations(now, &parts[0].text);
    if (pace->rate > 0)
        ev_str_printf(&parts[0].text, pace->rate < 10 ? "  %.1f/s" : "  %.0f/s", pace->rate);
    ev_str_append(&parts[1].text, "  ");
    if (now->best_ns > 0 && now->baseline_ns > 0 && view->width >= WIDE) {
        char best[24];
        table_time(now->best_ns, best);
        ev_str_printf(&parts[1].text, "best %s, ", best);
    }
    print_gain(now, view, &parts[1].text);
    if (now->best_ns <= 0 || now->baseline_ns <= 0)
        ev_str_append(&parts[1].text, "no best yet");
    else if (view->width >= WIDE)
        ev_str_printf(&parts[1].text, ", error %.2g", now->best_error);
    parts[1].colour = now->best_ns > 0 ? "1;32" : NULL;
    ev_str_append(&parts[2].text, "  ");
    if (pace->is_over || pace->left_seconds >= 0)
        print_clock(pace->is_over ? pace->seconds : pace->left_seconds, &parts[2].text);
    else
        ev_str_append(&parts[2].text, "-:--");
    ev_str_append(&parts[2].text, pace->is_over ? " taken" : " left");
}

/* The part cut to the room, never within a character of several bytes. */
static void put_part(const bar_part *part, bool colours, size_t *room, ev_str *out) {
    const char *text = ev_str_text(&part->text);
    size_t length = part->text.length < *room ? part->text.length : *room;
    while (length > 0 && length < part->text.length && ((unsigned char)text[length] & 0xc0) == 0x80)
        length--;
    bool coloured = colours && part->colour != NULL && length > 0;
    if (coloured)
        ev_str_printf(out, "\033[%sm", part->colour);
    ev_str_append_n(out, text, length);
    if (coloured)
        ev_str_append(out, "\033[0m");
    /* What follows a part that was cut is not shown. */
    *room = length < part->text.length ? 0 : *room - length;
}

void progress_bar(const tune_progress *now, const progress_pace *pace, const progress_view *view,
                  ev_str *out) {
    bar_part head = {EV_STR_EMPTY, "1"}, cells = {EV_STR_EMPTY, NULL}, parts[3] = {0};
    /* The last column stays free: some terminals break the line when it is filled. */
    size_t room = view->width > 1 ? view->width - 1 : 0, used = strlen(" []");
    print_parts(now, pace, view, parts);
    ev_str_printf(&head.text, "[%zu/%zu] %s", now->task_index + 1, now->task_count, now->kernel);
    used += head.text.length;
    for (size_t i = 0; i < 3; i++)
        used += parts[i].text.length;
    if (!pace->is_over && used + LEAST_BAR <= room)
        print_cells(pace->done, room - used < MOST_BAR ? room - used : MOST_BAR, &cells.text);
    put_part(&head, view->colours, &room, out);
    put_part(&cells, view->colours, &room, out);
    for (size_t i = 0; i < 3; i++)
        put_part(&parts[i], view->colours, &room, out);
    ev_str_free(&head.text);
    ev_str_free(&cells.text);
    for (size_t i = 0; i < 3; i++)
        ev_str_free(&parts[i].text);
}

/* ---- lines of a log ---- */

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

/* Draws the status line over the one that is there. */
static void print_status(progress *p, bool is_over, ev_str *text) {
    progress_pace pace = progress_pace_of(&p->now, p->view.task_seconds, p->task_begin);
    pace.is_over = is_over;
    ask_width(&p->view);
    ev_str_append(text, CLEAR);
    if (!is_over)
        print_note(&p->now, text);
    progress_bar(&p->now, &pace, &p->view, text);
    if (is_over)
        ev_str_char(text, '\n');
}

static void show_bar(progress *p, const tune_progress *now) {
    ev_str text = EV_STR_EMPTY;
    p->now = *now;
    (void)snprintf(p->kernel, sizeof p->kernel, "%s", now->kernel);
    p->now.kernel = p->kernel; /* the run's names end with the run */
    print_status(p, false, &text);
    put(p, &text);
    ev_str_free(&text);
    p->drawn = true;
    p->now.note = NULL;
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
        progress_end(p); /* the kernel before keeps its line */
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
    print_status(p, true, &text);
    put(p, &text);
    ev_str_free(&text);
    p->drawn = false;
}
