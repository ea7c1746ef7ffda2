/* Macros and knobs: the baselines that pick among the settings that a start offers, and change no
 * code. `macros` builds the starts at each setting of their macros, by LLVM's default pipeline.
 * `knobs` adds edits of the family "launch" to them: launch bounds, registers, pass pipelines.
 *
 * The settings of all starts are numbered. Children take them in a random order without repeats, so
 * a budget that suffices for all of them tries all. `macros` ends then. `knobs` goes on with the
 * same settings and one to three steps each; if the settings are more than half of the budget, half
 * of its children have such steps from the beginning. */
#include "tuner/search/search_inside.h"

#include <assert.h>

#define MOST_KNOBS 3
#define ROUNDS 4 /* of the permutation */

/* The number of settings of a start; SIZE_MAX for more. */
static uint64_t settings_of(const task_start *start) {
    uint64_t count = 1;
    for (size_t i = 0; i < start->macro_count; i++) {
        if (__builtin_mul_overflow(count, (uint64_t)start->macros[i].value_count, &count))
            return UINT32_MAX;
    }
    return count < UINT32_MAX ? count : UINT32_MAX;
}

/* Of all starts; each has one at least. */
static uint64_t count_settings(const search *s) {
    uint64_t count = 0;
    for (size_t i = 0; i < s->start_count; i++)
        count += settings_of(s->starts[i].start);
    return count > 0 ? count : 1;
}

/* A bijection of the numbers of 2 * `bits` bits: a Feistel network of hashes (Luby and Rackoff,
 * "How to Construct Pseudorandom Permutations from Pseudorandom Functions", 1988). */
static uint64_t shuffle_bits(uint64_t number, unsigned bits, uint64_t seed) {
    uint64_t mask = (UINT64_C(1) << bits) - 1, low = number & mask, high = number >> bits;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t mixed = high ^ (ev_mix64(ev_mix64(seed + round) + low) & mask);
        high = low;
        low = mixed;
    }
    return high << bits | low;
}

/* The number at place `nth` of a random order of the numbers below `count`. */
static uint64_t nth_of(uint64_t nth, uint64_t count, uint64_t seed) {
    unsigned bits = 1;
    while (UINT64_C(1) << 2 * bits < count)
        bits++;
    do
        nth = shuffle_bits(nth, bits, seed);
    while (nth >= count); /* ends: the walk comes back to `nth` itself */
    return nth;
}

/* Makes the genome of a setting of a start. NULL: out of memory. */
static const ir_genome *make_setting(const search_start *start, uint64_t setting) {
    ir_genome *genome = ir_genome_new(start->start->name);
    for (size_t i = 0; genome && i < start->start->macro_count; i++) {
        const task_macro *macro = &start->start->macros[i];
        int64_t value = macro->values[setting % macro->value_count];
        ir_genome *next = NULL;
        setting /= macro->value_count;
        ev_status status = draw_with_macro(genome, macro, value, true, &next, NULL);
        ir_genome_free(genome);
        genome = status == EV_OK ? next : NULL;
    }
    return genome;
}

/* Puts the setting at place `nth` of the order into the recipe. */
static void put_setting(const search *s, uint64_t nth, recipe *r, draft *d, char parents[48]) {
    uint64_t setting = nth_of(nth, count_settings(s), s->seed);
    while (setting >= settings_of(s->starts[d->start].start))
        setting -= settings_of(s->starts[d->start++].start);
    d->island = d->start;
    member m = {.child = s->start_children[d->start],
                .genome = make_setting(&s->starts[d->start], setting)};
    if (!m.genome) {
        r->failed = true;
        return;
    }
    recipe_parents(r, &m, NULL, parents);
    ir_genome_free(m.genome);
}

/* ---- macros ---- */

static ev_status macros_begin(search *s, ev_error *err) {
    (void)s, (void)err; /* nothing is learnt */
    return EV_OK;
}

static void macros_end(search *s) {
    (void)s;
}

static void macros_settle(search *s, const draft *d, const child_result *r,
                          const search_verdict *v) {
    (void)s, (void)d, (void)r, (void)v;
}

static bool macros_are_exhausted(const search *s) {
    return s->drawn - s->opening_count >= count_settings(s);
}

static void macros_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    (void)rng;
    assert(!macros_are_exhausted(s));
    put_setting(s, s->drawn - s->opening_count, r, d, parents);
}

/* ---- knobs ---- */

static ev_status knobs_begin(search *s, ev_error *err) {
    (void)err;
    for (size_t i = 0; i < s->start_count; i++)
        search_open_arms(&s->starts[i], "launch", SEARCH_ANY, NULL, &s->even[i]);
    return EV_OK;
}

static void knobs_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    uint64_t count = count_settings(s), nth = s->drawn - s->opening_count;
    bool few = s->evaluations == 0 || count <= s->evaluations / 2;
    bool plain = few ? nth < count : nth % 2 == 0;
    put_setting(s, few ? nth % count : nth / 2 % count, r, d, parents);
    if (!plain)
        recipe_steps(r, &s->even[d->start], 1 + ev_pcg_below(rng, MOST_KNOBS), RECIPE_ALTERNATIVES,
                     rng);
}

const search_rules search_rules_macros = {.is_exhausted = macros_are_exhausted,
                                          .begin = macros_begin,
                                          .end = macros_end,
                                          .draw = macros_draw,
                                          .settle = macros_settle};
const search_rules search_rules_knobs = {
    .begin = knobs_begin, .end = macros_end, .draw = knobs_draw, .settle = macros_settle};
