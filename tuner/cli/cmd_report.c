/* evoke report: a page about a run. */
#include "tuner/cli/cmd.h"

#include "base/file.h"
#include "tuner/report/report.h"

ev_status cmd_report(cmd_context *c, ev_error *err) {
    const char *records = cli_text(c->args, CLI_OPT_RECORDS);
    const char *out = cli_text(c->args, CLI_OPT_REPORT_OUT);
    ev_str page = EV_STR_EMPTY;
    if (records == NULL || out == NULL)
        return ev_fail(err, EV_BAD, "report needs --records FILE and --out PAGE.html");
    ev_status status = report_records(records, &page, err);
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
