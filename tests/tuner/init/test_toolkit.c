/* evoke --cuda-path: sources that need a CUDA toolkit's headers. The tests of the headers are left
 * out where no toolkit is (CUDA_PATH, /usr/local/cuda). */
#include "base/file.h"
#include "tests/cli_run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* NULL: there is none. */
static const char *toolkit(void) {
    const char *folder = getenv("CUDA_PATH");
    char header[512];
    folder = folder != NULL ? folder : "/usr/local/cuda";
    snprintf(header, sizeof header, "%s/include/cuda_runtime.h", folder);
    return ev_path_exists(header) ? folder : NULL;
}

static void must_have(const char *text, const char *part) {
    if (strstr(text, part) == NULL)
        fail_msg("there is no '%s' in:\n%s", part, text);
}

static void without_a_toolkit_the_option_is_named(void **state) {
    (void)state;
    ev_proc_result r =
        CLI_RUN("init", "tests/tuner/init/sources/blockscan.cu", "--out", cli_path("none"));
    cli_expect(&r, 2);
    must_have(r.err.data, "'cub/block/block_load.cuh' file not found");
    must_have(r.err.data, "with a CUDA toolkit, --cuda-path DIR takes the toolkit's");
    ev_proc_result_free(&r);
}

static void a_folder_without_a_toolkit_is_refused(void **state) {
    (void)state;
    static const char *const folders[] = {"tests", "tests/no/such/folder"};
    for (size_t i = 0; i < 2; i++) {
        ev_proc_result r = CLI_RUN("init", "tests/tuner/init/sources/blockscan.cu", "--out",
                                   cli_path("none"), "--cuda-path", folders[i]);
        cli_expect(&r, 2);
        must_have(r.err.data, "no CUDA toolkit is there; expected tests");
        must_have(r.err.data, "/include/cuda_runtime.h");
        ev_proc_result_free(&r);
    }
}

/* A kernel of CUDA's headers becomes a task, which is checked and searched. */
static void becomes_a_task(const char *source, const char *folder, bool searches) {
    char path[128], json[64], next[600];
    if (toolkit() == NULL) {
        (void)puts("skipped: there is no CUDA toolkit (CUDA_PATH, /usr/local/cuda)");
        skip();
    }
    snprintf(path, sizeof path, "tests/tuner/init/sources/%s", source);
    snprintf(json, sizeof json, "%s/task.json", folder);
    ev_proc_result r = CLI_RUN("init", path, "--out", cli_path(folder), "--cuda-path", toolkit());
    cli_expect(&r, 0);
    snprintf(next, sizeof next, "task.json --cuda-path %s\n", toolkit());
    must_have(r.out.data, next);
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path(json));
    cli_expect(&r, 2);
    must_have(r.err.data, "--cuda-path DIR");
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path(json), "--cuda-path", toolkit());
    cli_expect(&r, 0);
    must_have(r.out.data, "verdict: pass");
    ev_proc_result_free(&r);
    if (!searches)
        return;
    r = CLI_RUN("tune", cli_path(json), "--cuda-path", toolkit(), "--evaluations", "12");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

static void cub_and_thrust(void **state) {
    (void)state;
    becomes_a_task("blockscan.cu", "scan", true);
}

static void groups_halves_and_random_numbers(void **state) {
    (void)state;
    becomes_a_task("groupsum.cu", "sums", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_toolkit_the_option_is_named),
        cmocka_unit_test(a_folder_without_a_toolkit_is_refused),
        cmocka_unit_test(cub_and_thrust),
        cmocka_unit_test(groups_halves_and_random_numbers),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
