/* Varied data (fitness/gates/vary.c): forms of one kernel that are right on all cases of the task.
 * Gate 6 stops each that breaks a rule, by the variation that shows it, and no other. */
#include "base/file.h"
#include "fitness/gates/fitness.h"
#include "ir/ir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define VARIED "tests/fitness/gates/varied/task.json"
#define WHOLE "tests/fitness/gates/whole/task.json"
#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1)
#define BASELINE 0

static ev_error err;

typedef struct form {
    int number;
    const char *rule;      /* that the form breaks, or its other code */
    const char *variation; /* that stops it; NULL: it is promoted */
} form;

static const form floats[] = {
    {1, "a negative element gives -1", "negated inputs"},
    {2, "a cubic term, small at the task's scale", "inputs of very different magnitudes"},
    {3, "a scalar that is one value in every case", "other scalars"},
    {4, "equal neighbours are tripled", "inputs rounded to few values"},
    {5, "NaN gives 5", "NaN and infinities among the inputs"},
    {6, "the sum is compensated", "inputs that cancel"},
    {7, "subnormal numbers count", "zeros of both signs and subnormal numbers among the inputs"},
    {11, "the sum in double precision", NULL},
    {12, "the cube in another order", NULL},
    {13, "selects in place of branches", NULL},
};

/* Whole numbers, scalars, and domains. */
static const form wholes[] = {
    {1, "equal neighbours", "inputs rounded to few values"},
    {2, "a sentinel of -1", "small whole numbers among the inputs"},
    {3, "saturation at the end of the range", "the least and the largest values"},
    {4, "ascending runs", "sorted whole numbers"},
    {5, "descending runs", "whole numbers in descending order"},
    {6, "a mode that is one value in every case", "other scalars"},
    {7, "a factor of 0", "scalars of another size"},
    {8, "the last index", "the least and the largest values"},
    {9, "the end of a domain", "the least and the largest values"},
    {10, "a permutation that is the identity in every case", "small whole numbers"},
    {11, "sorted offsets with equal neighbours", "inputs rounded to few values"},
    {21, "no test of what the domains exclude", NULL},
};

/* Plain sums, with the terms' sizes from the oracle and without: each order of the terms has its
 * own rounding errors, which the start's own error at one case says nothing about. */
static const form sums[] = {
    {1, "large partial sums lose bits", "inputs that cancel"},
    {2, "a term is left out", "inputs that cancel"},
    {12, "the terms backwards", NULL},
    {22, "two sums", NULL},
    {28, "eight sums", NULL},
};

/* An input and an output in one buffer. */
static const form shared[] = {
    {1, "no barrier between reads and writes", "an input and an output in one buffer"},
    {2, "the input is read after the output is written", "an input and an output in one buffer"},
    {11, "a fused multiply-add", NULL},
};
static const form apart[] = {
    {1, "no barrier", NULL},
    {2, "the input is read late", NULL},
};

typedef struct rig {
    task *t;
    device *d;
    fitness *f;
    char *include;
} rig;

typedef struct built {
    ir_base *base;
    ir_genome *genome;
    ir_build *build;
    candidate c;
} built;

static void build_form(const rig *r, int number, built *b) {
    const task_start *start = &r->t->starts[0];
    const ir_macro macro = {"FORM", number};
    const ir_source source = {.path = start->source,
                              .entry = launch_plan_entry(start->plan),
                              .include = r->include,
                              .macros = &macro,
                              .macro_count = 1,
                              .sm = 90};
    OK(ir_base_load(&source, &b->base, &err));
    b->genome = ir_genome_new(start->name);
    assert_non_null(b->genome);
    OK(ir_build_new(b->base, b->genome, &b->build, &err));
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++)
        OK(ir_build_run(b->build, (ir_stage)stage, &err));
    b->c = (candidate){.plan = start->plan, .start = start};
    b->c.may_alias = ir_base_may_alias(b->base);
    b->c.ptx = ir_build_ptx(b->build, &b->c.ptx_bytes);
}

static void free_form(built *b) {
    ir_build_free(b->build);
    ir_genome_free(b->genome);
    ir_base_free(b->base);
}

static void open_rig(rig *r, const char *path) {
    char *home = ev_path_home();
    score s;
    built baseline;
    assert_non_null(home);
    r->include = ev_path_join(home, "kernels/include");
    free(home);
    OK(task_load(path, &r->t, &err));
    OK(device_open("vm:h200", &r->d, &err));
    OK(fitness_open(r->t, r->d, NULL, &r->f, &err));
    build_form(r, BASELINE, &baseline);
    OK(fitness_set_baseline(r->f, &baseline.c, SPLITS_ALL, &s, &err));
    free_form(&baseline);
}

static void close_rig(rig *r) {
    fitness_close(r->f);
    device_close(r->d);
    task_free(r->t);
    free(r->include);
}

static void check_form(const rig *r, const form *form) {
    built b;
    score s;
    build_form(r, form->number, &b);
    OK(fitness_score(r->f, &b.c, &s, &err));
    if (s.stopped != GATE_NONE)
        fail_msg("form %d (%s) is wrong on the task's own data: %s", form->number, form->rule,
                 s.reason);
    OK(fitness_promote(r->f, &b.c, &s, &err));
    free_form(&b);
    if (form->variation == NULL && s.stopped != GATE_NONE)
        fail_msg("form %d (%s) is right, and is refused: %s", form->number, form->rule, s.reason);
    if (form->variation != NULL &&
        (s.stopped != GATE_PROMOTED || strstr(s.reason, form->variation) == NULL))
        fail_msg("form %d (%s) is not stopped with %s, but: %s", form->number, form->rule,
                 form->variation, s.stopped == GATE_NONE ? "promoted" : s.reason);
}

static void check_forms(const char *path, const form *forms, size_t count) {
    rig r;
    open_rig(&r, path);
    for (size_t i = 0; i < count; i++)
        check_form(&r, &forms[i]);
    close_rig(&r);
}

static void test_floats(void **state) {
    (void)state;
    check_forms(VARIED, floats, sizeof floats / sizeof floats[0]);
}

static void test_wholes(void **state) {
    (void)state;
    check_forms(WHOLE, wholes, sizeof wholes / sizeof wholes[0]);
}

static void test_sums(void **state) {
    (void)state;
    size_t count = sizeof sums / sizeof sums[0];
    check_forms("tests/fitness/gates/sums/task.json", sums, count);
    check_forms("tests/fitness/gates/sums/unscaled.json", sums, count);
}

/* With "alias", without it, and with the promise that nothing overlaps. */
static void test_aliases(void **state) {
    (void)state;
    size_t count = sizeof shared / sizeof shared[0];
    check_forms("tests/fitness/gates/shared/task.json", shared, count);
    check_forms("tests/fitness/gates/shared/silent.json", shared, count);
    check_forms("tests/fitness/gates/shared/apart.json", apart, sizeof apart / sizeof apart[0]);
}

/* Padding behind the rows of an output stays as it is, at small cases and at timed ones. */
static void test_padding(void **state) {
    static const struct {
        int form;
        bool is_right;
    } rows[] = {{1, false}, {2, false}, {3, false}, {4, false}, {11, true}};
    (void)state;
    rig r;
    open_rig(&r, "tests/fitness/gates/pitch/task.json");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        built b;
        score s;
        build_form(&r, rows[i].form, &b);
        OK(fitness_score(r.f, &b.c, &s, &err));
        if (rows[i].is_right)
            OK(fitness_promote(r.f, &b.c, &s, &err));
        bool as_told = rows[i].is_right ? s.stopped == GATE_NONE
                                        : s.stopped != GATE_NONE && strstr(s.reason, "padding");
        if (!as_told)
            fail_msg("form %d: %s", rows[i].form, s.stopped == GATE_NONE ? "passed" : s.reason);
        free_form(&b);
    }
    close_rig(&r);
}

/* An unmodified start is the truth; it is not held against other data. */
static void test_starts_are_the_truth(void **state) {
    (void)state;
    rig r;
    built b;
    score s;
    open_rig(&r, VARIED);
    build_form(&r, 5, &b);
    b.c.is_unmodified = true;
    OK(fitness_promote(r.f, &b.c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    free_form(&b);
    close_rig(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),  cmocka_unit_test(test_wholes),
        cmocka_unit_test(test_sums),    cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_padding), cmocka_unit_test(test_starts_are_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
