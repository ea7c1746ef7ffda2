/* Evolve: Evoke's own strategy, a steady-state evolutionary algorithm on islands.
 *
 * Each start has islands of two fields: in the preserving field no edit is bold (ir/edits.def), in
 * the other any edit may be.
 *
 * evolve_draw makes a child in four steps: it chooses a field and an island of it (half of the
 * children go to the island with the field's elite), one or two parents (choose_parent,
 * choose_mate), the arms of one to three steps (the island's bandit, bandit.h), and what the worker
 * may combine (the stock). An edit that made some child faster is first tried on the elite that
 * lacks it (draw_merge).
 *
 * evolve_settle learns from a committed child: it pays the arms, updates arm statistics, tabu list
 * and linkage, and puts a child that passed into population and niches. An island without progress
 * restarts from the elites of all islands of its start.
 *
 * Selection is NSGA-II's on time and error (population.h); the niches keep one elite for each
 * setting of the macros, since the fastest setting now need not be the one with the most to gain.
 */
#include "tuner/search/search_inside.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POPULATION 32
#define EVALUATIONS_AN_ISLAND 3000 /* a start gets another island for each so many evaluations */
#define MOST_ISLANDS_A_START 4
#define PATIENCE 160      /* children of an island without a better best before it restarts */
#define NEUTRAL 0.001     /* relative change of time that counts as none */
#define LIGHT_LOSS 0.005  /* of a start by the light pipeline: it grows by it all the same */
#define BOLD_FIELD 0.25   /* so often a child is drawn in the field where edits may be bold */
#define BEST_ISLAND 0.5   /* so often the island with the fastest member gets the child */
#define NICHE_PARENT 0.4  /* so often the parent is the fastest of one setting of the macros */
#define BEST_PARENT 0.35  /* so often it is the island's fastest, or as fast */
#define REACH 1.0001      /* times the slower parent's small cases: what is slower is filtered */
#define FIRST_REACH 1.003 /* the same for the first of them alone */
#define ACCURATE 0.9      /* times the parents' error there: what is more accurate is not */
#define CROSSOVER 0.3     /* so often there are two parents, where two can be crossed */
#define MATING_TRIES 6    /* crossovers of one pair, until a child is not known */
#define CROSSED_ALONE 0.5 /* probability that a crossed child takes no step: pure recombination */
#define ONE_STEP 0.75     /* probability of one step: a single edit tells what that edit is worth */
#define TWO_STEPS 0.93    /* probability of at most two steps; the rest take three, to leap */
#define TABU_PROBES 8     /* one child in so many may be made with an edit of the tabu list */

/* ---- islands and parents ---- */

static size_t best_island(const search *s, search_field field) {
    size_t best = s->island_count;
    double best_ns = 0;
    for (size_t i = 0; i < s->island_count; i++) {
        const member *m = population_best(&s->islands[i].members);
        if (m && s->islands[i].field == field && (best == s->island_count || m->ns < best_ns)) {
            best = i;
            best_ns = m->ns;
        }
    }
    return best;
}

static size_t choose_island(const search *s, ev_pcg *rng) {
    search_field field = s->bold || ev_pcg_unit(rng) < BOLD_FIELD ? SEARCH_ANY : SEARCH_PRESERVING;
    bool to_best = ev_pcg_unit(rng) < BEST_ISLAND;
    size_t half = s->island_count / SEARCH_FIELDS;
    size_t any = field * half + ev_pcg_below(rng, (uint32_t)half);
    size_t best = best_island(s, field);
    return to_best && best < s->island_count ? best : any;
}

/* Chooses among the members as fast as the elite, so that the search drifts on a plateau. */
static const member *choose_best(const population *p, ev_pcg *rng) {
    const member *best = population_best(p);
    size_t equals = 0;
    for (size_t i = 0; best && i < p->count; i++)
        equals += p->members[i].ns <= best->ns * (1 + NEUTRAL);
    size_t wanted = equals > 0 ? ev_pcg_below(rng, (uint32_t)equals) : 0;
    for (size_t i = 0; equals > 0 && i < p->count; i++) {
        if (p->members[i].ns <= best->ns * (1 + NEUTRAL) && wanted-- == 0)
            return &p->members[i];
    }
    return best;
}

/* The faster of two random niches. */
static const member *choose_niche(const island *is, ev_pcg *rng) {
    size_t a = ev_pcg_below(rng, (uint32_t)is->niche_count);
    size_t b = ev_pcg_below(rng, (uint32_t)is->niche_count);
    return &is->niches[a < b ? a : b];
}

static const member *choose_parent(const island *is, ev_pcg *rng) {
    double at = ev_pcg_unit(rng);
    if (at < NICHE_PARENT && is->niche_count > 1)
        return choose_niche(is, rng);
    return at < NICHE_PARENT + BEST_PARENT ? choose_best(&is->members, rng)
                                           : population_select(&is->members, rng);
}

static bool sets(const ir_genome *genome, const char *name, int64_t value) {
    for (size_t i = 0; i < ir_genome_macro_count(genome); i++) {
        if (strcmp(ir_genome_macro_name(genome, i), name) == 0)
            return ir_genome_macro_value(genome, i) == value;
    }
    return false;
}

/* Counts the macros of `a` that `b` does not set to the same value. */
static size_t count_other_values(const ir_genome *a, const ir_genome *b) {
    size_t count = 0;
    for (size_t i = 0; i < ir_genome_macro_count(a); i++)
        count += !sets(b, ir_genome_macro_name(a, i), ir_genome_macro_value(a, i));
    return count;
}

static bool sets_at_all(const ir_genome *genome, const char *name) {
    for (size_t i = 0; i < ir_genome_macro_count(genome); i++) {
        if (strcmp(ir_genome_macro_name(genome, i), name) == 0)
            return true;
    }
    return false;
}

/* Counts the macros with different values in both. An unset macro has its default. */
static size_t macro_differences(const ir_genome *a, const ir_genome *b) {
    size_t count = count_other_values(a, b);
    for (size_t i = 0; i < ir_genome_macro_count(b); i++)
        count += !sets_at_all(a, ir_genome_macro_name(b, i));
    return count;
}

/* Whether two members can be crossed into a child that equals neither. Either each has edits that
 * the other lacks, on one base; or they differ in several macros, and all edits apply to any base.
 */
static bool can_cross(const member *a, const member *b) {
    if (ir_genome_same_base(a->genome, b->genome))
        return !ir_genome_holds_all(a->genome, b->genome) &&
               !ir_genome_holds_all(b->genome, a->genome);
    return ir_genome_is_skeleton(a->genome) && ir_genome_is_skeleton(b->genome) &&
           ir_genome_same_prefix(a->genome, b->genome) &&
           macro_differences(a->genome, b->genome) > 1;
}

/* Chooses a second parent. NULL: the child has one parent. */
static const member *choose_mate(const population *p, const member *first, ev_pcg *rng) {
    bool alone = ev_pcg_unit(rng) >= CROSSOVER;
    size_t from = ev_pcg_below(rng, (uint32_t)p->count);
    for (size_t i = 0; !alone && i < p->count; i++) {
        const member *other = &p->members[(from + i) % p->count];
        if (can_cross(first, other))
            return other;
    }
    return NULL;
}

/* Crosses the parents, several times if the child is known. The caller owns the reference. */
static const ir_genome *cross_anew(const search *s, const member *first, const member *mate,
                                   ev_pcg *rng) {
    edit_pair pairs[LINKS_MOST];
    draw_links needs = {pairs, links_of(&s->links, first->genome, mate->genome, pairs)};
    uint64_t same_as = 0;
    for (int i = 0; i < MATING_TRIES; i++) {
        const ir_genome *child = draw_crossed(first->genome, mate->genome, &needs, rng);
        if (child && !search_knows(s, child, SEARCH_BY_GENOME, "", &same_as))
            return child;
        ir_genome_free(child);
    }
    return NULL;
}

member search_light_start(const search *s, size_t start) {
    for (size_t i = 0; i < s->opening_count; i++) {
        if (s->openings[i].light && s->openings[i].start == start)
            return (member){.child = i, .genome = s->openings[i].genome, .edits = 1};
    }
    return (member){.child = s->start_children[start], .genome = s->start_genomes[start]};
}

/* Limits from two parents: the slower one's times, the smaller error. */
static small_run reach_of(const small_run *a, const small_run *b) {
    return (small_run){.sketch = REACH * fmax(a->sketch, b->sketch),
                       .built = REACH * fmax(a->built, b->built),
                       .first = FIRST_REACH * fmax(a->first, b->first),
                       .error = ACCURATE * fmin(a->error, b->error)};
}

static void put_parents(recipe *r, const search *s, const island *is, draft *d, char parents[48],
                        ev_pcg *rng) {
    const member *first = choose_parent(is, rng);
    if (!first) { /* the island has no member yet */
        member light = search_light_start(s, is->start);
        recipe_parents(r, &light, NULL, parents);
        d->parent = light.child;
        d->parent_edits = light.edits;
        d->single = true;
        return;
    }
    const member *mate = choose_mate(&is->members, first, rng);
    const ir_genome *crossed = mate ? cross_anew(s, first, mate, rng) : NULL;
    if (!crossed)
        mate = NULL;
    recipe_parents(r, first, mate, parents);
    if (crossed)
        recipe_make(r, RECIPE_CROSSED, crossed);
    const member *faster = mate && mate->ns < first->ns ? mate : first;
    d->parent_ns = faster->ns;
    d->sketch = faster->sketch;
    d->parent_error = faster->error;
    d->parent_small_error = faster->small.error;
    d->reach = reach_of(&first->small, mate ? &mate->small : &first->small);
    d->parent = first->child;
    d->parent_edits = first->edits;
    d->single = mate == NULL;
}

/* ---- steps ---- */

/* A crossed child takes no step or one; every other child takes one, two or three. */
static size_t choose_step_count(bool crossed, ev_pcg *rng) {
    double at = ev_pcg_unit(rng);
    if (crossed)
        return at < CROSSED_ALONE ? 0 : 1;
    if (at < ONE_STEP)
        return 1;
    return at < TWO_STEPS ? 2 : 3;
}

static void put_steps(recipe *r, const island *is, draft *d, ev_pcg *rng) {
    size_t count = choose_step_count(!d->single, rng);
    recipe_steps(r, &is->arms, count, RECIPE_ALTERNATIVES, rng);
    d->single = d->single && count == 1;
}

/* Marks the arms that the steps may take. */
static void arms_of(const recipe *r, bool arms[ARM_COUNT]) {
    for (unsigned i = 0; i < r->step_count; i++) {
        for (unsigned k = 0; k < r->steps[i].count; k++)
            arms[r->steps[i].arms[k]] = true;
    }
}

static void put_tabu(recipe *r, const tabu_list *noted, ev_pcg *rng) {
    bool arms[ARM_COUNT] = {false}; /* the edits come first */
    arms_of(r, arms);
    if (ev_pcg_below(rng, TABU_PROBES) == 0)
        return;
    r->tabu_count = tabu_marks(noted, r->parents[0], arms, r->tabu);
}

/* The edit of a stock entry as a genome of its own. */
static const ir_genome *alone(const stock_entry *e) {
    return ir_genome_part(e->genome, e->edit, e->edit + 1);
}

/* Puts a part of the stock into the recipe, if a step may use it: entries on the parent's base,
 * from a random place on. */
static void put_stock(recipe *r, const island *is, ev_pcg *rng) {
    bool arms[ARM_COUNT] = {false};
    size_t from = is->stock_count > 0 ? ev_pcg_below(rng, (uint32_t)is->stock_count) : 0;
    arms_of(r, arms);
    if (!arms[ARM_OF(COMBINE)])
        return;
    for (size_t i = 0; i < is->stock_count && r->stock_count < RECIPE_STOCK; i++) {
        const stock_entry *e = &is->stock[(from + i) % is->stock_count];
        if (ir_genome_same_base(e->genome, r->parents[0]))
            recipe_stock(r, alone(e));
    }
}

/* Takes the oldest gain that the niche on its base lacks, and returns that niche's member. Older
 * gains are dropped. NULL: there is none. */
static const member *take_gain(island *is, stock_entry *out) {
    while (is->gain_count > 0) {
        *out = is->gains[0];
        is->gain_count--;
        memmove(is->gains, is->gains + 1, is->gain_count * sizeof *is->gains);
        ev_sha256 edit = ir_genome_edit_key(out->genome, out->edit);
        for (size_t i = 0; i < is->niche_count; i++) {
            const member *best = &is->niches[i];
            if (ir_genome_same_base(out->genome, best->genome) &&
                !ir_genome_holds(best->genome, &edit))
                return best;
        }
        ir_genome_free(out->genome);
    }
    return NULL;
}

/* Merges gains. Several children of one parent may be faster, each by another edit, and only one
 * becomes the next parent. The edits of the others are tried on that one at once. */
static bool draw_merge(island *is, recipe *r, draft *d, char parents[48]) {
    stock_entry gain;
    const member *best = take_gain(is, &gain);
    if (!best)
        return false;
    recipe_parents(r, best, NULL, parents);
    r->steps[r->step_count++] = (recipe_step){.arms = {ARM_OF(COMBINE)}, .count = 1};
    recipe_stock(r, alone(&gain));
    ir_genome_free(gain.genome);
    d->parent_ns = best->ns;
    d->sketch = best->sketch;
    d->parent_error = best->error;
    d->parent_small_error = best->small.error;
    d->parent_edits = best->edits;
    d->reach = reach_of(&best->small, &best->small);
    return true;
}

static void evolve_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    d->island = (uint32_t)choose_island(s, rng);
    island *is = &s->islands[d->island];
    d->start = (uint32_t)is->start;
    d->generation = is->generation;
    if (skeletons_are_due(s, is->start, rng)) {
        skeletons_draw(s, r, d, parents, rng);
        return;
    }
    if (draw_merge(is, r, d, parents))
        return;
    put_parents(r, s, is, d, parents, rng);
    put_steps(r, is, d, rng);
    put_tabu(r, &s->tabu, rng);
    put_stock(r, is, rng);
    r->by_heat = true;
}

/* ---- islands ---- */

static void stock_add(island *is, const ir_genome *genome) {
    stock_entry *e = &is->stock[is->stock_next];
    if (is->stock_count == STOCK_MOST)
        ir_genome_free(e->genome);
    else
        is->stock_count++;
    *e = (stock_entry){ir_genome_ref(genome), ir_genome_edit_count(genome) - 1};
    is->stock_next = (is->stock_next + 1) % STOCK_MOST;
}

/* Adds a gain: the last edit of a child, which made the child faster. */
static void gain_add(island *is, const ir_genome *genome) {
    if (is->gain_count == GAINS_MOST) {
        ir_genome_free(is->gains[0].genome);
        is->gain_count--;
        memmove(is->gains, is->gains + 1, is->gain_count * sizeof *is->gains);
    }
    is->gains[is->gain_count++] =
        (stock_entry){ir_genome_ref(genome), ir_genome_edit_count(genome) - 1};
}

/* Whether the child's last edit belongs in the stock: the only new edit, and no loss. */
static bool belongs_in_stock(const search *s, const draft *d, const child_result *r,
                             const search_verdict *v) {
    return d->single && ir_genome_edit_count(r->genome) == d->parent_edits + 1 &&
           v->outcome.ns <= search_parent_ns(s, d) * (1 + NEUTRAL);
}

/* Updates the niches with a member: replaces the member at the same setting of the macros if it is
 * not faster, or the slowest niche if all are taken. Among equals the newer stays. */
static void join_niches(island *is, const member *m) {
    size_t own = 0, at = 0;
    while (own < is->niche_count && !ir_genome_same_base(is->niches[own].genome, m->genome))
        own++;
    bool is_new = own == is->niche_count;
    if (is_new && own == NICHES)
        own--; /* the slowest niche is replaced */
    else if (is_new)
        is->niches[is->niche_count++] = (member){.ns = INFINITY};
    if (is->niches[own].ns < m->ns)
        return;
    (void)ir_genome_ref(m->genome);
    ir_genome_free(is->niches[own].genome);
    while (at < own && is->niches[at].ns <= m->ns)
        at++;
    memmove(&is->niches[at + 1], &is->niches[at], (own - at) * sizeof *is->niches);
    is->niches[at] = *m;
}

static void join_island(island *is, const member *m) {
    join_niches(is, m);
    const member *best = population_best(&is->members);
    if (!best || m->ns < best->ns)
        is->idle = 0;
    population_insert(&is->members, m);
}

/* Restarts an island from its elite and the elites of the other islands of the same start. */
static void restart_island(search *s, island *is) {
    is->generation++;
    is->idle = 0;
    population_restart(&is->members);
    for (size_t i = 0; i < s->island_count; i++) {
        const island *other = &s->islands[i];
        const member *m = population_best(&other->members);
        const member *own = population_best(&is->members);
        if (other != is && other->start == is->start && other->field <= is->field && m &&
            !(own && own->child == m->child))
            population_insert(&is->members, m);
    }
}

/* `least`: no field before this one. */
static void join_islands_of(search *s, size_t start, const member *m, search_field least) {
    for (size_t i = 0; i < s->island_count; i++) {
        if (s->islands[i].start == start && s->islands[i].field >= least)
            join_island(&s->islands[i], m);
    }
}

/* All islands of a start grow from the start with the light pipeline or, if that variant fails or
 * is slower, from the unmodified start. */
static void settle_light(search *s, size_t start, const child_result *r, const search_verdict *v) {
    double plain = s->start_ns[start];
    bool passed = r->genome && v->outcome.stopped == GATE_NONE;
    if (passed && (plain <= 0 || v->outcome.ns <= plain * (1 + LIGHT_LOSS))) {
        member m = member_of(s, r, v);
        join_islands_of(s, start, &m, SEARCH_PRESERVING);
        skeletons_join(s, start, &m); /* even if it is a duplicate of the plain start */
    } else if (plain > 0) {
        member m = {
            .child = s->start_children[start], .genome = s->start_genomes[start], .ns = plain};
        join_islands_of(s, start, &m, SEARCH_PRESERVING);
        skeletons_join(s, start, &m);
    }
}

/* The island of a field that corresponds to an island. */
static island *in_field(search *s, size_t at, search_field field) {
    size_t half = s->island_count / SEARCH_FIELDS;
    assert(half > 0 && at < SEARCH_FIELDS * half);
    return &s->islands[field * half + (at < half ? at : at - half)];
}

static void settle_passed(search *s, const draft *d, const child_result *r,
                          const search_verdict *v) {
    member m = member_of(s, r, v);
    bool adds_one = belongs_in_stock(s, d, r, v);
    bool gains = adds_one && v->outcome.ns < search_parent_ns(s, d) * (1 - NEUTRAL);
    bool opens = s->committed < s->opening_count;
    search_field least = r->bold > 0 ? SEARCH_ANY : SEARCH_PRESERVING;
    if (opens) /* one of an earlier run may be bold */
        join_islands_of(s, d->start, &m, least);
    for (int field = (int)least; field < SEARCH_FIELDS; field++) {
        island *is = in_field(s, d->island, (search_field)field);
        if (adds_one)
            stock_add(is, m.genome);
        if (gains)
            gain_add(is, m.genome);
        if (!opens)
            join_island(is, &m);
    }
}

static bool outcome_of(const void *context, const ir_genome *genome, bool *passed) {
    const search *s = context;
    uint64_t child = 0;
    if (!search_knows(s, genome, SEARCH_BY_GENOME, "", &child))
        return false;
    *passed = s->outcomes[child].stopped == GATE_NONE;
    return true;
}

static void learn_links(search *s, const island *is, const child_result *r,
                        const search_verdict *v) {
    if (search_passed(v)) {
        links_learn_from_passed(&s->links, r->genome, outcome_of, s);
        return;
    }
    if (!r->genome || v->outcome.origin == SEARCH_DUPLICATE || v->outcome.origin == SEARCH_FILTERED)
        return;
    for (size_t i = 0; i < is->members.count; i++)
        links_learn_from_failed(&s->links, r->genome, is->members.members[i].genome, outcome_of, s);
}

static bool is_one_edit(const char *operators) {
    unsigned arm = 0;
    return arm_find(operators, &arm) && arm < IR_EDIT_COUNT;
}

/* Notes whether a single edit worked. A duplicate of a child other than the parent says nothing of
 * the edit, nor does a fault that only samples show. */
static void note_tabu(search *s, const draft *d, const child_result *r, const search_verdict *v) {
    if (!d->single || !r->genome || !is_one_edit(r->operators))
        return;
    bool is_duplicate = v->outcome.origin == SEARCH_DUPLICATE;
    bool same = is_duplicate && v->same_as == d->parent;
    bool wrong =
        !is_duplicate && (v->outcome.stopped == GATE_VERIFY || v->outcome.stopped == GATE_SAFE ||
                          v->outcome.stopped == GATE_ACCURATE);
    bool worked = search_passed(v) || v->outcome.origin == SEARCH_FILTERED;
    if (same || wrong || worked)
        tabu_note(&s->tabu, r->genome, worked);
}

static void evolve_settle(search *s, const draft *d, const child_result *r,
                          const search_verdict *v) {
    island *is = &s->islands[d->island];
    skeletons_settle(s, d, r, v);
    if (!d->skeleton)
        search_pay_arms(&is->arms, r->operators, search_gain(s, d, v));
    unsigned arm = 0;
    if (arm_find(r->operators, &arm)) /* with several arms, the cause of the result is not known */
        bandit_note(&s->statistics, arm, search_passed(v) || v->outcome.origin == SEARCH_FILTERED);
    note_tabu(s, d, r, v);
    is->idle += !d->skeleton;
    if (!d->skeleton)
        learn_links(s, is, r, v);
    const opening *o = s->committed < s->opening_count ? &s->openings[s->committed] : NULL;
    if (o && o->light)
        settle_light(s, o->start, r, v);
    else if (search_passed(v) && !(o && o->unmodified))
        settle_passed(s, d, r, v);
    if (is->idle > PATIENCE)
        restart_island(s, is);
}

/* ---- beginning and end ---- */

/* Structural edits are drawn on skeletons (search_skeletons.c). */
static void close_structure(bandit *arms) {
    for (unsigned arm = IR_EDIT_LOCAL_COUNT; arm < IR_EDIT_COUNT; arm++)
        arms->open[arm] = false;
}

static ev_status evolve_begin(search *s, ev_error *err) {
    bandit_expect(&s->statistics, s->odds, ARM_COUNT);
    size_t each = (size_t)(s->evaluations / EVALUATIONS_AN_ISLAND);
    if (each < 1)
        each = 1;
    else if (each > MOST_ISLANDS_A_START)
        each = MOST_ISLANDS_A_START;
    size_t half = each * s->start_count;
    s->islands = calloc(SEARCH_FIELDS * half, sizeof *s->islands);
    if (!s->islands)
        return ev_fail_memory(err, SEARCH_FIELDS * half * sizeof *s->islands);
    for (size_t i = 0; i < SEARCH_FIELDS * half; i++) {
        island *is = &s->islands[i];
        is->start = i % s->start_count;
        is->field = i < half ? SEARCH_PRESERVING : SEARCH_ANY;
        EV_TRY(population_begin(&is->members, POPULATION, err));
        s->island_count++;
        search_open_arms(&s->starts[is->start], NULL, is->field, &s->statistics, &is->arms);
        close_structure(&is->arms);
    }
    return skeletons_begin(s, err);
}

static void evolve_end(search *s) {
    for (size_t i = 0; i < s->island_count; i++) {
        population_end(&s->islands[i].members);
        for (size_t k = 0; k < s->islands[i].stock_count; k++)
            ir_genome_free(s->islands[i].stock[k].genome);
        for (size_t k = 0; k < s->islands[i].niche_count; k++)
            ir_genome_free(s->islands[i].niches[k].genome);
        for (size_t k = 0; k < s->islands[i].gain_count; k++)
            ir_genome_free(s->islands[i].gains[k].genome);
    }
    free(s->islands);
    skeletons_end(s);
    links_free(&s->links);
    tabu_free(&s->tabu);
}

const search_rules search_rules_evolve = {.opens_light = true,
                                          .opens_macros = true,
                                          .sketches = true,
                                          .estimates = true,
                                          .begin = evolve_begin,
                                          .end = evolve_end,
                                          .draw = evolve_draw,
                                          .settle = evolve_settle};
