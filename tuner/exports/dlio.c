/* DLIO: the workload's computation_time scaled by what the kernels do to an iteration's compute,
 * and the read bandwidth that keeps the accelerators as busy as before (Devarajan et al. 2021).
 *
 * DLIO reads YAML. This file changes lines of it and leaves every other line as it is, so it reads
 * no more YAML than that: mappings in block style, and numbers on the line of their key. */
#include "tuner/exports/inside.h"
#include "tuner/exports/plan.h"

#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define USUAL_AU 0.90 /* accelerator utilisation that MLPerf Storage asks of ResNet-50 */

typedef struct yaml {
    const plan *plan;
    const char *path;
    ev_str out;
    size_t line;
    char section[64];    /* the key without indentation that the line stands under */
    size_t time_indent;  /* of computation_time, while its mapping lasts */
    bool in_time;        /* within the mapping of computation_time */
    bool is_inside;      /* computation_time was there */
    double old_s, new_s; /* mean of computation_time */
    double record_bytes, batch, au;
} yaml;

/* ---- lines ---- */

/* "KEY: VALUE # comment" */
typedef struct yaml_line {
    size_t indent;
    char key[64]; /* "": the line has none */
    const char *value;
    size_t value_length; /* without blanks and comment behind it */
} yaml_line;

static yaml_line split_line(const char *text, size_t length) {
    yaml_line out = {0};
    while (out.indent < length && text[out.indent] == ' ')
        out.indent++;
    const char *at = text + out.indent, *end = text + length;
    size_t key = 0;
    while (at + key < end && strchr(": #\r", at[key]) == NULL)
        key++;
    if (key == 0 || key >= sizeof out.key || at + key >= end || at[key] != ':')
        return out;
    memcpy(out.key, at, key);
    out.value = at + key + 1;
    while (out.value < end && (*out.value == ' ' || *out.value == '\t'))
        out.value++;
    const char *stop = out.value;
    while (stop < end && *stop != '\r' && !(*stop == '#' && (stop == out.value || stop[-1] == ' ')))
        stop++;
    while (stop > out.value && (stop[-1] == ' ' || stop[-1] == '\t'))
        stop--;
    out.value_length = (size_t)(stop - out.value);
    return out;
}

static bool read_number(const yaml_line *l, double *out) {
    char text[64];
    char *end = NULL;
    if (l->value_length == 0 || l->value_length >= sizeof text)
        return false;
    memcpy(text, l->value, l->value_length);
    text[l->value_length] = '\0';
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

static bool is_in(const yaml *y, const char *section, const yaml_line *l, const char *key) {
    return l->indent > 0 && strcmp(y->section, section) == 0 && strcmp(l->key, key) == 0;
}

static void copy_line(yaml *y, const char *text, size_t length) {
    ev_str_append_n(&y->out, text, length);
    ev_str_char(&y->out, '\n');
}

/* The line with another number. */
static void put_number(yaml *y, const char *text, size_t length, const yaml_line *l, double value) {
    ev_str_append_n(&y->out, text, (size_t)(l->value - text));
    ev_str_printf(&y->out, "%.9g", value);
    ev_str_append_n(&y->out, l->value + l->value_length,
                    length - (size_t)(l->value - text) - l->value_length);
    ev_str_char(&y->out, '\n');
}

/* ---- keys ---- */

static ev_status fail_value(const yaml *y, const yaml_line *l, ev_error *err) {
    return ev_fail(err, EV_BAD,
                   "%s:%zu: the value of '%s' is no number of its own; write computation_time as a "
                   "number, or as lines with mean, stdev and type",
                   y->path, y->line, l->key);
}

static ev_status scale_line(yaml *y, const char *text, size_t length, const yaml_line *l,
                            bool is_mean, ev_error *err) {
    double value = 0;
    if (!read_number(l, &value) || value < 0)
        return fail_value(y, l, err);
    double scaled = value * plan_factor(y->plan);
    if (is_mean) {
        y->old_s = value;
        y->new_s = scaled;
        ev_str_printf(&y->out,
                      "%*s# evoke: %.9g s times %.6g; %zu of the layers' times are of the bundle's "
                      "kernels on %s (%s), %zu are published ones\n",
                      (int)l->indent, "", value, plan_factor(y->plan), y->plan->taken, y->plan->gpu,
                      plan_kind(y->plan), y->plan->kept);
    }
    put_number(y, text, length, l, scaled);
    return EV_OK;
}

/* A line within the mapping of computation_time. Other distributions have other parameters, of
 * which nobody can say here how they scale. */
static ev_status take_time_part(yaml *y, const char *text, size_t length, const yaml_line *l,
                                ev_error *err) {
    bool is_mean = strcmp(l->key, "mean") == 0;
    if (is_mean || strcmp(l->key, "stdev") == 0)
        return scale_line(y, text, length, l, is_mean, err);
    if (l->key[0] != '\0' && strcmp(l->key, "type") != 0)
        return ev_fail(err, EV_BAD,
                       "%s:%zu: computation_time has '%s'; mean, stdev and type can be scaled here",
                       y->path, y->line, l->key);
    copy_line(y, text, length);
    return EV_OK;
}

static ev_status take_time(yaml *y, const char *text, size_t length, const yaml_line *l,
                           ev_error *err) {
    y->is_inside = true;
    if (l->value_length > 0)
        return scale_line(y, text, length, l, true, err);
    y->in_time = true;
    y->time_indent = l->indent;
    copy_line(y, text, length);
    return EV_OK;
}

static void note_number(const yaml *y, const char *section, const yaml_line *l, const char *key,
                        double *out) {
    double value = 0;
    if (is_in(y, section, l, key) && read_number(l, &value) && value > 0)
        *out = value;
}

static ev_status take_line(yaml *y, const char *text, size_t length, ev_error *err) {
    yaml_line l = split_line(text, length);
    y->line++;
    if (l.key[0] != '\0' && l.indent == 0)
        (void)snprintf(y->section, sizeof y->section, "%s", l.key);
    y->in_time = y->in_time && (l.key[0] == '\0' || l.indent > y->time_indent);
    note_number(y, "dataset", &l, "record_length", &y->record_bytes);
    note_number(y, "dataset", &l, "record_length_bytes", &y->record_bytes);
    note_number(y, "reader", &l, "batch_size", &y->batch);
    note_number(y, "metric", &l, "au", &y->au);
    if (y->in_time)
        return take_time_part(y, text, length, &l, err);
    if (is_in(y, "train", &l, "computation_time"))
        return take_time(y, text, length, &l, err);
    copy_line(y, text, length);
    return EV_OK;
}

/* ---- bandwidth ---- */

/* Bytes a second that an accelerator reads, so that it computes for the share `au` of the time. */
static double bandwidth_of(const yaml *y, double seconds) {
    return seconds > 0 ? y->batch * y->record_bytes * y->au / seconds : 0;
}

static void print_bandwidth(yaml *y) {
    if (y->batch > 0 && y->record_bytes > 0)
        ev_str_printf(&y->out,
                      "# evoke: an accelerator utilisation of %g needs %.6g MB/s for each "
                      "accelerator; it needed %.6g MB/s before\n",
                      y->au, bandwidth_of(y, y->new_s) / 1e6, bandwidth_of(y, y->old_s) / 1e6);
    else
        ev_str_append(&y->out, "# evoke: the bandwidth is not known, since reader.batch_size or "
                               "dataset.record_length is missing\n");
}

static json_t *notes_of(const yaml *y) {
    json_t *out = json_pack("{s:f, s:f}", "computation_time_before_s", y->old_s,
                            "computation_time_s", y->new_s);
    if (y->batch > 0 && y->record_bytes > 0)
        (void)json_object_set_new(out, "bandwidth",
                                  json_pack("{s:f, s:f, s:f, s:f, s:f}", "au", y->au, "batch_size",
                                            y->batch, "record_bytes", y->record_bytes,
                                            "bytes_per_second_before", bandwidth_of(y, y->old_s),
                                            "bytes_per_second", bandwidth_of(y, y->new_s)));
    return out;
}

/* ---- the file ---- */

static ev_status convert(yaml *y, const char *text, ev_error *err) {
    ev_str_printf(&y->out, "# evoke: computation_time is scaled for the kernels of a bundle (%s)\n",
                  y->plan->gpu);
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        EV_TRY(take_line(y, text, length, err));
        text += length + (text[length] == '\n');
    }
    if (!y->is_inside || !(y->old_s > 0))
        return ev_fail(err, EV_BAD,
                       "%s has no train.computation_time above 0, in lines of their own; DLIO's "
                       "workloads have one",
                       y->path);
    print_bandwidth(y);
    return EV_OK;
}

static ev_status write_workload(const plan *p, json_t *files, json_t **lines, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    yaml y = {.plan = p, .path = p->request->job, .out = EV_STR_EMPTY, .au = USUAL_AU};
    if (!(plan_factor(p) > 0))
        return ev_fail(
            err, EV_BAD,
            "--to dlio needs --base TABLE.txt with published times: they tell what share "
            "of computation_time the kernels change");
    EV_TRY(ev_file_read(y.path, &text, &bytes, err));
    ev_status status = convert(&y, text, err);
    free(text);
    if (status == EV_OK)
        status = exports_put(p->request->out, &y.out, err);
    if (status == EV_OK)
        status = plan_write_notes(p, "dlio", notes_of(&y), files, err);
    ev_str_free(&y.out);
    EV_TRY(status);
    char line[200];
    (void)snprintf(line, sizeof line, "computation_time: %.6g s before, %.6g s now", y.old_s,
                   y.new_s);
    *lines = json_pack("[s]", line);
    (void)snprintf(line, sizeof line,
                   "reads for each accelerator at AU %g: %.6g MB/s before, %.6g MB/s now", y.au,
                   bandwidth_of(&y, y.old_s) / 1e6, bandwidth_of(&y, y.new_s) / 1e6);
    if (y.batch > 0 && y.record_bytes > 0)
        (void)json_array_append_new(*lines, json_string(line));
    return EV_OK;
}

ev_status exports_write_dlio(const exports_request *r, json_t **summary, ev_error *err) {
    plan p;
    json_t *lines = NULL;
    if (r->job == NULL)
        return ev_fail(err, EV_BAD,
                       "--to dlio needs --job WORKLOAD.yaml, the workload of DLIO whose "
                       "computation_time is scaled");
    ev_status status = plan_make(r, &p, err);
    json_t *files = json_pack("[s]", r->out);
    if (status == EV_OK)
        status = write_workload(&p, files, &lines, err);
    if (status == EV_OK) {
        plan_warn(&p);
        *summary = plan_summary(&p, "dlio", json_incref(files));
        (void)json_array_extend(json_object_get(*summary, "lines"), lines);
    }
    json_decref(lines);
    json_decref(files);
    plan_free(&p);
    return status;
}
