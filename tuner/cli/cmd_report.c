/* evoke report: a page about a run or a bundle. */
#include "tuner/cli/cmd.h"

#include "base/file.h"
#include "bundle/bundle.h"
#include "tuner/report/report.h"

/* The file or folder that the page is about: the operand, or --records. */
static ev_status find_subject(const cmd_context *c, const char **path, ev_error *err) {
    const char *records = cli_text(c->args, CLI_OPT_RECORDS);
    const char *operand = c->args->operand_count > 0 ? c->args->operands[0] : NULL;
    if (operand != NULL && records != NULL)
        return ev_fail(err, EV_BAD, "report takes %s or --records %s, not both", operand, records);
    *path = operand != NULL ? operand : records;
    if (*path == NULL || cli_text(c->args, CLI_OPT_REPORT_OUT) == NULL)
        return ev_fail(err, EV_BAD, "report needs records or a bundle, and --out PAGE.html");
    return EV_OK;
}

ev_status cmd_report(cmd_context *c, ev_error *err) {
    const char *path = NULL, *out = cli_text(c->args, CLI_OPT_REPORT_OUT);
    ev_str page = EV_STR_EMPTY;
    EV_TRY(find_subject(c, &path, err));
    ev_status status = ev_path_is_dir(path) || bundle_is_tar_name(path)
                           ? report_bundle(path, &page, err)
                           : report_records(path, &page, err);
    if (status == EV_OK)
        status = ev_file_write(out, ev_str_text(&page), page.length, err);
    if (status == EV_OK && cli_flag(c->args, CLI_OPT_JSON))
        status = cmd_print_json(
            c, json_pack("{s:s, s:I}", "page", out, "bytes", (json_int_t)page.length), err);
    else if (status == EV_OK)
        ev_str_printf(c->out, "%s: %.0f kB\n", out, (double)page.length / 1000);
    ev_str_free(&page);
    return status;
}
