/* Report, plots: SVG whose colours come from the page's style sheet. */
#include "tuner/report/inside.h"

#include "base/table.h"
#include "tuner/report/axes.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DOTS_MOST 1500 /* dots that a plot draws, so that a page stays small */

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
            ev_str_printf(p->out, "M%.1f %.1fh0", plot_x(p, place_of(&t->children[i], by_seconds)),
                          plot_y(p, gain));
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
        double x = plot_x(p, place_of(&t->children[i], by_seconds));
        if (best == 0)
            ev_str_printf(p->out, "M%.1f %.1f", x, plot_y(p, gain));
        else
            ev_str_printf(p->out, "H%.1fV%.1f", x, plot_y(p, gain));
        best = gain;
    }
    ev_str_printf(p->out, "H%d\"/>", PLOT_WIDTH - PLOT_RIGHT);
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
    plot_begin(&p, by_seconds ? "Progress over seconds" : "Progress over evaluations", text);
    draw_dots(&p, t, start, by_seconds);
    draw_best(&p, t, start, by_seconds);
    plot_end(&p, by_seconds ? "Best so far, by seconds of the search"
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
                  plot_x(p, child->ns / 1000), plot_y(p, shown_error(p, child->error)),
                  child->number, ns, child->error);
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
    plot_begin(p, "Time against error",
               "Children that passed the search's gates; the marked ones are beaten by no other in "
               "both time and error");
    ev_str_append(p->out, "<path class=\"dots\" d=\"");
    for (size_t i = 0; i < t->count; i += step) {
        const report_child *c = &t->children[i];
        if (c->ns / 1000 <= p->x.to)
            ev_str_printf(p->out, "M%.1f %.1fh0", plot_x(p, c->ns / 1000),
                          plot_y(p, shown_error(p, c->error)));
    }
    ev_str_append(p->out, "\"/>");
    for (size_t i = 0; i < t->count; i++) {
        if (on[i] && t->children[i].ns / 1000 <= p->x.to)
            draw_member(p, &t->children[i]);
    }
    plot_end(p, "Time against error; the marked children are the front, exact ones stand on the "
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

static const char *meaning_of(const char *name) {
    if (strcmp(name, "none") == 0)
        return "passed";
    return strcmp(name, "seen") == 0 ? "duplicate" : name;
}

static uint64_t stopped_at(const report_task *t, const char *name) {
    for (size_t i = 0; i < t->stopped_count; i++) {
        if (strcmp(t->stopped[i].gate, name) == 0)
            return t->stopped[i].count;
    }
    return 0;
}

static void draw_bar(ev_str *out, size_t row, const char *name, uint64_t count, uint64_t most) {
    int y = (int)row * BAR_HEIGHT + 4;
    double width = (double)count / (double)most * (PLOT_WIDTH - 100 - 70);
    ev_str_printf(out,
                  "<text class=\"name\" x=\"94\" y=\"%d\" text-anchor=\"end\">%s</text><rect "
                  "class=\"bar%s\" x=\"100\" y=\"%d\" width=\"%.1f\" height=\"%d\"/><text "
                  "class=\"name\" x=\"%.1f\" y=\"%d\">%" PRIu64 "</text>",
                  y + 14, meaning_of(name), strcmp(name, "none") == 0 ? " passed" : "", y, width,
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
                  PLOT_WIDTH, (int)rows * BAR_HEIGHT + 8);
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
    double width = fmin(share, 1) * (PLOT_WIDTH - 130 - 60);
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
    ev_str_printf(out, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title>",
                  PLOT_WIDTH, shown * PAIR_HEIGHT + 8, title);
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
