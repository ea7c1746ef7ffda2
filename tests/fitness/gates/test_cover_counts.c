/* The count of written elements at full shape, on a grid whose blocks write unlike numbers: rows of
 * 14 that a block of 12 and a block of 2 share. A right kernel is never said to skip its work,
 * however few blocks the first count takes; one that leaves rows out always is. */
#include "base/file.h"
#include "fitness/gates/fitness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/asserts.h"

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/ragged/"

static ev_error err;

typedef struct ragged {
    task *t;
    device *d;
    fitness *f;
    char *baseline;
} ragged;

static char *read_ptx(const char *name) {
    char path[256], *text = NULL;
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, FOLDER "%s.ptx", name);
    OK(ev_file_read(path, &text, &bytes, &err));
    return text;
}

static candidate candidate_of(const ragged *b, const char *ptx) {
    return (candidate){.ptx = ptx,
                       .ptx_bytes = strlen(ptx),
                       .plan = b->t->starts[0].plan,
                       .start = &b->t->starts[0]};
}

/* `limit`: of the first count, in thread instructions; 0: the usual one, so that all blocks run. */
static void open_ragged(ragged *b, uint64_t limit) {
    const fitness_options options = {.cover_instructions = limit};
    score s;
    memset(b, 0, sizeof *b);
    OK(task_load(FOLDER "task.json", &b->t, &err));
    OK(device_open("vm:h200", &b->d, &err));
    OK(fitness_open(b->t, b->d, &options, &b->f, &err));
    b->baseline = read_ptx("baseline");
    candidate c = candidate_of(b, b->baseline);
    OK(fitness_set_baseline(b->f, &c, (1u << CORPUS_SPLIT_COUNT) - 1, &s, &err));
    assert_true(s.ns > 0);
}

static void close_ragged(ragged *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->baseline);
}

static fitness_verdict verdict_of(const ragged *b, const char *name, const char *case_name) {
    char *ptx = read_ptx(name);
    candidate c = candidate_of(b, ptx);
    fitness_verdict v;
    OK(fitness_check(b->f, &c, task_find_case(b->t, case_name), &v, &err));
    free(ptx);
    return v;
}

static void check_limit(uint64_t limit, bool sees_edge) {
    static const char *const cases[] = {"large", "held-large"};
    ragged b;
    open_ragged(&b, limit);
    for (size_t i = 0; i < 2; i++) {
        fitness_verdict right = verdict_of(&b, "baseline", cases[i]);
        if (!right.ok)
            fail_msg("limit %llu: %s", (unsigned long long)limit, right.reason);
        fitness_verdict lazy = verdict_of(&b, "lazy", cases[i]);
        assert_false(lazy.ok);
        if (strstr(lazy.reason, "it skips its work: ") == NULL)
            fail_msg("limit %llu, %s: %s", (unsigned long long)limit, cases[i], lazy.reason);
        if (sees_edge)
            assert_false(verdict_of(&b, "lazy_edge", cases[i]).ok);
    }
    close_ragged(&b);
}

/* All blocks run at once: two elements of 14,000 too few are seen. */
static void test_whole_grids(void **state) {
    (void)state;
    check_limit(0, true);
}

/* The first count takes a few blocks, and the second takes all. */
static void test_a_short_count_is_counted_again(void **state) {
    (void)state;
    for (uint64_t limit = 110000; limit < 300000; limit += 30000)
        check_limit(limit, false);
}

/* Neither count takes all blocks: the second one knows its error. */
static void test_a_count_has_its_error(void **state) {
    (void)state;
    for (uint64_t limit = 30000; limit < 105000; limit += 15000)
        check_limit(limit, false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_grids),
        cmocka_unit_test(test_a_short_count_is_counted_again),
        cmocka_unit_test(test_a_count_has_its_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
