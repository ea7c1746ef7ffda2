/* T4: the results format that the auto-tuning community agreed on at the Lorentz Center in 2022,
 * schema version 1.0.0 (github.com/odgaard/TuningSchema, branch T4): an object for each evaluated
 * configuration.
 *
 * A configuration is a genome: its start, its macros by name, and its edits as one text. Duplicates
 * (gate 0) are left out, since other tuners list a configuration once. Times are milliseconds. */
#include "tuner/exports/inside.h"
#include "tuner/exports/run_of.h"

#include "base/json.h"

#include <stdlib.h>
#include <string.h>

#define SCHEMA_VERSION "1.0.0"
#define NS_PER_MS 1e6

typedef struct listing {
    json_t *results;
    const char *kind;
    size_t duplicates;
} listing;

/* ---- one evaluation ---- */

/* The word of the schema for the gate that stopped a variant. The schema has none for a variant
 * that is correct so far and was not timed, because it would not have come into its parents' reach:
 * a constraint of the search. */
static const char *invalidity_of(const records_evaluation *e, const json_t *scored) {
    static const struct {
        const char *gate, *word;
    } words[] = {
        {"none", "correct"},         {"verify", "compile"},       {"emit", "compile"},
        {"safe", "runtime"},         {"accurate", "correctness"}, {"timed", "correctness"},
        {"promoted", "correctness"},
    };
    if (ev_json_flag(scored, "filtered", false) || ev_json_integer(scored, "filtered", 0) == 1)
        return "constraints";
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i].gate, e->gate) == 0)
            return words[i].word;
    }
    return "constraints";
}

static json_t *configuration_of(const records_evaluation *e) {
    json_t *out = json_object();
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(json_object_get(e->genome, "macros"), name, value) {
        (void)json_object_set(out, name, value);
    }
    (void)json_object_set(out, "start", json_object_get(e->genome, "start"));
    char *edits = ev_json_print(json_object_get(e->genome, "edits"), true);
    (void)json_object_set_new(out, "edits", json_string(edits != NULL ? edits : ""));
    free(edits);
    return out;
}

static json_t *measurement(const char *name, double value, const char *unit) {
    return json_pack("{s:s, s:f, s:s}", "name", name, "value", value, "unit", unit);
}

static json_t *measurements_of(const records_evaluation *e, const json_t *scored,
                               const char *kind) {
    json_t *out = json_array();
    size_t i = 0;
    const json_t *at = NULL;
    if (e->ns > 0) {
        (void)json_array_append_new(out, measurement("time", e->ns / NS_PER_MS, "ms"));
        (void)json_array_append_new(out, measurement("relative_l2_error", e->error, ""));
        (void)json_array_append_new(
            out, json_pack("{s:s, s:s, s:s}", "name", "time_kind", "value", kind, "unit", ""));
    }
    json_array_foreach(json_object_get(scored, "cases"), i, at) {
        char name[160];
        double ns = ev_json_number(at, "ns", 0);
        (void)snprintf(name, sizeof name, "time.%s", ev_json_text(at, "name", ""));
        if (ns > 0)
            (void)json_array_append_new(out, measurement(name, ns / NS_PER_MS, "ms"));
    }
    return out;
}

static json_t *runtimes_of(const records_evaluation *e) {
    json_t *out = json_array();
    if (e->ns > 0)
        (void)json_array_append_new(out, json_real(e->ns / NS_PER_MS));
    return out;
}

static ev_status add_result(void *context, const records_evaluation *e, ev_error *err) {
    listing *l = context;
    if (e->genome == NULL || strcmp(e->gate, "seen") == 0) {
        l->duplicates++;
        return EV_OK;
    }
    json_t *scored = json_loads(e->score, 0, NULL);
    const char *invalidity = invalidity_of(e, scored);
    bool is_wrong = strcmp(invalidity, "correct") != 0 && strcmp(invalidity, "constraints") != 0;
    json_t *result = json_pack(
        "{s:o, s:[s], s:{s:o}, s:s, s:i, s:o}", "configuration", configuration_of(e), "objectives",
        "time", "times", "runtimes", runtimes_of(e), "invalidity", invalidity, "correctness",
        is_wrong ? 0 : 1, "measurements", measurements_of(e, scored, l->kind));
    json_decref(scored);
    if (result == NULL || json_array_append_new(l->results, result) != 0)
        return ev_fail_memory(err, sizeof *l);
    return EV_OK;
}

/* ---- the file ---- */

/* Other tuners tune one kernel in one file. */
static ev_status check_one(const exports_request *r, const exports_run *run, ev_error *err) {
    ev_str names = EV_STR_EMPTY;
    if (run->count == 1)
        return EV_OK;
    for (size_t i = 0; i < run->count; i++)
        ev_str_printf(&names, "%s%s", i > 0 ? ", " : "", run->winners[i].kernel);
    ev_status status =
        ev_fail(err, EV_BAD, "%s has the tasks %s, and a T4 file holds one; choose by --only",
                r->records, ev_str_text(&names));
    ev_str_free(&names);
    return status;
}

static ev_status write_results(const exports_request *r, const listing *l, ev_error *err) {
    json_t *root = json_pack("{s:s, s:O}", "schema_version", SCHEMA_VERSION, "results", l->results);
    char *text = root != NULL ? ev_json_print(root, false) : NULL;
    json_decref(root);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str file = EV_STR_EMPTY;
    ev_str_append(&file, text);
    ev_str_char(&file, '\n');
    free(text);
    ev_status status = exports_put(r->out, &file, err);
    ev_str_free(&file);
    return status;
}

static ev_status write_run(const exports_request *r, const exports_run *run, json_t **summary,
                           ev_error *err) {
    const records_winner *w = &run->winners[0];
    listing l = {.results = json_array(), .kind = exports_run_kind(w)};
    ev_status status = check_one(r, run, err);
    if (status == EV_OK)
        status = records_each(run->records, w->task, "search", add_result, &l, err);
    if (status == EV_OK)
        status = write_results(r, &l, err);
    size_t count = json_array_size(l.results);
    json_decref(l.results);
    EV_TRY(status);
    exports_warn(r, "%s: the times are %s%s", w->kernel, l.kind,
                 strcmp(l.kind, "modelled") == 0 ? "; no GPU has run them" : "");
    *summary =
        json_pack("{s:s, s:[s], s:I, s:I, s:s}", "to", "t4", "files", r->out, "results",
                  (json_int_t)count, "duplicates", (json_int_t)l.duplicates, "time_kind", l.kind);
    char line[400];
    (void)snprintf(line, sizeof line, "%s: %zu results of %s; %zu duplicates are left out", r->out,
                   count, w->kernel, l.duplicates);
    (void)json_object_set_new(*summary, "lines", json_pack("[s]", line));
    return EV_OK;
}

ev_status exports_write_t4(const exports_request *r, json_t **summary, ev_error *err) {
    exports_run run;
    ev_status status = exports_run_open(r, &run, err);
    if (status == EV_OK)
        status = write_run(r, &run, summary, err);
    exports_run_close(&run);
    return status;
}
