/* Report, roofline: the speed of baseline, hand-tuned and tuned variant under the roofs of the GPU
 * (Williams, Waterman, Patterson, "Roofline", 2009).
 *
 * Operations and bytes are those that the task declares as its work, so that all variants of a case
 * stand above the same intensity, and waste does not lift a point. The unit is the one that needs
 * the most of its peak. */
#include "tuner/report/inside.h"

#include "base/table.h"
#include "fitness/gates/floor.h"
#include "tuner/report/axes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CASES_MOST 8

static const gpu_key PEAKS[TASK_UNIT_COUNT] = {
#define UNIT(id, key, peak, words) GPU_##peak,
#include "kernels/units.def"
#undef UNIT
};

/* One case: its intensity, and the three times. */
typedef struct roof_case {
    const char *name;
    double operations, bytes;
    double baseline_ns, hand_ns, best_ns; /* 0: not known */
} roof_case;

typedef struct roofline {
    roof_case cases[CASES_MOST];
    size_t count;
    task_unit unit;
    double peak, bandwidth; /* operations and bytes in a nanosecond */
    const char *time_kind;
} roofline;

/* ---- the GPU ---- */

static bool is_named(const gpu *g, const char *name) {
    static const char vendor[] = "NVIDIA ";
    const char *bare = strncmp(name, vendor, strlen(vendor)) == 0 ? name + strlen(vendor) : name;
    bool is = strcmp(g->name, name) == 0;
    for (size_t i = 0; i < g->driver_name_count; i++)
        is = is || strcmp(g->driver_names[i], bare) == 0;
    return is;
}

/* The description of the device, or of the GPU model of that name. *out NULL: there is none. */
static ev_status find_gpu(const char *where, const char *name, gpu **out, ev_error *err) {
    char **ids = NULL;
    size_t count = 0;
    ev_error why;
    *out = NULL;
    if (strncmp(where, "vm:", 3) == 0) {
        if (gpu_load(where + 3, out, &why) != EV_OK)
            *out = NULL;
        return EV_OK;
    }
    EV_TRY(gpu_list(&ids, &count, err));
    for (size_t i = 0; i < count && *out == NULL; i++) {
        gpu *g = NULL;
        if (gpu_load(ids[i], &g, &why) != EV_OK)
            continue;
        if (is_named(g, name))
            *out = g;
        else
            gpu_free(g);
    }
    gpu_list_free(ids, count);
    return EV_OK;
}

static double peak_of(const gpu *g, task_unit unit) {
    return gpu_get(g, PEAKS[unit]) * gpu_get(g, GPU_SM_COUNT) * gpu_get(g, GPU_BOOST_MHZ) * 1e-3;
}

/* ---- the cases ---- */

/* The unit whose operations need the most time at its peak. */
static task_unit busiest(const gpu *g, const task_amounts *work) {
    task_unit most = (task_unit)0;
    double longest = -1;
    for (int unit = 0; unit < TASK_UNIT_COUNT; unit++) {
        double peak = peak_of(g, (task_unit)unit);
        double ns = peak > 0 ? work->operations[unit] / peak : -1;
        if (ns > longest) {
            longest = ns;
            most = (task_unit)unit;
        }
    }
    return most;
}

static ev_status add_case(const report_task *t, const gpu *g, const json_t *row, roofline *out,
                          ev_error *err) {
    task_amounts work = {0};
    const task_case *at = task_find_case(t->task, ev_json_text(row, "case", ""));
    if (at == NULL || out->count == CASES_MOST)
        return EV_OK;
    EV_TRY(task_work_of(t->task, at, &work, err));
    if (!work.is_declared)
        return EV_OK;
    if (out->count == 0) {
        out->unit = busiest(g, &work);
        out->peak = peak_of(g, out->unit);
        out->time_kind = ev_json_text(row, "time_kind", "");
    }
    const roof_case made = {.name = at->name,
                            .operations = work.operations[out->unit],
                            .bytes = work.bytes,
                            .baseline_ns = ev_json_number(row, "baseline_ns", 0),
                            .hand_ns = ev_json_number(row, "hand_ns", 0),
                            .best_ns = ev_json_number(row, "best_ns", 0)};
    if (made.operations > 0 && made.bytes > 0 && made.best_ns > 0)
        out->cases[out->count++] = made;
    return EV_OK;
}

static ev_status read_cases(const report_task *t, const gpu *g, roofline *out, ev_error *err) {
    out->bandwidth = gpu_get(g, GPU_DRAM_GBS); /* GB/s is bytes in a nanosecond */
    for (size_t i = 0; i < json_array_size(t->rows->root); i++)
        EV_TRY(add_case(t, g, json_array_get(t->rows->root, i), out, err));
    return EV_OK;
}

/* ---- the drawing ---- */

static plot plot_of(const roofline *r, ev_str *out) {
    double ridge = r->peak / r->bandwidth, slowest = r->peak;
    double low = ridge, high = ridge;
    for (size_t i = 0; i < r->count; i++) {
        const roof_case *c = &r->cases[i];
        low = fmin(low, c->operations / c->bytes);
        high = fmax(high, c->operations / c->bytes);
        slowest = fmin(slowest, c->operations / fmax(c->baseline_ns, c->best_ns));
        if (c->hand_ns > 0)
            slowest = fmin(slowest, c->operations / c->hand_ns);
    }
    return (plot){.x = {low / 4, high * 4, true, "operations a byte, by the task's work"},
                  .y = {slowest / 2, r->peak * 2, true, "10^9 operations a second"},
                  .out = out};
}

static void draw_roof(const plot *p, const roofline *r) {
    double ridge = r->peak / r->bandwidth, left = p->x.from;
    double foot = left * r->bandwidth;
    if (foot < p->y.from) { /* the roof begins on the lower edge */
        foot = p->y.from;
        left = foot / r->bandwidth;
    }
    ev_str_printf(p->out,
                  "<path class=\"roof\" d=\"M%.1f %.1fL%.1f %.1fH%d\"><title>DRAM %.0f GB/s, then "
                  "%s at its peak</title></path>",
                  plot_x(p, left), plot_y(p, foot), plot_x(p, ridge), plot_y(p, r->peak),
                  PLOT_WIDTH - PLOT_RIGHT, r->bandwidth, task_unit_name(r->unit));
}

/* Three forms, so that colours need not tell them apart. */
static void draw_point(const plot *p, const roof_case *c, const char *who, double ns) {
    char text[24];
    if (ns <= 0)
        return;
    double speed = c->operations / ns, x = plot_x(p, c->operations / c->bytes);
    double y = plot_y(p, speed);
    table_time(ns, text);
    if (strcmp(who, "tuned") == 0)
        ev_str_printf(p->out, "<circle class=\"point tuned\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\">", x,
                      y);
    else if (strcmp(who, "hand-tuned") == 0)
        ev_str_printf(p->out, "<path class=\"point hand\" d=\"M%.1f %.1fl6 6l-6 6l-6 -6z\">", x,
                      y - 6);
    else
        ev_str_printf(p->out,
                      "<rect class=\"point base\" x=\"%.1f\" y=\"%.1f\" width=\"14\" "
                      "height=\"14\">",
                      x - 7, y - 7);
    ev_str_append(p->out, "<title>");
    report_escape(p->out, c->name);
    ev_str_printf(p->out, ", %s: %s, %.3g x 10^9 operations a second</title>", who, text, speed);
    const char *other = strcmp(who, "hand-tuned") == 0 ? "</path>" : "</rect>";
    ev_str_append(p->out, strcmp(who, "tuned") == 0 ? "</circle>" : other);
}

static void draw(const roofline *r, ev_str *out) {
    ev_str caption = EV_STR_EMPTY;
    const plot p = plot_of(r, out);
    ev_str_printf(&caption,
                  "Roofline: squares are the baseline, diamonds the hand-tuned start, dots the "
                  "tuned variant, by %s times. Operations: %s. The line is the DRAM bandwidth of "
                  "the GPU and the peak of the unit %s, without the launch",
                  r->time_kind, task_unit_words(r->unit), task_unit_name(r->unit));
    plot_begin(&p, "Roofline of baseline, hand-tuned and tuned variant", ev_str_text(&caption));
    draw_roof(&p, r);
    for (size_t i = 0; i < r->count; i++) {
        draw_point(&p, &r->cases[i], "baseline", r->cases[i].baseline_ns);
        draw_point(&p, &r->cases[i], "hand-tuned", r->cases[i].hand_ns);
        draw_point(&p, &r->cases[i], "tuned", r->cases[i].best_ns);
    }
    plot_end(&p, ev_str_text(&caption));
    ev_str_free(&caption);
}

ev_status report_plot_roofline(const report_task *t, ev_str *out, ev_error *err) {
    gpu *g = NULL;
    roofline r = {0};
    if (t->task == NULL)
        return EV_OK;
    EV_TRY(find_gpu(t->winner->device, t->winner->gpu_name, &g, err));
    ev_status status = g != NULL ? read_cases(t, g, &r, err) : EV_OK;
    if (status == EV_OK && r.count > 0)
        draw(&r, out);
    gpu_free(g);
    return status;
}
