/* Random search and hill climbing: the baselines that any search has to beat. */
#include "tuner/search/search_inside.h"

#include <stdlib.h>

#define MOST_STEPS 8
#define GO_ON 0.65   /* probability of each further step of a random child */
#define PATIENCE 100 /* children from one point that were not taken, before a restart */

static ev_status open_even_arms(search *s, ev_error *err) {
    (void)err;
    for (size_t i = 0; i < s->start_count; i++)
        search_open_arms(&s->starts[i], NULL, SEARCH_ANY, NULL, &s->even[i]);
    return EV_OK;
}

static void choose_start(const search *s, draft *d, ev_pcg *rng) {
    d->start = ev_pcg_below(rng, (uint32_t)s->start_count);
    d->island = d->start;
}

/* ---- random ---- */

static void random_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    choose_start(s, d, rng);
    recipe_start(r, s, d->start, parents);
    size_t steps = 1;
    while (steps < MOST_STEPS && ev_pcg_unit(rng) < GO_ON)
        steps++;
    recipe_steps(r, &s->even[d->start], steps, RECIPE_ALTERNATIVES, rng);
}

static void random_settle(search *s, const draft *d, const child_result *r,
                          const search_verdict *v) {
    (void)s, (void)d, (void)r, (void)v; /* random search learns nothing */
}

static void random_end(search *s) {
    (void)s;
}

const search_rules search_rules_random = {
    .begin = open_even_arms, .end = random_end, .draw = random_draw, .settle = random_settle};

/* ---- hill climbing ---- */

static ev_status hill_begin(search *s, ev_error *err) {
    s->climbers = calloc(s->start_count, sizeof *s->climbers);
    return s->climbers ? open_even_arms(s, err)
                       : ev_fail_memory(err, s->start_count * sizeof *s->climbers);
}

static void hill_end(search *s) {
    for (size_t i = 0; s->climbers && i < s->start_count; i++)
        ir_genome_free(s->climbers[i].now.genome);
    free(s->climbers);
}

static void hill_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    choose_start(s, d, rng);
    const climber *c = &s->climbers[d->start];
    d->generation = c->restarts;
    if (c->now.genome) {
        recipe_parents(r, &c->now, NULL, parents);
        d->parent_ns = c->now.ns;
        d->parent_edits = c->now.edits;
    } else {
        recipe_start(r, s, d->start, parents);
    }
    recipe_steps(r, &s->even[d->start], 1, RECIPE_ALTERNATIVES, rng);
}

static void climb_to(climber *c, const member *m) {
    ir_genome_free(c->now.genome);
    c->now = *m;
    (void)ir_genome_ref(c->now.genome);
}

/* Takes a child that is at least as fast, so that the climber can cross a plateau. Children from
 * before a restart are ignored. */
static void hill_settle(search *s, const draft *d, const child_result *r, const search_verdict *v) {
    climber *c = &s->climbers[d->start];
    if (s->committed < s->opening_count || d->generation != c->restarts)
        return;
    double now = c->now.genome ? c->now.ns : s->start_ns[d->start];
    c->idle++;
    if (search_passed(v) && (now == 0 || v->outcome.ns <= now)) {
        if (now == 0 || v->outcome.ns < now)
            c->idle = 0;
        member m = member_of(s, r, v);
        climb_to(c, &m);
    }
    if (c->idle > PATIENCE) {
        ir_genome_free(c->now.genome);
        *c = (climber){.restarts = c->restarts + 1};
    }
}

const search_rules search_rules_hill = {
    .begin = hill_begin, .end = hill_end, .draw = hill_draw, .settle = hill_settle};
