/* Faults after which the driver gives the process no new context, on the stand-in: every command
 * answers the fault, goes on in another process, and ends with the results that it has without the
 * fault, but for the one that was at fault. */
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ONCE "fault_was_there"

/* Launch `number` of a process faults, and the driver makes no context after the first `contexts`;
 * later processes are as usual. */
static void inject(unsigned number, const char *what, unsigned contexts) {
    char rules[100];
    (void)unlink(cli_path(ONCE));
    (void)snprintf(rules, sizeof rules, "launch:%u=%s;cuCtxCreate_v2:%u+=700", number, what,
                   contexts + 1);
    (void)setenv("EVOKE_STANDIN_FAIL", rules, 1);
    (void)setenv("EVOKE_STANDIN_ONCE", cli_path(ONCE), 1);
}

/* Whether the fault took place. */
static bool end_injection(void) {
    (void)unsetenv("EVOKE_STANDIN_FAIL");
    (void)unsetenv("EVOKE_STANDIN_ONCE");
    return access(cli_path(ONCE), F_OK) == 0;
}

static const json_t *rows_of(const json_t *all) {
    return json_object_get(all, "rows");
}

static const char *text_of(const json_t *object, const char *key) {
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static void names_fault(const char *reason, const char *what) {
    if (strstr(reason, what) == NULL)
        fail_msg("'%s' lacks '%s'", reason, what);
}

/* ---- check ---- */

static ev_proc_result check_task(void) {
    return CLI_RUN("check", cli_path("task.json"), "--device", "cuda:0", "--rows",
                   cli_path("rows.jsonl"), "--json");
}

/* The one row that fails; -1: none does, -2: several do. Others are as in `whole`. */
static int only_failed(const json_t *rows, const json_t *whole) {
    int found = -1;
    assert_int_equal(json_array_size(rows), json_array_size(whole));
    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (strcmp(text_of(json_array_get(rows, i), "verdict"), "pass") != 0)
            found = found == -1 ? (int)i : -2;
        else if (!json_equal(json_array_get(rows, i), json_array_get(whole, i)))
            fail_msg("row %zu is another than without a fault", i);
    }
    return found;
}

static size_t count_lines(const char *name) {
    char *text = cli_read(name);
    size_t lines = 0;
    for (const char *at = text; *at; at++)
        lines += *at == '\n';
    free(text);
    return lines;
}

static void check_ends(void **state) {
    (void)state;
    static const struct {
        unsigned launch;
        const char *what, *words;
    } faults[] = {{1, "address", "CUDA_ERROR_ILLEGAL_ADDRESS"},
                  {5, "timeout", "CUDA_ERROR_LAUNCH_TIMEOUT"},
                  {30, "address", "the driver makes no new context"},
                  {60, "hang", "the kernel runs on"}};
    json_t *whole = cli_json(check_task(), 0);
    (void)setenv("EVOKE_WATCHDOG", "1", 1);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        inject(faults[i].launch, faults[i].what, 1);
        json_t *json = cli_json(check_task(), 1);
        assert_true(end_injection());
        int at = only_failed(rows_of(json), rows_of(whole));
        if (at < 0)
            fail_msg("launch %u: %s row fails", faults[i].launch,
                     at == -1 ? "no" : "more than one");
        names_fault(text_of(json_array_get(rows_of(json), (size_t)at), "reason"), faults[i].words);
        assert_int_equal(count_lines("rows.jsonl"), json_array_size(rows_of(whole)));
        json_decref(json);
    }
    (void)unsetenv("EVOKE_WATCHDOG");
    json_decref(whole);
}

/* No process gets further than the one before: an error, and no endless loop. */
static void check_gives_up(void **state) {
    (void)state;
    (void)setenv("EVOKE_STANDIN_FAIL", "cuCtxCreate_v2:1+=700", 1);
    cli_expect_error(check_task(), 3, "cuCtxCreate");
    (void)unsetenv("EVOKE_STANDIN_FAIL");
}

/* ---- rank ---- */

static ev_proc_result rank(void) {
    return CLI_RUN("bench", "rank", "--device", "cuda:0", "--variants", "6", "--only",
                   cli_path("task.json"), "--json");
}

/* How many launches a time takes depends on the machine, and so whose the fault is: of a variant,
 * somewhere, which then is refused, or of the baseline beside it, which ends the run. */
static void rank_ends(void **state) {
    (void)state;
    bool refused = false;
    for (unsigned number = 100; number < 1000 && !refused; number += 70) {
        inject(number, "address", 1);
        ev_proc_result ran = rank();
        bool faulted = end_injection();
        if (faulted && strstr(ev_str_text(&ran.err), "the rival of the timed launch") != NULL) {
            cli_expect_error(ran, 3, "CUDA_ERROR_ILLEGAL_ADDRESS");
            continue;
        }
        json_t *json = cli_json(ran, 0);
        assert_int_equal(json_integer_value(json_object_get(json, "variants")), 6);
        assert_true(json_number_value(json_object_get(json, "mape")) < 5);
        refused = json_integer_value(json_object_get(json, "refused")) > 0;
        if (refused)
            names_fault(text_of(json, "first_refusal"), "CUDA_ERROR_ILLEGAL_ADDRESS");
        assert_true(faulted || !refused);
        json_decref(json);
    }
    assert_true(refused);
}

/* ---- calibrate ---- */

static ev_proc_result calibrate(const char *device) {
    return CLI_RUN("calibrate", "--device", device, "--out", cli_path("gpu.json"), "--json");
}

static void calibrate_ends(void **state) {
    (void)state;
    (void)setenv("EVOKE_STANDIN", "t4", 1); /* a small one is quicker */
    json_t *whole = cli_json(calibrate("vm:t4"), 0);
    assert_int_equal(unlink(cli_path("gpu.json")), 0);
    inject(40, "address", 1);
    json_t *json = cli_json(calibrate("cuda:0"), 0);
    assert_true(end_injection());
    size_t kept = 0;
    assert_int_equal(json_array_size(rows_of(json)), json_array_size(rows_of(whole)));
    for (size_t i = 0; i < json_array_size(rows_of(json)); i++) {
        const json_t *row = json_array_get(rows_of(json), i);
        assert_string_equal(text_of(row, "key"), text_of(json_array_get(rows_of(whole), i), "key"));
        kept += strstr(text_of(row, "kept_because"), "CUDA_ERROR_ILLEGAL_ADDRESS") != NULL;
    }
    assert_int_equal(kept, 1);
    assert_int_equal(access(cli_path("gpu.json"), R_OK), 0);
    (void)unsetenv("EVOKE_STANDIN");
    json_decref(json);
    json_decref(whole);
}

/* ---- goldens ---- */

static ev_proc_result goldens(unsigned processes, const char *families) {
    char line[200];
    (void)snprintf(line, sizeof line, "%s/tests/goldens cuda:0 --processes %u %s", EVOKE_BINARY_DIR,
                   processes, families);
    return cli_shell(line);
}

static void same_but_for_faults(const json_t *json, const json_t *whole, size_t faults) {
    static const char *const same[] = {"plans", "rows", "refused", "left_out", "unfinished"};
    for (size_t i = 0; i < sizeof same / sizeof same[0]; i++)
        assert_true(json_equal(json_object_get(json, same[i]), json_object_get(whole, same[i])));
    assert_int_equal(json_integer_value(json_object_get(json, "differed")), faults);
    const json_t *told = json_object_get(json, "told");
    assert_int_equal(json_array_size(told), faults);
    for (size_t i = 0; i < faults; i++)
        names_fault(text_of(json_array_get(told, i), "how"), "CUDA_ERROR_ILLEGAL_ADDRESS");
}

static void goldens_end(void **state) {
    (void)state;
    json_t *whole = cli_json(goldens(1, "logic atomic"), 0);
    inject(20, "address", 1);
    json_t *json = cli_json(goldens(1, "logic atomic"), 1);
    assert_true(end_injection());
    same_but_for_faults(json, whole, 1);
    json_decref(json);
    json_decref(whole);
}

/* Several processes do what one does, and a fault of each loses one golden. */
static void goldens_shared(void **state) {
    (void)state;
    json_t *whole = cli_json(goldens(1, "logic atomic"), 0);
    json_t *json = cli_json(goldens(3, "logic atomic"), 0);
    assert_true(json_equal(json, whole));
    json_decref(json);
    (void)setenv("EVOKE_STANDIN_FAIL", "launch:5=address", 1);
    json = cli_json(goldens(3, "logic atomic"), 1);
    (void)unsetenv("EVOKE_STANDIN_FAIL");
    same_but_for_faults(json, whole, 3);
    json_decref(json);
    json_decref(whole);
}

/* The driver has no memory for the contexts of so many processes at once: the shares of those that
 * got none are done by later ones, and no golden is lost. */
static void goldens_crowded(void **state) {
    (void)state;
    json_t *whole = cli_json(goldens(1, "logic atomic"), 0);
    (void)unlink(cli_path(ONCE));
    (void)setenv("EVOKE_STANDIN_ONCE", cli_path(ONCE), 1);
    (void)setenv("EVOKE_STANDIN_FAIL", "cuCtxCreate_v2:1=memory", 1);
    json_t *json = cli_json(goldens(3, "logic atomic"), 0);
    assert_true(end_injection());
    assert_true(json_equal(json, whole));
    json_decref(json);
    json_decref(whole);
    /* as it stays, there is an end, and the driver's word */
    (void)setenv("EVOKE_STANDIN_FAIL", "cuCtxCreate_v2:1=memory", 1);
    for (unsigned processes = 1; processes <= 3; processes += 2) {
        ev_proc_result r = goldens(processes, "logic");
        cli_expect(&r, 3);
        names_fault(ev_str_text(&r.err), "CUDA_ERROR_OUT_OF_MEMORY");
        ev_proc_result_free(&r);
    }
    (void)unsetenv("EVOKE_STANDIN_FAIL");
}

/* After the time for the others is over: the fault is that of a matrix instruction. */
static void tensors_end(void **state) {
    (void)state;
    inject(100, "address", 1);
    json_t *json = cli_json(goldens(1, "--seconds 0.000001"), 1); /* it came to no golden */
    assert_true(end_injection());
    const json_t *tensor = json_object_get(json, "tensor");
    assert_int_equal(json_integer_value(json_object_get(tensor, "forms")), 146);
    assert_int_equal(json_array_size(json_object_get(tensor, "refused")), 1);
    assert_int_equal(json_array_size(json_object_get(tensor, "differed")), 0);
    json_decref(json);
}

/* ---- tune ---- */

#define EVALUATIONS 24

/* The second context is that of the drawn cases, whose device is opened beside. Where the fault
 * takes place depends on how many samples are taken: somewhere it is a candidate's, which is
 * answered before the worker leaves, so that no worker counts as lost. */
static void tune_ends(void **state) {
    (void)state;
    bool answered = false;
    for (unsigned number = 600; number < 3000 && !answered; number += 150) {
        inject(number, "address", 2);
        ev_proc_result r = CLI_RUN("tune", cli_path("task.json"), "--device", "cuda:0",
                                   "--evaluations", "24", "--json");
        bool faulted = end_injection();
        if (r.exit_code == 2) { /* the baseline's own fault, while the task is opened */
            names_fault(ev_str_text(&r.err), "the baseline does not run");
            ev_proc_result_free(&r);
            continue;
        }
        json_t *json = cli_json(r, 0);
        assert_int_equal(json_integer_value(json_object_get(json, "evaluations")), EVALUATIONS);
        assert_int_equal(json_array_size(rows_of(json)), 1);
        answered = faulted && json_integer_value(json_object_get(json, "failed_workers")) == 0;
        json_decref(json);
    }
    assert_true(answered);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_ends),      cmocka_unit_test(check_gives_up),
        cmocka_unit_test(rank_ends),       cmocka_unit_test(calibrate_ends),
        cmocka_unit_test(goldens_end),     cmocka_unit_test(goldens_shared),
        cmocka_unit_test(tensors_end),     cmocka_unit_test(tune_ends),
        cmocka_unit_test(goldens_crowded),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
