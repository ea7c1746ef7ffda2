/* Trials: the systematic part of what `evolve` draws on the skeletons of a pool
 * (search_skeletons.c).
 *
 * What an option brings depends on the options of the others: four elements a thread in one
 * dimension and two in the other may be faster than two and two, which are slower than two and
 * four; a tile is best staged behind what divides the work; a structure pays with the edits that
 * finish it alone, and each setting of the macros has another best structure. So most children are
 * systematic, of faster skeletons more often. Each is drawn once, but for places and openings,
 * whose edit is drawn at random:
 *
 *     limit       fewer registers a thread, as more warps on an SM may pay for spills
 *     reduction   the fastest without one of its edits or knobs: one that paid on the structure
 *                 before may hold this one back, and edits that do nothing would fill the pool
 *     setting     the same edits at the macros of another member, or with one macro a value further
 *     gain        edits that made another skeleton faster than its parent, the greatest gain first
 *     place       one more edit of each kind, as often as it has places in the start and forms
 *     neighbour   the edits in the usual order; one option doubled or halved, or another form
 *     opening     one more edit that opens, on a skeleton that has one
 *     extension   the edit of a skeleton of one edit, finished as the one or as the other
 *
 * Limits, settings, gains and places are tried on the leaders: the fastest member of each outline
 * and setting of the macros, if the member is near the fastest of all. So a structure or a setting
 * that is behind at first is tried, too. */
#include "base/hash.h"
#include "tuner/search/search_inside.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#define REDUCED 0.3    /* so often the fastest is drawn without an edit, while one is left to try */
#define PLACED 0.35    /* so often one more edit is drawn on a leader, the same */
#define OPENED 0.12    /* so often an edit that opens, on a skeleton that has one, ... */
#define OPENED_TIMES 3 /* ... each so often at most */
#define PLACED_TIMES 8 /* most draws of one kind on a leader */
#define AFFORDED 500   /* least evaluations a start for trials of leaders */
#define LEADERS 6      /* at most ... */
#define OF_A_SETTING 2 /* ... of which so many have one setting of the macros ... */
#define BEHIND 1.25    /* ... and which take so many times the fastest's time at most */
#define PAYS 0.01      /* the least gain, a logarithm, of edits that are tried on others */
#define ALTERNATIVES 3 /* arms of a step: most refusals hold for all places */

/* ---- leaders ---- */

static bool is_species(const member *a, const member *b) {
    return a->outline == b->outline && ir_genome_same_macros(a->genome, b->genome);
}

/* Lists the leaders by number, the fastest first. */
static size_t list_leaders(const skeleton_pool *p, size_t of[LEADERS]) {
    size_t count = 0;
    for (size_t i = 0; i < p->count && count < LEADERS; i++) {
        size_t own = 0;
        bool leads = p->members[i].ns <= p->members[0].ns * BEHIND;
        for (size_t k = 0; k < count; k++) {
            own += ir_genome_same_macros(p->members[of[k]].genome, p->members[i].genome);
            leads = leads && !is_species(&p->members[of[k]], &p->members[i]);
        }
        if (leads && own < OF_A_SETTING)
            of[count++] = i;
    }
    return count;
}

/* Whether a genome is known, or the start is wrong at its macros. */
static bool is_tried(const search *s, const ir_genome *genome) {
    uint64_t same_as = 0;
    return wrong_holds(&s->wrong, genome) ||
           search_knows(s, genome, SEARCH_BY_GENOME, "", &same_as);
}

/* ---- reductions ---- */

/* The pipeline stays: without one, a skeleton would take LLVM's default. */
static bool can_go(const ir_genome *genome, size_t at) {
    return ir_genome_edit_kind(genome, at) != IR_EDIT_PIPELINE;
}

/* The fastest skeleton without one of its structural edits or knobs, the last first; NULL: each was
 * tried, or is known. */
static ir_genome *reduce_best(const search *s, skeleton_pool *p) {
    member *best = &p->members[0];
    size_t count = ir_genome_edit_count(best->genome);
    while (ir_genome_prefix_count(best->genome) > 0 && best->reduced < count) {
        size_t at = count - ++best->reduced;
        if (!can_go(best->genome, at))
            continue;
        ir_genome *part = ir_genome_without(best->genome, at, at + 1);
        if (part && !is_tried(s, part))
            return part;
        ir_genome_free(part);
    }
    return NULL;
}

/* Draws the fastest skeleton without one edit. The child may be a little slower: its limit is not
 * the parent's. */
static bool draw_reduced(search *s, skeleton_pool *p, recipe *r, draft *d, char parents[48],
                         ev_pcg *rng) {
    ir_genome *reduced = ev_pcg_unit(rng) < REDUCED ? reduce_best(s, p) : NULL;
    if (!reduced)
        return false;
    recipe_parents(r, &p->members[0], NULL, parents);
    recipe_make(r, RECIPE_REDUCED, reduced);
    skeleton_put_parent(d, &p->members[0], &p->members[0]);
    d->sketch.due = 0;
    return true;
}

/* ---- lists of a member's own ---- */

/* The next neighbour of a member that is no known genome; NULL: none is left. */
static ir_genome *next_neighbour(const search *s, const skeleton_pool *p, member *m) {
    (void)p;
    ir_genome *next = NULL;
    while (ir_genome_prefix_count(m->genome) > 0 &&
           (next = ir_genome_neighbour(m->genome, &m->tuned)) != NULL) {
        if (!is_tried(s, next))
            return next;
        ir_genome_free(next);
    }
    return NULL;
}

/* Registers of a thread at which 16, 24, 32 and 48 warps fit an SM of 64 Ki registers. */
static const int64_t limits[] = {128, 80, 64, 40};

/* The next limit of registers that is below what a member takes, and makes no known genome; NULL:
 * none is left. */
static ir_genome *next_limit(const search *s, const skeleton_pool *p, member *m) {
    while (!p->has_limit && m->limited < sizeof limits / sizeof limits[0]) {
        int64_t limit = limits[m->limited++];
        bool binds = m->registers == 0 || limit < m->registers;
        ir_genome *next = binds ? ir_genome_limit(m->genome, limit) : NULL;
        if (next && !is_tried(s, next))
            return next;
        ir_genome_free(next);
    }
    return NULL;
}

/* The bit in member.extended of an extension by an edit of the skeleton `by`, finished as the
 * member or as that skeleton. */
static uint64_t extension_bit(const ir_genome *by, size_t at, bool finish_as_by) {
    return UINT64_C(1) << (2 * (ev_mix64(ir_genome_edit_mark(by, at)) % 32) + finish_as_by);
}

/* The next extension of a member by the edit of a skeleton of depth 1, the fastest first, that is
 * no known genome; NULL: none is left. */
static ir_genome *next_extension(const search *s, const skeleton_pool *p, member *m) {
    size_t depth = skeleton_depth(m->genome);
    if (depth == 0 || depth + 1 == SKELETON_DEPTHS)
        return NULL;
    for (size_t i = 0; i < 2 * p->count; i++) {
        const ir_genome *by = p->members[i / 2].genome;
        size_t at = skeleton_depth(by) == 1 ? ir_genome_first_opening(by) : SIZE_MAX;
        uint64_t bit = at != SIZE_MAX ? extension_bit(by, at, i % 2 == 1) : 0;
        if (bit == 0 || (m->extended & bit) != 0)
            continue;
        m->extended |= bit;
        ir_genome *next = ir_genome_extend(m->genome, by, at, i % 2 == 1);
        if (next && !is_tried(s, next))
            return next;
        ir_genome_free(next);
    }
    return NULL;
}

/* ---- settings ---- */

/* The member with a macro at its next larger value (`up`) or at its next smaller one. NULL: there
 * is none, or memory ran out. */
static ir_genome *step_macro(const member *m, const task_macro *macro, bool up) {
    int64_t now = draw_macro_value(m->genome, macro), best = now;
    for (size_t i = 0; i < macro->value_count; i++) {
        int64_t value = macro->values[i];
        if (up ? value <= now : value >= now)
            continue;
        if (best == now || (up ? value < best : value > best))
            best = value;
    }
    ir_genome *child = NULL;
    ev_error ignored;
    if (best == now || draw_with_macro(m->genome, macro, best, true, &child, &ignored) != EV_OK)
        return NULL;
    return child;
}

/* A bit of a member's own for a mark. Where two marks have one bit, the second is not tried on this
 * member, but on others. */
static uint64_t own_bit(const member *m, uint64_t mark) {
    return UINT64_C(1) << ev_mix64(mark ^ m->child) % 64;
}

/* The member's edits at the macros of another genome of its start. NULL: out of memory. */
static ir_genome *put_setting(const member *m, const ir_genome *other) {
    ir_genome *child = ir_genome_part(other, 0, 0);
    for (size_t i = 0; child && i < ir_genome_edit_count(m->genome); i++)
        (void)ir_genome_append_from(child, m->genome, i); /* true: each edit is there once */
    return child;
}

/* The next child of a member at another setting of the macros that is no known genome: at those of
 * other members, the fastest first, then with one macro a value further. NULL: none is left. */
static ir_genome *next_setting(const search *s, const skeleton_pool *p, member *m) {
    const task_start *start = s->starts[p - s->pools].start;
    for (size_t i = 0; start->macro_count > 0 && i < p->count; i++) {
        const ir_genome *other = p->members[i].genome;
        uint64_t bit = own_bit(m, wrong_mark(other));
        if ((m->met & bit) != 0 || ir_genome_same_macros(m->genome, other))
            continue;
        m->met |= bit;
        ir_genome *next = put_setting(m, other);
        if (next && !is_tried(s, next))
            return next;
        ir_genome_free(next);
    }
    while (m->set < 2 * start->macro_count) {
        const task_macro *macro = &start->macros[m->set / 2];
        ir_genome *next = step_macro(m, macro, m->set++ % 2);
        if (next && !is_tried(s, next))
            return next;
        ir_genome_free(next);
    }
    return NULL;
}

/* ---- gains ---- */

/* Removes the gain at `at` from the list. */
static void drop_gain(skeleton_pool *p, size_t at) {
    ir_genome_free(p->gains[at].edits);
    p->gain_count--;
    memmove(&p->gains[at], &p->gains[at + 1], (p->gain_count - at) * sizeof p->gains[0]);
}

/* Puts a gain into the list: in place of the same edits at the same places, with the greater of the
 * two gains, or of the smallest gain if the list is full. Takes over the reference. */
static void keep_gain(skeleton_pool *p, skeleton_gain gain) {
    for (size_t i = p->gain_count; i-- > 0;) {
        if (p->gains[i].mark == gain.mark) {
            gain.gain = fmax(gain.gain, p->gains[i].gain);
            drop_gain(p, i);
        }
    }
    if (p->gain_count == SKELETON_GAINS && p->gains[SKELETON_GAINS - 1].gain < gain.gain)
        drop_gain(p, SKELETON_GAINS - 1);
    if (p->gain_count == SKELETON_GAINS) {
        ir_genome_free(gain.edits);
        return;
    }
    size_t at = p->gain_count++;
    for (; at > 0 && p->gains[at - 1].gain < gain.gain; at--)
        p->gains[at] = p->gains[at - 1];
    p->gains[at] = gain;
}

/* The structural edits of a child that its parent lacks. Without edits: there are none, or memory
 * ran out. */
static skeleton_gain new_edits(const ir_genome *child, const ir_genome *parent) {
    size_t count = ir_genome_prefix_count(child), first = count, last = 0, new = 0;
    ir_genome *edits = ir_genome_part(child, 0, 0);
    uint64_t mark = 0;
    for (size_t i = 0; edits && i < count; i++) {
        ev_sha256 key = ir_genome_edit_key(child, i);
        if (ir_genome_holds(parent, &key))
            continue;
        (void)ir_genome_append_from(edits, child, i); /* true: each edit is there once */
        mark = ev_mix64(mark ^ ir_genome_edit_mark(child, i));
        first = new ++== 0 ? i : first;
        last = i;
    }
    if (new == 0) {
        ir_genome_free(edits);
        return (skeleton_gain){0};
    }
    bool at_end = last + 1 == count && last - first + 1 == new;
    return (skeleton_gain){.edits = edits, .mark = ev_mix64(mark ^ at_end), .at_end = at_end};
}

void trials_learn(skeleton_pool *p, const member *parent, double gain, member *m) {
    if (!ir_genome_same_macros(parent->genome, m->genome))
        return;
    bool same_places = ir_genome_outline(m->genome) == parent->outline;
    if (same_places)
        m->missed = parent->missed;
    if (same_places && gain < PAYS)
        m->placed = parent->placed;
    skeleton_gain found = gain < PAYS ? (skeleton_gain){0} : new_edits(m->genome, parent->genome);
    found.gain = gain;
    if (found.edits)
        keep_gain(p, found);
}

void trials_end(skeleton_pool *p) {
    while (p->gain_count > 0)
        drop_gain(p, p->gain_count - 1);
}

/* The next gain of another skeleton on a member, the greatest first, that makes no known genome;
 * NULL: none is left. */
static ir_genome *next_gain(const search *s, const skeleton_pool *p, member *m) {
    for (size_t i = 0; i < p->gain_count; i++) {
        const skeleton_gain *gain = &p->gains[i];
        uint64_t bit = own_bit(m, gain->mark);
        if (m->gained & bit)
            continue;
        m->gained |= bit;
        ir_genome *next = ir_genome_join(m->genome, gain->edits, gain->at_end);
        if (next && !is_tried(s, next))
            return next;
        ir_genome_free(next);
    }
    return NULL;
}

/* ---- drawing from the lists ---- */

/* A list that each member has. `next` gives the next child of a member; NULL: none is left. */
typedef struct list_row {
    double share; /* so often a child of the list is drawn, while there are any */
    ir_genome *(*next)(const search *s, const skeleton_pool *p, member *m);
    recipe_made made;
    bool of_leaders; /* the lists of other members are not drawn from */
    bool limits;     /* registers */
} list_row;

static const list_row limited = {0.08, next_limit, RECIPE_TUNED, true, true};
static const list_row set = {0.2, next_setting, RECIPE_SET, true, false};
static const list_row gained = {0.2, next_gain, RECIPE_JOINED, true, false};
static const list_row tuned = {0.3, next_neighbour, RECIPE_TUNED, false, false};
static const list_row extended = {0.15, next_extension, RECIPE_JOINED, false, false};

/* Draws the next child of a list, of a faster member more often. */
static bool draw_next(search *s, skeleton_pool *p, const list_row *list, recipe *r, draft *d,
                      char parents[48], ev_pcg *rng) {
    double at = ev_pcg_unit(rng);
    if (ev_pcg_unit(rng) >= list->share)
        return false;
    size_t of[LEADERS], count = list->of_leaders ? list_leaders(p, of) : p->count;
    size_t from = (size_t)(at * at * at * (double)count);
    for (size_t i = 0; i < count; i++) {
        size_t index = (from + i) % count;
        member *m = &p->members[list->of_leaders ? of[index] : index];
        ir_genome *child = list->next(s, p, m);
        if (!child)
            continue;
        recipe_parents(r, m, NULL, parents);
        recipe_make(r, list->made, child);
        skeleton_put_parent(d, m, m);
        d->limits = list->limits;
        return true;
    }
    return false;
}

/* ---- one more edit ---- */

/* How often a kind of edit is tried at most. */
typedef unsigned most_fn(const search *s, const skeleton_pool *p, ir_edit_kind kind);

/* Of a leader: as often as the kind has places in the start and forms. */
static unsigned most_placed(const search *s, const skeleton_pool *p, ir_edit_kind kind) {
    size_t sites = s->starts[p - s->pools].sites[kind];
    size_t ways = (sites > 0 ? sites : 1) * ir_edit_forms(kind);
    return ways < PLACED_TIMES ? (unsigned)ways : PLACED_TIMES;
}

static unsigned most_opened(const search *s, const skeleton_pool *p, ir_edit_kind kind) {
    (void)s, (void)p;
    return ir_edit_opens(kind) ? OPENED_TIMES : 0;
}

/* Closes the arms but those of structural edits that were tried less often than `most` says. False:
 * none is left. */
static bool leave_untried(const search *s, const skeleton_pool *p, const structural_counts *tried,
                          most_fn *most, bandit *arms) {
    bool any = false;
    for (unsigned arm = 0; arm < ARM_COUNT; arm++) {
        bool is_structural = arm >= IR_EDIT_LOCAL_COUNT && arm < IR_EDIT_COUNT;
        arms->open[arm] = arms->open[arm] && is_structural &&
                          tried->of[arm - IR_EDIT_LOCAL_COUNT] < most(s, p, (ir_edit_kind)arm);
        any = any || arms->open[arm];
    }
    return any;
}

/* Draws the edit, which counts as tried, on a member. */
static void draw_one_more(const search *s, const bandit *arms, size_t alternatives, member *m,
                          structural_counts *tried, recipe *r, draft *d, char parents[48],
                          ev_pcg *rng) {
    recipe_parents(r, m, NULL, parents);
    recipe_steps(r, arms, 1, alternatives, rng);
    tried->of[r->steps[0].arms[0] - IR_EDIT_LOCAL_COUNT]++;
    skeleton_put_parent(d, m, m);
    skeleton_put_tabu(r, s);
}

/* Draws one more edit on a leader, of a kind that was tried there too rarely. */
static bool draw_placed(search *s, skeleton_pool *p, recipe *r, draft *d, char parents[48],
                        ev_pcg *rng) {
    if (ev_pcg_unit(rng) >= PLACED || !skeletons_are_swept(p))
        return false;
    size_t of[LEADERS], count = list_leaders(p, of);
    double at = ev_pcg_unit(rng);
    size_t from = (size_t)(at * at * at * (double)count);
    for (size_t i = 0; i < count; i++) {
        member *m = &p->members[of[(from + i) % count]];
        bandit arms = skeleton_arms(p, m, rng);
        if (!leave_untried(s, p, &m->placed, most_placed, &arms))
            continue;
        draw_one_more(s, &arms, ALTERNATIVES, m, &m->placed, r, d, parents, rng);
        return true;
    }
    return false;
}

/* Draws an edit that opens on a skeleton that has such edits: what they made is a place for more,
 * which no skeleton of depth 0 has. */
static bool draw_opened(search *s, skeleton_pool *p, recipe *r, draft *d, char parents[48],
                        ev_pcg *rng) {
    double at = ev_pcg_unit(rng);
    size_t from = (size_t)(at * at * at * (double)p->count);
    if (ev_pcg_unit(rng) >= OPENED || !skeletons_are_swept(p))
        return false;
    for (size_t i = 0; i < p->count; i++) {
        member *m = &p->members[(from + i) % p->count];
        size_t depth = skeleton_depth(m->genome);
        bandit arms = skeleton_arms(p, m, rng);
        if (depth == 0 || depth + 1 >= SKELETON_DEPTHS ||
            !leave_untried(s, p, &m->opened, most_opened, &arms))
            continue;
        draw_one_more(s, &arms, 1, m, &m->opened, r, d, parents, rng);
        return true;
    }
    return false;
}

/* Whether the budget pays for the trials of leaders. With few evaluations a start, they take what a
 * plain kernel needs to find its structure (results/notes.md). */
static bool can_afford_leaders(const search *s) {
    return s->evaluations == 0 || s->evaluations >= AFFORDED * s->start_count;
}

static bool draw_of_leaders(search *s, skeleton_pool *p, recipe *r, draft *d, char parents[48],
                            ev_pcg *rng) {
    return draw_next(s, p, &set, r, d, parents, rng) ||
           draw_next(s, p, &gained, r, d, parents, rng) || draw_placed(s, p, r, d, parents, rng);
}

bool trials_draw(search *s, skeleton_pool *p, recipe *r, draft *d, char parents[48], ev_pcg *rng) {
    return draw_next(s, p, &limited, r, d, parents, rng) ||
           draw_reduced(s, p, r, d, parents, rng) ||
           (can_afford_leaders(s) && draw_of_leaders(s, p, r, d, parents, rng)) ||
           draw_next(s, p, &tuned, r, d, parents, rng) || draw_opened(s, p, r, d, parents, rng) ||
           draw_next(s, p, &extended, r, d, parents, rng);
}
