/* Blocks spread over cores: results, written bytes, counters, executions and traps are those of one
 * job, whether the jobs have nothing to do with each other or a lot. */
#include "fitness/vm/vm_jobs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 64
#define MOST_BLOCKS 40
#define WORDS (MOST_BLOCKS * THREADS)

typedef struct params {
    uint64_t in, both, out;
    uint32_t n;
} params;

typedef struct rig {
    vm_memory *memory;
    params params;
    uint32_t *in, *both, *out;
} rig;

static uint32_t *buffer(vm_memory *m, vm_buffer_kind kind, const char *name, uint64_t *address) {
    ev_error err;
    assert_int_equal(vm_memory_alloc(m, (uint64_t)WORDS * 4, kind, name, address, &err), EV_OK);
    return vm_memory_host(m, *address);
}

static int set_up(void **state) {
    static rig r;
    ev_error err;
    assert_int_equal(vm_memory_new(1 << 22, &r.memory, &err), EV_OK);
    r.in = buffer(r.memory, VM_BUFFER_IN, "in", &r.params.in);
    r.both = buffer(r.memory, VM_BUFFER_INOUT, "both", &r.params.both);
    r.out = buffer(r.memory, VM_BUFFER_OUT, "out", &r.params.out);
    for (uint32_t i = 0; i < WORDS; i++)
        r.in[i] = i * 2654435761u >> 7;
    *state = &r;
    return 0;
}

static int tear_down(void **state) {
    vm_memory_free(((rig *)*state)->memory);
    return 0;
}

/* %r0 thread, %r1 block, %r3 index; %d0 in, %d1 both, %d2 out, each + 4 * index; %d3 both. */
static const char head[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 in, .param .u64 both, .param .u64 out, .param .u32 n) {\n"
    ".shared .align 4 .b8 tile[1024]; .local .align 4 .b8 own[64];\n"
    ".reg .pred %p<8>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<16>;\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;\n"
    "mad.lo.u32 %r3, %r1, %r2, %r0; mul.wide.u32 %d9, %r3, 4;\n"
    "ld.param.u64 %d0, [in]; add.u64 %d0, %d0, %d9; ld.param.u64 %d3, [both];\n"
    "add.u64 %d1, %d3, %d9; ld.param.u64 %d2, [out]; add.u64 %d2, %d2, %d9;\n"
    "ld.param.u32 %r4, [n];\n";

typedef struct outcome {
    vm_result result;
    uint32_t both[WORDS], out[WORDS];
    uint8_t written[WORDS * 4];
    uint64_t executions[256];
} outcome;

typedef struct shape {
    uint32_t blocks, jobs, resident;
    vm_checks checks;
    uint64_t seed, fuel;
} shape;

static void run(rig *r, const vm_module *m, shape how, outcome *o) {
    ev_error err;
    vm_memory_reset(r->memory, 0xcd);
    for (uint32_t i = 0; i < WORDS; i++)
        r->both[i] = i % 7;
    *o = (outcome){0};
    assert_true(vm_module_insn_count(m) < 256);
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {how.blocks, 1, 1},
                        .block = {THREADS, 1, 1},
                        .params = &r->params,
                        .checks = how.checks,
                        .fuel = how.fuel,
                        .schedule_seed = how.seed,
                        .resident_blocks = how.resident,
                        .executions = o->executions,
                        .jobs = how.jobs};
    if (vm_run(r->memory, &launch, &o->result, &err) != EV_OK)
        fail_msg("%s", err.text);
    memcpy(o->both, r->both, sizeof o->both);
    memcpy(o->out, r->out, sizeof o->out);
    (void)vm_memory_written(r->memory, r->params.out, 1, 0, (uint64_t)WORDS * 4, o->written);
}

static const struct {
    const char *name, *body;
    bool spreads; /* else one job does it all again */
} kernels[] = {
    {"copy", "ld.global.u32 %r5, [%d0]; st.global.u32 [%d2], %r5;", true},
    {"in place", "ld.global.u32 %r5, [%d1]; add.u32 %r5, %r5, 3; st.global.u32 [%d1], %r5;", true},
    {"bytes",
     "cvt.u64.u32 %d4, %r3; ld.param.u64 %d5, [out]; add.u64 %d5, %d5, %d4;\n"
     "cvt.u16.u32 %h0, %r3; st.global.u8 [%d5], %h0;",
     true},
    {"neighbours in pages",
     "shl.b32 %r5, %r0, 5; add.u32 %r5, %r5, %r1; rem.u32 %r5, %r5, 2560;\n"
     "setp.ge.u32 %p0, %r1, 32; @%p0 bra DONE; mul.wide.u32 %d4, %r5, 4;\n"
     "ld.param.u64 %d5, [out]; add.u64 %d5, %d5, %d4; st.global.u32 [%d5], %r3;\nDONE:",
     true},
    {"shared sum",
     "ld.global.u32 %r5, [%d0]; mov.u32 %r6, tile; mov.u32 %r7, 0;\n"
     "setp.eq.u32 %p0, %r0, 0; @%p0 st.shared.u32 [%r6], %r7; bar.sync 0;\n"
     "red.shared.add.u32 [%r6], %r5; bar.sync 0; ld.shared.u32 %r5, [%r6];\n"
     "st.global.u32 [%d2], %r5;",
     true},
    {"order of warps",
     "mov.u32 %r6, tile; setp.eq.u32 %p0, %r0, 0; mov.u32 %r7, 1065353216;\n"
     "@%p0 st.shared.u32 [%r6], %r7; bar.sync 0; cvt.rn.f32.u32 %r8, %r3;\n"
     "mul.f32 %r8, %r8, 0f3DCCCCCD; red.shared.add.f32 [%r6], %r8; bar.sync 0;\n"
     "ld.shared.u32 %r5, [%r6]; st.global.u32 [%d2], %r5;",
     true},
    {"global sum", "ld.global.u32 %r5, [%d0]; red.global.add.u32 [%d3], %r5;", false},
    {"generic sum", "ld.global.u32 %r5, [%d0]; red.add.u32 [%d3], %r5;", false},
    {"clock", "mov.u32 %r5, %clock; st.global.u32 [%d2], %r5;", false},
    {"race of blocks", "st.global.u32 [%d3+400], %r1;", false},
    {"reads what another writes",
     "st.global.u32 [%d1], %r3; xor.b32 %r5, %r3, 2048; setp.ge.u32 %p0, %r5, 2560;\n"
     "@%p0 bra DONE; mul.wide.u32 %d4, %r5, 4; add.u64 %d4, %d4, %d3;\n"
     "ld.global.u32 %r6, [%d4]; st.global.u32 [%d2], %r6;\nDONE:",
     false},
    {"trap in the last block",
     "setp.eq.u32 %p0, %r1, 39; @%p0 mov.u64 %d2, 64; st.global.u32 [%d2], %r3;", false},
    {"writes an input", "setp.eq.u32 %p0, %r1, 30; @%p0 st.global.u32 [%d0], %r3;", false},
    {"uninitialised", "ld.global.u32 %r5, [%d2+4]; st.global.u32 [%d2], %r5;", false},
    {"left in local memory",
     "mov.u32 %r6, own; ld.local.u32 %r5, [%r6]; st.local.u32 [%r6], %r3;\n"
     "st.global.u32 [%d2], %r5;",
     true},
    {"flag of block 0",
     "setp.ne.u32 %p0, %r1, 0; @%p0 bra WAIT; mov.u32 %r5, 9; membar.gl;\n"
     "st.volatile.global.u32 [%d3], %r5; bra DONE;\n"
     "WAIT: ld.volatile.global.u32 %r5, [%d3]; setp.ne.u32 %p1, %r5, 9; @%p1 bra WAIT;\n"
     "st.global.u32 [%d2], %r5;\nDONE:",
     false},
};
/* The last one waits long: fewer blocks do. */
#define KERNELS (sizeof kernels / sizeof *kernels)

static vm_module *load(const char *name, const char *body) {
    char text[4096];
    int bytes = snprintf(text, sizeof text, "%s%s\nret;\n}\n", head, body);
    ev_error err;
    vm_module *m = NULL;
    if (vm_module_load(text, (size_t)bytes, name, &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    return m;
}

static bool same_trap(const vm_trap *a, const vm_trap *b) {
    return a->kind == b->kind && a->rank == b->rank && a->line == b->line &&
           a->column == b->column && a->source_line == b->source_line &&
           memcmp(a->block, b->block, sizeof a->block) == 0 &&
           memcmp(a->thread, b->thread, sizeof a->thread) == 0 &&
           a->has_address == b->has_address && a->address == b->address &&
           strcmp(a->message, b->message) == 0;
}

static bool same_end(const vm_result *a, const vm_result *b) {
    return a->ok == b->ok && same_trap(&a->trap, &b->trap) &&
           memcmp(&a->counters, &b->counters, sizeof a->counters) == 0;
}

static bool same_work(const outcome *a, const outcome *b) {
    return memcmp(a->both, b->both, sizeof a->both) == 0 &&
           memcmp(a->out, b->out, sizeof a->out) == 0 &&
           memcmp(a->written, b->written, sizeof a->written) == 0 &&
           memcmp(a->executions, b->executions, sizeof a->executions) == 0;
}

static void compare(const char *name, const outcome *one, const outcome *many) {
    if (!same_end(&one->result, &many->result))
        fail_msg("%s: another end: %s, and with jobs: %s", name,
                 one->result.ok ? "ok" : one->result.trap.message,
                 many->result.ok ? "ok" : many->result.trap.message);
    if (!same_work(one, many))
        fail_msg("%s: another memory, shadow or count of executions", name);
}

static void test_same(void **state) {
    outcome *one = malloc(sizeof *one), *many = malloc(sizeof *many);
    assert_non_null(one);
    assert_non_null(many);
    for (size_t i = 0; i < KERNELS; i++) {
        vm_module *m = load(kernels[i].name, kernels[i].body);
        for (unsigned k = 0; k < 8; k++) {
            unsigned blocks = k & 1 ? 7 : 40;
            shape how = {.blocks = i == KERNELS - 1 ? 3 : blocks,
                         .jobs = 1,
                         .checks = k & 2 ? VM_CHECK_NONE : VM_CHECK_ALL,
                         .seed = k & 4 ? 11 : 0};
            run(*state, m, how, one);
            for (how.jobs = 2; how.jobs <= 3; how.jobs++) {
                run(*state, m, how, many);
                compare(kernels[i].name, one, many);
            }
        }
        vm_module_free(m);
    }
    free(one);
    free(many);
}

/* What may be spread is; and what meets is left to one job. */
static void test_spreads(void **state) {
    rig *r = *state;
    ev_error err;
    for (size_t i = 0; i < KERNELS; i++) {
        vm_module *m = load(kernels[i].name, kernels[i].body);
        vm_memory_reset(r->memory, 0xcd);
        for (uint32_t k = 0; k < WORDS; k++)
            r->both[k] = k % 7;
        vm_launch launch = {.module = m,
                            .entry = vm_module_find(m, "k"),
                            .grid = {i == KERNELS - 1 ? 3 : 40, 1, 1},
                            .block = {THREADS, 1, 1},
                            .params = &r->params,
                            .checks = VM_CHECK_RACES};
        vm_result result;
        bool spread = false;
        assert_int_equal(vm_run_by_jobs(r->memory, &launch, 3, &result, &spread, &err), EV_OK);
        if (strcmp(kernels[i].name, "uninitialised") != 0 && spread != kernels[i].spreads)
            fail_msg("%s: %s", kernels[i].name, spread ? "was spread" : "was not spread");
        vm_module_free(m);
    }
}

/* Contents that an earlier launch or the host left are seen, and go when buffers are cleared. */
static void test_memory_lives_on(void **state) {
    rig *r = *state;
    outcome *o = malloc(sizeof *o);
    assert_non_null(o);
    vm_module *m = load("twice", kernels[1].body);
    run(r, m, (shape){.blocks = 40, .jobs = 2, .checks = VM_CHECK_ALL}, o);
    for (uint32_t i = 0; i < WORDS; i++)
        assert_int_equal(o->both[i], i % 7 + 3);
    ev_error err;
    vm_memory *fresh = NULL;
    uint64_t address = 0;
    assert_int_equal(vm_memory_new(4 << 20, &fresh, &err), EV_OK);
    for (unsigned turn = 0; turn < 2; turn++) {
        assert_int_equal(vm_memory_alloc(fresh, 1 << 20, VM_BUFFER_INOUT, "both", &address, &err),
                         EV_OK);
        uint32_t *host = vm_memory_host(fresh, address);
        for (uint32_t i = 0; i < 1 << 18; i++)
            assert_int_equal(host[i], 0);
        params p = {address, address, address, 0};
        vm_launch launch = {.module = m,
                            .entry = vm_module_find(m, "k"),
                            .grid = {4096, 1, 1},
                            .block = {THREADS, 1, 1},
                            .params = &p,
                            .jobs = 2,
                            .checks = VM_CHECK_ALL};
        vm_result result;
        assert_int_equal(vm_run(fresh, &launch, &result, &err), EV_OK);
        assert_true(result.ok);
        for (uint32_t i = 0; i < 1 << 18; i++)
            assert_int_equal(host[i], 3);
        vm_memory_clear(fresh);
    }
    vm_memory_free(fresh);
    vm_module_free(m);
    free(o);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_spreads),
        cmocka_unit_test(test_memory_lives_on),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
