/* evoke export: records to bundle, and the ways to the other formats. */
#include "tuner/cli/cmd.h"

#include "bundle/bundle.h"
#include "tuner/exports/exports.h"
#include "tuner/run/export.h"

#include <stdio.h>
#include <string.h>

/* ---- formats of other programs ---- */

static void warn_stderr(const char *text) {
    (void)fprintf(stderr, "evoke: %s\n", text);
}

static ev_status check_words(const cmd_context *c, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_MERGE) || cli_text(c->args, CLI_OPT_SIGN) != NULL)
        return ev_fail(err, EV_BAD, "--merge and --sign are for bundles, and --to %s writes none",
                       c->args->values[CLI_OPT_TO]);
    if (c->args->operand_count > 1)
        return ev_fail(err, EV_BAD, "%s: export --to %s takes one bundle; merge several first",
                       c->args->operands[1], c->args->values[CLI_OPT_TO]);
    return EV_OK;
}

static ev_status print_summary(cmd_context *c, json_t *summary, ev_error *err) {
    json_t *lines = json_object_get(summary, "lines");
    for (size_t i = 0; i < json_array_size(lines) && !cli_flag(c->args, CLI_OPT_JSON); i++)
        ev_str_printf(c->out, "%s\n", json_string_value(json_array_get(lines, i)));
    if (!cli_flag(c->args, CLI_OPT_JSON)) {
        json_decref(summary);
        return EV_OK;
    }
    (void)json_object_del(summary, "lines");
    return cmd_print_json(c, summary, err);
}

static ev_status export_format(cmd_context *c, const exports_format *format, ev_error *err) {
    const cli_args *a = c->args;
    json_t *summary = NULL;
    EV_TRY(check_words(c, err));
    const exports_request r = {
        .bundle = a->operand_count > 0 ? a->operands[0] : NULL,
        .records = cli_text(a, CLI_OPT_RECORDS),
        .out = cli_text(a, CLI_OPT_EXPORT_OUT),
        .only = cli_text(a, CLI_OPT_EXPORT_ONLY),
        .network = cli_text(a, CLI_OPT_NETWORK),
        .base = cli_text(a, CLI_OPT_EXPORT_BASE),
        .job = cli_text(a, CLI_OPT_JOB),
        .gpu = cli_text(a, CLI_OPT_GPU),
        .batch = cli_count(a, CLI_OPT_BATCH, 0),
        .density = cli_real(a, CLI_OPT_DENSITY, -1),
        .base_is_us = a->values[CLI_OPT_BASE_UNIT][0] == 'u',
        .only_faster = cli_flag(a, CLI_OPT_ONLY_FASTER),
        .warn = warn_stderr,
    };
    EV_TRY(exports_write(format, &r, &summary, err));
    if (summary == NULL)
        return ev_fail_memory(err, 1);
    return print_summary(c, summary, err);
}

/* ---- bundles ---- */

/* Options of the other formats have no meaning for a bundle and a header. */
static ev_status refuse_others(const cmd_context *c, ev_error *err) {
    static const cli_option others[] = {CLI_OPT_NETWORK, CLI_OPT_EXPORT_BASE, CLI_OPT_BASE_UNIT,
                                        CLI_OPT_JOB,     CLI_OPT_BATCH,       CLI_OPT_DENSITY,
                                        CLI_OPT_GPU,     CLI_OPT_ONLY_FASTER, CLI_OPT_EXPORT_ONLY};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (c->args->given[others[i]])
            return ev_fail(err, EV_BAD,
                           "--%s is for other formats than --to %s; evoke export --help",
                           cli_options[others[i]].name, c->args->values[CLI_OPT_TO]);
    }
    return EV_OK;
}

ev_status cmd_export(cmd_context *c, ev_error *err) {
    const exports_format *format = exports_find(c->args->values[CLI_OPT_TO]);
    if (format != NULL)
        return export_format(c, format, err);
    EV_TRY(refuse_others(c, err));
    if (strcmp(c->args->values[CLI_OPT_TO], "c-header") == 0)
        return cmd_header(c, err);
    if (cli_flag(c->args, CLI_OPT_MERGE))
        return cmd_merge(c, err);
    if (c->args->operand_count > 0)
        return ev_fail(err, EV_BAD, "%s: export takes a bundle with --merge or --to FORMAT alone",
                       c->args->operands[0]);
    const char *records = cli_text(c->args, CLI_OPT_RECORDS);
    const char *out = cli_text(c->args, CLI_OPT_EXPORT_OUT);
    if (records == NULL || out == NULL)
        return ev_fail(err, EV_BAD, "export needs --records FILE and --out BUNDLE");
    export_summary summary = {0};
    sign_key *key = NULL;
    EV_TRY(cmd_read_key(c, &key, err));
    ev_status status = export_bundle(records, out, key, &summary, err);
    sign_key_free(key);
    EV_TRY(status);
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c,
                              json_pack("{s:s, s:I, s:I}", "bundle", out, "kernels",
                                        (json_int_t)summary.kernels, "variants",
                                        (json_int_t)summary.variants),
                              err);
    ev_str_printf(c->out, "%s: %zu kernels, %zu with a promoted variant\n", out, summary.kernels,
                  summary.variants);
    return EV_OK;
}
