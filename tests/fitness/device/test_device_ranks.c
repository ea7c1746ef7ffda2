/* Ranks on the device cuda:N, which is the stand-in's: a collective whose ranks wait for each
 * other's flags gives the virtual machine's results, on GPUs with peer access and on streams of one
 * GPU; faults of one rank end all, and what can be made anew is. The argument says which GPUs there
 * are: "gpus", "models", "strangers", "plain"; "waits", "lost" and "hang" leave the driver
 * unusable. */
#include "fitness/device/device_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define RANKS_MOST 4u
#define THREADS 64u
enum { BYTES = THREADS * 4 };

static ev_error err;
static bool one_gpu; /* as the argument says */

static void has(const char *text, const char *words) {
    if (strstr(text, words) == NULL)
        fail_msg("'%s' lacks '%s'", text, words);
}

static void fails(ev_status status, ev_status wanted, const char *words) {
    assert_int_equal(status, wanted);
    has(err.text, words);
}

static void inject(const char *rules) {
    (void)setenv("EVOKE_STANDIN_FAIL", rules, 1);
}

/* out = the sum of all ranks' numbers: what came last goes on to the next rank, as often as there
 * are other ranks; a flag of scope .sys says that it is there. `how` 1: a store far away first;
 * 2: one past the end of the next rank's inbox; 3: into its own input. */
static const char RING[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .entry ring(.param .u64 in, .param .u64 out, .param .u64 inbox, .param .u64 flag,\n"
    "  .param .u64 next_inbox, .param .u64 next_flag, .param .u32 ranks, .param .u32 how) {\n"
    ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<16>;\n"
    "mov.u32 %r0, %tid.x; mul.wide.u32 %d0, %r0, 4;\n"
    "ld.param.u64 %d1, [in]; ld.param.u64 %d2, [out]; ld.param.u64 %d3, [inbox];\n"
    "ld.param.u64 %d4, [flag]; ld.param.u64 %d5, [next_inbox]; ld.param.u64 %d6, [next_flag];\n"
    "ld.param.u32 %r1, [ranks]; ld.param.u32 %r2, [how];\n"
    "add.u64 %d1, %d1, %d0; add.u64 %d2, %d2, %d0; add.u64 %d3, %d3, %d0; add.u64 %d7, %d5, %d0;\n"
    "setp.eq.u32 %p1, %r2, 1; @%p1 st.global.u32 [%d1+1048576], %r0;\n"
    "setp.eq.u32 %p2, %r2, 2; @%p2 st.global.u32 [%d7+1024], %r0;\n"
    "setp.eq.u32 %p3, %r2, 3; @%p3 st.global.u32 [%d1], %r0;\n"
    "ld.global.u32 %r3, [%d1]; mov.u32 %r4, %r3; mov.u32 %r5, 1;\n"
    "STEP: setp.ge.u32 %p4, %r5, %r1; @%p4 bra DONE;\n"
    "st.global.u32 [%d7], %r3; membar.sys; bar.sync 0;\n"
    "setp.ne.u32 %p5, %r0, 0; @%p5 bra WAITED;\n"
    "st.release.sys.global.u32 [%d6], %r5;\n"
    "AGAIN: ld.acquire.sys.global.u32 %r6, [%d4]; setp.lt.u32 %p6, %r6, %r5; @%p6 bra AGAIN;\n"
    "membar.sys;\n"
    "WAITED: bar.sync 0;\n"
    "ld.volatile.global.u32 %r3, [%d3]; add.u32 %r4, %r4, %r3;\n"
    "add.u64 %d3, %d3, 256; add.u64 %d7, %d7, 256; add.u32 %r5, %r5, 1; bra STEP;\n"
    "DONE: st.global.u32 [%d2], %r4; ret; }\n";

typedef struct params {
    uint64_t in, out, inbox, flag, next_inbox, next_flag;
    uint32_t ranks, how;
} params;

typedef struct rig {
    uint32_t count;
    device *devices[RANKS_MOST];
    device_kernel *kernels[RANKS_MOST];
    device_buffer in[RANKS_MOST], out[RANKS_MOST], inbox[RANKS_MOST], flag[RANKS_MOST];
    params params[RANKS_MOST];
    device_launch launches[RANKS_MOST];
    device_outcome outcomes[RANKS_MOST];
} rig;

static uint32_t input(uint32_t rank, uint32_t i) {
    return (rank * THREADS + i + 1) * 2654435761u >> 5;
}

static void make_buffers(rig *r, uint32_t i) {
    device *d = r->devices[i];
    uint32_t values[THREADS], none = 0;
    for (uint32_t k = 0; k < THREADS; k++)
        values[k] = input(i, k);
    OK(device_alloc(d, BYTES, VM_BUFFER_IN, "in", &r->in[i], &err));
    OK(device_alloc(d, BYTES, VM_BUFFER_OUT, "out", &r->out[i], &err));
    OK(device_alloc(d, (uint64_t)RANKS_MOST * BYTES, VM_BUFFER_SCRATCH, "inbox", &r->inbox[i],
                    &err));
    OK(device_alloc(d, 4, VM_BUFFER_INOUT, "flag", &r->flag[i], &err));
    OK(device_write(d, r->in[i], 0, values, sizeof values, &err));
    OK(device_write(d, r->flag[i], 0, &none, sizeof none, &err));
    OK(device_load(d, RING, strlen(RING), NULL, &r->kernels[i], &err));
}

static void open_rig(rig *r, const char *id, uint32_t count) {
    *r = (rig){.count = count};
    OK(device_open_ranks(id, count, r->devices, &err));
    for (uint32_t i = 0; i < count; i++)
        make_buffers(r, i);
}

static void close_rig(rig *r) {
    for (uint32_t i = 0; i < r->count; i++)
        device_unload(r->kernels[i]);
    for (uint32_t i = 0; i < r->count; i++)
        device_close(r->devices[i]);
}

/* Addresses may be others after a fault. */
static void prepare(rig *r) {
    uint32_t none = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        device *d = r->devices[i];
        uint32_t next = (i + 1) % r->count;
        r->params[i] = (params){.in = device_address(d, r->in[i]),
                                .out = device_address(d, r->out[i]),
                                .inbox = device_address(d, r->inbox[i]),
                                .flag = device_address(d, r->flag[i]),
                                .next_inbox = device_address(r->devices[next], r->inbox[next]),
                                .next_flag = device_address(r->devices[next], r->flag[next]),
                                .ranks = r->count,
                                .how = r->params[i].how};
        r->launches[i] = (device_launch){.grid = {1, 1, 1},
                                         .block = {THREADS, 1, 1},
                                         .params = &r->params[i],
                                         .checks = VM_CHECK_ALL};
        OK(device_reset(d, 0xff, &err));
        OK(device_write(d, r->flag[i], 0, &none, sizeof none, &err));
    }
}

static ev_status run(rig *r) {
    return device_run_ranks(r->devices, (const device_kernel *const *)r->kernels, r->launches,
                            r->count, r->outcomes, &err);
}

static void read_out(rig *r, uint32_t out[RANKS_MOST][THREADS]) {
    for (uint32_t i = 0; i < r->count; i++) {
        if (!r->outcomes[i].ok)
            fail_msg("rank %u: %s", i, r->outcomes[i].fault.message);
        OK(device_read(r->devices[i], r->out[i], 0, out[i], BYTES, &err));
    }
}

static void runs_right(rig *r) {
    uint32_t out[RANKS_MOST][THREADS];
    prepare(r);
    OK(run(r));
    read_out(r, out);
    for (uint32_t i = 0; i < r->count * THREADS; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < r->count; k++)
            sum += input(k, i % THREADS);
        assert_int_equal(out[i / THREADS][i % THREADS], sum);
    }
}

static void test_as_the_machine(void **state) {
    (void)state;
    static const char *const ids[] = {"vm:h200", "cuda:0"};
    for (uint32_t count = 2; count <= RANKS_MOST; count += 2) {
        uint32_t out[2][RANKS_MOST][THREADS];
        for (size_t i = 0; i < 2; i++) {
            rig r;
            open_rig(&r, ids[i], count);
            runs_right(&r);
            runs_right(&r);
            read_out(&r, out[i]);
            close_rig(&r);
        }
        assert_memory_equal(out[0], out[1], (size_t)count * BYTES);
    }
}

static const char *placement(const rig *r) {
    return device_properties_of(r->devices[r->count - 1])->placement;
}

static void test_placement(void **state) {
    const char *const *words = *state;
    rig r;
    open_rig(&r, "cuda:0", 2);
    has(placement(&r), words[0]);
    assert_string_equal(device_properties_of(r.devices[1])->id, one_gpu ? "cuda:0" : "cuda:1");
    close_rig(&r);
    open_rig(&r, "cuda:0", 4);
    has(placement(&r), words[1]);
    close_rig(&r);
    device *d = NULL, *many[99];
    OK(device_open("cuda:0", &d, &err));
    assert_string_equal(device_properties_of(d)->placement, "");
    device_close(d);
    fails(device_open_ranks("cuda:0", 99, many, &err), EV_BAD, "at most 32 on each");
    fails(device_open_ranks("cuda:7", 2, many, &err), EV_BAD, "no device 'cuda:7'");
}

/* One that was loaded on another rank's GPU runs too. */
static void test_one_kernel(void **state) {
    (void)state;
    rig r;
    open_rig(&r, "cuda:0", 3);
    device_kernel *own[RANKS_MOST];
    memcpy(own, r.kernels, sizeof own);
    r.kernels[1] = r.kernels[2] = r.kernels[0];
    runs_right(&r);
    memcpy(r.kernels, own, sizeof own);
    device_launch l = r.launches[0]; /* and each device is one as any other */
    device_outcome out;
    device_timing t;
    r.params[0].ranks = 1;
    OK(device_time(r.devices[0], r.kernels[0], &l, &out, &t, &err));
    assert_true(out.ok && t.ns > 0);
    close_rig(&r);
}

static void test_refused(void **state) {
    (void)state;
    rig r, other;
    open_rig(&r, "cuda:0", 2);
    open_rig(&other, "cuda:0", 2);
    prepare(&r);
    device *mine = r.devices[1];
    r.devices[1] = other.devices[1];
    fails(run(&r), EV_BAD, "rank 1 on cuda:");
    r.devices[1] = r.devices[0];
    fails(run(&r), EV_BAD, "each on its own");
    r.devices[1] = mine;
    r.launches[1].block[0] = 1025;
    fails(run(&r), EV_BAD, "rank 1: a block of 1025");
    r.launches[1].block[0] = THREADS;
    if (one_gpu) {
        r.launches[0].grid[0] = r.launches[1].grid[0] = 3000;
        fails(run(&r), EV_BAD, "the blocks of 2 ranks would fill cuda:0");
    }
    close_rig(&other);
    runs_right(&r);
    close_rig(&r);
}

/* All see it, and the next launch is as if nothing had been. */
static void dies(rig *r, uint32_t rank, vm_trap_kind kind, const char *words) {
    prepare(r);
    OK(run(r));
    for (uint32_t i = 0; i < r->count; i++) {
        assert_false(r->outcomes[i].ok);
        has(r->outcomes[i].fault.message, words);
        assert_int_equal(r->outcomes[i].fault.kind, kind);
        assert_int_equal(r->outcomes[i].fault.rank, rank);
        r->params[i].how = 0;
    }
    runs_right(r);
}

static void test_faults(void **state) {
    (void)state;
    rig r;
    open_rig(&r, "cuda:0", 3);
    for (uint32_t i = 0; i < 3; i++)
        r.params[i].how = 1;
    dies(&r, 0, VM_TRAP_OUT_OF_BOUNDS, "CUDA_ERROR_ILLEGAL_ADDRESS");
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(device_rebuilds(r.devices[i]), 1);
    r.params[1].how = 2;
    dies(&r, 2, VM_TRAP_OUT_OF_BOUNDS, "the canary behind buffer 'inbox' was written over");
    r.params[1].how = 3;
    dies(&r, 1, VM_TRAP_READ_ONLY_WRITE, "the input 'in' was changed");
    if (one_gpu) { /* one fault takes the context of all, also of who waits for it */
        r.params[2].how = 1;
        dies(&r, 0, VM_TRAP_OUT_OF_BOUNDS, "rank 0 or 1 or 2");
    }
    close_rig(&r);
}

static void test_injected(void **state) {
    (void)state;
    rig r;
    device_buffer b = 0;
    device_kernel *k = NULL;
    device *none[2] = {0};
    open_rig(&r, "cuda:0", 2);
    inject("cuMemAlloc_v2:0+=memory");
    fails(device_alloc(r.devices[1], 64, VM_BUFFER_OUT, "more", &b, &err), EV_INFRA, "'more'");
    inject("cuModuleLoadDataEx:0+=jit");
    fails(device_load(r.devices[1], RING, strlen(RING), NULL, &k, &err), EV_BAD, "refuses the PTX");
    prepare(&r);
    inject("launch:0+=timeout");
    OK(run(&r));
    assert_false(r.outcomes[0].ok || r.outcomes[1].ok);
    assert_int_equal(r.outcomes[1].fault.kind, VM_TRAP_FUEL);
    inject("cuLaunchKernel:0+=CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
    prepare(&r);
    fails(run(&r), EV_BAD, "rank 0: cuda:0 refuses the launch");
    inject("launch:0+=address");
    prepare(&r);
    OK(run(&r));
    assert_int_equal(r.outcomes[0].fault.kind, VM_TRAP_OUT_OF_BOUNDS);
    inject("cuModuleLoadDataEx:0+=jit"); /* it was taken before the fault */
    prepare(&r);
    fails(run(&r), EV_INFRA, "took the kernel ring before a fault");
    inject("");
    runs_right(&r);
    inject("cuCtxCreate_v2:0+=memory");
    fails(device_open_ranks("cuda:0", 2, none, &err), EV_INFRA, "cuCtxCreate");
    assert_null(none[0]);
    inject("cuStreamCreate:0+=memory");
    fails(device_open_ranks("cuda:0", 2, none, &err), EV_INFRA, "setting up");
    inject("cuCtxEnablePeerAccess:0+=CUDA_ERROR_PEER_ACCESS_UNSUPPORTED");
    if (!one_gpu)
        fails(device_open_ranks("cuda:0", 2, none, &err), EV_INFRA, "cuCtxEnablePeerAccess");
    inject("");
    close_rig(&r);
}

/* ---- a group, as the gates have it ---- */

/* A thread a rank: its word is 5, or the launch was not begun anew; then it tells the next rank,
 * and waits to be told. */
static const char TELL[] =
    ".version 7.8\n.target sm_70\n.address_size 64\n"
    ".visible .entry tell(.param .u64 word, .param .u64 flag, .param .u64 next) {\n"
    ".reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d1, [word]; ld.param.u64 %d2, [flag]; ld.param.u64 %d3, [next];\n"
    "ld.global.u32 %r1, [%d1]; setp.ne.u32 %p1, %r1, 5; @%p1 trap;\n"
    "st.global.u32 [%d1], 6; mov.u32 %r2, 1; st.release.sys.global.u32 [%d3], %r2;\n"
    "AGAIN: ld.acquire.sys.global.u32 %r3, [%d2]; setp.eq.u32 %p2, %r3, 0; @%p2 bra AGAIN;\n"
    "ret; }\n";

typedef struct group {
    device *d;
    device_kernel *kernel;
    device_buffer word, flag;
    uint64_t params[3][3];
    const void *of[3];
    device_launch launch;
} group;

static void begin_anew(group *g) {
    static const uint32_t begin[3] = {5, 5, 5}, none[3];
    OK(device_reset(g->d, 0xff, &err));
    OK(device_write(g->d, g->word, 0, begin, sizeof begin, &err));
    OK(device_write(g->d, g->flag, 0, none, sizeof none, &err));
}

static void open_team(group *g) {
    OK(device_open_group("cuda:0", 3, &g->d, &err));
    assert_int_equal(device_group_count(g->d), 3);
    OK(device_alloc(g->d, 3 * sizeof(uint32_t), VM_BUFFER_INOUT, "word", &g->word, &err));
    OK(device_alloc(g->d, 3 * sizeof(uint32_t), VM_BUFFER_INOUT, "flag", &g->flag, &err));
    begin_anew(g);
    OK(device_load(g->d, TELL, strlen(TELL), NULL, &g->kernel, &err));
    for (uint32_t i = 0; i < 3; i++) {
        g->params[i][0] = device_group_address(g->d, g->word, i);
        g->params[i][1] = device_group_address(g->d, g->flag, i);
        g->params[i][2] = device_group_address(g->d, g->flag, (i + 1) % 3);
        g->of[i] = g->params[i];
    }
    g->launch = (device_launch){.grid = {1, 1, 1},
                                .block = {1, 1, 1},
                                .params = g->of[0],
                                .rank_params = g->of,
                                .ranks = 3};
}

static void expect_told(group *g) {
    uint32_t words[3];
    OK(device_read(g->d, g->word, 0, words, sizeof words, &err));
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(words[i], 6);
}

/* A fault is told, and the ranks are made anew together. */
static void expect_fault(group *g) {
    device_outcome out;
    device_timing t;
    uint64_t rebuilds = device_rebuilds(g->d);
    begin_anew(g);
    inject("launch:1=address");
    OK(device_time(g->d, g->kernel, &g->launch, &out, &t, &err));
    inject("");
    assert_false(out.ok);
    has(out.fault.message, "CUDA_ERROR_ILLEGAL_ADDRESS");
    assert_int_equal(device_rebuilds(g->d), rebuilds + 1);
    assert_false(device_is_spent(g->d));
}

/* Contents are put back before each sample, on all ranks: the launch would trap. */
static void test_group_times(void **state) {
    (void)state;
    group g;
    device_outcome out;
    device_timing t;
    open_team(&g);
    const device_kernel *kernel = g.kernel;
    const device_sequence one = {.kernels = &kernel, .launches = &g.launch, .count = 1};
    device_rival rival = {.what = one};
    OK(device_time_sequence(g.d, &one, &rival, &out, &t, &err));
    if (!out.ok)
        fail_msg("%s", out.fault.message);
    assert_true(t.ns > 0 && t.low_ns <= t.ns && t.ns <= t.high_ns && t.samples >= 2);
    assert_true(rival.timing.ns > 0 && rival.timing.samples == t.samples);
    expect_told(&g);
    begin_anew(&g);
    OK(device_time(g.d, kernel, &g.launch, &out, &t, &err));
    assert_true(out.ok && t.ns > 0);
    expect_told(&g);
    if (one_gpu) /* on another GPU, a peer would wait for the one that is gone */
        expect_fault(&g);
    device_unload(g.kernel);
    device_close(g.d);
}

/* The contexts cannot be made anew. */
static void test_no_way_back(void **state) {
    (void)state;
    rig r;
    open_rig(&r, "cuda:0", 2);
    prepare(&r);
    inject("launch:0+=address;cuMemAlloc_v2:0+=memory");
    assert_false(device_is_spent(r.devices[0]));
    OK(run(&r)); /* the fault comes first */
    inject("");
    assert_false(r.outcomes[0].ok);
    assert_non_null(strstr(r.outcomes[0].fault.message, "ILLEGAL_ADDRESS"));
    assert_non_null(strstr(r.outcomes[0].fault.message, "OUT_OF_MEMORY"));
    assert_true(device_is_spent(r.devices[0]) && device_is_spent(r.devices[1]));
    fails(run(&r), EV_INFRA, "given up");
    close_rig(&r);
    open_rig(&r, "cuda:0", 2); /* as another process would */
    runs_right(&r);
    close_rig(&r);
}

/* ---- cases that leave the driver unusable ---- */

/* Rank 0 on a GPU of its own waits for one that is gone: nothing stops it. */
static void test_waits(void **state) {
    (void)state;
    rig r;
    open_rig(&r, "cuda:0", 2);
    r.params[1].how = 1;
    prepare(&r);
    OK(run(&r));
    assert_false(r.outcomes[0].ok);
    assert_int_equal(r.outcomes[0].fault.kind, VM_TRAP_OUT_OF_BOUNDS);
    assert_int_equal(r.outcomes[0].fault.rank, 1);
    fails(run(&r), EV_INFRA, "given up");
    close_rig(&r);
}

static void test_hang(void **state) {
    (void)state;
    rig r;
    open_rig(&r, "cuda:0", 2);
    prepare(&r);
    r.params[1].how = 0;
    r.params[0].ranks = 3; /* one message too few comes */
    OK(run(&r));
    assert_int_equal(r.outcomes[1].fault.kind, VM_TRAP_FUEL);
    assert_int_equal(r.outcomes[1].fault.rank, 0);
    has(r.outcomes[1].fault.message, "watchdog");
    fails(run(&r), EV_INFRA, "given up");
    close_rig(&r);
}

static void test_lost(void **state) {
    (void)state;
    rig r;
    open_rig(&r, "cuda:0", 2);
    prepare(&r);
    inject("cuEventQuery:0+=lost");
    fails(run(&r), EV_INFRA, "CUDA_ERROR_DEVICE_UNAVAILABLE");
    fails(run(&r), EV_INFRA, "given up");
    close_rig(&r);
}

typedef struct scene {
    const char *name, *gpus, *peers;
    bool one_gpu;
    const char *words[2]; /* about 2 and 4 ranks */
    void (*only)(void **state);
} scene;

static const scene SCENES[] = {
    {"gpus",
     "h200,h200,h200",
     "all",
     false,
     {"2 ranks on 2 GPUs with peer access, cuda:0, cuda:1",
      "4 ranks on 3 GPUs with peer access, cuda:0, cuda:1, cuda:2; those on one"},
     NULL},
    {"models",
     "h200,a100",
     "all",
     true,
     {"2 ranks on one GPU, cuda:0, a stream each: cuda:1 is another model", "4 ranks on one"},
     NULL},
    {"strangers",
     "h200,h200",
     "none",
     true,
     {"a stream each: cuda:0 and cuda:1 have no peer access", "4 ranks on one GPU"},
     NULL},
    {"plain",
     "h200,h200",
     "plain",
     false,
     {"2 ranks on 2 GPUs with peer access, cuda:0, cuda:1 (their link has no atomics)",
      "(their link has no atomics); those on one have a stream each: there is no other"},
     NULL},
    {"waits", "h200,h200", "all", false, {NULL, NULL}, test_waits},
    {"hang", "h200", "all", true, {NULL, NULL}, test_hang},
    {"lost", "h200,h200", "all", false, {NULL, NULL}, test_lost},
};

int main(int argc, char **argv) {
    const scene *s = &SCENES[0];
    for (size_t i = 0; argc > 1 && i < sizeof SCENES / sizeof SCENES[0]; i++)
        s = strcmp(SCENES[i].name, argv[1]) == 0 ? &SCENES[i] : s;
    (void)setenv("EVOKE_STANDIN", s->gpus, 1);
    (void)setenv("EVOKE_STANDIN_PEERS", s->peers, 1);
    if (s->only != NULL)
        (void)setenv("EVOKE_WATCHDOG", "0.5", 1);
    one_gpu = s->one_gpu;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_placement, (void *)(uintptr_t)s->words),
        cmocka_unit_test(test_as_the_machine),
        cmocka_unit_test(test_one_kernel),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_injected),
        cmocka_unit_test(test_group_times),
        cmocka_unit_test(test_no_way_back),
    };
    const struct CMUnitTest first[] = {
        cmocka_unit_test_prestate(test_placement, (void *)(uintptr_t)s->words),
        cmocka_unit_test(test_as_the_machine),
    };
    const struct CMUnitTest alone[] = {{s->name, s->only, NULL, NULL, NULL}};
    if (s->only != NULL)
        return cmocka_run_group_tests(alone, NULL, NULL);
    bool known = s > &SCENES[1]; /* what they do is done in the first two */
    return known ? cmocka_run_group_tests(first, NULL, NULL)
                 : cmocka_run_group_tests(tests, NULL, NULL);
}
