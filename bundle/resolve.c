/* Picks a variant: down the rungs; on each of them the fastest at the validated shape that is
 * nearest to the asked one, never outside the shapes it was validated for, and never one that its
 * own records call slower there than the baseline or an unmodified start. */
#include "bundle/read.h"

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

/* ---- shapes ---- */

#define WHOLE_MOST 9007199254740992.0 /* 2^53 */

/* The shape that is asked for, in the order of the kernel's dimensions. */
typedef struct asked {
    const bundle_request *request;
    const index_kernel *kernel;
    const char *gpu; /* its id in the bundle, where a candidate has it */
    double values[INDEX_DIMENSIONS];
    bool is_whole[INDEX_DIMENSIONS];
    int64_t whole[INDEX_DIMENSIONS];
    double at[INDEX_DIMENSIONS]; /* by index_coordinate */
} asked;

static const bundle_number *find_number(const bundle_request *request, const char *name) {
    for (size_t i = 0; i < request->shape_count; i++) {
        if (strcmp(request->shape[i].name, name) == 0)
            return &request->shape[i];
    }
    return NULL;
}

static ev_status read_shape(asked *a, ev_error *err) {
    for (size_t i = 0; i < a->kernel->dimension_count; i++) {
        const bundle_number *n = find_number(a->request, a->kernel->dimensions[i]);
        if (n == NULL)
            return ev_fail(err, EV_BAD, "%s: the shape lacks '%s'", a->request->kernel,
                           a->kernel->dimensions[i]);
        a->values[i] = n->value;
        a->is_whole[i] = n->value == floor(n->value) && fabs(n->value) <= WHOLE_MOST;
        a->whole[i] = a->is_whole[i] ? (int64_t)n->value : 0;
        a->at[i] = index_coordinate(n->value);
    }
    return EV_OK;
}

/* As launch_range_holds, without a division of doubles. */
static bool range_holds(const asked *a, const index_range *r) {
    double value = a->values[r->dimension];
    if (!(value >= r->low && value <= r->high))
        return false;
    if (r->is_real)
        return true;
    return a->is_whole[r->dimension] &&
           (r->multiple == 1 || a->whole[r->dimension] % r->multiple == 0);
}

/* A variant without ranges was validated nowhere, and fits nothing. */
static bool shape_fits(const asked *a, const index_candidate *c) {
    bool fits = c->range_count > 0;
    for (size_t i = 0; fits && i < c->range_count; i++)
        fits = range_holds(a, &c->ranges[i]);
    return fits;
}

/* ---- alignments ---- */

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
        granted = granted > request->all_aligned ? granted : request->all_aligned;
        uint32_t usual = a != NULL ? align_of(a) : 0;
        fits = fits && need->bytes <= (granted > usual ? granted : usual);
    }
    return fits;
}

bool bundle_is_scalar(const bundle_argument *a) {
    return strcmp(a->kind, "scalar") == 0 || bundle_is_rank(a);
}

bool bundle_is_rank(const bundle_argument *a) {
    return strcmp(a->kind, "rank") == 0;
}

bool bundle_is_peers(const bundle_argument *a) {
    return strcmp(a->kind, "peers") == 0;
}

bool bundle_is_resident(const bundle_variant *v, const char *entry) {
    bool is = false;
    for (size_t i = 0; i < v->resident_count; i++)
        is = is || strcmp(v->resident[i], entry) == 0;
    return is;
}

size_t bundle_buffer_count(const bundle_kernel *k) {
    size_t count = 0;
    for (size_t i = 0; i < k->argument_count; i++)
        count += !bundle_is_scalar(&k->arguments[i]);
    return count;
}

bool bundle_begins_struct(const bundle_kernel *k, size_t index) {
    const bundle_argument *a = &k->arguments[index];
    if (!a->is_field || index == 0 || !a[-1].is_field)
        return a->is_field;
    size_t length = strcspn(a->name, ".");
    return strcspn(a[-1].name, ".") != length || strncmp(a[-1].name, a->name, length) != 0;
}

ev_status bundle_check_addresses(const bundle_kernel *k, const bundle_variant *v,
                                 const uint64_t *addresses, ev_error *err) {
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        uint32_t need = listed(v->alignments, v->alignment_count, a->name);
        need = need > align_of(a) ? need : align_of(a);
        if (!bundle_is_scalar(a) && addresses[i] % need != 0)
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

/* ---- times ---- */

#define UNKNOWN_RATIO 1.0 /* a variant without times was promoted all the same */

/* What the records say at the nearest validated shape; of several as near, the worst. */
typedef struct record_at {
    bool is_known;
    double ratio;
    bool loses_to_start;
} record_at;

static double distance(const asked *a, const double *at) {
    double sum = 0;
    for (size_t i = 0; i < a->kernel->dimension_count; i++)
        sum += (a->at[i] - at[i]) * (a->at[i] - at[i]);
    return sum;
}

static record_at nearest(const asked *a, const index_times *times) {
    record_at found = {.ratio = UNKNOWN_RATIO};
    double least = INFINITY;
    for (size_t i = 0; i < times->count; i++) {
        const index_point *p = &times->points[i];
        double far = distance(a, p->at);
        if (far > least)
            continue;
        bool is_nearer = far < least;
        least = far;
        found.is_known = true;
        found.ratio = is_nearer || p->ratio > found.ratio ? p->ratio : found.ratio;
        found.loses_to_start = p->loses_to_start || (!is_nearer && found.loses_to_start);
    }
    return found;
}

/* The qualification that counts on the GPU comes before the tuning. */
static record_at record_of(const asked *a, const index_candidate *c, const bundle_qualified *q) {
    for (size_t i = 0; q != NULL && i < c->variant->qualified_count; i++) {
        if (c->times[i + 1].of == q && c->times[i + 1].count > 0)
            return nearest(a, &c->times[i + 1]);
    }
    return nearest(a, &c->times[0]);
}

#define SLOWER "its records call it slower than the baseline at the nearest validated shape"

/* Why a candidate that fits is not handed out; NULL: it is. */
static const char *refused(const index_candidate *c, const asked *a, const record_at *r) {
    const char *why = bundle_disabled(c->variant, a->gpu);
    if (why != NULL)
        return why;
    if (r->is_known && r->ratio > 1)
        return SLOWER;
    if (r->loses_to_start)
        return "its records call it slower than an unmodified start at the nearest validated shape";
    return NULL;
}

/* ---- rungs ---- */

/* BUNDLE_RUNG_BASELINE: the GPU cannot run what was made for the group's. */
static bundle_rung rung_of(const index_group *g, const bundle_request *request) {
    const bundle_variant *v = g->like;
    const index_gpu gpu = {v->gpu_id, v->gpu_name, v->driver_names, v->driver_name_count};
    if (request->gpu != NULL && index_is_gpu(&gpu, request->gpu))
        return BUNDLE_RUNG_EXACT;
    if (g->sm == request->sm)
        return g->sms == request->sms && g->sms > 0 ? BUNDLE_RUNG_SIZE : BUNDLE_RUNG_CAPABILITY;
    return g->sm < request->sm ? BUNDLE_RUNG_PTX : BUNDLE_RUNG_BASELINE;
}

/* The rungs of the groups; and the GPU's id, since qualifications go by it. */
static void find_rungs(asked *a, bundle_rung rungs_of[INDEX_GROUPS]) {
    a->gpu = a->request->gpu;
    for (size_t i = 0; i < a->kernel->group_count; i++) {
        rungs_of[i] = rung_of(&a->kernel->groups[i], a->request);
        if (rungs_of[i] == BUNDLE_RUNG_EXACT)
            a->gpu = a->kernel->groups[i].like->gpu_id;
    }
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

const bundle_variant *bundle_baseline_of(const bundle_kernel *k, const bundle_variant *v) {
    for (size_t i = 0; i < k->baseline_count; i++) {
        if (k->baselines[i].sm == v->sm)
            return &k->baselines[i];
    }
    return NULL;
}

ev_status bundle_fail_kernel(const bundle *b, const char *kernel, ev_error *err) {
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < bundle_kernel_count(b); i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", bundle_kernel_at(b, i)->name);
    ev_status status = ev_fail(err, EV_BAD, "the bundle %s has no kernel '%s'; it has %s",
                               bundle_path(b), kernel, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

/* The best of its kind so far. */
typedef struct pick {
    const index_candidate *candidate;
    bundle_rung rung;
    int sm; /* on the rung of PTX, the nearest capability is better */
    double ratio;
    const char *why; /* it is refused */
} pick;

static bool is_better(const pick *now, const pick *than) {
    if (than->candidate == NULL || now->rung != than->rung)
        return than->candidate == NULL || now->rung < than->rung;
    if (now->sm != than->sm)
        return now->sm > than->sm;
    if (now->ratio != than->ratio)
        return now->ratio < than->ratio;
    return now->candidate < than->candidate; /* the index has them in one list */
}

/* An unmodified start without times and without a qualification here was never compared. */
static bool is_compared(const index_candidate *c, const record_at *r, const bundle_qualified *q) {
    return !c->is_start || r->is_known || q != NULL;
}

static void consider(const asked *a, const index_candidate *c, bundle_rung rung, pick *best,
                     pick *disabled) {
    const bundle_request *request = a->request;
    if (!shape_fits(a, c) || !alignment_fits(a->kernel->kernel, c->variant, request) ||
        !meaning_fits(c->variant, request))
        return;
    const bundle_qualified *q = bundle_qualification(c->variant, a->gpu);
    record_at r = record_of(a, c, q);
    pick now = {c, rung, c->variant->sm, r.ratio, refused(c, a, &r)};
    pick *place = now.why != NULL ? disabled : best;
    if (is_compared(c, &r, q) && (now.why == NULL || !c->is_start) && is_better(&now, place))
        *place = now;
}

/* ---- families ---- */

/* The member with the least of its worst ratios at shapes that are as near, and the variant with
 * the least above 1. */
static void consider_tied(const index_family *f, const size_t *tied, size_t count, bundle_rung rung,
                          pick *best, pick *disabled) {
    for (size_t i = 0; i < f->count; i++) {
        const index_candidate *c = f->members[i];
        double ratio = 0;
        for (size_t k = 0; k < count; k++)
            ratio = fmax(ratio, c->times[0].points[tied[k]].ratio);
        pick now = {c, rung, c->variant->sm, ratio, ratio > 1 ? SLOWER : NULL};
        pick *place = now.why != NULL ? disabled : best;
        if ((now.why == NULL || !c->is_start) && is_better(&now, place))
            *place = now;
    }
}

static void consider_one(const index_candidate *c, size_t point, bundle_rung rung, pick *place) {
    if (c == NULL)
        return;
    double ratio = c->times[0].points[point].ratio;
    pick now = {c, rung, c->variant->sm, ratio, ratio > 1 ? SLOWER : NULL};
    if (is_better(&now, place))
        *place = now;
}

static void consider_family(const asked *a, const index_family *f, bundle_rung rung, pick *best,
                            pick *disabled) {
    const index_times *times = &f->members[0]->times[0];
    size_t tied[INDEX_POINTS], count = 0;
    double least = INFINITY;
    if (!shape_fits(a, f->members[0]))
        return;
    for (size_t i = 0; i < times->count; i++) {
        double far = distance(a, times->points[i].at);
        if (far > least)
            continue;
        count = far < least ? 0 : count;
        least = far;
        tied[count++] = i;
    }
    if (count > 1)
        consider_tied(f, tied, count, rung, best, disabled);
    if (count == 1) {
        consider_one(f->best[tied[0]], tied[0], rung, best);
        consider_one(f->refused[tied[0]], tied[0], rung, disabled);
    }
}

static void consider_group(const asked *a, const index_group *g, bundle_rung rung, pick *best,
                           pick *disabled) {
    for (size_t i = 0; i < g->family_count; i++)
        consider_family(a, &g->families[i], rung, best, disabled);
    for (size_t i = 0; g->alone > 0 && i < g->count; i++) {
        if (!g->candidates[i].is_member)
            consider(a, &g->candidates[i], rung, best, disabled);
    }
}

/* Down the rungs, until one has something. */
static void choose(asked *a, pick *best, pick *disabled) {
    bundle_rung rungs_of[INDEX_GROUPS];
    find_rungs(a, rungs_of);
    for (int rung = 0; rung < BUNDLE_RUNG_BASELINE && best->candidate == NULL; rung++) {
        for (size_t i = 0; i < a->kernel->group_count; i++) {
            if ((int)rungs_of[i] == rung)
                consider_group(a, &a->kernel->groups[i], (bundle_rung)rung, best, disabled);
        }
    }
}

/* Whether a refused variant would have been chosen, or its place is taken by something untuned. */
static bool is_missed(const pick *disabled, const pick *best) {
    if (disabled->candidate == NULL || best->candidate == NULL)
        return disabled->candidate != NULL;
    bool as_near = disabled->rung <= best->rung && disabled->sm >= best->sm;
    return as_near && (best->candidate->is_start || !is_better(best, disabled));
}

static ev_status fail_capability(const bundle *b, const bundle_request *request, ev_error *err) {
    return ev_fail(err, EV_BAD,
                   "%s: the bundle %s has no PTX for compute capability %d.%d; export "
                   "for that GPU",
                   request->kernel, bundle_path(b), request->sm / 10, request->sm % 10);
}

ev_status bundle_resolve(const bundle *b, const bundle_request *request, bundle_choice *out,
                         ev_error *err) {
    asked a = {.request = request, .kernel = bundle_index_find(b->index, request->kernel)};
    if (a.kernel == NULL)
        return bundle_fail_kernel(b, request->kernel, err);
    const bundle_kernel *k = a.kernel->kernel;
    pick best = {0}, disabled = {0};
    EV_TRY(check_alignments(k, request, err));
    EV_TRY(read_shape(&a, err));
    if (!request->only_baseline)
        choose(&a, &best, &disabled);
    bundle_choice made = {.kernel = k, .rung = BUNDLE_RUNG_BASELINE, .ratio = 1};
    if (is_missed(&disabled, &best)) {
        made.passed_over = disabled.candidate->variant;
        made.why = disabled.why;
    }
    if (best.candidate != NULL) {
        made.variant = best.candidate->variant;
        made.role = best.candidate->is_start ? BUNDLE_ROLE_START : BUNDLE_ROLE_VARIANT;
        made.rung = best.rung;
        made.ratio = best.ratio;
    } else {
        made.variant = find_baseline(k, request->sm);
        made.role = BUNDLE_ROLE_BASELINE;
    }
    if (made.variant == NULL)
        return fail_capability(b, request, err);
    *out = made;
    return EV_OK;
}

size_t bundle_variant_count(const bundle *b) {
    return b->variant_count;
}

size_t bundle_kernel_count(const bundle *b) {
    return b->kernel_count;
}

const bundle_kernel *bundle_kernel_at(const bundle *b, size_t index) {
    return b->index->kernels[index].kernel;
}

const bundle_kernel *bundle_find(const bundle *b, const char *kernel) {
    const index_kernel *found = bundle_index_find(b->index, kernel);
    return found != NULL ? found->kernel : NULL;
}
