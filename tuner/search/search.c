/* Search: creates a search (islands, openings), frees it, and answers questions about it. */
#include "tuner/search/search_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define OPENING_SHARE 4 /* at most 1/4 of the evaluations go to the openings */
#define MOST_OPENINGS 256
#define MISSED_MEASURED 0.02 /* two intervals of 1 % each (fitness/device/cuda/cuda_time.c) */

static_assert(ARM_COUNT <= BANDIT_MOST, "a bandit has room for every arm");

const char *search_hash_name(search_hash by) {
    static const char *const names[SEARCH_HASHES] = {"genome",     "IR",  "sketch",
                                                     "sketch-run", "PTX", "run"};
    assert(by < SEARCH_HASHES);
    return names[by];
}

bool search_is_exact(search_hash by) {
    return by == SEARCH_BY_GENOME || by == SEARCH_BY_IR || by == SEARCH_BY_PTX;
}

bool search_is_fingerprint(search_hash by) {
    return by == SEARCH_SKETCH_RAN || by == SEARCH_RAN;
}

/* ---- openings ---- */

typedef enum opening_kind {
    OPENING_START,
    OPENING_EARLIER,
    OPENING_LIGHT,
    OPENING_MACROS,
    OPENING_KINDS
} opening_kind;

static ev_status add_opening(search *s, const ir_genome *genome, size_t start, opening_kind kind,
                             ev_error *err) {
    opening *more = realloc(s->openings, (s->opening_count + 1) * sizeof *more);
    if (!more)
        return ev_fail_memory(err, (s->opening_count + 1) * sizeof *more);
    s->openings = more;
    if (kind == OPENING_START) {
        s->start_genomes[start] = ir_genome_ref(genome);
        s->start_children[start] = s->opening_count;
    }
    s->openings[s->opening_count++] =
        (opening){ir_genome_ref(genome), start, .unmodified = kind == OPENING_START,
                  .light = kind == OPENING_LIGHT, .earlier = kind == OPENING_EARLIER};
    return EV_OK;
}

static ev_status open_macro(search *s, const ir_genome *genome, size_t start,
                            const task_macro *macro, size_t limit, ev_error *err) {
    for (size_t v = 0; v < macro->value_count && s->opening_count < limit; v++) {
        if (macro->values[v] == macro->otherwise)
            continue;
        ir_genome *other = NULL;
        EV_TRY(draw_with_macro(genome, macro, macro->values[v], true, &other, err));
        ev_status status = add_opening(s, other, start, OPENING_MACROS, err);
        ir_genome_free(other);
        EV_TRY(status);
    }
    return EV_OK;
}

/* Adds openings of one kind for a start: the start alone, the start with the light pipeline, or the
 * start with each macro at each of its other values. */
static ev_status open_start(search *s, size_t start, opening_kind kind, size_t limit,
                            ev_error *err) {
    const task_start *is = s->starts[start].start;
    ir_genome *genome = ir_genome_new(is->name);
    if (!genome)
        return ev_fail_memory(err, 0);
    ir_genome_set_optimised(genome, s->rules->optimised);
    bool light = kind != OPENING_START && s->rules->opens_light;
    ev_status status = light && !ir_genome_make_light(genome) ? ev_fail_memory(err, 0) : EV_OK;
    if (kind != OPENING_MACROS && status == EV_OK)
        status = add_opening(s, genome, start, kind, err);
    for (size_t i = 0; kind == OPENING_MACROS && status == EV_OK && i < is->macro_count; i++)
        status = open_macro(s, genome, start, &is->macros[i], limit, err);
    ir_genome_free(genome);
    return status;
}

/* Adds the genomes of earlier runs. */
static ev_status open_earlier(search *s, const search_settings *settings, size_t limit,
                              ev_error *err) {
    for (size_t i = 0; i < settings->earlier_count && s->opening_count < limit; i++) {
        const ir_genome *genome = settings->earlier[i];
        size_t start = 0;
        while (start < s->start_count &&
               strcmp(s->starts[start].start->name, ir_genome_start(genome)) != 0)
            start++;
        if (start < s->start_count)
            EV_TRY(add_opening(s, genome, start, OPENING_EARLIER, err));
    }
    return EV_OK;
}

static ev_status make_openings(search *s, const search_settings *settings, ev_error *err) {
    uint64_t evaluations = settings->evaluations;
    size_t limit = MOST_OPENINGS;
    if (evaluations > 0 && evaluations / OPENING_SHARE < limit)
        limit = (size_t)(evaluations / OPENING_SHARE);
    const bool opens[OPENING_KINDS] = {[OPENING_START] = true,
                                       [OPENING_LIGHT] = s->rules->opens_light,
                                       [OPENING_MACROS] = s->rules->opens_macros};
    for (int kind = 0; kind < OPENING_KINDS; kind++) {
        for (size_t i = 0; opens[kind] && i < s->start_count; i++)
            EV_TRY(open_start(s, i, (opening_kind)kind, limit, err));
        if (kind == OPENING_EARLIER)
            EV_TRY(open_earlier(s, settings, s->opening_count + limit, err));
    }
    return EV_OK;
}

/* ---- strategies ---- */

static const char *const strategy_names[] = {
#define STRATEGY(id, name, meaning) name,
#include "tuner/search/strategies.def"
#undef STRATEGY
};

static const search_rules *const strategy_rules[STRATEGY_COUNT] = {
    [STRATEGY_EVOLVE] = &search_rules_evolve, [STRATEGY_RANDOM] = &search_rules_random,
    [STRATEGY_HILL] = &search_rules_hill,     [STRATEGY_MACROS] = &search_rules_macros,
    [STRATEGY_KNOBS] = &search_rules_knobs,   [STRATEGY_GEVO] = &search_rules_gevo,
};

const char *strategy_name(strategy s) {
    return strategy_names[s];
}

bool strategy_find(const char *name, strategy *out) {
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        if (strcmp(strategy_names[i], name) == 0) {
            *out = (strategy)i;
            return true;
        }
    }
    return false;
}

static bool is_open(ir_edit_kind kind, const char *family, search_field field) {
    return (!family || strcmp(ir_edit_family(kind), family) == 0) &&
           (field == SEARCH_ANY || !ir_edit_is_bold(kind));
}

void search_open_arms(const search_start *start, const char *family, search_field field,
                      const arm_statistics *statistics, bandit *out) {
    bool open[ARM_COUNT] = {false};
    for (unsigned arm = 0; arm < IR_EDIT_COUNT; arm++)
        open[arm] = start->sites[arm] > 0 && is_open((ir_edit_kind)arm, family, field);
    bool has_macro = false;
    for (size_t i = 0; i < start->start->macro_count; i++)
        has_macro = has_macro || start->start->macros[i].value_count > 1;
    open[ARM_OF(MACRO)] = has_macro && !family;
    open[ARM_OF(COMBINE)] = !family;
    open[ARM_OF(DROP)] = !family;
    bandit_begin(out, open, ARM_COUNT, statistics);
}

/* ---- beginning and end ---- */

static uint64_t mask_of(const bool *without) {
    uint64_t mask = 0;
    for (int kind = IR_EDIT_LOCAL_COUNT; without && kind < IR_EDIT_COUNT; kind++)
        mask |= (uint64_t)without[kind] << (kind - IR_EDIT_LOCAL_COUNT);
    return mask;
}

static ev_status begin(search *s, const search_settings *settings, ev_error *err) {
    size_t count = settings->start_count;
    *s = (search){.rules = strategy_rules[settings->strategy],
                  .starts = settings->starts,
                  .start_count = count,
                  .seed = settings->seed,
                  .missed = settings->measured ? MISSED_MEASURED : SEARCH_MISSED,
                  .evaluations = settings->evaluations,
                  .bold = settings->bold,
                  .without = mask_of(settings->without),
                  .odds = settings->odds};
    s->start_ns = calloc(count, sizeof *s->start_ns);
    s->start_error = calloc(count, sizeof *s->start_error);
    s->start_genomes = calloc(count, sizeof(const ir_genome *));
    s->start_children = calloc(count, sizeof *s->start_children);
    s->even = calloc(count, sizeof *s->even);
    if (!s->start_ns || !s->start_error || !s->start_genomes || !s->start_children || !s->even)
        return ev_fail_memory(err, count * sizeof *s->start_ns);
    for (int i = 0; i < SEARCH_HASHES; i++) {
        if (!(s->known[i] = known_new()))
            return ev_fail_memory(err, 0);
    }
    if (!(s->filtered = known_new()))
        return ev_fail_memory(err, 0);
    EV_TRY(make_openings(s, settings, err));
    return s->rules->begin(s, err);
}

ev_status search_new(const search_settings *settings, search **out, ev_error *err) {
    assert(settings->start_count > 0);
    search *s = calloc(1, sizeof *s);
    if (!s)
        return ev_fail_memory(err, sizeof *s);
    ev_status status = begin(s, settings, err);
    if (status == EV_OK)
        *out = s;
    else
        search_free(s);
    return status;
}

void search_free(search *s) {
    if (!s)
        return;
    if (s->rules)
        s->rules->end(s);
    free(s->even);
    for (size_t i = 0; s->start_genomes && i < s->start_count; i++)
        ir_genome_free(s->start_genomes[i]);
    for (size_t i = 0; i < s->opening_count; i++)
        ir_genome_free(s->openings[i].genome);
    for (int field = 0; field < SEARCH_FIELDS; field++)
        for (int form = 0; form < SEARCH_FORMS; form++)
            archive_clear(&s->archives[field][form]);
    for (int i = 0; i < SEARCH_HASHES; i++)
        known_free(s->known[i]);
    known_free(s->filtered);
    wrong_free(&s->wrong);
    free(s->openings);
    free(s->start_ns);
    free(s->start_error);
    free((void *)s->start_genomes);
    free(s->start_children);
    free(s->outcomes);
    free(s);
}

/* ---- questions ---- */

uint64_t search_drawn(const search *s) {
    return s->drawn;
}
uint64_t search_committed(const search *s) {
    return s->committed;
}

void search_outcome(const search *s, uint64_t child, double *ns, double *error) {
    assert(child < s->committed);
    *ns = s->outcomes[child].ns;
    *error = s->outcomes[child].error;
}

size_t search_archive(const search *s, search_field field, search_form form,
                      const search_best **out) {
    *out = s->archives[field][form].best;
    return s->archives[field][form].count;
}

const front *search_front(const search *s, search_front_kind kind) {
    assert(kind < SEARCH_FRONTS);
    return &s->fronts[kind];
}

bool search_is_earlier(const search *s, uint64_t child) {
    return child < s->opening_count && s->openings[child].earlier;
}

double search_start_ns(const search *s, size_t start) {
    assert(start < s->start_count);
    return s->start_ns[start];
}

void search_arms(const search *s, uint64_t *tries, double *paid) {
    memcpy(tries, s->tries, ARM_COUNT * sizeof *tries);
    memcpy(paid, s->paid, ARM_COUNT * sizeof *paid);
}
