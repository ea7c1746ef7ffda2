/* A search on GPUs, on the stand-in for their driver: a timer each, screeners beside them. */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/json.h"
#include "tuner/run/records.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const json_t *first_row(const json_t *report) {
    const json_t *row = json_array_get(json_object_get(report, "rows"), 0);
    assert_non_null(row);
    return row;
}

static json_int_t gpus(const json_t *report, const char *key) {
    return ev_json_integer(json_object_get(report, "gpus"), key, -1);
}

static void test_two_gpus(void **state) {
    (void)state;
    json_t *report =
        cli_json(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0,cuda:1", "--bold",
                         "--evaluations", "60", "--workers", "2", "--records",
                         cli_path("two.sqlite"), "--out", cli_path("two"), "--json"),
                 0);
    cli_keys(json_object_get(report, "gpus"), "timers:i screeners:i busy:n let_through:i");
    assert_int_equal(gpus(report, "timers"), 2);
    assert_int_equal(gpus(report, "screeners"), 2);
    double busy = ev_json_number(json_object_get(report, "gpus"), "busy", 0);
    assert_true(busy > 0 && busy <= 1);
    /* at the beginning nothing waits for a GPU */
    assert_true(gpus(report, "let_through") > 0);
    assert_string_equal(ev_json_text(first_row(report), "device", ""), "cuda:0");
    assert_true(ev_json_flag(first_row(report), "promoted", false));
    json_decref(report);
    json_t *check = cli_json(CLI_RUN("check", cli_path("two"), "--device", "cuda:1", "--json"), 0);
    json_decref(check);
}

/* Variants are screened by the twin: what traps there never comes to a GPU, and is counted. */
static void test_counts(void **state) {
    (void)state;
    json_t *report = cli_json(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0",
                                      "--evaluations", "80", "--workers", "1", "--json"),
                              0);
    const json_t *rejected = json_object_get(report, "rejected");
    assert_true(ev_json_integer(rejected, "safe", 0) + ev_json_integer(rejected, "accurate", 0) >
                0);
    assert_int_equal(ev_json_integer(report, "evaluations", 0), 80);
    assert_int_equal(gpus(report, "timers"), 1);
    assert_int_equal(gpus(report, "screeners"), 1);
    json_decref(report);
    report =
        cli_json(CLI_RUN("bench", "search", "--device", "cuda:0", "--only", cli_path("task.json"),
                         "--evaluations", "30", "--workers", "2", "--json"),
                 0);
    assert_int_equal(gpus(report, "timers"), 1);
    json_decref(report);
}

static void test_devices_that_cannot_be(void **state) {
    (void)state;
    const char *task = cli_path("task.json");
    cli_expect_error(CLI_RUN("tune", task, "--device", "cuda:0,cuda:0"), 2,
                     "cuda:0 is named twice");
    cli_expect_error(CLI_RUN("tune", task, "--device", "cuda:0,"), 2, "with commas between");
    cli_expect_error(CLI_RUN("tune", task, "--device", "cuda:0,cuda:7"), 2, "the driver has 3");
    cli_expect_error(CLI_RUN("tune", task, "--device", "cuda:0,vm:h200"), 2,
                     "several devices can only be GPUs");
}

/* Of two models each has a search of its own, with its own records and its own bundle. */
static void test_two_models(void **state) {
    (void)state;
    json_t *all =
        cli_json(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0,cuda:2,cuda:1",
                         "--evaluations", "30", "--workers", "1", "--records",
                         cli_path("models.sqlite"), "--out", cli_path("models"), "--json"),
                 0);
    const json_t *searches = json_object_get(all, "searches");
    assert_int_equal(json_array_size(searches), 2);
    const json_t *h200 = json_array_get(searches, 0), *a100 = json_array_get(searches, 1);
    assert_int_equal(gpus(h200, "timers"), 2);
    assert_int_equal(gpus(a100, "timers"), 1);
    assert_string_equal(ev_json_text(first_row(h200), "device", ""), "cuda:0");
    assert_string_equal(ev_json_text(first_row(a100), "device", ""), "cuda:2");
    json_decref(all);
    json_decref(
        cli_json(CLI_RUN("check", cli_path("models-cuda2"), "--device", "cuda:2", "--json"), 0));
    assert_true(ev_path_exists(cli_path("models-cuda0.sqlite")));
    /* a search that cannot begin is the exit code of all */
    ev_proc_result r = CLI_RUN("tune", cli_path("none.json"), "--device", "cuda:0,cuda:2");
    assert_int_equal(r.exit_code, 2);
    ev_proc_result_free(&r);
}

/* Begins a run in the shell, and sends it a signal so long after it has opened its task. */
static ev_proc_result run_until(const char *signal, const char *after, const char *records,
                                const char *environment) {
    char line[1024];
    (void)snprintf(line, sizeof line,
                   "%s $EVOKE tune %s --device cuda:0 --evaluations 60 --workers 2 --json "
                   "--records %s & until [ -e %s ]; do sleep 0.05; kill -0 $! || break; done; "
                   "sleep %s; kill -%s $!; wait $!",
                   environment, cli_path("task.json"), records, records, after, signal);
    return cli_shell(line);
}

/* The first results of a run are the starts' times, so a stop at once leaves them. */
static void test_stopped_at_once(void **state) {
    (void)state;
    json_t *report =
        cli_json(run_until("INT", "0", cli_path("stopped.sqlite"), "EVOKE_STANDIN_DELAY=0.3"), 0);
    assert_true(ev_json_flag(report, "stopped", false));
    assert_true(ev_json_integer(report, "evaluations", 0) < 60);
    assert_true(ev_json_number(first_row(report), "baseline_ns", 0) > 0);
    assert_true(ev_json_number(first_row(report), "best_ns", 0) > 0);
    json_decref(report);
}

static ev_status count_let_through(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    *(json_int_t *)context += e->let_through;
    return EV_OK;
}

/* The stored children that were let through, those without a score too. */
static json_int_t stored_let_through(const char *path) {
    records *r = NULL;
    json_int_t count = 0;
    assert_int_equal(records_open_read(path, &r, NULL), EV_OK);
    assert_int_equal(records_each(r, 0, "search", count_let_through, &count, NULL), EV_OK);
    records_close(r);
    return count;
}

/* What was let through while a timer had nothing to do is so when the run goes on. */
static void test_resumed(void **state) {
    (void)state;
    const char *records = cli_path("killed.sqlite");
    ev_proc_result r = run_until("KILL", "1", records, "EVOKE_STANDIN_DELAY=0.05");
    assert_int_equal(r.exit_code, 128 + SIGKILL);
    ev_proc_result_free(&r);
    json_t *report =
        cli_json(CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0", "--evaluations", "60",
                         "--workers", "2", "--records", records, "--resume", "--json"),
                 0);
    assert_int_equal(ev_json_integer(report, "evaluations", 0), 60);
    assert_int_equal(gpus(report, "let_through"), stored_let_through(records));
    json_decref(report);
}

/* Smaller shapes than those of the shared task: the stand-in computes each launch. */
static int setup(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_copy_changed("task.json", "task.json", "65536", "16384");
    cli_copy_changed("task.json", "task.json", "32768", "8192");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_gpus), cmocka_unit_test(test_two_models),
        cmocka_unit_test(test_counts),   cmocka_unit_test(test_stopped_at_once),
        cmocka_unit_test(test_resumed),  cmocka_unit_test(test_devices_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
