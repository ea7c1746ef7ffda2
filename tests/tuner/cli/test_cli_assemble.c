/* evoke tune --assemble: no variant wins that the assembler refuses or whose registers it stores to
 * memory, for one of the named architectures. The assembler here is a script. */
#include "base/json.h"
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* Refuses each kernel but an empty one for sm_100, spills for sm_120, and does not know sm_89. */
static const char fake_ptxas[] =
    "#!/bin/sh\n"
    "text=$(cat)\n"
    "case $2 in\n"
    "-arch=sm_89) echo 'ptxas fatal : sm_89 is not defined' >&2; exit 1 ;;\n"
    "-arch=sm_100) case $text in *mul*) echo 'ptxas error : no' >&2; exit 1 ;; esac ;;\n"
    "-arch=sm_120)\n"
    "    echo 'ptxas info : Function properties for a helper' >&2\n"
    "    echo '    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' >&2\n"
    "    echo 'ptxas info : Function properties for scale' >&2\n"
    "    echo '    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads' >&2 ;;\n"
    "esac\n"
    "printf '\\177ELF '\n";

static int set_up(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_write("ptxas", fake_ptxas);
    return chmod(cli_path("ptxas"), 0700) != 0 || setenv("EVOKE_PTXAS", cli_path("ptxas"), 1) != 0;
}

#define TUNE                                                                                       \
    "tune", cli_path("task.json"), "--bold", "--evaluations", "120", "--seed", "1", "--json"

/* The winner's row; the caller's reference. stderr says `words`, unless they are NULL. */
static json_t *first_row(ev_proc_result r, const char *words) {
    if (words != NULL && strstr(ev_str_text(&r.err), words) == NULL)
        fail_msg("no \"%s\" in: %s", words, ev_str_text(&r.err));
    json_t *all = cli_json(r, 0);
    json_t *row = json_incref(json_array_get(json_object_get(all, "rows"), 0));
    json_decref(all);
    return row;
}

static bool is_promoted(const json_t *row) {
    return json_is_true(json_object_get(row, "promoted")) &&
           ev_json_number(row, "best_ns", 0) < ev_json_number(row, "baseline_ns", 0);
}

static void what_is_taken_may_win(void **state) {
    (void)state;
    json_t *without = first_row(CLI_RUN(TUNE), NULL);
    json_t *with = first_row(CLI_RUN(TUNE, "--assemble", "sm_90"), NULL);
    assert_true(is_promoted(without));
    assert_true(json_equal(without, with));
    json_decref(without);
    json_decref(with);
}

/* A run that goes on from its records refuses what it refused before. */
static void what_is_refused_does_not_win(void **state) {
    (void)state;
    static const char *const targets[] = {"sm_90,sm_100", "sm_120"};
    static const char *const words[] = {": sm_100: ",
                                        ": sm_120: ptxas stores 8 bytes of registers a thread"};
    static const char *const records[] = {"refused.sqlite", "spilled.sqlite"};
    for (size_t i = 0; i < 2; i++) {
        json_t *row = first_row(
            CLI_RUN(TUNE, "--assemble", targets[i], "--records", cli_path(records[i])), words[i]);
        json_t *again = first_row(
            CLI_RUN(TUNE, "--assemble", targets[i], "--records", cli_path(records[i]), "--resume"),
            NULL);
        assert_false(is_promoted(row));
        assert_true(json_equal(row, again));
        json_decref(row);
        json_decref(again);
        cli_expect_error(CLI_RUN(TUNE, "--records", cli_path(records[i]), "--resume"), 2,
                         "assemble");
    }
}

static void wrong_targets_are_told(void **state) {
    (void)state;
    cli_expect_error(CLI_RUN(TUNE, "--assemble", "90"), 2, "'90' names no architecture");
    cli_expect_error(CLI_RUN(TUNE, "--assemble", "sm_9x"), 2, "'sm_9x' names no architecture");
    cli_expect_error(CLI_RUN(TUNE, "--assemble", "sm_90,"), 2, "single commas");
    cli_expect_error(CLI_RUN(TUNE, "--assemble", "sm_89"), 2, "sm_89 is not defined");
    cli_expect_error(
        CLI_RUN(TUNE, "--assemble", "sm_90,sm_90,sm_90,sm_90,sm_90,sm_90,sm_90,sm_90,sm_90"), 2,
        "at most 8 targets");
    ev_proc_result r = CLI_RUN(TUNE, "--assemble", "sm_80");
    assert_int_equal(r.exit_code, 2);
    assert_non_null(strstr(ev_str_text(&r.err), "is for sm_90 and newer; leave sm_80 out"));
    ev_proc_result_free(&r);
    assert_int_equal(setenv("EVOKE_PTXAS", "none", 1), 0);
    cli_expect_error(CLI_RUN(TUNE, "--assemble", "sm_90"), 2, "EVOKE_PTXAS");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_taken_may_win),
                                       cmocka_unit_test(what_is_refused_does_not_win),
                                       cmocka_unit_test(wrong_targets_are_told)};
    return cmocka_run_group_tests(tests, set_up, cli_teardown);
}
