/* Index: sorts kernels by name and candidates by GPU model, and takes the logarithms of the shapes.
 */
#include "bundle/index.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct making {
    ev_arena *arena;
    ev_error *err;
} making;

static ev_status fail_memory(const making *m) {
    return ev_fail_memory(m->err, ev_arena_bytes(m->arena));
}

double index_coordinate(double value) {
    return value >= 1 ? log2(value) : value - 1;
}

/* ---- names of GPUs ---- */

/* Newer drivers name the vendor first; the stand-in for the driver marks its devices. */
static const char *bare_name(const char *name, size_t *length) {
    static const char vendor[] = "NVIDIA ", mark[] = " (modelled)";
    if (strncasecmp(name, vendor, sizeof vendor - 1) == 0)
        name += sizeof vendor - 1;
    const char *end = strstr(name, mark);
    *length = end != NULL ? (size_t)(end - name) : strlen(name);
    return name;
}

static bool is_same_name(const char *a, const char *b) {
    size_t left = 0, right = 0;
    a = bare_name(a, &left);
    b = bare_name(b, &right);
    return left == right && strncasecmp(a, b, left) == 0;
}

bool index_is_gpu(const index_gpu *g, const char *asked) {
    bool is = strcmp(g->id, asked) == 0 || is_same_name(g->name, asked);
    for (size_t i = 0; i < g->driver_name_count && !is; i++)
        is = is_same_name(g->driver_names[i], asked);
    return is;
}

/* ---- dimensions ---- */

bool index_find_dimension(const index_kernel *k, const char *name, size_t *out) {
    for (size_t i = 0; i < k->dimension_count; i++) {
        if (strcmp(k->dimensions[i], name) == 0) {
            *out = i;
            return true;
        }
    }
    return false;
}

static ev_status add_dimension(const making *m, index_kernel *k, const char **names,
                               const char *name) {
    size_t ignored = 0;
    if (index_find_dimension(k, name, &ignored))
        return EV_OK;
    if (k->dimension_count == INDEX_DIMENSIONS)
        return ev_fail(m->err, EV_BAD, "%s: the shape has more than %d names", k->kernel->name,
                       INDEX_DIMENSIONS);
    names[k->dimension_count++] = name;
    return EV_OK;
}

static ev_status add_dimensions(const making *m, index_kernel *k, const char **names,
                                const bundle_variant *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const bundle_variant *v = &list[i];
        for (size_t r = 0; r < v->plan->range_count; r++)
            EV_TRY(add_dimension(m, k, names, v->plan->ranges[r].name));
    }
    return EV_OK;
}

/* ---- points ---- */

static const bundle_case *find_case(const bundle_variant *v, const char *name) {
    for (size_t i = 0; i < v->case_count; i++) {
        if (strcmp(v->cases[i].name, name) == 0)
            return &v->cases[i];
    }
    return NULL;
}

static ev_status place(const making *m, const index_kernel *k, const bundle_case *c,
                       const double **out) {
    double *at = EV_NEW_ARRAY(m->arena, double, k->dimension_count + 1);
    if (at == NULL)
        return fail_memory(m);
    for (size_t i = 0; i < c->shape_count; i++) {
        size_t dimension = 0;
        if (index_find_dimension(k, c->shape[i].name, &dimension))
            at[dimension] = index_coordinate(c->shape[i].value);
    }
    *out = at;
    return EV_OK;
}

static ev_status tuning_times(const making *m, const index_kernel *k, const bundle_variant *v,
                              index_times *out) {
    index_point *points = EV_NEW_ARRAY(m->arena, index_point, v->case_count + 1);
    if (points == NULL)
        return fail_memory(m);
    for (size_t i = 0; i < v->case_count; i++) {
        const bundle_case *c = &v->cases[i];
        if (!(c->ns > 0 && c->baseline_ns > 0))
            continue;
        index_point *p = &points[out->count++];
        p->ratio = c->ns / c->baseline_ns;
        EV_TRY(place(m, k, c, &p->at));
    }
    out->points = points;
    return EV_OK;
}

static ev_status qualified_times(const making *m, const index_kernel *k, const bundle_variant *v,
                                 const bundle_qualified *q, index_times *out) {
    index_point *points = EV_NEW_ARRAY(m->arena, index_point, q->trial_count + 1);
    if (points == NULL)
        return fail_memory(m);
    for (size_t i = 0; i < q->trial_count; i++) {
        const bundle_trial *t = &q->trials[i];
        const bundle_case *c = find_case(v, t->name);
        if (c == NULL || !(t->variant.ns > 0 && t->baseline.ns > 0))
            continue;
        index_point *p = &points[out->count++];
        p->ratio = t->variant.ns / t->baseline.ns;
        p->loses_to_start = t->start.ns > 0 && t->beside_start.ns > t->start.ns;
        EV_TRY(place(m, k, c, &p->at));
    }
    out->of = q;
    out->points = points;
    return EV_OK;
}

/* ---- candidates ---- */

static ev_status make_ranges(const making *m, const index_kernel *k, index_candidate *out) {
    const launch_plan *plan = out->variant->plan;
    index_range *ranges = EV_NEW_ARRAY(m->arena, index_range, plan->range_count + 1);
    if (ranges == NULL)
        return fail_memory(m);
    for (size_t i = 0; i < plan->range_count; i++) {
        const launch_range *r = &plan->ranges[i];
        ranges[i] = (index_range){
            .is_real = r->is_real, .low = r->low, .high = r->high, .multiple = r->multiple};
        if (r->multiple < 1)
            ranges[i].multiple = 1;
        (void)index_find_dimension(k, r->name, &ranges[i].dimension);
    }
    out->ranges = ranges;
    out->range_count = plan->range_count;
    return EV_OK;
}

static ev_status make_candidate(const making *m, const index_kernel *k, const bundle_variant *v,
                                bool is_start, index_candidate *out) {
    index_times *times = EV_NEW_ARRAY(m->arena, index_times, v->qualified_count + 1);
    if (times == NULL)
        return fail_memory(m);
    out->variant = v;
    out->is_start = is_start;
    out->times = times;
    EV_TRY(make_ranges(m, k, out));
    EV_TRY(tuning_times(m, k, v, &times[0]));
    for (size_t i = 0; i < v->qualified_count; i++)
        EV_TRY(qualified_times(m, k, v, &v->qualified[i], &times[i + 1]));
    return EV_OK;
}

/* By GPU model; then variants before starts, and the manifest's order. */
static int compare_candidates(const void *a, const void *b) {
    const index_candidate *left = a, *right = b;
    const bundle_variant *l = left->variant, *r = right->variant;
    int order = strcmp(l->gpu_id, r->gpu_id);
    if (order == 0)
        order = strcmp(l->gpu_name, r->gpu_name);
    if (order == 0)
        order = (l->sm > r->sm) - (l->sm < r->sm);
    if (order == 0)
        order = (l->sms > r->sms) - (l->sms < r->sms);
    if (order == 0)
        order = left->is_start - right->is_start;
    return order != 0 ? order : (l > r) - (l < r);
}

static bool is_of(const index_group *g, const bundle_variant *v) {
    return strcmp(g->like->gpu_id, v->gpu_id) == 0 && strcmp(g->like->gpu_name, v->gpu_name) == 0 &&
           g->sm == v->sm && g->sms == v->sms;
}

static ev_status make_groups(const making *m, index_kernel *k, index_candidate *all, size_t count) {
    index_group *groups = EV_NEW_ARRAY(m->arena, index_group, count + 1);
    if (groups == NULL)
        return fail_memory(m);
    for (size_t i = 0; i < count; i++) {
        const bundle_variant *v = all[i].variant;
        if (k->group_count == 0 || !is_of(&groups[k->group_count - 1], v))
            groups[k->group_count++] =
                (index_group){.like = v, .sm = v->sm, .sms = v->sms, .candidates = &all[i]};
        groups[k->group_count - 1].count++;
    }
    k->groups = groups;
    for (size_t i = 0, at = 0; i < k->group_count; at += groups[i++].count)
        EV_TRY(index_families_make(m->arena, &all[at], groups[i].count, &groups[i],
                                   k->dimension_count, m->err));
    if (k->group_count > INDEX_GROUPS)
        return ev_fail(m->err, EV_BAD, "%s has variants for more than %d GPU models",
                       k->kernel->name, INDEX_GROUPS);
    return EV_OK;
}

static ev_status make_kernel(const making *m, const bundle_kernel *from, index_kernel *out) {
    size_t count = from->variant_count + from->start_count;
    const char **names = EV_NEW_ARRAY(m->arena, const char *, INDEX_DIMENSIONS);
    index_candidate *all = EV_NEW_ARRAY(m->arena, index_candidate, count + 1);
    if (names == NULL || all == NULL)
        return fail_memory(m);
    *out = (index_kernel){.kernel = from, .dimensions = names};
    EV_TRY(add_dimensions(m, out, names, from->variants, from->variant_count));
    EV_TRY(add_dimensions(m, out, names, from->starts, from->start_count));
    for (size_t i = 0; i < from->variant_count; i++)
        EV_TRY(make_candidate(m, out, &from->variants[i], false, &all[i]));
    for (size_t i = 0; i < from->start_count; i++)
        EV_TRY(make_candidate(m, out, &from->starts[i], true, &all[from->variant_count + i]));
    if (count > 0)
        qsort(all, count, sizeof *all, compare_candidates);
    return make_groups(m, out, all, count);
}

/* ---- kernels ---- */

static int compare_kernels(const void *a, const void *b) {
    return strcmp(((const index_kernel *)a)->kernel->name, ((const index_kernel *)b)->kernel->name);
}

ev_status bundle_index_make(ev_arena *arena, const bundle_kernel *kernels, size_t count,
                            bundle_index **out, ev_error *err) {
    const making m = {arena, err};
    bundle_index *index = EV_NEW(arena, bundle_index);
    index_kernel *all = EV_NEW_ARRAY(arena, index_kernel, count + 1);
    if (index == NULL || all == NULL)
        return fail_memory(&m);
    for (size_t i = 0; i < count; i++)
        EV_TRY(make_kernel(&m, &kernels[i], &all[i]));
    if (count > 0)
        qsort(all, count, sizeof *all, compare_kernels);
    for (size_t i = 1; i < count; i++) {
        if (compare_kernels(&all[i - 1], &all[i]) == 0)
            return ev_fail(err, EV_BAD, "the bundle has two kernels named '%s'",
                           all[i].kernel->name);
    }
    *index = (bundle_index){all, count};
    *out = index;
    return EV_OK;
}

const index_kernel *bundle_index_find(const bundle_index *index, const char *kernel) {
    size_t low = 0, high = index->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(index->kernels[middle].kernel->name, kernel);
        if (order == 0)
            return &index->kernels[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}
