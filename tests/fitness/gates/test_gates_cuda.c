/* The gates on the device cuda:0, which is the stand-in's: nothing gets there before the twin in
 * the virtual machine passed it, and faults of the driver stop a candidate at the gate where they
 * happen and leave the next one alone. */
#include "base/file.h"
#include "fitness/gates/fitness_impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/"

static ev_error err;

typedef struct bench {
    task *t;
    device *d;
    fitness *f;
    char *text;
} bench;

static candidate candidate_of(bench *b, const char *name) {
    char path[256];
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    free(b->text);
    OK(ev_file_read(path, &b->text, &bytes, &err));
    return (candidate){.ptx = b->text,
                       .ptx_bytes = bytes,
                       .plan = b->t->starts[0].plan,
                       .start = &b->t->starts[0]};
}

/* The stand-in runs every block, so the timed cases are made smaller. */
static void shrink(const task *t) {
    for (size_t i = 0; i < t->case_count; i++) {
        task_case *c = (task_case *)(uintptr_t)&t->cases[i];
        expr_name *n = (expr_name *)(uintptr_t)&c->shape[0];
        if (c->use == TASK_TIME)
            n->value.whole /= 50;
    }
}

static void open_bench(bench *b) {
    score s;
    memset(b, 0, sizeof *b);
    OK(task_load(FOLDER "task.json", &b->t, &err));
    shrink(b->t);
    OK(device_open("cuda:0", &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    candidate c = candidate_of(b, "baseline.ptx");
    OK(fitness_set_baseline(b->f, &c, (1u << CORPUS_SPLIT_COUNT) - 1, &s, &err));
    assert_true(s.ns > 0 && s.error < 1e-6);
}

static void close_bench(bench *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->text);
}

static void stops(bench *b, const char *name, gate at, const char *words) {
    candidate c = candidate_of(b, name);
    score s;
    OK(fitness_score(b->f, &c, &s, &err));
    if (s.stopped != at || strstr(s.reason, words) == NULL)
        fail_msg("%s: %s, '%s'; expected %s, '%s'", name, gate_name(s.stopped), s.reason,
                 gate_name(at), words);
}

static void inject(const char *rules) {
    (void)setenv("EVOKE_STANDIN_FAIL", rules, 1);
}

static void test_twin_first(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    /* should one of these come to the device, the driver would say otherwise */
    inject("launch:0+=timeout;cuModuleLoadDataEx:0+=jit");
    stops(&b, "out_of_bounds.ptx", GATE_SAFE, "on vm:h200: case smoke: out-of-bounds");
    stops(&b, "race.ptx", GATE_SAFE, "on vm:h200: case smoke: race-shared");
    stops(&b, "uninitialised.ptx", GATE_SAFE, "on vm:h200: case smoke: uninitialised-read");
    stops(&b, "loops.ptx", GATE_SAFE, "on vm:h200: case smoke: fuel");
    stops(&b, "unknown_instruction.ptx", GATE_EMIT, "on vm:h200: ");
    stops(&b, "negated.ptx", GATE_ACCURATE, "on vm:h200: case smoke: ");
    inject("");
    stops(&b, "wrong_last.ptx", GATE_TIMED, "case large");
    stops(&b, "infinite.ptx", GATE_ACCURATE, "");
    close_bench(&b);
}

/* The same PTX under another plan is another launch: the twin runs it again. Two threads an element
 * race there, and the stand-in would not say so. */
static void test_twin_knows_the_plan(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b);
    candidate c = candidate_of(&b, "good.ptx");
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    launch_rule rule = c.plan->launches[0];
    rule.block[1] = "2";
    const launch_plan plan = {.launches = &rule, .launch_count = 1};
    c.plan = &plan;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_SAFE);
    assert_non_null(strstr(s.reason, "on vm:h200: case smoke: race-global"));
    close_bench(&b);
}

static void test_good(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b);
    candidate c = candidate_of(&b, "good.ptx");
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    assert_true(s.ns > 0 && s.registers >= 8 && s.cases[0].error < 1e-5);
    const score_case *timed = &s.cases[s.case_count - 1]; /* by turns with the baseline */
    assert_true(timed->ns > 0 && timed->baseline_ns > timed->ns);
    assert_true(timed->baseline_low_ns > timed->high_ns && s.baseline_ns > s.ns);
    json_t *json = score_to_json(&s);
    score back;
    OK(score_from_json(json, &back, &err));
    assert_true(back.baseline_ns == s.baseline_ns);
    assert_true(back.cases[s.case_count - 1].baseline_high_ns == timed->baseline_high_ns);
    json_decref(json);
    OK(fitness_promote(b.f, &c, &s, &err));
    if (s.stopped != GATE_NONE)
        fail_msg("%s", s.reason);
    c = candidate_of(&b, "half_of_the_blocks.ptx");
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_not_equal(s.stopped, GATE_NONE);
    close_bench(&b);
}

/* Faster by the median, but not by more than the times differ among themselves. */
static void test_clear_interval(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b);
    candidate c = candidate_of(&b, "good.ptx"); /* promoted without: test_good */
    (void)setenv("EVOKE_STANDIN_JITTER", "0.2", 1);
    OK(fitness_promote(b.f, &c, &s, &err));
    (void)unsetenv("EVOKE_STANDIN_JITTER");
    if (s.stopped != GATE_PROMOTED || strstr(s.reason, "the baseline") == NULL)
        fail_msg("%s, '%s'", gate_name(s.stopped), s.reason);
    const score_case *timed = &s.cases[s.case_count - 1];
    if (timed->high_ns < timed->baseline_low_ns)
        fail_msg("up to %g ns; baseline down to %g ns", timed->high_ns, timed->baseline_low_ns);
    close_bench(&b);
}

/* Of which context the baseline's time at a case is. */
static uint64_t baseline_of(const bench *b, const char *name) {
    for (size_t i = 0; i < b->f->case_count; i++) {
        const fit_case *c = b->f->cases[i];
        if (strcmp(c->at->name, name) == 0 && fit_same_inputs(c->inputs, fit_usual_inputs(b->f)))
            return c->baseline.rebuilds;
    }
    fail_msg("no case %s", name);
    return 0;
}

/* One that only the device finds out: what was measured before it is measured again. */
static void test_fault_when_timed(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    stops(&b, "good.ptx", GATE_NONE, "");
    assert_int_equal(baseline_of(&b, "large"), 0);
    stops(&b, "traps_when_large.ptx", GATE_TIMED, "CUDA_ERROR_");
    assert_int_equal(device_rebuilds(b.d), 1);
    assert_int_equal(baseline_of(&b, "large"), 0);
    stops(&b, "good.ptx", GATE_NONE, "");
    assert_int_equal(baseline_of(&b, "large"), 1);
    assert_int_equal(baseline_of(&b, "smoke"), 1);
    close_bench(&b);
}

static void test_faults(void **state) {
    (void)state;
    bench b;
    open_bench(&b);
    inject("launch:0+=address");
    stops(&b, "good.ptx", GATE_SAFE, "CUDA_ERROR_ILLEGAL_ADDRESS");
    score s;
    candidate c = candidate_of(&b, "good.ptx");
    /* the baseline is to be measured again, and fails where it did not before: the machine's fault
     */
    assert_int_equal(fitness_score(b.f, &c, &s, &err), EV_INFRA);
    inject("");
    stops(&b, "good.ptx", GATE_NONE, "");
    inject("launch:0+=timeout");
    stops(&b, "good.ptx", GATE_SAFE, "CUDA_ERROR_LAUNCH_TIMEOUT");
    inject("cuModuleLoadDataEx:0+=jit");
    stops(&b, "good.ptx", GATE_EMIT, "cuda:0 refuses the PTX");
    inject("");
    assert_true(device_rebuilds(b.d) > 0);
    stops(&b, "good.ptx", GATE_NONE, ""); /* and the baseline was measured again */
    assert_true(fitness_baseline_ns(b.f, "large") > 0);
    c = candidate_of(&b, "good.ptx");
    inject("cuModuleLoadDataEx:0+=memory");
    assert_int_equal(fitness_score(b.f, &c, &s, &err), EV_INFRA);
    inject("cuEventQuery:0+=lost");
    assert_int_equal(fitness_score(b.f, &c, &s, &err), EV_INFRA);
    inject("");
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_twin_first),
        cmocka_unit_test(test_twin_knows_the_plan),
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_clear_interval),
        cmocka_unit_test(test_fault_when_timed),
        cmocka_unit_test(test_faults), /* loses the device: the last */
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
