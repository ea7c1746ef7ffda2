/* Population: insertion, non-dominated ranks, crowding, selection. */
#include "tuner/search/population.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#define MOST_EQUALS 4 /* members of the same time and error */
#define TOURNAMENT 3

ev_status population_begin(population *p, size_t capacity, ev_error *err) {
    assert(capacity >= 2 * MOST_EQUALS);
    *p = (population){.capacity = capacity};
    p->members = calloc(capacity + 1, sizeof *p->members); /* one more place, for the newcomer */
    return p->members ? EV_OK : ev_fail_memory(err, (capacity + 1) * sizeof *p->members);
}

void population_end(population *p) {
    for (size_t i = 0; i < p->count; i++)
        ir_genome_free(p->members[i].genome);
    free(p->members);
    *p = (population){0};
}

/* ---- ranks ---- */

static bool dominates(const member *a, const member *b) {
    return a->ns <= b->ns && a->error <= b->error && (a->ns < b->ns || a->error < b->error);
}

/* Numbers the fronts, one after another. Populations are small, so the quadratic algorithm is fast
 * enough. */
static void set_ranks(member *members, size_t count) {
    assert(members != NULL);
    for (size_t i = 0; i < count; i++)
        members[i].rank = UINT32_MAX;
    size_t left = count;
    for (unsigned rank = 0; left > 0; rank++) {
        for (size_t i = 0; i < count; i++) {
            bool beaten = members[i].rank < rank;
            for (size_t j = 0; j < count && !beaten; j++)
                beaten = members[j].rank >= rank && dominates(&members[j], &members[i]);
            if (!beaten && members[i].rank == UINT32_MAX) {
                members[i].rank = rank;
                left--;
            }
        }
    }
}

/* The crowding gap: the distance between the nearest members of the same rank below and above, by
 * time or by error. On a front a larger time means a smaller error, so both orders have the same
 * neighbours. */
static double gap(const member *members, size_t count, size_t at, bool by_error, double span) {
    const member *m = &members[at];
    double here = by_error ? m->error : m->ns;
    double below = -INFINITY, above = INFINITY;
    for (size_t i = 0; i < count; i++) {
        double there = by_error ? members[i].error : members[i].ns;
        if (i == at || members[i].rank != m->rank)
            continue;
        if (there < here || (there == here && i < at))
            below = fmax(below, there);
        else
            above = fmin(above, there);
    }
    if (isinf(below) || isinf(above))
        return INFINITY;
    return span > 0 ? (above - below) / span : 0;
}

void population_rank(member *members, size_t count) {
    set_ranks(members, count);
    double low[2] = {INFINITY, INFINITY}, high[2] = {-INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++) {
        low[0] = fmin(low[0], members[i].ns);
        high[0] = fmax(high[0], members[i].ns);
        low[1] = fmin(low[1], members[i].error);
        high[1] = fmax(high[1], members[i].error);
    }
    for (size_t i = 0; i < count; i++)
        members[i].crowding = gap(members, count, i, false, high[0] - low[0]) +
                              gap(members, count, i, true, high[1] - low[1]);
}

/* ---- members ---- */

static bool is_faster(const member *a, const member *b) {
    if (a->ns != b->ns)
        return a->ns < b->ns;
    if (a->edits != b->edits)
        return a->edits < b->edits;
    return a->child < b->child;
}

const member *population_best(const population *p) {
    const member *best = NULL;
    for (size_t i = 0; i < p->count; i++) {
        if (!best || is_faster(&p->members[i], best))
            best = &p->members[i];
    }
    return best;
}

static bool is_better(const member *a, const member *b) {
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->crowding != b->crowding)
        return a->crowding > b->crowding;
    return a->child > b->child; /* the newer first: drift among equals */
}

static void remove_at(population *p, size_t at) {
    ir_genome_free(p->members[at].genome);
    for (size_t i = at + 1; i < p->count; i++)
        p->members[i - 1] = p->members[i];
    p->count--;
}

/* Removes the oldest of too many equal members. Members are in order of arrival, so the first equal
 * is the oldest. The elite is never removed. */
static void thin_equals(population *p, const member *m) {
    const member *best = population_best(p);
    size_t equals = 0, oldest = p->count;
    for (size_t i = p->count; i-- > 0;) {
        const member *other = &p->members[i];
        if (other->ns != m->ns || other->error != m->error)
            continue;
        equals++;
        if (other != best)
            oldest = i;
    }
    if (equals > MOST_EQUALS && oldest < p->count)
        remove_at(p, oldest);
}

void population_insert(population *p, const member *m) {
    p->members[p->count] = *m;
    (void)ir_genome_ref(m->genome);
    p->count++;
    thin_equals(p, m);
    population_rank(p->members, p->count);
    if (p->count <= p->capacity)
        return;
    const member *best = population_best(p);
    size_t worst = p->count;
    for (size_t i = 0; i < p->count; i++) {
        if (&p->members[i] != best &&
            (worst == p->count || is_better(&p->members[worst], &p->members[i])))
            worst = i;
    }
    remove_at(p, worst);
    population_rank(p->members, p->count);
}

void population_restart(population *p) {
    const member *best = population_best(p);
    for (size_t i = p->count; best && i-- > 0;) {
        uint64_t keep = best->child;
        if (p->members[i].child != keep) {
            remove_at(p, i);
            best = population_best(p);
        }
    }
    population_rank(p->members, p->count);
}

/* Half of the tournaments compare time alone. The front provides stepping stones, but time is the
 * objective. */
const member *population_select(const population *p, ev_pcg *rng) {
    const member *chosen = NULL;
    bool by_time = ev_pcg_below(rng, 2) == 0;
    for (int i = 0; p->count > 0 && i < TOURNAMENT; i++) {
        const member *other = &p->members[ev_pcg_below(rng, (uint32_t)p->count)];
        if (!chosen || (by_time ? is_faster(other, chosen) : is_better(other, chosen)))
            chosen = other;
    }
    return chosen;
}
