/* Inputs beside the plain ones: variables that the host fills, and buffers that begin with other
 * data than the task's zeros. Each PTX file of the folders says in
 * its first line where it must be stopped ("none": nowhere). */
#include "base/file.h"
#include "fitness/gates/fitness_impl.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static candidate candidate_of(bench *b, const char *folder, const char *name) {
    char path[256];
    size_t bytes = 0;
    (void)snprintf(path, sizeof path, FOLDER "%s/%s", folder, name);
    free(b->text);
    OK(ev_file_read(path, &b->text, &bytes, &err));
    return (candidate){.ptx = b->text,
                       .ptx_bytes = bytes,
                       .plan = b->t->starts[0].plan,
                       .start = &b->t->starts[0]};
}

static void open_bench(bench *b, const char *folder, const char *device_id) {
    char path[256];
    score s;
    memset(b, 0, sizeof *b);
    (void)snprintf(path, sizeof path, FOLDER "%s/task.json", folder);
    OK(task_load(path, &b->t, &err));
    OK(device_open(device_id, &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    candidate c = candidate_of(b, folder, "baseline.ptx");
    OK(fitness_set_baseline(b->f, &c, SPLITS_ALL, &s, &err));
}

static void close_bench(bench *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->text);
}

/* ---- every file ---- */

/* A variant may be right and slow: only what it leaves counts. */
static bool is_too_slow(const score *s) {
    return s->stopped == GATE_PROMOTED && s->ns > 0;
}

static void check_file(bench *b, const char *folder, const char *name) {
    candidate c = candidate_of(b, folder, name);
    char expected[32] = "";
    score s;
    assert_int_equal(sscanf(c.ptx, "// expect: %31s", expected), 1);
    OK(fitness_score(b->f, &c, &s, &err));
    if (s.stopped == GATE_NONE) {
        c.bar.is_last = true;
        OK(fitness_promote(b->f, &c, &s, &err));
    }
    const char *stopped = s.stopped == GATE_NONE || is_too_slow(&s) ? "none" : gate_name(s.stopped);
    if (strcmp(stopped, expected) != 0)
        fail_msg("%s/%s: stopped at %s, expected %s (%s)", folder, name, stopped, expected,
                 s.reason);
}

static int is_ptx(const struct dirent *at) {
    return strstr(at->d_name, ".ptx") != NULL;
}

static void check_folder(const char *folder, const char *device_id) {
    bench b;
    char path[256];
    struct dirent **names = NULL;
    open_bench(&b, folder, device_id);
    (void)snprintf(path, sizeof path, FOLDER "%s", folder);
    int count = scandir(path, &names, is_ptx, alphasort);
    assert_true(count > 6);
    for (int i = 0; i < count; i++) {
        check_file(&b, folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    close_bench(&b);
}

static void test_symbols(void **state) {
    (void)state;
    check_folder("symbols", "vm:h200");
}

static void test_symbols_on_cuda(void **state) {
    (void)state;
    check_folder("symbols", "cuda:0");
}

static void test_initial(void **state) {
    (void)state;
    check_folder("initial", "vm:h200");
}

static void test_initial_on_cuda(void **state) {
    (void)state;
    check_folder("initial", "cuda:0");
}

/* ---- what a launch finds in a symbol ---- */

/* Each case has its own data, and other inputs have others. A launch finds those of its case,
 * whatever ran before. */
static void test_data_of_symbols(void **state) {
    (void)state;
    bench b;
    fit_case *first = NULL, *fresh = NULL, *other = NULL;
    open_bench(&b, "symbols", "vm:h200");
    fit_inputs inputs = fit_usual_inputs(b.f);
    const task_case *odd = task_find_case(b.t, "odd"), *zeros = task_find_case(b.t, "zeros");
    OK(fit_case_get(b.f, odd, inputs, &first, &err));
    inputs.fresh++;
    OK(fit_case_get(b.f, odd, inputs, &fresh, &err));
    OK(fit_case_get(b.f, zeros, fit_usual_inputs(b.f), &other, &err));
    size_t at = b.t->argument_count;
    assert_string_equal(first->arguments[at].what->name, "centres");
    assert_int_equal(first->arguments[at].bytes, 128);
    assert_memory_not_equal(first->arguments[at].before, fresh->arguments[at].before, 128);
    assert_true(((const float *)other->arguments[at].before)[5] == 0);
    assert_string_equal(first->oracle_arguments[at + 1].name, "weights");
    assert_ptr_equal(first->oracle_arguments[at + 1].data, first->arguments[at + 1].before);
    candidate c = candidate_of(&b, "symbols", "baseline.ptx");
    static const char *const order[] = {"odd", "zeros", "odd", "large", "zeros"};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        fitness_verdict v;
        OK(fitness_check(b.f, &c, task_find_case(b.t, order[i]), &v, &err));
        if (!v.ok)
            fail_msg("%zu: %s", i, v.reason);
    }
    close_bench(&b);
}

/* The host fills a part, and the rest is zero; a variable that is too small is an error. */
static void test_size_of_symbols(void **state) {
    (void)state;
    static const char ptx[] = ".version 7.8\n.target sm_90\n.address_size 64\n"
                              ".const .align 4 .b8 c[16];\n.global .align 4 .b8 g[16];\n"
                              ".visible .entry k(.param .u64 y)\n{\n.reg .b64 %d<2>;\n"
                              ".reg .b32 %r<5>;\nld.param.u64 %d1, [y];\n"
                              "ld.const.u32 %r1, [c];\nld.const.u32 %r2, [c+8];\n"
                              "ld.global.u32 %r3, [g];\nld.global.u32 %r4, [g+8];\n"
                              "st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4};\nret;\n}\n";
    static const uint32_t data[5] = {7, 8, 9, 10, 11};
    static const char *const devices[] = {"vm:h200", "cuda:0"};
    for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
        device *d = NULL;
        device_kernel *k = NULL;
        device_buffer y = 0;
        device_outcome out;
        uint32_t got[4];
        OK(device_open(devices[i], &d, &err));
        OK(device_load(d, ptx, sizeof ptx - 1, "k", &k, &err));
        OK(device_alloc(d, 16, VM_BUFFER_OUT, "y", &y, &err));
        const uint64_t address = device_address(d, y);
        const launch_geometry one = {{1, 1, 1}, {1, 1, 1}, 0};
        device_launch l = device_launch_of(&one);
        l.params = &address;
        OK(device_fill(d, k, "c", data, 16, &err));
        OK(device_fill(d, k, "g", data + 1, 16, &err));
        OK(device_fill(d, k, "nobody", data, 16, &err));
        OK(device_reset(d, 0xff, &err));
        OK(device_run(d, k, &l, &out, &err));
        OK(device_read(d, y, 0, got, sizeof got, &err));
        assert_true(got[0] == 7 && got[1] == 9 && got[2] == 8 && got[3] == 10);
        OK(device_fill(d, k, "c", data + 2, 4, &err));
        OK(device_fill(d, k, "g", data + 3, 4, &err));
        OK(device_reset(d, 0xff, &err));
        OK(device_run(d, k, &l, &out, &err));
        OK(device_read(d, y, 0, got, sizeof got, &err));
        assert_true(got[0] == 9 && got[1] == 0 && got[2] == 10 && got[3] == 0);
        assert_int_equal(device_fill(d, k, "c", data, 20, &err), EV_BAD);
        assert_non_null(strstr(err.text, "'c' has 16 bytes"));
        device_unload(k);
        device_close(d);
    }
}

/* One SM issues at most 128 thread instructions a cycle, at 3 GHz or the clock of the GPU, and a
 * block of a grid that fills the SMs has a share of one, twice. Only variants that may be given up
 * have the limit, and only at timed cases. */
static void test_fuel_of_hopeless_blocks(void **state) {
    (void)state;
    const task_case timed = {.use = TASK_TIME}, check = {.use = TASK_CHECK};
    fit_case c = {.at = &timed, .baseline = {.done = true, .ns = 1000}};
    candidate who = {.hopeless = 8};
    uint64_t one = fit_fuel_of_blocks(NULL, &c, &who, 1, 9),
             least = fit_fuel_of_blocks(NULL, &c, &who, 0, 9);
    assert_int_equal(fit_fuel_of_blocks(NULL, &c, &who, 3, 9) - one, 2 * 8 * 1000 * 384);
    gpu *g = NULL;
    OK(gpu_load("h200", &g, &err));
    double ghz = gpu_get(g, GPU_BOOST_MHZ) * 1e-3, sms = gpu_get(g, GPU_SM_COUNT);
    double block = 8 * 1000 * 128 * ghz; /* of an SM for the time */
    double few = (double)(fit_fuel_of_blocks(g, &c, &who, 3, 9) - least);
    assert_float_equal(few, 3 * block, 1);
    double many = (double)(fit_fuel_of_blocks(g, &c, &who, 3, (uint64_t)(8 * sms)) - least);
    assert_float_equal(many, 3 * block / 4, 1);
    double unlike = (double)(fit_fuel_of_blocks(g, &c, &who, 3, 0) - least);
    assert_float_equal(unlike, 3 * block, 1);
    gpu_free(g);
    c.baseline.done = false;
    assert_true(fit_fuel_of_blocks(NULL, &c, &who, 1, 9) == UINT64_MAX);
    c.baseline.done = true;
    who.hopeless = 0;
    assert_true(fit_fuel_of_blocks(NULL, &c, &who, 1, 9) == UINT64_MAX);
    who.hopeless = 8;
    c.at = &check;
    assert_true(fit_fuel_of_blocks(NULL, &c, &who, 1, 9) == UINT64_MAX);
}

/* good.ptx, with so many turns of a loop that does nothing before its load; freed by the caller. */
static char *with_turns(const char *good, unsigned turns) {
    static const char load[] = "    ld.global.f32";
    const char *at = strstr(good, load);
    ev_str text = EV_STR_EMPTY;
    assert_non_null(at);
    ev_str_printf(&text,
                  "%.*s    mov.u32 %%r6, 0;\nAGAIN:\n    add.u32 %%r6, %%r6, 1;\n"
                  "    setp.lt.u32 %%p2, %%r6, %u;\n    @%%p2 bra AGAIN;\n%s",
                  (int)(at - good), good, turns, at);
    return ev_str_take(&text);
}

/* At a drawn shape with little to do for a thread, a right candidate may execute a thousand times
 * as much as the baseline: more threads share next to nothing. */
static void test_stress_grants_a_block_for_a_thread(void **state) {
    (void)state;
    bench b;
    fitness_stress *s = NULL;
    fitness_verdict verdict;
    open_bench(&b, ".", "vm:h200");
    candidate c = candidate_of(&b, ".", "good.ptx");
    char *busy = with_turns(c.ptx, 12000);
    c.ptx = busy;
    c.ptx_bytes = strlen(busy);
    OK(fitness_stress_open(b.f, &c, &s, &verdict, &err));
    assert_non_null(s);
    static const task_variation ways[] = {TASK_PLAIN, TASK_NEGATED};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const task_case_inputs with = {.variation = ways[i]};
        fitness_stood stood = FITNESS_UNFIT;
        OK(fitness_stress_try(s, task_find_case(b.t, "odd"), &with, &stood, &verdict, &err));
        if (stood != FITNESS_STOOD)
            fail_msg("%zu: %s", i, stood == FITNESS_FAILED ? verdict.reason : "unfit");
    }
    fitness_stress_close(s);
    close_bench(&b);
    free(busy);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_symbols),
        cmocka_unit_test(test_symbols_on_cuda),
        cmocka_unit_test(test_initial),
        cmocka_unit_test(test_initial_on_cuda),
        cmocka_unit_test(test_data_of_symbols),
        cmocka_unit_test(test_size_of_symbols),
        cmocka_unit_test(test_fuel_of_hopeless_blocks),
        cmocka_unit_test(test_stress_grants_a_block_for_a_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
