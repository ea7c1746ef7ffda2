/* CSV (RFC 4180): a row an evaluation of a run, or a row a case of a bundle's baselines, starts and
 * variants. The first row names the columns; each row says whether its time is modelled. Times are
 * nanoseconds; an empty field is a value that is not known. */
#include "tuner/exports/inside.h"
#include "tuner/exports/run_of.h"

#include "bundle/reader.h"

#include <string.h>

typedef struct csv {
    ev_str text;
    bool is_started; /* the row at hand has a field */
    size_t rows;
    const char *task, *kind, *device;
} csv;

/* ---- fields ---- */

static void begin_field(csv *c) {
    if (c->is_started)
        ev_str_char(&c->text, ',');
    c->is_started = true;
}

static void add_text(csv *c, const char *text) {
    begin_field(c);
    if (text[strcspn(text, ",\"\r\n")] == '\0') {
        ev_str_append(&c->text, text);
        return;
    }
    ev_str_char(&c->text, '"');
    for (; *text != '\0'; text++) {
        if (*text == '"')
            ev_str_char(&c->text, '"');
        ev_str_char(&c->text, *text);
    }
    ev_str_char(&c->text, '"');
}

static void add_whole(csv *c, uint64_t value) {
    begin_field(c);
    ev_str_printf(&c->text, "%llu", (unsigned long long)value);
}

static void add_real(csv *c, double value, bool is_known) {
    begin_field(c);
    if (is_known)
        ev_str_printf(&c->text, "%.17g", value);
}

static void end_row(csv *c) {
    ev_str_append(&c->text, "\r\n");
    c->is_started = false;
    c->rows++;
}

static void add_header(csv *c, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        add_text(c, names[i]);
    end_row(c);
    c->rows = 0;
}

/* ---- a run ---- */

static ev_status add_evaluation(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    csv *c = context;
    const char *sha256 = e->hashes[SEARCH_BY_GENOME];
    add_text(c, c->task);
    add_text(c, c->device);
    add_whole(c, e->number);
    add_text(c, e->parents);
    add_text(c, e->operators);
    add_text(c, e->gate);
    add_text(c, e->reason);
    add_real(c, e->ns, e->ns > 0);
    add_text(c, e->ns > 0 ? c->kind : "");
    add_real(c, e->error, e->ns > 0);
    add_whole(c, e->bold);
    add_real(c, e->seconds, true);
    add_text(c, sha256 != NULL ? sha256 : "");
    end_row(c);
    return EV_OK;
}

static ev_status list_run(const exports_request *r, csv *c, ev_error *err) {
    static const char *const columns[] = {
        "task", "device",    "number", "parents",    "operators", "gate",          "reason",
        "ns",   "time_kind", "error",  "bold_edits", "seconds",   "genome_sha256",
    };
    exports_run run;
    ev_status status = exports_run_open(r, &run, err);
    add_header(c, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < run.count && status == EV_OK; i++) {
        c->task = run.winners[i].kernel;
        c->device = run.winners[i].device;
        c->kind = exports_run_kind(&run.winners[i]);
        exports_warn(r, "%s: the times are %s%s", c->task, c->kind,
                     strcmp(c->kind, "modelled") == 0 ? "; no GPU has run them" : "");
        status = records_each(run.records, run.winners[i].task, "search", add_evaluation, c, err);
    }
    exports_run_close(&run);
    return status;
}

/* ---- a bundle ---- */

static void add_shape(csv *c, const bundle_case *at) {
    ev_str shape = EV_STR_EMPTY;
    for (size_t i = 0; i < at->shape_count; i++)
        ev_str_printf(&shape, "%s%s=%.17g", i > 0 ? " " : "", at->shape[i].name,
                      at->shape[i].value);
    add_text(c, ev_str_text(&shape));
    c->text.failed = c->text.failed || shape.failed;
    ev_str_free(&shape);
}

static void list_variant(csv *c, const bundle_kernel *k, const bundle_variant *v,
                         const char *role) {
    const char *kind = v->modelled ? "modelled" : "measured";
    for (size_t i = 0; i < v->case_count; i++) {
        const bundle_case *at = &v->cases[i];
        add_text(c, k->name);
        add_text(c, v->gpu_id);
        add_text(c, role);
        add_text(c, v->start);
        add_text(c, at->name);
        add_text(c, at->split);
        add_shape(c, at);
        add_real(c, at->ns, at->ns > 0);
        add_real(c, at->low_ns, at->ns > 0);
        add_real(c, at->high_ns, at->ns > 0);
        add_real(c, at->baseline_ns, at->baseline_ns > 0);
        add_text(c, at->ns > 0 ? kind : "");
        add_real(c, at->error, at->error >= 0);
        add_real(c, v->tolerance, true);
        add_text(c, v->sha256.hex);
        end_row(c);
    }
}

static void list_kernel(csv *c, const bundle_kernel *k) {
    for (size_t i = 0; i < k->baseline_count; i++)
        list_variant(c, k, &k->baselines[i], "baseline");
    for (size_t i = 0; i < k->start_count; i++)
        list_variant(c, k, &k->starts[i], "start");
    for (size_t i = 0; i < k->variant_count; i++)
        list_variant(c, k, &k->variants[i], "variant");
}

static ev_status list_bundle(const exports_request *r, csv *c, ev_error *err) {
    static const char *const columns[] = {
        "kernel", "gpu",     "role",        "start",     "case",  "split",     "shape",      "ns",
        "low_ns", "high_ns", "baseline_ns", "time_kind", "error", "tolerance", "ptx_sha256",
    };
    bundle *b = NULL;
    EV_TRY(bundle_open_lazy(r->bundle, &b, err));
    ev_status status = EV_OK;
    if (r->only != NULL && bundle_find(b, r->only) == NULL)
        status = bundle_fail_kernel(b, r->only, err);
    add_header(c, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < bundle_kernel_count(b); i++) {
        const bundle_kernel *k = bundle_kernel_at(b, i);
        if (r->only == NULL || strcmp(r->only, k->name) == 0)
            list_kernel(c, k);
    }
    if (status == EV_OK)
        exports_warn(r,
                     "the column time_kind says of each time whether it is modelled or measured");
    bundle_close(b);
    return status;
}

ev_status exports_write_csv(const exports_request *r, json_t **summary, ev_error *err) {
    csv c = {.text = EV_STR_EMPTY};
    ev_status status = r->records != NULL ? list_run(r, &c, err) : list_bundle(r, &c, err);
    if (status == EV_OK)
        status = exports_put(r->out, &c.text, err);
    ev_str_free(&c.text);
    EV_TRY(status);
    char line[400];
    (void)snprintf(line, sizeof line, "%s: %zu rows", r->out, c.rows);
    *summary = json_pack("{s:s, s:[s], s:I, s:[s]}", "to", "csv", "files", r->out, "rows",
                         (json_int_t)c.rows, "lines", line);
    return EV_OK;
}
