/* Picks a variant: down the rungs, and never outside the shapes it was validated for. */
#include "bundle/reader.h"

#include "base/str.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *meaning;
} rungs[BUNDLE_RUNG_COUNT] = {
#define BUNDLE_RUNG(id, name, meaning) {name, meaning},
#include "bundle/reader_rungs.def"
#undef BUNDLE_RUNG
};

const char *bundle_rung_name(bundle_rung rung) {
    return rungs[rung].name;
}

const char *bundle_rung_meaning(bundle_rung rung) {
    return rungs[rung].meaning;
}

static const bundle_number *find_number(const bundle_request *request, const char *name) {
    for (size_t i = 0; i < request->shape_count; i++) {
        if (strcmp(request->shape[i].name, name) == 0)
            return &request->shape[i];
    }
    return NULL;
}

static bool in_range(const bundle_range *range, double value) {
    if (!(value >= range->low && value <= range->high))
        return false;
    if (range->is_real)
        return true;
    if (value != floor(value))
        return false;
    return range->multiple == 0 || fmod(value, (double)range->multiple) == 0;
}

/* A variant without ranges was validated nowhere, and fits nothing. */
static ev_status shape_fits(const bundle_variant *v, const bundle_request *request, bool *fits,
                            ev_error *err) {
    *fits = v->range_count > 0;
    for (size_t i = 0; i < v->range_count; i++) {
        const bundle_number *number = find_number(request, v->ranges[i].name);
        if (number == NULL)
            return ev_fail(err, EV_BAD, "%s: the shape lacks '%s'", request->kernel,
                           v->ranges[i].name);
        *fits = *fits && in_range(&v->ranges[i], number->value);
    }
    return EV_OK;
}

static bool rung_of(const bundle_variant *v, const bundle_request *request, bundle_rung *out) {
    if (request->gpu != NULL &&
        (strcmp(request->gpu, v->gpu_id) == 0 || strcmp(request->gpu, v->gpu_name) == 0))
        *out = BUNDLE_RUNG_EXACT;
    else if (v->sm == request->sm)
        *out = BUNDLE_RUNG_CAPABILITY;
    else if (v->sm < request->sm)
        *out = BUNDLE_RUNG_PTX;
    else
        return false;
    return true;
}

/* Logarithm of the geometric mean of the speed-ups over the timed cases. */
static double gain_of(const bundle_variant *v) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < v->case_count; i++) {
        if (v->cases[i].ns > 0 && v->cases[i].baseline_ns > 0) {
            sum += log(v->cases[i].baseline_ns / v->cases[i].ns);
            count++;
        }
    }
    return count > 0 ? sum / (double)count : 0;
}

/* The newest instruction set that the GPU can run. */
static const bundle_variant *find_baseline(const bundle_kernel *k, int sm) {
    const bundle_variant *best = NULL;
    for (size_t i = 0; i < k->baseline_count; i++) {
        const bundle_variant *v = &k->baselines[i];
        if (v->sm <= sm && (best == NULL || v->sm > best->sm))
            best = v;
    }
    return best;
}

static ev_status fail_kernel(const bundle *b, const char *kernel, ev_error *err) {
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < bundle_kernel_count(b); i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", bundle_kernel_at(b, i)->name);
    ev_status status = ev_fail(err, EV_BAD, "the bundle %s has no kernel '%s'; it has %s",
                               bundle_path(b), kernel, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

ev_status bundle_resolve(const bundle *b, const bundle_request *request, bundle_choice *out,
                         ev_error *err) {
    const bundle_kernel *k = bundle_find(b, request->kernel);
    if (k == NULL)
        return fail_kernel(b, request->kernel, err);
    bundle_choice best = {k, NULL, BUNDLE_RUNG_BASELINE};
    for (size_t i = 0; i < k->variant_count; i++) {
        const bundle_variant *v = &k->variants[i];
        bundle_rung rung;
        bool fits = false;
        EV_TRY(shape_fits(v, request, &fits, err));
        if (!fits || !rung_of(v, request, &rung))
            continue;
        if (rung < best.rung || (rung == best.rung && gain_of(v) > gain_of(best.variant)))
            best = (bundle_choice){k, v, rung};
    }
    if (best.variant == NULL)
        best.variant = find_baseline(k, request->sm);
    if (best.variant == NULL)
        return ev_fail(
            err, EV_BAD,
            "%s: the bundle %s has nothing that compute capability %d.%d can run; export "
            "for that GPU",
            request->kernel, bundle_path(b), request->sm / 10, request->sm % 10);
    *out = best;
    return EV_OK;
}
