/* Tune, report: the text at the end of a run, and the rows of the final table as JSON for records
 * and bundles. */
#include "tuner/run/tune_inside.h"

#include "base/json.h"

#include <stdio.h>
#include <stdlib.h>

const char *const tune_stage_names[8] = {WORKER_PART_NAMES, "coordinator"};

double tune_timer_share(const tune_report *report) {
    double all = report->timers * report->search_seconds;
    return all > 0 ? report->timer_seconds / all : 0;
}

void tune_report_free(tune_report *report) {
    free(report->rows);
    free(report->wrong);
    json_decref(report->portfolios);
    json_decref(report->genomes);
    *report = (tune_report){0};
}

json_t *tune_timers_json(const tune_report *r) {
    return json_pack("{s:i, s:i, s:f, s:I}", "timers", (int)r->timers, "screeners",
                     (int)(r->workers - r->timers), "busy", tune_timer_share(r), "let_through",
                     (json_int_t)r->let_through);
}

json_t *tune_wrong_json(const tune_report *r) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < r->wrong_count; i++) {
        const wrong_setting *s = &r->wrong[i].setting;
        json_t *one =
            json_pack("{s:s, s:s, s:s, s:s, s:s}", "kernel", r->wrong[i].kernel, "start", s->start,
                      "macros", s->macros, "gate", gate_name(s->at), "reason", s->reason);
        if (json_array_append_new(list, one) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

ev_status wrong_append(tune_report *report, const char *kernel, const wrong_setting *setting,
                       ev_error *err) {
    size_t count = report->wrong_count + 1;
    tune_wrong *more = realloc(report->wrong, count * sizeof *more);
    if (!more)
        return ev_fail_memory(err, count * sizeof *more);
    report->wrong = more;
    tune_wrong *w = &more[report->wrong_count++];
    *w = (tune_wrong){.setting = *setting};
    snprintf(w->kernel, sizeof w->kernel, "%s", kernel);
    return EV_OK;
}

ev_status portfolio_append(tune_report *report, const char *kernel, const char *text,
                           ev_error *err) {
    ev_json *doc = NULL;
    if (text[0] == '\0')
        return EV_OK;
    EV_TRY(ev_json_parse(text, "the portfolio of a winner", &doc, err));
    json_t *variants = json_object_get(doc->root, "variants"), *one = NULL;
    size_t i = 0;
    json_array_foreach(variants, i, one) {
        (void)json_object_del(one, "ptx");
        (void)json_object_del(one, "score");
        (void)json_object_del(one, "stress");
    }
    (void)json_object_set_new(doc->root, "kernel", json_string(kernel));
    if (!report->portfolios)
        report->portfolios = json_array();
    bool ok = json_array_append(report->portfolios, doc->root) == 0;
    ev_json_free(doc);
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

ev_status genomes_append(tune_report *report, const char *sha256, const char *text, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(text, "the genome of a winner", &doc, err));
    if (!report->genomes)
        report->genomes = json_object();
    bool ok = json_object_set(report->genomes, sha256, doc->root) == 0;
    ev_json_free(doc);
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

/* ---- rows ---- */

static json_t *fronts_json(const tune_row *r) {
    return json_pack("{s:{s:i,s:f},s:{s:i,s:f,s:f}}", "exact", "variants", (int)r->exact_count,
                     "speedup", r->exact_speedup, "tolerant", "variants", (int)r->tolerant_count,
                     "speedup", r->tolerant_speedup, "error", r->tolerant_error);
}

static void fronts_from_json(tune_row *r, const json_t *json) {
    const json_t *exact = json_object_get(json, "exact");
    const json_t *tolerant = json_object_get(json, "tolerant");
    r->exact_count = (unsigned)ev_json_integer(exact, "variants", 0);
    r->exact_speedup = ev_json_number(exact, "speedup", 0);
    r->tolerant_count = (unsigned)ev_json_integer(tolerant, "variants", 0);
    r->tolerant_speedup = ev_json_number(tolerant, "speedup", 0);
    r->tolerant_error = ev_json_number(tolerant, "error", 0);
}

static void set_interval(json_t *row, const char *low_key, double low, const char *high_key,
                         double high) {
    if (!(low > 0))
        return;
    (void)json_object_set_new(row, low_key, json_real(low));
    (void)json_object_set_new(row, high_key, json_real(high));
}

json_t *rows_to_json(const tune_row *rows, size_t count) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++) {
        const tune_row *r = &rows[i];
        json_t *row =
            json_pack("{s:s,s:s,s:s,s:s,s:s,s:f,s:f,s:f,s:f,s:f,s:f,s:b,s:b,s:f,s:s,s:s}", "kernel",
                      r->kernel, "start", r->start, "case", r->at, "device", r->device, "time_kind",
                      r->modelled ? "modelled" : "measured", "baseline_ns", r->baseline_ns,
                      "hand_ns", r->hand_ns, "best_ns", r->best_ns, "speedup", r->speedup, "error",
                      r->error, "tolerance", r->tolerance, "promoted", r->promoted, "preserving",
                      r->preserving, "bold_speedup", r->bold_speedup, "genome_sha256",
                      r->genome_sha256, "ptx_sha256", r->ptx_sha256);
        /* a NULL fails the append below */
        (void)json_object_set_new(row, "fronts", fronts_json(r));
        (void)json_object_set_new(row, "at_floor", json_boolean(r->at_floor));
        if (r->alone_ns > 0)
            (void)json_object_set_new(row, "alone_ns", json_real(r->alone_ns));
        set_interval(row, "baseline_low_ns", r->baseline_low_ns, "baseline_high_ns",
                     r->baseline_high_ns);
        set_interval(row, "hand_low_ns", r->hand_low_ns, "hand_high_ns", r->hand_high_ns);
        if (r->floor_ns > 0) {
            (void)json_object_set_new(row, "floor_ns", json_real(r->floor_ns));
            (void)json_object_set_new(row, "floor_share",
                                      json_real(r->best_ns > 0 ? r->floor_ns / r->best_ns : 0));
        }
        if (json_array_append_new(list, row) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

ev_status rows_append(tune_report *report, const tune_row *row, ev_error *err) {
    size_t count = report->row_count + 1;
    tune_row *rows = realloc(report->rows, count * sizeof *rows);
    if (!rows)
        return ev_fail_memory(err, count * sizeof *rows);
    rows[report->row_count] = *row;
    report->rows = rows;
    report->row_count = count;
    return EV_OK;
}

#define COPY_TEXT(to, json, key) snprintf(to, sizeof(to), "%s", ev_json_text(json, key, ""))

static tune_row row_from_json(const json_t *json) {
    tune_row r = {
        .baseline_ns = ev_json_number(json, "baseline_ns", 0),
        .baseline_low_ns = ev_json_number(json, "baseline_low_ns", 0),
        .baseline_high_ns = ev_json_number(json, "baseline_high_ns", 0),
        .hand_ns = ev_json_number(json, "hand_ns", 0),
        .hand_low_ns = ev_json_number(json, "hand_low_ns", 0),
        .hand_high_ns = ev_json_number(json, "hand_high_ns", 0),
        .alone_ns = ev_json_number(json, "alone_ns", 0),
        .best_ns = ev_json_number(json, "best_ns", 0),
        .floor_ns = ev_json_number(json, "floor_ns", 0),
        .at_floor = ev_json_flag(json, "at_floor", false),
        .speedup = ev_json_number(json, "speedup", 0),
        .error = ev_json_number(json, "error", 0),
        .tolerance = ev_json_number(json, "tolerance", 0),
        .promoted = ev_json_flag(json, "promoted", false),
        .preserving = ev_json_flag(json, "preserving", false),
        .bold_speedup = ev_json_number(json, "bold_speedup", 0),
    };
    char kind[16];
    COPY_TEXT(kind, json, "time_kind");
    r.modelled = kind[0] == 'm' && kind[1] == 'o';
    COPY_TEXT(r.kernel, json, "kernel");
    COPY_TEXT(r.start, json, "start");
    COPY_TEXT(r.at, json, "case");
    COPY_TEXT(r.device, json, "device");
    COPY_TEXT(r.genome_sha256, json, "genome_sha256");
    COPY_TEXT(r.ptx_sha256, json, "ptx_sha256");
    fronts_from_json(&r, json_object_get(json, "fronts"));
    return r;
}

ev_status rows_append_json(tune_report *report, const char *text, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(text, "rows of a winner", &doc, err));
    ev_status status = EV_OK;
    for (size_t i = 0; status == EV_OK && i < json_array_size(doc->root); i++) {
        tune_row row = row_from_json(json_array_get(doc->root, i));
        status = rows_append(report, &row, err);
    }
    ev_json_free(doc);
    return status;
}
