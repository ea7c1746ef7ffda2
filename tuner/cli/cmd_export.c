/* evoke export: records to bundle. */
#include "tuner/cli/cmd.h"

#include "bundle/bundle.h"
#include "tuner/run/export.h"

#include <string.h>

ev_status cmd_export(cmd_context *c, ev_error *err) {
    if (strcmp(c->args->values[CLI_OPT_TO], "c-header") == 0)
        return cmd_header(c, err);
    if (cli_flag(c->args, CLI_OPT_MERGE))
        return cmd_merge(c, err);
    if (c->args->operand_count > 0)
        return ev_fail(err, EV_BAD, "%s: export takes bundles with --merge or --to c-header alone",
                       c->args->operands[0]);
    const char *records = cli_text(c->args, CLI_OPT_RECORDS);
    const char *out = cli_text(c->args, CLI_OPT_OUT);
    if (records == NULL || out == NULL)
        return ev_fail(err, EV_BAD, "export needs --records FILE and --out BUNDLE");
    export_summary summary = {0};
    sign_key *key = NULL;
    EV_TRY(cmd_read_key(c, &key, err));
    ev_status status = export_bundle(records, out, &summary, err);
    if (status == EV_OK && key != NULL)
        status = bundle_sign(out, key, err);
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
