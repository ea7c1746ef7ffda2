/* Asynchronous copies and mbarriers at work: pipelines that are right whatever the order of warps,
 * and each way to get one wrong with its trap. */
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 64
#define BLOCKS 2
#define ROUNDS 4
#define N (THREADS * BLOCKS * ROUNDS)

/* %r0 thread, %r1 tile + 4 * thread, %r2 gate, %d0 in + 4 * (thread of the grid), %d1 out likewise,
 * %d4 scratch; %p7: thread 0. */
#define HEAD                                                                                       \
    ".version 8.5\n.target sm_90\n.address_size 64\n"                                              \
    ".shared .align 16 .b8 tile[1024];\n.shared .align 8 .b64 gate[4];\n"                          \
    ".visible .entry k(.param .u64 in, .param .u64 out, .param .u64 scratch) {\n"                  \
    ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<16>;\n"                                      \
    "mov.u32 %r0, %tid.x; mov.u32 %r1, tile; mad.lo.u32 %r1, %r0, 4, %r1; mov.u32 %r2, gate;\n"    \
    "mov.u32 %r3, %ctaid.x; mad.lo.u32 %r3, %r3, 64, %r0;\n"                                       \
    "ld.param.u64 %d0, [in]; mad.wide.u32 %d0, %r3, 4, %d0;\n"                                     \
    "ld.param.u64 %d1, [out]; mad.wide.u32 %d1, %r3, 4, %d1; ld.param.u64 %d4, [scratch];\n"       \
    "setp.eq.u32 %p7, %r0, 0;\n"
#define TAIL "\nret;\n}\n"

/* Thread 0 makes the first mbarrier for all threads of the block. */
#define GATE(count) "@%p7 mbarrier.init.shared.b64 [%r2], " count ";\nbar.sync 0;\n"
/* Spins until the phase of the parity in `parity` has ended. */
#define WAIT(label, gate, parity)                                                                  \
    label ": mbarrier.try_wait.parity.shared.b64 %p1, [" gate "], " parity ";\n@!%p1 bra " label   \
          ";\n"
/* The word of the thread of the other warp, at shared address %r4. */
#define PARTNER "xor.b32 %r4, %r0, 63; mov.u32 %r5, tile; mad.lo.u32 %r4, %r4, 4, %r5;\n"
/* Something in the tile, so that a read too early is no uninitialised one. */
#define FILL "st.shared.u32 [%r1], %r0; bar.sync 0;\n"
#define OUT "st.global.u32 [%d1], %r6;"

typedef struct fixture {
    vm_memory *memory;
    uint64_t params[3];
    uint32_t *in, *out;
} fixture;

static uint32_t *buffer(fixture *f, unsigned i, vm_buffer_kind kind, const char *name) {
    ev_error err;
    assert_int_equal(vm_memory_alloc(f->memory, (uint64_t)N * 4, kind, name, &f->params[i], &err),
                     EV_OK);
    return vm_memory_host(f->memory, f->params[i]);
}

static int set_up(void **state) {
    static fixture f;
    ev_error err;
    assert_int_equal(vm_memory_new(1 << 20, &f.memory, &err), EV_OK);
    f.in = buffer(&f, 0, VM_BUFFER_IN, "in");
    f.out = buffer(&f, 1, VM_BUFFER_OUT, "out");
    (void)buffer(&f, 2, VM_BUFFER_SCRATCH, "scratch");
    for (uint32_t i = 0; i < N; i++)
        f.in[i] = i * 2654435761u;
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    fixture *f = *state;
    vm_memory_free(f->memory);
    return 0;
}

static vm_module *load(const char *body, ev_status wanted, ev_error *err) {
    char text[6000];
    int n = snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    assert_true(n > 0 && (size_t)n < sizeof text);
    vm_module *m = NULL;
    if (vm_module_load(text, (size_t)n, "a.ptx", &m, err) != wanted)
        fail_msg("%s\n%s", body, wanted == EV_OK ? err->text : "should have been refused");
    return m;
}

static vm_result run(fixture *f, const vm_module *m, uint64_t seed, unsigned checks) {
    vm_memory_reset(f->memory, 0xcd);
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {BLOCKS, 1, 1},
                        .block = {THREADS, 1, 1},
                        .params = f->params,
                        .checks = checks,
                        .fuel = 2000000,
                        .schedule_seed = seed};
    vm_result result;
    ev_error err;
    if (vm_run(f->memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    return result;
}

/* ---- right ones: thread t of a block gives what `source` says */

typedef struct good_kernel {
    const char *name, *body;
    uint32_t (*expected)(const uint32_t *in, unsigned thread); /* in: of the block */
} good_kernel;

static uint32_t of_partner(const uint32_t *in, unsigned thread) {
    return in[63 - thread];
}
static uint32_t summed(const uint32_t *in, unsigned thread) {
    uint32_t sum = 0;
    for (unsigned k = 0; k < ROUNDS; k++)
        sum += in[63 - thread + k * THREADS * BLOCKS];
    return sum;
}
static uint32_t reduced(const uint32_t *in, unsigned thread) {
    (void)thread;
    uint32_t sum = 0;
    for (unsigned i = 0; i < THREADS; i++)
        sum += in[i];
    return sum;
}
static uint32_t rounds_of_lower(const uint32_t *in, unsigned thread) {
    return thread < 32 ? 0 : in[thread - 32] * ROUNDS + 6;
}

static const good_kernel good_kernels[] = {
    {"copy, wait, barrier, read",
     PARTNER "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.wait_all; bar.sync 0;\n"
             "ld.shared.u32 %r6, [%r4]; " OUT,
     of_partner},
    {"a pipeline of two stages",
     PARTNER
     "mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u32 %r8, 0;\n"
     "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.commit_group;\n"
     "LOOP: add.u32 %r9, %r7, 1; setp.ge.u32 %p2, %r9, 4; @%p2 bra LAST;\n"
     "xor.b32 %r10, %r8, 256; add.u32 %r11, %r1, %r10; add.u64 %d0, %d0, 512;\n"
     "cp.async.ca.shared.global [%r11], [%d0], 4;\n"
     "LAST: cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;\n"
     "add.u32 %r12, %r4, %r8; ld.shared.u32 %r13, [%r12]; add.u32 %r6, %r6, %r13; bar.sync 0;\n"
     "xor.b32 %r8, %r8, 256; add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 4; @%p3 bra LOOP;\n" OUT,
     summed},
    {"copies that an mbarrier tells the end of",
     GATE("64") PARTNER "cp.async.ca.shared.global [%r1], [%d0], 4;\n"
                        "cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n" WAIT(
                            "W", "%r2", "0") "ld.shared.u32 %r6, [%r4]; " OUT,
     of_partner},
    {"copies that arrive besides their threads",
     GATE("64") PARTNER
     "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.mbarrier.arrive.shared.b64 [%r2];\n"
     "mbarrier.arrive.shared.b64 %d2, [%r2];\n"
     "W: mbarrier.test_wait.shared.b64 %p1, [%r2], %d2; @!%p1 bra W;\n"
     "ld.shared.u32 %r6, [%r4]; " OUT,
     of_partner},
    {"an mbarrier in place of bar.sync",
     GATE("64") PARTNER "ld.global.u32 %r6, [%d0]; st.shared.u32 [%r1], %r6;\n"
                        "mbarrier.arrive.shared.b64 %d2, [%r2];\n"
                        "W: mbarrier.test_wait.shared.b64 %p1, [%r2], %d2; @!%p1 bra W;\n"
                        "ld.shared.u32 %r6, [%r4]; " OUT,
     of_partner},
    {"global memory is ordered too",
     GATE(
         "64") "ld.global.u32 %r6, [%d0]; st.global.u32 [%d1], %r6;\n"
               "mbarrier.arrive.b64 %d2, [gate];\n" WAIT(
                   "W", "gate",
                   "0") "mov.u32 %r4, %ctaid.x; shl.b32 %r4, %r4, 6; mov.u32 %r6, 0;\n"
                        "ld.param.u64 %d5, [out]; mad.wide.u32 %d5, %r4, 4, %d5; mov.u32 %r7, 0;\n"
                        "L: ld.global.u32 %r8, [%d5]; add.u32 %r6, %r6, %r8; add.u64 %d5, %d5, 4;\n"
                        "add.u32 %r7, %r7, 1; setp.lt.u32 %p2, %r7, 64; @%p2 bra L;\n"
                        "mbarrier.arrive.shared.b64 _, [%r2];\n" WAIT("V", "%r2", "1") OUT,
     reduced},
    {"lanes of a warp that wait for another of it",
     GATE("1") PARTNER "setp.eq.u32 %p2, %r0, 17; @%p2 bra GIVE;\n" WAIT(
         "W", "%r2",
         "0") "bra DONE;\n"
              "GIVE: mbarrier.arrive.shared.b64 _, [%r2];\n"
              "DONE: bar.sync 0; ld.global.u32 %r6, [%d0]; st.shared.u32 [%r1], %r6; bar.sync 0;\n"
              "ld.shared.u32 %r6, [%r4]; " OUT,
     of_partner},
    {"a warp that makes and a warp that takes",
     "@%p7 mbarrier.init.shared.b64 [%r2], 32; @%p7 mbarrier.init.shared.b64 [%r2+8], 32;\n"
     "bar.sync 0; and.b32 %r4, %r0, 31; mov.u32 %r5, tile; mad.lo.u32 %r4, %r4, 4, %r5;\n"
     "mov.u32 %r6, 0; mov.u32 %r7, 0; setp.ge.u32 %p2, %r0, 32; @%p2 bra TAKE;\n"
     "ld.global.u32 %r8, [%d0];\n"
     "MAKE: and.b32 %r9, %r7, 1; xor.b32 %r9, %r9, 1;\n" WAIT(
         "E", "%r2+8",
         "%r9") "add.u32 %r10, %r8, %r7; st.shared.u32 [%r4], %r10; mbarrier.arrive.shared.b64 _, "
                "[%r2];\n"
                "add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 4; @%p3 bra MAKE; bra END;\n"
                "TAKE: and.b32 %r9, %r7, 1;\n" WAIT(
                    "F", "%r2", "%r9") "ld.shared.u32 %r10, [%r4]; add.u32 %r6, %r6, %r10;\n"
                                       "mbarrier.arrive.shared.b64 _, [%r2+8];\n"
                                       "add.u32 %r7, %r7, 1; setp.lt.u32 %p3, %r7, 4; @%p3 bra "
                                       "TAKE;\nEND: " OUT,
     rounds_of_lower},
    {"threads that leave a barrier",
     GATE("64") PARTNER
     "setp.ge.u32 %p2, %r0, 32; @%p2 bra STAY;\n"
     "mbarrier.arrive_drop.shared.b64 _, [%r2]; bra REST;\n"
     "STAY: mbarrier.arrive.shared.b64 _, [%r2];\n" WAIT(
         "W", "%r2",
         "0") "mbarrier.arrive.shared.b64 _, [%r2];\n" WAIT("V", "%r2",
                                                            "1") "REST: cp.async.ca.shared.global "
                                                                 "[%r1], [%d0], 4; "
                                                                 "cp.async.wait_all; bar.sync 0;\n"
                                                                 "ld.shared.u32 %r6, [%r4]; " OUT,
     of_partner},
    {"copies of 16 bytes, zeros behind the last",
     "setp.ge.u32 %p2, %r0, 16; @%p2 bra READ; mov.u32 %r4, tile; mad.lo.u32 %r4, %r0, 16, %r4;\n"
     "mov.u32 %r5, %ctaid.x; shl.b32 %r5, %r5, 6; mad.lo.u32 %r5, %r0, 4, %r5;\n"
     "ld.param.u64 %d5, [in]; mad.wide.u32 %d5, %r5, 4, %d5;\n"
     "cp.async.cg.shared.global.L2::128B [%r4], [%d5], 16; cp.async.wait_all;\n"
     "READ: bar.sync 0;\n" PARTNER "ld.shared.u32 %r6, [%r4]; " OUT,
     of_partner},
};

static unsigned check_good(fixture *f, const good_kernel *k, const vm_module *m, uint64_t seed) {
    vm_result r = run(f, m, seed, VM_CHECK_ALL);
    unsigned wrong = !r.ok;
    for (unsigned i = 0; r.ok && i < THREADS * BLOCKS; i++)
        wrong += f->out[i] != k->expected(f->in + (size_t)(i / THREADS) * THREADS, i % THREADS);
    if (wrong)
        print_error("%s (seed %u): %s\n", k->name, (unsigned)seed,
                    r.ok ? "wrong values" : r.trap.message);
    return wrong;
}

static void test_good(void **state) {
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof good_kernels / sizeof *good_kernels; i++) {
        ev_error err = {0};
        vm_module *m = load(good_kernels[i].body, EV_OK, &err);
        for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
            if (!vm_isa_supported(isa))
                continue;
            vm_module_set_isa(m, isa);
            for (uint64_t seed = 0; seed < 6; seed++)
                wrong += check_good(*state, &good_kernels[i], m, seed);
        }
        vm_module_free(m);
    }
    assert_int_equal(wrong, 0);
}

/* ---- wrong ones */

typedef struct bad_kernel {
    const char *name, *body;
    vm_trap_kind kind;
    const char *says;
} bad_kernel;

static const bad_kernel bad_kernels[] = {
    {"no wait", "cp.async.ca.shared.global [%r1], [%d0], 4; ld.shared.u32 %r6, [%r1]; " OUT,
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"a barrier and no wait",
     PARTNER
     "cp.async.ca.shared.global [%r1], [%d0], 4; bar.sync 0; ld.shared.u32 %r6, [%r4]; " OUT,
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"a commit and no wait",
     "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.commit_group;\n"
     "ld.shared.u32 %r6, [%r1]; " OUT,
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"one group too few waited for",
     "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.commit_group;\n"
     "cp.async.ca.shared.global [%r1+256], [%d0], 4; cp.async.commit_group;\n"
     "cp.async.wait_group 1; ld.shared.u32 %r6, [%r1+256]; " OUT,
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"a wait and no barrier",
     FILL PARTNER
     "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.wait_all; ld.shared.u32 %r6, [%r4]; " OUT,
     VM_TRAP_RACE_SHARED, ""},
    {"a barrier before the wait",
     PARTNER "cp.async.ca.shared.global [%r1], [%d0], 4; bar.sync 0; cp.async.wait_all;\n"
             "ld.shared.u32 %r6, [%r4]; " OUT,
     VM_TRAP_RACE_SHARED, ""},
    {"a store over a copy", "cp.async.ca.shared.global [%r1], [%d0], 4; st.shared.u32 [%r1], %r0;",
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"an atomic on a copy",
     "cp.async.ca.shared.global [%r1], [%d0], 4; red.shared.add.u32 [%r1], %r0;",
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"a copy over a copy",
     "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.ca.shared.global [%r1], [%d0], 4;",
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"all lanes copy to one place",
     "mov.u32 %r4, tile; cp.async.ca.shared.global [%r4], [%d0], 4; cp.async.wait_all;",
     VM_TRAP_RACE_SHARED, ""},
    {"a refill while others read",
     PARTNER "cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.wait_all; bar.sync 0;\n"
             "ld.shared.u32 %r6, [%r4]; cp.async.ca.shared.global [%r1], [%d0], 4;",
     VM_TRAP_RACE_SHARED, ""},
    {"a source behind its buffer",
     "cp.async.ca.shared.global [%r1], [%d0+65536], 4; cp.async.wait_all;", VM_TRAP_OUT_OF_BOUNDS,
     "no buffer"},
    {"half of the source behind its buffer",
     "mov.u32 %r4, 16; mov.u32 %r5, tile; mad.lo.u32 %r5, %r0, 16, %r5; ld.param.u64 %d5, [in];\n"
     "cp.async.cg.shared.global [%r5], [%d5+2048], 16, 4;",
     VM_TRAP_OUT_OF_BOUNDS, "4 bytes"},
    {"a misaligned source", "cp.async.ca.shared.global [%r1], [%d0+2], 4;", VM_TRAP_MISALIGNED, ""},
    {"a misaligned destination", "cp.async.ca.shared.global [%r1+2], [%d0], 4;", VM_TRAP_MISALIGNED,
     ""},
    {"a destination behind shared memory", "cp.async.ca.shared.global [%r1+2048], [%d0], 4;",
     VM_TRAP_OUT_OF_BOUNDS, "shared"},
    {"a source that nothing has written", "cp.async.ca.shared.global [%r1], [%d4], 4;",
     VM_TRAP_UNINITIALISED, ""},
    {"read before the mbarrier tells the end",
     GATE("64") "cp.async.ca.shared.global [%r1], [%d0], 4;\n"
                "cp.async.mbarrier.arrive.noinc.shared.b64 [%r2]; ld.shared.u32 %r6, [%r1]; " OUT,
     VM_TRAP_RACE_SHARED, "cp.async not waited for"},
    {"data behind an mbarrier that was not waited for",
     FILL GATE("64") PARTNER "st.shared.u32 [%r1], %r0; mbarrier.arrive.shared.b64 _, [%r2];\n"
                             "ld.shared.u32 %r6, [%r4]; " OUT,
     VM_TRAP_RACE_SHARED, "which nothing orders"},
    {"arrive first, store afterwards",
     GATE("64") PARTNER "mbarrier.arrive.shared.b64 _, [%r2]; st.shared.u32 [%r1], %r0;\n" WAIT(
         "W", "%r2", "0") "ld.shared.u32 %r6, [%r4]; " OUT,
     VM_TRAP_RACE_SHARED, ""},
    {"an mbarrier that nobody made", "mbarrier.arrive.shared.b64 _, [%r2];", VM_TRAP_UNINITIALISED,
     "mbarrier.init comes first"},
    {"an mbarrier made by another thread just now",
     FILL "@%p7 mbarrier.init.shared.b64 [%r2], 64; @%p7 st.volatile.shared.u32 [%r1], 5;\n"
          "setp.lt.u32 %p2, %r0, 32; @%p2 bra D; mov.u32 %r4, tile;\n"
          "S: ld.volatile.shared.u32 %r5, [%r4]; setp.ne.u32 %p3, %r5, 5; @%p3 bra S;\n"
          "mbarrier.arrive.shared.b64 _, [%r2];\nD:",
     VM_TRAP_RACE_SHARED, "a use of an mbarrier that was made by warp 0"},
    {"made twice",
     "@%p7 mbarrier.init.shared.b64 [%r2], 1; @%p7 mbarrier.init.shared.b64 [%r2], 1;",
     VM_TRAP_BAD_MBARRIER, "mbarrier.inval comes first"},
    {"one arrival too many", GATE("63") "mbarrier.arrive.noComplete.shared.b64 %d2, [%r2], 1;",
     VM_TRAP_BAD_MBARRIER, ""},
    {"more dropped than are expected",
     GATE("4") "@%p7 mbarrier.arrive_drop.shared.b64 _, [%r2], 3;\n"
               "@%p7 mbarrier.arrive.shared.b64 _, [%r2]; @%p7 mbarrier.arrive.shared.b64 _, "
               "[%r2], 3;",
     VM_TRAP_BAD_MBARRIER, "more arrivals than the phase still expects"},
    {"a store to an mbarrier", GATE("64") "@%p7 st.shared.u32 [%r2+4], %r0;", VM_TRAP_RACE_SHARED,
     "only mbarrier instructions"},
    {"a look into an mbarrier", GATE("64") "ld.shared.u64 %d2, [%r2];", VM_TRAP_RACE_SHARED,
     "only mbarrier instructions"},
    {"an mbarrier in global memory", "@%p7 mbarrier.init.b64 [%d4], 1;", VM_TRAP_OUT_OF_BOUNDS,
     "outside shared memory"},
    {"a misaligned mbarrier", "@%p7 mbarrier.init.shared.b64 [%r2+4], 1;", VM_TRAP_MISALIGNED, ""},
    {"an arrival that never comes",
     GATE("65") "mbarrier.arrive.shared.b64 _, [%r2];\n" WAIT("W", "%r2", "0"), VM_TRAP_DEADLOCK,
     "polls shared memory+1152"},
    {"bytes that never come",
     GATE("64") "mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 4;\n" WAIT("W", "%r2", "0"),
     VM_TRAP_DEADLOCK, "polls shared memory+1152, which nothing changes"},
};

static void test_bad(void **state) {
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof bad_kernels / sizeof *bad_kernels; i++) {
        const bad_kernel *k = &bad_kernels[i];
        ev_error err = {0};
        vm_module *m = load(k->body, EV_OK, &err);
        for (uint64_t seed = 0; seed < 3; seed++) {
            vm_result r = run(*state, m, seed, VM_CHECK_ALL);
            if (!r.ok && r.trap.kind == k->kind && strstr(r.trap.message, k->says))
                continue;
            wrong++;
            print_error("%s (seed %u): expected %s \"%s\", got %s\n", k->name, (unsigned)seed,
                        vm_trap_name(k->kind), k->says, r.ok ? "none" : r.trap.message);
        }
        vm_module_free(m);
    }
    assert_int_equal(wrong, 0);
}

/* Without the race check a forgotten wait is not found, but reads what stood there before. */
static void test_unchecked(void **state) {
    fixture *f = *state;
    ev_error err = {0};
    vm_module *m = load("st.shared.u32 [%r1], 7; cp.async.ca.shared.global [%r1], [%d0], 4;\n"
                        "ld.shared.u32 %r6, [%r1]; " OUT,
                        EV_OK, &err);
    vm_result r = run(f, m, 0, 0);
    assert_true(r.ok);
    assert_int_equal(f->out[5], 7);
    vm_module_free(m);
}

/* A copy is a load from global memory and a write to shared memory in the counters. */
static void test_counters(void **state) {
    ev_error err = {0};
    vm_module *m =
        load("cp.async.ca.shared.global [%r1], [%d0], 4; cp.async.wait_all;", EV_OK, &err);
    vm_result r = run(*state, m, 0, VM_CHECK_ALL);
    assert_true(r.ok);
    assert_int_equal(r.counters.global_load_requests, 4);
    assert_int_equal(r.counters.global_load_sectors, 16);
    assert_int_equal(r.counters.global_load_bytes, 512);
    assert_int_equal(r.counters.shared_requests, 4);
    assert_int_equal(r.counters.shared_passes, 4);
    vm_module_free(m);
}

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *insn, *says;
    } refusals[] = {
        {"cp.async.cg.shared.global [%r1], [%d0], 8;", "expected 16"},
        {"cp.async.ca.shared.global [%r1], [%d0], 12;", "expected 4, 8 or 16"},
        {"cp.async.ca.shared.global [%r1], [%d0], 4, 5;", "expected at most 4"},
        {"cp.async.ca.shared.global [%r1], [tile], 4;", "expected a .global variable"},
        {"cp.async.wait_group %r1;", "expected an integer constant"},
        {"cp.async.cs.shared.global [%r1], [%d0], 4;", "expected .ca, .cg"},
        {"mbarrier.init.shared.b64 [%r1];", "found 1 operands"},
        {"mbarrier.arrive.noComplete.shared.b64 %d2, [%r2];", "found 2 operands"},
        {"mbarrier.arrive.shared.b32 %d2, [%r2];", "expected .b64"},
    };
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        ev_error err = {0};
        (void)load(refusals[i].insn, EV_BAD, &err);
        if (!strstr(err.text, refusals[i].says))
            fail_msg("%s: expected \"%s\", got %s", refusals[i].insn, refusals[i].says, err.text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),      cmocka_unit_test(test_bad),
        cmocka_unit_test(test_unchecked), cmocka_unit_test(test_counters),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
