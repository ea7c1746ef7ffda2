/* What a worker makes of a step: removal of structure drops local edits, a child whose edits lost
 * their places is mended, and structure of the stock takes its usual place. */
#include "tuner/search/draw.h"

#include <string.h>

#include "tests/tuner/search/skeleton_genomes.h"

static const task_start textbook = {.name = "textbook"};

static ev_status no_base(void *context, const ir_genome *genome, const ir_base **out,
                         ev_error *err) {
    (void)context, (void)genome, (void)out;
    return ev_fail(err, EV_BAD, "no base");
}

static ev_status add_structure(void *context, const ir_genome *parent, ir_edit_kind kind,
                               const ir_hints *hints, ev_pcg *rng, ir_genome **out, ev_error *err) {
    (void)context, (void)kind, (void)hints, (void)rng;
    ir_genome *child = ir_genome_clone(parent), *one = genome_of(8, -1);
    ir_genome_keep_knobs(child);
    bool is_new = ir_genome_append_from(child, one, 0);
    ir_genome_free(one);
    if (!is_new) { /* a follower, which the genome has already */
        ir_genome_free(child);
        return ev_fail(err, EV_BAD, "the edit is there");
    }
    *out = child;
    return EV_OK;
}

/* What the draws of a child asked for, in order. */
typedef struct asked {
    ir_edit_kind kinds[16];
    size_t count;
    ir_edit_kind without; /* has no place */
} asked;

static ev_status note_structure(void *context, const ir_genome *parent, ir_edit_kind kind,
                                const ir_hints *hints, ev_pcg *rng, ir_genome **out,
                                ev_error *err) {
    (void)hints, (void)rng;
    asked *a = context;
    assert_true(a->count < 16);
    if (kind == a->without)
        return ev_fail(err, EV_BAD, "no place");
    a->kinds[a->count++] = kind;
    *out = ir_genome_clone(parent);
    return EV_OK;
}

/* The kinds of edits that a step of one structural edit takes with a seed. */
static asked draw_chain(ir_edit_kind first, ir_edit_kind without, uint64_t seed) {
    const task t = {.starts = (task_start *)&textbook, .start_count = 1};
    asked a = {.without = without};
    ir_genome *bare = genome_of(0, -1);
    draw_bases bases = {.get = no_base, .structure = note_structure, .context = &a};
    recipe r = {.parents = {bare},
                .parent_count = 1,
                .steps = {{.arms = {first}, .count = 1}},
                .step_count = 1,
                .stream = {.seed = seed}};
    drawn_child child = {0};
    ev_str operators = EV_STR_EMPTY;
    assert_int_equal(draw_child(&t, &bases, &r, &child, &operators, NULL), EV_OK);
    drawn_child_free(&child);
    ev_str_free(&operators);
    recipe_free(&r);
    return a;
}

/* An edit may come with one that uses what it makes, and that one with another. A follower without
 * a place leaves the turn to the next one. */
static void test_followers_have_followers(void **state) {
    (void)state;
    size_t lengths[16] = {0}, rows_of_columns = 0, staged = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        asked a = draw_chain(IR_EDIT_SPLIT_LANES, IR_EDIT_COUNT, seed);
        assert_true(a.count >= 1 && a.count <= 3);
        assert_true(a.count < 2 || a.kinds[1] == IR_EDIT_UNROLL_TURNS);
        assert_true(a.count < 3 || a.kinds[2] == IR_EDIT_PIPELINE_LOADS ||
                    a.kinds[2] == IR_EDIT_GROUP_LOADS);
        lengths[a.count]++;
        a = draw_chain(IR_EDIT_DELINEARIZE, IR_EDIT_COUNT, seed);
        assert_true(a.count <= 5); /* with four followers */
        rows_of_columns +=
            a.count >= 3 && a.kinds[1] == IR_EDIT_DELINEARIZE && a.kinds[2] == IR_EDIT_COARSEN;
        a = draw_chain(IR_EDIT_COARSEN, IR_EDIT_UNROLL_LOOP, seed);
        assert_true(a.count == 1 || a.kinds[1] == IR_EDIT_STAGE ||
                    a.kinds[1] == IR_EDIT_JOIN_ATOMICS || a.kinds[1] == IR_EDIT_STAGE_ATOMICS);
        staged += a.count > 1 && a.kinds[1] == IR_EDIT_STAGE;
    }
    for (size_t length = 1; length <= 3; length++)
        assert_true(lengths[length] > 30);
    assert_true(rows_of_columns > 20 && staged > 100);
}

static ir_genome *step(const ir_genome *parent, unsigned arm, const ir_genome *stock) {
    const task t = {.starts = (task_start *)&textbook, .start_count = 1};
    draw_bases bases = {.get = no_base, .structure = add_structure};
    recipe r = {.parents = {ir_genome_ref(parent)},
                .parent_count = 1,
                .steps = {{.arms = {arm}, .count = 1}},
                .step_count = 1};
    if (stock)
        r.stock[r.stock_count++] = ir_genome_ref(stock);
    drawn_child child = {0};
    ev_str operators = EV_STR_EMPTY;
    ev_error err = {0};
    ev_status status = draw_child(&t, &bases, &r, &child, &operators, &err);
    ev_str_free(&operators);
    recipe_free(&r);
    return status == EV_OK ? child.genome : NULL;
}

static void check_step(const ir_genome *parent, unsigned arm, const ir_genome *stock, size_t prefix,
                       size_t edits) {
    ir_genome *child = step(parent, arm, stock);
    assert_non_null(child);
    assert_int_equal(ir_genome_prefix_count(child), prefix);
    assert_int_equal(ir_genome_edit_count(child), edits);
    ir_genome_free(child);
}

static void test_steps_on_structure_drop_local_edits(void **state) {
    (void)state;
    ir_genome *skeleton = genome_of(2, -1), *grown = genome_of(2, 7), *other = genome_of(4, -1);
    ir_genome *bare = genome_of(0, -1);
    check_step(grown, IR_EDIT_COARSEN, NULL, 2, 2);
    check_step(grown, ARM_OF(RETUNE), NULL, 1, 1);
    check_step(grown, ARM_OF(COMBINE), other, 2, 2);
    check_step(skeleton, ARM_OF(DROP), NULL, 0, 0);
    check_step(grown, ARM_OF(DROP), NULL, 1, 1); /* the local edit, never the structural one */
    assert_null(step(bare, ARM_OF(RETUNE), NULL));
    ir_genome_free(skeleton);
    ir_genome_free(grown);
    ir_genome_free(other);
    ir_genome_free(bare);
}

/* Keeps the first structural edit alone; `context` counts the genomes that edits may come from. */
static ev_status keep_first(void *context, const ir_genome *child, const ir_genome *const *parents,
                            size_t count, ir_genome **out, ev_error *err) {
    (void)err;
    assert_int_equal(ir_genome_prefix_count(parents[0]), 1);
    *(size_t *)context += count;
    *out = ir_genome_part(child, 0, 1);
    return EV_OK;
}

/* A child of another structure is mended, with all genomes that its edits came from; one with its
 * parent's structure is not. The operator says how the parent was made. */
static void test_a_child_is_mended(void **state) {
    (void)state;
    static const struct {
        recipe_made made;
        const char *operators;
    } ways[] = {{RECIPE_TAKEN, "start"},
                {RECIPE_TUNED, "retune"},
                {RECIPE_SET, "macro"},
                {RECIPE_JOINED, "combine"}};
    const task t = {.starts = (task_start *)&textbook, .start_count = 1};
    ir_genome *origin = skeleton_of(true, 0, 0), *tuned = skeleton_of(true, 8, 0);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        size_t sources = 0;
        bool is_made = ways[i].made != RECIPE_TAKEN;
        draw_bases bases = {.context = &sources, .get = no_base, .mend = keep_first};
        recipe r = {.parents = {ir_genome_ref(tuned)}, .parent_count = 1, .made = ways[i].made};
        if (is_made)
            r.origin[r.origin_count++] = ir_genome_ref(origin);
        r.stock[r.stock_count++] = ir_genome_ref(origin);
        drawn_child child = {0};
        ev_str operators = EV_STR_EMPTY;
        ev_error err = {0};
        assert_int_equal(draw_child(&t, &bases, &r, &child, &operators, &err), EV_OK);
        assert_int_equal(ir_genome_prefix_count(child.genome), is_made ? 1 : 2);
        assert_int_equal(sources, is_made ? 2 : 0);
        assert_string_equal(ev_str_text(&operators), ways[i].operators);
        ev_str_free(&operators);
        drawn_child_free(&child);
        recipe_free(&r);
    }
    ir_genome_free(origin);
    ir_genome_free(tuned);
}

/* A structural edit of the stock takes its usual place: work is divided before blocks are
 * relabelled. */
static void test_stock_takes_its_usual_place(void **state) {
    (void)state;
    ir_genome *relabelled = genome_of(2, 7), *coarsened = skeleton_of(true, 0, 0);
    assert_int_equal(ir_structure_usual_place(relabelled, IR_EDIT_COARSEN), 0);
    assert_int_equal(ir_structure_usual_place(relabelled, IR_EDIT_RELABEL_THREADS), 1);
    assert_int_equal(ir_structure_usual_place(coarsened, IR_EDIT_UNROLL_LOOP), 1);
    ir_genome *child = step(relabelled, ARM_OF(COMBINE), coarsened);
    assert_non_null(child);
    assert_int_equal(ir_genome_edit_count(child), 2);
    assert_int_equal(ir_genome_edit_kind(child, 0), IR_EDIT_COARSEN);
    assert_int_equal(ir_genome_edit_kind(child, 1), IR_EDIT_RELABEL_BLOCKS);
    ir_genome *again = step(child, ARM_OF(COMBINE), coarsened); /* it has the edit: retuned */
    assert_int_equal(ir_genome_edit_count(again), 2);
    assert_false(ir_genome_same_prefix(again, child));
    ir_genome_free(again);
    ir_genome_free(relabelled);
    ir_genome_free(coarsened);
    ir_genome_free(child);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_followers_have_followers),
        cmocka_unit_test(test_steps_on_structure_drop_local_edits),
        cmocka_unit_test(test_a_child_is_mended),
        cmocka_unit_test(test_stock_takes_its_usual_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
