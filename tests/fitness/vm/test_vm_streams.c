/* Streams: rows of launches of the same ranks, without a barrier of the ranks between them. What
 * the launches tell each other counts from launch to launch; what a rank forgets to wait for is
 * trapped in the launch that needs it: a read of what is written in any order of the ranks, a write
 * of what is read unless the own rank was the first to read the word. */
#include "tests/fitness/vm/ranks_rig.h"

/* Runs the bodies one behind the other, until one traps. */
static void run_row(rig *r, const char *const *bodies, uint32_t blocks, uint64_t seed) {
    for (uint32_t i = 0; i < RANKS; i++) {
        vm_memory_reset(r->ranks[i].memory, 0xcd);
        memset(r->ranks[i].flags, 0, (size_t)FLAGS * 4);
    }
    r->results[0].ok = true;
    for (size_t k = 0; bodies[k] && r->results[0].ok; k++) {
        ev_error err;
        vm_launch launches[RANKS];
        vm_rank ranks[RANKS];
        vm_module *m = load(bodies[k]);
        for (uint32_t i = 0; i < RANKS; i++) {
            launches[i] = launch_of(&r->ranks[i], m, blocks, seed);
            launches[i].checks |= VM_CHECK_BEGIN | VM_CHECK_END;
            launches[i].stream =
                (k > 0 ? VM_STREAM_FOLLOWS : 0u) | (bodies[k + 1] ? VM_STREAM_GOES_ON : 0u);
            ranks[i] = (vm_rank){r->ranks[i].memory, &launches[i]};
        }
        if (vm_run_ranks(ranks, RANKS, r->results, &err) != EV_OK)
            fail_msg("%s", err.text);
        vm_module_free(m);
    }
}
#define RUN(r, seed, ...) run_row(r, (const char *const[]){__VA_ARGS__, NULL}, 1, seed)

#define NEXT_RANK "add.u32 %r7, %r4, 1; rem.u32 %r7, %r7, %r5;\n"
/* Numbers into the inbox of the next rank; a flag there; the wait for the own flag; the read. */
#define SEND_BY(store)                                                                             \
    NEXT_RANK PEER("%d7", "%r7", INBOX_OF) "add.u64 %d6, %d1, %d5; ld.global.u32 %r6, [%d6];\n"    \
                                           "add.u64 %d7, %d7, %d5; " store " [%d7], %r6;\n"
#define SEND SEND_BY("st.global.u32")
#define TELL_BY(store)                                                                             \
    NEXT_RANK PEER("%d8", "%r7", FLAGS_OF) "bar.sync 0; setp.eq.u32 %p0, %r0, 0;\n"                \
                                           "@%p0 " store " [%d8], %r8;\n"
#define TELL TELL_BY("st.release.sys.global.u32")
#define WAIT                                                                                       \
    "setp.ne.u32 %p0, %r0, 0; @%p0 bra CAME;\n"                                                    \
    "POLL: ld.acquire.sys.global.u32 %r9, [%d4]; setp.eq.u32 %p1, %r9, 0; @%p1 bra POLL;\n"        \
    "CAME: bar.sync 0;\n"
#define TELL_LAST                                                                                  \
    "add.u32 %r7, %r4, %r5; sub.u32 %r7, %r7, 1; rem.u32 %r7, %r7, %r5;\n" PEER(                   \
        "%d8", "%r7", FLAGS_OF) "bar.sync 0; setp.eq.u32 %p0, %r0, 0;\n"                           \
                                "@%p0 st.release.sys.global.u32 [%d8], %r8;\n"
#define TELL_AGAIN "mov.u32 %r8, 2;\n" TELL
#define WAIT_AGAIN                                                                                 \
    "setp.ne.u32 %p0, %r0, 0; @%p0 bra CAME;\n"                                                    \
    "POLL: ld.acquire.sys.global.u32 %r9, [%d4]; setp.lt.u32 %p1, %r9, 2; @%p1 bra POLL;\n"        \
    "CAME: bar.sync 0;\n"
#define READ                                                                                       \
    "add.u64 %d6, %d3, %d5; ld.global.u32 %r6, [%d6]; add.u64 %d6, %d2, %d5;\n"                    \
    "st.global.u32 [%d6], %r6;\n"

static void expect_passed(const rig *r, uint64_t seed) {
    expect_ok(r, seed);
    for (uint32_t i = 0; i < RANKS; i++)
        for (uint32_t k = 0; k < THREADS; k++)
            assert_int_equal(r->ranks[i].out[k], input((i + RANKS - 1) % RANKS, k));
}

/* A message may be sent in one launch and taken in another. */
static void test_told_across(void **state) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        RUN(*state, seed, SEND TELL, WAIT READ);
        expect_passed(*state, seed);
        RUN(*state, seed, SEND TELL WAIT, READ);
        expect_passed(*state, seed);
        RUN(*state, seed, SEND, TELL, "ret;", WAIT, READ);
        expect_passed(*state, seed);
    }
}

/* The baseline that forgets to wait for its peers. */
static void test_forgotten_wait(void **state) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        RUN(*state, seed, SEND TELL, READ);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "race-global: a read of what was written by warp ",
               " of block 0 of rank ", " in an earlier launch, which nothing of scope .sys orders",
               "in buffer 'inbox'");
        RUN(*state, seed, SEND TELL WAIT, "ret;", SEND TELL, READ WAIT);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "of what was ", " in an earlier launch, which nothing");
        RUN(*state, seed, SEND_BY("st.global.u16 [%d7+2], %r6; st.global.u16"), READ);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "a read of what was written by warp ");
        RUN(*state, seed, SEND TELL_BY("st.release.gpu.global.u32"), WAIT READ);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "which nothing of scope .sys orders");
    }
}

/* What is sent behind the flag, the flag does not tell. */
static void test_sent_too_late(void **state) {
    for (uint64_t seed = 0; seed < 4; seed++) {
        RUN(*state, seed, TELL WAIT SEND, READ);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "a read of what was written by warp ",
               " in an earlier launch");
    }
}

/* A peer may still read what the next launch writes over. */
static void test_write_after_read(void **state) {
#define LOOK "add.u64 %d6, %d4, %d5; setp.ge.u32 %p0, %r0, 32; @%p0 ld.global.u32 %r6, [%d6];\n"
#define WRITE_OVER                                                                                 \
    NEXT_RANK PEER("%d7", "%r7", FLAGS_OF) "add.u64 %d7, %d7, %d5; setp.ge.u32 %p0, %r0, 40;\n"    \
                                           "@%p0 st.global.u32 [%d7], %r8;\n"
    for (uint64_t seed = 0; seed < 4; seed++) {
        RUN(*state, seed, LOOK, WRITE_OVER TELL WAIT);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL,
               "a write over what was read by warp 1 of block 0 of rank ",
               " in an earlier launch, which nothing of scope .sys orders");
        RUN(*state, seed, "ret;", LOOK, LOOK, WRITE_OVER TELL WAIT);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "a write over what was read by ");
        RUN(*state, seed, LOOK, "ret;", TELL_LAST WAIT, WRITE_OVER TELL_AGAIN WAIT_AGAIN);
        expect_ok(*state, seed);
    }
}

/* A later block of the rank reads once more what the peer has heard of being read. */
static void test_read_again(void **state) {
#define BLOCK_ALONE(b) "setp.ne.u32 %p2, %r1, " b "; @%p2 ret; mul.wide.u32 %d5, %r0, 4;\n"
    static const char *const bodies[] = {BLOCK_ALONE("0") LOOK TELL WAIT, BLOCK_ALONE("1") LOOK,
                                         BLOCK_ALONE("0") WRITE_OVER TELL_AGAIN WAIT_AGAIN, NULL};
    static const char *const right[] = {BLOCK_ALONE("0") LOOK TELL_LAST WAIT, "ret;",
                                        BLOCK_ALONE("0") WRITE_OVER TELL_AGAIN WAIT_AGAIN, NULL};
    for (uint64_t seed = 0; seed < 3; seed++) {
        run_row(*state, bodies, 2, seed);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "a write over what was read by warp 1 of block 1 of ");
        run_row(*state, right, 2, seed);
        expect_ok(*state, seed);
    }
}

/* A rank's own flag of an earlier launch tells nothing of the peers, whichever warp reads it. */
static void test_own_flag(void **state) {
#define OWN_FLAG "setp.eq.u32 %p0, %r0, 0; @%p0 st.release.sys.global.u32 [%d4+4], %r8;\n"
#define POLL_OWN                                                                                   \
    "setp.lt.u32 %p0, %r0, 32; @%p0 ret;\n"                                                        \
    "OWN: ld.acquire.sys.global.u32 %r9, [%d4+4]; setp.eq.u32 %p1, %r9, 0; @%p1 bra OWN;\n"
    for (uint64_t seed = 0; seed < 3; seed++) {
        RUN(*state, seed, SEND TELL OWN_FLAG, POLL_OWN READ);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "a read of what was written by ",
               " in an earlier launch");
        RUN(*state, seed, SEND TELL OWN_FLAG, WAIT POLL_OWN READ);
        expect_ok(*state, seed);
    }
}

/* A flag that is read without a fence takes nothing away from what the launch began with. */
static void test_unfenced(void **state) {
#define POLL_PLAINLY                                                                               \
    "PLAIN: ld.volatile.global.u32 %r9, [%d4]; setp.eq.u32 %p1, %r9, 0; @%p1 bra PLAIN;\n"
    static const char *const own[] = {
        BLOCK_ALONE("1") SEND TELL "add.u64 %d6, %d2, %d5; st.global.u32 [%d6], %r0;",
        BLOCK_ALONE("0") "add.u64 %d6, %d2, %d5;\n" POLL_PLAINLY "ld.global.u32 %r6, [%d6];",
        BLOCK_ALONE("0") WAIT, NULL};
    for (uint64_t seed = 0; seed < 3; seed++) {
        run_row(*state, own, 2, seed);
        expect_ok(*state, seed);
        RUN(*state, seed, SEND TELL, POLL_PLAINLY READ);
        EXPECT(*state, VM_TRAP_RACE_GLOBAL, "without an acquire fence of scope .sys");
    }
}

/* What nobody told a rank of by the end of its last launch. */
static void test_end_of_row(void **state) {
    for (uint64_t seed = 0; seed < 3; seed++) {
        RUN(*state, seed, SEND, "ret;");
        EXPECT(*state, VM_TRAP_RACE_END,
               "race-end: a write of an earlier launch into the memory of "
               "rank ",
               "in buffer 'inbox' of rank ", ", by rank ");
        RUN(*state, seed, "ret;", SEND);
        EXPECT(*state, VM_TRAP_RACE_END, "race-end: a write ", ", block (0, 0, 0) thread (");
    }
}

/* Launches of one rank are in order, whoever of its threads accesses what, and by which path. */
static void test_own_rank(void **state) {
#define AT(index) "mul.wide.u32 %d5, " index ", 4; add.u64 %d6, %d2, %d5;\n"
#define BACK "mov.u32 %r7, 63; sub.u32 %r7, %r7, %r0;\n"
    for (uint64_t seed = 0; seed < 4; seed++) {
        RUN(*state, seed, AT("%r0") "st.global.u32 [%d6], %r0;",
            BACK AT("%r7") "ld.global.nc.u32 %r6, [%d6];",
            AT("%r0") "ld.global.u32 %r6, [%d6]; add.u32 %r6, %r6, 1;\n" BACK AT(
                "%r7") "bar.sync 0; st.global.u32 [%d6], %r6;",
            AT("%r0") "st.global.u8 [%d6], %r8;",
            BACK AT("%r7") "ld.global.u8 %r6, [%d6+1]; ld.global.u32 %r6, [%d6];\n"
                           "st.global.u16 [%d6+2], %r6; red.global.add.u32 [%d6], %r8;");
        expect_ok(*state, seed);
    }
}

/* Parts of words of shared memory, in rows of launches with blocks of their own. */
static void test_shared_parts(void **state) {
    static const char body[] =
        ".shared .align 4 .b8 all[64]; mov.u32 %r6, all; add.u32 %r6, %r6, %r0;\n"
        "st.shared.u8 [%r6], %r0; bar.sync 0; ld.shared.u8 %r7, [%r6]; add.u64 %d6, %d2, %d5;\n"
        "st.global.u8 [%d6], %r7;";
    for (uint64_t seed = 0; seed < 2; seed++) {
        RUN(*state, seed, body, body, body);
        expect_ok(*state, seed);
    }
}

/* A row that broke off, or that never began, leaves nothing to the next launch. */
static void test_rows_apart(void **state) {
    rig *r = *state;
    RUN(r, 0, SEND TELL, READ); /* traps */
    run(r, READ, 1, 0);
    EXPECT(r, VM_TRAP_UNINITIALISED, "'inbox'");
    RUN(r, 0, SEND TELL WAIT READ);
    expect_passed(r, 0);
    vm_module *m = load(LOOK);
    ev_error err;
    vm_launch launches[RANKS];
    vm_rank ranks[RANKS];
    for (uint32_t i = 0; i < RANKS; i++) {
        launches[i] = launch_of(&r->ranks[i], m, 1, 0);
        launches[i].stream = VM_STREAM_FOLLOWS | VM_STREAM_GOES_ON;
        ranks[i] = (vm_rank){r->ranks[i].memory, &launches[i]};
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(vm_run_ranks(ranks, RANKS, r->results, &err), EV_OK);
        expect_ok(r, 0);
    }
    vm_module_free(m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_told_across),      TEST(test_forgotten_wait), TEST(test_sent_too_late),
        TEST(test_write_after_read), TEST(test_end_of_row),     TEST(test_own_rank),
        TEST(test_shared_parts),     TEST(test_read_again),     TEST(test_own_flag),
        TEST(test_unfenced),         TEST(test_rows_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
