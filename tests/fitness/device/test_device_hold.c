/* How the device cuda:N takes times, with the stand-in behind it: nothing that a driver may do
 * makes a held queue wait for ever, batches fit the driver's queue, and short launches are timed
 * several at once, so that neither the timer's steps nor the events' are in the figures. */
#include "fitness/device/cuda/cuda.h"

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
#define BUFFERS 60
#define LONGEST 512 /* commands behind a hold, of the 1024 that a queue takes */

static ev_error err;

/* y[i] = i */
static const char TEXT[] =
    ".version 6.3\n.target sm_70\n.address_size 64\n"
    ".visible .entry put(.param .u64 y)\n{\n.reg .b32 %r<5>;\n.reg .b64 %rd<4>;\n"
    "ld.param.u64 %rd1, [y];\nmov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ntid.x;\nmov.u32 %r3, %tid.x;\n"
    "mad.lo.s32 %r4, %r1, %r2, %r3;\nmul.wide.u32 %rd2, %r4, 4;\nadd.s64 %rd3, %rd1, %rd2;\n"
    "st.global.u32 [%rd3], %r4;\nret;\n}\n";

/* ---- what is given to the queue, counted on its way ---- */

static struct {
    cu_driver real;
    CUfunction counted, hold;
    unsigned held;                 /* holds */
    unsigned run, repeat, samples; /* launches since the last event; the most between two; pairs */
    unsigned queued, longest;      /* commands since the last look at an event; the most */
} calls;

static void count_command(void) {
    calls.queued++;
    calls.longest = calls.queued > calls.longest ? calls.queued : calls.longest;
}

static CUresult count_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                             unsigned by, unsigned bz, unsigned shared, CUstream stream,
                             void **params, void **extra) {
    count_command();
    calls.run += f == calls.counted;
    calls.held += f == calls.hold;
    return calls.real.cuLaunchKernel(f, gx, gy, gz, bx, by, bz, shared, stream, params, extra);
}

static CUresult count_record(CUevent event, CUstream stream) {
    count_command();
    calls.samples += calls.run > 0;
    calls.repeat = calls.run > calls.repeat ? calls.run : calls.repeat;
    calls.run = 0;
    return calls.real.cuEventRecord(event, stream);
}

static CUresult count_copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    count_command();
    return calls.real.cuMemcpyDtoDAsync_v2(to, from, bytes, stream);
}

static CUresult count_query(CUevent event) {
    calls.queued = 0;
    return calls.real.cuEventQuery(event);
}

/* ---- a device with buffers ---- */

typedef struct fixture {
    device *d;
    device_kernel *kernel;
    uint64_t address;
    device_launch launch;
} fixture;

/* `kind`: of all `count` buffers. The device is taken for one whose times are measured, so that
 * batches are as long as on a GPU. */
static void set_up(fixture *s, vm_buffer_kind kind, size_t count) {
    memset(s, 0, sizeof *s);
    OK(device_open("cuda:0", &s->d, &err));
    s->d->properties.modelled = false;
    device_buffer y = 0;
    for (size_t i = 0; i < count; i++)
        OK(device_alloc(s->d, (uint64_t)COUNT * 4, kind, "y", &y, &err));
    OK(device_load(s->d, TEXT, strlen(TEXT), NULL, &s->kernel, &err));
    s->address = device_address(s->d, y);
    s->launch =
        (device_launch){.grid = {COUNT / 128, 1, 1}, .block = {128, 1, 1}, .params = &s->address};
    cuda_device *c = cuda_of(s->d);
    memset(&calls, 0, sizeof calls);
    calls.real = c->cu;
    calls.counted = ((const cuda_kernel *)s->kernel->own)->function;
    calls.hold = c->hold;
    c->cu.cuLaunchKernel = count_launch;
    c->cu.cuEventRecord = count_record;
    c->cu.cuEventQuery = count_query;
    c->cu.cuMemcpyDtoDAsync_v2 = count_copy;
}

static void tear_down(fixture *s) {
    device_unload(s->kernel);
    device_close(s->d);
}

static device_timing take_time(fixture *s) {
    device_outcome out;
    device_timing t;
    OK(device_time(s->d, s->kernel, &s->launch, &out, &t, &err));
    assert_true(out.ok && t.samples >= 10 && t.ns > 0 && t.warm_ns > 0);
    return t;
}

static void expect_near(const char *what, double got, double wanted, double share) {
    if (!(fabs(got - wanted) <= share * wanted))
        fail_msg("%s: %g, not %g", what, got, wanted);
}

/* ---- holds ---- */

/* Code that is loaded at its first use waits for what runs: all of it has run before a hold. */
static void test_lazy(void **state) {
    (void)state;
    fixture s;
    (void)setenv("EVOKE_STANDIN_LAZY", "1", 1);
    set_up(&s, VM_BUFFER_INOUT, 1);
    assert_string_equal(getenv("CUDA_MODULE_LOADING"), "EAGER");
    (void)take_time(&s);
    assert_int_equal(cuda_of(s.d)->holds_broken, 0);
    tear_down(&s);
    (void)unsetenv("EVOKE_STANDIN_LAZY");
}

/* Every call waits: the watchdog ends two holds, and the rest is measured without. */
static void test_blocking(void **state) {
    (void)state;
    fixture s;
    set_up(&s, VM_BUFFER_OUT, 1);
    device_timing free = take_time(&s);
    assert_int_equal(cuda_of(s.d)->holds_broken, 0);
    (void)setenv("EVOKE_STANDIN_LAZY", "always", 1);
    device_timing blocked = take_time(&s);
    (void)unsetenv("EVOKE_STANDIN_LAZY");
    assert_int_equal(cuda_of(s.d)->holds_broken, 2);
    assert_true(cuda_of(s.d)->never_holds);
    assert_int_equal(blocked.discarded, 0);
    expect_near("time", blocked.ns, free.ns, 0.02);
    expect_near("warm time", blocked.warm_ns, free.warm_ns, 0.02);
    tear_down(&s);
}

static void test_refused(void **state) {
    (void)state;
    static const char *const variables[] = {"CUDA_LAUNCH_BLOCKING", "CUDA_INJECTION64_PATH",
                                            "NVTX_INJECTION64_PATH", "COMPUTE_PROFILE"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        fixture s;
        device_outcome out;
        device_timing t;
        set_up(&s, VM_BUFFER_OUT, 1);
        (void)setenv(variables[i], "0", 1);
        (void)take_time(&s);
        (void)setenv(variables[i], "1", 1);
        assert_int_equal(device_time(s.d, s.kernel, &s.launch, &out, &t, &err), EV_INFRA);
        assert_non_null(strstr(err.text, variables[i]));
        assert_non_null(strstr(err.text, "--no-hold"));
        OK(device_run(s.d, s.kernel, &s.launch, &out, &err)); /* only times are held */
        (void)setenv(DEVICE_NO_HOLD, "1", 1);
        (void)take_time(&s);
        assert_true(cuda_of(s.d)->never_holds);
        (void)unsetenv(DEVICE_NO_HOLD);
        (void)unsetenv(variables[i]);
        tear_down(&s);
    }
}

/* A launch that updates many buffers, beside its rival: shorter batches. */
static void test_queue(void **state) {
    (void)state;
    fixture s;
    device_outcome out;
    device_timing t;
    set_up(&s, VM_BUFFER_INOUT, BUFFERS);
    const device_kernel *kernel = s.kernel;
    const device_sequence what = {.kernels = &kernel, .launches = &s.launch, .count = 1};
    device_rival rival = {.what = what};
    OK(device_time_sequence(s.d, &what, &rival, &out, &t, &err));
    assert_true(out.ok && t.samples >= 10 && rival.timing.samples >= 10);
    assert_int_equal(cuda_of(s.d)->holds_broken, 0);
    assert_in_range(calls.longest, 1, LONGEST);
    tear_down(&s);
}

/* A sequence of launches is never longer than the queue: with fewer samples to a batch or, where
 * the least batch is too long, without a hold. */
static void test_long_sequences(void **state) {
    (void)state;
    static const struct {
        size_t count;
        bool holds;
    } sequences[] = {{60, true}, {400, false}};
    const device_kernel *kernels[400];
    device_launch launches[400];
    for (size_t i = 0; i < sizeof sequences / sizeof sequences[0]; i++) {
        fixture s;
        device_outcome out;
        device_timing t;
        set_up(&s, VM_BUFFER_OUT, 1);
        for (size_t k = 0; k < sequences[i].count; k++) {
            kernels[k] = s.kernel;
            launches[k] = s.launch;
        }
        const device_sequence what = {kernels, launches, sequences[i].count};
        calls.held = 0;
        OK(device_time_sequence(s.d, &what, NULL, &out, &t, &err));
        assert_true(out.ok && t.samples >= 10 && t.warm_ns > 0);
        assert_int_equal(cuda_of(s.d)->holds_broken, 0);
        assert_int_equal(calls.held > 1, sequences[i].holds); /* one warms up */
        if (sequences[i].holds)
            assert_in_range(calls.longest, 1, LONGEST);
        tear_down(&s);
    }
}

/* ---- short launches ---- */

/* Warm samples have so many launches that they take a hundred microseconds, of a kernel that
 * updates nothing. */
static void test_repeats(void **state) {
    (void)state;
    fixture s;
    (void)setenv("EVOKE_STANDIN_TIMER", "1000", 1);
    set_up(&s, VM_BUFFER_OUT, 1);
    device_timing t = take_time(&s);
    (void)unsetenv("EVOKE_STANDIN_TIMER");
    assert_true(t.warm_ns < 50e3);
    expect_near("repeats", calls.repeat, ceil(100e3 / t.warm_ns), 0.05);
    assert_in_range(calls.longest, 1, LONGEST);
    expect_near("the timer's steps", cuda_of(s.d)->timer_grain, 1000, 0.05);
    expect_near("MHz", t.sm_mhz, FULL_MHZ, 0.01);
    tear_down(&s);
}

/* One that updates a buffer finds other contents the second time: more samples a batch, each of one
 * launch. */
static void test_updates(void **state) {
    (void)state;
    fixture s;
    (void)setenv("EVOKE_STANDIN_TIMER", "1000", 1);
    set_up(&s, VM_BUFFER_INOUT, 1);
    device_timing t = take_time(&s);
    (void)unsetenv("EVOKE_STANDIN_TIMER");
    assert_int_equal(calls.repeat, 1);
    assert_in_range(calls.samples, 12 + 13,
                    12 + 102); /* 12 cold ones, and the run before and after */
    expect_near("MHz", t.sm_mhz, FULL_MHZ, 0.01);
    tear_down(&s);
}

/* Steps that are too coarse for any batch: the clock is not known, rather than wrong. */
static void test_coarse(void **state) {
    (void)state;
    fixture s;
    (void)setenv("EVOKE_STANDIN_TIMER", "100000", 1);
    set_up(&s, VM_BUFFER_OUT, 1);
    device_timing t = take_time(&s);
    (void)unsetenv("EVOKE_STANDIN_TIMER");
    assert_true(t.sm_mhz == 0);
    assert_int_equal(t.discarded, 0);
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lazy),           cmocka_unit_test(test_blocking),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_long_sequences), cmocka_unit_test(test_repeats),
        cmocka_unit_test(test_updates),        cmocka_unit_test(test_coarse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
