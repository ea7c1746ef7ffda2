/* GEVO (Liou, Wang, Forrest, Wu, "GEVO: GPU Code Optimization Using Evolutionary Computation",
 * 2020), after its paper: six uniform edits on optimised code, followed by code generation only;
 * three edits at birth; NSGA-II on time and error; an elite of 1/64; crossover with probability 0.8
 * and mutation with 0.3 for each child; an edit that does not pass is drawn again.
 *
 * The population is 256 if the budget is the paper's 76,800 evaluations (300 generations). With a
 * smaller budget, population and generations shrink alike, since 256 individuals would hardly
 * evolve in a few generations. The other difference favours GEVO: a child without crossover and
 * mutation would be a copy, so it is mutated. */
#include "tuner/search/search_inside.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define POPULATION 256
#define LEAST_POPULATION 16
#define EVALUATIONS (POPULATION * 300.0)
#define BIRTH_EDITS 3
#define CROSSOVER 0.8
#define MUTATION 0.3
#define ELITE_SHARE 64
#define MATE_TRIES 8
#define TRIES 8 /* most children drawn for each that passes, so that a generation always ends */

static size_t population_for(uint64_t evaluations) {
    double size = POPULATION * sqrt((double)evaluations / EVALUATIONS);
    if (evaluations == 0 || size >= POPULATION)
        return POPULATION;
    return size < LEAST_POPULATION ? LEAST_POPULATION : (size_t)size;
}

static ev_status gevo_begin(search *s, ev_error *err) {
    gevo *g = &s->gevo;
    *g = (gevo){.size = population_for(s->evaluations), .first = s->opening_count};
    g->parents = calloc(2 * g->size, sizeof *g->parents);
    g->children = calloc(2 * g->size, sizeof *g->children);
    for (size_t i = 0; i < s->start_count; i++)
        search_open_arms(&s->starts[i], "gevo", SEARCH_ANY, NULL, &s->even[i]);
    g->child_count = g->size; /* all are still to be born */
    return g->parents && g->children ? EV_OK : ev_fail_memory(err, 2 * g->size * sizeof(member));
}

static void clear(member *members, size_t *count) {
    for (size_t i = 0; members && i < *count; i++)
        ir_genome_free(members[i].genome);
    *count = 0;
}

static void gevo_end(search *s) {
    gevo *g = &s->gevo;
    clear(g->parents, &g->parent_count);
    clear(g->children, &g->child_count);
    free(g->parents);
    free(g->children);
}

static bool is_better(const member *a, const member *b) {
    if (a->rank != b->rank)
        return a->rank < b->rank;
    if (a->crowding != b->crowding)
        return a->crowding > b->crowding;
    return a->child < b->child;
}

/* ---- births ---- */

static bool all_born(const gevo *g) {
    for (size_t i = 0; i < g->size; i++) {
        if (g->children[i].edits < BIRTH_EDITS)
            return false;
    }
    return true;
}

/* The next individual in turn that still lacks edits. */
static size_t next_slot(const gevo *g, uint64_t turn) {
    for (size_t i = 0; i < g->size; i++) {
        size_t at = (size_t)((turn + i) % g->size);
        if (g->children[at].edits < BIRTH_EDITS)
            return at;
    }
    return 0;
}

static void draw_birth(const search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    const gevo *g = &s->gevo;
    d->slot = next_slot(g, s->drawn - g->first);
    const member *m = &g->children[d->slot];
    d->start = (uint32_t)(d->slot % s->start_count);
    d->parent_ns = m->ns;
    d->parent_edits = m->edits;
    if (m->genome)
        recipe_parents(r, m, NULL, parents);
    else
        recipe_start(r, s, d->start, parents);
    recipe_steps(r, &s->even[d->start], 1, RECIPE_ALTERNATIVES, rng);
}

static void take_birth(gevo *g, size_t slot, const member *m) {
    if (m->edits <= g->children[slot].edits)
        return;
    ir_genome_free(g->children[slot].genome);
    g->children[slot] = *m;
    (void)ir_genome_ref(m->genome);
}

/* Removes the individuals for which no edit passed. */
static void drop_unborn(gevo *g) {
    size_t kept = 0;
    for (size_t i = 0; i < g->child_count; i++) {
        if (g->children[i].genome)
            g->children[kept++] = g->children[i];
    }
    g->child_count = kept;
}

/* ---- later generations ---- */

/* Chooses by a tournament of two. */
static const member *choose(const gevo *g, ev_pcg *rng) {
    const member *a = &g->parents[ev_pcg_below(rng, (uint32_t)g->parent_count)];
    const member *b = &g->parents[ev_pcg_below(rng, (uint32_t)g->parent_count)];
    return is_better(b, a) ? b : a;
}

static const member *choose_mate(const gevo *g, const member *first, ev_pcg *rng) {
    if (ev_pcg_unit(rng) >= CROSSOVER)
        return NULL;
    for (int i = 0; i < MATE_TRIES; i++) {
        const member *other = choose(g, rng);
        if (other->child != first->child && ir_genome_same_base(first->genome, other->genome))
            return other;
    }
    return NULL;
}

static size_t start_of(const search *s, const ir_genome *genome) {
    for (size_t i = 0; i < s->start_count; i++) {
        if (ir_genome_same_base(s->start_genomes[i], genome))
            return i;
    }
    return 0;
}

static void draw_child_of(const search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    const gevo *g = &s->gevo;
    const member *first = choose(g, rng), *mate = choose_mate(g, first, rng);
    bool mutated = ev_pcg_unit(rng) < MUTATION || !mate;
    d->start = (uint32_t)start_of(s, first->genome);
    d->parent_ns = mate && mate->ns < first->ns ? mate->ns : first->ns;
    d->parent_edits = first->edits;
    recipe_parents(r, first, mate, parents);
    recipe_steps(r, &s->even[d->start], mutated ? 1 : 0, RECIPE_ALTERNATIVES, rng);
}

static void gevo_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    d->generation = s->gevo.generation;
    if (s->gevo.generation == 0)
        draw_birth(s, r, d, parents, rng);
    else
        draw_child_of(s, r, d, parents, rng);
    d->island = d->start;
}

/* ---- generations ---- */

static int by_worth(const void *a, const void *b) {
    const member *x = a, *y = b;
    return is_better(x, y) ? -1 : is_better(y, x);
}

static bool is_over(const search *s, uint64_t drawn, size_t passed) {
    const gevo *g = &s->gevo;
    bool whole = g->generation == 0 ? all_born(g) : passed >= g->size;
    size_t edits = g->generation == 0 ? BIRTH_EDITS : 1;
    return whole || drawn - g->first >= TRIES * edits * g->size;
}

/* A generation needs all of the generation before, so drawing waits for its last children. */
static bool gevo_may_draw(const search *s) {
    size_t on_way = (size_t)(s->drawn - s->committed);
    return !is_over(s, s->drawn, s->gevo.child_count + on_way);
}

/* The elite of the parents joins the children, and more parents if too few children passed. The
 * best by rank and crowding become the next parents. */
static void next_generation(search *s) {
    gevo *g = &s->gevo;
    if (g->generation == 0)
        drop_unborn(g);
    size_t wanted = (g->size + ELITE_SHARE - 1) / ELITE_SHARE;
    if (g->child_count + wanted < g->size)
        wanted = g->size - g->child_count;
    for (size_t i = 0; i < wanted && i < g->parent_count; i++) {
        g->children[g->child_count] = g->parents[i];
        (void)ir_genome_ref(g->children[g->child_count++].genome);
    }
    clear(g->parents, &g->parent_count);
    population_rank(g->children, g->child_count);
    qsort(g->children, g->child_count, sizeof *g->children, by_worth);
    member *next = g->children;
    g->children = g->parents;
    g->parents = next;
    g->parent_count = g->child_count < g->size ? g->child_count : g->size;
    for (size_t i = g->parent_count; i < g->child_count; i++)
        ir_genome_free(g->parents[i].genome);
    g->child_count = 0;
    g->generation++;
}

/* Nobody was born: the births begin again. */
static void begin_births(gevo *g) {
    g->generation = 0;
    for (size_t i = 0; i < g->size; i++)
        g->children[i] = (member){0};
    g->child_count = g->size;
}

static void gevo_settle(search *s, const draft *d, const child_result *r, const search_verdict *v) {
    gevo *g = &s->gevo;
    if (s->committed < s->opening_count)
        return;
    if (search_passed(v)) {
        member m = member_of(s, r, v);
        if (g->generation == 0) {
            take_birth(g, d->slot, &m);
        } else if (g->child_count < g->size) {
            g->children[g->child_count++] = m;
            (void)ir_genome_ref(m.genome);
        }
    }
    bool last = s->committed + 1 == s->drawn; /* no child of this generation is under way */
    if (!last || !is_over(s, s->drawn, g->child_count))
        return;
    next_generation(s);
    if (g->parent_count == 0)
        begin_births(g);
    g->first = s->committed + 1;
}

const search_rules search_rules_gevo = {.optimised = true,
                                        .begin = gevo_begin,
                                        .end = gevo_end,
                                        .may_draw = gevo_may_draw,
                                        .draw = gevo_draw,
                                        .settle = gevo_settle};
