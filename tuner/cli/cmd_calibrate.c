/* evoke calibrate: measures a GPU by micro-benchmarks, beside what its description says. */
#include "tuner/cli/cmd.h"

#include "base/lines.h"
#include "base/relay.h"
#include "base/stop.h"
#include "base/table.h"
#include "fitness/device/calibrate/calibrate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The device's own description, or the one that its driver's words are nearest to. */
static ev_status load_base(const cli_args *args, const device *d, gpu **out, ev_error *err) {
    const char *given = cli_text(args, CLI_OPT_BASE);
    const device_properties *p = device_properties_of(d);
    const char *own = p->twin[0] != '\0' ? p->twin : p->id;
    return gpu_load(given != NULL ? given : own + strlen("vm:"), out, err);
}

/* In percent; 0 where there is nothing to hold it against. */
static double deviation(const calibrate_row *row) {
    return row->value > 0 && row->base > 0 ? 100 * (row->value / row->base - 1) : 0;
}

/* The day, as in a log: no number depends on it. */
static void today(char text[16]) {
    time_t now = time(NULL);
    struct tm parts;
    (void)gmtime_r(&now, &parts);
    (void)strftime(text, 16, "%Y-%m-%d", &parts);
}

/* ---- rows ---- */

static json_t *row_json(const calibrate_row *row) {
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:f}", "probe", row->probe, "key", gpu_key_name(row->key),
                  "unit", gpu_key_unit(row->key), "base", row->base);
    if (row->why[0] != '\0') {
        (void)json_object_set_new(o, "kept_because", json_string(row->why));
        return o;
    }
    (void)json_object_set_new(o, "value", json_real(row->value));
    (void)json_object_set_new(o, "spread_percent", json_real(100 * row->spread));
    (void)json_object_set_new(o, "deviation_percent", json_real(deviation(row)));
    return o;
}

/* Each row as it comes: to the file of --rows, and its name on a terminal. */
static ev_status hear(void *context, const calibrate_row *row, ev_error *err) {
    json_t *o = row_json(row);
    ev_status status = o != NULL ? ev_lines_add(context, o, err) : ev_fail_memory(err, 1);
    json_decref(o);
    if (isatty(STDERR_FILENO)) {
        (void)fprintf(stderr, "\r%-40s", gpu_key_name(row->key));
        (void)fflush(stderr);
    }
    return status;
}

/* ---- printing ---- */

static ev_status print_json(cmd_context *c, const device_properties *p, const gpu *base,
                            const calibration *all, ev_error *err) {
    json_t *rows = json_array();
    for (size_t i = 0; i < all->count; i++)
        (void)json_array_append_new(rows, row_json(&all->rows[i]));
    return cmd_print_json(
        c,
        cmd_note_stop(json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:o}", "device", p->id, "name",
                                p->name, "time_kind", p->modelled ? "modelled" : "measured",
                                "driver", p->driver, "base", base->id, "clock_MHz", all->clock_mhz,
                                "rows", rows)),
        err);
}

static void print_row(const calibrate_row *row, table *rows) {
    table_cell(rows, "%s", gpu_key_name(row->key));
    if (row->why[0] != '\0')
        table_cell(rows, "-");
    else
        table_cell(rows, "%.4g", row->value);
    table_cell(rows, "%.4g", row->base);
    if (row->why[0] != '\0' || !(row->base > 0))
        table_cell(rows, "-");
    else
        table_cell(rows, "%+.1f %%", deviation(row));
    table_cell(rows, "%s", gpu_key_unit(row->key));
    if (row->why[0] != '\0')
        table_cell(rows, "kept: %s", row->why);
    else
        table_cell(rows, "%s", row->doc);
}

static ev_status print_table(cmd_context *c, const device_properties *p, const gpu *base,
                             const calibration *all, ev_error *err) {
    const char *kind = p->modelled ? ">modelled" : ">measured";
    const char *const columns[] = {"key", kind, ">base", ">against base", "unit", "by", NULL};
    table *rows = table_new(columns);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < all->count; i++)
        print_row(&all->rows[i], rows);
    ev_str_printf(c->out, "%s, %s; cycles at %.0f MHz; base %s%s\n\n", p->id, p->name,
                  all->clock_mhz, base->id,
                  p->twin_note[0] != '\0' ? ", the nearest: none is of this GPU" : "");
    ev_status status = table_print(rows, c->out, err);
    table_free(rows);
    return status;
}

/* ---- the command ---- */

/* After a stop the numbers that were not reached are the base's; without a row there is no file. */
static ev_status write_out(cmd_context *c, const device *d, const gpu *base, const calibration *all,
                           ev_error *err) {
    const char *path = cli_text(c->args, CLI_OPT_CALIBRATE_OUT);
    char date[16];
    if (path == NULL || all->count == 0)
        return EV_OK;
    today(date);
    return calibrate_write(d, base, all, date, path, err);
}

/* A calibration that another process may go on with. */
typedef struct calibrating {
    const cmd_context *c;
    ev_lines *lines;
    calibration before; /* what earlier processes came to */
} calibrating;

/* What `before` needs to be, for a process that was forked from the same one. */
static void hand_over(const calibration *all, ev_str *baton) {
    ev_str_append_n(baton, (const char *)&all->clock_mhz, sizeof all->clock_mhz);
    ev_str_append_n(baton, (const char *)all->rows, all->count * sizeof *all->rows);
}

static ev_status print(const calibrating *k, const device *d, const gpu *base,
                       const calibration *all, ev_str *out, ev_error *err) {
    cmd_context c = {.args = k->c->args, .out = out};
    const device_properties *p = device_properties_of(d);
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr, "\r%40s\r", "");
    ev_status status = cli_flag(c.args, CLI_OPT_JSON) ? print_json(&c, p, base, all, err)
                                                      : print_table(&c, p, base, all, err);
    return status == EV_OK ? write_out(&c, d, base, all, err) : status;
}

static ev_status calibrate_device(const calibrating *k, device *d, const gpu *base, ev_str *baton,
                                  bool *again, ev_error *err) {
    calibrate_options options = {.only = cli_text(k->c->args, CLI_OPT_CALIBRATE_ONLY),
                                 .heard = hear,
                                 .context = k->lines,
                                 .before = &k->before};
    calibration all;
    EV_TRY(calibrate_run(d, base, &options, &all, again, err));
    ev_status status = EV_OK;
    if (*again)
        hand_over(&all, baton);
    else
        status = print(k, d, base, &all, baton, err);
    calibrate_free(&all);
    return status;
}

static ev_status run_leg(void *context, ev_str *baton, bool *again, ev_error *err) {
    const calibrating *k = context;
    device *d = NULL;
    gpu *base = NULL;
    EV_TRY(device_open(k->c->args->values[CLI_OPT_DEVICE], &d, err));
    ev_status status = load_base(k->c->args, d, &base, err);
    if (status == EV_OK)
        status = calibrate_device(k, d, base, baton, again, err);
    gpu_free(base);
    device_close(d);
    return status;
}

static ev_status take_leg(void *context, const ev_str *baton, bool again, ev_error *err) {
    calibrating *k = context;
    double clock_mhz = 0;
    size_t bytes = baton->length - sizeof clock_mhz;
    if (!again) {
        ev_str_append_n(k->c->out, ev_str_text(baton), baton->length);
        return EV_OK;
    }
    calibrate_row *rows = malloc(bytes + 1);
    if (rows == NULL)
        return ev_fail_memory(err, bytes);
    memcpy(&clock_mhz, ev_str_text(baton), sizeof clock_mhz);
    memcpy(rows, ev_str_text(baton) + sizeof clock_mhz, bytes);
    calibrate_free(&k->before);
    k->before = (calibration){rows, bytes / sizeof *rows, clock_mhz};
    return EV_OK;
}

ev_status cmd_calibrate(cmd_context *c, ev_error *err) {
    calibrating k = {.c = c};
    ev_relay relay = {.context = &k,
                      .run = run_leg,
                      .take = take_leg,
                      .apart = device_may_be_spent(c->args->values[CLI_OPT_DEVICE])};
    ev_stop_catch();
    EV_TRY(ev_lines_open(cli_text(c->args, CLI_OPT_ROWS), &k.lines, err));
    ev_status status = ev_relay_run(&relay, err);
    ev_lines_close(k.lines);
    calibrate_free(&k.before);
    return status == EV_OK ? cmd_end_stopped(err) : status;
}
