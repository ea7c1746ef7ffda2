/* Drawn cases and sampled writes: what the gates 4 and 5 look at beside the task's own cases. */
#include "fitness/gates/fitness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

#include "tests/fitness/gates/scratch_task.h"

/* y = a x + b, by way of code of its own where n is a multiple of five. %s: what stands there; at
 * the end of that way is the label STORE. */
#define BY_FIVES                                                                                   \
    ".version 7.8\n.target sm_60\n.address_size 64\n"                                              \
    ".visible .entry scale_add(.param .u64 p0, .param .u64 p1, .param .f32 p2, .param .f32 p3,"    \
    " .param .u32 p4)\n{\n"                                                                        \
    ".reg .pred %%p<8>; .reg .b32 %%r<16>; .reg .f32 %%f<16>; .reg .b64 %%rd<12>;\n"               \
    "ld.param.u64 %%rd1, [p0];\nld.param.u64 %%rd2, [p1];\nld.param.f32 %%f1, [p2];\n"             \
    "ld.param.f32 %%f2, [p3];\nld.param.u32 %%r1, [p4];\n"                                         \
    "mov.u32 %%r2, %%ctaid.x;\nmov.u32 %%r3, %%ntid.x;\nmov.u32 %%r4, %%tid.x;\n"                  \
    "mad.lo.s32 %%r5, %%r2, %%r3, %%r4;\nsetp.ge.u32 %%p1, %%r5, %%r1;\n@%%p1 bra DONE;\n"         \
    "mul.wide.u32 %%rd3, %%r5, 4;\nadd.s64 %%rd4, %%rd1, %%rd3;\nadd.s64 %%rd5, %%rd2, %%rd3;\n"   \
    "rem.u32 %%r6, %%r1, 5;\nsetp.eq.u32 %%p2, %%r6, 0;\n@%%p2 bra FIVES;\n"                       \
    "ld.global.f32 %%f3, [%%rd4];\nfma.rn.f32 %%f4, %%f1, %%f3, %%f2;\nbra STORE;\n"               \
    "FIVES:\nld.global.f32 %%f3, [%%rd4];\nfma.rn.f32 %%f4, %%f3, %%f1, %%f2;\n%s"                 \
    "STORE:\nst.global.f32 [%%rd5], %%f4;\nDONE:\nret;\n}\n"

#define RIGHT ""
#define WRONG "add.rn.f32 %f4, %f4, 0f3F800000;\n"
/* Wrong at a thousand alone. */
#define WRONG_AT_1000 "setp.ne.u32 %p3, %r1, 1000;\n@%p3 bra STORE;\n" WRONG

typedef struct bench {
    task *t;
    device *d;
    fitness *f;
    char *baseline;
    char fives[2500]; /* the second start */
    candidate starts[2];
} bench;

static candidate candidate_of(const bench *b, const char *ptx) {
    return (candidate){.ptx = ptx,
                       .ptx_bytes = strlen(ptx),
                       .plan = b->t->starts[0].plan,
                       .start = &b->t->starts[0]};
}

static void open_bench(bench *b, const char *task_file, const char *fives) {
    score s;
    memset(b, 0, sizeof *b);
    OK(task_load(task_file, &b->t, &err));
    OK(device_open("vm:h200", &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    b->baseline = read_gate_file("baseline.ptx");
    b->starts[0] = candidate_of(b, b->baseline);
    OK(fitness_set_baseline(b->f, &b->starts[0], 1u << CORPUS_SEARCH, &s, &err));
    (void)snprintf(b->fives, sizeof b->fives, BY_FIVES, fives);
    b->starts[1] = candidate_of(b, b->fives);
}

static void close_bench(bench *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->baseline);
}

static void expect_drawn(const bench *b, const char *first) {
    const task_case *at = fitness_drawn_case(b->f, 0);
    if (first == NULL) {
        assert_null(at);
        return;
    }
    assert_non_null(at);
    assert_string_equal(at->name, first);
    assert_int_equal(at->split, CORPUS_SEARCH);
    assert_int_equal(at->use, TASK_CHECK);
}

/* ---- drawn cases ---- */

static void test_nothing_is_drawn_where_nothing_is_new(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json", RIGHT);
    OK(fitness_draw_cases(b.f, "vm:h200", b.starts, 1, &err));
    expect_drawn(&b, NULL);
    close_bench(&b);
}

/* No size of the task is a multiple of five; 1000 is next to one of them. */
static void test_a_case_is_drawn_for_new_code(void **state) {
    (void)state;
    static const char *const tasks[] = {FOLDER "task.json", FOLDER "own_oracle.json"};
    for (size_t i = 0; i < 2; i++) {
        bench b;
        open_bench(&b, tasks[i], RIGHT);
        OK(fitness_draw_cases(b.f, "vm:h200", b.starts, 2, &err));
        expect_drawn(&b, "odd:n=1000");
        close_bench(&b);
    }
}

static void test_the_same_is_drawn_every_time(void **state) {
    (void)state;
    bench a, b;
    open_bench(&a, FOLDER "task.json", RIGHT);
    open_bench(&b, FOLDER "task.json", RIGHT);
    OK(fitness_draw_cases(a.f, "vm:h200", a.starts, 2, &err));
    OK(fitness_draw_cases(b.f, "vm:h200", b.starts, 2, &err));
    for (size_t i = 0;; i++) {
        const task_case *x = fitness_drawn_case(a.f, i), *y = fitness_drawn_case(b.f, i);
        assert_true((x == NULL) == (y == NULL));
        if (x == NULL)
            break;
        assert_string_equal(x->name, y->name);
    }
    close_bench(&a);
    close_bench(&b);
}

/* What one of the starts gets wrong is no case; what it would have been for is found at another. */
/* One that no case of the task is for. */
static void test_a_start_that_is_wrong_by_itself_is_left_out(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json", RIGHT);
    char *nan = read_gate_file("nan.ptx");
    candidate starts[3] = {b.starts[0], candidate_of(&b, nan), b.starts[1]};
    OK(fitness_draw_cases(b.f, "vm:h200", starts, 3, &err));
    expect_drawn(&b, "odd:n=1000");
    close_bench(&b);
    free(nan);
}

static void test_a_shape_that_a_start_gets_wrong_is_none(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json", WRONG_AT_1000);
    OK(fitness_draw_cases(b.f, "vm:h200", b.starts, 2, &err));
    expect_drawn(&b, "odd:n=500");
    close_bench(&b);
    open_bench(&b, FOLDER "task.json", WRONG);
    OK(fitness_draw_cases(b.f, "vm:h200", b.starts, 2, &err));
    expect_drawn(&b, NULL);
    close_bench(&b);
}

/* The task with 1000 as its held-out size. */
static void test_a_held_out_shape_is_never_drawn(void **state) {
    (void)state;
    bench b;
    open_bench(&b, task_with("\"n\": 333}", "\"n\": 1000}"), RIGHT);
    OK(fitness_draw_cases(b.f, "vm:h200", b.starts, 2, &err));
    expect_drawn(&b, "odd:n=500");
    close_bench(&b);
}

/* A variant that is right at the task's own search cases alone. */
static void test_drawn_cases_are_a_part_of_gate_four(void **state) {
    (void)state;
    bench b;
    score s, own;
    char wrong[2500];
    open_bench(&b, FOLDER "task.json", RIGHT);
    (void)snprintf(wrong, sizeof wrong, BY_FIVES, WRONG);
    candidate c = candidate_of(&b, wrong);
    OK(fitness_score(b.f, &c, &own, &err));
    assert_int_equal(own.stopped, GATE_NONE);
    OK(fitness_draw_cases(b.f, "vm:h200", b.starts, 2, &err));
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_ACCURATE);
    assert_non_null(strstr(s.reason, "case odd:n=1000: "));
    /* A right one has the same times at the task's own cases as without. */
    c = b.starts[1];
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    assert_true(s.small_ns > 0 && s.case_count > own.case_count);
    for (size_t i = 0; i < own.case_count; i++)
        assert_true(s.cases[i].ns == own.cases[i].ns);
    assert_true(s.thread_instructions > own.thread_instructions);
    close_bench(&b);
}

/* ---- writes ---- */

static ev_status must_not_ask(void *context, const char *fingerprint, bool *known, ev_error *why) {
    (void)context, (void)fingerprint, (void)known;
    return ev_fail(why, EV_INFRA, "a start was asked about");
}

static void test_what_sampled_blocks_leave_out_is_seen(void **state) {
    (void)state;
    bench b;
    score s;
    bool wants = false;
    char *lazy = read_gate_file("lazy_in_part.ptx");
    open_bench(&b, FOLDER "task.json", RIGHT);
    candidate c = candidate_of(&b, lazy);
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && s.ns > 0);
    OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
    assert_true(wants && s.stopped == GATE_NONE);
    b.starts[0].reach_ns = 1e-3; /* the filter has no part in it */
    b.starts[0].is_known = must_not_ask;
    OK(fitness_add_reference(b.f, &b.starts[0], &err));
    OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
    assert_false(wants);
    assert_int_equal(s.stopped, GATE_TIMED);
    assert_true(s.ns == 0);
    assert_non_null(strstr(s.reason, "case large: the blocks that were run write 183 elements"));
    assert_non_null(strstr(s.reason, "unmodified start write 195"));
    close_bench(&b);
    free(lazy);
}

static void test_a_right_variant_stands_beside_its_start(void **state) {
    (void)state;
    bench b;
    score s;
    bool wants = true;
    char *good = read_gate_file("good.ptx");
    open_bench(&b, FOLDER "task.json", RIGHT);
    candidate c = candidate_of(&b, good);
    OK(fitness_add_reference(b.f, &b.starts[0], &err));
    OK(fitness_score(b.f, &c, &s, &err));
    OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
    assert_true(!wants && s.stopped == GATE_NONE && s.ns > 0);
    close_bench(&b);
    free(good);
}

/* Blocks of another size write another number: each setting of the macros has its own start. */
static void test_a_start_is_known_by_its_macros(void **state) {
    (void)state;
    bench b;
    score s;
    bool wants = false;
    const expr_name macro = {"BLOCK", {.whole = 128, .real = 128}};
    char *good = read_gate_file("good.ptx");
    open_bench(&b, FOLDER "task.json", RIGHT);
    OK(fitness_add_reference(b.f, &b.starts[0], &err));
    candidate c = candidate_of(&b, good), start = b.starts[0];
    c.macros = start.macros = &macro;
    c.macro_count = start.macro_count = 1;
    OK(fitness_score(b.f, &c, &s, &err));
    OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
    assert_true(wants && s.stopped == GATE_NONE);
    OK(fitness_add_reference(b.f, &start, &err));
    OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
    assert_true(!wants && s.stopped == GATE_NONE);
    close_bench(&b);
    free(good);
}

/* Its start would have to be built for nothing. */
static void test_what_is_no_faster_than_a_start_is_not_held_against_one(void **state) {
    (void)state;
    bench b;
    score s;
    bool wants = true;
    const expr_name macro = {"BLOCK", {.whole = 128, .real = 128}};
    char *slow = read_gate_file("slow.ptx");
    open_bench(&b, FOLDER "task.json", RIGHT);
    OK(fitness_add_reference(b.f, &b.starts[0], &err));
    candidate c = candidate_of(&b, slow);
    c.macros = &macro;
    c.macro_count = 1;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
    assert_true(!wants && s.stopped == GATE_NONE);
    close_bench(&b);
    free(slow);
}

/* A start that is slower than the bar is known by all blocks all the same. */
static void test_a_slow_start_is_known_by_all_blocks(void **state) {
    (void)state;
    bench b;
    score s;
    bool wants = true;
    const expr_name macro = {"BLOCK", {.whole = 128, .real = 128}};
    char *slow = read_gate_file("slow.ptx"), *good = read_gate_file("good.ptx");
    open_bench(&b, FOLDER "task.json", RIGHT);
    candidate start = candidate_of(&b, slow), c = candidate_of(&b, good);
    start.macros = c.macros = &macro;
    start.macro_count = c.macro_count = 1;
    OK(fitness_add_reference(b.f, &b.starts[0], &err));
    OK(fitness_add_reference(b.f, &start, &err));
    OK(fitness_score(b.f, &c, &s, &err));
    OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
    assert_true(!wants && s.stopped == GATE_NONE);
    close_bench(&b);
    free(slow);
    free(good);
}

/* Blocks of the grid's first half do the work of two each, and the others end at once. The sample
 * is taken from the part that the candidate says works. */
static void test_a_sample_knows_the_idle_part_of_a_grid(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b, FOLDER "task.json", RIGHT);
    char *begins = exchanged(b.baseline, "mad.lo.s32 %r5",
                             "shl.b32 %r2, %r2, 1;\nmov.u32 %r7, %nctaid.x;\n"
                             "setp.ge.u32 %p4, %r2, %r7;\n@%p4 bra DONE;\n"
                             "add.s32 %r8, %r2, 2;\nmin.u32 %r8, %r8, %r7;\n"
                             "MEMBER:\nmad.lo.s32 %r5");
    char *whole = exchanged(begins, "[%rd5], %f4;",
                            "[%rd5], %f4;\nadd.s32 %r2, %r2, 1;\n"
                            "setp.lt.u32 %p5, %r2, %r8;\n@%p5 bra MEMBER;");
    candidate c = candidate_of(&b, whole);
    c.idle_parts[0] = 2;
    c.structure = c.division = "kept";
    OK(fitness_add_reference(b.f, &b.starts[0], &err));
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    assert_true(s.ns > 0.8 * fitness_baseline_ns(b.f, "large"));
    c.idle_parts[0] = 4; /* only a half of the blocks that work count as such: so does the work */
    double right = s.ns;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.ns < 0.8 * right);
    close_bench(&b);
    free(begins);
    free(whole);
}

/* Nothing is held against a start that does not build, or is wrong. */
static void test_a_start_that_is_none_stops_nobody(void **state) {
    (void)state;
    char *lazy = read_gate_file("lazy_in_part.ptx"), *nan = read_gate_file("nan.ptx");
    for (size_t i = 0; i < 2; i++) {
        bench b;
        score s;
        bool wants = true;
        open_bench(&b, FOLDER "task.json", RIGHT);
        candidate start = candidate_of(&b, nan), c = candidate_of(&b, lazy);
        start.ptx = i == 0 ? NULL : start.ptx;
        OK(fitness_score(b.f, &c, &s, &err));
        OK(fitness_add_reference(b.f, &start, &err));
        OK(fitness_hold_writes(b.f, &c, &s, &wants, &err));
        assert_true(!wants && s.stopped == GATE_NONE);
        close_bench(&b);
    }
    free(lazy);
    free(nan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_drawn_where_nothing_is_new),
        cmocka_unit_test(test_a_case_is_drawn_for_new_code),
        cmocka_unit_test(test_the_same_is_drawn_every_time),
        cmocka_unit_test(test_a_start_that_is_wrong_by_itself_is_left_out),
        cmocka_unit_test(test_a_shape_that_a_start_gets_wrong_is_none),
        cmocka_unit_test(test_a_held_out_shape_is_never_drawn),
        cmocka_unit_test(test_drawn_cases_are_a_part_of_gate_four),
        cmocka_unit_test(test_what_sampled_blocks_leave_out_is_seen),
        cmocka_unit_test(test_a_right_variant_stands_beside_its_start),
        cmocka_unit_test(test_a_start_is_known_by_its_macros),
        cmocka_unit_test(test_what_is_no_faster_than_a_start_is_not_held_against_one),
        cmocka_unit_test(test_a_slow_start_is_known_by_all_blocks),
        cmocka_unit_test(test_a_start_that_is_none_stops_nobody),
        cmocka_unit_test(test_a_sample_knows_the_idle_part_of_a_grid),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
