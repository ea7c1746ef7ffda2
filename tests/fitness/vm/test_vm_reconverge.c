/* Lanes of a warp that meet at different places of the text: each gets what it would get at one
 * place, and what the ISA does not let meet is a trap that says why. Expected values are worked out
 * from the ISA's text of each instruction. */
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SEEDS 6

typedef struct rig {
    vm_memory *memory;
    uint64_t out_at;
    uint32_t *out;
} rig;

static int set_up(void **state) {
    static rig r;
    ev_error err;
    assert_int_equal(vm_memory_new(1 << 20, &r.memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(r.memory, 128, VM_BUFFER_OUT, "out", &r.out_at, &err), EV_OK);
    r.out = vm_memory_host(r.memory, r.out_at);
    *state = &r;
    return 0;
}

static int tear_down(void **state) {
    rig *r = *state;
    vm_memory_free(r->memory);
    return 0;
}

/* Lane i has 10 i in %r1, 100 i + 7 in %r2, i % 3 in %d1, i < 5 in %p1. Even lanes go to EVEN. Line
 * 9 is the first of the body; %r9 is stored. */
static const char head[] =
    ".version 8.0\n.target sm_%d\n.address_size 64\n"
    ".visible .entry k(.param .u64 out) { .shared .align 4 .b32 flag;\n"
    ".reg .pred %%p<8>; .reg .b32 %%r<16>; .reg .b64 %%d<16>;\n"
    "mov.u32 %%r0, %%tid.x; mul.lo.u32 %%r1, %%r0, 10; mad.lo.u32 %%r2, %%r0, 100, 7;\n"
    "rem.u32 %%r3, %%r0, 3; cvt.u64.u32 %%d1, %%r3; setp.lt.u32 %%p1, %%r0, 5;\n"
    "and.b32 %%r3, %%r0, 1; setp.eq.u32 %%p0, %%r3, 0;\n";
static const char tail[] = "\nDONE: ld.param.u64 %d8, [out]; mul.wide.u32 %d9, %r0, 4;\n"
                           "add.u64 %d8, %d8, %d9; st.global.u32 [%d8], %r9; ret; }\n";

static vm_result run(rig *r, const char *body, int sm, unsigned isa, uint64_t seed) {
    char text[4096];
    int bytes = snprintf(text, sizeof text, head, sm);
    bytes += snprintf(text + bytes, sizeof text - (size_t)bytes, "%s%s", body, tail);
    vm_module *m = NULL;
    ev_error err;
    if (vm_module_load(text, (size_t)bytes, "k", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_set_isa(m, isa);
    vm_memory_reset(r->memory, 0xcd);
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {1, 1, 1},
                        .block = {32, 1, 1},
                        .params = &r->out_at,
                        .checks = VM_CHECK_ALL,
                        .fuel = 1000000,
                        .schedule_seed = seed};
    vm_result result;
    if (vm_run(r->memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_free(m);
    return result;
}

/* ---- what meets */

#define ARMS(even, odd) "@%p0 bra EVEN;\n" odd "; bra DONE;\nEVEN: " even ";"

static uint32_t other_side(unsigned i) {
    return i & 1 ? (i ^ 1) * 10 : (i ^ 1) * 100 + 7;
}
static uint32_t one_below(unsigned i) {
    if (i == 0)
        return 5000;
    if (i & 1)
        return (i - 1) * 10;
    return (i - 1) * 100 + 7;
}
static uint32_t even_below_five(unsigned i) {
    (void)i;
    return 0x15 | (0xaaaaaaaau & ~0x1fu);
}
static uint32_t one_of_them(unsigned i) {
    return i & 1 ? 2 : 1;
}
static uint32_t same_rest(unsigned i) {
    uint32_t lanes = 0;
    for (unsigned j = i % 3; j < 32; j += 3)
        lanes |= 1u << j;
    return lanes;
}
static uint32_t all_lanes(unsigned i) {
    (void)i;
    return UINT32_MAX;
}
static uint32_t none(unsigned i) {
    return i & 1 ? 50 : 0;
}
static uint32_t sum_of_both(unsigned i) {
    (void)i;
    return 10 * (16 * 15) + 16 * 3; /* 10 times the even numbers below 32, and 16 threes */
}
static uint32_t least(unsigned i) {
    (void)i;
    return (uint32_t)-31;
}
static uint32_t leader(unsigned i) {
    return i == 0 ? 1000 : 0;
}
static uint32_t half_sum(unsigned i) {
    unsigned n = i < 16 ? 120 : 16 * 16 + 120; /* the lane numbers of its half */
    return n * 10;
}
static uint32_t of_two(unsigned i) {
    return i < 2 ? 10 : 0;
}

static uint32_t first_five(unsigned i) {
    return (i < 5 ? 5u : 0u) + (i & 1 ? 0u : 1u);
}

static const struct {
    const char *name, *body;
    uint32_t (*want)(unsigned lane);
} good[] = {
    {"shfl.bfly",
     ARMS("shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1", "shfl.sync.bfly.b32 %r9, %r2, 1, 31, -1"),
     other_side},
    {"shfl.up, one with a predicate",
     ARMS("shfl.sync.up.b32 %r9|%p2, %r1, 1, 0, -1; @!%p2 mov.u32 %r9, 5000",
          "mov.u32 %r4, 1; shfl.sync.up.b32 %r2, %r2, %r4, 0, -1; mov.u32 %r9, %r2"),
     one_below},
    {"ballot, one of a negated predicate",
     ARMS("vote.sync.ballot.b32 %r9, %p1, -1", "vote.sync.ballot.b32 %r9, !%p1, -1"),
     even_below_five},
    {"vote.any",
     ARMS("setp.eq.u32 %p2, %r0, 8; vote.sync.any.pred %p3, %p2, -1; selp.u32 %r9, 1, 0, %p3",
          "vote.sync.any.pred %p2, 0, -1; selp.u32 %r9, 2, 0, %p2"),
     one_of_them},
    {"vote.all",
     ARMS("vote.sync.all.pred %p3, 1, -1; selp.u32 %r9, 1, 0, %p3",
          "setp.eq.u32 %p2, %r0, 9; vote.sync.all.pred %p2, %p2, -1; selp.u32 %r9, 2, 50, %p2"),
     none},
    {"match.any.b64",
     ARMS("match.any.sync.b64 %r9, %d1, -1",
          "mov.b64 %d3, %d1; mov.u32 %r5, -1; match.any.sync.b64 %r9, %d3, %r5"),
     same_rest},
    {"match.all",
     ARMS("match.all.sync.b32 %r9|%p3, 7, -1; @!%p3 mov.u32 %r9, 1",
          "mov.u32 %r4, 7; match.all.sync.b32 %r9, %r4, -1"),
     all_lanes},
    {"redux.add", ARMS("redux.sync.add.u32 %r9, %r1, -1", "redux.sync.add.u32 %r9, 3, -1"),
     sum_of_both},
    {"redux.min",
     ARMS("redux.sync.min.s32 %r9, 4, -1",
          "neg.s32 %r4, %r0; redux.sync.min.s32 %r4, %r4, -1; mov.u32 %r9, %r4"),
     least},
    {"elect, where lane 0 is elected",
     ARMS("elect.sync %r4|%p3, -1; selp.u32 %r9, 1000, %r4, %p3",
          "elect.sync _|%p3, -1; selp.u32 %r9, 1, 0, %p3"),
     leader},
    {"halves: the upper one waits for the lower one",
     "setp.lt.u32 %p3, %r0, 16; selp.u32 %r4, 0xffff, 0xffff0000, %p3;\n"
     "mov.u32 %r6, 0; @%p1 st.shared.u32 [flag], %r6; bar.warp.sync -1;\n"
     "@%p0 bra EVEN;\n@%p3 bra ODD;\n"
     "WAIT: ld.volatile.shared.u32 %r5, [flag]; setp.eq.u32 %p4, %r5, 0; @%p4 bra WAIT;\n"
     "ODD: redux.sync.add.u32 %r9, %r1, %r4; bra DONE;\n"
     "EVEN: redux.sync.add.u32 %r9, %r1, %r4;\n"
     "setp.ne.u32 %p4, %r0, 0; mov.u32 %r6, 1; @!%p4 st.volatile.shared.u32 [flag], %r6;",
     half_sum},
    {"one place, where a lane comes once more",
     "mov.u32 %r9, 0; setp.ge.u32 %p2, %r0, 2; @%p2 bra DONE;\n"
     "mov.u32 %r4, 3; @!%p0 mov.u32 %r4, 2;\n"
     "AGAIN: redux.sync.add.u32 %r9, %r1, %r4;\n"
     "setp.eq.u32 %p3, %r4, 3; mov.u32 %r4, 3; @!%p3 bra AGAIN;",
     of_two},
    {"guards keep the others away",
     "mov.u32 %r9, 0;\n" ARMS("@%p1 redux.sync.add.u32 %r9, 1, 0x1f; add.u32 %r9, %r9, 1",
                              "mov.u32 %r4, 1; @%p1 redux.sync.add.u32 %r9, %r4, 0x1f"),
     first_five},
};

static void test_good(void **state) {
    rig *r = *state;
    for (size_t k = 0; k < sizeof good / sizeof *good; k++)
        for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
            for (uint64_t seed = 0; seed < SEEDS && vm_isa_supported(isa); seed++) {
                vm_result result = run(r, good[k].body, 90, isa, seed);
                if (!result.ok)
                    fail_msg("%s: %s", good[k].name, result.trap.message);
                for (unsigned i = 0; i < 32; i++) {
                    uint32_t want = good[k].want(i);
                    if (r->out[i] != want)
                        fail_msg("%s: lane %u has %u, expected %u", good[k].name, i, r->out[i],
                                 want);
                }
            }
}

/* ---- what does not */

static const struct {
    const char *name, *body;
    int sm;
    vm_trap_kind kind;
    uint32_t line;
    const char *text;
} bad[] = {
    {"up and down",
     ARMS("shfl.sync.up.b32 %r9, %r1, 1, 0, -1", "shfl.sync.down.b32 %r9, %r1, 1, 31, -1"), 90,
     VM_TRAP_DEADLOCK, 0, "to execute the same instruction with mask ffffffff"},
    {"any and all", ARMS("vote.sync.any.pred %p3, 1, -1", "vote.sync.all.pred %p3, 1, -1"), 90,
     VM_TRAP_DEADLOCK, 0, "lanes 55555555 of warp 0 wait for lanes aaaaaaaa with mask ffffffff"},
    {"two masks", ARMS("redux.sync.add.u32 %r9, 1, -1", "redux.sync.add.u32 %r9, 1, 0xaaaaaaab"),
     90, VM_TRAP_DEADLOCK, 0, "with mask aaaaaaab"},
    {"two masks at one place",
     "selp.u32 %r4, 0xffffffff, 0xaaaaaaab, %p0; redux.sync.add.u32 %r9, 1, %r4;", 90,
     VM_TRAP_DEADLOCK, 9, "lane 0 has ffffffff, lane 1 has aaaaaaab"},
    {"an old target",
     ARMS("shfl.sync.bfly.b32 %r9, %r1, 1, 31, -1", "shfl.sync.bfly.b32 %r9, %r2, 1, 31, -1"), 60,
     VM_TRAP_INACTIVE_LANE, 0, "before sm_70 all must come here together"},
    {"from a lane outside the mask",
     "setp.gt.u32 %p2, %r0, 1; mov.u32 %r9, 0; @%p2 bra DONE;\n"
     "@%p0 bra EVEN;\nshfl.sync.idx.b32 %r9, %r1, 5, 31, 3; bra DONE;\n"
     "EVEN: shfl.sync.idx.b32 %r9, %r1, 0, 31, 3;",
     90, VM_TRAP_INACTIVE_LANE, 11, "lane 1 takes part with lane 5"},
    {"a lane that its mask leaves out",
     ARMS("shfl.sync.idx.b32 %r9, %r1, 0, 31, 0xaaaaaaaa", "mov.u32 %r9, 0"), 90,
     VM_TRAP_INACTIVE_LANE, 11, "lane 0 takes part with lane 0"},
};

static void test_bad(void **state) {
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            vm_result r = run(*state, bad[k].body, bad[k].sm, vm_isa_best(), seed);
            if (r.ok || r.trap.kind != bad[k].kind || !strstr(r.trap.message, bad[k].text))
                fail_msg("%s: expected %s (%s), got %s", bad[k].name, vm_trap_name(bad[k].kind),
                         bad[k].text, r.ok ? "ok" : r.trap.message);
            if (bad[k].line && r.trap.line != bad[k].line)
                fail_msg("%s: expected line %u: %s", bad[k].name, bad[k].line, r.trap.message);
        }
}

/* Parted lanes count what they execute, each at its place. */
static void test_counts(void **state) {
    vm_result r = run(*state, good[0].body, 90, vm_isa_best(), 0);
    assert_true(r.ok);
    /* head 8, branch; the arm of odd lanes has 2, that of even lanes 1; tail 5 */
    assert_int_equal(r.counters.thread_instructions, 32 * 9 + 16 * 3 + 32 * 5);
    assert_int_equal(r.counters.warp_by_pipe[VM_PIPE_SHUFFLE], 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_counts),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
