/* Picks a variant: down the rungs, and never outside the shapes it was validated for. */
#include "bundle/reader.h"

#include "base/str.h"

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

/* A variant without ranges was validated nowhere, and fits nothing. */
static ev_status shape_fits(const bundle_variant *v, const bundle_request *request, bool *fits,
                            ev_error *err) {
    *fits = v->plan->range_count > 0;
    for (size_t i = 0; i < v->plan->range_count; i++) {
        const launch_range *range = &v->plan->ranges[i];
        const bundle_number *number = find_number(request, range->name);
        if (number == NULL)
            return ev_fail(err, EV_BAD, "%s: the shape lacks '%s'", request->kernel, range->name);
        *fits = *fits && launch_range_holds(range, number->value);
    }
    return EV_OK;
}

static const bundle_argument *find_argument(const bundle_kernel *k, const char *name) {
    for (size_t i = 0; i < k->argument_count; i++) {
        if (strcmp(k->arguments[i].name, name) == 0)
            return &k->arguments[i];
    }
    return NULL;
}

static uint32_t align_of(const bundle_argument *a) {
    return a->align != 0 ? a->align : BUNDLE_ALIGN;
}

/* 0: the list does not name the argument. */
static uint32_t listed(const bundle_alignment *list, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].argument, name) == 0)
            return list[i].bytes;
    }
    return 0;
}

static ev_status check_alignments(const bundle_kernel *k, const bundle_request *request,
                                  ev_error *err) {
    for (size_t i = 0; i < request->alignment_count; i++) {
        if (find_argument(k, request->alignments[i].argument) == NULL)
            return ev_fail(err, EV_BAD, "%s has no argument '%s' to be aligned", k->name,
                           request->alignments[i].argument);
    }
    return EV_OK;
}

static bool alignment_fits(const bundle_kernel *k, const bundle_variant *v,
                           const bundle_request *request) {
    bool fits = true;
    for (size_t i = 0; i < v->alignment_count; i++) {
        const bundle_alignment *need = &v->alignments[i];
        const bundle_argument *a = find_argument(k, need->argument);
        uint32_t granted = listed(request->alignments, request->alignment_count, need->argument);
        uint32_t usual = a != NULL ? align_of(a) : 0;
        fits = fits && need->bytes <= (granted > usual ? granted : usual);
    }
    return fits;
}

ev_status bundle_check_addresses(const bundle_kernel *k, const bundle_variant *v,
                                 const uint64_t *addresses, ev_error *err) {
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        uint32_t need = listed(v->alignments, v->alignment_count, a->name);
        need = need > align_of(a) ? need : align_of(a);
        if (strcmp(a->kind, "scalar") != 0 && addresses[i] % need != 0)
            return ev_fail(err, EV_BAD,
                           "%s: the address 0x%llx of '%s' is no multiple of %u bytes, which the "
                           "variant needs; align the buffer, or resolve a variant that needs less",
                           k->name, (unsigned long long)addresses[i], a->name, need);
    }
    return EV_OK;
}

/* Whether the caller takes what the variant means. */
static bool meaning_fits(const bundle_variant *v, const bundle_request *request) {
    return !v->is_bold || v->is_default || request->allow_bold;
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

/* The best of a list; a disabled one that is better than it goes to `passed_over`. */
typedef struct pick {
    const bundle_variant *variant;
    bundle_rung rung;
} pick;

static bool is_better(const bundle_request *request, const bundle_variant *v, bundle_rung rung,
                      const pick *than) {
    if (than->variant == NULL || rung != than->rung)
        return than->variant == NULL || rung < than->rung;
    return bundle_gain(v, request->gpu) > bundle_gain(than->variant, request->gpu);
}

static ev_status choose(const bundle_kernel *k, const bundle_variant *list, size_t count,
                        const bundle_request *request, pick *best, pick *disabled, ev_error *err) {
    for (size_t i = 0; i < count; i++) {
        const bundle_variant *v = &list[i];
        bundle_rung rung = BUNDLE_RUNG_BASELINE;
        bool fits = false;
        EV_TRY(shape_fits(v, request, &fits, err));
        if (!fits || !alignment_fits(k, v, request) || !meaning_fits(v, request) ||
            !rung_of(v, request, &rung))
            continue;
        pick *place = bundle_disabled(v, request->gpu) != NULL ? disabled : best;
        if (is_better(request, v, rung, place))
            *place = (pick){v, rung};
    }
    return EV_OK;
}

/* Only where it qualified: of an unmodified start nothing else is known. */
static ev_status choose_start(const bundle_kernel *k, const bundle_request *request, pick *best,
                              ev_error *err) {
    pick ignored = {0};
    for (size_t i = 0; i < k->start_count; i++) {
        if (bundle_qualification(&k->starts[i], request->gpu) != NULL)
            EV_TRY(choose(k, &k->starts[i], 1, request, best, &ignored, err));
    }
    return EV_OK;
}

static ev_status fail_capability(const bundle *b, const bundle_request *request, ev_error *err) {
    return ev_fail(err, EV_BAD,
                   "%s: the bundle %s has no PTX for compute capability %d.%d; export "
                   "for that GPU",
                   request->kernel, bundle_path(b), request->sm / 10, request->sm % 10);
}

ev_status bundle_resolve(const bundle *b, const bundle_request *request, bundle_choice *out,
                         ev_error *err) {
    const bundle_kernel *k = bundle_find(b, request->kernel);
    if (k == NULL)
        return fail_kernel(b, request->kernel, err);
    pick best = {0}, start = {0}, disabled = {0};
    EV_TRY(check_alignments(k, request, err));
    EV_TRY(choose(k, k->variants, k->variant_count, request, &best, &disabled, err));
    EV_TRY(choose_start(k, request, &start, err));
    bundle_choice made = {.kernel = k, .variant = best.variant, .rung = best.rung};
    if (disabled.variant != NULL && is_better(request, disabled.variant, disabled.rung, &best)) {
        made.passed_over = disabled.variant;
        made.why = bundle_disabled(disabled.variant, request->gpu);
    }
    if (made.variant == NULL) {
        made.variant = start.variant;
        made.rung = BUNDLE_RUNG_START;
    }
    if (made.variant == NULL) {
        made.variant = find_baseline(k, request->sm);
        made.rung = BUNDLE_RUNG_BASELINE;
    }
    if (made.variant == NULL)
        return fail_capability(b, request, err);
    *out = made;
    return EV_OK;
}
