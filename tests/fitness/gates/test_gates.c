/* The gates: each PTX file of tests/fitness/gates says in its first line where it must be stopped,
 * and by which trap; and a task, a shape or a baseline that cannot be is refused with its reason.
 */
#include "base/file.h"
#include "base/json.h"
#include "fitness/gates/fitness.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/"
#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1)

static ev_error err;

typedef struct bench {
    task *t;
    device *d;
    fitness *f;
    char *text; /* of the PTX loaded last */
} bench;

static candidate candidate_of(bench *b, const char *name) {
    char path[256];
    (void)snprintf(path, sizeof path, FOLDER "%s", name);
    size_t bytes = 0;
    free(b->text);
    OK(ev_file_read(path, &b->text, &bytes, &err));
    return (candidate){.ptx = b->text,
                       .ptx_bytes = bytes,
                       .plan = b->t->starts[0].plan,
                       .start = &b->t->starts[0]};
}

static void open_bench(bench *b, const char *task_file) {
    memset(b, 0, sizeof *b);
    OK(task_load(task_file, &b->t, &err));
    OK(device_open("vm:h200", &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
}

static void close_bench(bench *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->text);
}

static void set_baseline(bench *b, const char *name) {
    candidate c = candidate_of(b, name);
    score s;
    OK(fitness_set_baseline(b->f, &c, SPLITS_ALL, &s, &err));
    assert_true(s.ns > 0 && s.error < 1e-6 && s.occupancy > 0);
}

/* ---- every file ---- */

/* "// expect: GATE [TRAP...]" */
typedef struct expected {
    char gate[32];
    char traps[100];
} expected;

static expected expected_of(const char *ptx) {
    expected e = {.gate = ""};
    assert_int_equal(sscanf(ptx, "// expect: %31s%99[^\n]", e.gate, e.traps) >= 1, 1);
    return e;
}

static void check_trap(const char *name, const score *s, const expected *e) {
    bool wants = e->traps[0] != '\0';
    bool right =
        wants ? s->trap[0] != '\0' && strstr(e->traps, s->trap) != NULL : s->trap[0] == '\0';
    if (!right)
        fail_msg("%s: trap '%s', expected '%s' (%s)", name, s->trap, e->traps, s->reason);
}

/* A sketch of it is stopped at the same gate, where that is one of the small cases'; at none later,
 * and whether it fits on the device is not asked. */
static void check_as_sketch(bench *b, const char *name, candidate c, const expected *e) {
    bool is_early = strcmp(e->gate, "safe") == 0 || strcmp(e->gate, "accurate") == 0;
    c.is_sketch = true;
    score s;
    OK(fitness_score(b->f, &c, &s, &err));
    assert_true(s.ns == 0);
    if (is_early ? strcmp(gate_name(s.stopped), e->gate) != 0
                 : s.stopped == GATE_SAFE || s.stopped == GATE_ACCURATE)
        fail_msg("%s, as a sketch: stopped at %s (%s)", name, gate_name(s.stopped), s.reason);
}

static void check_file(bench *b, const char *name) {
    candidate c = candidate_of(b, name);
    expected e = expected_of(c.ptx);
    check_as_sketch(b, name, c, &e);
    score s;
    OK(fitness_score(b->f, &c, &s, &err));
    if (s.stopped == GATE_NONE) {
        assert_true(s.ns > 0 && s.registers >= 16 && s.thread_instructions > 0);
        OK(fitness_promote(b->f, &c, &s, &err));
    }
    if (strcmp(gate_name(s.stopped), e.gate) != 0)
        fail_msg("%s: stopped at %s, expected %s (%s)", name, gate_name(s.stopped), e.gate,
                 s.reason);
    assert_true((s.reason[0] == '\0') == (s.stopped == GATE_NONE));
    check_trap(name, &s, &e);
    bool is_wrong = s.trap[0] != '\0' || strstr(s.reason, "skips its work") != NULL;
    if (is_wrong && strcmp(e.gate, "promoted") == 0)
        assert_true(s.ns == 0); /* what is right and slow alone has a time */
}

static int is_ptx(const struct dirent *at) {
    return strstr(at->d_name, ".ptx") != NULL;
}

static void check_all_files(const char *task_file) {
    bench b;
    open_bench(&b, task_file);
    set_baseline(&b, "baseline.ptx");
    struct dirent **names = NULL;
    int count = scandir(FOLDER, &names, is_ptx, alphasort);
    assert_true(count > 50);
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i]->d_name, "baseline.ptx") != 0)
            check_file(&b, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    close_bench(&b);
}

static void test_files(void **state) {
    (void)state;
    check_all_files(FOLDER "task.json");
}

/* The baseline as the oracle stops the same ones. */
static void test_files_own_oracle(void **state) {
    (void)state;
    check_all_files(FOLDER "own_oracle.json");
}

/* ---- scores ---- */

static void print_score(const score *s, char **out) {
    json_t *json = score_to_json(s);
    *out = ev_json_print(json, true);
    json_decref(json);
}

/* The same candidate, the same score, whatever was scored between. */
static void test_pure(void **state) {
    (void)state;
    bench b;
    char *texts[2] = {NULL, NULL};
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    for (int i = 0; i < 2; i++) {
        score s;
        candidate c = candidate_of(&b, "good.ptx");
        OK(fitness_score(b.f, &c, &s, &err));
        print_score(&s, &texts[i]);
        c = candidate_of(&b, "loops.ptx");
        OK(fitness_score(b.f, &c, &s, &err));
    }
    assert_string_equal(texts[0], texts[1]);
    free(texts[0]);
    free(texts[1]);
    close_bench(&b);
}

/* The filter stops before the timed cases what is out of reach on the small ones, and says so. */
static void test_filter(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    candidate c = candidate_of(&b, "good.ptx");
    score s;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.small_ns > 0 && !s.filtered && s.ns > 0);
    double small = s.small_ns;
    c.reach_ns = small;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && !s.filtered && s.ns > 0);
    c.reach_ns = small * 0.999;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_TIMED && s.filtered && s.ns == 0 && s.small_ns == small);
    assert_non_null(strstr(s.reason, "filter"));
    c.reach_ns = 0;
    c.first_reach_ns = s.first_ns;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && s.first_ns > 0 && s.first_ns < small);
    c.first_reach_ns = s.first_ns * 0.999; /* before the others are run */
    size_t rows = s.case_count;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_TIMED && s.filtered && s.small_ns == 0 && s.first_ns > 0);
    assert_true(s.case_count < rows && strstr(s.reason, "first small case") != NULL);
    c = candidate_of(&b, "wrong_elsewhere.ptx"); /* what a gate stops is not the filter's */
    c.reach_ns = 1e-3;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.filtered, s.stopped == GATE_TIMED);
    close_bench(&b);
}

/* What takes many times the baseline's time at a timed case is stopped there, if that is asked for.
 */
static void test_hopeless(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    candidate c = candidate_of(&b, "hopeless_when_large.ptx");
    score s;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && !s.filtered);
    double ratio = s.ns / fitness_baseline_ns(b.f, "large");
    assert_true(ratio > 2);
    c.hopeless = ratio * 1.01;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    c.hopeless = ratio * 0.99;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_TIMED && s.filtered);
    assert_non_null(strstr(s.reason, "case large: "));
    assert_non_null(strstr(s.reason, "times the baseline's time"));
    close_bench(&b);
}

/* A sketch is timed where that is asked for, as what is built is, and its score says so as a
 * sketch's: no case keeps a time. */
static void test_timed_sketch(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    candidate c = candidate_of(&b, "good.ptx");
    score built, s;
    OK(fitness_score(b.f, &c, &built, &err));
    c.is_sketch = true;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && s.ns == 0 && s.small_ns == built.small_ns);
    c.times_sketch = true;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && s.ns == built.ns && s.case_count == built.case_count);
    size_t timed = 0;
    for (size_t i = 0; i < s.case_count; i++)
        timed += s.cases[i].ns > 0;
    score_take_sketch(&s);
    small_run run = score_small_run(&s);
    assert_true(timed > 0 && s.case_count == built.case_count - timed);
    assert_true(run.sketch == built.small_ns && run.built == 0 && run.whole == built.ns);
    assert_true(s.ns == 0 && s.error > 0 && s.error <= built.error); /* of fewer blocks */
    assert_true(run.error > 0 && run.error == score_small_run(&built).error);
    for (size_t i = 0; i < s.case_count; i++)
        assert_true(s.cases[i].ns == 0 && s.cases[i].name[0] != '\0');
    c.near_ns = built.small_ns * 1.00005; /* near: it need not be */
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && s.ns == 0);
    c.near_ns = built.small_ns * 1.001; /* faster than that */
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && s.ns == built.ns);
    c.reach_ns = built.small_ns * 0.999; /* the filter comes first */
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.filtered && s.ns == 0);
    close_bench(&b);
}

/* What candidate.is_known is asked, and what it says. */
typedef struct oracle_of_runs {
    ev_status status;
    bool known;
    unsigned asked;
    char fingerprint[EV_SHA256_HEX];
} oracle_of_runs;

static ev_status is_known(void *context, const char *fingerprint, bool *known, ev_error *why) {
    oracle_of_runs *o = context;
    o->asked++;
    (void)snprintf(o->fingerprint, sizeof o->fingerprint, "%s", fingerprint);
    *known = o->known;
    return o->status == EV_OK ? EV_OK : ev_fail(why, o->status, "nobody answers");
}

/* What ran the small cases as a known one did is not timed; who is stopped before is not asked. */
static void test_recall(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    oracle_of_runs o = {.known = false};
    candidate c = candidate_of(&b, "good.ptx");
    c.is_known = is_known;
    c.context = &o;
    score s, again, other;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_true(s.stopped == GATE_NONE && !s.recalled && s.ns > 0 && o.asked == 1);
    assert_true(strlen(s.fingerprint) == 64 && strcmp(s.fingerprint, o.fingerprint) == 0);
    o.known = true;
    OK(fitness_score(b.f, &c, &again, &err));
    assert_true(again.stopped == GATE_NONE && again.recalled && again.ns == 0 && o.asked == 2);
    assert_true(again.small_ns == s.small_ns && strcmp(again.fingerprint, s.fingerprint) == 0);
    o.status = EV_INFRA;
    assert_int_equal(fitness_score(b.f, &c, &again, &err), EV_INFRA);
    c = candidate_of(&b, "negated.ptx");
    c.is_known = is_known;
    c.context = &o;
    OK(fitness_score(b.f, &c, &again, &err)); /* not asked, so the failure is not met */
    assert_true(again.stopped != GATE_NONE && o.asked == 3);
    candidate baseline = candidate_of(&b, "baseline.ptx");
    OK(fitness_score(b.f, &baseline, &other, &err));
    assert_true(strlen(other.fingerprint) == 64);
    assert_int_equal(strcmp(other.fingerprint, s.fingerprint) == 0, other.small_ns == s.small_ns);
    close_bench(&b);
}

static score promoted(bench *b, const char *name, fitness_bar bar) {
    candidate c = candidate_of(b, name);
    c.bar = bar;
    score s;
    OK(fitness_promote(b->f, &c, &s, &err));
    return s;
}

/* Gate 6 spares what does not beat the bar the full grids, unless it is asked to go on. */
static void test_bar(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    score free_one = promoted(&b, "good.ptx", (fitness_bar){.ns = 0});
    assert_true(free_one.stopped == GATE_NONE && free_one.ns > 0);
    score faster = promoted(&b, "good.ptx", (fitness_bar){.ns = free_one.ns * 1.01});
    assert_true(faster.stopped == GATE_NONE && faster.ns == free_one.ns);
    score slow = promoted(&b, "good.ptx", (fitness_bar){.ns = free_one.ns});
    assert_true(slow.stopped == GATE_PROMOTED && slow.ns == free_one.ns);
    assert_non_null(strstr(slow.reason, "the best unmodified start"));
    assert_true(slow.thread_instructions < free_one.thread_instructions);
    score whole = promoted(&b, "good.ptx", (fitness_bar){.ns = free_one.ns, .is_last = true});
    assert_true(whole.stopped == GATE_PROMOTED && whole.ns == free_one.ns);
    assert_true(whole.thread_instructions == free_one.thread_instructions);
    score lazy = promoted(&b, "lazy_blocks.ptx", (fitness_bar){.ns = 1});
    assert_true(lazy.stopped == GATE_PROMOTED && lazy.ns > 0);
    lazy = promoted(&b, "lazy_blocks.ptx", (fitness_bar){.ns = 1, .is_last = true});
    assert_true(lazy.stopped == GATE_PROMOTED && lazy.ns == 0);
    assert_null(strstr(lazy.reason, "unmodified start"));
    close_bench(&b);
}

/* What is slower than the baseline passes all other checks, too, if the times are compared last. */
static void test_slower_than_baseline_last(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "good.ptx");
    score early = promoted(&b, "baseline.ptx", (fitness_bar){.ns = 0});
    score late = promoted(&b, "baseline.ptx", (fitness_bar){.is_last = true});
    assert_true(early.stopped == GATE_PROMOTED && early.ns > 0);
    assert_true(late.stopped == GATE_PROMOTED && late.ns == early.ns);
    assert_non_null(strstr(late.reason, "not faster than the baseline"));
    assert_true(late.thread_instructions > early.thread_instructions);
    score wrong = promoted(&b, "lazy_blocks.ptx", (fitness_bar){.is_last = true});
    assert_true(wrong.stopped == GATE_PROMOTED && wrong.ns == 0);
    close_bench(&b);
}

/* A baseline that leaves elements as they were is run on all of the grid, and no more is asked of a
 * variant; one block less is seen. */
static void test_cover_in_part(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "part/task.json");
    set_baseline(&b, "part/baseline.ptx");
    score whole = promoted(&b, "part/once.ptx", (fitness_bar){.ns = 0});
    if (whole.stopped != GATE_NONE)
        fail_msg("once.ptx: stopped at %s (%s)", gate_name(whole.stopped), whole.reason);
    score less = promoted(&b, "part/leaves_out.ptx", (fitness_bar){.ns = 0});
    assert_true(less.stopped == GATE_PROMOTED && less.ns == 0);
    assert_non_null(strstr(less.reason, "499970"));
    assert_non_null(strstr(less.reason, "500002"));
    close_bench(&b);
}

/* Gates 4 and 6 have approximate instructions as far off as the PTX ISA lets them be: a division
 * that has to be exact stays, and what merely repeats it less often is promoted. */
static void test_approximations(void **state) {
    (void)state;
    static const char *const wrong[] = {"bins/approximate.ptx", "bins/full.ptx"};
    bench b;
    open_bench(&b, FOLDER "bins/task.json");
    set_baseline(&b, "bins/baseline.ptx");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        candidate c = candidate_of(&b, wrong[i]);
        score s;
        OK(fitness_score(b.f, &c, &s, &err));
        if (s.stopped != GATE_ACCURATE)
            fail_msg("%s: stopped at %s (%s)", wrong[i], gate_name(s.stopped), s.reason);
    }
    score exact = promoted(&b, "bins/exact.ptx", (fitness_bar){.ns = 0});
    if (exact.stopped != GATE_NONE)
        fail_msg("exact.ptx: stopped at %s (%s)", gate_name(exact.stopped), exact.reason);
    score turned = promoted(&b, "bins/lucky.ptx", (fitness_bar){.ns = 0});
    assert_int_equal(turned.stopped, GATE_PROMOTED);
    assert_non_null(strstr(turned.reason, "to the other side"));
    close_bench(&b);
}

static void test_macros(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    const expr_name block = {"BLOCK", {.whole = 128, .real = 128}};
    candidate c = candidate_of(&b, "good.ptx");
    c.macros = &block;
    c.macro_count = 1;
    score s;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    fitness_profile_data p;
    OK(fitness_profile(b.f, &c, task_find_case(b.t, "large"), &p, &err));
    assert_int_equal(p.launch.block[0], 128);
    assert_true(p.outcome.ok && p.timing.ns > 0 && p.executions[0] > 0);
    fitness_profile_free(&p);
    close_bench(&b);
}

/* A candidate is launched as its own plan says, and not as its start's. */
static void test_plan(void **state) {
    (void)state;
    static const struct {
        const char *grid;
        gate stopped;
        const char *words;
    } rows[] = {
        {"ceil_div(n, BLOCK) + 3", GATE_NONE, ""},
        {"ceil_div(n, BLOCK + BLOCK)", GATE_ACCURATE, ""},
        {"n - 72", GATE_EMIT,
         "launch 0 (scale_add), grid[0]: expression \"n - 72\" is 0; it must be in [1, 2147483647] "
         "(n = 72)"},
    };
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const launch_rule rule = {
            "scale_add", {rows[i].grid, "1", "1"}, {"BLOCK", "1", "1"}, "0", NULL, 0};
        const launch_plan plan = {.launches = &rule, .launch_count = 1};
        candidate c = candidate_of(&b, "good.ptx");
        c.plan = &plan;
        score s;
        OK(fitness_score(b.f, &c, &s, &err));
        if (s.stopped != rows[i].stopped || strstr(s.reason, rows[i].words) == NULL)
            fail_msg("%s: stopped at %s (%s)", rows[i].grid, gate_name(s.stopped), s.reason);
    }
    close_bench(&b);
}

static void test_check(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    set_baseline(&b, "baseline.ptx");
    candidate c = candidate_of(&b, "wrong_elsewhere.ptx");
    fitness_verdict v;
    OK(fitness_check(b.f, &c, task_find_case(b.t, "odd"), &v, &err));
    assert_true(v.ok && v.normalised <= 1 && v.reason[0] == '\0');
    OK(fitness_check(b.f, &c, task_find_case(b.t, "held-odd"), &v, &err));
    assert_true(!v.ok && v.error > v.tolerance && strstr(v.reason, "held-odd") != NULL);
    OK(fitness_check(b.f, &c, task_find_case(b.t, "held-large"), &v, &err));
    assert_true(v.ok && v.ns > 0 && v.ns < fitness_baseline_ns(b.f, "held-large"));
    c = candidate_of(&b, "unknown_instruction.ptx");
    OK(fitness_check(b.f, &c, task_find_case(b.t, "odd"), &v, &err));
    assert_true(!v.ok && strstr(v.reason, "frobnicate") != NULL);
    close_bench(&b);
}

static void test_fresh_inputs(void **state) {
    (void)state;
    bench b;
    open_bench(&b, FOLDER "task.json");
    fitness_close(b.f);
    const fitness_options options = {.fresh = 3, .spot_elements = 5, .sample_blocks = 2};
    OK(fitness_open(b.t, b.d, &options, &b.f, &err));
    set_baseline(&b, "baseline.ptx");
    candidate c = candidate_of(&b, "good.ptx");
    score s;
    OK(fitness_score(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    close_bench(&b);
}

/* ---- refusals ---- */

static void refuse_baseline(const char *name, const char *words) {
    bench b;
    open_bench(&b, FOLDER "task.json");
    candidate c = candidate_of(&b, name);
    score s;
    assert_int_equal(fitness_set_baseline(b.f, &c, SPLITS_ALL, &s, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, words);
    close_bench(&b);
}

static void test_bad_baseline(void **state) {
    (void)state;
    refuse_baseline("negated.ptx", "disagrees with its oracle: case smoke: relative L2 error 2");
    refuse_baseline("out_of_bounds.ptx", "does not run: case smoke: out-of-bounds");
    refuse_baseline("unknown_instruction.ptx", "does not load: ");
}

/* Loads tests/fitness/gates/task.json with `from` replaced, beside the original. */
static void open_changed(bench *b, const char *from, const char *to) {
    char *text = NULL;
    size_t bytes = 0;
    OK(ev_file_read(FOLDER "task.json", &text, &bytes, &err));
    char *at = strstr(text, from);
    assert_non_null(at);
    ev_str changed = EV_STR_EMPTY;
    ev_str_append_n(&changed, text, (size_t)(at - text));
    ev_str_append(&changed, to);
    ev_str_append(&changed, at + strlen(from));
    char path[] = FOLDER "changed-XXXXXX.json";
    int fd = mkstemps(path, 5);
    assert_true(fd >= 0);
    (void)close(fd);
    OK(ev_file_write(path, changed.data, changed.length, &err));
    memset(b, 0, sizeof *b);
    ev_status status = task_load(path, &b->t, &err);
    (void)remove(path);
    if (status != EV_OK)
        fail_msg("%s", err.text);
    OK(device_open("vm:t4", &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    ev_str_free(&changed);
    free(text);
}

static void refuse_task(const char *from, const char *to, const char *words) {
    bench b;
    open_changed(&b, from, to);
    candidate c = candidate_of(&b, "good.ptx");
    score s;
    assert_int_equal(fitness_set_baseline(b.f, &c, SPLITS_ALL, &s, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, words);
    close_bench(&b);
}

static void test_bad_tasks(void **state) {
    (void)state;
    /* 16 GB on a T4: not on the device, whatever this machine has */
    refuse_task("\"n\": 1000003", "\"n\": 3000000000", "case large: the buffers need 24000000000");
    refuse_task("{\"name\": \"b\", \"kind\": \"scalar\", \"type\": \"f32\"",
                "{\"name\": \"b\", \"kind\": \"scalar\", \"type\": \"f64\"",
                "argument 4 'b' is a scalar of f64, and parameter 'scale_add_3'");
    refuse_task("\"name\": \"b\", \"kind\": \"scalar\", \"type\": \"f32\", \"value\": 0.25",
                "\"name\": \"b\", \"kind\": \"scalar\", \"type\": \"s32\", \"value\": 1",
                "argument 4 'b'");
    refuse_task("    {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"u32\"}\n",
                "    {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"u32\"},\n"
                "    {\"name\": \"c\", \"kind\": \"scalar\", \"type\": \"u32\", \"value\": 1}\n",
                "has 6 arguments, and 'scale_add' takes 5 parameters");
    refuse_task("\"block\": \"BLOCK\",", "\"block\": \"BLOCK\", \"shared\": 70000,",
                "case smoke, the baseline: a block needs 70000 bytes of shared memory");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),         cmocka_unit_test(test_files_own_oracle),
        cmocka_unit_test(test_pure),          cmocka_unit_test(test_filter),
        cmocka_unit_test(test_hopeless),      cmocka_unit_test(test_timed_sketch),
        cmocka_unit_test(test_timed_sketch),  cmocka_unit_test(test_recall),
        cmocka_unit_test(test_bar),           cmocka_unit_test(test_slower_than_baseline_last),
        cmocka_unit_test(test_cover_in_part), cmocka_unit_test(test_approximations),
        cmocka_unit_test(test_macros),        cmocka_unit_test(test_plan),
        cmocka_unit_test(test_check),         cmocka_unit_test(test_fresh_inputs),
        cmocka_unit_test(test_bad_baseline),  cmocka_unit_test(test_bad_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
