/* Runs with real workers on a small task of its own: what loops, writes or reads where it must not,
 * skips its work or makes LLVM abort is stopped by its gate and named; the winner is the same
 * whatever the number of workers, and whoever is killed. */
#include "tuner/run/records.h"
#include "tuner/run/tune.h"

#include "base/file.h"
#include "base/json.h"
#include "base/str.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char scratch[64], task_path[128];
static const char *tasks[] = {task_path};
static const char *const worker[] = {EVOKE_BINARY_DIR "/evoke", "worker", "--stdio", NULL};

/* MODE is a macro of the task, so that a search opens with each of its values. */
static const char kernel[] =
    "#include \"evoke_cuda.h\"\n"
    "#ifndef MODE\n#define MODE 0\n#endif\n"
    "extern \"C\" __global__ void twice(const float *x, float *y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (MODE == 1)\n"
    "        while (n > 0)\n"
    "            __syncthreads();\n"
    "    if (MODE == 2 && i == 0)\n"
    "        y[n + 64] = 1.0f;\n"
    "    if (MODE == 3 && i + 1 < n)\n"
    "        y[i] = y[i + 1];\n"
    "    if (MODE == 4 && i % 7 == 0)\n"
    "        return;\n"
    "    float slow = 0.0f;\n"
    "    if (MODE == 0)\n"
    "        for (int k = 0; k < 20; k++)\n"
    "            slow += sqrtf((float)(i + k));\n"
    "    if (i < n)\n"
    "        y[i] = slow < 0.0f ? slow : x[i] * 2.0f;\n"
    "}\n";

/* Addition of 128-bit floats needs a library call that no GPU has: LLVM 19 reports a fatal error.
 */
static const char fatal_ir[] = "target triple = \"nvptx64-nvidia-cuda\"\n"
                               "define ptx_kernel void @twice(ptr %x, ptr %y, i32 %n) {\n"
                               "  %a = load fp128, ptr %x\n"
                               "  %b = fadd fp128 %a, %a\n"
                               "  store fp128 %b, ptr %y\n"
                               "  ret void\n"
                               "}\n";

static const char task_json[] =
    "{\"name\": \"twice\", \"family\": \"tests\", \"doc\": \"twice the input\","
    " \"arguments\": ["
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\","
    "   \"data\": {\"generator\": \"normal\"}},"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],"
    " \"starts\": ["
    "  {\"name\": \"plain\", \"source\": \"twice.cu\", \"grid\": \"ceil_div(n, 64)\", \"block\": "
    "64,"
    "   \"macros\": [{\"name\": \"MODE\", \"default\": 0, \"values\": [0, 1, 2, 3, 4]}]},"
    "  {\"name\": \"fatal\", \"source\": \"fatal.ll\", \"grid\": \"ceil_div(n, 64)\","
    "   \"block\": 64}],"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},"
    " \"cases\": ["
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 100}},"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 777}},"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": 50000}},"
    "  {\"name\": \"other\", \"split\": \"held-out\", \"use\": \"check\", \"shape\": {\"n\": 513}},"
    "  {\"name\": \"wide\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": 90000}},"
    "  {\"name\": \"one\", \"split\": \"adversarial\", \"use\": \"check\", \"shape\": {\"n\": "
    "1}}]}";

static const char *in_scratch(const char *name) {
    static char buffers[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    (void)snprintf(buffers[turn], sizeof buffers[turn], "%s/%s", scratch, name);
    return buffers[turn];
}

static void put_file(const char *name, const char *text) {
    ev_error err;
    assert_int_equal(ev_file_write(in_scratch(name), text, strlen(text), &err), EV_OK);
}

static int make_scratch(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-real-XXXXXX");
    if (!mkdtemp(scratch))
        return 1;
    (void)snprintf(task_path, sizeof task_path, "%s/task.json", scratch);
    put_file("twice.cu", kernel);
    put_file("fatal.ll", fatal_ir);
    put_file("task.json", task_json);
    return 0;
}

static int remove_scratch(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

static tune_options options_for(const char *records_path, unsigned workers) {
    return (tune_options){.tasks = tasks,
                          .task_count = 1,
                          .device = "vm:h200",
                          .evaluations = 60,
                          .seed = 5,
                          .workers = workers,
                          .starts = "all",
                          .records = records_path,
                          .worker_argv = worker};
}

static tune_report run(const tune_options *o) {
    ev_error err = {0};
    tune_report report;
    if (tune_run(o, &report, &err) != EV_OK)
        fail_msg("%s", err.text);
    return report;
}

/* Genome, PTX hash and rows of the winner; malloc'ed. */
static char *winner_of(const char *records_path) {
    ev_error err = {0};
    records *r = NULL;
    records_winner *list = NULL;
    size_t count = 0;
    if (records_open_read(records_path, &r, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(records_winners(r, &list, &count, &err), EV_OK);
    assert_int_equal(count, 1);
    ev_sha256 ptx = ev_sha256_of(list[0].ptx, strlen(list[0].ptx));
    assert_string_equal(ptx.hex, list[0].ptx_sha256);
    assert_non_null(strstr(list[0].baseline_ptx, ".entry twice"));
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "%s\n%s\n%s\n%s", list[0].genome, list[0].ptx_sha256, list[0].rows,
                  list[0].edits);
    records_winners_free(list, count);
    records_close(r);
    return ev_str_take(&text);
}

static char *unbroken;

static int find_unbroken(void **state) {
    (void)state;
    tune_options o = options_for(in_scratch("unbroken"), 1);
    tune_report report = run(&o);
    assert_int_equal(report.evaluations, 60);
    tune_report_free(&report);
    unbroken = winner_of(in_scratch("unbroken"));
    return 0;
}

static void expect_unbroken(const char *records_path) {
    char *winner = winner_of(records_path);
    assert_string_equal(winner, unbroken);
    free(winner);
    assert_int_equal(unlink(records_path), 0);
}

/* ---- gates ---- */

typedef struct expected {
    const char *start;
    json_int_t mode;
    const char *gate, *words;
    bool met;
} expected;

static ev_status look(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    expected *x = context;
    const json_t *macros = json_object_get(e->genome, "macros");
    bool same = strcmp(e->operators, "start") == 0 &&
                strcmp(ev_json_text(e->genome, "start", ""), x->start) == 0 &&
                ev_json_integer(macros, "MODE", 0) == x->mode && strcmp(e->gate, "seen") != 0;
    if (!same)
        return EV_OK;
    if (strcmp(e->gate, x->gate) != 0 || !strstr(e->reason, x->words))
        fail_msg("MODE %d of %s: gate %s (%s), not %s (%s)", (int)x->mode, x->start, e->gate,
                 e->reason, x->gate, x->words);
    x->met = true;
    return EV_OK;
}

static void test_what_is_wrong_is_stopped_by_its_gate(void **state) {
    (void)state;
    expected all[] = {
        {"plain", 0, "none", "", false},
        {"plain", 1, "safe", "l", false}, /* fuel or livelock */
        {"plain", 2, "safe", "out-of-bounds", false},
        {"plain", 3, "safe", "uninitialised-read", false},
        {"plain", 4, "accurate", "never written", false},
        {"fatal", 0, "emit", "LLVM gave up", false},
    };
    ev_error err;
    records *r = NULL;
    assert_int_equal(records_open_read(in_scratch("unbroken"), &r, &err), EV_OK);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        assert_int_equal(records_each(r, 0, "search", look, &all[i], &err), EV_OK);
        assert_true(all[i].met);
    }
    records_close(r);
}

/* ---- estimates ---- */

static ev_status look_at_estimate(void *context, const records_evaluation *e, ev_error *err) {
    uint64_t *count = context;
    json_t *s = e->score[0] ? json_loads(e->score, 0, NULL) : NULL;
    if (s && json_is_true(json_object_get(s, "estimated"))) {
        assert_string_equal(e->gate, "none");
        assert_true(e->ns > 0 && e->hashes[SEARCH_BY_SKETCH][0] && !e->hashes[SEARCH_BY_PTX][0]);
        (*count)++;
    }
    json_decref(s);
    (void)err;
    return EV_OK;
}

/* What gains nothing is not built; its record has the sketch's code, a time and no PTX. Two workers
 * estimate the same. */
static void test_estimates_stand_in_the_records(void **state) {
    (void)state;
    static const char *const example[] = {EVOKE_SOURCE_DIR "/examples/rmsnorm/task.json"};
    uint64_t made[2];
    for (unsigned workers = 1; workers <= 2; workers++) {
        uint64_t count = 0;
        ev_error err;
        records *r = NULL;
        tune_options o = options_for(in_scratch("estimates"), workers);
        o.tasks = example;
        o.seed = 1;
        tune_report report = run(&o);
        assert_int_equal(records_open_read(in_scratch("estimates"), &r, &err), EV_OK);
        assert_int_equal(records_each(r, 0, "search", look_at_estimate, &count, &err), EV_OK);
        records_close(r);
        assert_int_equal(count, report.estimated);
        assert_true(count > 0);
        made[workers - 1] = count;
        tune_report_free(&report);
        assert_int_equal(unlink(in_scratch("estimates")), 0);
    }
    assert_int_equal(made[0], made[1]);
}

/* ---- the same winner ---- */

static void test_two_workers_find_the_same(void **state) {
    (void)state;
    tune_options o = options_for(in_scratch("two"), 2);
    tune_report report = run(&o);
    tune_report_free(&report);
    expect_unbroken(in_scratch("two"));
}

/* LLVM numbers the calls of sinf's slow path across all modules of a process, so that its text
 * depends on what a worker built before. */
static const char wave_kernel[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void twice(const float *x, float *y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    float sum = 0.0f;\n"
    "    for (int k = 0; k < 4; k++)\n"
    "        sum += i < n ? sinf(x[i] + 0.25f * k) : 0.0f;\n"
    "    if (i < n)\n"
    "        y[i] = sum;\n"
    "}\n";

static const char wave_json[] =
    "{\"name\": \"wave\", \"family\": \"tests\", \"doc\": \"four sines\","
    " \"arguments\": ["
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\","
    "   \"data\": {\"generator\": \"normal\"}},"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],"
    " \"starts\": ["
    "  {\"name\": \"plain\", \"source\": \"wave.cu\", \"entry\": \"twice\","
    "   \"grid\": \"ceil_div(n, 64)\", \"block\": 64}],"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},"
    " \"cases\": ["
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 70}},"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 333}},"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": 2048}},"
    "  {\"name\": \"other\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": "
    "1500}}]}";

static void test_any_number_of_workers_finds_the_same_calls(void **state) {
    (void)state;
    static char path[128];
    static const char *wave[] = {path};
    static const unsigned workers[] = {1, 2, 7};
    char *first = NULL;
    (void)snprintf(path, sizeof path, "%s/wave.json", scratch);
    put_file("wave.cu", wave_kernel);
    put_file("wave.json", wave_json);
    for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
        tune_options o = options_for(in_scratch("wave"), workers[i]);
        o.tasks = wave;
        o.evaluations = 40;
        tune_report report = run(&o);
        tune_report_free(&report);
        char *winner = winner_of(in_scratch("wave"));
        if (first == NULL)
            first = strdup(winner);
        assert_string_equal(winner, first);
        free(winner);
        assert_int_equal(unlink(in_scratch("wave")), 0);
    }
    free(first);
}

/* Kills a child process of this one, once. */
static void kill_a_worker(void *context, const tune_progress *p) {
    bool *done = context;
    char path[80], list[200] = "";
    if (*done || p->evaluations < 5)
        return;
    (void)snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    int pid = f && fgets(list, sizeof list, f) ? (int)strtol(list, NULL, 10) : 0;
    if (f)
        (void)fclose(f);
    if (pid > 0)
        *done = kill(pid, SIGKILL) == 0;
}

static void test_a_killed_worker_costs_nothing(void **state) {
    (void)state;
    bool done = false;
    tune_options o = options_for(in_scratch("killed"), 2);
    o.progress = kill_a_worker;
    o.progress_context = &done;
    tune_report report = run(&o);
    assert_true(done);
    assert_true(report.failed_workers > 0);
    tune_report_free(&report);
    expect_unbroken(in_scratch("killed"));
}

static void kill_self(void *context, const tune_progress *p) {
    (void)context;
    if (p->evaluations >= 20)
        (void)kill(getpid(), SIGKILL);
}

static void test_resume_after_kill(void **state) {
    (void)state;
    tune_options o = options_for(in_scratch("resumed"), 2);
    pid_t pid = fork();
    if (pid == 0) {
        ev_error err;
        tune_report report;
        o.progress = kill_self;
        _exit(tune_run(&o, &report, &err) == EV_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    o.resume = true;
    tune_report report = run(&o);
    assert_int_equal(report.evaluations, 60);
    tune_report_free(&report);
    expect_unbroken(in_scratch("resumed"));
}

static void test_a_changed_task_is_not_resumed(void **state) {
    (void)state;
    ev_error err = {0};
    tune_report report;
    char changed[sizeof kernel + 32];
    (void)snprintf(changed, sizeof changed, "%s/* changed */\n", kernel);
    put_file("twice.cu", changed);
    tune_options o = options_for(in_scratch("unbroken"), 1);
    o.resume = true;
    assert_int_equal(tune_run(&o, &report, &err), EV_BAD);
    assert_non_null(strstr(err.text, "tasks"));
    put_file("twice.cu", kernel);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_what_is_wrong_is_stopped_by_its_gate, find_unbroken),
        cmocka_unit_test(test_estimates_stand_in_the_records),
        cmocka_unit_test(test_two_workers_find_the_same),
        cmocka_unit_test(test_any_number_of_workers_finds_the_same_calls),
        cmocka_unit_test(test_a_killed_worker_costs_nothing),
        cmocka_unit_test(test_resume_after_kill),
        cmocka_unit_test(test_a_changed_task_is_not_resumed),
    };
    int failed = cmocka_run_group_tests(tests, make_scratch, remove_scratch);
    free(unbroken);
    return failed;
}
