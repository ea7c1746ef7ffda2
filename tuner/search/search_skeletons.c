/* Skeletons: how `evolve` draws structure. A skeleton is a start with macros and a structural
 * prefix, without local edits (docs/structure.md).
 *
 * Each start has a pool of its fastest skeletons of each depth, which is the number of structural
 * edits that open (ir_genome_opening_count). Half of the parents come from a random depth: a
 * structure of two edits that neither edit foretells is found near the start, not near the fastest.
 * Few members may share a prefix, an outline, which is the kinds and places of the edits that open,
 * or a setting of the macros, so that a structure that is slower at first gets time. A member goes
 * when one with a part of its edits is as fast, or faster where the other edits make no places for
 * more. A skeleton that takes the time of another one of the same places joins no pool. Of
 * skeletons that divide the work into as many parts, the fastest alone is kept.
 *
 * The kinds of edits that open, and those of a loop's turns, are swept first, each as often, since
 * a structure of two edits is found from its parts, and a kernel that is tiled already has its room
 * in its loops; those skeletons that have such an edit are tried with each kind, too, as it may
 * have its only places there. Then most children are trials (search_trials.c). The
 * rest has one parent and one to three random steps: another structural edit, another option of
 * one, one edit less, an edit of another skeleton, another macro; or two parents, whose macros are
 * crossed. A child enters the islands like any other, where local edits are drawn on it.
 *
 * LLVM builds a child of the pool unless its fast code at full shape takes twice as long as that of
 * its nearest built ancestor; others join the pool with an estimate. The small cases decide
 * nothing, since a large tile loses on them by nature.
 *
 * The share of children that are drawn here follows what they gained of late, and is large for most
 * of the budget where the fastest skeleton has structure. Children of the pool are measured by
 * improvements of the best skeleton's time, and the others by improvements of the start's best
 * time: local edits do not outlive a change of structure, so a new skeleton competes without them
 * at first, and gains them later. */
#include "base/hash.h"
#include "tuner/search/search_inside.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_SHARE 0.15 /* of the children drawn from the skeletons, and of the others */
#define PAYING_SHARE 0.6 /* of those from the skeletons, while structure leads them ... */
#define PAYING_UNTIL 0.7 /* ... until this part of the budget, if it is known */
#define PRIOR_GAIN 0.02  /* an effort begins with this gain ... */
#define PRIOR_TRIES 20   /* ... of so many children */
#define FADE 0.98        /* of an effort at each of its children */
#define OF_A_PREFIX 3    /* most skeletons of one prefix, unless it is empty */
#define OF_AN_OUTLINE 4  /* most of one outline, the same */
#define OF_A_SETTING 5   /* most of one depth and setting of the macros, unless it is the default */
#define SWEPT 40         /* children of the sweep that come early ... */
#define SWEEP_EARLY 0.5  /* ... so often is one of them drawn ... */
#define SWEEP_LATE 0.03  /* ... and one of the rest */
#define BY_DEPTH 0.5     /* so often the parent is one of a random depth, shallow ones more often */
#define TWINS 0.0002     /* relative difference of times of skeletons that do the same */
#define NOTHING 0.02     /* relative change of time by an edit that is not worth a place */
#define CROSSED 0.2      /* so often two skeletons are crossed */
#define ALTERNATIVES 3   /* arms of a step: most refusals hold for all places */
#define MISS_PROBES 8    /* one draw in so many may take an edit that found no place there before */
#define OPERATOR_WEIGHT 2 /* of macros and operators, beside the square roots of ways */
#define ONE_STEP 0.65     /* probability of one step */
#define TWO_STEPS 0.9     /* probability of at most two */

/* Opens the structural edits and all operators. An edit that can be made in many ways, by places,
 * options and forms, needs more draws until a good one is found. */
static void open_arms(search *s, size_t start) {
    bandit *arms = &s->pools[start].arms;
    const size_t *sites = s->starts[start].sites;
    search_open_arms(&s->starts[start], NULL, SEARCH_PRESERVING, &s->statistics, arms);
    arms->open[ARM_OF(RETUNE)] = arms->open[ARM_OF(REORDER)] = true;
    for (unsigned arm = 0; arm < IR_EDIT_LOCAL_COUNT; arm++)
        arms->open[arm] = false;
    for (unsigned arm = IR_EDIT_LOCAL_COUNT; arm < ARM_COUNT; arm++)
        arms->weight[arm] =
            arm < IR_EDIT_COUNT ? sqrt(fmax((double)sites[arm], 1)) : OPERATOR_WEIGHT;
}

ev_status skeletons_begin(search *s, ev_error *err) {
    s->pools = calloc(s->start_count, sizeof *s->pools);
    if (!s->pools)
        return ev_fail_memory(err, s->start_count * sizeof *s->pools);
    for (size_t i = 0; i < s->start_count; i++) {
        s->pools[i].structure = s->pools[i].local = (effort){PRIOR_GAIN, PRIOR_TRIES};
        open_arms(s, i);
    }
    return EV_OK;
}

void skeletons_end(search *s) {
    for (size_t i = 0; s->pools && i < s->start_count; i++) {
        for (size_t k = 0; k < s->pools[i].count; k++)
            ir_genome_free(s->pools[i].members[k].genome);
        trials_end(&s->pools[i]);
    }
    free(s->pools);
}

/* ---- drawing ---- */

static bool has_structure(const skeleton_pool *p) {
    for (unsigned arm = IR_EDIT_LOCAL_COUNT; arm < IR_EDIT_COUNT; arm++) {
        if (p->arms.open[arm])
            return true;
    }
    return false;
}

bool skeletons_are_due(const search *s, size_t start, ev_pcg *rng) {
    const skeleton_pool *p = &s->pools[start];
    if (!has_structure(p))
        return false;
    if (p->count == 0) /* a start that fails has no skeletons later either */
        return s->committed < s->opening_count && ev_pcg_unit(rng) < SWEEP_EARLY;
    double structure = p->structure.gain / p->structure.tries;
    double local = p->local.gain / p->local.tries;
    double share = structure / (structure + local), at = ev_pcg_unit(rng);
    bool is_late =
        (double)s->committed > PAYING_UNTIL * (double)s->evaluations && s->evaluations > 0;
    bool pays = !is_late && ir_genome_prefix_count(p->members[0].genome) > 0;
    share = fmin(fmax(share, pays ? PAYING_SHARE : LEAST_SHARE), 1 - LEAST_SHARE);
    return at < share;
}

size_t skeleton_depth(const ir_genome *genome) {
    size_t edits = ir_genome_opening_count(genome);
    return edits < SKELETON_DEPTHS ? edits : SKELETON_DEPTHS - 1;
}

/* One of the members that `of` names by number, in order of time: faster ones more often. */
static member *choose_of(skeleton_pool *p, const size_t *of, size_t count, ev_pcg *rng) {
    assert(count > 0);
    double at = ev_pcg_unit(rng);
    size_t index = (size_t)(at * at * at * (double)count);
    return &p->members[of[index < count ? index : count - 1]];
}

/* The members of a depth, or of all (SKELETON_DEPTHS). */
static size_t list_members(const skeleton_pool *p, size_t depth, size_t of[SKELETONS]) {
    size_t count = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (depth == SKELETON_DEPTHS || skeleton_depth(p->members[i].genome) == depth)
            of[count++] = i;
    }
    return count;
}

/* A random depth with members; depth k with weight 1 / (k + 1). */
static size_t choose_depth(const skeleton_pool *p, ev_pcg *rng) {
    double weights[SKELETON_DEPTHS] = {0}, sum = 0;
    for (size_t i = 0; i < p->count; i++)
        weights[skeleton_depth(p->members[i].genome)] = 1;
    for (size_t k = 0; k < SKELETON_DEPTHS; k++)
        sum += weights[k] /= (double)(k + 1);
    double at = ev_pcg_unit(rng) * sum;
    size_t last = 0;
    for (size_t k = 0; k < SKELETON_DEPTHS; k++) {
        if (weights[k] > 0)
            last = k;
        if ((at -= weights[k]) < 0)
            break;
    }
    return last;
}

static member *choose(skeleton_pool *p, ev_pcg *rng) {
    size_t of[SKELETONS];
    bool by_depth = ev_pcg_unit(rng) < BY_DEPTH;
    size_t depth = by_depth ? choose_depth(p, rng) : SKELETON_DEPTHS;
    return choose_of(p, of, list_members(p, depth, of), rng);
}

/* The bit of a structural edit in member.missed. */
static uint64_t bit_of(unsigned arm) {
    assert(arm >= IR_EDIT_LOCAL_COUNT && arm < IR_EDIT_COUNT);
    return UINT64_C(1) << (arm - IR_EDIT_LOCAL_COUNT);
}

/* The arms that can change a skeleton at all. */
bandit skeleton_arms(const skeleton_pool *p, const member *m, ev_pcg *rng) {
    bandit arms = p->arms;
    size_t prefix = ir_genome_prefix_count(m->genome);
    bool probes = ev_pcg_below(rng, MISS_PROBES) == 0;
    for (unsigned arm = IR_EDIT_LOCAL_COUNT; arm < IR_EDIT_COUNT; arm++)
        arms.open[arm] = arms.open[arm] && (probes || (m->missed & bit_of(arm)) == 0);
    arms.open[ARM_OF(RETUNE)] = arms.open[ARM_OF(DROP)] = prefix > 0;
    arms.open[ARM_OF(REORDER)] = prefix > 1;
    return arms;
}

/* Whether crossing can give another genome than the parents: macros cross, prefixes do not. */
static bool can_cross(const member *a, const member *b) {
    return ir_genome_same_prefix(a->genome, b->genome) &&
           !ir_genome_same_macros(a->genome, b->genome);
}

bool skeletons_are_swept(const skeleton_pool *p) {
    return p->swept >= SWEPT;
}

/* Puts structural edits of other skeletons into the stock, from a random one on. */
static void put_stock(recipe *r, const skeleton_pool *p, ev_pcg *rng) {
    size_t from = ev_pcg_below(rng, (uint32_t)p->count);
    for (size_t i = 0; i < p->count; i++) {
        const ir_genome *other = p->members[(from + i) % p->count].genome;
        for (size_t k = 0; k < ir_genome_prefix_count(other); k++) {
            ev_sha256 key = ir_genome_edit_key(other, k);
            bool is_new = !ir_genome_holds(r->parents[0], &key);
            for (unsigned j = 0; j < r->stock_count; j++)
                is_new = is_new && !ir_genome_holds(r->stock[j], &key);
            if (is_new && r->stock_count < RECIPE_STOCK)
                recipe_stock(r, ir_genome_part(other, k, k + 1));
        }
    }
}

void skeleton_put_tabu(recipe *r, const search *s) {
    bool kinds[ARM_COUNT] = {false};
    for (unsigned arm = IR_EDIT_LOCAL_COUNT; arm < IR_EDIT_COUNT; arm++)
        kinds[arm] = true;
    r->tabu_count = tabu_marks(&s->tabu, r->parents[0], kinds, r->tabu);
}

void skeleton_put_parent(draft *d, const member *first, const member *faster) {
    d->skeleton = true;
    d->parent = first->child;
    d->parent_edits = first->edits;
    d->parent_ns = faster->ns;
    d->sketch = faster->sketch;
    d->sketch.near = 0; /* the small cases say nothing of the full shape */
    d->parent_error = faster->error;
    d->parent_small_error = faster->small.error;
}

/* Draws one edit that opens or is of a loop's turns, each kind as often, on a skeleton of depth 0.
 */
static void sweep(search *s, skeleton_pool *p, const member *first, recipe *r, draft *d,
                  char parents[48], ev_pcg *rng) {
    p->swept++;
    bandit all = skeleton_arms(p, first, rng), arms;
    for (unsigned arm = 0; arm < ARM_COUNT; arm++)
        all.open[arm] = all.open[arm] && arm >= IR_EDIT_LOCAL_COUNT && arm < IR_EDIT_COUNT &&
                        (ir_edit_opens((ir_edit_kind)arm) || ir_edit_of_turns((ir_edit_kind)arm));
    bandit_begin(&arms, all.open, ARM_COUNT, NULL);
    recipe_parents(r, first, NULL, parents);
    skeleton_put_parent(d, first, first);
    recipe_steps(r, &arms, 1, ALTERNATIVES, rng);
    skeleton_put_tabu(r, s);
}

static bool draw_sweep(search *s, skeleton_pool *p, recipe *r, draft *d, char parents[48],
                       ev_pcg *rng) {
    size_t of[SKELETONS], count = list_members(p, 0, of);
    if (ev_pcg_unit(rng) >= (skeletons_are_swept(p) ? SWEEP_LATE : SWEEP_EARLY) || count == 0)
        return false;
    sweep(s, p, choose_of(p, of, count, rng), r, d, parents, rng);
    return true;
}

void skeletons_draw(search *s, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    skeleton_pool *p = &s->pools[d->start];
    if (p->count == 0) {
        member light = search_light_start(s, d->start);
        sweep(s, p, &light, r, d, parents, rng);
        return;
    }
    if (draw_sweep(s, p, r, d, parents, rng) || trials_draw(s, p, r, d, parents, rng))
        return;
    const member *first = choose(p, rng), *mate = choose(p, rng);
    bool crosses = ev_pcg_unit(rng) < CROSSED && can_cross(first, mate);
    double at = ev_pcg_unit(rng);
    recipe_parents(r, first, crosses ? mate : NULL, parents);
    skeleton_put_parent(d, first, crosses && mate->ns < first->ns ? mate : first);
    size_t steps = 1u + (at >= ONE_STEP ? 1u : 0u) + (at >= TWO_STEPS ? 1u : 0u);
    bandit arms = skeleton_arms(p, first, rng);
    recipe_steps(r, &arms, steps, ALTERNATIVES, rng);
    put_stock(r, p, rng);
    skeleton_put_tabu(r, s);
}

/* ---- learning ---- */

/* Whether a genome has all edits of another one, in any order. */
static bool holds_edits(const ir_genome *genome, const ir_genome *other) {
    for (size_t i = 0; i < ir_genome_edit_count(other); i++) {
        ev_sha256 key = ir_genome_edit_key(other, i);
        if (!ir_genome_holds(genome, &key))
            return false;
    }
    return ir_genome_same_macros(genome, other);
}

/* Whether a skeleton has all edits of another one, at the same macros, and is no faster, or as fast
 * if the edits that it has beside them make places for more: they, or their order, do nothing. Rows
 * and columns of threads and copies for interior blocks are never nothing, however slow: others
 * need them. */
static bool adds_nothing_to(const member *m, const member *other) {
    if (!holds_edits(m->genome, other->genome) || m->ns < other->ns * (1 - NOTHING))
        return false;
    bool opens = ir_genome_opening_count(m->genome) > ir_genome_opening_count(other->genome);
    if (ir_genome_footing_count(m->genome) > ir_genome_footing_count(other->genome))
        return false;
    return !opens || m->ns <= other->ns * (1 + NOTHING);
}

/* Whether two skeletons open the same places and take the same time: what differs are options that
 * change nothing. The twin has as many edits, or more. */
static bool is_twin(const member *m, const member *other) {
    return m->outline == other->outline && m->edits >= other->edits &&
           ir_genome_same_macros(m->genome, other->genome) &&
           fabs(m->ns - other->ns) <= TWINS * other->ns;
}

static bool adds_nothing(const skeleton_pool *p, const member *m) {
    for (size_t i = 0; i < p->count; i++) {
        if (adds_nothing_to(m, &p->members[i]) || is_twin(m, &p->members[i]))
            return true;
    }
    return false;
}

static void drop(skeleton_pool *p, size_t at) {
    ir_genome_free(p->members[at].genome);
    p->count--;
    memmove(&p->members[at], &p->members[at + 1], (p->count - at) * sizeof p->members[0]);
}

/* Drops the members that add nothing to a newcomer. */
static void drop_larger(skeleton_pool *p, const member *m) {
    size_t kept = 0;
    for (size_t i = 0; i < p->count; i++) {
        if (adds_nothing_to(&p->members[i], m))
            ir_genome_free(p->members[i].genome);
        else
            p->members[kept++] = p->members[i];
    }
    p->count = kept;
}

/* The members of a kind: how many, and the slowest. */
typedef struct share {
    size_t count, slowest;
} share;

static void count_member(share *s, size_t at) {
    s->count++;
    s->slowest = at; /* they come in order of time */
}

/* The member of the pool that a newcomer replaces: the one of its base, or of its extent at its
 * macros, else the slowest of its setting, of its prefix, of its outline or of its depth, the first
 * of these that has its share; p->count: none. */
static size_t rival(const skeleton_pool *p, const member *m) {
    share prefix = {0}, outline = {0}, depth = {0}, setting = {0};
    const ir_genome *genome = m->genome;
    size_t deep = skeleton_depth(genome);
    for (size_t i = 0; i < p->count; i++) {
        const ir_genome *other = p->members[i].genome;
        if (ir_genome_same_base(other, genome))
            return i;
        if (skeleton_depth(other) != deep)
            continue;
        if (deep > 0 && p->members[i].extent == m->extent && ir_genome_same_macros(other, genome))
            return i;
        count_member(&depth, i);
        if (ir_genome_same_macros(other, genome))
            count_member(&setting, i);
        if (ir_genome_same_prefix(other, genome))
            count_member(&prefix, i);
        if (p->members[i].outline == m->outline)
            count_member(&outline, i);
    }
    if (setting.count >= OF_A_SETTING && ir_genome_macro_count(genome) > 0)
        return setting.slowest;
    if (deep > 0 && prefix.count >= OF_A_PREFIX)
        return prefix.slowest;
    if (deep > 0 && outline.count >= OF_AN_OUTLINE)
        return outline.slowest;
    return depth.count >= SKELETONS_A_DEPTH ? depth.slowest : p->count;
}

static bool is_beaten(const skeleton_pool *p, const member *m) {
    size_t at = rival(p, m);
    return at < p->count && p->members[at].ns <= m->ns;
}

static void join(skeleton_pool *p, member *m) {
    m->outline = ir_genome_outline(m->genome);
    m->extent = ir_genome_extent(m->genome);
    if (adds_nothing(p, m) || is_beaten(p, m))
        return;
    drop_larger(p, m); /* which may leave a place, so that the rival stays */
    size_t at = rival(p, m), to = 0;
    if (at < p->count && p->members[at].ns > m->ns)
        drop(p, at);
    assert(p->count < SKELETONS);
    while (to < p->count && p->members[to].ns <= m->ns)
        to++;
    memmove(&p->members[to + 1], &p->members[to], (p->count - to) * sizeof *m);
    p->members[to] = *m;
    p->count++;
    (void)ir_genome_ref(m->genome);
}

static void pay(effort *e, double gain) {
    e->gain = e->gain * FADE + PRIOR_GAIN * (1 - FADE) + gain;
    e->tries = e->tries * FADE + 1;
}

/* Notes a structural edit that was drawn on a skeleton without a follower, so that it is not drawn
 * there again. */
static void note_tried(search *s, const skeleton_pool *p, const draft *d, const child_result *r) {
    unsigned arm = 0;
    size_t count = r->genome ? ir_genome_prefix_count(r->genome) : 0;
    bool is_one = arm_find(r->operators, &arm) && arm >= IR_EDIT_LOCAL_COUNT && arm < IR_EDIT_COUNT;
    for (size_t k = 0; is_one && k < p->count; k++) {
        const ir_genome *parent = p->members[k].genome;
        if (p->members[k].child != d->parent || ir_genome_prefix_count(parent) + 1 != count)
            continue;
        for (size_t i = 0; i < count; i++) {
            ev_sha256 key = ir_genome_edit_key(r->genome, i);
            if (!ir_genome_holds(parent, &key))
                tabu_note_at(&s->tabu, parent, r->genome, i, false);
        }
    }
}

/* The name of an arm at the beginning of a list of operators. */
static bool begins_with(const char *operators, unsigned arm) {
    const char *name = arm_name(arm);
    size_t length = strlen(name);
    return strncmp(operators, name, length) == 0 &&
           (operators[length] == ',' || operators[length] == '\0');
}

/* Pays the arms of a step that had no place: those before the one that was taken, or all. Returns
 * the operators that are left. */
static const char *pay_missed(bandit *arms, const recipe_step *step, const char *operators) {
    for (unsigned k = 0; k < step->count; k++) {
        if (begins_with(operators, step->arms[k])) {
            operators += strcspn(operators, ",");
            return operators + (*operators == ',');
        }
        bandit_pay(arms, step->arms[k], 0);
    }
    return operators;
}

/* Notes the structural edits that the first step found no place for, on the skeleton that was the
 * child's one parent: those before the one that was taken, or all if nothing was. */
static void note_no_place(skeleton_pool *p, const draft *d, const char *operators) {
    const recipe_step *step = &d->steps[0];
    unsigned taken = 0;
    while (taken < step->count && !begins_with(operators, step->arms[taken]))
        taken++;
    if (taken == step->count && operators[0] != '\0' && d->step_count > 1)
        return; /* a later step was taken; in place of a single step, an option was changed */
    for (size_t i = 0; i < p->count; i++) {
        member *m = &p->members[i];
        for (unsigned k = 0; m->child == d->parent && k < taken; k++) {
            if (step->arms[k] >= IR_EDIT_LOCAL_COUNT && step->arms[k] < IR_EDIT_COUNT)
                m->missed |= bit_of(step->arms[k]);
        }
    }
}

/* An arm without a place is a try without a gain. */
static void note_missed(skeleton_pool *p, const draft *d, const child_result *r) {
    const char *operators = r->operators;
    if (begins_with(operators, ARM_OF(CROSSOVER))) {
        operators += strcspn(operators, ",");
        operators += *operators == ',';
    } else if (d->step_count > 0) {
        note_no_place(p, d, operators);
    }
    for (unsigned i = 0; i < d->step_count; i++)
        operators = pay_missed(&p->arms, &d->steps[i], operators);
}

/* The member that is the given child. NULL: there is none. */
static const member *find_child(const skeleton_pool *p, uint64_t child) {
    for (size_t i = 0; i < p->count; i++) {
        if (p->members[i].child == child)
            return &p->members[i];
    }
    return NULL;
}

void skeletons_join(search *s, size_t start, const member *m) {
    member joins = *m;
    join(&s->pools[start], &joins);
}

/* Whether a child of the search can be a parent in the pool. An unmodified start has no pipeline,
 * and its children would all take default<O3>: the start with the light pipeline stands for it. */
static bool is_parent(const search *s, const draft *d, const child_result *r,
                      const search_verdict *v) {
    bool opens = s->committed < s->opening_count;
    bool is_new =
        v->outcome.origin == SEARCH_TIMED || (v->outcome.origin == SEARCH_ESTIMATED && d->skeleton);
    return is_new && ir_genome_is_skeleton(r->genome) &&
           !(opens && s->openings[s->committed].unmodified);
}

void skeletons_settle(search *s, const draft *d, const child_result *r, const search_verdict *v) {
    skeleton_pool *p = &s->pools[d->start];
    bool passed = search_passed(v) && r->bold == 0 && v->outcome.ns > 0;
    double best = d->skeleton && p->count > 0 ? p->members[0].ns : p->best_ns;
    double gain = passed && best > v->outcome.ns ? log(best / v->outcome.ns) : 0;
    if (s->committed >= s->opening_count)
        pay(d->skeleton ? &p->structure : &p->local, gain);
    if (d->skeleton) {
        note_missed(p, d, r);
        search_pay_arms(&p->arms, r->operators, search_gain(s, d, v));
        note_tried(s, p, d, r);
        p->has_limit |= d->limits && v->outcome.stopped == GATE_VERIFY;
    }
    bool is_best = p->best_ns == 0 || p->best_ns > v->outcome.ns;
    if (passed && v->outcome.origin != SEARCH_ESTIMATED && is_best)
        p->best_ns = v->outcome.ns;
    if (passed && is_parent(s, d, r, v)) {
        member m = member_of(s, r, v);
        const member *parent = d->skeleton ? find_child(p, d->parent) : NULL;
        bool is_timed = v->outcome.origin != SEARCH_ESTIMATED;
        if (parent)
            trials_learn(p, parent, is_timed ? search_gain(s, d, v) : 0, &m);
        join(p, &m);
    }
}
