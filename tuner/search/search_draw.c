/* Search: draws the next child's recipe: the opening's, or what the strategy makes. */
#include "tuner/search/search_inside.h"

#include "base/json.h"
#include "fitness/gates/fitness.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROBES 32        /* one child in so many is not filtered */
#define SKETCH_PROBES 64 /* one child in so many is built though its sketch is wrong */
#define AUDITS 64        /* one in so many is timed though it is like a known one */
#define ALTERNATIVES 4   /* arms of a step: if the wanted one has no place, the next */

/* ---- messages ---- */

void recipe_put(recipe *r, json_t *into, const char *key, json_t *value) {
    r->ok = json_object_set_new(into, key, value) == 0 && r->ok;
}

void recipe_append(recipe *r, json_t *list, json_t *value) {
    r->ok = json_array_append_new(list, value) == 0 && r->ok;
}

void recipe_parents(recipe *r, const member *first, const member *mate, char parents[48]) {
    json_t *list = json_array();
    recipe_put(r, r->message, "parents", list);
    recipe_append(r, list, json_incref(first->genome));
    snprintf(parents, 48, "%" PRIu64, first->child);
    if (!mate)
        return;
    recipe_append(r, list, json_incref(mate->genome));
    snprintf(parents, 48, "%" PRIu64 ",%" PRIu64, first->child, mate->child);
}

void recipe_start(recipe *r, const search *s, size_t start, char parents[48]) {
    member m = {.child = s->start_children[start], .genome = s->start_genomes[start]};
    recipe_parents(r, &m, NULL, parents);
}

static void put_step(recipe *r, json_t *steps, const bandit *arms, ev_pcg *rng) {
    json_t *step = json_array();
    recipe_append(r, steps, step);
    bool skip[BANDIT_MOST] = {false};
    for (int i = 0; i < ALTERNATIVES; i++) {
        unsigned arm = bandit_draw(arms, skip, rng);
        if (arm >= ARM_COUNT)
            return;
        skip[arm] = true;
        recipe_append(r, step, json_string(arm_name(arm)));
    }
}

void recipe_steps(recipe *r, const bandit *arms, size_t count, ev_pcg *rng) {
    json_t *steps = json_array();
    recipe_put(r, r->message, "steps", steps);
    for (size_t i = 0; i < count; i++)
        put_step(r, steps, arms, rng);
}

/* ---- children ---- */

static void put_opening(recipe *r, const search *s, draft *d) {
    const opening *o = &s->openings[s->drawn];
    recipe_put(r, r->message, "parents", json_pack("[O]", o->genome));
    recipe_put(r, r->message, "steps", json_array());
    d->start = (uint32_t)o->start;
    d->island = d->start; /* the first island of a start has its number */
}

/* The filter stops a child that is far slower than its parent on the small cases. */
static void put_reach(recipe *r, draft *d, ev_pcg *rng) {
    if (d->reach.sketch <= 0 && d->reach.built <= 0)
        return;
    d->probes = ev_pcg_below(rng, PROBES) == 0;
    if (!draft_probes(d))
        recipe_put(r, r->message, "reach",
                   json_pack("[f,f,f,f]", d->reach.sketch, d->reach.built, d->reach.error,
                             d->reach.first));
}

/* An opening is built whatever its sketch is: others grow from it. */
static void put_sketch(recipe *r, const search *s, ev_pcg *rng) {
    if (!s->rules->sketches)
        return;
    bool ignored = ev_pcg_below(rng, SKETCH_PROBES) == 0 || s->drawn < s->opening_count;
    recipe_put(r, r->message, "sketch", json_integer(ignored ? SKETCH_IGNORED : SKETCH_STOPPED));
}

/* What gained nothing by its sketch is not built by LLVM: a sketch that is as fast as its faster
 * parent's on the small cases, or else at full shape. Where neither limit is known the sketch is
 * timed all the same: its children's are held against it. */
static void put_sketched(recipe *r, const search *s, const draft *d) {
    const sketched *of = &d->sketch;
    bool times = draft_probes(d) || of->whole * (1 - FITNESS_NEAR_BELOW) < of->due;
    if (s->rules->estimates)
        recipe_put(r, r->message, "sketched",
                   draft_audits(d) ? json_pack("[f,f]", 0.0, 0.0)
                                   : json_pack("[f,f]", times ? 0.0 : of->near, of->due));
}

/* A sketch's own error at full shape is of one block. */
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

bool search_may_draw(const search *s) {
    return s->drawn < s->committed + SEARCH_LAG &&
           (s->drawn < s->opening_count || !s->rules->may_draw || s->rules->may_draw(s));
}

void search_let_through(search *s, bool let_through) {
    assert(s->drawn > s->committed);
    s->drafts[(s->drawn - 1) % SEARCH_LAG].let_through = let_through;
}

ev_status search_draw(search *s, bool let_through, search_recipe *out, ev_error *err) {
    assert(search_may_draw(s));
    recipe r = {.message = json_object(), .ok = true};
    draft d = {.let_through = let_through};
    search_recipe made = {.child = s->drawn, .message = r.message};
    ev_pcg rng = ev_pcg_child(s->seed, 0, 0, (uint32_t)s->drawn);
    if (s->drawn < s->opening_count)
        put_opening(&r, s, &d);
    else
        s->rules->draw(s, &r, &d, made.parents, &rng);
    put_reach(&r, &d, &rng);
    put_sketch(&r, s, &rng);
    d.audits = s->drawn % AUDITS == AUDITS - 1;
    put_sketched(&r, s, &d);
    made.island = d.island;
    made.generation = d.generation;
    recipe_put(&r, r.message, "stream",
               json_pack("[I,I,I,I]", (json_int_t)s->seed, (json_int_t)made.island,
                         (json_int_t)made.generation, (json_int_t)made.child));
    if (!r.message || !r.ok) {
        json_decref(r.message);
        return ev_fail_memory(err, 0);
    }
    s->drafts[s->drawn % SEARCH_LAG] = d;
    s->drawn++;
    *out = made;
    return EV_OK;
}
