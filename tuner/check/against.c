/* Compares two bundles case by case, by the best that each has for a GPU model. */
#include "tuner/check/against.h"

#include "base/json.h"

#include <string.h>

/* The fastest at a case. */
typedef struct best {
    const bundle_variant *v; /* NULL: none */
    const bundle_case *at;
} best;

static void consider(best *b, const bundle_variant *list, size_t count, const char *gpu,
                     const char *case_name, bool modelled) {
    for (size_t i = 0; i < count; i++) {
        const bundle_variant *v = &list[i];
        if (v->disabled != NULL || v->modelled != modelled || strcmp(v->gpu_id, gpu) != 0 ||
            (v->is_bold && !v->is_default))
            continue;
        for (size_t c = 0; c < v->case_count; c++) {
            const bundle_case *at = &v->cases[c];
            if (at->ns > 0 && strcmp(at->name, case_name) == 0 &&
                (b->v == NULL || at->ns < b->at->ns))
                *b = (best){v, at};
        }
    }
}

static best best_of(const bundle_kernel *k, const char *gpu, const char *case_name, bool modelled) {
    best b = {0};
    if (k == NULL)
        return b;
    consider(&b, k->variants, k->variant_count, gpu, case_name, modelled);
    consider(&b, k->starts, k->start_count, gpu, case_name, modelled);
    consider(&b, k->baselines, k->baseline_count, gpu, case_name, modelled);
    return b;
}

/* Modelled times are exact, and have intervals without width. */
static const char *compare(const best *old, const best *now, double slack) {
    if (now->v == NULL)
        return "lost";
    if (now->at->low_ns > old->at->high_ns * (1 + slack))
        return "slower";
    if (old->at->error >= 0 && now->at->error > old->at->error)
        return "less accurate";
    return now->at->high_ns < old->at->low_ns ? "better" : "same";
}

static void set_error(json_t *row, const char *key, const best *b) {
    if (b->v != NULL && b->at->error >= 0)
        (void)json_object_set_new(row, key, json_real(b->at->error));
}

static bool is_told(const json_t *rows, const char *kernel, const char *gpu, const char *name,
                    const char *kind) {
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (strcmp(ev_json_text(row, "kernel", ""), kernel) == 0 &&
            strcmp(ev_json_text(row, "gpu", ""), gpu) == 0 &&
            strcmp(ev_json_text(row, "case", ""), name) == 0 &&
            strcmp(ev_json_text(row, "time_kind", ""), kind) == 0)
            return true;
    }
    return false;
}

/* A comparison under way. */
typedef struct comparison {
    double slack;
    json_t *rows;
    size_t *worse;
    ev_error *err;
} comparison;

static ev_status compare_case(const comparison *x, const bundle_kernel *old,
                              const bundle_kernel *now, const bundle_variant *v,
                              const bundle_case *at) {
    const char *kind = v->modelled ? "modelled" : "measured";
    if (is_told(x->rows, old->name, v->gpu_id, at->name, kind))
        return EV_OK;
    best before = best_of(old, v->gpu_id, at->name, v->modelled);
    best after = best_of(now, v->gpu_id, at->name, v->modelled);
    if (before.v == NULL)
        return EV_OK; /* only disabled ones were timed there */
    const char *verdict = compare(&before, &after, x->slack);
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:f, s:s}", "kernel", old->name, "gpu", v->gpu_id, "case",
                  at->name, "time_kind", kind, "old_ns", before.at->ns, "verdict", verdict);
    if (row == NULL)
        return ev_fail_memory(x->err, 1);
    if (after.v != NULL)
        (void)json_object_set_new(row, "new_ns", json_real(after.at->ns));
    set_error(row, "old_error", &before);
    set_error(row, "new_error", &after);
    *x->worse += strcmp(verdict, "same") != 0 && strcmp(verdict, "better") != 0;
    (void)json_array_append_new(x->rows, row);
    return EV_OK;
}

static ev_status compare_list(const comparison *x, const bundle_kernel *old,
                              const bundle_kernel *now, const bundle_variant *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        for (size_t c = 0; c < list[i].case_count; c++) {
            if (list[i].cases[c].ns > 0)
                EV_TRY(compare_case(x, old, now, &list[i], &list[i].cases[c]));
        }
    }
    return EV_OK;
}

ev_status check_bundles_against(const bundle *old, const bundle *now, double slack, json_t *rows,
                                size_t *worse, ev_error *err) {
    const comparison x = {slack, rows, worse, err};
    *worse = 0;
    for (size_t i = 0; i < bundle_kernel_count(old); i++) {
        const bundle_kernel *k = bundle_kernel_at(old, i), *other = bundle_find(now, k->name);
        EV_TRY(compare_list(&x, k, other, k->variants, k->variant_count));
        EV_TRY(compare_list(&x, k, other, k->starts, k->start_count));
        EV_TRY(compare_list(&x, k, other, k->baselines, k->baseline_count));
    }
    return EV_OK;
}
