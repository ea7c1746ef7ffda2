/* Report, plots: SVG whose colours come from the page's style sheet. */
#include "tuner/report/inside.h"

#include "base/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 560
#define HEIGHT 260
#define LEFT 70
#define RIGHT 14
#define TOP 12
#define BOTTOM 40
#define DOTS_MOST 1500 /* dots that a plot draws, so that a page stays small */

typedef struct axis {
    double from, to;
    bool is_log;
    const char *title;
} axis;

typedef struct plot {
    axis x, y;
    ev_str *out;
} plot;

static double share_of(const axis *a, double value) {
    if (a->is_log)
        return (log10(value) - log10(a->from)) / (log10(a->to) - log10(a->from));
    return (value - a->from) / (a->to - a->from);
}

static double at_x(const plot *p, double value) {
    return LEFT + share_of(&p->x, value) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const plot *p, double value) {
    return HEIGHT - BOTTOM - share_of(&p->y, value) * (HEIGHT - TOP - BOTTOM);
}

/* ---- axes ---- */

/* 1, 2 or 5 times a power of ten, so that about `parts` steps cover the span. */
static double step_for(double span, double parts) {
    double raw = span / parts, power = pow(10, floor(log10(raw)));
    double times = raw / power;
    if (times > 5)
        return 10 * power;
    if (times > 2)
        return 5 * power;
    return times > 1 ? 2 * power : power;
}

static void number_text(double value, char text[24]) {
    if (value != 0 && (fabs(value) < 1e-3 || fabs(value) >= 1e6))
        (void)snprintf(text, 24, "%.0e", value);
    else
        (void)snprintf(text, 24, "%g", value);
}

static void tick_x(const plot *p, double value) {
    char text[24];
    number_text(value, text);
    double x = at_x(p, value);
    ev_str_printf(p->out,
                  "<path class=\"grid\" d=\"M%.1f %d V%d\"/><text class=\"tick\" x=\"%.1f\" "
                  "y=\"%d\" text-anchor=\"middle\">%s</text>",
                  x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 15, text);
}

static void tick_y(const plot *p, double value) {
    char text[24];
    number_text(value, text);
    double y = at_y(p, value);
    ev_str_printf(p->out,
                  "<path class=\"grid\" d=\"M%d %.1f H%d\"/><text class=\"tick\" x=\"%d\" "
                  "y=\"%.1f\" text-anchor=\"end\">%s</text>",
                  LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, text);
}

static void draw_ticks(const plot *p, const axis *a, void (*tick)(const plot *, double)) {
    double step = a->is_log ? 1 : step_for(a->to - a->from, 6);
    double from = a->is_log ? log10(a->from) : a->from / step;
    double to = a->is_log ? log10(a->to) : a->to / step;
    int first = (int)ceil(from - 1e-9), last = (int)floor(to + 1e-9);
    int every = a->is_log ? 1 + (last - first) / 6 : 1;
    for (int k = first; k <= last; k += every)
        tick(p, a->is_log ? pow(10, k) : k * step);
}

static void begin_plot(const plot *p, const char *title, const char *description) {
    ev_str_printf(p->out, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", WIDTH, HEIGHT);
    report_escape(p->out, title);
    ev_str_append(p->out, "</title><desc>");
    report_escape(p->out, description);
    ev_str_append(p->out, "</desc>");
    draw_ticks(p, &p->x, tick_x);
    draw_ticks(p, &p->y, tick_y);
    ev_str_printf(p->out,
                  "<text class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>",
                  (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, p->x.title);
    ev_str_printf(p->out,
                  "<text class=\"label\" x=\"12\" y=\"%d\" text-anchor=\"middle\" "
                  "transform=\"rotate(-90 12 %d)\">%s</text>",
                  (TOP + HEIGHT - BOTTOM) / 2, (TOP + HEIGHT - BOTTOM) / 2, p->y.title);
}

static void end_plot(const plot *p, const char *caption) {
    ev_str_append(p->out, "</svg><figcaption>");
    report_escape(p->out, caption);
    ev_str_append(p->out, "</figcaption></figure>");
}

/* ---- progress ---- */

static double place_of(const report_child *child, bool by_seconds) {
    return by_seconds ? child->seconds : (double)child->number;
}

static void draw_dots(const plot *p, const report_task *t, double start, bool by_seconds) {
    size_t step = t->count / DOTS_MOST + 1;
    ev_str_append(p->out, "<path class=\"dots\" d=\"");
    for (size_t i = 0; i < t->count; i += step) {
        double gain = start / t->children[i].ns;
        if (gain >= p->y.from)
            ev_str_printf(p->out, "M%.1f %.1fh0", at_x(p, place_of(&t->children[i], by_seconds)),
                          at_y(p, gain));
    }
    ev_str_append(p->out, "\"/>");
}

static void draw_best(const plot *p, const report_task *t, double start, bool by_seconds) {
    double best = 0;
    ev_str_append(p->out, "<path class=\"best\" d=\"");
    for (size_t i = 0; i < t->count; i++) {
        double gain = start / t->children[i].ns;
        if (gain <= best || t->children[i].is_bold)
            continue;
        double x = at_x(p, place_of(&t->children[i], by_seconds));
        if (best == 0)
            ev_str_printf(p->out, "M%.1f %.1f", x, at_y(p, gain));
        else
            ev_str_printf(p->out, "H%.1fV%.1f", x, at_y(p, gain));
        best = gain;
    }
    ev_str_printf(p->out, "H%d\"/>", WIDTH - RIGHT);
}

void report_plot_progress(const report_task *t, bool by_seconds, ev_str *out) {
    double start = report_start_ns(t), most = 1;
    if (start <= 0 || t->count == 0)
        return;
    for (size_t i = 0; i < t->count; i++)
        most = fmax(most, start / t->children[i].ns);
    double last = by_seconds ? t->seconds : (double)t->evaluations;
    const plot p = {.x = {0, fmax(last, 1), false, by_seconds ? "seconds" : "evaluations"},
                    .y = {most < 2 ? 0.5 : 0, most * 1.05, false, "times the start's speed"},
                    .out = out};
    char text[160];
    (void)snprintf(text, sizeof text,
                   "Best speed-up so far over %s: %.3g at the end, of %" PRIu64 " evaluations",
                   by_seconds ? "seconds" : "evaluations", most, t->evaluations);
    begin_plot(&p, by_seconds ? "Progress over seconds" : "Progress over evaluations", text);
    draw_dots(&p, t, start, by_seconds);
    draw_best(&p, t, start, by_seconds);
    end_plot(&p, by_seconds ? "Best so far, by seconds of the search"
                            : "Best so far, by evaluations; a dot is a child that passed the "
                              "search's gates");
}

/* ---- front ---- */

/* An exact child stands on the lower edge. */
static double shown_error(const plot *p, double error) {
    return fmax(error, p->y.from);
}

static void draw_member(const plot *p, const report_child *child) {
    char ns[24];
    table_time(child->ns, ns);
    ev_str_printf(p->out,
                  "<circle class=\"member\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"><title>child "
                  "%" PRIu64 ": %s, error %.2g</title></circle>",
                  at_x(p, child->ns / 1000), at_y(p, shown_error(p, child->error)), child->number,
                  ns, child->error);
}

/* The axes hold all children up to 1.5 times the start's time. */
static plot plot_of_front(const report_task *t, ev_str *out) {
    double least = INFINITY, most = 0, low = INFINITY, high = 0;
    double limit = 1.5 * report_start_ns(t);
    for (size_t i = 0; i < t->count; i++) {
        const report_child *c = &t->children[i];
        if (limit > 0 && c->ns > limit)
            continue;
        least = fmin(least, c->ns / 1000);
        most = fmax(most, c->ns / 1000);
        if (c->error > 0) {
            low = fmin(low, c->error);
            high = fmax(high, c->error);
        }
    }
    if (!(low <= high))
        low = high = 1e-8;
    double margin = fmax((most - least) * 0.05, least * 0.01);
    return (plot){.x = {fmax(least - margin, 0), most + margin, false, "time, microseconds"},
                  .y = {pow(10, floor(log10(low)) - 1), pow(10, ceil(log10(high) + 1e-9)), true,
                        "relative error"},
                  .out = out};
}

static void draw_front(const plot *p, const report_task *t, const bool *on) {
    size_t step = t->count / DOTS_MOST + 1;
    begin_plot(p, "Time against error",
               "Children that passed the search's gates; the marked ones are beaten by no other in "
               "both time and error");
    ev_str_append(p->out, "<path class=\"dots\" d=\"");
    for (size_t i = 0; i < t->count; i += step) {
        const report_child *c = &t->children[i];
        if (c->ns / 1000 <= p->x.to)
            ev_str_printf(p->out, "M%.1f %.1fh0", at_x(p, c->ns / 1000),
                          at_y(p, shown_error(p, c->error)));
    }
    ev_str_append(p->out, "\"/>");
    for (size_t i = 0; i < t->count; i++) {
        if (on[i] && t->children[i].ns / 1000 <= p->x.to)
            draw_member(p, &t->children[i]);
    }
    end_plot(p, "Time against error; the marked children are the front, exact ones stand on the "
                "lower edge");
}

ev_status report_plot_front(const report_task *t, ev_str *out, ev_error *err) {
    if (t->count == 0)
        return EV_OK;
    bool *on = calloc(t->count, sizeof *on);
    if (on == NULL)
        return ev_fail_memory(err, t->count * sizeof *on);
    ev_status status = report_mark_front(t, on, err);
    if (status == EV_OK) {
        const plot p = plot_of_front(t, out);
        draw_front(&p, t, on);
    }
    free(on);
    return status;
}

/* ---- gates ---- */

#define BAR_HEIGHT 24

static const char *meaning_of(const char *gate) {
    if (strcmp(gate, "none") == 0)
        return "passed";
    return strcmp(gate, "seen") == 0 ? "duplicate" : gate;
}

static uint64_t stopped_at(const report_task *t, const char *gate) {
    for (size_t i = 0; i < t->stopped_count; i++) {
        if (strcmp(t->stopped[i].gate, gate) == 0)
            return t->stopped[i].count;
    }
    return 0;
}

static void draw_bar(ev_str *out, size_t row, const char *gate, uint64_t count, uint64_t most) {
    int y = (int)row * BAR_HEIGHT + 4;
    double width = (double)count / (double)most * (WIDTH - 100 - 70);
    ev_str_printf(out,
                  "<text class=\"name\" x=\"94\" y=\"%d\" text-anchor=\"end\">%s</text><rect "
                  "class=\"bar%s\" x=\"100\" y=\"%d\" width=\"%.1f\" height=\"%d\"/><text "
                  "class=\"name\" x=\"%.1f\" y=\"%d\">%" PRIu64 "</text>",
                  y + 14, meaning_of(gate), strcmp(gate, "none") == 0 ? " passed" : "", y, width,
                  BAR_HEIGHT - 6, 106 + width, y + 14, count);
}

void report_plot_gates(const report_task *t, ev_str *out) {
    uint64_t most = 1;
    size_t rows = GATE_PROMOTED + 1; /* the gates before promotion, and those that passed */
    for (size_t i = 0; i < t->stopped_count; i++)
        most = t->stopped[i].count > most ? t->stopped[i].count : most;
    ev_str_printf(out,
                  "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>Where the children "
                  "ended</title><desc>Children of the search by the gate that stopped them</desc>",
                  WIDTH, (int)rows * BAR_HEIGHT + 8);
    for (size_t i = 0; i < rows; i++) {
        const char *name = gate_name(i < GATE_PROMOTED ? (gate)i : GATE_NONE);
        draw_bar(out, i, name, stopped_at(t, name), most);
    }
    ev_str_append(out, "</svg><figcaption>Where the children of the search ended: the gate that "
                       "stopped them, or passed</figcaption></figure>");
}

/* ---- terms ---- */

#define PAIR_HEIGHT 34

static void draw_share(ev_str *out, int y, double share, const char *class) {
    double width = fmin(share, 1) * (WIDTH - 130 - 60);
    ev_str_printf(out,
                  "<rect class=\"%s\" x=\"130\" y=\"%d\" width=\"%.1f\" height=\"12\"/><text "
                  "class=\"name\" x=\"%.1f\" y=\"%d\">%.0f %%</text>",
                  class, y, width, 136 + width, y + 11, 100 * share);
}

void report_plot_terms(const char *title, const double baseline[MODEL_TERM_COUNT],
                       const double winner[MODEL_TERM_COUNT], ev_str *out) {
    int shown = 0;
    for (size_t i = 0; i < MODEL_TERM_COUNT; i++)
        shown += baseline[i] >= 0.01 || winner[i] >= 0.01;
    ev_str_printf(out, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title>", WIDTH,
                  shown * PAIR_HEIGHT + 8, title);
    for (size_t i = 0, row = 0; i < MODEL_TERM_COUNT; i++) {
        if (baseline[i] < 0.01 && winner[i] < 0.01)
            continue;
        int y = (int)row++ * PAIR_HEIGHT + 4;
        ev_str_printf(out, "<text class=\"name\" x=\"124\" y=\"%d\" text-anchor=\"end\">%s</text>",
                      y + 18, model_term_name((model_term)i));
        draw_share(out, y, baseline[i], "before");
        draw_share(out, y + 14, winner[i], "after");
    }
    ev_str_printf(out,
                  "</svg><figcaption>%s: <span class=\"key before\"></span> baseline, <span "
                  "class=\"key after\"></span> winner</figcaption></figure>",
                  title);
}
