/* Devices: what an id opens, buffers and launches through the interface, and limits of a GPU. */
#include "fitness/device/device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ev_error err;

static device *open_ok(const char *id) {
    device *d = NULL;
    if (device_open(id, &d, &err) != EV_OK)
        fail_msg("%s", err.text);
    return d;
}

static void refuse_id(const char *id, const char *words) {
    device *d = NULL;
    assert_int_equal(device_open(id, &d, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, words);
}

static void test_ids(void **state) {
    (void)state;
    char **ids = NULL;
    size_t count = 0;
    assert_int_equal(device_list(&ids, &count, &err), EV_OK);
    assert_true(count >= 7);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(ids[i], "vm:", 3) != 0)
            continue; /* a GPU of this machine */
        device *d = open_ok(ids[i]);
        const device_properties *p = device_properties_of(d);
        assert_string_equal(p->id, ids[i]);
        assert_true(p->modelled && p->max_threads_per_block == 1024 && p->sm >= 60);
        device_close(d);
    }
    device_list_free(ids, count);
    device *own = open_ok("vm:fitness/model/gpus/t4.json");
    assert_int_equal(device_properties_of(own)->sm, 75);
    device_close(own);
    refuse_id("vm:h300", "h200");
    refuse_id("gpu", "vm:h200");
    refuse_id("vm:none.json", "none.json");
}

/* y[i] = x[i] + 1 for the first param_2 elements */
static const char ADD_ONE[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .entry add_one(.param .u64 x, .param .u64 y, .param .u32 n)\n"
    ".maxntid 512, 1, 1\n{\n"
    ".reg .pred %p<2>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"
    "ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\nld.param.u32 %r1, [n];\n"
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
    "mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"
    "mul.wide.u32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
    "ld.global.u32 %r6, [%rd4];\nadd.s32 %r6, %r6, 1;\nst.global.u32 [%rd5], %r6;\n"
    "DONE:\nret;\n}\n";

typedef struct fixture {
    device *d;
    device_kernel *kernel;
    device_buffer x, y;
    struct {
        uint64_t x, y;
        uint32_t n;
    } params;
} fixture;

#define COUNT 1000

static void fill(fixture *s) {
    uint32_t values[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = i * i;
    assert_int_equal(device_alloc(s->d, sizeof values, VM_BUFFER_IN, "x", &s->x, &err), EV_OK);
    assert_int_equal(device_alloc(s->d, sizeof values, VM_BUFFER_OUT, "y", &s->y, &err), EV_OK);
    assert_int_equal(device_write(s->d, s->x, 0, values, sizeof values, &err), EV_OK);
    if (device_load(s->d, ADD_ONE, strlen(ADD_ONE), NULL, &s->kernel, &err) != EV_OK)
        fail_msg("%s", err.text);
    s->params.x = device_address(s->d, s->x);
    s->params.y = device_address(s->d, s->y);
    s->params.n = COUNT;
}

static void set_up(fixture *s) {
    memset(s, 0, sizeof *s);
    s->d = open_ok("vm:a100");
    fill(s);
}

static void tear_down(fixture *s) {
    device_unload(s->kernel);
    device_close(s->d);
}

static device_launch launch_of(const fixture *s, uint32_t grid, uint32_t block) {
    return (device_launch){
        .grid = {grid, 1, 1}, .block = {block, 1, 1}, .params = &s->params, .checks = VM_CHECK_ALL};
}

static void test_run(void **state) {
    (void)state;
    fixture s;
    set_up(&s);
    device_launch l = launch_of(&s, 8, 128);
    device_outcome out;
    assert_int_equal(device_reset(s.d, 0xff, &err), EV_OK);
    assert_int_equal(device_run(s.d, s.kernel, &l, &out, &err), EV_OK);
    assert_true(out.ok);
    uint32_t got[COUNT];
    assert_int_equal(device_read(s.d, s.y, 0, got, sizeof got, &err), EV_OK);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(got[i], i * i + 1);
    uint8_t written[COUNT];
    uint64_t many = 0;
    assert_int_equal(device_written(s.d, s.y, 4, 0, COUNT, written, &many, &err), EV_OK);
    assert_int_equal(many, COUNT);
    assert_int_equal(device_reset(s.d, 0xff, &err), EV_OK);
    assert_int_equal(device_written(s.d, s.y, 4, 0, COUNT, written, &many, &err), EV_OK);
    assert_int_equal(many, 0);
    s.params.n = COUNT + 1;
    assert_int_equal(device_run(s.d, s.kernel, &l, &out, &err), EV_OK);
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, VM_TRAP_OUT_OF_BOUNDS);
    tear_down(&s);
}

#define RANKS 3

/* Each rank writes the next one's y. */
static void test_ranks(void **state) {
    (void)state;
    fixture s[RANKS] = {{0}};
    device *devices[RANKS];
    const device_kernel *kernels[RANKS];
    device_launch launches[RANKS];
    device_outcome out[RANKS];
    assert_int_equal(device_open_ranks("vm:a100", RANKS, devices, &err), EV_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        s[i].d = devices[i];
        fill(&s[i]);
        kernels[i] = s[0].kernel;
        launches[i] = launch_of(&s[i], 8, 128);
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        s[i].params.y = device_address(devices[(i + 1) % RANKS], s[(i + 1) % RANKS].y);
        s[i].params.n = COUNT - 100 * i;
    }
    if (device_run_ranks(devices, kernels, launches, RANKS, out, &err) != EV_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < RANKS; i++) {
        uint32_t last = 0, n = s[i].params.n;
        device *next = devices[(i + 1) % RANKS];
        assert_true(out[i].ok);
        assert_int_equal(out[i].counters.peer_store_bytes, n * 4);
        assert_int_equal(device_read(next, s[(i + 1) % RANKS].y, (n - 1) * 4ul, &last, 4, &err),
                         EV_OK);
        assert_int_equal(last, (n - 1) * (n - 1) + 1);
    }
    s[1].params.n = COUNT + 1;
    assert_int_equal(device_run_ranks(devices, kernels, launches, RANKS, out, &err), EV_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_false(out[i].ok);
        assert_int_equal(out[i].fault.rank, 1);
        assert_int_equal(out[i].fault.kind, VM_TRAP_OUT_OF_BOUNDS);
    }
    launches[2].block[0] = 1025;
    assert_int_equal(device_run_ranks(devices, kernels, launches, RANKS, out, &err), EV_BAD);
    assert_non_null(strstr(err.text, "rank 2: a block of 1025"));
    for (uint32_t i = 0; i < RANKS; i++)
        tear_down(&s[i]);
    assert_int_equal(device_open_ranks("gpu:0", 2, devices, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no device 'gpu:0'"));
}

static void test_time(void **state) {
    (void)state;
    fixture s;
    set_up(&s);
    device_launch l = launch_of(&s, 8, 128);
    const uint32_t sample[] = {2, 5};
    l.sample = sample;
    l.sample_count = 2;
    l.stalls = calloc(vm_module_insn_count(device_kernel_module(s.kernel)), sizeof *l.stalls);
    device_outcome out;
    device_timing timing;
    assert_int_equal(device_reset(s.d, 0xff, &err), EV_OK);
    assert_int_equal(device_time(s.d, s.kernel, &l, &out, &timing, &err), EV_OK);
    assert_true(out.ok && timing.ns > 0 && timing.low_ns == timing.ns);
    assert_int_equal(timing.model.sampled_blocks, 2);
    /* What was stored: two blocks of 128 elements. */
    size_t count = 0;
    const uint64_t *stored = device_stored(s.d, &count);
    assert_int_equal(count, 2 * 128 * 4 / 32);
    for (size_t i = 0; i < count; i++)
        assert_true(stored[i] * 32 >= s.params.y &&
                    stored[i] * 32 < s.params.y + (uint64_t)COUNT * 4);
    free(l.stalls);
    tear_down(&s);
}

static void refuse_launch(const fixture *s, const device_launch *l, const char *words) {
    device_outcome out;
    assert_int_equal(device_run(s->d, s->kernel, l, &out, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, words);
}

static void test_limits(void **state) {
    (void)state;
    fixture s;
    set_up(&s);
    assert_int_equal(device_kernel_resources(s.kernel).max_threads, 512);
    device_launch l = launch_of(&s, 8, 1025);
    refuse_launch(&s, &l, "at most 1024");
    l = launch_of(&s, 8, 1024);
    refuse_launch(&s, &l, "own bound is 512");
    l = launch_of(&s, 0, 128);
    refuse_launch(&s, &l, "no threads");
    l = launch_of(&s, 1, 128);
    l.grid[1] = 65536;
    refuse_launch(&s, &l, "65535");
    l = launch_of(&s, 8, 128);
    l.dynamic_shared = 166913;
    refuse_launch(&s, &l, "166913 bytes of shared memory; vm:a100 has 166912");
    tear_down(&s);
}

static void test_load(void **state) {
    (void)state;
    fixture s;
    set_up(&s);
    device_kernel *kernel = NULL;
    size_t bytes = strlen(ADD_ONE);
    assert_int_equal(device_load(s.d, ADD_ONE, bytes, "add_two", &kernel, &err), EV_BAD);
    assert_non_null(strstr(err.text, "'add_two'"));
    assert_non_null(strstr(err.text, "add_one"));
    device *p100 = open_ok("vm:p100");
    assert_int_equal(device_load(p100, ADD_ONE, bytes, NULL, &kernel, &err), EV_BAD);
    assert_non_null(strstr(err.text, "sm_70"));
    device_close(p100);
    assert_int_equal(device_load(s.d, "gibberish", 9, NULL, &kernel, &err), EV_BAD);
    device_buffer huge = 0;
    assert_int_equal(device_alloc(s.d, UINT64_C(200000000000), VM_BUFFER_OUT, "huge", &huge, &err),
                     EV_BAD);
    tear_down(&s);
}

/* Blocks learn from others by the result of an atomic or of a strong load, if something reads it.
 */
static void test_who_may_wait(void **state) {
    (void)state;
    static const struct {
        const char *code;
        bool may_wait;
    } rows[] = {{"red.global.add.u32 [%rd1], 1;", false},
                {"atom.global.add.u32 %r1, [%rd1], 1;", false},
                {"atom.global.add.u32 %r1, [%rd1], 1;\nst.global.u32 [%rd1+4], %r1;", true},
                {"atom.shared.add.u32 %r1, [%rd1], 1;\nst.global.u32 [%rd1+4], %r1;", false},
                {"ld.volatile.global.u32 %r1, [%rd1];", false},
                {"ld.volatile.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1+4], %r1;", true},
                {"ld.global.u32 %r1, [%rd1];\nst.global.u32 [%rd1+4], %r1;", false}};
    device *d = open_ok("vm:h200");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[600];
        device_kernel *kernel = NULL;
        (void)snprintf(
            text, sizeof text,
            ".version 7.8\n.target sm_70\n.address_size 64\n"
            ".visible .entry k(.param .u64 x)\n{\n.reg .b32 %%r<8>;\n.reg .b64 %%rd<8>;\n"
            "ld.param.u64 %%rd1, [x];\n%s\nret;\n}\n",
            rows[i].code);
        if (device_load(d, text, strlen(text), NULL, &kernel, &err) != EV_OK)
            fail_msg("%s: %s", rows[i].code, err.text);
        if (device_kernel_may_wait(kernel) != rows[i].may_wait)
            fail_msg("%s", rows[i].code);
        device_unload(kernel);
    }
    device_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),          cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_run),          cmocka_unit_test(test_time),
        cmocka_unit_test(test_limits),       cmocka_unit_test(test_load),
        cmocka_unit_test(test_who_may_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
