/* Ranks: launches side by side that read, write and signal in each other's memory. Collectives
 * against the host's sums under permuted schedules; what is wrong between ranks is trapped, with
 * the rank and whose buffer it was; traffic to peers is counted. */
#include "tests/fitness/vm/ranks_rig.h"

/* ---- collectives */

static void expect_sums(const rig *r, uint64_t seed) {
    expect_ok(r, seed);
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < RANKS; k++)
            sum += input(k, i);
        for (uint32_t k = 0; k < RANKS; k++)
            assert_int_equal(r->ranks[k].out[i], sum);
    }
}

/* Each block puts its part into its own inbox, and tells the same block of all ranks. */
#define ONE_SHOT_PUT                                                                               \
    "add.u64 %d6, %d1, %d5; ld.global.u32 %r6, [%d6];\n"                                           \
    "add.u64 %d6, %d3, %d5; st.global.u32 [%d6], %r6; bar.sync 0;\n"                               \
    "setp.ge.u32 %p0, %r0, %r5; @%p0 bra READY;\n" PEER(                                           \
        "%d7", "%r0", FLAGS_OF) "mad.lo.u32 %r7, %r1, %r5, %r4; mul.wide.u32 %d8, %r7, 4; "        \
                                "add.u64 %d7, %d7, %d8;\n"                                         \
                                "mad.lo.u32 %r7, %r1, %r5, %r0; mul.wide.u32 %d8, %r7, 4; "        \
                                "add.u64 %d8, %d4, %d8;\n"
#define ONE_SHOT_GET                                                                               \
    "READY: bar.sync 0; mov.u32 %r11, 0; mov.u32 %r10, 0;\n"                                       \
    "NEXT:\n" PEER(                                                                                \
        "%d7", "%r10",                                                                             \
        INBOX_OF) "add.u64 %d7, %d7, %d5; ld.global.u32 %r6, [%d7]; add.u32 %r11, %r11, %r6;\n"    \
                  "add.u32 %r10, %r10, 1; setp.lt.u32 %p0, %r10, %r5; @%p0 bra NEXT;\n"            \
                  "add.u64 %d6, %d2, %d5; st.global.u32 [%d6], %r11;"
#define ONE_SHOT(tell, see)                                                                        \
    ONE_SHOT_PUT tell "\nWAIT: " see " setp.eq.u32 %p1, %r9, 0; @%p1 bra WAIT;\n" ONE_SHOT_GET
#define RELEASE_SYS "st.release.sys.global.u32 [%d7], %r8;"
#define ACQUIRE_SYS "ld.acquire.sys.global.u32 %r9, [%d8];"

static void test_one_shot(void **state) {
    static const char *const kernels[] = {
        ONE_SHOT(RELEASE_SYS, ACQUIRE_SYS),
        ONE_SHOT("fence.acq_rel.sys; st.relaxed.sys.global.u32 [%d7], %r8;",
                 "ld.relaxed.sys.global.u32 %r9, [%d8]; fence.acq_rel.sys;"),
        ONE_SHOT("membar.sys; st.volatile.global.u32 [%d7], %r8;",
                 "ld.volatile.global.u32 %r9, [%d8]; membar.sys;"),
        ONE_SHOT("membar.sys; red.sys.global.add.u32 [%d7], %r8;",
                 "atom.acquire.sys.global.or.b32 %r9, [%d8], 0;"),
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (uint64_t seed = 0; seed < 5; seed++) {
            run(*state, kernels[i], RANKS, seed);
            expect_sums(*state, seed);
        }
}

/* Reduce-scatter, then all-gather: in step s, chunk rank - s goes to the next rank's inbox. */
static const char ring[] =
    "mov.u32 %r10, 0;\n"
    "COPY: mad.lo.u32 %r7, %r10, %r2, %r0; mul.wide.u32 %d6, %r7, 4;\n"
    "add.u64 %d7, %d1, %d6; ld.global.u32 %r6, [%d7]; add.u64 %d7, %d2, %d6;\n"
    "st.global.u32 [%d7], %r6; add.u32 %r10, %r10, 1; setp.lt.u32 %p0, %r10, %r5;\n"
    "@%p0 bra COPY;\n"
    "add.u32 %r7, %r4, 1; rem.u32 %r7, %r7, %r5;\n" PEER("%d10", "%r7", INBOX_OF)
        PEER("%d11", "%r7", FLAGS_OF) /**/
    "mov.u32 %r12, 0; sub.u32 %r13, %r5, 1; shl.b32 %r14, %r13, 1;\n"
    "STEP: shl.b32 %r7, %r5, 1; add.u32 %r7, %r7, %r4; sub.u32 %r7, %r7, %r12;\n"
    "sub.u32 %r15, %r7, 1; rem.u32 %r7, %r7, %r5; rem.u32 %r15, %r15, %r5;\n"
    "mad.lo.u32 %r7, %r7, %r2, %r0; mul.wide.u32 %d6, %r7, 4; add.u64 %d6, %d2, %d6;\n"
    "ld.global.u32 %r6, [%d6]; mad.lo.u32 %r7, %r12, %r2, %r0; mul.wide.u32 %d7, %r7, 4;\n"
    "add.u64 %d6, %d10, %d7; st.global.u32 [%d6], %r6; add.u32 %r12, %r12, 1; bar.sync 0;\n"
    "setp.ne.u32 %p0, %r0, 0; @%p0 bra CAME;\n"
    "membar.sys; red.sys.global.add.u32 [%d11], 1;\n"
    "WAIT: ld.acquire.sys.global.u32 %r9, [%d4]; setp.lt.u32 %p1, %r9, %r12; @%p1 bra WAIT;\n"
    "CAME: bar.sync 0; add.u64 %d7, %d3, %d7; ld.global.u32 %r6, [%d7];\n"
    "mad.lo.u32 %r7, %r15, %r2, %r0; mul.wide.u32 %d6, %r7, 4; add.u64 %d6, %d2, %d6;\n"
    "ld.global.u32 %r9, [%d6]; setp.le.u32 %p0, %r12, %r13; @%p0 add.u32 %r6, %r6, %r9;\n"
    "st.global.u32 [%d6], %r6; setp.lt.u32 %p0, %r12, %r14; @%p0 bra STEP;";

static void test_ring(void **state) {
    for (uint64_t seed = 0; seed < 6; seed++) {
        run(*state, ring, 1, seed);
        expect_sums(*state, seed);
    }
}

/* Block b sends the b-th part of `in` to rank b. */
static const char all_to_all[] = "add.u64 %d6, %d1, %d5; ld.global.u32 %r6, [%d6];\n" PEER(
    "%d7", "%r1",
    OUT) "mad.lo.u32 %r7, %r4, %r2, %r0; mul.wide.u32 %d8, %r7, 4; add.u64 %d7, %d7, %d8;\n"
         "st.global.u32 [%d7], %r6;";

static void test_all_to_all(void **state) {
    rig *r = *state;
    for (uint64_t seed = 0; seed < 4; seed++) {
        run(r, all_to_all, RANKS, seed);
        expect_ok(r, seed);
        for (uint32_t to = 0; to < RANKS; to++) {
            for (uint32_t i = 0; i < WORDS; i++)
                assert_int_equal(r->ranks[to].out[i],
                                 input(i / THREADS, to * THREADS + i % THREADS));
            assert_int_equal(
                vm_memory_written(r->ranks[to].memory, r->ranks[to].address[1], 4, 0, WORDS, NULL),
                WORDS);
        }
    }
}

static void test_traffic(void **state) {
    rig *r = *state;
    run(r, all_to_all, RANKS, 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        const vm_counters *c = &r->results[i].counters;
        assert_int_equal(c->blocks, RANKS);
        assert_int_equal(c->global_store_bytes, WORDS * 4);
        assert_int_equal(c->peer_store_bytes, (RANKS - 1) * THREADS * 4);
        assert_int_equal(c->peer_store_sectors, (RANKS - 1) * THREADS * 4 / 32);
        assert_int_equal(c->peer_store_requests, (RANKS - 1) * THREADS / 32);
        assert_int_equal(c->peer_load_bytes, 0);
        assert_int_equal(c->peer_atomics, 0);
    }
    run(r,
        PEER("%d7", "%r0", FLAGS_OF) "setp.lt.u32 %p0, %r0, %r5;\n"
                                     "@%p0 red.sys.global.add.u32 [%d7], 3;",
        1, 0);
    assert_false(r->results[0].ok); /* the table has no rank 63 */
    run(r,
        "setp.ge.u32 %p0, %r0, %r5; @%p0 ret;\n" PEER(
            "%d7", "%r0",
            FLAGS_OF) "red.sys.global.add.u32 [%d7], 3; red.sys.global.add.u32 [%d7+4], 1;",
        1, 0);
    expect_ok(r, 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(r->ranks[i].flags[0], 3 * RANKS);
        assert_int_equal(r->results[i].counters.peer_atomics, 2 * (RANKS - 1));
        assert_int_equal(r->results[i].counters.atomics, 2 * RANKS);
        assert_int_equal(r->results[i].counters.peer_store_sectors, 2 * (RANKS - 1));
    }
}

static void test_seed_repeats(void **state) {
    rig *r = *state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        vm_result first[RANKS];
        run(r, ring, 1, seed);
        memcpy(first, r->results, sizeof first);
        run(r, ring, 1, seed);
        for (uint32_t i = 0; i < RANKS; i++)
            assert_memory_equal(&first[i].counters, &r->results[i].counters,
                                sizeof first[i].counters);
    }
}

/* A kernel started on one memory reaches its peers', whose ranks do not run. */
static void test_alone(void **state) {
    rig *r = *state;
    ev_error err;
    vm_module *m = load(all_to_all);
    vm_launch l = launch_of(&r->ranks[2], m, RANKS, 0);
    l.jobs = 2;
    vm_result result;
    for (uint32_t i = 0; i < RANKS; i++)
        vm_memory_reset(r->ranks[i].memory, 0);
    assert_int_equal(vm_run(r->ranks[2].memory, &l, &result, &err), EV_OK);
    assert_true(result.ok);
    assert_int_equal(result.counters.peer_store_bytes, (RANKS - 1) * THREADS * 4);
    assert_int_equal(r->ranks[1].out[2ul * THREADS], input(2, THREADS));
    assert_int_equal(r->ranks[1].out[3ul * THREADS], 0);
    vm_module_free(m);
}

/* Each rank has the variables of its own module. */
static void test_globals(void **state) {
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 mine = 5;\n"
        ".visible .entry k(.param .u64 table, .param .u32 rank, .param .u32 ranks) {\n"
        ".reg .b32 %r<8>; .reg .b64 %d<8>;\n"
        "ld.param.u32 %r1, [rank]; ld.global.u32 %r2, [mine]; add.u32 %r2, %r2, %r1;\n"
        "st.global.u32 [mine], %r2; ld.param.u64 %d1, [table]; mul.wide.u32 %d2, %r1, 32;\n"
        "add.u64 %d1, %d1, %d2; ld.global.u64 %d3, [%d1+8]; st.global.u32 [%d3], %r2; ret; }\n";
    rig *r = *state;
    ev_error err;
    vm_module *m = NULL;
    assert_int_equal(vm_module_load(text, sizeof text - 1, "k.ptx", &m, &err), EV_OK);
    vm_launch launches[RANKS];
    vm_rank ranks[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        vm_memory_reset(r->ranks[i].memory, 0);
        launches[i] = launch_of(&r->ranks[i], m, 1, 0);
        launches[i].block[0] = 1;
        ranks[i] = (vm_rank){r->ranks[i].memory, &launches[i]};
    }
    assert_int_equal(vm_run_ranks(ranks, RANKS, r->results, &err), EV_OK);
    expect_ok(r, 0);
    for (uint32_t i = 0; i < RANKS; i++)
        assert_int_equal(r->ranks[i].out[0], 5 + i);
    vm_module_free(m);
}

/* The memories' distance leads to the same variable of a peer. */
static void test_peers_variable(void **state) {
    static const char text[] =
        ".version 8.0\n.target sm_80\n.address_size 64\n.global .u32 mine = 5;\n"
        ".visible .entry k(.param .u64 table, .param .u32 rank, .param .u32 ranks) {\n"
        ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p0;\n"
        "ld.param.u32 %r1, [rank]; setp.ne.u32 %p0, %r1, 0; @%p0 ret;\n"
        "ld.param.u64 %d1, [table]; ld.global.u64 %d2, [%d1]; ld.global.u64 %d3, [%d1+64];\n"
        "sub.u64 %d3, %d3, %d2; mov.u64 %d4, mine; add.u64 %d4, %d4, %d3;\n"
        "ld.global.u32 %r2, [%d4]; ld.global.u32 %r2, [%d4+4]; ret; }\n";
    rig *r = *state;
    ev_error err;
    vm_module *m = NULL;
    assert_int_equal(vm_module_load(text, sizeof text - 1, "k.ptx", &m, &err), EV_OK);
    run_two(r, m, RANKS, NULL, 1, 0);
    EXPECT(r, VM_TRAP_OUT_OF_BOUNDS, "offset 4 in global variable 'mine' of 4 bytes of rank 2",
           "in rank 0, block");
    vm_module_free(m);
}

/* ---- what is wrong */

static void test_out_of_bounds(void **state) {
    run(*state,
        "setp.ne.u32 %p0, %r4, 2; @%p0 ret;\n" PEER(
            "%d7", "%r8", OUT) "add.u64 %d7, %d7, %d5; st.global.u32 [%d7+896], %r4;",
        1, 0);
    EXPECT(*state, VM_TRAP_OUT_OF_BOUNDS, "offset 1024 in buffer 'out' of 1024 bytes of rank 1",
           "in rank 2, block (0, 0, 0) thread (32, 0, 0)");
    assert_int_equal(((rig *)*state)->results[0].trap.rank, 2);
}

static void test_beyond_all(void **state) {
    run(*state, "add.u64 %d7, %d2, 1073741824; ld.global.u32 %r6, [%d7];", 1, 0);
    EXPECT(*state, VM_TRAP_OUT_OF_BOUNDS, "an access of 4 bytes in no buffer");
}

static void test_freed_peer(void **state) {
    rig *r = *state;
    ev_error err;
    vm_module *m = load(all_to_all);
    vm_launch l = launch_of(&r->ranks[0], m, RANKS, 0);
    vm_memory_free(r->ranks[3].memory);
    r->ranks[3].memory = NULL;
    assert_int_equal(vm_run(r->ranks[0].memory, &l, r->results, &err), EV_OK);
    assert_int_equal(r->results[0].trap.kind, VM_TRAP_OUT_OF_BOUNDS);
    assert_int_equal(r->results[0].trap.block[0], 3);
    vm_module_free(m);
}

static void test_misaligned(void **state) {
    run(*state, PEER("%d7", "%r8", OUT) "st.global.u32 [%d7+2], %r4;", 1, 0);
    EXPECT(*state, VM_TRAP_MISALIGNED, "offset 2 in buffer 'out' of rank 1", "rank 0, block");
}

static void test_writes_input(void **state) {
    run(*state, PEER("%d7", "%r8", IN) "add.u64 %d7, %d7, %d5; st.global.u32 [%d7], %r4;", 1, 0);
    EXPECT(*state, VM_TRAP_READ_ONLY_WRITE, "buffer 'in' of rank 1", "rank 0, block");
}

static void test_uninitialised(void **state) {
    run(*state, PEER("%d7", "%r8", OUT) "ld.global.u32 %r6, [%d7+64];", 1, 0);
    EXPECT(*state, VM_TRAP_UNINITIALISED, "offset 64 in buffer 'out' of rank 1", "rank 0, block");
}

#define FAR "of rank ", "which nothing of scope .sys orders"

/* Reads a peer's inbox that the peer may not have filled yet. */
static void test_missing_flag(void **state) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        run(*state, ONE_SHOT_PUT "\n" RELEASE_SYS "\n" ONE_SHOT_GET, RANKS, seed);
        const vm_trap *t = &((rig *)*state)->results[0].trap;
        if (t->kind == VM_TRAP_UNINITIALISED) /* the peer has not come so far */
            EXPECT(*state, VM_TRAP_UNINITIALISED, "in buffer 'inbox' of rank ");
        else
            EXPECT(*state, VM_TRAP_RACE_GLOBAL, "buffer 'inbox' of rank ", FAR);
    }
}

static void test_plain_race(void **state) {
    run(*state,
        "setp.ne.u32 %p0, %r0, 0; @%p0 ret; mov.u32 %r7, 2;\n" PEER(
            "%d7", "%r7", OUT) "st.global.u32 [%d7], %r8;",
        1, 0);
    EXPECT(*state, VM_TRAP_RACE_GLOBAL, "a write over what was written by warp ",
           "in buffer 'out' of rank 2", FAR);
}

/* The flag comes, but nothing says that what was written before it has. */
static void test_missing_fence(void **state) {
    run(*state, ONE_SHOT("st.relaxed.sys.global.u32 [%d7], %r8;", ACQUIRE_SYS), RANKS, 0);
    EXPECT(*state, VM_TRAP_RACE_GLOBAL, "buffer 'inbox' of rank ", FAR);
}

/* The flag is read, and what it announced is loaded without an acquire fence of scope .sys since.
 */
static void test_no_acquire(void **state) {
    static const char *const kernels[] = {
        ONE_SHOT(RELEASE_SYS, "ld.volatile.global.u32 %r9, [%d8];"),
        ONE_SHOT(RELEASE_SYS, "ld.relaxed.sys.global.u32 %r9, [%d8];"),
        ONE_SHOT(RELEASE_SYS, "atom.sys.global.or.b32 %r9, [%d8], 0;"),
        ONE_SHOT(RELEASE_SYS, "ld.volatile.global.u32 %r9, [%d8]; fence.acq_rel.gpu;"),
    };
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            run(*state, kernels[i], RANKS, seed);
            EXPECT(*state, VM_TRAP_RACE_GLOBAL,
                   "a flag was read without an acquire fence of scope .sys after it", "'inbox'");
        }
}

/* Scopes that end at the rank. */
static void test_narrow_scope(void **state) {
    static const struct {
        const char *kernel, *buffer;
    } cases[] = {
        {ONE_SHOT("st.release.gpu.global.u32 [%d7], %r8;", ACQUIRE_SYS), "'flags'"},
        {ONE_SHOT(RELEASE_SYS, "ld.acquire.gpu.global.u32 %r9, [%d8];"), "'flags'"},
        {ONE_SHOT("fence.acq_rel.gpu; st.relaxed.sys.global.u32 [%d7], %r8;", ACQUIRE_SYS),
         "'inbox'"},
        {ONE_SHOT("membar.gl; st.volatile.global.u32 [%d7], %r8;",
                  "ld.volatile.global.u32 %r9, [%d8];"),
         "'inbox'"},
        {ONE_SHOT("membar.sys; atom.global.add.u32 %r9, [%d7], 1;", ACQUIRE_SYS), "'flags'"},
        {"mov.u32 %r7, 0;\n" PEER("%d7", "%r7", FLAGS_OF) "red.global.add.u32 [%d7], 1;",
         "'flags'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint64_t seed = 0; seed < 3; seed++) {
            run(*state, cases[i].kernel, RANKS, seed);
            EXPECT(*state, VM_TRAP_RACE_GLOBAL, cases[i].buffer, FAR);
        }
}

/* Scope .gpu is enough for what one rank alone touches, in its own memory or a peer's. */
static void test_narrow_is_enough(void **state) {
    rig *r = *state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        run(r,
            "add.u32 %r7, %r4, 1; rem.u32 %r7, %r7, %r5;\n" PEER(
                "%d7", "%r7",
                FLAGS_OF) "red.global.add.u32 [%d7], 1; red.gpu.global.add.u32 [%d4+4], 1;\n"
                          "red.sys.global.add.u32 [%d7], 1;",
            RANKS, seed);
        expect_ok(r, seed);
        for (uint32_t i = 0; i < RANKS; i++) {
            assert_int_equal(r->ranks[i].flags[0], 2 * WORDS);
            assert_int_equal(r->ranks[i].flags[1], WORDS);
        }
    }
}

/* A message passed on: rank 0 tells rank 1, which adds to the flag that rank 2 waits for. */
static void test_passed_on(void **state) {
    rig *r = *state;
    run(r,
        "setp.ne.u32 %p0, %r0, 0; @%p0 ret; mov.u32 %r7, 0;\n" PEER("%d6", "%r7", INBOX_OF)
            PEER("%d7", "%r7", FLAGS_OF) /**/
        "setp.eq.u32 %p0, %r4, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %r4, 1; @%p0 bra SECOND;\n"
        "setp.eq.u32 %p0, %r4, 3; @%p0 ret;\n"
        "LAST: ld.acquire.sys.global.u32 %r9, [%d7]; setp.lt.u32 %p1, %r9, 2; @%p1 bra LAST;\n"
        "ld.global.u32 %r6, [%d6]; st.global.u32 [%d2], %r6; ret;\n"
        "SECOND: atom.relaxed.sys.global.cas.b32 %r9, [%d7], 1, 2; setp.ne.u32 %p1, %r9, 1;\n"
        "@%p1 bra SECOND; ret;\n"
        "FIRST: mov.u32 %r6, 77; st.global.u32 [%d6], %r6; membar.sys;\n"
        "st.relaxed.sys.global.u32 [%d7], %r8;",
        1, 0);
    expect_ok(r, 0);
    assert_int_equal(r->ranks[2].out[0], 77);
}

static void test_rank_never_comes(void **state) {
    vm_module *m = load(ONE_SHOT(RELEASE_SYS, ACQUIRE_SYS)), *gone = load("");
    for (uint64_t seed = 0; seed < 3; seed++) {
        run_two(*state, m, 3, gone, RANKS, seed);
        EXPECT(*state, VM_TRAP_DEADLOCK, "polls 'flags'+", " of rank ", "which nothing changes",
               "; rank 3 has ended", ", in rank ");
    }
    vm_module_free(m);
    vm_module_free(gone);
}

/* All wait for each other's flag before they raise their own. */
static void test_all_wait(void **state) {
    run(*state,
        "WAIT: ld.acquire.sys.global.u32 %r9, [%d4]; setp.eq.u32 %p1, %r9, 0; @%p1 bra WAIT;\n"
        "add.u32 %r7, %r4, 1; rem.u32 %r7, %r7, %r5;\n" PEER("%d7", "%r7", FLAGS_OF) RELEASE_SYS,
        1, 0);
    EXPECT(*state, VM_TRAP_DEADLOCK, "polls 'flags'+0 of rank 0, which nothing changes",
           "7 other warps spin too", ", in rank 0, block (0, 0, 0)");
    assert_null(strstr(((rig *)*state)->results[0].trap.message, "ended"));
}

#define SLOW                                                                                       \
    "mov.u32 %r6, 0;\nLOOP: add.u32 %r6, %r6, 1; setp.lt.u32 %p1, %r6, 40000; @%p1 bra LOOP;\n"

/* One computes for long while the others wait: that is no deadlock. */
static void test_slow_rank(void **state) {
    vm_module *m = load("WAIT: ld.acquire.sys.global.u32 %r9, [%d4]; setp.eq.u32 %p1, %r9, 0;\n"
                        "@%p1 bra WAIT;");
    vm_module *slow = load(SLOW "setp.ge.u32 %p0, %r0, %r5; @%p0 ret;\n" //
                           PEER("%d7", "%r0", FLAGS_OF) RELEASE_SYS);
    for (uint64_t seed = 0; seed < 2; seed++) {
        run_two(*state, m, 1, slow, 1, seed);
        expect_ok(*state, seed);
    }
    vm_module_free(m);
    vm_module_free(slow);
}

/* ---- ranks that begin and end apart */

static void test_apart_is_right(void **state) {
    rig *r = *state;
    r->apart = VM_CHECK_BEGIN | VM_CHECK_END;
    for (uint64_t seed = 0; seed < 6; seed++) {
        run(r, ONE_SHOT(RELEASE_SYS, ACQUIRE_SYS), RANKS, seed);
        expect_sums(r, seed);
        run(r, ring, 1, seed);
        expect_sums(r, seed);
    }
}

/* Nobody waits for what the peers write: a rank may end before. Behind a barrier of all ranks the
 * same kernel is right (test_all_to_all). */
static void test_ends_before(void **state) {
    rig *r = *state;
    r->apart = VM_CHECK_END;
    for (uint64_t seed = 0; seed < 4; seed++) {
        run(r, all_to_all, RANKS, seed);
        EXPECT(r, VM_TRAP_RACE_END, "race-end: a write ", "into the memory of rank ",
               "in buffer 'out' of rank ", ", in rank ", " thread (");
    }
}

#define ONE_THREAD(n) "setp.ne.u32 %p0, %r3, " n "; setp.ne.or.u32 %p0, %r4, 1, %p0; @%p0 ret;\n"

static void run_beside(rig *r, const char *body, const char *third, uint32_t blocks, uint64_t n) {
    vm_module *m = load(body), *other = load(third);
    run_two(r, m, 3, other, blocks, n);
    vm_module_free(m);
    vm_module_free(other);
}

#define HALF "st.global.u16 [%d7+2], %r8;"

/* Rank 3 ends long after the others have written to it, but not because it waited. */
static void test_unheard(void **state) {
    rig *r = *state;
    static const char body[] = ONE_THREAD("40") "mov.u32 %r7, 3;\n" PEER("%d7", "%r7", OUT) /**/
        "st.global.u32 [%d7+12], %r8;";
    r->apart = VM_CHECK_END;
    for (uint64_t seed = 0; seed < 3; seed++) {
        run_beside(r, body, SLOW, 1, seed);
        EXPECT(r, VM_TRAP_RACE_END,
               "k.ptx: race-end: a write into the memory of rank 3, which nothing of scope .sys "
               "told that rank of before its end at address ",
               ", offset 12 in buffer 'out' of rank 3, in rank 1, block (0, 0, 0) thread (40, 0, "
               "0)");
        assert_int_equal(r->results[0].trap.rank, 1);
        assert_int_equal(r->results[0].trap.thread[0], 40);
    }
    /* half of a word has entries of its own in the shadow */
    run_beside(r, ONE_THREAD("0") "mov.u32 %r7, 3;\n" PEER("%d7", "%r7", OUT) HALF, SLOW, 1, 0);
    EXPECT(r, VM_TRAP_RACE_END, "offset 0 in buffer 'out' of rank 3");
    r->apart = 0;
    run_beside(r, body, SLOW, 1, 0);
    expect_ok(r, 0);
}

/* A flag without a fence tells of itself, to one warp that polls from the beginning or to several.
 */
#define TELL(how)                                                                                  \
    ONE_THREAD("0")                                                                                \
    SLOW "mov.u32 %r7, 3;\n" PEER("%d7", "%r7", FLAGS_OF) "st." how ".global.u32 [%d7], %r8;"
#define POLL(how) "WAIT: ld." how ".global.u32 %r9, [%d4]; setp.eq.u32 %p1, %r9, 0; @%p1 bra WAIT;"

static void test_a_flag_tells_of_itself(void **state) {
    rig *r = *state;
    r->apart = VM_CHECK_END;
    for (uint64_t i = 0; i < 8; i++) {
        run_beside(r, i & 1 ? TELL("volatile") : TELL("relaxed.sys"),
                   i & 1 ? POLL("volatile") : POLL("relaxed.sys"), i < 4 ? 1 : 2, i);
        expect_ok(r, i);
    }
}

/* Rank 0 tells rank 1, and rank 1 rank 2, into whose memory rank 0 has written. A flag without a
 * fence tells of nothing but itself. */
#define RELAY(first, second)                                                                       \
    "setp.ne.u32 %p0, %r0, 0; @%p0 ret; mov.u32 %r7, 1; mov.u32 %r10, 2;\n" PEER(                  \
        "%d6", "%r10", OUT) PEER("%d7", "%r7", FLAGS_OF) PEER("%d8", "%r10", FLAGS_OF) /**/        \
        "setp.eq.u32 %p0, %r4, 0; @%p0 bra FIRST; setp.eq.u32 %p0, %r4, 1; @%p0 bra SECOND;\n"     \
        "setp.eq.u32 %p0, %r4, 3; @%p0 ret;\n"                                                     \
        "LAST: ld.acquire.sys.global.u32 %r9, [%d8]; setp.eq.u32 %p1, %r9, 0; @%p1 bra LAST; "     \
        "ret;\n"                                                                                   \
        "SECOND: ld.acquire.sys.global.u32 %r9, [%d7]; setp.eq.u32 %p1, %r9, 0;\n"                 \
        "@%p1 bra SECOND; " second " [%d8], %r8; ret;\n"                                           \
        "FIRST: st.global.u32 [%d6], %r8; " first " [%d7], %r8;"

static void test_heard_from_another(void **state) {
    rig *r = *state;
    r->apart = VM_CHECK_END;
    for (uint64_t seed = 0; seed < 4; seed++) {
        run(r, RELAY("st.release.sys.global.u32", "st.release.sys.global.u32"), 1, seed);
        expect_ok(r, seed);
        run(r, RELAY("st.release.sys.global.u32", "st.relaxed.sys.global.u32"), 1, seed);
        EXPECT(r, VM_TRAP_RACE_END, "into the memory of rank 2", "'out' of rank 2", ", in rank 0");
        run(r, RELAY("st.relaxed.sys.global.u32", "st.release.sys.global.u32"), 1, seed);
        EXPECT(r, VM_TRAP_RACE_END, "into the memory of rank 2", "'out' of rank 2", ", in rank 0");
    }
}

/* Each rank reads its peers' inputs: before their flags, or behind them. */
#define READ_INPUTS                                                                                \
    "mov.u32 %r11, 0; mov.u32 %r10, 0;\n"                                                          \
    "ADD:\n" PEER("%d7", "%r10",                                                                   \
                  IN) "add.u64 %d7, %d7, %d5; ld.global.u32 %r6, [%d7]; add.u32 %r11, %r11, "      \
                      "%r6;\n"                                                                     \
                      "add.u32 %r10, %r10, 1; setp.lt.u32 %p0, %r10, %r5; @%p0 bra ADD;\n"

static void test_not_begun(void **state) {
    rig *r = *state;
    r->apart = VM_CHECK_BEGIN;
    for (uint64_t seed = 0; seed < 4; seed++) {
        run(r, READ_INPUTS ONE_SHOT(RELEASE_SYS, ACQUIRE_SYS), RANKS, seed);
        EXPECT(r, VM_TRAP_RACE_BEGIN, "race-begin: a read of 4 bytes of rank ",
               "'s input before anything of scope .sys told that its launch has begun",
               "in buffer 'in' of rank ");
        run(r, ONE_SHOT(RELEASE_SYS, ACQUIRE_SYS) READ_INPUTS "st.global.u32 [%d6], %r11;", RANKS,
            seed);
        expect_sums(r, seed);
    }
    r->apart = 0; /* all inputs are in place */
    run(r, READ_INPUTS ONE_SHOT(RELEASE_SYS, ACQUIRE_SYS), RANKS, 1);
    expect_sums(r, 1);
}

/* What a peer has in a buffer from before its launch is no input, but as early. Flags may be
 * polled. */
static void test_not_begun_inout(void **state) {
    static const char poll[] = "add.u32 %r7, %r4, 1; rem.u32 %r7, %r7, %r5;\n" PEER(
        "%d7", "%r7", FLAGS_OF) "st.relaxed.sys.global.u32 [%d4+8], %r8;\n"
                                "WAIT: ld.relaxed.sys.global.u32 %r9, [%d7+8];\n"
                                "setp.eq.u32 %p1, %r9, 0; @%p1 bra WAIT;";
    rig *r = *state;
    r->apart = VM_CHECK_BEGIN;
    run(r,
        "add.u32 %r7, %r4, 1; rem.u32 %r7, %r7, %r5;\n" PEER(
            "%d7", "%r7", FLAGS_OF) "ld.global.u32 %r9, [%d7+128];",
        1, 0);
    EXPECT(r, VM_TRAP_RACE_BEGIN, "'s buffer before anything of scope .sys told",
           "offset 128 in buffer 'flags' of rank 1");
    for (uint64_t seed = 0; seed < 3; seed++) {
        run(r, poll, 1, seed);
        expect_ok(r, seed);
    }
}

/* ---- refused */

static void test_no_peers(void **state) {
    rig *r = *state;
    ev_error err;
    vm_memory *alone = NULL;
    vm_module *m = load("");
    vm_launch l = launch_of(&r->ranks[0], m, 1, 0);
    assert_int_equal(vm_memory_new(1 << 20, &alone, &err), EV_OK);
    vm_rank ranks[2] = {{r->ranks[0].memory, &l}, {alone, &l}};
    assert_int_equal(vm_run_ranks(ranks, 2, r->results, &err), EV_BAD);
    assert_non_null(strstr(err.text, "rank 1: its memory is no peer of rank 0's"));
    ranks[1].memory = r->ranks[0].memory;
    assert_int_equal(vm_run_ranks(ranks, 2, r->results, &err), EV_BAD);
    assert_non_null(strstr(err.text, "ranks 0 and 1 have the same memory"));
    vm_launch bad = l;
    bad.block[0] = 2048;
    ranks[1] = (vm_rank){r->ranks[1].memory, &bad};
    assert_int_equal(vm_run_ranks(ranks, 2, r->results, &err), EV_BAD);
    assert_non_null(strstr(err.text, "rank 1: k: a block of 2048x1x1 threads"));
    ranks[0] = (vm_rank){alone, &l};
    assert_int_equal(vm_run_ranks(ranks, 1, r->results, &err), EV_OK);
    assert_int_equal(r->results[0].trap.kind, VM_TRAP_OUT_OF_BOUNDS); /* the table is elsewhere */
    vm_memory_free(alone);
    vm_module_free(m);
}

static void test_too_big(void **state) {
    (void)state;
    ev_error err;
    vm_memory *memories[8];
    assert_int_equal(vm_memory_new_peers(1ull << 42, 8, memories, &err), EV_BAD);
    assert_non_null(strstr(err.text, "16 TiB in all"));
    assert_null(memories[0]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_one_shot),
        TEST(test_ring),
        TEST(test_all_to_all),
        TEST(test_traffic),
        TEST(test_seed_repeats),
        TEST(test_alone),
        TEST(test_globals),
        TEST(test_peers_variable),
        TEST(test_out_of_bounds),
        TEST(test_beyond_all),
        TEST(test_freed_peer),
        TEST(test_misaligned),
        TEST(test_writes_input),
        TEST(test_uninitialised),
        TEST(test_missing_flag),
        TEST(test_plain_race),
        TEST(test_missing_fence),
        TEST(test_narrow_scope),
        TEST(test_no_acquire),
        TEST(test_narrow_is_enough),
        TEST(test_passed_on),
        TEST(test_rank_never_comes),
        TEST(test_all_wait),
        TEST(test_slow_rank),
        TEST(test_no_peers),
        TEST(test_too_big),
        TEST(test_apart_is_right),
        TEST(test_ends_before),
        TEST(test_unheard),
        TEST(test_a_flag_tells_of_itself),
        TEST(test_heard_from_another),
        TEST(test_not_begun),
        TEST(test_not_begun_inout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
