/* Bad input: one clear line, the right exit code, and nothing half-written. Every line of the list
 * that the command line promises, through the binary. */
#include "base/file.h"
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/asserts.h"

/* ---- usage ---- */

static void unknown_words(void **state) {
    (void)state;
    cli_expect_error(CLI_RUN("tun"), 2, "did you mean 'tune'");
    cli_expect_error(CLI_RUN("tune", "--sede", "3"), 2, "did you mean --seed");
    cli_expect_error(CLI_RUN("list", "--workers", "3"), 2, "list has no option --workers");
    cli_expect_error(CLI_RUN("tune", "x", "--effort", "huge"), 2, "quick|normal|thorough");
    cli_expect_error(CLI_RUN("tune", "x", "--seed", "-1"), 2, "--seed needs a whole number");
    cli_expect_error(CLI_RUN("tune", "x", "--seed"), 2, "--seed needs a value");
    cli_expect_error(CLI_RUN("tune"), 2, "--all");
    cli_expect_error(CLI_RUN("tune", "--all", "scale"), 2, "--all takes every shipped task");
    cli_expect_error(CLI_RUN("tune", "--families", "scale"), 2, "--families takes a shipped task");
    cli_expect_error(CLI_RUN("tune", "--families", "--all"), 2, "leave out one of them");
    cli_expect_error(CLI_RUN("tune", "x", "--workers", "100000"), 2, "at most");
    cli_expect_error(CLI_RUN("tune", "x", "--without", "stage,pads"), 2, "no edit is named 'pads'");
    cli_expect_error(CLI_RUN("tune", "x", "--without", "stage,,pad"), 2, "single commas");
    cli_expect_error(CLI_RUN("bench", "search", "--strategies", "--among", "hil"), 2,
                     "no strategy is named 'hil'");
    cli_expect_error(CLI_RUN("check"), 2, "check needs a bundle, a task");
    cli_expect_error(CLI_RUN("check", "--all", "scale"), 2, "--all takes every shipped task");
    cli_expect_error(CLI_RUN("check", "--all", "--genome", "g.json"), 2, "--genome is of one task");
    cli_expect_error(CLI_RUN("run"), 2, "run needs FILE.ptx");
    cli_expect_error(CLI_RUN("bench", "speed"), 2,
                     "there are compile, vm, search, model, rank and bundle");
    cli_expect_error(CLI_RUN("bench", "vm", "--only", "x"), 2, "vector_add");
    cli_expect_error(CLI_RUN("worker"), 2, "--stdio");
    cli_expect_error(CLI_RUN("--json"), 2, "the command comes first");
    cli_expect_error(cli_run((const char *const[]){NULL}), 2, "a command is missing");
}

/* ---- files ---- */

static void files_that_cannot_be_read(void **state) {
    (void)state;
    cli_expect_error(CLI_RUN("run", cli_path("none.ptx")), 2, "none.ptx");
    cli_expect_error(CLI_RUN("run", cli_folder()), 2, cli_folder());
    cli_expect_error(CLI_RUN("tune", cli_path("none/task.json")), 2, "none/task.json");
    cli_expect_error(CLI_RUN("check", cli_path("none")), 2, "is no bundle");
    cli_expect_error(CLI_RUN("check", "no_such_task"), 2, "no_such_task");
    cli_expect_error(CLI_RUN("export", "--records", cli_path("none"), "--out", cli_path("out")), 2,
                     "none");
    assert_false(ev_path_exists(cli_path("out")));
    cli_expect_error(CLI_RUN("tune", "ar_adam", "--prior", cli_path("none.json")), 2, "none.json");
}

/* ---- tasks ---- */

/* tune of the task with `old` changed to `new` is refused with `words`, and makes no records. */
static void refuse(const char *old, const char *new, const char *words) {
    cli_copy_changed("task.json", "bad.json", old, new);
    cli_expect_error(CLI_RUN("tune", cli_path("bad.json"), "--evaluations", "4", "--records",
                             cli_path("bad.sqlite"), "--out", cli_path("bad-out")),
                     2, words);
    assert_false(ev_path_exists(cli_path("bad-out")));
}

static void task_files(void **state) {
    (void)state;
    refuse("\"n\"},\n    {\"name\": \"n\"", "\"n\",},\n    {\"name\": \"n\"", "bad.json:8:");
    refuse("\"tolerance\"", "\"tolerence\"", "did you mean 'tolerance'");
    refuse("\"tolerance\"", "\"tolerence\"", "bad.json:15:3");
    refuse("\"type\": \"f32\"", "\"type\": \"f33\"", "f33");
    refuse("\"normal\"", "\"nromal\"", "nromal");
    refuse("ceil_div(n, 128)", "ceil_div(m, 128)", "unknown name");
    refuse("ceil_div(n, 128)", "ceil_div(n, ", "bad.json:12:");
    refuse("\"block\": 128", "\"block\": 5000", "5000");
    refuse("\"source\": \"scale.cu\"", "\"source\": \"none.cu\"", "none.cu");
    refuse("\"split\": \"search\"", "\"split\": \"serch\"", "serch");
}

static void entry_not_found(void **state) {
    (void)state;
    refuse("\"source\": \"scale.cu\"", "\"source\": \"scale.cu\", \"entry\": \"scael\"", "scael");
    cli_expect_error(CLI_RUN("run", cli_path("add.ptx"), "--entry", "sub"), 2, "add");
}

static void source_that_does_not_compile(void **state) {
    (void)state;
    cli_copy_changed("scale.cu", "broken.cu", "part[threadIdx.x] * 2.0f", "prat[0]");
    cli_copy_changed("task.json", "broken.json", "scale.cu", "broken.cu");
    ev_proc_result r = CLI_RUN("tune", cli_path("broken.json"), "--evaluations", "4");
    cli_expect(&r, 2);
    assert_non_null(strstr(ev_str_text(&r.err), "prat")); /* clang's own words */
    assert_non_null(strstr(ev_str_text(&r.err), "broken.cu:9"));
    ev_proc_result_free(&r);
}

/* Twenty errors of clang, about 3,000 bytes, are shown to the last, by every command. */
static void long_errors_are_whole(void **state) {
    (void)state;
    ev_str text = EV_STR_EMPTY;
    ev_str_append(&text, "extern \"C\" __global__ void scale(const float *x, float *y, int n) {\n");
    for (int i = 0; i < 19; i++)
        ev_str_printf(&text, "    y[%d] = a_name_that_nothing_declares_%d(x[%d], x, n);\n", i, i,
                      i);
    ev_str_append(&text, "}\n");
    cli_write("wordy.cu", ev_str_text(&text));
    ev_str_free(&text);
    cli_copy_changed("task.json", "wordy.json", "scale.cu", "wordy.cu");
    const char *const commands[][4] = {{"init", cli_path("wordy.cu")},
                                       {"check", cli_path("wordy.json")},
                                       {"tune", cli_path("wordy.json"), "--evaluations=4"}};
    for (size_t i = 0; i < 3; i++) {
        ev_proc_result r = cli_run(commands[i]);
        cli_expect(&r, 2);
        for (int k = 0; k < 19; k++) {
            char name[40];
            (void)snprintf(name, sizeof name, "declares_%d'", k);
            assert_non_null(strstr(ev_str_text(&r.err), name));
        }
        assert_non_null(strstr(ev_str_text(&r.err), "wordy.cu:20:"));
        ev_proc_result_free(&r);
    }
}

static void shape_too_large(void **state) {
    (void)state;
    refuse("{\"n\": 32768}", "{\"n\": 2000000000}", "later");
}

static void baseline_against_its_oracle(void **state) {
    (void)state;
    cli_copy_changed("oracle.c", "wrong.c", "2.0 *", "2.1 *");
    cli_copy_changed("task.json", "wrong.json", "oracle.c", "wrong.c");
    cli_expect_error(CLI_RUN("tune", cli_path("wrong.json"), "--evaluations", "4"), 2,
                     "disagrees with its oracle");
    /* The same in CI is a regression, and no wrong usage. */
    ev_proc_result r = CLI_RUN("check", cli_path("wrong.json"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "verdict: fail"));
    ev_proc_result_free(&r);
}

static void oracle_that_does_not_compile(void **state) {
    (void)state;
    cli_copy_changed("oracle.c", "odd.c", "return 0;", "return nothing;");
    cli_copy_changed("task.json", "odd.json", "oracle.c", "odd.c");
    ev_proc_result r = CLI_RUN("check", cli_path("odd.json"));
    cli_expect(&r, 2);
    assert_non_null(strstr(ev_str_text(&r.err), "nothing"));
    ev_proc_result_free(&r);
}

/* ---- devices and launches ---- */

static void devices(void **state) {
    (void)state;
    const char *task = cli_path("task.json");
    cli_expect_error(CLI_RUN("tune", task, "--device", "vm:z80"), 2, "h200");
    cli_expect_error(CLI_RUN("tune", task, "--device", "gpu"), 2, "gpu");
    cli_expect_error(CLI_RUN("check", task, "--device", "vm:z80"), 2, "h200");
    cli_expect_error(CLI_RUN("profile", task, "--device", "vm:z80"), 2, "h200");
    cli_expect_error(CLI_RUN("profile", task, "--start", "hand"), 2, "no start 'hand'");
    cli_expect_error(CLI_RUN("profile", task, "--case", "huge"), 2, "no case 'huge'");
    cli_expect_error(CLI_RUN("tune", task, "--start", "hand", "--evaluations", "4"), 2, "hand");
    cli_write("gpu.json", "{\"id\": 3}");
    ev_str own = EV_STR_EMPTY;
    ev_str_printf(&own, "vm:%s", cli_path("gpu.json"));
    cli_expect_error(CLI_RUN("profile", task, "--device", ev_str_text(&own)), 2, "gpu.json:1:");
    ev_str_free(&own);
}

static void launches(void **state) {
    (void)state;
    const char *ptx = cli_path("add.ptx");
    cli_expect_error(CLI_RUN("run", ptx, "--arg", "u32:1"), 2, "add has 3 parameters");
    static const struct {
        const char *first, *words;
    } bad[] = {
        {"in:000", "hex digits"},     {"in:zz", "is not hex"},         {"in:", "hex digits"},
        {"out:many", "out:1024"},     {"out:0", "out:1024"},           {"f99:1", "no kind 'f99'"},
        {"u32:5", "parameter 0 (a)"}, {"s32:99999999999", "no value"}, {"u32:-1", "no value"},
        {"in", "needs KIND:VALUE"},   {"f32:one", "no value"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        cli_expect_error(
            CLI_RUN("run", ptx, "--arg", bad[i].first, "--arg", "out:4", "--arg", "u32:1"), 2,
            bad[i].words);
    static const struct {
        const char *spec, *text;
    } beyond[] = {
        {"f16:1e6", "1e6 is beyond the largest number of f16"},
        {"f16:65520", "65520 is beyond the largest number of f16"},
        {"bf16:-3.4e38", "-3.4e38 is beyond the largest number of bf16"},
        {"f32:1e39", "1e39 is beyond the largest number of f32"},
        {"f64:1e999", "1e999 is beyond the largest number of f64"},
        {"f16:65519", "has 2 bytes, and parameter 0"}, /* 65504, the largest */
        {"bf16:-inf", "has 2 bytes, and parameter 0"},
        {"f16:nan", "has 2 bytes, and parameter 0"},
        {"f32:1e-60", "has 4 bytes, and parameter 0"},
    };
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
        cli_expect_error(
            CLI_RUN("run", ptx, "--arg", beyond[i].spec, "--arg", "out:4", "--arg", "u32:1"), 2,
            beyond[i].text);
    cli_expect_error(CLI_RUN("run", ptx, "--block", "2048", "--arg", "in:0000803f", "--arg",
                             "out:4", "--arg", "u32:1"),
                     2, "1024");
    cli_expect_error(CLI_RUN("run", ptx, "--shared", "99999999", "--arg", "in:0000803f", "--arg",
                             "out:4", "--arg", "u32:1"),
                     2, "99999999");
    cli_expect_error(CLI_RUN("run", ptx, "--block", "0"), 2, "--block needs");
    cli_write("odd.ptx", ".version 7.8\n.target sm_70\n.address_size 64\n"
                         ".visible .entry k()\n{\n  frobnicate.f32 %f1;\n}\n");
    cli_expect_error(CLI_RUN("run", cli_path("odd.ptx")), 2, ":6:");
}

static void reports(void **state) {
    (void)state;
    const char *page = cli_path("page.html");
    cli_expect_error(CLI_RUN("report", "--out", page), 2, "needs records or a bundle");
    cli_expect_error(CLI_RUN("report", "some.sqlite"), 2, "--out PAGE.html");
    cli_expect_error(CLI_RUN("report", "a.tar", "--records", "b.sqlite", "--out", page), 2,
                     "not both");
    cli_expect_error(CLI_RUN("report", cli_folder(), "--out", page), 2, "manifest.json");
    cli_expect_error(CLI_RUN("report", cli_path("no.tar"), "--out", page), 2, "no.tar");
    cli_expect_error(CLI_RUN("report", cli_path("no.sqlite"), "--out", page), 2, "no.sqlite");
}

/* ---- outputs ---- */

static void outputs_that_cannot_be_written(void **state) {
    (void)state;
    const char *task = cli_path("task.json");
    cli_expect_error(CLI_RUN("tune", task, "--out", cli_path("no/where"), "--evaluations", "4"), 2,
                     "no/where");
    cli_expect_error(CLI_RUN("tune", task, "--out", cli_folder(), "--evaluations", "4"), 2,
                     "something else is there");
    cli_expect_error(
        CLI_RUN("tune", task, "--records", cli_path("no/r.sqlite"), "--evaluations", "4"), 2,
        "no/r.sqlite");
    ev_proc_result r = cli_shell("\"$EVOKE\" list > /dev/full");
    cli_expect_error(r, 3, "stdout");
    /* A reader that goes away is no error. */
    r = cli_shell("set -o pipefail; \"$EVOKE\" help --markdown | head -c 1 > /dev/null");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* A limit on file sizes stands for the full disk: writes fail in the same places. */
static void full_disk(void **state) {
    (void)state;
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(&line, "ulimit -f 16; exec \"$EVOKE\" tune %s --evaluations 4 --records %s",
                  cli_path("task.json"), cli_path("full.sqlite"));
    cli_expect_error(cli_shell(ev_str_text(&line)), 3, "full.sqlite");
    ev_str_free(&line);
}

/* ---- records ---- */

static void tune_some(const char *records) {
    ev_proc_result r =
        CLI_RUN("tune", cli_path("task.json"), "--evaluations", "4", "--records", records);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* user_version stands at byte 60 of an SQLite file, big-endian (SQLite's file format, 1.3.8). */
static void records_of_another_version(void **state) {
    (void)state;
    const char *records = cli_path("version.sqlite");
    tune_some(records);
    FILE *file = fopen(records, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 60, SEEK_SET), 0);
    assert_int_equal(fwrite("\0\0\0\143", 1, 4, file), 4);
    assert_int_equal(fclose(file), 0);
    cli_expect_error(CLI_RUN("tune", cli_path("task.json"), "--evaluations", "4", "--records",
                             records, "--resume"),
                     2, "99");
    cli_expect_error(CLI_RUN("export", "--records", records, "--out", cli_path("out")), 2, "99");
    assert_false(ev_path_exists(cli_path("out")));
}

static void records_that_do_not_fit(void **state) {
    (void)state;
    const char *task = cli_path("task.json"), *records = cli_path("fit.sqlite");
    tune_some(records);
    cli_expect_error(CLI_RUN("tune", task, "--evaluations", "4", "--records", records), 2,
                     "--resume");
    cli_copy_changed("task.json", "other.json", "y = 2 x", "y = x + x");
    cli_expect_error(CLI_RUN("tune", cli_path("other.json"), "--evaluations", "4", "--records",
                             records, "--resume"),
                     2, "fit.sqlite");
    cli_expect_error(CLI_RUN("tune", task, "--evaluations", "4", "--seed", "2", "--records",
                             records, "--resume"),
                     2, "seed");
    cli_expect_error(CLI_RUN("tune", task, "--resume"), 2, "--records");
    cli_expect_error(CLI_RUN("tune", task, "--evaluations", "4", "--records",
                             cli_path("none.sqlite"), "--resume"),
                     2, "none.sqlite");
    cli_write("text.sqlite", "this is no database, however long it may be.");
    cli_expect_error(
        CLI_RUN("export", "--records", cli_path("text.sqlite"), "--out", cli_path("out")), 2,
        "text.sqlite");
}

/* The compiler is killed from outside: the machine's fault, not the source's. */
static void compiler_that_is_killed(void **state) {
    (void)state;
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(
        &line,
        "mkdir -p %s/killed && printf '#!/bin/sh\\nkill -9 $$\\n' > %s/killed/clang-19 && "
        "chmod +x %s/killed/clang-19 && PATH=%s/killed:$PATH $EVOKE check %s",
        cli_folder(), cli_folder(), cli_folder(), cli_folder(), cli_path("task.json"));
    cli_expect_error(cli_shell(ev_str_text(&line)), 3, "clang-19 was ended by signal 9");
    ev_str_free(&line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_words),
        cmocka_unit_test(files_that_cannot_be_read),
        cmocka_unit_test(task_files),
        cmocka_unit_test(entry_not_found),
        cmocka_unit_test(source_that_does_not_compile),
        cmocka_unit_test(long_errors_are_whole),
        cmocka_unit_test(shape_too_large),
        cmocka_unit_test(baseline_against_its_oracle),
        cmocka_unit_test(oracle_that_does_not_compile),
        cmocka_unit_test(devices),
        cmocka_unit_test(launches),
        cmocka_unit_test(reports),
        cmocka_unit_test(outputs_that_cannot_be_written),
        cmocka_unit_test(compiler_that_is_killed),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(records_of_another_version),
        cmocka_unit_test(records_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
