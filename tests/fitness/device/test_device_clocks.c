/* Samples at a dropped SM clock, on the device cuda:N with the stand-in behind it: the stamps alone
 * tell, since the management library knows no clock here. Wherever the clock drops, no such sample
 * is behind a time; and where it stays low, the time says so. */
#include "fitness/device/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FULL_MHZ 1590.0 /* of a T4: gpus/t4.json */
#define COUNT 1024
/* Reads of device memory within one measurement, at most: those of the run before it, and one a
 * batch. */
#define READS 16

static ev_error err;

/* y[i] += 1 */
static const char TEXT[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n"
    ".visible .entry add(.param .u64 y)\n{\n.reg .b32 %r<5>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [y];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %rd2, %r4, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
    "ld.global.u32 %r1, [%rd3];\nadd.u32 %r1, %r1, 1;\nst.global.u32 [%rd3], %r1;\nret;\n}\n";

typedef struct fixture {
    device *d;
    device_kernel *kernel;
    device_buffer y;
    uint64_t address;
    device_launch launch;
} fixture;

static void inject(const char *rules) {
    (void)setenv("EVOKE_STANDIN_FAIL", rules, 1);
}

static void set_up(fixture *s) {
    inject("");
    memset(s, 0, sizeof *s);
    OK(device_open("cuda:0", &s->d, &err));
    OK(device_alloc(s->d, (uint64_t)COUNT * 4, VM_BUFFER_INOUT, "y", &s->y, &err));
    static const uint32_t zeros[COUNT];
    OK(device_write(s->d, s->y, 0, zeros, sizeof zeros, &err));
    OK(device_load(s->d, TEXT, strlen(TEXT), NULL, &s->kernel, &err));
    s->address = device_address(s->d, s->y);
    s->launch =
        (device_launch){.grid = {COUNT / 128, 1, 1}, .block = {128, 1, 1}, .params = &s->address};
}

static void tear_down(fixture *s) {
    inject("");
    device_unload(s->kernel);
    device_close(s->d);
}

static device_timing take_time(fixture *s) {
    device_outcome out;
    device_timing t;
    OK(device_time(s->d, s->kernel, &s->launch, &out, &t, &err));
    assert_true(out.ok);
    return t;
}

static void expect_near(const char *what, size_t at, double got, double wanted, double share) {
    if (!(fabs(got - wanted) <= share * wanted))
        fail_msg("%s: %g, not %g, where the clock dropped at read %zu", what, got, wanted, at);
}

/* The clock drops between two reads of the device's memory, and each batch ends in one: of its
 * stamps. Wherever that is, the times are those at the full clock; where it is a batch of cold or
 * of warm samples, these are counted as discarded. */
static void test_drops(void **state) {
    (void)state;
    fixture s;
    set_up(&s);
    device_timing full = take_time(&s);
    assert_int_equal(full.discarded, 0);
    expect_near("MHz", 0, full.sm_mhz, FULL_MHZ, 0.01);
    size_t drops = 0;
    for (size_t read = 1; read <= READS; read++) {
        char rules[80];
        (void)snprintf(rules, sizeof rules, "cuMemcpyDtoH_v2:%zu=slow;cuMemcpyDtoH_v2:%zu=fast",
                       read, read + 1);
        inject(rules);
        device_timing t = take_time(&s);
        drops += t.discarded > 0;
        assert_in_range(t.discarded, 0, 11);
        assert_true(t.samples >= 2);
        expect_near("MHz", read, t.sm_mhz, FULL_MHZ, 0.01);
        expect_near("time", read, t.ns, full.ns, 0.02);
        expect_near("upper end", read, t.high_ns, full.ns, 0.02);
        expect_near("warm time", read, t.warm_ns, full.warm_ns, 0.02);
    }
    assert_int_equal(drops, 2);
    tear_down(&s);
}

/* Of samples that differ, from a device that has not seen its full clock before. */
static void test_first_batches(void **state) {
    (void)state;
    size_t drops = 0;
    (void)setenv("EVOKE_STANDIN_JITTER", "0.1", 1);
    for (size_t read = 1; read <= READS; read++) {
        char rules[80];
        fixture s;
        set_up(&s);
        (void)snprintf(rules, sizeof rules, "cuMemcpyDtoH_v2:%zu=slow;cuMemcpyDtoH_v2:%zu=fast",
                       read, read + 1);
        inject(rules);
        device_timing t = take_time(&s);
        drops += t.discarded > 0;
        assert_int_equal(t.samples, 60);
        expect_near("MHz", read, t.sm_mhz, FULL_MHZ, 0.01);
        expect_near("spread", read, t.high_ns / t.low_ns, 1.1 / 0.9, 0.02);
        tear_down(&s);
    }
    (void)unsetenv("EVOKE_STANDIN_JITTER");
    assert_true(drops >= 12); /* batches of 11 samples at most, for 60 cold ones and 60 warm */
}

/* What is left is better than nothing, and told: so many discarded, and the low clock. */
static void test_stays_low(void **state) {
    (void)state;
    fixture s;
    set_up(&s);
    device_timing full = take_time(&s);
    inject("launch:0+=slow");
    device_timing low = take_time(&s);
    assert_in_range(low.discarded, 40, 40 + 11);
    assert_true(low.samples >= 2);
    expect_near("MHz", 0, low.sm_mhz, FULL_MHZ / 2, 0.01);
    expect_near("time", 0, low.ns, 2 * full.ns, 0.02);
    inject("");
    device_timing again = take_time(&s);
    assert_int_equal(again.discarded, 0);
    expect_near("time", 0, again.ns, full.ns, 0.02);
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drops),
        cmocka_unit_test(test_first_batches),
        cmocka_unit_test(test_stays_low),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
