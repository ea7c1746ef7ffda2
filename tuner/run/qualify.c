/* Qualify: goes through a bundle kernel by kernel. Each variant is tried, and a variant that loses
 * or fails is disabled. An unmodified start replaces it if one is correct and no slower than the
 * baseline. A reference is timed beside the variant, and neither disables nor replaces it. */
#include "tuner/run/qualify.h"

#include "base/json.h"
#include "bundle/bundle.h"
#include "tuner/run/qualify_start.h"
#include "tuner/run/qualify_trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- rows ---- */

static void set_time(json_t *row, const char *prefix, const bundle_time *t) {
    static const char *const names[] = {"ns", "low_ns", "high_ns"};
    const double values[] = {t->ns, t->low_ns, t->high_ns};
    char key[64];
    for (size_t i = 0; i < 3 && t->ns > 0; i++) {
        (void)snprintf(key, sizeof key, "%s%s", prefix, names[i]);
        (void)json_object_set_new(row, key, json_real(values[i]));
    }
}

static void add_row(qualify *q, const char *kernel, const bundle_variant *v, const bundle_case *at,
                    const bundle_trial *t, const qualify_beside *beside) {
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "kernel", kernel,
                            "role", "variant", "gpu", v->gpu_id, "start", v->start, "device",
                            q->device, "split", at->split, "case", at->name, "verdict",
                            bundle_verdict_name(t->verdict), "tolerance", v->tolerance);
    if (t->error >= 0)
        (void)json_object_set_new(row, "error", json_real(t->error));
    set_time(row, "", &t->variant);
    set_time(row, "baseline_", &t->baseline);
    set_time(row, "beside_start_", &t->beside_start);
    set_time(row, "start_", &t->start);
    if (t->start_name != NULL)
        (void)json_object_set_new(row, "start_name", json_string(t->start_name));
    if (beside->name != NULL) {
        set_time(row, "beside_reference_", &beside->variant);
        set_time(row, "reference_", &beside->reference);
        (void)json_object_set_new(row, "reference_name", json_string(beside->name));
        (void)json_object_set_new(row, "over_reference",
                                  json_real(beside->reference.ns / beside->variant.ns));
    }
    double gain = qualify_gain(t);
    if (gain > 0) {
        (void)json_object_set_new(row, "gain", json_real(gain));
        (void)json_object_set_new(row, "time_kind",
                                  json_string(q->gpu.modelled ? "modelled" : "measured"));
    }
    (void)json_array_append_new(q->rows, row);
}

static json_t *add_variant(qualify *q, const char *kernel, const bundle_variant *v,
                           const char *verdict) {
    const char *reason = bundle_disabled(v, q->gpu.id);
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b}", "kernel", kernel, "gpu", v->gpu_id,
                               "start", v->start, "sha256", v->sha256.hex, "verdict", verdict,
                               "disabled", reason != NULL);
    if (reason != NULL)
        (void)json_object_set_new(object, "reason", json_string(reason));
    (void)json_array_append_new(q->variants, object);
    (void)fprintf(stderr, "qualify: %s for %s: %s\n", kernel, v->gpu_id, verdict);
    return object;
}

/* ---- variants ---- */

static ev_status try_variant(qualify *q, const qualify_kernel *x, bundle_variant *v,
                             ev_error *err) {
    shipped one = {0};
    qualify_findings found = {0};
    EV_TRY(shipped_make(x->t, v, &one, err));
    ev_status status = qualify_try(x, &one.candidate, x->rivals, x->rival_count, v, &found, err);
    shipped_free(&one);
    EV_TRY(status);
    for (size_t i = 0; i < found.qualified.trial_count; i++)
        add_row(q, x->t->name, v, &v->cases[i], &found.qualified.trials[i], &found.references[i]);
    if (!found.reached) {
        q->unreached++;
        (void)add_variant(q, x->t->name, v, "not reached");
        return EV_OK;
    }
    EV_TRY(bundle_qualify(x->arena, v, &found.qualified, err));
    q->judged++;
    q->disabled += bundle_disabled(v, q->gpu.id) != NULL;
    (void)add_variant(q, x->t->name, v, bundle_verdict_name(found.qualified.verdict));
    return EV_OK;
}

/* ---- starts in the place of variants ---- */

/* Gives a place in a list: that of the same variant, or a new one. */
static ev_status place_for(ev_arena *arena, const bundle_variant **list, size_t *count,
                           const bundle_variant *made, bundle_variant **out, ev_error *err) {
    bundle_variant *all = EV_NEW_ARRAY(arena, bundle_variant, *count + 1);
    if (all == NULL)
        return ev_fail_memory(err, (*count + 1) * sizeof *all);
    size_t at = *count;
    for (size_t i = 0; i < *count; i++) {
        all[i] = (*list)[i];
        if (ev_sha256_equal(&all[i].sha256, &made->sha256) &&
            strcmp(all[i].gpu_id, made->gpu_id) == 0)
            at = i;
    }
    if (at == *count) {
        all[at] = *made;
        *count += 1;
    }
    *list = all;
    *out = &all[at];
    return EV_OK;
}

/* Adds a start to the bundle if it passes beside the baseline. */
static ev_status try_start(const qualify_kernel *x, const trial_rival *start,
                           const bundle_variant *like, bundle_kernel *k, ev_error *err) {
    qualify_findings found = {0};
    bundle_variant made, *place = NULL;
    EV_TRY(qualify_try(x, &start->candidate, NULL, 0, like, &found, err));
    if (!found.reached || found.qualified.verdict != BUNDLE_VERDICT_PASS)
        return EV_OK;
    EV_TRY(qualify_ship_start(x, &start->candidate, like, &found, &made, err));
    EV_TRY(place_for(x->arena, &k->starts, &k->start_count, &made, &place, err));
    return bundle_qualify(x->arena, place, &found.qualified, err);
}

static ev_status add_baseline(const qualify_kernel *x, const bundle_variant *like, bundle_kernel *k,
                              ev_error *err) {
    qualify_findings found = {0};
    bundle_variant made, *place = NULL;
    EV_TRY(qualify_try(x, &x->baseline, NULL, 0, like, &found, err));
    bundle_verdict verdict = found.qualified.verdict;
    bool is_right = verdict == BUNDLE_VERDICT_PASS || verdict == BUNDLE_VERDICT_SLOWER;
    if (!is_right || found.qualified.trial_count < like->case_count)
        return EV_OK;
    EV_TRY(qualify_ship_start(x, &x->baseline, like, &found, &made, err));
    return place_for(x->arena, &k->baselines, &k->baseline_count, &made, &place, err);
}

/* ---- kernels ---- */

/* The disabled variant that was validated at the most cases. */
static const bundle_variant *find_disabled(const qualify_kernel *x, const bundle_kernel *k) {
    const bundle_variant *best = NULL;
    for (size_t i = 0; i < k->variant_count; i++) {
        const bundle_variant *v = &k->variants[i];
        if (bundle_disabled(v, x->gpu->id) != NULL &&
            (best == NULL || v->case_count > best->case_count))
            best = v;
    }
    return best;
}

static ev_status try_kernel(qualify *q, qualify_kernel *x, bundle_kernel *k,
                            bundle_variant *variants, ev_error *err) {
    bool lacks_baseline = false;
    EV_TRY(qualify_build_starts(x, k, &lacks_baseline, err));
    for (size_t i = 0; i < k->variant_count; i++)
        EV_TRY(try_variant(q, x, &variants[i], err));
    if (lacks_baseline)
        EV_TRY(add_baseline(x, &variants[0], k, err));
    const bundle_variant *disabled = find_disabled(x, k);
    for (size_t i = 0; i < x->rival_count && disabled != NULL; i++) {
        if (!x->rivals[i].is_reference)
            EV_TRY(try_start(x, &x->rivals[i], disabled, k, err));
    }
    return EV_OK;
}

static ev_status list_driver_names(qualify_kernel *x, ev_error *err) {
    const char **names = EV_NEW_ARRAY(x->arena, const char *, TRIAL_DRIVER_NAMES);
    if (names == NULL)
        return ev_fail_memory(err, TRIAL_DRIVER_NAMES * sizeof *names);
    for (size_t i = 0; i < x->gpu->driver_name_count; i++)
        names[i] = x->gpu->driver_names[i];
    x->driver_names = names;
    x->driver_name_count = x->gpu->driver_name_count;
    return EV_OK;
}

/* Qualifies one kernel. `k` is a copy that shares its lists with the bundle; a list that changes is
 * copied. */
static ev_status qualify_one(qualify *q, const bundle *b, ev_arena *arena, bundle_kernel *k,
                             task **kept, ev_error *err) {
    bundle_variant *variants = EV_NEW_ARRAY(arena, bundle_variant, k->variant_count + 1);
    if (variants == NULL)
        return ev_fail_memory(err, k->variant_count * sizeof *variants);
    for (size_t i = 0; i < k->variant_count; i++)
        variants[i] = k->variants[i];
    k->variants = variants;
    EV_TRY(shipped_task(b, k, &q->trust, NULL, kept, err));
    qualify_kernel x = {
        .arena = arena, .gpu = &q->gpu, .device_id = q->device, .t = *kept, .until = q->until};
    EV_TRY(list_driver_names(&x, err));
    ev_status status = try_kernel(q, &x, k, variants, err);
    shipped_free(&x.made);
    return status;
}

/* ---- the bundle ---- */

static bool is_wanted(const qualify *q, const bundle_kernel *k) {
    return k->variant_count > 0 && (q->only == NULL || strcmp(q->only, k->name) == 0);
}

static ev_status check_only(const qualify *q, const bundle *b, ev_error *err) {
    if (q->only == NULL || bundle_find(b, q->only) != NULL)
        return EV_OK;
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < bundle_kernel_count(b); i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", bundle_kernel_at(b, i)->name);
    ev_status status = ev_fail(err, EV_BAD, "--only %s: the bundle %s has %s", q->only,
                               bundle_path(b), ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

static ev_status qualify_each(qualify *q, const bundle *b, ev_arena *arena, bundle_kernel *kernels,
                              size_t count, task **tasks, ev_error *err) {
    for (size_t i = 0; i < count; i++) {
        if (is_wanted(q, &kernels[i]))
            EV_TRY(qualify_one(q, b, arena, &kernels[i], &tasks[i], err));
    }
    return EV_OK;
}

/* Qualifies all kernels. If the machine fails on the way, earlier verdicts are written all the
 * same. The tasks' texts go into the manifest, so the tasks live until then. */
static ev_status qualify_all(qualify *q, const bundle *b, ev_arena *arena, task **tasks,
                             const char *out, ev_error *err) {
    bundle_content content;
    EV_TRY(bundle_content_of(b, arena, &content, err));
    bundle_kernel *kernels = EV_NEW_ARRAY(arena, bundle_kernel, content.kernel_count + 1);
    if (kernels == NULL)
        return ev_fail_memory(err, content.kernel_count * sizeof *kernels);
    for (size_t i = 0; i < content.kernel_count; i++)
        kernels[i] = content.kernels[i];
    ev_status status = qualify_each(q, b, arena, kernels, content.kernel_count, tasks, err);
    if (status == EV_BAD || (status == EV_INFRA && q->judged == 0))
        return status;
    content.kernels = kernels;
    content.version = EVOKE_VERSION;
    EV_TRY(bundle_write_signed(out, &content, q->key, err));
    if (status == EV_INFRA)
        return ev_wrap(err, status, "%s has the %zu variants that were judged before", out,
                       q->judged);
    return EV_OK;
}

static ev_status qualify_open(qualify *q, const bundle *b, const char *out, ev_error *err) {
    EV_TRY(check_only(q, b, err));
    size_t count = bundle_kernel_count(b);
    ev_arena *arena = ev_arena_new();
    task **tasks = calloc(count + 1, sizeof(task *));
    ev_status status =
        arena != NULL && tasks != NULL ? EV_OK : ev_fail_memory(err, count * sizeof(task *));
    if (status == EV_OK)
        status = qualify_all(q, b, arena, tasks, out, err);
    for (size_t i = 0; i < count && tasks != NULL; i++)
        task_free(tasks[i]);
    free(tasks);
    ev_arena_free(arena);
    return status;
}

/* ---- what the reader makes of it ---- */

static const char *what_is(const bundle_choice *choice) {
    return choice->role == BUNDLE_ROLE_START ? "start" : bundle_rung_name(choice->rung);
}

static void tell_instead(const qualify *q, const bundle *b, const bundle_kernel *k,
                         const bundle_variant *v) {
    size_t at = 0;
    json_t *row = NULL;
    const bundle_request request = {.kernel = k->name,
                                    .gpu = q->gpu.id,
                                    .sm = q->gpu.sm,
                                    .shape = v->cases[0].shape,
                                    .shape_count = v->cases[0].shape_count,
                                    .alignments = v->alignments,
                                    .alignment_count = v->alignment_count,
                                    .sms = q->gpu.sms};
    bundle_choice choice;
    bool found = bundle_resolve(b, &request, &choice, NULL) == EV_OK;
    json_array_foreach(q->variants, at, row) {
        if (strcmp(ev_json_text(row, "sha256", ""), v->sha256.hex) != 0 ||
            strcmp(ev_json_text(row, "gpu", ""), v->gpu_id) != 0 ||
            strcmp(ev_json_text(row, "kernel", ""), k->name) != 0)
            continue;
        (void)json_object_set_new(row, "instead",
                                  json_string(found ? what_is(&choice) : "nothing"));
        (void)json_object_set_new(row, "instead_start",
                                  json_string(found ? choice.variant->start : ""));
    }
}

/* Reads the new bundle back, so that the report shows what a scheduler will get. */
static ev_status read_back(const qualify *q, const char *out, ev_error *err) {
    bundle *b = NULL;
    EV_TRY(bundle_open(out, &b, err));
    for (size_t i = 0; i < bundle_kernel_count(b); i++) {
        const bundle_kernel *k = bundle_kernel_at(b, i);
        for (size_t v = 0; v < k->variant_count && is_wanted(q, k); v++) {
            if (bundle_disabled(&k->variants[v], q->gpu.id) != NULL &&
                k->variants[v].case_count > 0)
                tell_instead(q, b, k, &k->variants[v]);
        }
    }
    bundle_close(b);
    return EV_OK;
}

ev_status qualify_bundle(qualify *q, const char *path, const char *out, ev_error *err) {
    bundle *b = NULL;
    EV_TRY(bundle_check_target(out, err));
    EV_TRY(bundle_open(path, &b, err));
    ev_status status = trial_look(q->device, &q->gpu, err);
    if (status == EV_OK)
        status = qualify_open(q, b, out, err);
    bundle_close(b);
    return status == EV_OK ? read_back(q, out, err) : status;
}
