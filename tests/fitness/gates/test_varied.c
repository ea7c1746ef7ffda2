/* Varied data (fitness/gates/vary.c): forms of one kernel that are right on all cases of the task.
 * Gate 6 stops each that breaks a rule, by the variation that shows it, and no other. */
#include "base/file.h"
#include "fitness/gates/fitness.h"
#include "ir/ir.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/"
#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1)
#define BASELINE 0

static ev_error err;

/* The tasks that have forms. */
typedef enum form_task {
    VARIED,
    WHOLE,
    SHARED,
    APART,
    PITCH,
    CLASSES,
    SUMS,
    WIDE,
    TALLY
} form_task;

typedef struct form {
    form_task task;
    int number;
    const char *class, *rule, *variation; /* as in forms.def */
} form;

static const form forms[] = {
#define FORM(task, number, class, rule, variation) {task, number, class, rule, variation},
#include "tests/fitness/gates/forms.def"
#undef FORM
};
#define FORM_COUNT (sizeof forms / sizeof forms[0])

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

/* Promotes a form with a launch of its own. */
static void check_launch(const rig *r, const form *form, const launch_plan *plan) {
    built b;
    score s;
    build_form(r, form->number, &b);
    b.c.plan = plan;
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

static void check_form(const rig *r, const form *form) {
    check_launch(r, form, r->t->starts[0].plan);
}

static void check_forms(form_task task, const char *path) {
    rig r;
    open_rig(&r, path);
    for (size_t i = 0; i < FORM_COUNT; i++) {
        if (forms[i].task == task)
            check_form(&r, &forms[i]);
    }
    close_rig(&r);
}

static void test_floats(void **state) {
    (void)state;
    check_forms(VARIED, FOLDER "varied/task.json");
}

static void test_wholes(void **state) {
    (void)state;
    check_forms(WHOLE, FOLDER "whole/task.json");
}

static void test_sums(void **state) {
    (void)state;
    check_forms(SUMS, FOLDER "sums/task.json");
    check_forms(SUMS, FOLDER "sums/unscaled.json");
}

/* With "alias", without it, with an output that begins as something, and with the promise that
 * nothing overlaps. */
static void test_aliases(void **state) {
    (void)state;
    check_forms(SHARED, FOLDER "shared/task.json");
    check_forms(SHARED, FOLDER "shared/silent.json");
    check_forms(SHARED, FOLDER "shared/inout.json");
    check_forms(APART, FOLDER "shared/apart.json");
}

static void test_classes(void **state) {
    (void)state;
    check_forms(CLASSES, FOLDER "classes/task.json");
}

/* A cheat is stopped by any gate, for the reason of its row. */
static void check_at_all_gates(const rig *r, const form *form) {
    built b;
    score s;
    build_form(r, form->number, &b);
    OK(fitness_score(r->f, &b.c, &s, &err));
    if (form->variation == NULL)
        OK(fitness_promote(r->f, &b.c, &s, &err));
    bool as_told = form->variation == NULL
                       ? s.stopped == GATE_NONE
                       : s.stopped != GATE_NONE && strstr(s.reason, form->variation) != NULL;
    if (!as_told)
        fail_msg("form %d (%s): %s", form->number, form->rule,
                 s.stopped == GATE_NONE ? "passed" : s.reason);
    free_form(&b);
}

static void check_forms_at_all_gates(form_task task, const char *path) {
    rig r;
    open_rig(&r, path);
    for (size_t i = 0; i < FORM_COUNT; i++) {
        if (forms[i].task == task)
            check_at_all_gates(&r, &forms[i]);
    }
    close_rig(&r);
}

/* Padding behind the rows of an output stays as it is, at small cases and at timed ones. */
static void test_padding(void **state) {
    (void)state;
    check_forms_at_all_gates(PITCH, FOLDER "pitch/task.json");
}

static ev_status misses_an_arm(void *context, const uint8_t *taken, ev_str *why, ev_error *error) {
    (void)context, (void)taken, (void)error;
    ev_str_printf(why, "an arm is missing");
    return EV_OK;
}

/* The build that notes arms has the variant's launch, and runs at no case where that has none. */
static void check_arms(const rig *r, const task *split) {
    built b;
    score s;
    ev_str arms = EV_STR_EMPTY;
    build_form(r, 1, &b);
    OK(ir_base_arms_ptx(b.base, &arms, &err));
    b.c.plan = split->starts[0].plan;
    b.c.arms_ptx = ev_str_text(&arms);
    b.c.arms_ptx_bytes = arms.length;
    b.c.arms_bytes = ir_base_arms_bytes(b.base);
    b.c.arms_variable = IR_ARMS_VARIABLE;
    b.c.missed = misses_an_arm;
    OK(fitness_score(r->f, &b.c, &s, &err));
    OK(fitness_promote(r->f, &b.c, &s, &err));
    assert_int_equal(s.stopped, GATE_PROMOTED);
    assert_string_equal(s.reason, "an arm is missing");
    ev_str_free(&arms);
    free_form(&b);
}

/* A scalar that only the variant's launch names. Where gate 6 varies the scalar, the launch is that
 * of its value; where the value has no launch, or a vast one, the other scalars are varied. */
static void test_launches_of_varied_scalars(void **state) {
    (void)state;
    static const form of_columns[] = {
        {.number = 1, .rule = "rows and columns"},
        {.number = 2, .rule = "wrong for odd widths", .variation = "scalars"},
        {.number = 3, .rule = "wrong for a bias of 0", .variation = "scalars"},
    };
    static const form flat = {.number = 4, .rule = "a flat grid, faster"};
    rig r;
    task *split = NULL;
    open_rig(&r, FOLDER "rows/task.json");
    OK(task_load(FOLDER "rows/split.json", &split, &err));
    for (size_t i = 0; i < sizeof of_columns / sizeof of_columns[0]; i++)
        check_launch(&r, &of_columns[i], split->starts[0].plan);
    check_form(&r, &flat);
    check_arms(&r, split);
    task_free(split);
    close_rig(&r);
}

static void test_wide_numbers(void **state) {
    (void)state;
    check_forms_at_all_gates(WIDE, FOLDER "wide/task.json");
}

/* The baseline's own sums depend on the order of its atomics. */
static void test_atomic_sums(void **state) {
    (void)state;
    check_forms(TALLY, FOLDER "tally/task.json");
}

/* An unmodified start is the truth; it is not held against other data. */
static void test_starts_are_the_truth(void **state) {
    (void)state;
    rig r;
    built b;
    score s;
    open_rig(&r, FOLDER "varied/task.json");
    build_form(&r, 5, &b);
    b.c.is_unmodified = true;
    OK(fitness_promote(r.f, &b.c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    free_form(&b);
    close_rig(&r);
}

/* ---- how many there are ---- */

typedef struct count {
    unsigned cheats, right;
} count;

static void print_count(const char *name, count n) {
    print_message("%-18s %3u cheats, %3u right twins\n", name, n.cheats, n.right);
}

/* The forms of one class; NULL: of all. */
static count count_forms(const char *class) {
    count n = {0};
    for (size_t i = 0; i < FORM_COUNT; i++) {
        bool counts = class == NULL || strcmp(forms[i].class, class) == 0;
        n.cheats += counts && forms[i].variation != NULL;
        n.right += counts && forms[i].variation == NULL;
    }
    return n;
}

static bool is_first_of_class(size_t at) {
    for (size_t i = 0; i < at; i++) {
        if (strcmp(forms[i].class, forms[at].class) == 0)
            return false;
    }
    return true;
}

/* Adds the PTX files below a folder that say in their first line what is expected of them. */
static void count_files(const char *path, count *n) {
    DIR *folder = opendir(path);
    assert_non_null(folder);
    for (const struct dirent *at = readdir(folder); at != NULL; at = readdir(folder)) {
        char name[600], *text = NULL;
        size_t bytes = 0;
        (void)snprintf(name, sizeof name, "%s/%s", path, at->d_name);
        if (at->d_type == DT_DIR && at->d_name[0] != '.')
            count_files(name, n);
        if (strstr(at->d_name, ".ptx") == NULL)
            continue;
        OK(ev_file_read(name, &text, &bytes, &err));
        bool says = strncmp(text, "// expect: ", 11) == 0;
        bool is_right = says && strncmp(text + 11, "none", 4) == 0;
        n->cheats += says && !is_right;
        n->right += is_right;
        free(text);
    }
    (void)closedir(folder);
}

/* The hostile suite: the forms above, and the PTX files of test_gates and its neighbours. */
static void test_the_suite_is_large(void **state) {
    (void)state;
    count files = {0}, all = count_forms(NULL);
    for (size_t i = 0; i < FORM_COUNT; i++) {
        if (is_first_of_class(i))
            print_count(forms[i].class, count_forms(forms[i].class));
    }
    count_files("tests/fitness/gates", &files);
    print_count("PTX files", files);
    print_count("all", (count){all.cheats + files.cheats, all.right + files.right});
    assert_true(all.cheats >= 60 && all.right >= 12);
    assert_true(all.cheats + files.cheats >= 140);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_wholes),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_launches_of_varied_scalars),
        cmocka_unit_test(test_wide_numbers),
        cmocka_unit_test(test_atomic_sums),
        cmocka_unit_test(test_starts_are_the_truth),
        cmocka_unit_test(test_the_suite_is_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
