/* Tells regressions apart, and sums findings up for each kernel. */
#include "tuner/check/verdict.h"

#include "base/json.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} verdicts[CHECK_VERDICT_COUNT] = {
#define CHECK_VERDICT(id, name, meaning) {name, meaning},
#include "tuner/check/verdicts.def"
#undef CHECK_VERDICT
};

const char *check_verdict_name(check_verdict verdict) {
    return verdicts[verdict].name;
}

const char *check_verdict_meaning(check_verdict verdict) {
    return verdicts[verdict].meaning;
}

/* ---- a result and its record ---- */

static const bundle_case *find_case(const bundle_variant *v, const char *name) {
    for (size_t i = 0; v != NULL && i < v->case_count; i++) {
        if (strcmp(v->cases[i].name, name) == 0)
            return &v->cases[i];
    }
    return NULL;
}

EV_PRINTF(3, 4)
static check_verdict say(char reason[CHECK_REASON_BYTES], check_verdict verdict, const char *format,
                         ...) {
    va_list args;
    va_start(args, format);
    (void)vsnprintf(reason, CHECK_REASON_BYTES, format, args);
    va_end(args);
    return verdict;
}

#define ERROR_SHARE 1e-6

static bool errors_differ(double a, double b) {
    return fabs(a - b) > ERROR_SHARE * fmax(fabs(a), fabs(b));
}

static check_verdict compare_exactly(const check_record *r, const bundle_case *said,
                                     const fitness_verdict *now, double baseline_ns, char *reason) {
    if (said->ns > 0 && now->ns > said->ns)
        return say(reason, CHECK_PERFORMANCE, "it takes %.17g ns, and %.17g ns are recorded",
                   now->ns, said->ns);
    if (r->is_same_oracle && said->error >= 0 && errors_differ(now->error, said->error))
        return say(reason, CHECK_DRIFT, "its error is %.17g, and %.17g is recorded", now->error,
                   said->error);
    if (said->ns > 0 && now->ns > 0 && now->ns < said->ns)
        return say(reason, CHECK_DRIFT, "it takes %.17g ns, and %.17g ns are recorded", now->ns,
                   said->ns);
    if (said->baseline_ns > 0 && baseline_ns > 0 && baseline_ns != said->baseline_ns)
        return say(reason, CHECK_DRIFT, "the baseline takes %.17g ns, and %.17g ns are recorded",
                   baseline_ns, said->baseline_ns);
    return CHECK_OK;
}

check_verdict check_against_record(const check_record *r, const char *case_name,
                                   const fitness_verdict *now, double baseline_ns,
                                   char reason[CHECK_REASON_BYTES]) {
    const bundle_case *said = find_case(r->v, case_name);
    if (said == NULL)
        return CHECK_OK;
    if (r->is_same_model)
        return compare_exactly(r, said, now, baseline_ns, reason);
    double low = now->low_ns > 0 ? now->low_ns : now->ns;
    double high = now->baseline_high_ns > 0 ? now->baseline_high_ns : baseline_ns;
    if (said->ns > 0 && said->ns < said->baseline_ns && high > 0 && low > high)
        return say(
            reason, CHECK_PERFORMANCE,
            "it is slower than the baseline, %.6g ns (%s) against %.6g ns, and faster by the "
            "record",
            now->ns, r->is_measured ? "measured" : "modelled", baseline_ns);
    return CHECK_OK;
}

/* ---- rows ---- */

void check_mark(json_t *row, check_verdict kind, const char *reason) {
    char text[2048];
    (void)snprintf(text, sizeof text, "%s", reason);
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c > 126)
            *c = '?';
    }
    (void)json_object_set_new(row, "verdict", json_string("fail"));
    (void)json_object_set_new(row, "kind", json_string(check_verdict_name(kind)));
    (void)json_object_set_new(row, "reason", json_string(text));
}

bool check_is_skipped(const json_t *row) {
    return strcmp(ev_json_text(row, "verdict", ""), "disabled") == 0;
}

/* The kind of a row; CHECK_OK: it is no finding. */
static check_verdict kind_of(const json_t *row, check_verdict otherwise) {
    const char *verdict = ev_json_text(row, "verdict", ""), *kind = ev_json_text(row, "kind", "");
    if (strcmp(verdict, "pass") == 0 || check_is_skipped(row))
        return CHECK_OK;
    for (int i = 0; i < CHECK_VERDICT_COUNT; i++) {
        if (strcmp(verdicts[i].name, kind) == 0)
            return (check_verdict)i;
    }
    return otherwise;
}

static json_t *kernel_in(json_t *kernels, const char *name) {
    size_t i = 0;
    json_t *kernel = NULL;
    json_array_foreach(kernels, i, kernel) {
        if (strcmp(ev_json_text(kernel, "kernel", ""), name) == 0)
            return kernel;
    }
    kernel = json_pack("{s:s, s:s}", "kernel", name, "verdict", check_verdict_name(CHECK_OK));
    for (int k = CHECK_OK + 1; k < CHECK_VERDICT_COUNT; k++)
        (void)json_object_set_new(kernel, verdicts[k].name, json_integer(0));
    (void)json_array_append_new(kernels, kernel);
    return kernel;
}

static void add_rows(json_t *kernels, const json_t *rows, check_verdict otherwise) {
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        json_t *kernel = kernel_in(kernels, ev_json_text(row, "kernel", ""));
        check_verdict kind = kind_of(row, otherwise);
        if (kind == CHECK_OK)
            continue;
        const char *name = verdicts[kind].name;
        json_int_t count = ev_json_integer(kernel, name, 0) + 1;
        (void)json_object_set_new(kernel, name, json_integer(count));
    }
}

json_t *check_kernels(const json_t *rows, const json_t *replays, const json_t *stresses) {
    json_t *kernels = json_array(), *kernel = NULL;
    size_t i = 0;
    add_rows(kernels, rows, CHECK_ACCURACY);
    add_rows(kernels, replays, CHECK_DRIFT);
    add_rows(kernels, stresses, CHECK_ACCURACY);
    json_array_foreach(kernels, i, kernel) {
        for (int k = CHECK_OK + 1; k < CHECK_VERDICT_COUNT; k++) {
            if (ev_json_integer(kernel, verdicts[k].name, 0) > 0)
                (void)json_object_set_new(kernel, "verdict", json_string(verdicts[k].name));
        }
    }
    return kernels;
}
