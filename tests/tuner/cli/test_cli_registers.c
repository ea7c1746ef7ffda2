/* evoke bench model --only registers, with a script as the assembler: what it reads out of the log,
 * and the figures that follow from it. */
#include "tests/cli_run.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

/* 40 registers and 8 spilled bytes for each entry. */
static const char SCRIPT[] =
    "#!/bin/bash\n"
    "for e in $(grep -o '\\.entry [A-Za-z0-9_$]*' | cut -d' ' -f2); do\n"
    "  echo \"ptxas info    : Compiling entry function '$e' for 'sm_90'\"\n"
    "  echo \"ptxas info    : Function properties for $e\"\n"
    "  echo '    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads'\n"
    "  echo 'ptxas info    : Used 40 registers, used 0 barriers, 400 bytes cmem[0]'\n"
    "done >&2\n"
    "echo cubin\n";

static double number(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static void check_rows(const json_t *all) {
    const json_t *row = NULL;
    size_t i = 0;
    double off = 0, worst = 0;
    json_array_foreach(json_object_get(all, "rows"), i, row) {
        cli_keys(row, "kernel:s sm:i estimate:i ptxas:i spill_estimate:i spill_ptxas:i");
        assert_int_equal(number(row, "ptxas"), 40);
        assert_int_equal(number(row, "spill_ptxas"), 8);
        off += fabs(number(row, "estimate") - 40);
        worst = fmax(worst, fabs(number(row, "estimate") - 40));
    }
    assert_int_equal(i, number(all, "kernels"));
    assert_true(i > 24);
    assert_true(fabs(off / (double)i - number(all, "mean_error")) < 1e-6);
    assert_int_equal(worst, number(all, "worst"));
}

static void check_candidates(const json_t *all) {
    const json_t *drawn = json_object_get(all, "candidates"), *one = NULL;
    size_t i = 0;
    double count = 0, off = 0, near = 0, same = 0;
    json_array_foreach(json_object_get(all, "candidates_by_kernel"), i, one) {
        cli_keys(
            one,
            "kernel:s candidates:i blocks_right:n mean_error:n worst:i refused:i within_8:n mape:n "
            "spilled_ptxas:i spilled_model:i spilled_both:i");
        assert_int_equal(number(one, "spilled_ptxas"), number(one, "candidates"));
        count += number(one, "candidates");
        off += number(one, "candidates") * number(one, "mean_error");
        near += number(one, "candidates") * number(one, "within_8");
        same += number(one, "candidates") * number(one, "blocks_right");
        assert_int_equal(number(one, "refused"), 0);
    }
    assert_int_equal(i, 4);
    assert_int_equal(count + number(all, "candidates_refused"), 8);
    assert_int_equal(number(drawn, "candidates"), count);
    assert_int_equal(number(drawn, "spilled_ptxas"), count);
    assert_true(fabs(number(drawn, "mean_error") - off / count) < 1e-6);
    assert_true(fabs(number(drawn, "within_8") - near / count) < 1e-6);
    assert_true(fabs(number(drawn, "blocks_right") - same / count) < 1e-6);
}

static void test_figures(void **state) {
    (void)state;
    cli_write("ptxas", SCRIPT);
    assert_int_equal(chmod(cli_path("ptxas"), 0700), 0);
    assert_int_equal(setenv("EVOKE_PTXAS", cli_path("ptxas"), 1), 0);
    json_t *all =
        cli_json(CLI_RUN("bench", "model", "--only", "registers", "--variants", "2", "--json"), 0);
    check_rows(all);
    check_candidates(all);
    json_decref(all);
}

static void test_without(void **state) {
    (void)state;
    assert_int_equal(setenv("EVOKE_PTXAS", "none", 1), 0);
    cli_expect_error(CLI_RUN("bench", "model", "--only", "registers"), 2, "EVOKE_PTXAS");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_figures),
                                       cmocka_unit_test(test_without)};
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
