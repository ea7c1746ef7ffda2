/* The device cuda:N against the project's own stand-in for the driver: the same work as on the
 * virtual machine, times, canaries, faults and what survives them, and injected errors. An argument
 * chooses a case that leaves the driver unusable: "lost", "lost_timing" or "hang". */
#include "fitness/device/device.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/asserts.h"

#include "tests/ok.h"

static ev_error err;

static device *open_ok(const char *id) {
    device *d = NULL;
    OK(device_open(id, &d, &err));
    return d;
}

static void fails(ev_status status, ev_status wanted, const char *words) {
    assert_int_equal(status, wanted);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' lacks '%s'", err.text, words);
}

static void test_properties(void **state) {
    (void)state;
    char **ids = NULL;
    size_t count = 0;
    device *d = open_ok("cuda:1"), *none = NULL;
    const device_properties *p = device_properties_of(d);
    assert_string_equal(p->id, "cuda:1");
    assert_string_equal(p->twin, "vm:a100");
    assert_int_equal(p->sm, 80);
    assert_int_equal(p->max_shared_per_block, 166912);
    assert_true(p->modelled && p->all_blocks);
    device_close(d);
    d = open_ok("vm:h200");
    assert_string_equal(device_properties_of(d)->twin, "");
    device_close(d);
    OK(device_list(&ids, &count, &err));
    assert_string_equal(ids[0], "cuda:0");
    assert_string_equal(ids[1], "cuda:1");
    assert_string_equal(ids[2], "vm:a100");
    device_list_free(ids, count);
    fails(device_open("cuda:2", &none, &err), EV_BAD, "the driver has 2");
    fails(device_open("cuda:", &none, &err), EV_BAD, "from cuda:0 on");
}

/* y[i] += x[i] for the first n elements; x is written with `how` 1, far away with `how` 2 */
#define ADD_TEXT                                                                                   \
    ".version 7.8\n.target sm_70\n.address_size 64\n"                                              \
    ".visible .entry add(.param .u64 x, .param .u64 y, .param .u32 n, .param .u32 how)\n{\n"       \
    ".reg .pred %p<4>;\n.reg .b32 %r<8>;\n.reg .b64 %rd<8>;\n"                                     \
    "ld.param.u64 %rd1, [x];\nld.param.u64 %rd2, [y];\nld.param.u32 %r1, [n];\n"                   \
    "ld.param.u32 %r7, [how];\n"                                                                   \
    "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"                        \
    "mad.lo.s32 %r5, %r2, %r3, %r4;\nsetp.ge.u32 %p1, %r5, %r1;\n@%p1 bra DONE;\n"                 \
    "mul.wide.u32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"           \
    "ld.global.u32 %r6, [%rd4];\nld.global.u32 %r2, [%rd5];\nadd.s32 %r6, %r6, %r2;\n"             \
    "st.global.u32 [%rd5], %r6;\n"                                                                 \
    "setp.eq.u32 %p2, %r7, 1;\n@%p2 st.global.u32 [%rd4], %r6;\n"                                  \
    "setp.eq.u32 %p3, %r7, 2;\n@%p3 st.global.u32 [%rd5+1048576], %r6;\n"                          \
    "DONE:\nret;\n}\n"

static const char ADD[] = ADD_TEXT;
static const char OTHER[] = ADD_TEXT "// not yet assembled\n";

#define COUNT 1000

typedef struct fixture {
    device *d;
    device_kernel *kernel;
    device_buffer x, y;
    struct {
        uint64_t x, y;
        uint32_t n, how;
    } params;
} fixture;

static void set_up(fixture *s, const char *id) {
    memset(s, 0, sizeof *s);
    s->d = open_ok(id);
    uint32_t values[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        values[i] = i * i;
    OK(device_alloc(s->d, sizeof values, VM_BUFFER_IN, "x", &s->x, &err));
    OK(device_alloc(s->d, sizeof values, VM_BUFFER_INOUT, "y", &s->y, &err));
    OK(device_write(s->d, s->x, 0, values, sizeof values, &err));
    OK(device_write(s->d, s->y, 0, values, sizeof values, &err));
    OK(device_load(s->d, ADD, strlen(ADD), NULL, &s->kernel, &err));
    s->params.n = COUNT;
}

static void tear_down(fixture *s) {
    device_unload(s->kernel);
    device_close(s->d);
}

static device_launch launch_of(fixture *s) {
    s->params.x = device_address(s->d, s->x);
    s->params.y = device_address(s->d, s->y);
    return (device_launch){
        .grid = {8, 1, 1}, .block = {128, 1, 1}, .params = &s->params, .checks = VM_CHECK_ALL};
}

/* The kernels of up to two launches. */
static const device_kernel *kernels[2];

static device_sequence sequence_of(fixture *s, const device_launch *l, size_t count) {
    kernels[0] = kernels[1] = s->kernel;
    return (device_sequence){.kernels = kernels, .launches = l, .count = count};
}

static device_sequence one_of(fixture *s, const device_launch *l) {
    return sequence_of(s, l, 1);
}

static ev_status time_against(fixture *s, const device_launch *l, device_rival *rival,
                              device_outcome *out, device_timing *t, ev_error *why) {
    const device_sequence what = one_of(s, l);
    return device_time_sequence(s->d, &what, rival, out, t, why);
}

static device_outcome run(fixture *s) {
    device_launch l = launch_of(s);
    device_outcome out;
    OK(device_reset(s->d, 0xff, &err));
    OK(device_run(s->d, s->kernel, &l, &out, &err));
    return out;
}

/* y[i] is `times` additions away from its first contents. */
static void expect(fixture *s, uint32_t times) {
    uint32_t got[COUNT];
    OK(device_read(s->d, s->y, 0, got, sizeof got, &err));
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(got[i], i * i * (1 + times));
}

static void test_run(void **state) {
    (void)state;
    const char *const ids[] = {"vm:h200", "cuda:0"};
    for (size_t i = 0; i < 2; i++) {
        fixture s;
        uint64_t many = 0;
        uint8_t written[COUNT];
        set_up(&s, ids[i]);
        assert_true(run(&s).ok);
        expect(&s, 1);
        OK(device_written(s.d, s.y, 4, 1, COUNT - 1, written, &many, &err));
        assert_int_equal(many, COUNT - 1);
        assert_true(run(&s).ok);
        expect(&s, 2);
        assert_int_equal(device_rebuilds(s.d), 0);
        assert_true(device_kernel_resources(s.kernel).registers >= 8);
        tear_down(&s);
    }
}

static void test_out_buffers(void **state) {
    (void)state;
    device *d = open_ok("cuda:0");
    device_buffer b = 0;
    uint8_t written[16];
    uint64_t many = 99;
    OK(device_alloc(d, 64, VM_BUFFER_OUT, "out", &b, &err));
    assert_null(device_host(d, b));
    OK(device_reset(d, 0xee, &err));
    OK(device_read(d, b, 8, written, 2, &err));
    assert_int_equal(written[1], 0xee);
    OK(device_written(d, b, 4, 0, 16, written, &many, &err));
    assert_int_equal(many, 0);
    fails(device_alloc(d, UINT64_C(1) << 50, VM_BUFFER_OUT, "huge", &b, &err), EV_BAD, "'huge'");
    device_clear(d);
    OK(device_alloc(d, 64, VM_BUFFER_OUT, "out", &b, &err));
    assert_int_equal(b, 1);
    device_close(d);
}

/* Many launches are behind a time, and what is left is the work of one. */
static void test_time(void **state) {
    (void)state;
    fixture s;
    set_up(&s, "cuda:0");
    device_launch l = launch_of(&s);
    device_outcome out;
    device_timing t;
    OK(device_time(s.d, s.kernel, &l, &out, &t, &err));
    assert_true(out.ok);
    assert_true(t.ns > 1000 && t.ns < 100000);
    assert_true(t.low_ns > 0 && t.low_ns <= t.ns && t.ns <= t.high_ns && t.warm_ns > 0);
    /* The stand-in's are all alike: a batch is enough, and has two at least. */
    if (t.samples < 2 || t.discarded != 0)
        fail_msg("%u samples, %u discarded", t.samples, t.discarded);
    expect(&s, 1);
    tear_down(&s);
}

/* Samples of batches at a lowered clock, or while the board holds it back, are taken again; where
 * that goes on, they are better than none. */
static void test_clocks(void **state) {
    (void)state;
    fixture s;
    device_outcome out;
    device_timing t;
    (void)setenv("EVOKE_STANDIN_CLOCKS", "1980,1500,1980!,1960,1980,700", 1);
    set_up(&s, "cuda:0");
    device_launch l = launch_of(&s);
    OK(device_time(s.d, s.kernel, &l, &out, &t, &err)); /* cold, then warm at the third attempt */
    assert_true(t.samples > 0 && t.discarded >= 2 && t.discarded <= 2 * 11);
    expect(&s, 1);
    l = launch_of(&s);
    OK(device_time(s.d, s.kernel, &l, &out, &t, &err));
    assert_true(t.samples > 0 && t.warm_ns > 0 && t.discarded >= 40);
    expect(&s, 1);
    tear_down(&s);
    (void)unsetenv("EVOKE_STANDIN_CLOCKS");
}

/* Samples that differ: as many as it takes for a narrow interval, or as many as there may be. */
static void test_spread(void **state) {
    (void)state;
    static const struct {
        const char *jitter;
        uint32_t least, most;
    } cases[] = {{"0.002", 10, 59}, {"0.2", 60, 60}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fixture s;
        device_outcome out;
        device_timing t;
        (void)setenv("EVOKE_STANDIN_JITTER", cases[i].jitter, 1);
        set_up(&s, "cuda:0");
        device_launch l = launch_of(&s);
        device_rival rival = {.what = one_of(&s, &l)};
        OK(time_against(&s, &l, &rival, &out, &t, &err));
        (void)unsetenv("EVOKE_STANDIN_JITTER");
        assert_in_range(t.samples, cases[i].least, cases[i].most);
        assert_int_equal(rival.timing.samples, t.samples);
        assert_true(t.low_ns < t.high_ns && t.low_ns <= t.ns && t.ns <= t.high_ns);
        double width = (t.high_ns - t.low_ns) / (t.high_ns + t.low_ns);
        assert_true(fabs(width - strtod(cases[i].jitter, NULL)) < 1e-3); /* both kinds are in it */
        expect(&s, 1);
        tear_down(&s);
    }
}

/* The work of the launch is left, not its rival's, and both have their own times. */
static void test_rival(void **state) {
    (void)state;
    const char *const ids[] = {"cuda:0", "vm:h200"};
    for (size_t i = 0; i < 2; i++) {
        fixture s;
        device_outcome out;
        device_timing t;
        set_up(&s, ids[i]);
        device_launch l = launch_of(&s), many = l;
        many.grid[0] = 20000; /* most of them for nothing */
        device_rival rival = {.what = one_of(&s, &many)};
        OK(time_against(&s, &l, &rival, &out, &t, &err));
        assert_true(out.ok && t.ns > 0);
        if (i == 0) {
            expect(&s, 1);
            assert_int_equal(rival.timing.samples, t.samples);
            if (rival.timing.low_ns <= t.high_ns * 1.1)
                fail_msg("%g ns, rival %g ns", t.ns, rival.timing.ns);
            assert_true(rival.timing.high_ns >= rival.timing.ns);
        } else {
            assert_int_equal(rival.timing.samples, 0);
        }
        many.grid[0] = 0;
        fails(time_against(&s, &l, &rival, &out, &t, &err), EV_BAD, "no threads");
        tear_down(&s);
    }
}

/* Two launches in order: their time is that of both, and the work of both is left once. */
static void test_sequence(void **state) {
    (void)state;
    fixture s;
    device_outcome out;
    device_timing single, both;
    set_up(&s, "cuda:0");
    const device_launch l = launch_of(&s);
    const device_launch two[2] = {l, l};
    OK(device_time(s.d, s.kernel, &l, &out, &single, &err));
    const device_sequence what = sequence_of(&s, two, 2);
    device_rival rival = {.what = one_of(&s, &l)};
    OK(device_time_sequence(s.d, &what, &rival, &out, &both, &err));
    assert_true(out.ok && both.samples > 0 && rival.timing.samples == both.samples);
    expect(&s, 2);
    if (both.ns < 1.9 * single.ns || both.ns > 2.1 * single.ns || both.warm_ns < single.warm_ns)
        fail_msg("%g ns of two launches, %g of one", both.ns, single.ns);
    assert_true(rival.timing.ns > 0.9 * single.ns && rival.timing.ns < 1.1 * single.ns);
    tear_down(&s);
}

static void test_limits(void **state) {
    (void)state;
    fixture s;
    set_up(&s, "cuda:0");
    device_outcome out;
    device_launch l = launch_of(&s);
    l.block[0] = 1025;
    fails(device_run(s.d, s.kernel, &l, &out, &err), EV_BAD, "at most 1024");
    l = launch_of(&s);
    l.grid[0] = 0;
    fails(device_run(s.d, s.kernel, &l, &out, &err), EV_BAD, "no threads");
    l = launch_of(&s);
    l.dynamic_shared = 240000;
    fails(device_run(s.d, s.kernel, &l, &out, &err), EV_BAD, "shared memory; cuda:0 has");
    l.dynamic_shared = 200000;
    OK(device_run(s.d, s.kernel, &l, &out, &err));
    assert_true(out.ok);
    device_kernel *k = NULL;
    fails(device_load(s.d, ADD, strlen(ADD), "sub", &k, &err), EV_BAD, "'sub'");
    const char later[] = ".version 8.6\n.target sm_100\n.address_size 64\n.entry k() { ret; }\n";
    fails(device_load(s.d, later, strlen(later), NULL, &k, &err), EV_BAD, "refuses the PTX");
    assert_non_null(strstr(err.text, "sm_100"));
    tear_down(&s);
}

/* ---- faults ---- */

static void dies(fixture *s, vm_trap_kind kind, const char *words, uint64_t rebuilds) {
    device_outcome out = run(s);
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, kind);
    if (strstr(out.fault.message, words) == NULL)
        fail_msg("'%s' lacks '%s'", out.fault.message, words);
    assert_int_equal(device_rebuilds(s->d), rebuilds);
    s->params.how = 0;
    s->params.n = COUNT;
}

/* Buffers are as the host wrote them, and the kernel is there, without the caller's doing. */
static void test_faults(void **state) {
    (void)state;
    fixture s;
    set_up(&s, "cuda:0");
    s.params.how = 2;
    dies(&s, VM_TRAP_OUT_OF_BOUNDS, "CUDA_ERROR_ILLEGAL_ADDRESS", 1);
    assert_true(run(&s).ok);
    expect(&s, 1);
    s.params.n = COUNT + 1; /* one too far: no fault of the driver's */
    dies(&s, VM_TRAP_OUT_OF_BOUNDS, "behind buffer 'y'", 2);
    assert_true(run(&s).ok);
    expect(&s, 1);
    s.params.how = 1;
    dies(&s, VM_TRAP_READ_ONLY_WRITE, "the input 'x' was changed", 2);
    assert_true(run(&s).ok);
    expect(&s, 3);
    tear_down(&s);
}

/* ---- injected errors ---- */

static void inject(const char *rules) {
    (void)setenv("EVOKE_STANDIN_FAIL", rules, 1);
}

static void test_injected(void **state) {
    (void)state;
    fixture s;
    device_outcome out;
    device_timing t;
    device_kernel *k = NULL;
    device_buffer b = 0;
    set_up(&s, "cuda:0");
    device_launch l = launch_of(&s);
    inject("cuMemAlloc_v2:0+=memory");
    fails(device_alloc(s.d, 64, VM_BUFFER_OUT, "more", &b, &err), EV_INFRA, "'more'");
    inject("cuModuleLoadDataEx:0+=jit");
    fails(device_load(s.d, ADD, strlen(ADD), NULL, &k, &err), EV_BAD, "CUDA_ERROR_INVALID_PTX");
    inject("cuModuleLoadDataEx:0+=memory");
    fails(device_load(s.d, ADD, strlen(ADD), NULL, &k, &err), EV_INFRA, "OUT_OF_MEMORY");
    inject("launch:0+=timeout");
    OK(device_run(s.d, s.kernel, &l, &out, &err));
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, VM_TRAP_FUEL);
    inject("launch:0+=address");
    l = launch_of(&s);
    OK(device_time(s.d, s.kernel, &l, &out, &t, &err));
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, VM_TRAP_OUT_OF_BOUNDS);
    inject("");
    assert_int_equal(device_rebuilds(s.d), 2);
    l = launch_of(&s);
    OK(device_time(s.d, s.kernel, &l, &out, &t, &err));
    assert_true(out.ok);
    expect(&s, 1);
    tear_down(&s);
    device *none = NULL;
    inject("cuInit:0+=CUDA_ERROR_NO_DEVICE");
    fails(device_open("cuda:0", &none, &err), EV_INFRA, "does not start");
    inject("cuCtxCreate_v2:0+=memory");
    fails(device_open("cuda:0", &none, &err), EV_INFRA, "cuCtxCreate");
    inject("");
}

/* A fault names its launch, or none where the launches were in a queue. */
static void test_injected_in_a_sequence(void **state) {
    (void)state;
    static const struct {
        const char *rule;
        size_t launch;
    } faults[] = {{"launch:1=address", 0},
                  {"launch:2=address", 1},
                  {"cuMemsetD8Async:0+=address", DEVICE_ANY_LAUNCH}};
    fixture s;
    device_outcome out;
    device_timing t;
    set_up(&s, "cuda:0");
    device_sequence what;
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        const device_launch two[2] = {launch_of(&s), launch_of(&s)};
        what = sequence_of(&s, two, 2);
        inject(faults[i].rule);
        OK(device_time_sequence(s.d, &what, NULL, &out, &t, &err));
        inject("");
        assert_false(out.ok);
        assert_int_equal(out.fault.kind, VM_TRAP_OUT_OF_BOUNDS);
        assert_int_equal(out.launch, faults[i].launch);
        assert_int_equal(device_rebuilds(s.d), i + 1);
    }
    device_launch two[2] = {launch_of(&s), launch_of(&s)};
    what = sequence_of(&s, two, 2);
    device_rival rival = {.what = what};
    inject("launch:3=address"); /* the rival's first */
    fails(device_time_sequence(s.d, &what, &rival, &out, &t, &err), EV_INFRA, "the rival of the");
    inject("");
    assert_int_equal(out.launch, DEVICE_ANY_LAUNCH);
    two[0] = two[1] = launch_of(&s);
    OK(device_time_sequence(s.d, &what, NULL, &out, &t, &err));
    assert_true(out.ok);
    expect(&s, 2);
    /* what the launches together did to the input is of one of them */
    s.params.how = 1;
    OK(device_time_sequence(s.d, &what, NULL, &out, &t, &err));
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, VM_TRAP_READ_ONLY_WRITE);
    assert_int_equal(out.launch, DEVICE_ANY_LAUNCH);
    two[1].grid[0] = 0;
    fails(device_time_sequence(s.d, &what, NULL, &out, &t, &err), EV_BAD, "no threads");
    assert_int_equal(out.launch, 1);
    tear_down(&s);
    /* a device with samples of blocks times launches one by one */
    set_up(&s, "vm:h200");
    const device_launch both[2] = {launch_of(&s), launch_of(&s)};
    what = sequence_of(&s, both, 2);
    fails(device_time_sequence(s.d, &what, NULL, &out, &t, &err), EV_BAD, "use device_time");
    tear_down(&s);
}

/* In the middle of a batch: the context is made anew, and the next times are as if nothing had
 * been. */
static void test_injected_in_batches(void **state) {
    (void)state;
    static const struct {
        const char *rule;
        vm_trap_kind kind;
    } faults[] = {{"cuMemsetD8Async:0+=address", VM_TRAP_OUT_OF_BOUNDS},
                  {"cuMemcpyDtoDAsync_v2:0+=timeout", VM_TRAP_FUEL},
                  {"cuEventElapsedTime:0+=CUDA_ERROR_LAUNCH_FAILED", VM_TRAP_ILLEGAL_INSTRUCTION}};
    fixture s;
    device_outcome out;
    device_timing t;
    set_up(&s, "cuda:0");
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        device_launch l = launch_of(&s);
        device_rival rival = {.what = one_of(&s, &l)};
        inject(faults[i].rule);
        OK(time_against(&s, &l, &rival, &out, &t, &err));
        inject("");
        assert_false(out.ok);
        assert_int_equal(out.fault.kind, faults[i].kind);
        assert_int_equal(device_rebuilds(s.d), i + 1);
        l = launch_of(&s);
        OK(time_against(&s, &l, &rival, &out, &t, &err));
        assert_true(out.ok && rival.timing.samples > 0);
        expect(&s, 1);
    }
    /* a kernel that was taken before the fault is not to blame when it is refused after */
    inject("launch:0+=address");
    assert_false(run(&s).ok);
    inject("cuModuleLoadDataEx:0+=jit");
    device_launch again = launch_of(&s);
    device_rival same = {.what = one_of(&s, &again)};
    fails(time_against(&s, &again, &same, &out, &t, &err), EV_INFRA,
          "took the kernel add before a fault");
    inject("");
    /* no room to flush the cache: of this measurement, not of the device */
    device_launch l = launch_of(&s);
    OK(device_run(s.d, s.kernel, &l, &out, &err));
    inject("cuMemAlloc_v2:0+=memory");
    fails(device_time(s.d, s.kernel, &l, &out, &t, &err), EV_INFRA, "no memory left for timing");
    inject("");
    assert_int_equal(device_rebuilds(s.d), 4);
    OK(device_time(s.d, s.kernel, &l, &out, &t, &err));
    assert_true(out.ok);
    expect(&s, 1);
    tear_down(&s);
}

/* ---- ptxas: a script in its place ---- */

#define TEN_SPILLED                                                                                \
    "echo 'ptxas info    : Function properties for add' >&2; "                                     \
    "echo '    16 bytes stack frame, 40 bytes spill stores, 44 bytes spill loads' >&2\n"

static char script[] = "/tmp/evoke_ptxas_XXXXXX";

static void write_script(const char *body) {
    FILE *f = fopen(script, "w");
    assert_non_null(f);
    assert_true(fprintf(f, "#!/bin/sh\necho run >>%s.log\n%s", script, body) > 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(script, 0700), 0);
}

/* How often the script was asked since the last time. */
static unsigned asked(void) {
    char path[64];
    unsigned lines = 0;
    (void)snprintf(path, sizeof path, "%s.log", script);
    FILE *f = fopen(path, "r");
    for (int c = 0; f != NULL && (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    if (f != NULL)
        (void)fclose(f);
    (void)unlink(path);
    return lines;
}

/* The stand-in takes what the script makes of the text, which is the text itself. */
static void test_cubin(void **state) {
    (void)state;
    fixture s;
    write_script("case \"$*\" in *-v*-arch=sm_90*-o*) ;; *) exit 3;; esac\n" TEN_SPILLED "cat\n");
    set_up(&s, "cuda:0");
    assert_int_equal(asked(), 1);
    assert_int_equal(device_kernel_resources(s.kernel).spill_bytes, 40);
    assert_true(device_kernel_resources(s.kernel).registers >= 8);
    assert_true(run(&s).ok);
    expect(&s, 1);
    s.params.how = 2;
    dies(&s, VM_TRAP_OUT_OF_BOUNDS, "CUDA_ERROR_ILLEGAL_ADDRESS", 1);
    assert_true(run(&s).ok); /* from the same code */
    assert_int_equal(asked(), 0);
    tear_down(&s);
}

/* Whatever it does, the driver's compiler is there; and it is not asked twice. */
static void test_cubin_refused(void **state) {
    (void)state;
    static const char *const bodies[] = {"echo 'ptxas fatal   : no such target' >&2; exit 255\n",
                                         "printf '\\177ELF and so on'\n", "exit 0\n",
                                         "kill -9 $$\n", "kill -15 $$\n"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        fixture s;
        device_kernel *again = NULL;
        write_script(bodies[i]);
        set_up(&s, "cuda:0");
        assert_int_equal(asked(), 1);
        OK(device_load(s.d, ADD, strlen(ADD), NULL, &again, &err));
        assert_int_equal(asked(), 0);
        assert_int_equal(device_kernel_resources(again).spill_bytes, 0);
        device_unload(again);
        assert_true(run(&s).ok);
        expect(&s, 1);
        tear_down(&s);
    }
    fixture s;
    assert_int_equal(unlink(script), 0); /* named, and not there */
    set_up(&s, "cuda:0");
    assert_true(run(&s).ok);
    tear_down(&s);
}

/* The same text again is not assembled again, as long as it is one of the last 16; one with another
 * comment is another. */
static void test_cubin_kept(void **state) {
    (void)state;
    fixture s;
    write_script(TEN_SPILLED "cat\n");
    set_up(&s, "cuda:0");
    assert_int_equal(asked(), 1);
    for (int i = 0; i < 17; i++) {
        char text[4000];
        device_kernel *k = NULL;
        (void)snprintf(text, sizeof text, "%s// %d\n", ADD, i);
        for (int times = 0; times < 3; times++) {
            OK(device_load(s.d, text, strlen(text), NULL, &k, &err));
            assert_int_equal(device_kernel_resources(k).spill_bytes, 40);
            device_unload(k);
        }
        assert_int_equal(asked(), 1);
    }
    device_kernel *k = NULL;
    OK(device_load(s.d, ADD, strlen(ADD), NULL, &k, &err));
    assert_int_equal(asked(), 1); /* its place was taken */
    device_unload(k);
    tear_down(&s);
}

/* Text that the assembler dies of is the candidate's fault: the driver, which would die of it in
 * this process, never gets it, and the assembler is asked for the next text. */
static void test_cubin_dies(void **state) {
    (void)state;
    static const char *const bodies[] = {"kill -SEGV $$\n", "kill -ABRT $$\n", "kill -BUS $$\n",
                                         "exit 139\n"};
    static const char *const words[] = {
        "died of signal 11 (Segmentation fault)", "died of signal 6 (Aborted)",
        "died of signal 7 (Bus error)", "died of signal 11 (Segmentation fault)"};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        fixture s;
        device_kernel *k = NULL;
        write_script("cat\n");
        set_up(&s, "cuda:0");
        write_script(bodies[i]);
        inject("cuModuleLoadDataEx:0+=lost");
        fails(device_load(s.d, OTHER, strlen(OTHER), NULL, &k, &err), EV_BAD, words[i]);
        assert_non_null(strstr(err.text, script));
        assert_non_null(strstr(err.text, "name another ptxas in EVOKE_PTXAS"));
        inject("");
        write_script("cat\n");
        OK(device_load(s.d, OTHER, strlen(OTHER), NULL, &k, &err));
        assert_int_equal(asked(), 3);
        device_unload(k);
        tear_down(&s);
    }
}

/* Text that both refuse is the candidate's fault, in the driver's words, and so is text that takes
 * for ever. */
static void test_cubin_faults(void **state) {
    (void)state;
    fixture s;
    device_kernel *k = NULL;
    write_script("cat\n");
    (void)setenv("EVOKE_WATCHDOG", "0.5", 1);
    set_up(&s, "cuda:0");
    assert_int_equal(asked(), 1);
    write_script("exit 1\n");
    inject("cuModuleLoadDataEx:0+=jit");
    fails(device_load(s.d, OTHER, strlen(OTHER), NULL, &k, &err), EV_BAD, "CUDA_ERROR_INVALID_PTX");
    inject("");
    write_script("sleep 60\n");
    fails(device_load(s.d, OTHER, strlen(OTHER), NULL, &k, &err), EV_BAD,
          "takes longer than 0.5 s");
    write_script("cat\n");
    OK(device_load(s.d, OTHER, strlen(OTHER), NULL, &k, &err));
    assert_int_equal(asked(), 3);
    device_unload(k);
    tear_down(&s);
    (void)unsetenv("EVOKE_WATCHDOG");
}

static int name_script(void **state) {
    (void)state;
    int fd = mkstemp(script);
    (void)asked();
    return fd < 0 || close(fd) != 0 || setenv("EVOKE_PTXAS", script, 1) != 0;
}

static int forget_script(void **state) {
    (void)state;
    (void)asked();
    (void)unlink(script);
    return unsetenv("EVOKE_PTXAS");
}

/* The driver makes no context for a process that had a fault: the fault is answered, and the device
 * spent. */
static void test_spent(void **state) {
    (void)state;
    fixture s;
    set_up(&s, "cuda:0");
    device_launch l = launch_of(&s);
    device_outcome out;
    inject("launch:1=address;cuCtxCreate_v2:1+=700");
    OK(device_run(s.d, s.kernel, &l, &out, &err));
    inject("");
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, VM_TRAP_OUT_OF_BOUNDS);
    assert_non_null(strstr(out.fault.message, "the driver makes no new context"));
    assert_true(device_is_spent(s.d));
    fails(device_run(s.d, s.kernel, &l, &out, &err), EV_INFRA, "another process");
    tear_down(&s);
    set_up(&s, "cuda:0");
    assert_false(device_is_spent(s.d));
    s.params.n = COUNT + 1; /* the canary's: no fault of the driver's, and no way back either */
    inject("cuCtxCreate_v2:1+=700");
    out = run(&s);
    inject("");
    assert_false(out.ok);
    assert_non_null(strstr(out.fault.message, "behind buffer 'y'"));
    assert_true(device_is_spent(s.d));
    tear_down(&s);
}

static void test_lost(void **state) {
    (void)state;
    fixture s;
    set_up(&s, "cuda:0");
    device_launch l = launch_of(&s);
    device_outcome out;
    inject("cuEventQuery:0+=lost");
    fails(device_run(s.d, s.kernel, &l, &out, &err), EV_INFRA, "CUDA_ERROR_DEVICE_UNAVAILABLE");
    fails(device_run(s.d, s.kernel, &l, &out, &err), EV_INFRA, "given up");
    tear_down(&s);
}

/* In the middle of a batch. */
static void test_lost_timing(void **state) {
    (void)state;
    fixture s;
    set_up(&s, "cuda:0");
    device_launch l = launch_of(&s);
    device_outcome out;
    device_timing t;
    device_rival rival = {.what = one_of(&s, &l)};
    inject("cuMemsetD8Async:0+=lost");
    fails(time_against(&s, &l, &rival, &out, &t, &err), EV_INFRA, "CUDA_ERROR_DEVICE_UNAVAILABLE");
    fails(device_run(s.d, s.kernel, &l, &out, &err), EV_INFRA, "given up");
    tear_down(&s);
}

/* The kernel is at fault, and the device of no use to this process any more. */
static void test_hang(void **state) {
    (void)state;
    fixture s;
    (void)setenv("EVOKE_WATCHDOG", "0.3", 1);
    set_up(&s, "cuda:0");
    inject("launch:0+=hang");
    device_outcome out = run(&s);
    assert_false(out.ok);
    assert_int_equal(out.fault.kind, VM_TRAP_FUEL);
    assert_non_null(strstr(out.fault.message, "watchdog"));
    uint32_t got = 0;
    fails(device_read(s.d, s.y, 0, &got, sizeof got, &err), EV_INFRA, "another process");
    tear_down(&s);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_properties),
        cmocka_unit_test(test_run),
        cmocka_unit_test(test_out_buffers),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_injected),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_rival),
        cmocka_unit_test(test_sequence),
        cmocka_unit_test(test_injected_in_batches),
        cmocka_unit_test(test_injected_in_a_sequence),
        cmocka_unit_test(test_spent),
    };
    const struct CMUnitTest cubin[] = {
        cmocka_unit_test(test_cubin),      cmocka_unit_test(test_cubin_refused),
        cmocka_unit_test(test_cubin_dies), cmocka_unit_test(test_cubin_faults),
        cmocka_unit_test(test_cubin_kept),
    };
    const struct CMUnitTest lost[] = {cmocka_unit_test(test_lost)};
    const struct CMUnitTest timing[] = {cmocka_unit_test(test_lost_timing)};
    const struct CMUnitTest hang[] = {cmocka_unit_test(test_hang)};
    if (argc > 1 && strcmp(argv[1], "lost") == 0)
        return cmocka_run_group_tests(lost, NULL, NULL);
    if (argc > 1 && strcmp(argv[1], "lost_timing") == 0)
        return cmocka_run_group_tests(timing, NULL, NULL);
    if (argc > 1 && strcmp(argv[1], "hang") == 0)
        return cmocka_run_group_tests(hang, NULL, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed + cmocka_run_group_tests(cubin, name_script, forget_script);
}
