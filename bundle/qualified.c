/* Qualifications: which result of a variant counts on a GPU, and whether it may be handed out
 * there.
 */
#include "bundle/bundle.h"
#include "bundle/index.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} verdicts[BUNDLE_VERDICT_COUNT] = {
#define BUNDLE_VERDICT(id, name, meaning) {name, meaning},
#include "bundle/reader_verdicts.def"
#undef BUNDLE_VERDICT
};

const char *bundle_verdict_name(bundle_verdict verdict) {
    return verdicts[verdict].name;
}

const char *bundle_verdict_meaning(bundle_verdict verdict) {
    return verdicts[verdict].meaning;
}

static bool is_of(const bundle_qualified *q, const char *gpu) {
    const index_gpu names = {q->gpu_id, q->gpu_name, q->driver_names, q->driver_name_count};
    return gpu != NULL && index_is_gpu(&names, gpu);
}

const bundle_qualified *bundle_qualification(const bundle_variant *v, const char *gpu) {
    const bundle_qualified *best = NULL;
    for (size_t i = 0; i < v->qualified_count; i++) {
        const bundle_qualified *q = &v->qualified[i];
        if (is_of(q, gpu) && (best == NULL || best->modelled || !q->modelled))
            best = q;
    }
    return best;
}

const char *bundle_disabled(const bundle_variant *v, const char *gpu) {
    if (v->disabled != NULL)
        return v->disabled;
    const bundle_qualified *q = bundle_qualification(v, gpu);
    return q != NULL && q->verdict != BUNDLE_VERDICT_PASS ? q->reason : NULL;
}

/* ---- adding one ---- */

/* The same GPU, by the same kind of times. */
static bool replaces(const bundle_qualified *now, const bundle_qualified *before) {
    return now->modelled == before->modelled && strcmp(now->gpu_id, before->gpu_id) == 0 &&
           strcmp(now->gpu_name, before->gpu_name) == 0;
}

/* NULL where the variant passes on some GPU. Modelled results count where there are no others. */
static const char *disabled_by(const bundle_qualified *all, size_t count) {
    const char *reason = NULL;
    bool has_measured = false;
    for (size_t i = 0; i < count; i++)
        has_measured = has_measured || !all[i].modelled;
    for (size_t i = 0; i < count; i++) {
        if (all[i].modelled && has_measured)
            continue;
        if (all[i].verdict == BUNDLE_VERDICT_PASS)
            return NULL;
        reason = all[i].reason;
    }
    return reason;
}

ev_status bundle_qualify(ev_arena *arena, bundle_variant *v, const bundle_qualified *now,
                         ev_error *err) {
    bundle_qualified *all = EV_NEW_ARRAY(arena, bundle_qualified, v->qualified_count + 1);
    size_t count = 0;
    if (all == NULL)
        return ev_fail_memory(err, (v->qualified_count + 1) * sizeof *all);
    for (size_t i = 0; i < v->qualified_count; i++) {
        if (!replaces(now, &v->qualified[i]))
            all[count++] = v->qualified[i];
    }
    all[count++] = *now;
    v->qualified = all;
    v->qualified_count = count;
    v->disabled = disabled_by(all, count);
    return EV_OK;
}

/* ---- speed-ups ---- */

typedef struct mean {
    double logs;
    size_t count;
} mean;

static void add_ratio(mean *m, double baseline_ns, double ns) {
    if (baseline_ns > 0 && ns > 0) {
        m->logs += log(baseline_ns / ns);
        m->count++;
    }
}

double bundle_gain(const bundle_variant *v, const char *gpu) {
    mean m = {0};
    const bundle_qualified *q = bundle_qualification(v, gpu);
    for (size_t i = 0; q != NULL && i < q->trial_count; i++)
        add_ratio(&m, q->trials[i].baseline.ns, q->trials[i].variant.ns);
    for (size_t i = 0; q == NULL && i < v->case_count; i++)
        add_ratio(&m, v->cases[i].baseline_ns, v->cases[i].ns);
    return m.count > 0 ? exp(m.logs / (double)m.count) : 1;
}
