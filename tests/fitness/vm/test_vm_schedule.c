/* Who waits for what: what can never go on is a deadlock that names both sides; what only takes
 * long, backs off or watches a clock is left alone. */
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS 64

typedef struct params {
    uint64_t flags, out;
    uint32_t n;
} params;

typedef struct rig {
    vm_memory *memory;
    params params;
    uint32_t *flags, *out;
} rig;

static int set_up(void **state) {
    static rig r;
    ev_error err;
    assert_int_equal(vm_memory_new(1 << 20, &r.memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(r.memory, (uint64_t)WORDS * 4, VM_BUFFER_INOUT, "flags",
                                     &r.params.flags, &err),
                     EV_OK);
    assert_int_equal(
        vm_memory_alloc(r.memory, (uint64_t)WORDS * 4, VM_BUFFER_INOUT, "out", &r.params.out, &err),
        EV_OK);
    r.flags = vm_memory_host(r.memory, r.params.flags);
    r.out = vm_memory_host(r.memory, r.params.out);
    *state = &r;
    return 0;
}

static int tear_down(void **state) {
    rig *r = *state;
    vm_memory_free(r->memory);
    return 0;
}

/* %r0 thread, %r1 block, %r2 n, %d0 flags, %d1 out; %d2 flags + 4 * block, %d3 flags + 4 * n. */
static const char head[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 flags, .param .u64 out, .param .u32 n) {\n"
    ".shared .align 4 .b8 tile[256];\n"
    ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<16>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; ld.param.u32 %r2, [n];\n"
    "ld.param.u64 %d0, [flags]; ld.param.u64 %d1, [out];\n"
    "mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d2, %d0;\n"
    "mul.wide.u32 %d3, %r2, 4; add.u64 %d3, %d3, %d0;\n";

typedef struct shape {
    uint32_t blocks, threads, resident, n;
    uint64_t seed, fuel, cycles, ns;
    bool host_writes;
} shape;

static vm_result run(rig *r, const char *body, shape how) {
    char text[4096];
    int bytes = snprintf(text, sizeof text, "%s%s\nret;\n}\n", head, body);
    ev_error err;
    vm_module *m = NULL;
    if (vm_module_load(text, (size_t)bytes, "k", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_memory_reset(r->memory, 0xcd);
    memset(r->flags, 0, (size_t)WORDS * 4);
    memset(r->out, 0, (size_t)WORDS * 4);
    r->params.n = how.n;
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {how.blocks, 1, 1},
                        .block = {how.threads, 1, 1},
                        .params = &r->params,
                        .checks = VM_CHECK_ALL,
                        .resident_blocks = how.resident,
                        .fuel = how.fuel,
                        .clock_cycles = how.cycles,
                        .timer_ns = how.ns,
                        .host_writes = how.host_writes,
                        .schedule_seed = how.seed};
    vm_result result;
    if (vm_run(r->memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_free(m);
    return result;
}

static void expect(const vm_result *r, vm_trap_kind kind, const char *const *texts) {
    if (r->ok || r->trap.kind != kind)
        fail_msg("expected %s, got %s", vm_trap_name(kind), r->ok ? "ok" : r->trap.message);
    for (; *texts; texts++)
        if (!strstr(r->trap.message, *texts))
            fail_msg("no \"%s\" in: %s", *texts, r->trap.message);
}
#define EXPECT(result, kind, ...) expect(&(result), kind, (const char *const[]){__VA_ARGS__, NULL})

static void expect_ok(const vm_result *r, uint64_t seed) {
    if (!r->ok)
        fail_msg("seed %llu: %s", (unsigned long long)seed, r->trap.message);
}

/* Each block raises its flag and waits for that of the block n further on. */
#define RAISE "mov.u32 %r3, 1; st.volatile.global.u32 [%d2], %r3;\n"
#define WAIT(address)                                                                              \
    "WAIT: ld.volatile.global.u32 %r4, [" address "]; setp.eq.u32 %p0, %r4, 0; @%p0 bra WAIT;\n"
static const char neighbour[] =
    RAISE "mov.u32 %r5, %nctaid.x; add.u32 %r6, %r1, %r2; rem.u32 %r6, %r6, %r5;\n"
          "mul.wide.u32 %d4, %r6, 4; add.u64 %d4, %d4, %d0;\n" WAIT("%d4");

static void test_wave_is_full(void **state) {
    vm_result r =
        run(*state, neighbour, (shape){.blocks = 16, .threads = 1, .resident = 2, .n = 7});
    EXPECT(r, VM_TRAP_DEADLOCK, "polls 'flags'+28, which nothing resident changes",
           "blocks 2 to 15 wait for a place (2 resident)", "1 other warp spins too",
           "block (0, 0, 0) thread (0, 0, 0)");
    assert_true(r.trap.has_address);
    assert_int_equal(r.trap.address, ((rig *)*state)->params.flags + 28);
    assert_int_equal(r.trap.line, 14);
}

static void test_one_block_left(void **state) {
    vm_result r = run(*state, neighbour, (shape){.blocks = 2, .threads = 1, .resident = 1, .n = 1});
    EXPECT(r, VM_TRAP_DEADLOCK, "polls 'flags'+4", "block 1 waits for a place (1 resident)",
           "block (0, 0, 0)");
}

static void test_order_is_permuted(void **state) {
    vm_result r = run(*state, neighbour,
                      (shape){.blocks = 16, .threads = 1, .resident = 1, .n = 7, .seed = 5});
    EXPECT(r, VM_TRAP_DEADLOCK, "15 blocks, ", " wait for a place (1 resident)");
}

static void test_wave_has_room(void **state) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        vm_result r =
            run(*state, neighbour,
                (shape){.blocks = 16, .threads = 1, .resident = 16, .n = 7, .seed = seed});
        expect_ok(&r, seed);
    }
}

static void test_nobody_changes(void **state) {
    vm_result r = run(*state, WAIT("%d3"), (shape){.blocks = 2, .threads = 64, .n = 5});
    EXPECT(r, VM_TRAP_DEADLOCK, "polls 'flags'+20, which nothing changes",
           "3 other warps spin too");
    assert_null(strstr(r.trap.message, "place"));
}

/* The fuel is gone before the first rotation is: the reason is the same. */
static void test_little_fuel(void **state) {
    vm_result r =
        run(*state, WAIT("%d3"), (shape){.blocks = 1, .threads = 32, .n = 5, .fuel = 100000});
    EXPECT(r, VM_TRAP_DEADLOCK, "polls 'flags'+20, which nothing changes");
}

/* The host might raise the flag; shared memory it can't reach. */
static void test_host_may_write(void **state) {
    shape how = {.blocks = 2, .threads = 32, .n = 5, .fuel = 3000000, .host_writes = true};
    vm_result r = run(*state, WAIT("%d3"), how);
    EXPECT(r, VM_TRAP_FUEL, "polls 'flags'+20");
    assert_true(r.counters.thread_instructions >= how.fuel);
    r = run(*state,
            "mov.u32 %r3, 0; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [tile], %r3; bar.sync 0;\n"
            "WAIT: ld.volatile.shared.u32 %r4, [tile]; setp.eq.u32 %p0, %r4, 0; @%p0 bra WAIT;",
            how);
    EXPECT(r, VM_TRAP_DEADLOCK, "polls shared memory+0, which nothing changes");
}

static void test_lock_stays_taken(void **state) {
    vm_result r = run(*state,
                      "mov.u32 %r3, 1; atom.global.exch.b32 %r4, [%d3], %r3;\n"
                      "TRY: atom.global.cas.b32 %r4, [%d3], 0, 1; setp.ne.u32 %p0, %r4, 0;\n"
                      "nanosleep.u32 100; @%p0 bra TRY;",
                      (shape){.blocks = 1, .threads = 1, .n = 3});
    EXPECT(r, VM_TRAP_DEADLOCK, "polls 'flags'+12, which nothing changes");
}

static void test_flag_in_shared(void **state) {
    vm_result r = run(*state,
                      "mov.u32 %r5, tile; mov.u32 %r3, 0; setp.eq.u32 %p1, %r0, 0;\n"
                      "@%p1 st.shared.u32 [%r5+8], %r3; bar.sync 0;\n"
                      "setp.lt.u32 %p1, %r0, 32; @%p1 bra DONE;\n"
                      "WAIT: ld.volatile.shared.u32 %r4, [%r5+8]; setp.eq.u32 %p0, %r4, 0;\n"
                      "@%p0 bra WAIT;\n"
                      "DONE: bar.sync 0;",
                      (shape){.blocks = 1, .threads = 64});
    EXPECT(r, VM_TRAP_DEADLOCK, "polls shared memory+8, which nothing changes",
           "1 warp waits at a barrier", "thread (32, 0, 0)");
}

/* All threads of the block meet between two looks at the flag. */
static void test_polls_with_barriers(void **state) {
    vm_result r = run(*state,
                      "WAIT: bar.sync 0; ld.volatile.global.u32 %r4, [%d3];\n"
                      "setp.eq.u32 %p0, %r4, 0; @%p0 bra WAIT;",
                      (shape){.blocks = 2, .threads = 96, .n = 1});
    EXPECT(r, VM_TRAP_DEADLOCK, "polls 'flags'+4, which nothing changes");
}

static void test_polls_in_a_function(void **state) {
    static const char text[] = "bra START;\n"
                               "START: { .param .b64 where; .param .b32 got;\n"
                               "WAIT: st.param.b64 [where], %d3; call.uni (got), look, (where);\n"
                               "ld.param.b32 %r4, [got]; setp.eq.u32 %p0, %r4, 0; @%p0 bra WAIT; }";
    static const char function[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                                   ".func (.param .b32 got) look(.param .b64 where) {\n"
                                   ".reg .b32 %r<2>; .reg .b64 %d<2>;\n"
                                   "ld.param.b64 %d0, [where]; ld.volatile.global.u32 %r0, [%d0];\n"
                                   "st.param.b32 [got], %r0; ret; }\n";
    rig *r = *state;
    char all[4096];
    int bytes =
        snprintf(all, sizeof all, "%s%s%s\nret;\n}\n", function, strstr(head, ".visible"), text);
    ev_error err;
    vm_module *m = NULL;
    if (vm_module_load(all, (size_t)bytes, "k", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    r->params.n = 2;
    memset(r->flags, 0, (size_t)WORDS * 4);
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {1, 1, 1},
                        .block = {48, 1, 1},
                        .params = &r->params,
                        .checks = VM_CHECK_ALL};
    vm_result result;
    assert_int_equal(vm_run(r->memory, &launch, &result, &err), EV_OK);
    EXPECT(result, VM_TRAP_DEADLOCK, "polls 'flags'+8, which nothing changes");
    vm_module_free(m);
}

static void test_circle(void **state) {
    vm_result r = run(*state, "L: bra L;", (shape){.blocks = 1, .threads = 33});
    EXPECT(r, VM_TRAP_LIVELOCK, "runs in a circle");
}

/* A loop that counts never comes back to the same state, so only the fuel ends it. */
static void test_counting_spin(void **state) {
    vm_result r = run(*state,
                      "mov.u32 %r5, 0;\n"
                      "WAIT: add.u32 %r5, %r5, 1; ld.volatile.global.u32 %r4, [%d3];\n"
                      "setp.eq.u32 %p0, %r4, 0; @%p0 bra WAIT; st.global.u32 [%d1], %r5;",
                      (shape){.blocks = 1, .threads = 1, .n = 1, .fuel = 4000000});
    EXPECT(r, VM_TRAP_FUEL, "no memory changed in the last half", "polls 'flags'+4");
    r = run(*state, "L: add.u32 %r5, %r5, 1; st.global.u32 [%d1], %r5; bra L;",
            (shape){.blocks = 1, .threads = 1, .fuel = 4000000});
    EXPECT(r, VM_TRAP_FUEL, "more than the launch was given");
}

/* A long loop without stores is no livelock: with enough fuel it ends, with too little the trap
 * names the limit and the cure. */
static void test_long_loop_without_stores(void **state) {
    rig *g = *state;
    const char *loop = "mov.u32 %r5, 0; mov.u32 %r6, 42;\n"
                       "L: mad.lo.u32 %r6, %r6, 1664525, 1013904223; ld.global.u32 %r7, [%d0];\n"
                       "add.u32 %r6, %r6, %r7; add.u32 %r5, %r5, 1;\n"
                       "setp.lt.u32 %p0, %r5, 400000; @%p0 bra L; st.global.u32 [%d1], %r5;";
    vm_result r = run(g, loop, (shape){.blocks = 1, .threads = 1, .fuel = 4000000});
    assert_true(r.ok);
    assert_int_equal(g->out[0], 400000);
    r = run(g, loop, (shape){.blocks = 1, .threads = 1, .fuel = 1000000});
    EXPECT(r, VM_TRAP_FUEL, "1000", "thread instructions without an end, which is the limit",
           "give the loop fewer turns, or the launch a higher limit");
    assert_null(strstr(r.trap.message, "polls"));
}

static void test_barriers_name_both_sides(void **state) {
    vm_result r = run(*state,
                      "setp.lt.u32 %p0, %r0, 32; @%p0 bra OTHER;\n"
                      "bar.sync 1; bra DONE;\nOTHER: bar.sync 2;\nDONE:",
                      (shape){.blocks = 1, .threads = 96});
    EXPECT(r, VM_TRAP_DEADLOCK, "barrier 2 waits for 96 threads and 32 arrived (warp 0)",
           "missing: warp 1 waits at barrier 1 (line 12), warp 2 waits at barrier 1 (line 12)");
    r = run(*state, "bar.sync 1, 96;", (shape){.blocks = 1, .threads = 64});
    EXPECT(r, VM_TRAP_DEADLOCK, "barrier 1 waits for 96 threads and 64 arrived (warp 0, 1)",
           "nobody is left to come");
    r = run(*state,
            "setp.lt.u32 %p0, %r0, 8; @%p0 bra OTHER;\n"
            "bar.warp.sync -1; bra DONE;\nOTHER: vote.sync.ballot.b32 %r3, 1, -1;\nDONE:",
            (shape){.blocks = 1, .threads = 32});
    EXPECT(r, VM_TRAP_DEADLOCK, "lanes 000000ff", "lanes ffffff00", "(line 13)");
}

/* ---- what finishes */

/* Block 0 computes for long, the others poll; then it raises the flag. %r7 is the sum's end. */
static const char long_phase[] =
    "setp.ne.u32 %p1, %r1, 0; @%p1 bra POLL; mov.u32 %r5, 0; mov.u32 %r7, 1;\n"
    "LOOP: mad.lo.u32 %r7, %r7, 5, 3; add.u32 %r5, %r5, 1; setp.lt.u32 %p2, %r5, %r2;\n"
    "@%p2 bra LOOP;\n"
    "st.global.u32 [%d1], %r7; membar.gl; mov.u32 %r3, 1; st.volatile.global.u32 [%d0+60], %r3;\n"
    "bra DONE;\n"
    "POLL: nanosleep.u32 20; ld.volatile.global.u32 %r4, [%d0+60]; setp.eq.u32 %p0, %r4, 0;\n"
    "@%p0 bra POLL; membar.gl; ld.global.u32 %r8, [%d1]; mul.wide.u32 %d4, %r1, 4;\n"
    "add.u64 %d4, %d4, %d1; st.global.u32 [%d4], %r8;\nDONE:";

static void test_long_phase(void **state) {
    rig *r = *state;
    uint32_t want = 1;
    for (unsigned i = 0; i < 700000; i++)
        want = want * 5 + 3;
    for (uint64_t seed = 0; seed < 2; seed++) {
        vm_result result =
            run(r, long_phase, (shape){.blocks = 3, .threads = 1, .n = 700000, .seed = seed});
        expect_ok(&result, seed);
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(r->out[i], want);
    }
}

/* The flag never comes: the loop gives up by the clock, by the timer, or after so many looks. */
static void test_gives_up(void **state) {
    static const char *const bodies[] = {
        "mov.u64 %d4, %clock64; add.u64 %d4, %d4, 2000000;\n"
        "WAIT: ld.volatile.global.u32 %r4, [%d3]; setp.ne.u32 %p0, %r4, 0; @%p0 bra END;\n"
        "mov.u64 %d5, %clock64; setp.lt.u64 %p1, %d5, %d4; mov.u64 %d5, 0; @%p1 bra WAIT;\n"
        "mov.u32 %r3, 1; st.global.u32 [%d1], %r3;\nEND:",
        "mov.u64 %d4, %globaltimer; add.u64 %d4, %d4, 60000;\n"
        "WAIT: ld.volatile.global.u32 %r4, [%d3]; setp.ne.u32 %p0, %r4, 0; @%p0 bra END;\n"
        "nanosleep.u32 100;\n"
        "mov.u64 %d5, %globaltimer; setp.lt.u64 %p1, %d5, %d4; mov.u64 %d5, 0; @%p1 bra WAIT;\n"
        "mov.u32 %r3, 1; st.global.u32 [%d1], %r3;\nEND:",
        "mov.u32 %r5, 0;\n"
        "WAIT: ld.volatile.global.u32 %r4, [%d3]; setp.ne.u32 %p0, %r4, 0; @%p0 bra END;\n"
        "add.u32 %r5, %r5, 1; setp.lt.u32 %p1, %r5, 400000; @%p1 bra WAIT;\n"
        "mov.u32 %r3, 1; st.global.u32 [%d1], %r3;\nEND:",
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        vm_result result = run(r, bodies[i], (shape){.blocks = 1, .threads = 1, .n = 1});
        expect_ok(&result, i);
        assert_int_equal(r->out[0], 1);
    }
}

/* The clocks begin where the launch says, and their halves with them. */
static void test_clocks_begin(void **state) {
    static const char body[] =
        "mov.u64 %d4, %clock64; mov.u32 %r4, %clock; mov.u32 %r5, %clock_hi;\n"
        "mov.u64 %d5, %globaltimer; mov.u32 %r6, %globaltimer_lo; mov.u32 %r7, %globaltimer_hi;\n"
        "st.global.u64 [%d1], %d4; st.global.v2.u32 [%d1+8], {%r4, %r5};\n"
        "st.global.u64 [%d1+16], %d5; st.global.v2.u32 [%d1+24], {%r6, %r7};";
    static const uint64_t begins[][2] = {
        {0, 0}, {UINT64_C(5) << 32, 77}, {1, UINT64_C(0x1234567890abcdef)}};
    rig *r = *state;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++) {
        const uint64_t *begin = begins[i];
        vm_result result =
            run(r, body, (shape){.blocks = 1, .threads = 1, .cycles = begin[0], .ns = begin[1]});
        expect_ok(&result, i);
        uint64_t seen[4];
        memcpy(seen, r->out, sizeof seen);
        for (size_t k = 0; k < 4; k++)
            assert_in_range(seen[k] - begin[k / 2], 0, 3000);
    }
}

/* All threads of all blocks add under one lock, tried with back-off; lanes of a warp too. */
static void test_locks(void **state) {
    static const char body[] =
        "mov.u32 %r5, 0;\n"
        "TRY: atom.global.cas.b32 %r4, [%d0], 0, 1; setp.ne.u32 %p0, %r4, 0; @%p0 bra BACK;\n"
        "membar.gl; ld.volatile.global.u32 %r6, [%d1]; add.u32 %r6, %r6, 1;\n"
        "st.volatile.global.u32 [%d1], %r6; membar.gl; atom.global.exch.b32 %r4, [%d0], 0;\n"
        "mov.u32 %r5, 1;\n"
        "BACK: nanosleep.u32 40; setp.eq.u32 %p1, %r5, 0; @%p1 bra TRY;";
    rig *r = *state;
    for (uint64_t seed = 0; seed < 8; seed++) {
        vm_result result = run(r, body, (shape){.blocks = 4, .threads = 64, .seed = seed});
        expect_ok(&result, seed);
        assert_int_equal(r->out[0], 256);
    }
}

/* One block gives numbers through a single slot, another takes them. */
static void test_producer_consumer(void **state) {
    static const char body[] =
        "mov.u32 %r5, 1; mov.u32 %r9, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra TAKE;\n"
        "GIVE: ld.volatile.global.u32 %r4, [%d0]; setp.ne.u32 %p0, %r4, 0; @%p0 bra GIVE;\n"
        "membar.gl; st.volatile.global.u32 [%d0], %r5; add.u32 %r5, %r5, 1;\n"
        "setp.le.u32 %p2, %r5, %r2; @%p2 bra GIVE; bra DONE;\n"
        "TAKE: ld.volatile.global.u32 %r4, [%d0]; setp.eq.u32 %p0, %r4, 0; @%p0 bra TAKE;\n"
        "add.u32 %r9, %r9, %r4; mov.u32 %r6, 0; membar.gl; st.volatile.global.u32 [%d0], %r6;\n"
        "add.u32 %r5, %r5, 1; setp.le.u32 %p2, %r5, %r2; @%p2 bra TAKE;\n"
        "st.global.u32 [%d1], %r9;\nDONE:";
    rig *r = *state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        vm_result result = run(r, body, (shape){.blocks = 2, .threads = 1, .n = 6, .seed = seed});
        expect_ok(&result, seed);
        assert_int_equal(r->out[0], 21);
    }
}

/* The waiting block hands its turn on soon, whoever is first. */
static void test_handing_over(void **state) {
    static const char body[] = "setp.eq.u32 %p1, %r1, %r2; mov.u32 %r3, 7; @%p1 bra GIVE;\n" WAIT(
        "%d0") "membar.gl; ld.global.u32 %r5, [%d1]; st.global.u32 [%d1+4], %r5; bra DONE;\n"
               "GIVE: st.global.u32 [%d1], %r3; membar.gl; st.volatile.global.u32 [%d0], "
               "%r3;\nDONE:";
    rig *r = *state;
    for (uint32_t giver = 0; giver < 2; giver++)
        for (uint64_t seed = 0; seed < 4; seed++) {
            vm_result result =
                run(r, body,
                    (shape){.blocks = 2, .threads = 1, .n = giver, .seed = seed, .fuel = 1000});
            expect_ok(&result, seed);
            assert_int_equal(r->out[1], 7);
            assert_true(result.counters.thread_instructions < 200);
        }
}

/* Lanes of one warp, warps of one block: the same. %r6 is what each adds. */
static void test_handing_over_inside(void **state) {
    static const char body[] =
        "mov.u32 %r3, 0; mov.u32 %r6, 1;\n"
        "TURN: ld.volatile.global.u32 %r4, [%d0]; setp.ne.u32 %p0, %r4, %r0; @%p0 bra TURN;\n"
        "membar.gl; add.u32 %r4, %r4, %r6; st.volatile.global.u32 [%d0], %r4;";
    rig *r = *state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        vm_result result =
            run(r, body, (shape){.blocks = 1, .threads = 96, .seed = seed, .fuel = 2000000});
        expect_ok(&result, seed);
        assert_int_equal(r->flags[0], 96);
    }
}

/* A barrier with a count takes a warp whose other lanes are none, or have ended, for a whole one.
 */
static void test_barriers_count_warps(void **state) {
    static const char *const bodies[] = {
        "barrier.sync 1, 64;",
        "bar.sync 1, 64;",
        "setp.eq.u32 %p0, %r0, 5; @%p0 bra DONE; barrier.sync 1, 64;\nDONE:",
        ("setp.eq.u32 %p0, %r0, 5; @%p0 bra ODD; barrier.sync 1, 64; bra DONE;\n"
         "ODD: barrier.sync 1, 64;\nDONE:"),
    };
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            vm_result r = run(*state, bodies[i], (shape){.blocks = 1, .threads = 48, .seed = seed});
            expect_ok(&r, seed);
        }
    vm_result r = run(*state, "barrier.sync 1, 96;", (shape){.blocks = 1, .threads = 48});
    EXPECT(r, VM_TRAP_DEADLOCK, "");
}

/* The window of parameters lies in that of global memory. Shared memory comes in units of 128
 * bytes. */
static void test_spaces(void **state) {
    rig *r = *state;
    vm_result result =
        run(r,
            ".shared .align 4 .b8 more[4]; mov.u32 %r5, more; mov.u32 %r6, tile;"
            "cvta.param.u64 %d4, flags; isspacep.global %p3, %d4; selp.u32 %r3, 1, 0, %p3;"
            "st.global.u32 [%d1], %r3; isspacep.shared %p3, %d4; selp.u32 %r3, 1, 0, %p3;"
            "st.global.u32 [%d1+4], %r3; mov.u32 %r4, %total_smem_size;"
            "st.global.u32 [%d1+8], %r4;",
            (shape){.blocks = 1, .threads = 1});
    expect_ok(&result, 0);
    assert_int_equal(r->out[0], 1);
    assert_int_equal(r->out[1], 0);
    assert_int_equal(r->out[2], 384);
}

/* The first lane of each warp adds to a word by one try of a compare-and-swap, without another if
 * someone came between, and counts its failures beside. */
#define TRY(where, load, address)                                                                  \
    "and.b32 %r5, %r0, 31; setp.ne.u32 %p0, %r5, 0; @%p0 bra DONE;\n" load " %r4, [" address "];"  \
    "add.u32 %r6, %r4, 1; atom." where ".cas.b32 %r7, [" address "], %r4, %r6;\n"                  \
    "setp.eq.u32 %p1, %r7, %r4; @%p1 bra DONE; red.global.add.u32 [%d1+4], 1;\nDONE:"
static void test_others_come_between(void **state) {
    static const struct {
        const char *body;
        uint32_t blocks, threads;
    } rows[] = {
        {TRY("global", "ld.volatile.global.u32", "%d0"), 1, 256},
        {TRY("global", "ld.volatile.global.u32", "%d0"), 8, 32},
        {"mov.u32 %r8, tile; setp.eq.u32 %p2, %r0, 0; @%p2 st.shared.u32 [%r8], 0; bar.sync 0;" TRY(
             "shared", "ld.volatile.shared.u32", "%r8"),
         1, 256},
    };
    rig *r = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        unsigned failed = 0;
        for (uint64_t seed = 0; seed < 8; seed++) {
            shape how = {.blocks = rows[i].blocks, .threads = rows[i].threads, .seed = seed};
            vm_result result = run(r, rows[i].body, how);
            expect_ok(&result, seed);
            uint32_t failures = r->out[1];
            if (seed == 0)
                assert_int_equal(failures, 0);
            failed += failures > 0;
            result = run(r, rows[i].body, how); /* the same seed, the same order */
            expect_ok(&result, seed);
            assert_int_equal(r->out[1], failures);
        }
        if (failed < 4)
            fail_msg("row %zu: only %u of 7 seeds let a try fail", i, failed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wave_is_full),
        cmocka_unit_test(test_one_block_left),
        cmocka_unit_test(test_order_is_permuted),
        cmocka_unit_test(test_wave_has_room),
        cmocka_unit_test(test_nobody_changes),
        cmocka_unit_test(test_little_fuel),
        cmocka_unit_test(test_host_may_write),
        cmocka_unit_test(test_lock_stays_taken),
        cmocka_unit_test(test_flag_in_shared),
        cmocka_unit_test(test_polls_with_barriers),
        cmocka_unit_test(test_polls_in_a_function),
        cmocka_unit_test(test_circle),
        cmocka_unit_test(test_counting_spin),
        cmocka_unit_test(test_long_loop_without_stores),
        cmocka_unit_test(test_barriers_name_both_sides),
        cmocka_unit_test(test_long_phase),
        cmocka_unit_test(test_clocks_begin),
        cmocka_unit_test(test_gives_up),
        cmocka_unit_test(test_locks),
        cmocka_unit_test(test_producer_consumer),
        cmocka_unit_test(test_handing_over),
        cmocka_unit_test(test_handing_over_inside),
        cmocka_unit_test(test_others_come_between),
        cmocka_unit_test(test_barriers_count_warps),
        cmocka_unit_test(test_spaces),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
