/* Families: puts candidates with equal ranges and timed shapes together, and finds the best of each
 * family at each of these shapes, so that resolving looks at a family and not at its members.
 *
 * A candidate that a request may refuse for itself stays alone: a disabled, qualified or bold one,
 * and one that needs alignment. */
#include "bundle/index.h"

#include <string.h>

static bool may_join(const index_candidate *c) {
    const bundle_variant *v = c->variant;
    return v->disabled == NULL && v->qualified_count == 0 && v->alignment_count == 0 &&
           (!v->is_bold || v->is_default) && c->range_count > 0 && c->times[0].count > 0 &&
           c->times[0].count <= INDEX_POINTS;
}

static bool is_same_range(const index_range *a, const index_range *b) {
    return a->dimension == b->dimension && a->is_real == b->is_real && a->low == b->low &&
           a->high == b->high && a->multiple == b->multiple;
}

static bool is_kin(const index_candidate *a, const index_candidate *b, size_t dimensions) {
    bool is = a->range_count == b->range_count && a->times[0].count == b->times[0].count;
    for (size_t i = 0; is && i < a->range_count; i++)
        is = is_same_range(&a->ranges[i], &b->ranges[i]);
    for (size_t i = 0; is && i < a->times[0].count; i++)
        is = memcmp(a->times[0].points[i].at, b->times[0].points[i].at,
                    dimensions * sizeof(double)) == 0;
    return is;
}

/* A family while its members are gathered. */
typedef struct gathered {
    const index_candidate **members;
    size_t count;
} gathered;

static ev_status join(ev_arena *arena, index_candidate *c, size_t room, size_t dimensions,
                      gathered *all, size_t *count, ev_error *err) {
    size_t at = 0;
    while (at < *count && !is_kin(all[at].members[0], c, dimensions))
        at++;
    if (at == INDEX_FAMILIES)
        return EV_OK; /* it stays alone */
    if (at == *count) {
        all[at] = (gathered){EV_NEW_ARRAY(arena, const index_candidate *, room), 0};
        if (all[at].members == NULL)
            return ev_fail_memory(err, room * sizeof(void *));
        (*count)++;
    }
    all[at].members[all[at].count++] = c;
    c->is_member = true;
    return EV_OK;
}

static double ratio_at(const index_candidate *c, size_t point) {
    return c->times[0].points[point].ratio;
}

/* Of equal ratios the first counts. */
static ev_status find_best(ev_arena *arena, const gathered *from, index_family *out,
                           ev_error *err) {
    size_t points = from->members[0]->times[0].count;
    const index_candidate **best = EV_NEW_ARRAY(arena, const index_candidate *, points);
    const index_candidate **refused = EV_NEW_ARRAY(arena, const index_candidate *, points);
    if (best == NULL || refused == NULL)
        return ev_fail_memory(err, points * sizeof(void *));
    for (size_t p = 0; p < points; p++) {
        for (size_t i = 0; i < from->count; i++) {
            const index_candidate *c = from->members[i];
            const index_candidate **place = ratio_at(c, p) > 1 ? &refused[p] : &best[p];
            bool is_passed_over = ratio_at(c, p) > 1 && c->is_start;
            if (!is_passed_over && (*place == NULL || ratio_at(c, p) < ratio_at(*place, p)))
                *place = c;
        }
    }
    *out = (index_family){from->members, from->count, best, refused};
    return EV_OK;
}

ev_status index_families_make(ev_arena *arena, index_candidate *candidates, size_t count,
                              index_group *group, size_t dimensions, ev_error *err) {
    gathered all[INDEX_FAMILIES];
    size_t made = 0, members = 0;
    for (size_t i = 0; i < count; i++) {
        if (may_join(&candidates[i]))
            EV_TRY(join(arena, &candidates[i], count, dimensions, all, &made, err));
        members += candidates[i].is_member;
    }
    index_family *families = EV_NEW_ARRAY(arena, index_family, made + 1);
    if (families == NULL)
        return ev_fail_memory(err, made * sizeof *families);
    for (size_t i = 0; i < made; i++)
        EV_TRY(find_best(arena, &all[i], &families[i], err));
    group->families = families;
    group->family_count = made;
    group->alone = count - members;
    return EV_OK;
}
