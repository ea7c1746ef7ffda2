/* A search that is fed by hand, for tests of the pool of skeletons and of the trials on it. */
#ifndef TESTS_TUNER_SEARCH_SKELETON_SEARCH_H
#define TESTS_TUNER_SEARCH_SKELETON_SEARCH_H

#include "tuner/search/draw.h"
#include "tuner/search/search.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tests/tuner/search/skeleton_genomes.h"

static const task_start textbook = {.name = "textbook"};

typedef struct fed {
    search *s;
    search_start start;
    uint64_t structure, local; /* children drawn from the pool, and others */
    uint32_t registers;        /* of the next children */
} fed;

static inline void begin_with(fed *f) {
    const search_settings settings = {
        .starts = &f->start, .start_count = 1, .seed = 5, .evaluations = 2000};
    assert_int_equal(search_new(&settings, &f->s, NULL), EV_OK);
}

static inline void begin(fed *f, size_t structural_sites) {
    *f = (fed){.start = {.start = &textbook,
                         .sites = {[IR_EDIT_SINK] = 9, [IR_EDIT_COARSEN] = structural_sites}}};
    begin_with(f);
}

static inline bool is_structural(const recipe *r) {
    for (unsigned i = 0; i < r->step_count; i++) {
        for (unsigned k = 0; k < r->steps[i].count; k++) {
            unsigned arm = r->steps[i].arms[k];
            if ((arm < IR_EDIT_COUNT && ir_edit_is_structural((ir_edit_kind)arm)) ||
                arm == ARM_OF(RETUNE))
                return true;
        }
    }
    return false;
}

static inline bool has_arm(const recipe *r, unsigned arm) {
    for (unsigned i = 0; i < r->step_count; i++) {
        for (unsigned k = 0; k < r->steps[i].count; k++) {
            if (r->steps[i].arms[k] == arm)
                return true;
        }
    }
    return false;
}

/* A skeleton is not drawn an operator that has nothing to change there. */
static inline void check_operators(const recipe *r) {
    size_t prefix = ir_genome_prefix_count(r->parents[0]);
    assert_true(prefix > 0 || !(has_arm(r, ARM_OF(RETUNE)) || has_arm(r, ARM_OF(DROP))));
    assert_true(prefix > 1 || !has_arm(r, ARM_OF(REORDER)));
}

/* One child; it takes `ns`, and its genome is `genome` (a reference that is taken over). */
static inline bool feed(fed *f, ir_genome *genome, const char *operators, double ns) {
    static int number;
    recipe r;
    char hash[32];
    assert_int_equal(search_draw(f->s, false, &r, NULL), EV_OK);
    bool structural = is_structural(&r), is_of_pool = structural || !r.by_heat;
    if (structural) /* drawn on a skeleton, without limits of the filter */
        assert_true(ir_genome_is_skeleton(r.parents[0]) && r.reach.built == 0);
    if (structural)
        check_operators(&r);
    f->structure += is_of_pool;
    f->local += !is_of_pool;
    recipe_free(&r);
    child_result result = {
        .genome = genome,
        .outcome = {
            .origin = SEARCH_TIMED, .stopped = GATE_NONE, .ns = ns, .registers = f->registers}};
    (void)snprintf(result.operators, sizeof result.operators, "%s", operators);
    (void)snprintf(hash, sizeof hash, "code %d", number++);
    (void)snprintf(result.hashes[SEARCH_BY_IR], sizeof result.hashes[0], "%s", hash);
    (void)snprintf(result.hashes[SEARCH_BY_PTX], sizeof result.hashes[0], "%s", hash);
    search_verdict v;
    assert_int_equal(search_commit(f->s, &result, &v, NULL), EV_OK);
    ir_genome_free(genome);
    return is_of_pool;
}

/* The next child is stopped at a gate. */
static inline void stop_child(fed *f, gate at) {
    child_result failed = {.outcome = {.origin = SEARCH_TIMED, .stopped = at}};
    search_verdict v;
    assert_int_equal(search_commit(f->s, &failed, &v, NULL), EV_OK);
}

static inline void fail_child(fed *f) {
    stop_child(f, GATE_VERIFY);
}

/* Whether the child is made and has a limit of registers, and which. */
static inline bool is_limited(const recipe *r, int64_t *registers) {
    const ir_genome *made = r->parents[0];
    size_t last = ir_genome_edit_count(made) - 1;
    if (r->made != RECIPE_TUNED || last == SIZE_MAX ||
        ir_genome_edit_kind(made, last) != IR_EDIT_MAX_REGISTERS)
        return false;
    json_t *json = ir_genome_to_json(made);
    json_t *edit = json_array_get(json_object_get(json, "edits"), last);
    *registers = json_integer_value(json_object_get(edit, "option"));
    json_decref(json);
    return true;
}

static inline void feed_starts(fed *f) {
    (void)feed(f, genome_of(0, -1), "start", 1000);
    (void)feed(f, genome_of(0, -1), "start", 1000);
    f->structure = f->local = 0;
}

static inline void open_search(fed *f, size_t structural_sites) {
    begin(f, structural_sites);
    feed_starts(f);
}

/* How often a skeleton with `edits` structural edits, coarsened or not, is the parent of one of the
 * next children, which all fail. */
static inline size_t count_parents(fed *f, bool coarsened, size_t edits) {
    size_t count = 0;
    for (int i = 0; i < 400; i++) {
        recipe r;
        assert_int_equal(search_draw(f->s, false, &r, NULL), EV_OK);
        const ir_genome *parent = r.parents[0];
        bool is_coarsened =
            ir_genome_prefix_count(parent) > 0 && ir_genome_edit_kind(parent, 0) == IR_EDIT_COARSEN;
        count += is_structural(&r) && is_coarsened == coarsened &&
                 ir_genome_prefix_count(parent) == edits;
        recipe_free(&r);
        fail_child(f);
    }
    return count;
}

#endif
