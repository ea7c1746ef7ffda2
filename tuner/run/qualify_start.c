/* Starts of a task as rivals of its variants, and as variants of a bundle. */
#include "tuner/run/qualify_start.h"

#include "base/json.h"
#include "fitness/model/version.h"
#include "ir/ir.h"
#include "tuner/run/qualify_trial.h"
#include "tuner/worker/variant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static ev_status fail_memory(const qualify_kernel *x, ev_error *err) {
    return ev_fail_memory(err, ev_arena_bytes(x->arena));
}

/* ---- building ---- */

static ev_status build(const qualify_kernel *x, const task_start *start, candidate *out,
                       ev_error *err) {
    ev_str ptx = EV_STR_EMPTY;
    ev_status status = variant_build_start(x->t, start, x->sm, &ptx, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "task %s, the unmodified start %s", x->t->name, start->name);
    const char *kept = ev_arena_strndup(x->arena, ev_str_text(&ptx), ptx.length);
    *out = (candidate){.ptx = kept, .ptx_bytes = ptx.length, .plan = start->plan, .start = start};
    ev_str_free(&ptx);
    return kept != NULL ? EV_OK : fail_memory(x, err);
}

/* The newest baseline that the GPU can run. */
static const bundle_variant *find_baseline(const bundle_kernel *k, int sm) {
    const bundle_variant *best = NULL;
    for (size_t i = 0; i < k->baseline_count; i++) {
        const bundle_variant *v = &k->baselines[i];
        if (v->sm <= sm && (best == NULL || v->sm > best->sm))
            best = v;
    }
    return best;
}

static ev_status take_baseline(qualify_kernel *x, const bundle_variant *v, ev_error *err) {
    x->sm = v->sm;
    ev_status status = shipped_make(x->t, v, &x->made, err);
    x->baseline = x->made.candidate;
    return status;
}

ev_status qualify_build_starts(qualify_kernel *x, const bundle_kernel *k, bool *lacks_baseline,
                               ev_error *err) {
    const bundle_variant *baseline = find_baseline(k, x->gpu->sm);
    *lacks_baseline = baseline == NULL;
    x->sm = x->gpu->sm;
    EV_TRY(baseline != NULL ? take_baseline(x, baseline, err)
                            : build(x, &x->t->starts[0], &x->baseline, err));
    x->rivals = EV_NEW_ARRAY(x->arena, trial_rival, x->t->start_count + 1);
    if (x->rivals == NULL)
        return fail_memory(x, err);
    for (size_t i = 0; i < x->t->start_count; i++) {
        const task_start *start = &x->t->starts[i];
        if (start == x->baseline.start)
            continue;
        trial_rival *rival = &x->rivals[x->rival_count++];
        rival->name = start->name;
        rival->is_reference = start->is_reference;
        EV_TRY(build(x, start, &rival->candidate, err));
    }
    return EV_OK;
}

/* ---- trials ---- */

ev_status qualify_cases(const qualify_kernel *x, const bundle_variant *v,
                        const task_case *const **out, ev_error *err) {
    if (v->case_count == 0)
        return ev_fail(err, EV_BAD, "%s for %s: the manifest names no case it was validated at",
                       x->t->name, v->gpu_id);
    const task_case **cases = EV_NEW_ARRAY(x->arena, const task_case *, v->case_count + 1);
    if (cases == NULL)
        return fail_memory(x, err);
    for (size_t i = 0; i < v->case_count; i++) {
        cases[i] = task_find_case(x->t, v->cases[i].name);
        if (cases[i] == NULL)
            return ev_fail(err, EV_BAD,
                           "%s for %s: the manifest names the case '%s', and the task of the "
                           "bundle has none of that name",
                           x->t->name, v->gpu_id, v->cases[i].name);
    }
    *out = cases;
    return EV_OK;
}

/* Turns rows into trials. The first row that does not pass gives the verdict. */
static ev_status judge_rows(const qualify_kernel *x, const trial_result *r,
                            const bundle_variant *like, const task_case *const *cases,
                            qualify_findings *found, ev_error *err) {
    char reason[QUALIFY_REASON_BYTES];
    bundle_qualified *out = &found->qualified;
    bundle_trial *trials = EV_NEW_ARRAY(x->arena, bundle_trial, like->case_count + 1);
    qualify_beside *references = EV_NEW_ARRAY(x->arena, qualify_beside, like->case_count + 1);
    if (trials == NULL || references == NULL)
        return fail_memory(x, err);
    out->reason = "";
    for (size_t i = 0; i < like->case_count && r->rows[i].done; i++) {
        const trial_row *row = &r->rows[i];
        bundle_verdict verdict = qualify_judge(row, cases[i], reason);
        bool has_error = row->stopped == GATE_NONE || row->stopped == GATE_ACCURATE;
        has_error = has_error && !row->unjudged && isfinite(row->error);
        references[out->trial_count] =
            (qualify_beside){row->reference_name, row->beside_reference, row->reference};
        trials[out->trial_count++] = (bundle_trial){.name = like->cases[i].name,
                                                    .verdict = verdict,
                                                    .variant = row->variant,
                                                    .baseline = row->baseline,
                                                    .beside_start = row->beside_start,
                                                    .start = row->start,
                                                    .start_name = row->start_name,
                                                    .error = has_error ? row->error : -1};
        if (verdict != BUNDLE_VERDICT_PASS && out->verdict == BUNDLE_VERDICT_PASS) {
            out->verdict = verdict;
            out->reason = ev_arena_strdup(x->arena, reason);
        }
    }
    out->trials = trials;
    found->references = references;
    return out->reason != NULL ? EV_OK : fail_memory(x, err);
}

ev_status qualify_try(const qualify_kernel *x, const candidate *who, const trial_rival *rivals,
                      size_t rival_count, const bundle_variant *like, qualify_findings *found,
                      ev_error *err) {
    const task_case *const *cases = NULL;
    trial_result *r = NULL;
    EV_TRY(qualify_cases(x, like, &cases, err));
    const trial_job job = {.device_id = x->device_id,
                           .t = x->t,
                           .variant = who,
                           .baseline = &x->baseline,
                           .rivals = rivals,
                           .rival_count = rival_count,
                           .cases = cases,
                           .count = like->case_count,
                           .until = x->until};
    EV_TRY(trial_run(&job, &r, err));
    *found = (qualify_findings){.qualified = {.gpu_id = x->gpu->id,
                                              .gpu_name = x->gpu->name,
                                              .sm = x->gpu->sm,
                                              .sms = x->gpu->sms,
                                              .driver_names = x->driver_names,
                                              .driver_name_count = x->driver_name_count,
                                              .driver = x->gpu->driver,
                                              .modelled = x->gpu->modelled},
                                .resources = r->resources};
    ev_status status = judge_rows(x, r, like, cases, found, err);
    found->reached = r->complete || found->qualified.verdict != BUNDLE_VERDICT_PASS;
    free(r);
    return status;
}

/* ---- as a variant ---- */

static ev_status set_provenance(const qualify_kernel *x, const task_start *start,
                                bundle_variant *out, ev_error *err) {
    ir_genome *genome = ir_genome_new(start->name);
    json_t *json = genome != NULL ? ir_genome_to_json(genome) : NULL;
    char *text = json != NULL ? ev_json_print(json, true) : NULL;
    ev_sha256 sha256 = {0};
    if (genome != NULL)
        sha256 = ir_genome_sha256(genome);
    if (text != NULL) {
        out->genome = ev_arena_strdup(x->arena, text);
        out->genome_sha256 = ev_arena_strdup(x->arena, sha256.hex);
    }
    out->versions = ev_arena_printf(x->arena, "{\"evoke\":\"%s\",\"llvm\":\"%s\",\"model\":\"%s\"}",
                                    EVOKE_VERSION, ir_llvm_version(), model_version());
    free(text);
    json_decref(json);
    ir_genome_free(genome);
    bool whole = out->genome != NULL && out->genome_sha256 != NULL && out->versions != NULL;
    return whole ? EV_OK : fail_memory(x, err);
}

static ev_status set_cases(const qualify_kernel *x, const bundle_variant *like,
                           const bundle_qualified *found, bundle_variant *out, ev_error *err) {
    bundle_case *cases = EV_NEW_ARRAY(x->arena, bundle_case, like->case_count + 1);
    if (cases == NULL)
        return fail_memory(x, err);
    for (size_t i = 0; i < found->trial_count; i++) {
        const bundle_trial *t = &found->trials[i];
        cases[i] = (bundle_case){.name = like->cases[i].name,
                                 .split = like->cases[i].split,
                                 .shape = like->cases[i].shape,
                                 .shape_count = like->cases[i].shape_count,
                                 .ns = t->variant.ns,
                                 .low_ns = t->variant.low_ns,
                                 .high_ns = t->variant.high_ns,
                                 .baseline_ns = t->baseline.ns,
                                 .error = t->error,
                                 .baseline_low_ns = t->baseline.low_ns,
                                 .baseline_high_ns = t->baseline.high_ns};
        out->error = fmax(out->error, t->error);
    }
    out->cases = cases;
    out->case_count = found->trial_count;
    return EV_OK;
}

ev_status qualify_ship_start(const qualify_kernel *x, const candidate *who,
                             const bundle_variant *like, const qualify_findings *found,
                             bundle_variant *out, ev_error *err) {
    const device_resources *resources = &found->resources;
    *out = (bundle_variant){.ptx = who->ptx,
                            .ptx_bytes = who->ptx_bytes,
                            .sha256 = ev_sha256_of(who->ptx, who->ptx_bytes),
                            .start = who->start->name,
                            .gpu_id = x->gpu->id,
                            .gpu_name = x->gpu->name,
                            .sm = x->sm,
                            .sms = x->gpu->sms,
                            .driver_names = x->driver_names,
                            .driver_name_count = x->driver_name_count,
                            .registers = resources->registers,
                            .shared_bytes = resources->shared_bytes,
                            .local_bytes = resources->local_bytes,
                            .max_threads = resources->max_threads,
                            .modelled = x->gpu->modelled,
                            .tolerance = task_relative_l2(x->t)};
    EV_TRY(set_cases(x, like, &found->qualified, out, err));
    EV_TRY(set_provenance(x, who->start, out, err));
    return shipped_set_launch(x->arena, who->start, NULL, out, err);
}
