/* Groups: a buffer is the ranks' parts one behind the other, a launch runs on all ranks with each
 * one's parameters, counters are sums, and the time is that of the slowest rank. */
#include "fitness/device/device_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define PART ((size_t)64) /* elements of a rank */

static ev_error err;

/* out[i] = in[i] + rank; rank 1 reads its input `turns` times. */
static const char KERNEL[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u32 rank, .param .u32 turns) {\n"
    ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4;\n"
    "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u32 %r1, [rank];\n"
    "ld.param.u32 %r3, [turns]; add.u64 %d1, %d1, %d0; add.u64 %d2, %d2, %d0;\n"
    "AGAIN: ld.global.u32 %r2, [%d1]; sub.u32 %r3, %r3, 1; setp.gt.s32 %p0, %r3, 0;\n"
    "@%p0 bra AGAIN; add.u32 %r2, %r2, %r1; st.global.u32 [%d2], %r2; ret; }\n";

typedef struct params {
    uint64_t in, out;
    uint32_t rank, turns;
} params;

typedef struct rig {
    device *d;
    device_kernel *kernel;
    device_buffer in, out;
    params params[3];
    const void *all[3];
    device_launch launch;
} rig;

static void open_rig(rig *r, uint32_t ranks) {
    *r = (rig){.launch = {.grid = {1, 1, 1}, .block = {PART, 1, 1}, .checks = VM_CHECK_ALL}};
    uint32_t values[3 * PART];
    uint64_t bytes = (uint64_t)ranks * PART * 4;
    for (uint32_t i = 0; i < (uint32_t)(3 * PART); i++)
        values[i] = i * 7;
    OK(device_open_group("vm:h200", 3, &r->d, &err));
    assert_int_equal(device_group_count(r->d), 3);
    device_group_spread(r->d, ranks);
    OK(device_alloc(r->d, bytes, VM_BUFFER_IN, "in", &r->in, &err));
    OK(device_alloc_odd(r->d, bytes, 16, VM_BUFFER_OUT, "out", &r->out, &err));
    OK(device_write(r->d, r->in, 0, values, bytes, &err));
    OK(device_load(r->d, KERNEL, strlen(KERNEL), NULL, &r->kernel, &err));
    OK(device_reset(r->d, 0xff, &err));
    for (uint32_t i = 0; i < ranks; i++) {
        r->params[i] = (params){.in = device_group_address(r->d, r->in, i),
                                .out = device_group_address(r->d, r->out, i),
                                .rank = i,
                                .turns = 1};
        r->all[i] = &r->params[i];
    }
    r->launch.params = r->all[0];
    r->launch.rank_params = r->all;
    r->launch.ranks = ranks;
}

static void close_rig(rig *r) {
    device_unload(r->kernel);
    device_close(r->d);
}

static void test_parts(void **state) {
    (void)state;
    rig r;
    device_outcome out;
    for (uint32_t ranks = 1; ranks <= 3; ranks++) {
        uint32_t got[3 * PART], some[8];
        uint8_t written[3 * PART];
        uint64_t many = 0;
        open_rig(&r, ranks);
        OK(device_run(r.d, r.kernel, &r.launch, &out, &err));
        assert_true(out.ok);
        assert_int_equal(out.counters.blocks, ranks);
        OK(device_read(r.d, r.out, 0, got, (uint64_t)ranks * PART * 4, &err));
        for (size_t i = 0; i < ranks * PART; i++)
            assert_int_equal(got[i], i * 7 + i / PART);
        OK(device_written(r.d, r.out, 4, 3, ranks * PART - 5, written, &many, &err));
        assert_int_equal(many, ranks * PART - 5);
        if (ranks > 1) { /* across the border of two parts */
            OK(device_read(r.d, r.out, (PART - 4) * 4, some, sizeof some, &err));
            assert_memory_equal(some, &got[PART - 4], sizeof some);
        }
        close_rig(&r);
    }
}

/* The parts of the ranks that did not write are told apart. */
static void test_written(void **state) {
    (void)state;
    rig r;
    device_outcome out;
    uint8_t written[3 * PART];
    uint64_t many = 0;
    open_rig(&r, 3);
    r.params[1].out = r.params[2].out; /* and both write rank 2's */
    OK(device_run(r.d, r.kernel, &r.launch, &out, &err));
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, VM_TRAP_RACE_GLOBAL);
    assert_non_null(strstr(out.fault.message, "of rank 2"));
    OK(device_reset(r.d, 0xff, &err));
    r.launch.ranks = 2;
    r.params[1].out = device_group_address(r.d, r.out, 1);
    OK(device_run(r.d, r.kernel, &r.launch, &out, &err));
    assert_true(out.ok);
    OK(device_written(r.d, r.out, 4, 0, 3 * PART, written, &many, &err));
    assert_int_equal(many, 2 * PART);
    assert_true(written[2 * PART - 1] && !written[2 * PART]);
    close_rig(&r);
}

static void test_slowest(void **state) {
    (void)state;
    rig r;
    device_outcome out;
    device_timing even = {0}, uneven = {0};
    open_rig(&r, 3);
    OK(device_time(r.d, r.kernel, &r.launch, &out, &even, &err));
    assert_true(out.ok && even.ns > 0);
    r.params[1].turns = 2000;
    OK(device_time(r.d, r.kernel, &r.launch, &out, &uneven, &err));
    assert_true(out.ok && uneven.ns > even.ns * 1.5);
    close_rig(&r);
}

/* Executions are those of all ranks. */
static void test_executions(void **state) {
    (void)state;
    rig r;
    device_outcome out;
    uint64_t one[64] = {0}, all[64] = {0};
    open_rig(&r, 3);
    r.launch.ranks = 1;
    r.launch.executions = one;
    OK(device_run(r.d, r.kernel, &r.launch, &out, &err));
    assert_true(out.ok && one[0] > 0);
    OK(device_reset(r.d, 0xff, &err));
    r.launch.ranks = 3;
    r.launch.executions = all;
    OK(device_run(r.d, r.kernel, &r.launch, &out, &err));
    assert_true(out.ok && all[0] == 3 * one[0]);
    close_rig(&r);
}

static void test_refused(void **state) {
    (void)state;
    device *d = NULL;
    assert_int_equal(device_open_group("vm:none", 2, &d, &err), EV_BAD);
    OK(device_open("vm:h200", &d, &err));
    assert_int_equal(device_group_count(d), 0);
    device_close(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),   cmocka_unit_test(test_written),
        cmocka_unit_test(test_slowest), cmocka_unit_test(test_executions),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
