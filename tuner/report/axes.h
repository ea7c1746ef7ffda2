/* Axes: the frame of a plot in SVG, and where values stand in it. Used by the plots of the report
 * alone. */
#ifndef TUNER_REPORT_AXES_H
#define TUNER_REPORT_AXES_H

#include "base/str.h"

#include <stdbool.h>

/* Of a plot, in units of its view box. */
#define PLOT_WIDTH 560
#define PLOT_HEIGHT 260
#define PLOT_LEFT 70
#define PLOT_RIGHT 14
#define PLOT_TOP 12
#define PLOT_BOTTOM 40

typedef struct axis {
    double from, to;
    bool is_log;
    const char *title;
} axis;

typedef struct plot {
    axis x, y;
    ev_str *out;
} plot;

double plot_x(const plot *p, double value);
double plot_y(const plot *p, double value);
/* Begins a figure with both axes; `title` and `description` are for screen readers. */
void plot_begin(const plot *p, const char *title, const char *description);
void plot_end(const plot *p, const char *caption);

#endif
