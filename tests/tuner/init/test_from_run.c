/* evoke init --from-run: launches of a program of the driver API become tasks that check and can be
 * tuned without an edit by hand, with the program's own data; whatever stands against it is said.
 */
#include "base/file.h"
#include "corpora/npy.h"
#include "tests/cli_run.h"
#include "tuner/init/draft_trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#define PTX "tests/tuner/init/recorded/kernels.ptx"
#define SOURCE "tests/tuner/init/recorded/kernels.cu"

static const char PROGRAM[] = EVOKE_BINARY_DIR "/tests/recorded_program";
static const char DRIVER_PROGRAM[] = EVOKE_BINARY_DIR "/tests/driver_program";

static void must_have(const char *text, const char *part) {
    if (strstr(text, part) == NULL)
        fail_msg("there is no '%s' in:\n%s", part, text);
}

/* Makes the task of a kernel, which is the program's mode, too; what was said is the caller's. */
static ev_proc_result record(const char *kernel, const char *name, const char *source) {
    return CLI_RUN("init", "--from-run", PROGRAM, "--source", source, "--kernel", kernel, "--out",
                   cli_path(name), PTX, kernel);
}

static void check_task(const char *folder) {
    char json[128];
    snprintf(json, sizeof json, "%s/task.json", folder);
    ev_proc_result r = CLI_RUN("check", cli_path(json));
    if (r.exit_code != 0)
        fail_msg("%s: %s%s", folder, ev_str_text(&r.out), ev_str_text(&r.err));
    ev_proc_result_free(&r);
}

static void launches_become_tasks_that_check(void **state) {
    (void)state;
    static const struct {
        const char *kernel, *parts[5];
    } rows[] = {
        /* Indices, so no data are generated; two buffers of one length that no size gives. */
        {"spmv",
         {"\"name\": \"columns\", \"kind\": \"in\", \"type\": \"s32\", \"count\": \"values_count\"",
          "\"count\": \"rows + 1\"", "{\"rows\": 1000, \"values_count\": 5000}",
          "\"columns\": {\"file\": \"data/launch2/columns.npy\"}", "launch2-smoke"}},
        /* Two buffers of one allocation, the second at an address of 4 bytes; a factor that differs
         * from launch to launch. */
        {"saxpy",
         {"\"name\": \"a\", \"kind\": \"scalar\", \"type\": \"f32\"}", "\"align\": 4",
          "\"kind\": \"inout\", \"type\": \"f32\", \"count\": \"n\"", "{\"n\": 1000, \"a\": 2.5}",
          "ceil_div(n, 128)"}},
        /* A variable that the host fills, and borders that stay as they were. */
        {"smooth",
         {"\"taps\": {\"file\": \"data/launch1/taps.npy\"}",
          "\"name\": \"out\", \"kind\": \"inout\"", "\"low\": 0.0625, \"high\": 0.375",
          "\"type\": \"f64\", \"count\": \"n\"", "\"odd\""}},
        /* A struct with a buffer in it. */
        {"relax",
         {"\"plate.heat\": {\"file\": \"data/launch1/plate.heat.npy\"}", "\"value\": 0.1",
          "[\"ceil_div(columns, 16)\", \"ceil_div(rows, 8)\"]", "{\"columns\": 500, \"rows\": 24}",
          "\"count\": \"columns * rows\""}},
        /* The instance of a template by its name in the PTX, in a buffer that is longer. */
        {"square",
         {"\"entry\": \"square<int>\"", "\"grid\": \"7\"", "\"count\": \"n\"", "{\"n\": 1000}",
          "\"low\": 0, \"high\": 99"}},
        /* Structs with fields of several types have the data of each field's range. */
        {"drift",
         {"\"stride\": 16, \"fields\": [\n      {\"name\": \"x\", \"type\": \"f32\", \"offset\": 0",
          "\"particles\": {\"file\": \"data/launch2/particles.npy\"}", "\"value\": 0.25",
          "{\"n\": 1000, \"force_count\": 8}", "\"type\": \"f32\", \"count\": \"force_count\""}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char json[64];
        snprintf(json, sizeof json, "%s/task.json", rows[i].kernel);
        ev_proc_result r = record(rows[i].kernel, rows[i].kernel, SOURCE);
        cli_expect(&r, 0);
        must_have(r.out.data, "The source's kernel leaves what the program's left");
        ev_proc_result_free(&r);
        char *text = cli_read(json);
        for (size_t k = 0; k < 5; k++)
            must_have(text, rows[i].parts[k]);
        free(text);
        check_task(rows[i].kernel);
    }
}

/* What is compiled for a launch does not read what other kernels of the file read. */
static void symbols_of_other_kernels_are_left_out(void **state) {
    (void)state;
    char *text = cli_read("saxpy/task.json");
    assert_null(strstr(text, "taps"));
    free(text);
}

static void a_recorded_task_is_tuned(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("tune", cli_path("spmv/task.json"), "--evaluations", "60", "--out",
                               cli_path("spmv.tar"), "--records", cli_path("spmv.sqlite"));
    cli_expect(&r, 0);
    must_have(r.out.data, "launch1-held-out-time");
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path("spmv.tar"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* The float elements of a file; the caller's. */
static float *read_floats(const char *name, uint64_t count) {
    char *bytes = NULL;
    size_t length = 0;
    npy_header header;
    ev_error err;
    if (ev_file_read(cli_path(name), &bytes, &length, &err) != EV_OK ||
        npy_header_read(name, bytes, length, EV_F32, &header, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(header.count, count);
    memmove(bytes, bytes + header.offset, length - header.offset);
    return (float *)(void *)bytes;
}

/* The data of the second launch are what the first left, and its outputs what saxpy makes of them.
 */
static void the_data_are_the_programs(void **state) {
    (void)state;
    enum { N = 1000 };
    float *x = read_floats("saxpy/data/launch2/x.npy", N);
    float *before = read_floats("saxpy/data/launch2/y.npy", N);
    float *first = read_floats("saxpy/data/launch1/y.expected.npy", N);
    float *after = read_floats("saxpy/data/launch2/y.expected.npy", N);
    for (int i = 0; i < N; i++) {
        assert_true(before[i] == first[i]); /* NOLINT(clang-diagnostic-float-equal): bits */
        assert_true(fabsf(after[i] - (before[i] + 1.5f * x[i])) < 1e-5f);
    }
    assert_true(fabsf(x[0]) + fabsf(x[1]) + fabsf(x[2]) > 0);
    free(x);
    free(before);
    free(first);
    free(after);
}

static void expect_shell(const char *line) {
    ev_proc_result r = cli_shell(line);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* The same bytes again, and nothing of the recording beside them. */
static void recording_is_deterministic(void **state) {
    (void)state;
    char line[512];
    ev_proc_result r = record("spmv", "again", SOURCE);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    snprintf(line, sizeof line, "diff -r %s/spmv %s/again && test ! -e %s/again/recorded",
             cli_folder(), cli_folder(), cli_folder());
    expect_shell(line);
}

static void launches_are_bounded(void **state) {
    (void)state;
    char line[512];
    ev_proc_result r =
        CLI_RUN("init", "--from-run", PROGRAM, "--source", SOURCE, "--kernel", "saxpy",
                "--launches", "1", "--out", cli_path("first"), PTX, "saxpy");
    cli_expect(&r, 0);
    must_have(r.out.data, "1 recorded launch of");
    must_have(r.out.data, "the held-out case is timed with the data of the search's");
    ev_proc_result_free(&r);
    snprintf(line, sizeof line, "test -e %s/first/data/launch1 && test ! -e %s/first/data/launch2",
             cli_folder(), cli_folder());
    expect_shell(line);
    cli_expect_error(CLI_RUN("init", "--from-run", PROGRAM, "--source", SOURCE, "--kernel", "saxpy",
                             "--record-mb", "1", "--out", cli_path("most"), PTX, "saxpy", "200000"),
                     2,
                     "launch 1 (_Z5saxpyfPKfPfi) is not recorded: its buffers before and after "
                     "have 3.2 MB, and 0.0 of 1.0 MB are taken");
    assert_false(ev_path_exists(cli_path("most")));
    assert_false(ev_path_exists(cli_path("most.new")));
}

/* examples/driver makes a launch that traps: it is left out, and said. */
static void launches_that_fail_are_left_out(void **state) {
    (void)state;
    ev_proc_result r =
        CLI_RUN("init", "--from-run", DRIVER_PROGRAM, "--source", "examples/driver/kernels.cu",
                "--kernel", "vector_add", "--out", cli_path("add"), "examples/driver/kernels.ptx");
    cli_expect(&r, 0);
    must_have(r.out.data, "launch 4 is left out: it ended with error 700 of the driver");
    must_have(r.out.data, "1 recorded launch of");
    ev_proc_result_free(&r);
    check_task("add");
}

/* Host code that nvcc makes of <<< >>>, of both versions of the runtime library. */
static void programs_of_the_runtime_library_are_recorded(void **state) {
    (void)state;
    static const char *const programs[] = {"12", "13"};
    for (size_t i = 0; i < 2; i++) {
        char program[256], folder[32];
        snprintf(program, sizeof program, EVOKE_BINARY_DIR "/tests/client_runtime_%s", programs[i]);
        snprintf(folder, sizeof folder, "runtime%s", programs[i]);
        ev_proc_result r = CLI_RUN("init", "--from-run", program, "--source", SOURCE, "--kernel",
                                   "saxpy", "--out", cli_path(folder), PTX, "96");
        cli_expect(&r, 0);
        must_have(r.out.data, "the largest relative L2 error is 0\n");
        ev_proc_result_free(&r);
        check_task(folder);
    }
    char *text = cli_read("runtime13/task.json");
    must_have(text, "\"grid\": \"ceil_div(n, 96)\", \"block\": \"96\"");
    free(text);
}

/* Another source than the program's: the task is written, and the user is told. */
static void another_source_is_told(void **state) {
    (void)state;
    char *text = NULL;
    size_t bytes = 0;
    ev_error err;
    if (ev_file_read(SOURCE, &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    cli_write("kernels.cu", text);
    free(text);
    cli_copy_changed("kernels.cu", "other.cu", "a * x[i]", "a * x[i] + 1");
    ev_proc_result r = record("saxpy", "other", cli_path("other.cu"));
    cli_expect(&r, 1);
    must_have(r.out.data, "does NOT leave what the program's left: launch 1, y: other numbers");
    ev_proc_result_free(&r);
    /* Fields are compared as what they are: a float a little off is another compiler's. */
    cli_copy_changed("kernels.cu", "near.cu", "particles[i].x += step * f",
                     "particles[i].x += step * f * 1.0000001f");
    r = record("drift", "near", cli_path("near.cu"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    cli_copy_changed("kernels.cu", "far.cu", "particles[i].cell + 1", "particles[i].cell + 2");
    r = record("drift", "far", cli_path("far.cu"));
    cli_expect(&r, 1);
    must_have(r.out.data, "launch 1, particles: other numbers");
    ev_proc_result_free(&r);
    cli_copy_changed("kernels.cu", "reads.cu", "y[i] += a * x[i]", "y[i + n] += a * x[i]");
    r = record("saxpy", "reads", cli_path("reads.cu"));
    cli_expect(&r, 1);
    must_have(r.out.data, "does not run on the recorded data:\n  launch 1: ");
    must_have(r.out.data, "out-of-bounds");
    ev_proc_result_free(&r);
    cli_copy_changed("kernels.cu", "fewer.cu", "float a, const float *x", "const float *x");
    cli_copy_changed("fewer.cu", "fewer.cu", "a * x[i]", "x[i]");
    cli_expect_error(record("saxpy", "fewer", cli_path("fewer.cu")), 2,
                     "the program's kernel _Z5saxpyfPKfPfi has parameters of 4, 8, 8, 4 bytes, and "
                     "saxpy of the source has others");
}

static void programs_are_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *mode, *words;
    } rows[] = {
        {"fail", "ended with exit code 3, so no task is made of its launches\nIts last messages:\n"
                 "the answer is wrong"},
        {"nothing", "never called cuInit of libcuda.so.1 on the stand-in"},
        {"silent", "launched no kernel"},
        {"graph", "launched no kernel\nThe stand-in said:\ncuGraphCreate: not supported"},
        {"tables", "ended with exit code 1, so no task is made of its launches\nIt asked for "
                   "private tables of NVIDIA's driver, as NVIDIA's CUDA runtime library does. The "
                   "stand-in has none: link the library as a shared one (nvcc -cudart shared)"},
        {"spmv", "launched no kernel saxpy; it launched: _ZN3ops4spmvEPKiS1_PKfS3_Pfi"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ev_proc_result r = CLI_RUN("init", "--from-run", PROGRAM, "--source", SOURCE, "--kernel",
                                   "saxpy", "--out", cli_path("none"), PTX, rows[i].mode);
        cli_expect(&r, 2);
        must_have(r.err.data, rows[i].words);
        ev_proc_result_free(&r);
        assert_false(ev_path_exists(cli_path("none")));
        assert_false(ev_path_exists(cli_path("none.new")));
    }
}

/* An output that the first launch leaves alone is one that begins with contents. */
static void an_output_may_be_left_alone(void **state) {
    (void)state;
    ev_proc_result r = record("choose", "choose", SOURCE);
    cli_expect(&r, 0);
    must_have(r.out.data, "the largest relative L2 error is 0\n");
    ev_proc_result_free(&r);
    char *text = cli_read("choose/task.json");
    must_have(text, "\"name\": \"y\", \"kind\": \"inout\"");
    free(text);
    check_task("choose");
}

/* Two processes that launch the kernel: which came first is not known. */
static void one_process_is_recorded(void **state) {
    (void)state;
    char line[1024];
    snprintf(line, sizeof line, "#!/bin/sh\n%s %s saxpy 100 && %s %s saxpy 200\n", PROGRAM, PTX,
             PROGRAM, PTX);
    cli_write("twice.sh", line);
    assert_int_equal(chmod(cli_path("twice.sh"), 0755), 0);
    cli_expect_error(CLI_RUN("init", "--from-run", cli_path("twice.sh"), "--source", SOURCE,
                             "--kernel", "saxpy", "--out", cli_path("none")),
                     2, "2 processes of");
    assert_false(ev_path_exists(cli_path("none")));
    cli_expect_error(
        CLI_RUN("init", "--from-run", "./a=b", "--source", SOURCE, "--kernel", "saxpy"), 2,
        "link to the program by another name");
}

static void words_are_checked(void **state) {
    (void)state;
    cli_expect_error(
        CLI_RUN("init", "--from-run", cli_path("missing"), "--source", SOURCE, "--kernel", "saxpy"),
        2, "there is no such program");
    cli_expect_error(CLI_RUN("init", "--from-run", "no-such-program-anywhere", "--source", SOURCE,
                             "--kernel", "saxpy"),
                     2, "PATH has no such program");
    cli_expect_error(CLI_RUN("init", "--from-run", SOURCE, "--source", SOURCE, "--kernel", "saxpy"),
                     2, "the file cannot be run");
    cli_expect_error(
        CLI_RUN("init", "--from-run", PROGRAM, "--source", SOURCE), 2,
        "has several kernels; name one: spmv, saxpy, smooth, relax, square, drift, choose");
    cli_expect_error(CLI_RUN("init", "--from-run", PROGRAM, "--source", PTX), 2,
                     "a search begins with CUDA C or LLVM IR, not with PTX");
    cli_expect_error(CLI_RUN("init", "--from-run", PROGRAM, "--source", "kernel.ll"), 2,
                     "LLVM IR does not say what its pointers point to");
    cli_expect_error(CLI_RUN("init", "--from-run", PROGRAM, "--source", SOURCE, "--kernel", "saxpy",
                             "--launches", "0"),
                     2, "--launches 0: a task needs a launch");
    cli_expect_error(CLI_RUN("init", SOURCE, "--kernel", "saxpy"), 2,
                     "--kernel needs --from-run PROGRAM");
    cli_expect_error(CLI_RUN("init", SOURCE, "saxpy", "spmv"), 2,
                     "init takes FILE.cu [KERNEL]; remove 'spmv'");
    cli_expect_error(CLI_RUN("init"), 2, "init needs FILE.cu [KERNEL], or --from-run PROGRAM");
    ev_proc_result r = CLI_RUN("init", "--from-run", PROGRAM, PTX, "saxpy");
    cli_expect(&r, 2);
    must_have(r.err.data, "launched these kernels: _Z5saxpyfPKfPfi\nTheir modules are PTX, and a "
                          "search begins with CUDA C: name the source of one by --source FILE.cu");
    ev_proc_result_free(&r);
}

static void instances_are_read_from_names(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"_Z5scaleIfLi4EEvPT_i", "scale", "scale<float, 4>"},
        {"_ZN3ops5scaleIdLb1ELin3E6__halfEEvPT_", "scale", "scale<double, true, -3, __half>"},
        {"_Z5scalePfi", "scale", NULL},
        {"_Z5scaleIPfEvT_", "scale", NULL}, /* a pointer */
        {"_Z5scaleILi4", "scale", NULL},    /* cut off */
        {"_Z5scaleI99xEvv", "scale", NULL}, /* longer than the text */
        {"_Z5scaleIEvv", "scale", NULL},    /* none */
        {"scale", "scale", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *got = draft_instance_of(rows[i][0], rows[i][1]);
        if (rows[i][2] == NULL)
            assert_null(got);
        else if (got == NULL || strcmp(got, rows[i][2]) != 0)
            fail_msg("%s is %s", rows[i][0], got != NULL ? got : "nothing");
        free(got);
    }
}

/* A launch that costs more than a check of it may. */
static void launches_that_are_too_dear_are_no_cases(void **state) {
    (void)state;
    static const char source[] = "__global__ void twice(float *x, int n) { x[0] = 2 * n; }\n";
    const trace_launch launch = {.kernel = "twice", .number = 7};
    cuda_text *t = NULL;
    draft d;
    ev_error err;
    traced_case *c = calloc(1, sizeof *c);
    draft_trace dt = {.d = &d, .cases = c, .count = 1, .generates = true};
    ev_str cases = EV_STR_EMPTY;
    assert_non_null(c);
    assert_int_equal(cuda_text_read(source, strlen(source), &t, &err), EV_OK);
    assert_int_equal(draft_read(t, "twice.cu", NULL, &d, &err), EV_OK);
    c->launch = &launch;
    c->cost = UINT64_C(6200000000);
    assert_int_equal(draft_write_traced(&dt, cli_folder(), &cases, &err), EV_OK);
    must_have(ev_str_text(&cases), "\"name\": \"large\", \"split\": \"search\", \"use\": \"time\"");
    must_have(ev_str_text(&cases), "\"name\": \"other-large\"");
    assert_null(strstr(ev_str_text(&cases), "launch7"));
    must_have(ev_str_text(&d.notes), "no case has recorded data: the cheapest launch takes 6200 ");
    dt.generates = false;
    assert_int_equal(draft_write_traced(&dt, cli_folder(), &cases, &err), EV_BAD);
    must_have(err.text, "launch 7 of twice, the cheapest, takes 6200 million thread instructions");
    draft_free(&d);
    ev_str_free(&cases);
    free(c);
}

static void numbers_are_short(void **state) {
    (void)state;
    ev_str text = EV_STR_EMPTY;
    draft_trace_real(EV_F32, (double)0.1f, &text);
    ev_str_char(&text, ' ');
    draft_trace_real(EV_F64, 0.00375, &text);
    ev_str_char(&text, ' ');
    draft_trace_real(EV_F64, 1.0 / 3, &text);
    assert_string_equal(ev_str_text(&text), "0.1 0.00375 0.3333333333333333");
    ev_str_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launches_become_tasks_that_check),
        cmocka_unit_test(symbols_of_other_kernels_are_left_out),
        cmocka_unit_test(a_recorded_task_is_tuned),
        cmocka_unit_test(the_data_are_the_programs),
        cmocka_unit_test(recording_is_deterministic),
        cmocka_unit_test(launches_are_bounded),
        cmocka_unit_test(launches_that_fail_are_left_out),
        cmocka_unit_test(programs_of_the_runtime_library_are_recorded),
        cmocka_unit_test(another_source_is_told),
        cmocka_unit_test(programs_are_refused_with_the_reason),
        cmocka_unit_test(an_output_may_be_left_alone),
        cmocka_unit_test(one_process_is_recorded),
        cmocka_unit_test(words_are_checked),
        cmocka_unit_test(instances_are_read_from_names),
        cmocka_unit_test(launches_that_are_too_dear_are_no_cases),
        cmocka_unit_test(numbers_are_short),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
