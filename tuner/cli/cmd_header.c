/* evoke export --to c-header: a bundle as one C header. */
#include "tuner/cli/cmd.h"

#include "base/file.h"
#include "bundle/header/c_header.h"
#include "bundle/reader.h"

#include <string.h>

static ev_status write_header(cmd_context *c, const bundle *b, const char *out, ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_status status = c_header_make(b, &text, err);
    if (status == EV_OK)
        status = ev_file_write(out, ev_str_text(&text), text.length, err);
    size_t bytes = text.length;
    ev_str_free(&text);
    EV_TRY(status);
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c,
                              json_pack("{s:s, s:I, s:I}", "header", out, "kernels",
                                        (json_int_t)bundle_kernel_count(b), "bytes",
                                        (json_int_t)bytes),
                              err);
    ev_str_printf(c->out, "%s: %zu kernels, %zu bytes\n", out, bundle_kernel_count(b), bytes);
    return EV_OK;
}

ev_status cmd_header(cmd_context *c, ev_error *err) {
    const char *out = cli_text(c->args, CLI_OPT_EXPORT_OUT);
    bundle *b = NULL;
    if (out == NULL || c->args->operand_count != 1 || cli_flag(c->args, CLI_OPT_MERGE) ||
        cli_text(c->args, CLI_OPT_RECORDS) != NULL)
        return ev_fail(err, EV_BAD,
                       "export --to c-header needs one bundle and --out FILE.h; make the bundle "
                       "first, by tune, export --records or export --merge");
    EV_TRY(bundle_open(c->args->operands[0], &b, err));
    ev_status status = write_header(c, b, out, err);
    bundle_close(b);
    return status;
}
