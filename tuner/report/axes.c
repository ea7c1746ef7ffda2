/* Axes: scales, ticks and titles. */
#include "tuner/report/axes.h"

#include "tuner/report/inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define HALF_DIGIT 4 /* at most, in the units of a plot; a wider last number would be cut */

static double share_of(const axis *a, double value) {
    if (a->is_log)
        return (log10(value) - log10(a->from)) / (log10(a->to) - log10(a->from));
    return (value - a->from) / (a->to - a->from);
}

double plot_x(const plot *p, double value) {
    return PLOT_LEFT + share_of(&p->x, value) * (PLOT_WIDTH - PLOT_LEFT - PLOT_RIGHT);
}

double plot_y(const plot *p, double value) {
    return PLOT_HEIGHT - PLOT_BOTTOM -
           share_of(&p->y, value) * (PLOT_HEIGHT - PLOT_TOP - PLOT_BOTTOM);
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
    double x = plot_x(p, value);
    bool is_cut = x + HALF_DIGIT * (double)strlen(text) > PLOT_WIDTH;
    ev_str_printf(p->out,
                  "<path class=\"grid\" d=\"M%.1f %d V%d\"/><text class=\"tick\" x=\"%.1f\" "
                  "y=\"%d\" text-anchor=\"%s\">%s</text>",
                  x, PLOT_TOP, PLOT_HEIGHT - PLOT_BOTTOM, x, PLOT_HEIGHT - PLOT_BOTTOM + 15,
                  is_cut ? "end" : "middle", text);
}

static void tick_y(const plot *p, double value) {
    char text[24];
    number_text(value, text);
    double y = plot_y(p, value);
    ev_str_printf(p->out,
                  "<path class=\"grid\" d=\"M%d %.1f H%d\"/><text class=\"tick\" x=\"%d\" "
                  "y=\"%.1f\" text-anchor=\"end\">%s</text>",
                  PLOT_LEFT, y, PLOT_WIDTH - PLOT_RIGHT, PLOT_LEFT - 6, y + 4, text);
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

void plot_begin(const plot *p, const char *title, const char *description) {
    ev_str_printf(p->out, "<figure><svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", PLOT_WIDTH,
                  PLOT_HEIGHT);
    report_escape(p->out, title);
    ev_str_append(p->out, "</title><desc>");
    report_escape(p->out, description);
    ev_str_append(p->out, "</desc>");
    draw_ticks(p, &p->x, tick_x);
    draw_ticks(p, &p->y, tick_y);
    ev_str_printf(p->out,
                  "<text class=\"label\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>",
                  (PLOT_LEFT + PLOT_WIDTH - PLOT_RIGHT) / 2, PLOT_HEIGHT - 6, p->x.title);
    ev_str_printf(p->out,
                  "<text class=\"label\" x=\"12\" y=\"%d\" text-anchor=\"middle\" "
                  "transform=\"rotate(-90 12 %d)\">%s</text>",
                  (PLOT_TOP + PLOT_HEIGHT - PLOT_BOTTOM) / 2,
                  (PLOT_TOP + PLOT_HEIGHT - PLOT_BOTTOM) / 2, p->y.title);
}

void plot_end(const plot *p, const char *caption) {
    ev_str_append(p->out, "</svg><figcaption>");
    report_escape(p->out, caption);
    ev_str_append(p->out, "</figcaption></figure>");
}
