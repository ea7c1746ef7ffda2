/* Drawn timed cases: the shapes at which gate 5 times a variant beside the task's own. */
#include "fitness/gates/fitness.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

#include "tests/fitness/gates/scratch_task.h"

#define MOST 8

typedef struct bench {
    task *t;
    device *d;
    fitness *f;
    char *baseline;
    candidate start;
    const task_case *drawn[MOST];
    size_t count;
} bench;

static void open_bench(bench *b, const char *path) {
    score s;
    memset(b, 0, sizeof *b);
    OK(task_load(path, &b->t, &err));
    OK(device_open("vm:h200", &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    b->baseline = read_gate_file("baseline.ptx");
    b->start = (candidate){.ptx = b->baseline,
                           .ptx_bytes = strlen(b->baseline),
                           .plan = b->t->starts[0].plan,
                           .start = &b->t->starts[0]};
    OK(fitness_set_baseline(b->f, &b->start, 1u << CORPUS_SEARCH, &s, &err));
    assert_null(fitness_drawn_timed(b->f, 0));
    OK(fitness_draw_cases(b->f, "vm:h200", &b->start, 1, &err));
    while (b->count < MOST && (b->drawn[b->count] = fitness_drawn_timed(b->f, b->count)) != NULL)
        b->count++;
}

static void close_bench(bench *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->baseline);
}

static int64_t size_of(const task_case *at) {
    assert_int_equal(at->shape_count, 1);
    assert_string_equal(at->shape[0].name, "n");
    return at->shape[0].value.whole;
}

/* ---- shapes ---- */

/* The search's sizes are 72, 1001, 4096 and 1000003, of which the last is timed: the drawn ones
 * have a quarter of its blocks at least, and lie apart by magnitude. */
static void test_sizes_are_spread(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    assert_int_equal(b.count, 4);
    for (size_t i = 0; i < 4; i++) {
        double n = (double)size_of(b.drawn[i]);
        assert_true(n >= 1000003.0 / 4 - 256 && n < 1000003);
        for (size_t k = 0; k < i; k++)
            assert_true(fabs(log(n / (double)size_of(b.drawn[k]))) > 0.2);
        assert_int_equal(b.drawn[i]->split, CORPUS_SEARCH);
        assert_int_equal(b.drawn[i]->use, TASK_TIME);
        assert_true(fitness_baseline_ns(b.f, b.drawn[i]->name) > 0);
    }
    close_bench(&b);
}

static void test_the_same_is_drawn_every_time(void **state) {
    (void)state;
    bench a, b;
    open_bench(&a, FOLDER "task.json");
    open_bench(&b, FOLDER "task.json");
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++)
        assert_string_equal(a.drawn[i]->name, b.drawn[i]->name);
    close_bench(&a);
    close_bench(&b);
}

/* The timed size is a multiple of 409600. That leaves one value in the range; its part 25600 leaves
 * sixteen. */
static void test_a_multiple_stays_one(void **state) {
    (void)state;
    bench b;
    open_bench(&b, task_with("\"n\": 1000003", "\"n\": 409600"));
    assert_int_equal(b.count, 4);
    for (size_t i = 0; i < b.count; i++)
        assert_int_equal(size_of(b.drawn[i]) % 25600, 0);
    close_bench(&b);
}

#define TIMED(n)                                                                                   \
    "{\"name\": \"t" #n "\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": " #n "}" \
    "}"                                                                                            \
    ","

static void test_a_task_with_many_timed_cases_gets_none(void **state) {
    (void)state;
    static const char first[] = "{\"name\": \"smoke\"";
    bench b;
    open_bench(&b, task_with(first, TIMED(9000) "{\"name\": \"smoke\""));
    assert_int_equal(b.count, 3);
    close_bench(&b);
    open_bench(&b, task_with(first, TIMED(9000) TIMED(30000) TIMED(50000)
                                        TIMED(70000) "{\"name\": \"smoke\""));
    assert_int_equal(b.count, 0);
    close_bench(&b);
}

/* Held-out sizes say nothing of the range, and neither do adversarial ones. */
static void test_other_splits_take_no_part(void **state) {
    (void)state;
    bench a, b;
    open_bench(&a, FOLDER "task.json");
    open_bench(&b, task_with("\"n\": 500000", "\"n\": 9000000"));
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++)
        assert_int_equal(size_of(a.drawn[i]), size_of(b.drawn[i]));
    close_bench(&a);
    close_bench(&b);
}

/* A start that is wrong at large sizes alone, where no small case of the task looks. */
static void test_a_shape_that_a_start_gets_wrong_is_none(void **state) {
    (void)state;
    bench b;
    char *right = read_gate_file("baseline.ptx");
    char *negated = exchanged(right, "st.global.f32 [%rd5], %f4;",
                              "setp.gt.u32 %p3, %r1, 399999;\n@%p3 neg.f32 %f4, %f4;\n"
                              "st.global.f32 [%rd5], %f4;");
    free(right);
    open_bench(&b, FOLDER "task.json");
    fitness_close(b.f);
    score s;
    OK(fitness_open(b.t, b.d, NULL, &b.f, &err));
    OK(fitness_set_baseline(b.f, &b.start, 1u << CORPUS_SEARCH, &s, &err));
    candidate starts[2] = {b.start, b.start};
    starts[1].ptx = negated;
    starts[1].ptx_bytes = strlen(negated);
    OK(fitness_draw_cases(b.f, "vm:h200", starts, 2, &err));
    const task_case *at = NULL;
    for (size_t i = 0; (at = fitness_drawn_timed(b.f, i)) != NULL; i++)
        assert_true(size_of(at) <= 399999);
    assert_non_null(fitness_drawn_timed(b.f, 0));
    close_bench(&b);
    free(negated);
}

/* ---- the score ---- */

/* The task's own cases are what shall be fast: all drawn ones weigh half as much. Three tenths of
 * the whole are the case that gains least. */
static void test_a_score_leans_to_the_own_cases(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b, FOLDER "task.json");
    char *good = read_gate_file("good.ptx");
    candidate c = b.start;
    c.ptx = good;
    c.ptx_bytes = strlen(good);
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    double bases = 0, own = 0, drawn = 0, worst = -INFINITY;
    size_t count = 0;
    for (size_t i = 0; i < s.case_count; i++) {
        double base = fitness_baseline_ns(b.f, s.cases[i].name), ratio = log(s.cases[i].ns / base);
        if (s.cases[i].ns == 0)
            continue;
        bool is_drawn = strncmp(s.cases[i].name, "drawn ", 6) == 0;
        *(is_drawn ? &drawn : &own) += ratio;
        worst = fmax(worst, ratio);
        bases += log(base);
        count++;
    }
    assert_int_equal(count, 5); /* one own case, which weighs 1; four drawn ones, 1/8 each */
    assert_true(fabs(own - drawn / 4) > 0.002);
    double mean = (own + drawn / 8) / 1.5;
    assert_true(fabs(s.ns - exp(bases / 5 + 0.7 * mean + 0.3 * worst)) <= 1e-9 * s.ns);
    close_bench(&b);
    free(good);
}

static void test_the_baseline_takes_its_mean(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b, FOLDER "task.json");
    OK(fitness_score(b.f, &b.start, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    double logs = 0;
    size_t count = 0;
    for (size_t i = 0; i < s.case_count; i++) {
        if (s.cases[i].ns > 0) {
            logs += log(s.cases[i].ns);
            count++;
        }
    }
    assert_int_equal(count, 1 + b.count);
    assert_true(fabs(s.ns - exp(logs / (double)count)) <= 1e-9 * s.ns);
    candidate sketch = b.start;
    sketch.is_sketch = sketch.times_sketch = true;
    OK(fitness_score(b.f, &sketch, &s, &err));
    count = 0;
    for (size_t i = 0; i < s.case_count; i++)
        count += s.cases[i].ns > 0;
    assert_int_equal(count, 1 + b.count);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_are_spread),
        cmocka_unit_test(test_the_same_is_drawn_every_time),
        cmocka_unit_test(test_a_multiple_stays_one),
        cmocka_unit_test(test_a_task_with_many_timed_cases_gets_none),
        cmocka_unit_test(test_other_splits_take_no_part),
        cmocka_unit_test(test_a_shape_that_a_start_gets_wrong_is_none),
        cmocka_unit_test(test_a_score_leans_to_the_own_cases),
        cmocka_unit_test(test_the_baseline_takes_its_mean),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
