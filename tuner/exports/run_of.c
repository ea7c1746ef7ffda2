/* Opens a records file for the formats that list evaluations. */
#include "tuner/exports/run_of.h"

#include "base/json.h"
#include "base/str.h"

#include <string.h>

static ev_status fail_task(const exports_request *r, const exports_run *run, ev_error *err) {
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < run->all_count; i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", run->all[i].kernel);
    ev_status status =
        ev_fail(err, EV_BAD, "--only %s: %s has no such task with a result; it has %s", r->only,
                r->records, run->all_count > 0 ? ev_str_text(&known) : "none");
    ev_str_free(&known);
    return status;
}

ev_status exports_run_open(const exports_request *r, exports_run *out, ev_error *err) {
    *out = (exports_run){0};
    EV_TRY(records_open_read(r->records, &out->records, err));
    EV_TRY(records_winners(out->records, &out->all, &out->all_count, err));
    out->winners = out->all;
    out->count = out->all_count;
    if (r->only != NULL) {
        size_t at = 0;
        while (at < out->all_count && strcmp(out->all[at].kernel, r->only) != 0)
            at++;
        if (at == out->all_count)
            return fail_task(r, out, err);
        out->winners = &out->all[at];
        out->count = 1;
    }
    if (out->count == 0)
        return ev_fail(err, EV_BAD,
                       "%s: no task in it has a result yet; let evoke tune finish, or continue it "
                       "with --resume",
                       r->records);
    return EV_OK;
}

void exports_run_close(exports_run *run) {
    records_winners_free(run->all, run->all_count);
    records_close(run->records);
    *run = (exports_run){0};
}

const char *exports_run_kind(const records_winner *w) {
    json_t *rows = json_loads(w->rows, 0, NULL);
    const char *kind = ev_json_text(json_array_get(rows, 0), "time_kind", "modelled");
    bool is_measured = strcmp(kind, "measured") == 0;
    json_decref(rows);
    return is_measured ? "measured" : "modelled";
}
