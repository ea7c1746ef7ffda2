/* The enumerating judge: ten kernels of whole numbers are tuned by real workers, and each winner is
 * compared with its start, bit by bit, on every input of a small domain. The kernels tempt edits
 * that the task's own data do not refute: sentinels, saturation, clamps, head tests, ties, loops
 * that run at most once, wrapping arithmetic, shifts, signed division, barriers. */
#include "tuner/run/records.h"
#include "tuner/run/tune.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/json.h"
#include "ir/genome.h"
#include "tests/tuner/judge/enumerate.h"
#include "tuner/worker/variant.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

static const char *const worker[] = {EVOKE_BINARY_DIR "/evoke", "worker", "--stdio", NULL};
static char paths[JUDGED_COUNT][96];
static const char *tasks[JUDGED_COUNT];

/* What the judge found. */
typedef struct found {
    unsigned winners, changed, bold, inputs, wrong;
} found;

/* How the kernels are tuned. */
typedef struct course {
    uint64_t evaluations, seed;
    bool bold, structure;
} course;

/* Returns the number of winners with bold edits. */
static unsigned tune(const course *c, const char *records_path) {
    tune_report report;
    const tune_options o = {.tasks = tasks,
                            .task_count = JUDGED_COUNT,
                            .device = "vm:h200",
                            .evaluations = c->evaluations,
                            .seed = c->seed,
                            .least_gain = TUNE_LEAST_GAIN,
                            .bold = c->bold,
                            .no_structure = !c->structure,
                            .starts = "all",
                            .records = records_path,
                            .worker_argv = worker};
    OK(tune_run(&o, &report, &err));
    assert_int_equal(report.failed_workers, 0);
    unsigned bold = 0;
    for (size_t i = 0; i < report.row_count; i++)
        bold += !report.rows[i].preserving;
    tune_report_free(&report);
    return bold;
}

/* The launch plan of a genome, as text in the records. */
static const launch_plan *plan_of(const task_start *start, const char *text, ev_arena *arena) {
    ir_genome *genome = NULL;
    const launch_plan *plan = NULL;
    OK(variant_genome(text, "the winner", &genome, &err));
    OK(ir_genome_plan(genome, start->plan, arena, &plan, &err));
    ir_genome_free(genome);
    return plan;
}

/* Judges one variant; `what`: for the message. */
static void judge(device *d, const task *t, const judged *j, const records_winner *w,
                  const char *genome, const char *ptx, const char *what, found *n) {
    const task_start *start = &t->starts[0];
    ev_arena *arena = ev_arena_new();
    ev_str first = EV_STR_EMPTY;
    unsigned wrong = 0;
    assert_non_null(arena);
    judge_kernel own = judge_kernel_load(d, w->baseline_ptx, strlen(w->baseline_ptx), start, NULL);
    judge_kernel variant =
        judge_kernel_load(d, ptx, strlen(ptx), start, plan_of(start, genome, arena));
    assert_true(own.loaded != NULL && variant.loaded != NULL);
    n->inputs += judged_compare(d, t, j, &own, &variant, UINT32_MAX, &wrong, &first);
    n->wrong += wrong > 0;
    if (wrong > 0)
        print_error("%s: the %s winner is wrong on %u inputs, first %s\n  genome %s\n", j->name,
                    what, wrong, ev_str_text(&first), genome);
    judge_kernel_free(&own);
    judge_kernel_free(&variant);
    ev_str_free(&first);
    ev_arena_free(arena);
}

static void judge_winner(device *d, const judged *j, const records_winner *w, found *n) {
    task *t = NULL;
    OK(task_load(w->task_path, &t, &err));
    n->winners++;
    n->changed += strcmp(w->ptx, w->baseline_ptx) != 0;
    judge(d, t, j, w, w->genome, w->ptx, "preserving", n);
    if (w->bold[0] != '\0') {
        ev_json *bold = NULL;
        OK(ev_json_parse(w->bold, "the bold winner", &bold, &err));
        char *genome = json_dumps(json_object_get(bold->root, "genome"), JSON_ENCODE_ANY);
        const char *text = ev_json_text(bold->root, "genome", genome);
        judge(d, t, j, w, text, ev_json_text(bold->root, "ptx", ""), "bold", n);
        n->bold++;
        free(genome);
        ev_json_free(bold);
    }
    task_free(t);
}

static void judge_all(const course *c, found *n) {
    char path[] = "/tmp/evoke-judged-XXXXXX";
    records *r = NULL;
    records_winner *list = NULL;
    device *d = NULL;
    size_t count = 0;
    assert_non_null(mkdtemp(path));
    char *file = ev_path_join(path, "records");
    n->bold += tune(c, file);
    OK(records_open_read(file, &r, &err));
    OK(records_winners(r, &list, &count, &err));
    assert_int_equal(count, JUDGED_COUNT);
    OK(device_open("vm:h200", &d, &err));
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(list[i].kernel, judged_kernels[i].name);
        judge_winner(d, &judged_kernels[i], &list[i], n);
    }
    device_close(d);
    records_winners_free(list, count);
    records_close(r);
    free(file);
    OK(ev_dir_remove(path, &err));
}

/* `changed`: at least so many winners are other kernels than their starts. */
static void check(const course *c, unsigned changed) {
    found n = {0};
    judge_all(c, &n);
    print_message("%u winners, %u of them changed kernels, %u bold ones; %u inputs; %u "
                  "wrong\n",
                  n.winners, n.changed, n.bold, n.inputs, n.wrong);
    assert_int_equal(n.wrong, 0);
    assert_true(n.changed >= changed);
    assert_true(n.inputs >= JUDGED_COUNT * 1000);
}

static void test_winners(void **state) {
    (void)state;
    check(&(course){.evaluations = 200, .seed = 11}, 6);
}

/* The winner may have bold edits, which nothing but the gates holds back. */
static void test_bold_winners(void **state) {
    (void)state;
    check(&(course){.evaluations = 200, .seed = 12, .bold = true}, 6);
}

static void test_structural_winners(void **state) {
    (void)state;
    check(&(course){.evaluations = 40, .seed = 13, .structure = true}, 4);
}

/* The judge itself can tell: a winner in the place of another kernel is wrong. */
static void test_the_judge_can_tell(void **state) {
    (void)state;
    const judged *j = &judged_kernels[0];
    task *t = NULL;
    device *d = NULL;
    ev_str right = EV_STR_EMPTY, wrong = EV_STR_EMPTY, first = EV_STR_EMPTY;
    unsigned count = 0;
    OK(task_load(paths[0], &t, &err));
    OK(device_open("vm:h200", &d, &err));
    OK(variant_build_file(t->starts[0].source, "sentinel", 90, &right, &err));
    OK(variant_build_file(JUDGED_FOLDER "without.cu", "sentinel", 90, &wrong, &err));
    judge_kernel a = judge_kernel_load(d, ev_str_text(&right), right.length, &t->starts[0], NULL);
    judge_kernel b = judge_kernel_load(d, ev_str_text(&wrong), wrong.length, &t->starts[0], NULL);
    assert_true(judged_compare(d, t, j, &a, &a, UINT32_MAX, &count, &first) > 1000);
    assert_int_equal(count, 0);
    (void)judged_compare(d, t, j, &a, &b, UINT32_MAX, &count, &first);
    assert_true(count > 100);
    assert_non_null(strstr(ev_str_text(&first), "x = -1; y is"));
    judge_kernel_free(&a);
    judge_kernel_free(&b);
    ev_str_free(&right);
    ev_str_free(&wrong);
    ev_str_free(&first);
    device_close(d);
    task_free(t);
}

static int set_paths(void **state) {
    (void)state;
    for (size_t i = 0; i < JUDGED_COUNT; i++) {
        (void)snprintf(paths[i], sizeof paths[i], JUDGED_FOLDER "%s.json", judged_kernels[i].name);
        tasks[i] = paths[i];
    }
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_judge_can_tell),
        cmocka_unit_test(test_winners),
        cmocka_unit_test(test_bold_winners),
        cmocka_unit_test(test_structural_winners),
    };
    return cmocka_run_group_tests(tests, set_paths, NULL);
}
