/* evoke qualify: prints what was found of each variant, and turns it into an exit code. */
#include "tuner/cli/cmd.h"

#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "base/table.h"
#include "bundle/bundle.h"
#include "tuner/run/qualify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table ---- */

static void time_cell(table *rows, const json_t *row, const char *key) {
    char text[24];
    table_time(ev_json_number(row, key, 0), text);
    table_cell(rows, "%s", text);
}

static bool has_reference(const json_t *list) {
    bool has = false;
    for (size_t i = 0; i < json_array_size(list); i++)
        has = has || json_object_get(json_array_get(list, i), "reference_name") != NULL;
    return has;
}

static void reference_cells(table *rows, const json_t *row) {
    double over = ev_json_number(row, "over_reference", 0);
    time_cell(rows, row, "reference_ns");
    if (over > 0)
        table_cell(rows, "%.3fx", over);
    else
        table_cell(rows, "-");
}

static ev_status print_rows(const json_t *list, ev_str *out, ev_error *err) {
    static const char *const columns[] = {
        "kernel", "tuned for", "case",    ">baseline",  ">start",          ">variant", ">gain",
        ">error", "times are", "verdict", ">reference", ">over reference", NULL};
    static const char *const plain[] = {"kernel",    "tuned for", "case",  ">baseline",
                                        ">start",    ">variant",  ">gain", ">error",
                                        "times are", "verdict",   NULL};
    bool with_reference = has_reference(list);
    table *rows = table_new(with_reference ? columns : plain);
    if (rows == NULL)
        return ev_fail_memory(err, 1);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *row = json_array_get(list, i);
        static const char *const texts[] = {"kernel", "gpu", "case"};
        for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
            table_cell(rows, "%s", ev_json_text(row, texts[k], ""));
        time_cell(rows, row, "baseline_ns");
        time_cell(rows, row, "start_ns");
        time_cell(rows, row, "ns");
        double gain = ev_json_number(row, "gain", 0);
        if (gain > 0)
            table_cell(rows, "%.3fx", gain);
        else
            table_cell(rows, "-");
        if (json_object_get(row, "error") != NULL)
            table_cell(rows, "%.2g", ev_json_number(row, "error", 0));
        else
            table_cell(rows, "-");
        table_cell(rows, "%s", ev_json_text(row, "time_kind", "-"));
        table_cell(rows, "%s", ev_json_text(row, "verdict", ""));
        if (with_reference)
            reference_cells(rows, row);
    }
    ev_status status = table_print(rows, out, err);
    table_free(rows);
    return status;
}

static void print_disabled(const json_t *list, ev_str *out) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *v = json_array_get(list, i);
        if (!ev_json_flag(v, "disabled", false))
            continue;
        ev_str_printf(out, "disabled: %s for %s: %s; in its place: %s (%s)\n",
                      ev_json_text(v, "kernel", ""), ev_json_text(v, "gpu", ""),
                      ev_json_text(v, "reason", ""), ev_json_text(v, "instead", "nothing"),
                      ev_json_text(v, "instead_start", ""));
    }
}

static ev_status print_findings(cmd_context *c, const qualify *q, const char *out, ev_error *err) {
    const char *kind = q->gpu.modelled ? "modelled" : "measured";
    c->exit_code = q->disabled > 0;
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(
            c,
            json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:O, s:O}", "bundle", out,
                      "device", q->device, "gpu", q->gpu.id, "name", q->gpu.name, "driver",
                      q->gpu.driver, "time_kind", kind, "judged", (json_int_t)q->judged, "disabled",
                      (json_int_t)q->disabled, "not_reached", (json_int_t)q->unreached, "rows",
                      q->rows, "variants", q->variants),
            err);
    EV_TRY(print_rows(q->rows, c->out, err));
    ev_str_char(c->out, '\n');
    print_disabled(q->variants, c->out);
    ev_str_printf(c->out, "%s: on %s (%s%s%s), times are %s: %zu of %zu variants disabled", out,
                  q->device, q->gpu.name, q->gpu.driver[0] != '\0' ? ", " : "", q->gpu.driver, kind,
                  q->disabled, q->judged);
    if (q->unreached > 0)
        ev_str_printf(c->out, ", and no time for %zu more, which are as they were", q->unreached);
    ev_str_char(c->out, '\n');
    return EV_OK;
}

/* ---- the command ---- */

/* --out, or a new bundle of the same kind beside it; malloc'ed. */
static ev_status choose_out(const cli_args *args, char **out, ev_error *err) {
    const char *given = cli_text(args, CLI_OPT_QUALIFY_OUT), *path = args->operands[0];
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    ev_str text = EV_STR_EMPTY;
    if (given != NULL)
        ev_str_append(&text, given);
    else if (bundle_is_tar_name(path))
        ev_str_printf(&text, "%.*s-qualified.tar", (int)length - 4, path);
    else
        ev_str_printf(&text, "%.*s-qualified", (int)length, path);
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK && given == NULL && ev_path_exists(ev_str_text(&text)))
        status = ev_fail(err, EV_BAD,
                         "%s exists; name it with --out to replace it, or choose another folder",
                         ev_str_text(&text));
    if (status == EV_OK)
        *out = ev_str_take(&text);
    ev_str_free(&text);
    return status;
}

static void warn(const char *text) {
    (void)fprintf(stderr, "%s\n", text);
}

ev_status cmd_qualify(cmd_context *c, ev_error *err) {
    char *out = NULL;
    double seconds = cli_real(c->args, CLI_OPT_QUALIFY_SECONDS, 0);
    sign_key *key = NULL;
    EV_TRY(cmd_read_key(c, &key, err));
    ev_status chosen = choose_out(c->args, &out, err);
    if (chosen != EV_OK) {
        sign_key_free(key);
        return chosen;
    }
    qualify q = {.device = c->args->values[CLI_OPT_QUALIFY_DEVICE],
                 .only = cli_text(c->args, CLI_OPT_QUALIFY_ONLY),
                 .until = seconds > 0 ? ev_clock_now() + seconds : 0,
                 .key = key,
                 .trust = {cli_flag(c->args, CLI_OPT_TRUST_ORACLE), warn},
                 .rows = json_array(),
                 .variants = json_array()};
    ev_status status = qualify_bundle(&q, c->args->operands[0], out, err);
    sign_key_free(key);
    ev_error ignored;
    if (status == EV_OK)
        status = print_findings(c, &q, out, err);
    else if (q.judged > 0) /* the machine failed on the way: what is known is told */
        (void)(print_findings(c, &q, out, &ignored) == EV_OK);
    json_decref(q.rows);
    json_decref(q.variants);
    free(out);
    return status;
}
