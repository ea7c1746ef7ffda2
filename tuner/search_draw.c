/* Search: draws the next child's recipe: its island, parents, steps and stock. */
#include "tuner/search_inside.h"

#include "base/json.h"
#include "tuner/protocol.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BEST_ISLAND 0.5  /* so often the island with the fastest member gets the child */
#define BEST_PARENT 0.35 /* so often the parent is the island's fastest */
#define CROSSOVER 0.3    /* so often there are two parents, where two can be crossed */
#define ALTERNATIVES 4   /* arms of a step: if the wanted one has no place, the next */
#define STOCK_SENT 8

/* A message under construction; any failure to allocate shows in `ok`. */
typedef struct recipe {
    json_t *message;
    bool ok;
} recipe;

static void put(recipe *r, json_t *into, const char *key, json_t *value) {
    r->ok = json_object_set_new(into, key, value) == 0 && r->ok;
}

static void append(recipe *r, json_t *list, json_t *value) {
    r->ok = json_array_append_new(list, value) == 0 && r->ok;
}

/* ---- islands and parents ---- */

static size_t best_island(const search *s) {
    size_t best = s->island_count;
    double best_ns = 0;
    for (size_t i = 0; i < s->island_count; i++) {
        const member *m = population_best(&s->islands[i].members);
        if (m && (best == s->island_count || m->ns < best_ns)) {
            best = i;
            best_ns = m->ns;
        }
    }
    return best;
}

static size_t choose_island(const search *s, ev_pcg *rng) {
    bool to_best = ev_pcg_unit(rng) < BEST_ISLAND;
    size_t any = ev_pcg_below(rng, (uint32_t)s->island_count);
    size_t best = best_island(s);
    return to_best && best < s->island_count ? best : any;
}

static const member *choose_parent(const population *p, ev_pcg *rng) {
    bool take_best = ev_pcg_unit(rng) < BEST_PARENT;
    const member *other = population_select(p, rng);
    return take_best ? population_best(p) : other;
}

static bool lacks_an_edit(const json_t *genome, const json_t *of) {
    size_t i = 0, k = 0;
    const json_t *edit = NULL, *other = NULL;
    json_array_foreach(json_object_get(of, "edits"), i, edit) {
        bool has = false;
        json_array_foreach(json_object_get(genome, "edits"), k, other) has =
            has || json_equal(edit, other);
        if (!has)
            return true;
    }
    return false;
}

/* Macros that the two set differently; one that is not set has its default. */
static size_t macro_differences(const json_t *a, const json_t *b) {
    size_t count = 0;
    const char *name = NULL;
    json_t *value = NULL;
    const json_t *x = json_object_get(a, "macros"), *y = json_object_get(b, "macros");
    json_object_foreach((json_t *)x, name, value) count +=
        !json_equal(value, json_object_get(y, name));
    json_object_foreach((json_t *)y, name, value) count += json_object_get(x, name) == NULL;
    return count;
}

/* Two can be crossed if a child may be neither: each has edits that the other lacks, on one base;
 * or, without edits, which would make no sense on another base, they differ in several macros. */
static bool can_cross(const member *a, const member *b) {
    if (genome_same_base(a->genome, b->genome))
        return lacks_an_edit(a->genome, b->genome) && lacks_an_edit(b->genome, a->genome);
    return a->edits == 0 && b->edits == 0 && macro_differences(a->genome, b->genome) > 1;
}

/* One to cross with; NULL: this child has one parent. */
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

static void put_parents(recipe *r, const search *s, const island *is, draft *d, char parents[48],
                        ev_pcg *rng) {
    json_t *list = json_array();
    put(r, r->message, "parents", list);
    const member *first = choose_parent(&is->members, rng);
    if (!first) { /* nothing of this island is committed yet, or nothing passed */
        append(r, list, json_incref(s->start_genomes[is->start]));
        snprintf(parents, 48, "%" PRIu64, s->start_children[is->start]);
        d->single = true;
        return;
    }
    const member *mate = choose_mate(&is->members, first, rng);
    append(r, list, json_incref(first->genome));
    snprintf(parents, 48, "%" PRIu64, first->child);
    *d = (draft){.island = d->island, .parent_ns = first->ns, .parent_edits = first->edits};
    d->single = mate == NULL;
    if (!mate)
        return;
    append(r, list, json_incref(mate->genome));
    snprintf(parents, 48, "%" PRIu64 ",%" PRIu64, first->child, mate->child);
    d->parent_ns = mate->ns < first->ns ? mate->ns : first->ns;
}

/* ---- steps ---- */

static void put_step(recipe *r, json_t *steps, const bandit *arms, ev_pcg *rng) {
    json_t *step = json_array();
    append(r, steps, step);
    bool skip[BANDIT_MOST] = {false};
    for (int i = 0; i < ALTERNATIVES; i++) {
        unsigned arm = bandit_draw(arms, skip, rng);
        if (arm >= ARM_COUNT)
            return;
        skip[arm] = true;
        append(r, step, json_string(arm_name(arm)));
    }
}

static size_t choose_step_count(bool crossed, ev_pcg *rng) {
    double at = ev_pcg_unit(rng);
    if (crossed)
        return at < 0.5 ? 0 : 1;
    return at < 0.75 ? 1 : at < 0.93 ? 2 : 3;
}

static void put_steps(recipe *r, const island *is, draft *d, ev_pcg *rng) {
    size_t count = choose_step_count(!d->single, rng);
    json_t *steps = json_array();
    put(r, r->message, "steps", steps);
    for (size_t i = 0; i < count; i++)
        put_step(r, steps, &is->arms, rng);
    d->single = d->single && count == 1;
}

static bool any_step_takes(const json_t *steps, const char *name) {
    size_t i = 0, k = 0;
    const json_t *step = NULL, *arm = NULL;
    json_array_foreach(steps, i, step) {
        json_array_foreach(step, k, arm) {
            if (strcmp(json_string_value(arm), name) == 0)
                return true;
        }
    }
    return false;
}

/* An edit of the stock as a genome of its own. */
static json_t *alone(const stock_entry *e) {
    json_t *genome = json_copy(e->genome);
    json_t *edit = json_array_get(json_object_get(e->genome, "edits"), e->edit);
    if (genome)
        (void)json_object_set_new(genome, "edits", json_pack("[O]", edit));
    return genome;
}

/* Some of the stock that fits the first parent, from a random place on, if a step may want it. */
static void put_stock(recipe *r, const island *is, ev_pcg *rng) {
    json_t *stock = json_array();
    put(r, r->message, "stock", stock);
    size_t from = is->stock_count > 0 ? ev_pcg_below(rng, (uint32_t)is->stock_count) : 0;
    if (!any_step_takes(json_object_get(r->message, "steps"), arm_name(ARM_OF(COMBINE))))
        return;
    const json_t *parent = json_array_get(json_object_get(r->message, "parents"), 0);
    for (size_t i = 0; i < is->stock_count && json_array_size(stock) < STOCK_SENT; i++) {
        const stock_entry *e = &is->stock[(from + i) % is->stock_count];
        if (genome_same_base(e->genome, parent))
            append(r, stock, alone(e));
    }
}

/* ---- recipes ---- */

static void put_opening(recipe *r, const search *s, draft *d) {
    const opening *o = &s->openings[s->drawn];
    put(r, r->message, "parents", json_pack("[O]", o->genome));
    put(r, r->message, "steps", json_array());
    d->island = (uint32_t)o->start; /* the first island of a start has its number */
}

static void put_child(recipe *r, search *s, draft *d, char parents[48]) {
    ev_pcg rng = ev_pcg_child(s->seed, 0, 0, (uint32_t)s->drawn);
    d->island = (uint32_t)choose_island(s, &rng);
    const island *is = &s->islands[d->island];
    put_parents(r, s, is, d, parents, &rng);
    put_steps(r, is, d, &rng);
    put_stock(r, is, &rng);
}

ev_status search_draw(search *s, search_recipe *out, ev_error *err) {
    assert(search_may_draw(s));
    recipe r = {.message = message_new(MESSAGE_CHILD), .ok = true};
    draft d = {0};
    search_recipe made = {.child = s->drawn, .message = r.message};
    if (s->drawn < s->opening_count)
        put_opening(&r, s, &d);
    else
        put_child(&r, s, &d, made.parents);
    made.island = d.island;
    made.generation = s->islands[d.island].generation;
    put(&r, r.message, "stream",
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
