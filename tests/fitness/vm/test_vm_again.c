/* What warps and launches leave for the next ones: registers of a frame that is used again, places
 * of the table of races. None of it may be seen. */
#include "fitness/vm/vm_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 48 /* one and a half warps */
#define BLOCKS 3   /* one after the other in the same frames */
#define BYTES (1u << 12)

/* r0: thread, r1: block, p1: block 0; what stands in r5 at the end goes to out[block][thread]. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".func (.reg .u32 %%o) same(.reg .u32 %%i) { mov.u32 %%o, %%i; ret; }\n"
    ".visible .entry k(.param .u64 out) {\n"
    ".reg .pred %%p<8>; .reg .b16 %%h<8>; .reg .b32 %%r<16>; .reg .b64 %%d<8>;\n"
    "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; setp.eq.u32 %%p1, %%r1, 0;\n"
    "%s\n"
    "mad.lo.u32 %%r2, %%r1, 48, %%r0; mul.wide.u32 %%d1, %%r2, 4; ld.param.u64 %%d0, [out];\n"
    "add.u64 %%d0, %%d0, %%d1; st.global.u32 [%%d0], %%r5; ret;\n}\n";

typedef struct rig {
    vm_module *module;
    vm_memory *memory;
    uint64_t out;
} rig;

static void load(rig *g, const char *body) {
    char ptx[4096];
    ev_error err;
    int length = snprintf(ptx, sizeof ptx, text, body);
    if (vm_module_load(ptx, (size_t)length, "again", &g->module, &err) != EV_OK)
        fail_msg("%s", err.text);
}

static vm_result run(rig *g, uint32_t resident) {
    ev_error err;
    vm_result result;
    vm_launch launch = {.module = g->module,
                        .entry = vm_module_find(g->module, "k"),
                        .grid = {BLOCKS, 1, 1},
                        .block = {THREADS, 1, 1},
                        .params = &g->out,
                        .resident_blocks = resident,
                        .checks = VM_CHECK_ALL,
                        .fuel = 1u << 20};
    vm_memory_reset(g->memory, 0xff);
    assert_int_equal(vm_run(g->memory, &launch, &result, &err), EV_OK);
    return result;
}

typedef struct row {
    const char *what, *body;
    uint32_t first, others; /* what stands in r5 in block 0, and in the others */
} row;

static const row rows[] = {
    {"written by all", "mov.u32 %r5, 7;", 7, 7},
    {"never written", "", 0, 0},
    {"under a guard", "@%p1 mov.u32 %r5, 7;", 7, 0},
    {"on one path", "@!%p1 bra L; mov.u32 %r5, 7; L:", 7, 0},
    {"on both paths", "@!%p1 bra L; mov.u32 %r5, 7; bra M; L: mov.u32 %r5, 8; M:", 7, 8},
    {"round a loop",
     "mov.u32 %r6, 0; L: add.u32 %r5, %r5, 1; add.u32 %r6, %r6, 1; "
     "setp.lt.u32 %p2, %r6, 3; @%p2 bra L;",
     3, 3},
    {"in a loop, one round late",
     "mov.u32 %r6, 0; L: mov.u32 %r5, %r7; mov.u32 %r7, 9; "
     "add.u32 %r6, %r6, 1; @!%p1 bra M; setp.lt.u32 %p2, %r6, 2; "
     "@%p2 bra L; M:",
     9, 0},
    {"64 bits", "@%p1 mov.u64 %d5, 7; cvt.u32.u64 %r5, %d5;", 7, 0},
    {"16 bits", "@%p1 mov.u16 %h5, 7; cvt.u32.u16 %r5, %h5;", 7, 0},
    {"half of a pair", "@%p1 mov.b64 {%r5, %r6}, 7;", 7, 0},
    {"a predicate", "@%p1 setp.eq.u32 %p5, %r1, 0; selp.u32 %r5, 7, 0, %p5;", 7, 0},
    {"a constant predicate stays", "selp.u32 %r5, 7, 0, 1;", 7, 7},
    {"a table of branches",
     "ts: .branchtargets L, M; min.u32 %r6, %r1, 1; brx.idx %r6, ts; L: mov.u32 %r5, 7; M:", 7, 0},
    {"a call's result", "@%p1 call (%r5), same, (7);", 7, 0},
    {"a call's argument", "@%p1 mov.u32 %r6, 7; call (%r5), same, (%r6);", 7, 0},
    {"behind an exit", "@!%p1 bra L; mov.u32 %r5, 7; bra L; exit; L:", 7, 0},
};

static void is_as_expected(const rig *g, const row *r, uint32_t resident) {
    const uint32_t *out = vm_memory_host(g->memory, g->out);
    for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
        uint32_t block = i / THREADS, expected = block ? r->others : r->first;
        if (out[i] != expected)
            fail_msg("%s, %u resident: block %u thread %u has %u, not %u", r->what, resident, block,
                     i % THREADS, out[i], expected);
    }
}

static void registers_begin_as_zero(void **state) {
    (void)state;
    for (const row *r = rows; r < rows + sizeof rows / sizeof rows[0]; r++) {
        rig g;
        ev_error err;
        load(&g, r->body);
        assert_int_equal(vm_memory_new(BYTES, &g.memory, &err), EV_OK);
        assert_int_equal(vm_memory_alloc(g.memory, BYTES, VM_BUFFER_OUT, "out", &g.out, &err),
                         EV_OK);
        for (uint32_t resident = 1; resident <= BLOCKS; resident += BLOCKS - 1) {
            vm_result result = run(&g, resident);
            if (!result.ok)
                fail_msg("%s: %s", r->what, result.trap.message);
            is_as_expected(&g, r, resident);
        }
        vm_module_free(g.module);
        vm_memory_free(g.memory);
    }
}

static uint32_t cleared_bytes(const char *body) {
    rig g;
    uint32_t bytes = 0;
    load(&g, body);
    const ptx_func *f = &g.module->funcs[g.module->entries[0]];
    for (size_t i = 0; i < f->cleared_count; i++)
        bytes += f->cleared[i].bytes;
    assert_true(bytes <= f->frame_bytes);
    vm_module_free(g.module);
    return bytes;
}

/* A register more has to be cleared; one that is written first has not. */
static void only_what_may_be_read_is_cleared(void **state) {
    (void)state;
    uint32_t least = cleared_bytes("mov.u32 %r5, 7;");
    assert_int_equal(least, 64); /* a block of predicates */
    assert_int_equal(cleared_bytes("@%p1 mov.u32 %r5, 7;"), least + 128);
    assert_int_equal(cleared_bytes("mov.u32 %r5, 7; add.u64 %d5, %d5, 1;"), least + 256);
    assert_int_equal(cleared_bytes("mov.u32 %r6, 7; mov.u32 %r5, %r6;"), least);
}

/* Lanes write single bytes of words, those of block `r6`. */
#define BYTE_STORES                                                                                \
    "ld.param.u64 %d2, [out]; mad.lo.u32 %r4, %r6, 64, %r0; add.u32 %r4, %r4, 1024;"               \
    "cvt.u64.u32 %d3, %r4; add.u64 %d2, %d2, %d3; st.global.u8 [%d2], %r4; mov.u32 %r5, 1;"

/* The table of a launch says nothing to the next one, whatever that one looks for. */
static void races_are_of_one_launch(void **state) {
    (void)state;
    static const struct {
        const char *body;
        vm_trap_kind expected; /* VM_TRAP_NONE: it ends well */
    } launches[] = {
        {"mov.u32 %r6, %r1;" BYTE_STORES, VM_TRAP_NONE},
        {"mov.u32 %r6, 0;" BYTE_STORES, VM_TRAP_RACE_GLOBAL},
    };
    rig g;
    ev_error err;
    assert_int_equal(vm_memory_new(2ul * BYTES, &g.memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(g.memory, BYTES, VM_BUFFER_OUT, "out", &g.out, &err), EV_OK);
    for (unsigned i = 0; i < 7; i++) {
        load(&g, launches[i % 2].body);
        vm_result result = run(&g, 0);
        assert_int_equal(result.ok, launches[i % 2].expected == VM_TRAP_NONE);
        if (!result.ok)
            assert_int_equal(result.trap.kind, launches[i % 2].expected);
        assert_non_null(g.memory->words);
        for (unsigned k = 0; k < VM_RACE_WORDS; k++)
            assert_int_equal(g.memory->words[k].key, 0);
        vm_module_free(g.module);
    }
    vm_memory_free(g.memory);
}

/* Places that are taken one after the other do not overlap, and are taken again after a reset. */
static void spare_memory_is_used_again(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 64, 65, 4096, 100, 1u << 20, 3, 600u << 10};
    vm_spare spare = {0}, kept = {0};
    uint8_t *at[2][8];
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 8; i++) {
            at[round][i] = vm_spare_take(&spare, sizes[i]);
            assert_non_null(at[round][i]);
            assert_int_equal((uintptr_t)at[round][i] % 64, 0);
            memset(at[round][i], (int)i, sizes[i]);
        }
        for (unsigned i = 0; i < 8; i++) {
            assert_int_equal(at[round][i][0], i);
            assert_int_equal(at[round][i][sizes[i] - 1], i);
        }
        vm_spare_leave(&kept, &spare);
        spare = kept;
        kept = (vm_spare){0};
    }
    if (!VM_SANITIZED)
        assert_memory_equal(at[0], at[1], sizeof at[0]);
    vm_spare_free(&spare);
    assert_null(spare.chunks);
}

/* Once a launch has begun, another on the same memory. */
typedef struct within {
    rig *g;
    uint64_t out;
    unsigned count;
} within;

static void run_another(void *context, const vm_batch *batch) {
    (void)batch;
    within *w = context;
    ev_error err;
    vm_result result;
    if (w->count++ > 0)
        return;
    vm_launch launch = {.module = w->g->module,
                        .entry = vm_module_find(w->g->module, "k"),
                        .grid = {BLOCKS, 1, 1},
                        .block = {THREADS, 1, 1},
                        .params = &w->out,
                        .checks = VM_CHECK_ALL,
                        .fuel = 1u << 20};
    assert_int_equal(vm_run(w->g->memory, &launch, &result, &err), EV_OK);
    assert_true(result.ok);
}

/* Launches by turns have their registers and their tables to themselves. */
static void launches_by_turns_keep_apart(void **state) {
    (void)state;
    rig g;
    within w = {.g = &g};
    ev_error err;
    vm_result result;
    assert_int_equal(vm_memory_new(4ul * BYTES, &g.memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(g.memory, BYTES, VM_BUFFER_OUT, "out", &g.out, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(g.memory, BYTES, VM_BUFFER_OUT, "other", &w.out, &err), EV_OK);
    load(&g, "mad.lo.u32 %r5, %r1, 100, %r0; bar.sync 0; add.u32 %r5, %r5, 7;");
    const vm_observer observer = {.context = &w, .batch = run_another};
    vm_launch launch = {.module = g.module,
                        .entry = vm_module_find(g.module, "k"),
                        .grid = {BLOCKS, 1, 1},
                        .block = {THREADS, 1, 1},
                        .params = &g.out,
                        .observer = &observer,
                        .checks = VM_CHECK_ALL,
                        .fuel = 1u << 20};
    for (unsigned round = 0; round < 3; round++) {
        w.count = 0;
        assert_int_equal(vm_run(g.memory, &launch, &result, &err), EV_OK);
        assert_true(result.ok && w.count > 0);
        const uint32_t *own = vm_memory_host(g.memory, g.out);
        const uint32_t *other = vm_memory_host(g.memory, w.out);
        for (uint32_t i = 0; i < BLOCKS * THREADS; i++) {
            assert_int_equal(own[i], i / THREADS * 100 + i % THREADS + 7);
            assert_int_equal(other[i], own[i]);
        }
    }
    vm_module_free(g.module);
    vm_memory_free(g.memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registers_begin_as_zero),
        cmocka_unit_test(only_what_may_be_read_is_cleared),
        cmocka_unit_test(races_are_of_one_launch),
        cmocka_unit_test(spare_memory_is_used_again),
        cmocka_unit_test(launches_by_turns_keep_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
