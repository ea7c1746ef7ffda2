/* The binary: reads the command line, calls the command, writes its results, picks the exit code.
 */
#include "tuner/cli/cmd.h"

#include "base/child.h"
#include "base/file.h"
#include "fitness/device/device.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cmd_fn *const commands[CLI_COMMAND_COUNT] = {
    [CLI_LIST] = cmd_list,     [CLI_DEVICES] = cmd_devices, [CLI_TUNE] = cmd_tune,
    [CLI_CHECK] = cmd_check,   [CLI_EXPORT] = cmd_export,   [CLI_EXPLAIN] = cmd_explain,
    [CLI_REPORT] = cmd_report, [CLI_DOCTOR] = cmd_doctor,   [CLI_EDITS] = cmd_edits,
    [CLI_RUN] = cmd_run,       [CLI_PROFILE] = cmd_profile, [CLI_CALIBRATE] = cmd_calibrate,
    [CLI_BENCH] = cmd_bench,   [CLI_WORKER] = cmd_worker,   [CLI_HELP] = cmd_help,
    [CLI_ISA] = cmd_isa,       [CLI_QUALIFY] = cmd_qualify, [CLI_INIT] = cmd_init,
    [CLI_CORPUS] = cmd_corpus,
};

/* A reader that went away (evoke list | head) wanted no more: that is no error. */
static ev_status write_results(const ev_str *out, ev_error *err) {
    const char *at = ev_str_text(out);
    size_t left = out->length;
    while (left > 0) {
        ssize_t put = write(STDOUT_FILENO, at, left);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0 && errno == EPIPE)
            return EV_OK;
        if (put < 0) {
            char reason[128];
            return ev_fail(err, EV_INFRA, "cannot write the results to stdout: %s",
                           strerror_r(errno, reason, sizeof reason));
        }
        at += put;
        left -= (size_t)put;
    }
    return ev_str_status(out, err);
}

/* For worker processes too. */
static ev_status name_toolkit(const char *folder, ev_error *err) {
    char header[PATH_MAX + 32], whole[PATH_MAX];
    bool found = realpath(folder, whole) != NULL;
    (void)snprintf(header, sizeof header, "%s/include/cuda_runtime.h", found ? whole : folder);
    if (!found || !ev_path_exists(header))
        return ev_fail(
            err, EV_BAD,
            "--cuda-path %s: no CUDA toolkit is there; expected %s/include/cuda_runtime.h", folder,
            folder);
    return setenv(EV_CUDA_PATH, whole, 1) == 0 ? EV_OK : ev_fail_memory(err, sizeof whole);
}

static ev_status run_command(const cli_args *args, ev_str *out, int *exit_code, ev_error *err) {
    if (args->help) {
        cli_print_command_help(out, args->command);
        return EV_OK;
    }
    if (cli_flag(args, CLI_OPT_NO_HOLD)) /* for worker processes too */
        (void)setenv(DEVICE_NO_HOLD, "1", 1);
    if (cli_text(args, CLI_OPT_CUDA_PATH) != NULL)
        EV_TRY(name_toolkit(cli_text(args, CLI_OPT_CUDA_PATH), err));
    cmd_context context = {.args = args, .out = out};
    cmd_fn *command = args->version ? cmd_version : commands[args->command];
    ev_status status = command(&context, err);
    *exit_code = context.exit_code;
    return status;
}

/* For programs that evoke starts (workers, clang): malloc asks the kernel for large pages, which
 * makes a search 4 to 6 % faster. What the user has set stays. */
static void ask_for_large_pages(void) {
    (void)setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 0);
}

static void print_error(const ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_error_whole(err, &text);
    bool ended = text.length > 0 && text.data[text.length - 1] == '\n';
    (void)fprintf(stderr, "evoke: %s%s", ev_str_text(&text), ended ? "" : "\n");
    ev_str_free(&text);
}

int main(int argc, char **argv) {
    /* Failing writes are seen where they happen. */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    ask_for_large_pages();
    ev_error err = {0};
    cli_args args;
    int exit_code = 0;
    ev_status status = cli_parse(argc, argv, &args, &err);
    if (status == EV_OK) {
        ev_str out = EV_STR_EMPTY;
        status = run_command(&args, &out, &exit_code, &err);
        ev_error lost = {0};
        ev_status written = write_results(&out, &lost);
        if (status == EV_OK && written != EV_OK) {
            status = written;
            err = lost;
        }
        ev_str_free(&out);
        cli_args_free(&args);
    }
    if (status == EV_OK)
        return exit_code;
    print_error(&err);
    return ev_status_exit_code(status);
}
