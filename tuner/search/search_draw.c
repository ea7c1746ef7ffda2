/* Search, drawing: makes the recipe of the next child, an opening or the strategy's choice. */
#include "tuner/search/search_inside.h"

#include "fitness/gates/fitness.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROBES 32        /* one child in so many is not filtered (an audit of the filter) */
#define SKETCH_PROBES 64 /* one child in so many is built although its fast code is wrong */
#define SKELETON_SLACK 2 /* a skeleton's fast code may take so many times its parent's */
#define AUDITS 64        /* one child in so many is timed although its fingerprint is known */

/* ---- recipes ---- */

void recipe_free(recipe *r) {
    for (unsigned i = 0; i < r->parent_count; i++)
        ir_genome_free(r->parents[i]);
    for (unsigned i = 0; i < r->origin_count; i++)
        ir_genome_free(r->origin[i]);
    for (unsigned i = 0; i < r->stock_count; i++)
        ir_genome_free(r->stock[i]);
    *r = (recipe){0};
}

static void add_parent(recipe *r, const ir_genome *genome) {
    r->parents[r->parent_count++] = ir_genome_ref(genome);
}

void recipe_parents(recipe *r, const member *first, const member *mate, char lineage[48]) {
    assert(r->parent_count == 0);
    add_parent(r, first->genome);
    snprintf(lineage, RECIPE_LINEAGE, "%" PRIu64, first->child);
    if (!mate)
        return;
    add_parent(r, mate->genome);
    snprintf(lineage, RECIPE_LINEAGE, "%" PRIu64 ",%" PRIu64, first->child, mate->child);
}

void recipe_make(recipe *r, recipe_made made, const ir_genome *genome) {
    assert(r->parent_count > 0 && r->origin_count == 0 && made != RECIPE_TAKEN);
    bool keeps_origin = made != RECIPE_CROSSED && made != RECIPE_REDUCED;
    if (keeps_origin)
        r->origin[r->origin_count++] = ir_genome_ref(r->parents[0]);
    for (unsigned i = 0; i < r->parent_count; i++)
        ir_genome_free(r->parents[i]);
    r->parents[0] = genome;
    r->parent_count = 1;
    r->made = made;
}

void recipe_stock(recipe *r, const ir_genome *genome) {
    assert(r->stock_count < RECIPE_STOCK);
    if (genome)
        r->stock[r->stock_count++] = genome;
    else
        r->failed = true;
}

void recipe_start(recipe *r, const search *s, size_t start, char lineage[48]) {
    member m = {.child = s->start_children[start], .genome = s->start_genomes[start]};
    recipe_parents(r, &m, NULL, lineage);
}

static void draw_step(recipe_step *step, const bandit *arms, size_t most, ev_pcg *rng) {
    bool skip[BANDIT_MOST] = {false};
    while (step->count < most) {
        unsigned arm = bandit_draw(arms, skip, rng);
        if (arm >= ARM_COUNT)
            return;
        skip[arm] = true;
        step->arms[step->count++] = arm;
    }
}

void recipe_steps(recipe *r, const bandit *arms, size_t count, size_t most, ev_pcg *rng) {
    assert(most <= RECIPE_ALTERNATIVES);
    assert(r->step_count + count <= RECIPE_STEPS);
    for (size_t i = 0; i < count; i++)
        draw_step(&r->steps[r->step_count++], arms, most, rng);
}

/* ---- children ---- */

static void put_opening(recipe *r, const search *s, draft *d) {
    const opening *o = &s->openings[s->drawn];
    add_parent(r, o->genome);
    d->start = (uint32_t)o->start;
    d->island = d->start; /* the first island of a start has the start's number */
}

/* Sets the filter's limits: the filter stops a child that is slower than its parents on the small
 * cases. */
static void put_reach(recipe *r, draft *d, ev_pcg *rng) {
    if (d->reach.sketch <= 0 && d->reach.built <= 0)
        return;
    d->probes = ev_pcg_below(rng, PROBES) == 0;
    if (!draft_probes(d))
        r->reach = (recipe_reach){.sketch = d->reach.sketch,
                                  .built = d->reach.built,
                                  .first = d->reach.first,
                                  .error = d->reach.error};
}

/* Chooses the consequence of wrong fast code. An opening is built anyway, since others grow from
 * it. */
static void put_sketch(recipe *r, const search *s, ev_pcg *rng) {
    if (!s->rules->sketches)
        return;
    bool ignored = ev_pcg_below(rng, SKETCH_PROBES) == 0 || s->drawn < s->opening_count;
    r->sketch = ignored ? SKETCH_IGNORED : SKETCH_STOPPED;
}

/* Sets the limits for fast code. LLVM does not build a child whose fast code is no faster than its
 * faster parent's, on the small cases or else at full shape. Fast code schedules nothing, so the
 * structure with the slower fast code may have the faster code by LLVM: a child of another
 * structure is built unless its fast code takes twice as long. If neither limit is known, the fast
 * code is timed all the same, for comparison with that of later children. */
static void put_estimate(recipe *r, const search *s, const draft *d) {
    const sketched *of = &d->sketch;
    bool probes = draft_probes(d) || of->whole * (1 - FITNESS_NEAR_BELOW) < of->due;
    r->estimate.times = s->rules->estimates;
    if (!s->rules->estimates || draft_audits(d))
        return;
    r->estimate.near = probes ? 0 : of->near;
    r->estimate.due = of->due * (d->skeleton ? SKELETON_SLACK : 1);
}

/* The parent's error for an estimate. Fast code runs one block at full shape, so its own error
 * there is no measure. */
static double error_of(const draft *d, const small_run *small) {
    double times = d->parent_small_error > 0 ? small->error / d->parent_small_error : 1;
    return fmax(small->error, d->parent_error * times);
}

void search_estimate(const search *s, uint64_t child, const small_run *small, double *ns,
                     double *error) {
    assert(child >= s->committed && child < s->drawn);
    const draft *d = &s->drafts[child % SEARCH_LAG];
    *ns = search_estimate_of(d, small);
    *error = error_of(d, small);
}

bool search_is_exhausted(const search *s) {
    return s->drawn >= s->opening_count && s->rules->is_exhausted && s->rules->is_exhausted(s);
}

bool search_may_draw(const search *s) {
    return s->drawn < s->committed + SEARCH_LAG && !search_is_exhausted(s) &&
           (s->drawn < s->opening_count || !s->rules->may_draw || s->rules->may_draw(s));
}

void search_let_through(search *s, bool let_through) {
    assert(s->drawn > s->committed);
    s->drafts[(s->drawn - 1) % SEARCH_LAG].let_through = let_through;
}

ev_status search_draw(search *s, bool let_through, recipe *out, ev_error *err) {
    assert(search_may_draw(s));
    recipe r = {0};
    draft d = {.let_through = let_through};
    ev_pcg rng = ev_pcg_child(s->seed, 0, 0, (uint32_t)s->drawn);
    if (s->drawn < s->opening_count)
        put_opening(&r, s, &d);
    else
        s->rules->draw(s, &r, &d, r.lineage, &rng);
    put_reach(&r, &d, &rng);
    put_sketch(&r, s, &rng);
    d.audits = s->drawn % AUDITS == AUDITS - 1;
    put_estimate(&r, s, &d);
    r.wrong_count = wrong_marks(&s->wrong, r.wrong);
    r.without = s->without;
    memcpy(d.steps, r.steps, sizeof d.steps);
    d.step_count = r.step_count;
    r.stream = (recipe_stream){
        .seed = s->seed, .child = s->drawn, .island = d.island, .generation = d.generation};
    if (r.failed) {
        recipe_free(&r);
        return ev_fail_memory(err, 0);
    }
    s->drafts[s->drawn % SEARCH_LAG] = d;
    s->drawn++;
    *out = r;
    return EV_OK;
}
