/* Merge: walks the kernels by name, and for each GPU model lets the variants of several bundles
 * replace one another. A variant enters if no variant that is there takes its place, and then takes
 * the place of those that it beats. */
#include "bundle/merge.h"

#include "bundle/bundle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const reason_words[MERGE_REASON_COUNT] = {
#define MERGE_REASON(id, words) words,
#include "bundle/merge_reasons.def"
#undef MERGE_REASON
};

const char *merge_reason_words(merge_reason reason) {
    return reason_words[reason];
}

/* A kernel on its way, with room for the variants of all bundles. */
typedef struct joined {
    bundle_kernel kernel;
    const bundle *first;      /* the bundle that had it first */
    bundle_variant *lists[3]; /* variants, starts, baselines */
    const bundle **owners;    /* of lists[0] */
    size_t counts[3];
} joined;

typedef struct merging {
    ev_arena *arena;
    ev_error *err;
    joined *kernels;
    size_t kernel_count;
    bundle_file *files;
    const bundle **file_owners;
    size_t file_count;
    merge_row *rows;
    size_t row_count, row_room;
} merging;

/* ---- two variants ---- */

static bool is_same_gpu(const bundle_variant *a, const bundle_variant *b) {
    return strcmp(a->gpu_id, b->gpu_id) == 0 && strcmp(a->gpu_name, b->gpu_name) == 0 &&
           a->sm == b->sm && a->sms == b->sms;
}

/* The same PTX, launched alike: macros may be in the launch alone. */
static bool is_same(const bundle_variant *a, const bundle_variant *b) {
    bool same = strcmp(a->sha256.hex, b->sha256.hex) == 0 && strcmp(a->start, b->start) == 0 &&
                a->macro_count == b->macro_count;
    for (size_t i = 0; same && i < a->macro_count; i++)
        same = strcmp(a->macros[i].name, b->macros[i].name) == 0 &&
               a->macros[i].value == b->macros[i].value;
    return same;
}

static const bundle_case *find_case(const bundle_variant *v, const char *name) {
    for (size_t i = 0; i < v->case_count; i++) {
        if (strcmp(v->cases[i].name, name) == 0)
            return &v->cases[i];
    }
    return NULL;
}

static double gain_of(const bundle_case *c) {
    return c != NULL && c->ns > 0 && c->baseline_ns > 0 ? c->baseline_ns / c->ns : 0;
}

static bool range_covers(const launch_range *wide, const launch_range *narrow) {
    if (!(wide->low <= narrow->low && wide->high >= narrow->high))
        return false;
    return wide->is_real || wide->multiple <= 1 ||
           (!narrow->is_real && narrow->multiple % wide->multiple == 0 &&
            (narrow->multiple != 0 || fmod(narrow->low, (double)wide->multiple) == 0));
}

/* Whether a qualification disables `wide` on a GPU where `narrow` is handed out. */
static bool is_rejected_alone(const bundle_variant *wide, const bundle_variant *narrow) {
    for (size_t i = 0; i < wide->qualified_count; i++) {
        const char *gpu = wide->qualified[i].gpu_id;
        if (bundle_disabled(wide, gpu) != NULL && bundle_disabled(narrow, gpu) == NULL)
            return true;
    }
    return false;
}

/* Whether `wide` may be used wherever `narrow` may: shapes, buffers, and meaning. */
static bool covers(const bundle_variant *wide, const bundle_variant *narrow) {
    bool has = wide->plan->range_count == narrow->plan->range_count &&
               wide->is_bold <= narrow->is_bold && wide->is_default >= narrow->is_default &&
               wide->disabled == NULL && !is_rejected_alone(wide, narrow);
    for (size_t i = 0; has && i < wide->plan->range_count; i++) {
        const launch_range *r = &wide->plan->ranges[i];
        const launch_range *other = NULL;
        for (size_t k = 0; k < narrow->plan->range_count; k++) {
            if (strcmp(narrow->plan->ranges[k].name, r->name) == 0)
                other = &narrow->plan->ranges[k];
        }
        has = other != NULL && range_covers(r, other);
    }
    for (size_t i = 0; has && i < wide->alignment_count; i++) {
        uint32_t granted = 0;
        for (size_t k = 0; k < narrow->alignment_count; k++) {
            if (strcmp(narrow->alignments[k].argument, wide->alignments[i].argument) == 0)
                granted = narrow->alignments[k].bytes;
        }
        has = wide->alignments[i].bytes <= granted;
    }
    return has;
}

/* Gains at the cases that both time: whether each is no less somewhere, and their means. */
typedef struct comparison {
    size_t count;
    bool is_less, is_more; /* the first's gain, at some case */
    double first, second;  /* geometric means */
} comparison;

static comparison compare(const bundle_variant *a, const bundle_variant *b) {
    comparison c = {.count = 0};
    for (size_t i = 0; i < a->case_count; i++) {
        double left = gain_of(&a->cases[i]), right = gain_of(find_case(b, a->cases[i].name));
        if (!(left > 0 && right > 0))
            continue;
        c.count++;
        c.is_less = c.is_less || left < right;
        c.is_more = c.is_more || left > right;
        c.first += log(left);
        c.second += log(right);
    }
    c.first = c.count > 0 ? exp(c.first / (double)c.count) : 0;
    c.second = c.count > 0 ? exp(c.second / (double)c.count) : 0;
    return c;
}

/* Whether `a` takes the place of `b`, a variant for the same GPU model. */
static bool replaces(const bundle_variant *a, const bundle_variant *b, bool is_earlier,
                     const comparison *c, merge_reason *why) {
    if (is_same(a, b) && a->modelled == b->modelled) {
        *why = MERGE_SAME; /* the one with more qualifications */
        return a->qualified_count > b->qualified_count ||
               (a->qualified_count == b->qualified_count && is_earlier);
    }
    if (!covers(a, b) || c->count == 0)
        return false;
    if (a->modelled != b->modelled) {
        *why = is_same(a, b) ? MERGE_SAME : MERGE_MEASURED;
        return !a->modelled;
    }
    *why = c->is_more ? MERGE_SLOWER : MERGE_TIE;
    return !c->is_less && (c->is_more || is_earlier);
}

/* ---- variants ---- */

static ev_status add_row(merging *m, const merge_row *row) {
    if (m->row_count == m->row_room) {
        size_t room = m->row_room == 0 ? 16 : m->row_room * 2;
        merge_row *more = EV_NEW_ARRAY(m->arena, merge_row, room);
        if (more == NULL)
            return ev_fail_memory(m->err, room * sizeof *more);
        if (m->row_count > 0)
            memcpy(more, m->rows, m->row_count * sizeof *more);
        m->rows = more;
        m->row_room = room;
    }
    m->rows[m->row_count++] = *row;
    return EV_OK;
}

static merge_row row_of(const joined *k, const bundle *kept, const bundle *left,
                        const bundle_variant *v, double kept_gain, double left_gain,
                        merge_reason why) {
    return (merge_row){k->kernel.name, v->gpu_name, bundle_path(kept), bundle_path(left),
                       v->sha256.hex,  kept_gain,   left_gain,         why};
}

/* Whether a variant that is there takes the place of `v`; otherwise those that `v` beats go. */
static ev_status add_variant(merging *m, joined *k, const bundle *b, const bundle_variant *v) {
    size_t kept = 0;
    bool is_beaten = false;
    merge_reason why = MERGE_SLOWER;
    for (size_t i = 0; i < k->counts[0] && !is_beaten; i++) {
        const bundle_variant *there = &k->lists[0][i];
        comparison c = compare(there, v);
        if (k->owners[i] == b || !is_same_gpu(there, v) || !replaces(there, v, true, &c, &why))
            continue;
        is_beaten = true;
        merge_row row = row_of(k, k->owners[i], b, v, c.first, c.second, why);
        EV_TRY(add_row(m, &row));
    }
    for (size_t i = 0; i < k->counts[0] && !is_beaten; i++) {
        const bundle_variant *there = &k->lists[0][i];
        comparison c = compare(v, there);
        bool goes =
            k->owners[i] != b && is_same_gpu(there, v) && replaces(v, there, false, &c, &why);
        merge_row row = row_of(k, b, k->owners[i], there, c.first, c.second, why);
        if (goes)
            EV_TRY(add_row(m, &row));
        k->lists[0][kept] = *there;
        k->owners[kept] = k->owners[i];
        kept += !goes;
    }
    if (!is_beaten) {
        k->lists[0][kept] = *v;
        k->owners[kept] = b;
        k->counts[0] = kept + 1;
    }
    return EV_OK;
}

/* An unmodified start once for each GPU model; a baseline once for each compute capability. */
static void add_unmodified(joined *k, size_t list, const bundle_variant *v) {
    for (size_t i = 0; i < k->counts[list]; i++) {
        const bundle_variant *there = &k->lists[list][i];
        if (list == 2 ? there->sm == v->sm
                      : is_same_gpu(there, v) && strcmp(there->start, v->start) == 0)
            return;
    }
    k->lists[list][k->counts[list]++] = *v;
}

/* ---- kernels ---- */

static joined *find_kernel(const merging *m, const char *name) {
    for (size_t i = 0; i < m->kernel_count; i++) {
        if (strcmp(m->kernels[i].kernel.name, name) == 0)
            return &m->kernels[i];
    }
    return NULL;
}

static ev_status new_kernel(merging *m, const bundle *b, const bundle_kernel *k, size_t room,
                            joined **out) {
    joined *j = &m->kernels[m->kernel_count++];
    *j = (joined){.kernel = *k, .first = b};
    for (size_t i = 0; i < 3; i++)
        j->lists[i] = EV_NEW_ARRAY(m->arena, bundle_variant, room + 1);
    j->owners = EV_NEW_ARRAY(m->arena, const bundle *, room + 1);
    if (j->lists[0] == NULL || j->lists[1] == NULL || j->lists[2] == NULL || j->owners == NULL)
        return ev_fail_memory(m->err, room * sizeof(bundle_variant));
    *out = j;
    return EV_OK;
}

static ev_status add_kernel(merging *m, const bundle *b, const bundle_kernel *k, size_t room) {
    joined *j = find_kernel(m, k->name);
    if (j != NULL && strcmp(j->kernel.task_sha256, k->task_sha256) != 0)
        return ev_fail(m->err, EV_BAD,
                       "the bundles %s and %s have different tasks named '%s'; tune both from one "
                       "task",
                       bundle_path(j->first), bundle_path(b), k->name);
    if (j == NULL)
        EV_TRY(new_kernel(m, b, k, room, &j));
    for (size_t i = 0; i < k->variant_count; i++)
        EV_TRY(add_variant(m, j, b, &k->variants[i]));
    for (size_t i = 0; i < k->start_count; i++)
        add_unmodified(j, 1, &k->starts[i]);
    for (size_t i = 0; i < k->baseline_count; i++)
        add_unmodified(j, 2, &k->baselines[i]);
    return EV_OK;
}

/* ---- files ---- */

static ev_status add_file(merging *m, const bundle *b, const bundle_file *f) {
    for (size_t i = 0; i < m->file_count; i++) {
        const bundle_file *there = &m->files[i];
        if (strcmp(there->path, f->path) != 0)
            continue;
        if (there->bytes == f->bytes && memcmp(there->data, f->data, f->bytes) == 0)
            return EV_OK;
        return ev_fail(m->err, EV_BAD,
                       "%s differs between the bundles %s and %s; export both with one version of "
                       "Evoke from one task",
                       f->path, bundle_path(m->file_owners[i]), bundle_path(b));
    }
    m->files[m->file_count] = *f;
    m->file_owners[m->file_count++] = b;
    return EV_OK;
}

/* ---- bundles ---- */

static ev_status add_bundle(merging *m, const bundle *b, const bundle_content *c, size_t room) {
    for (size_t i = 0; i < c->kernel_count; i++)
        EV_TRY(add_kernel(m, b, &c->kernels[i], room));
    for (size_t i = 0; i < c->file_count; i++)
        EV_TRY(add_file(m, b, &c->files[i]));
    return EV_OK;
}

static ev_status read_contents(bundle *const *from, size_t count, ev_arena *arena,
                               bundle_content *out, ev_error *err) {
    for (size_t i = 0; i < count; i++)
        EV_TRY(bundle_content_of(from[i], arena, &out[i], err));
    return EV_OK;
}

static ev_status finish(merging *m, const char *version, merged *out) {
    bundle_kernel *kernels = EV_NEW_ARRAY(m->arena, bundle_kernel, m->kernel_count + 1);
    if (kernels == NULL)
        return ev_fail_memory(m->err, m->kernel_count * sizeof *kernels);
    for (size_t i = 0; i < m->kernel_count; i++) {
        const joined *j = &m->kernels[i];
        kernels[i] = j->kernel;
        kernels[i].variants = j->lists[0];
        kernels[i].variant_count = j->counts[0];
        kernels[i].starts = j->lists[1];
        kernels[i].start_count = j->counts[1];
        kernels[i].baselines = j->lists[2];
        kernels[i].baseline_count = j->counts[2];
    }
    *out = (merged){
        {version, kernels, m->kernel_count, m->files, m->file_count}, m->rows, m->row_count};
    return EV_OK;
}

ev_status bundle_merge(bundle *const *from, size_t count, ev_arena *arena, merged *out,
                       ev_error *err) {
    merging m = {.arena = arena, .err = err};
    size_t variants = 0, files = 0, kernels = 0;
    bundle_content *all = EV_NEW_ARRAY(arena, bundle_content, count + 1);
    if (all == NULL)
        return ev_fail_memory(err, count * sizeof *all);
    EV_TRY(read_contents(from, count, arena, all, err));
    for (size_t i = 0; i < count; i++) {
        variants += bundle_variant_count(from[i]);
        files += all[i].file_count;
        kernels += all[i].kernel_count;
    }
    m.kernels = EV_NEW_ARRAY(arena, joined, kernels + 1);
    m.files = EV_NEW_ARRAY(arena, bundle_file, files + 1);
    m.file_owners = EV_NEW_ARRAY(arena, const bundle *, files + 1);
    if (m.kernels == NULL || m.files == NULL || m.file_owners == NULL)
        return ev_fail_memory(err, files * sizeof *m.files);
    for (size_t i = 0; i < count; i++)
        EV_TRY(add_bundle(&m, from[i], &all[i], variants));
    return finish(&m, count > 0 ? all[0].version : "", out);
}
