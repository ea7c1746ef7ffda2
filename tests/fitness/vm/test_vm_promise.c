/* Promises that PTX leaves to the programmer: memory of the read-only path stays as it is for the
 * launch, and the source of an asynchronous copy until the copy is waited for. Each broken promise
 * traps with line and address; beside it stands what is right. */
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define WORDS 4096u

/* r0: thread, r1: block, r2: thread of the grid, r4: the tile; d0: the buffer `both`, d1: this
 * thread's word there, d2: that of the thread of the block's other warp, d3: this thread's word of
 * the constant `in`; p1, p2: warp 0, 1; p3: block 1. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 both, .param .u64 in) {\n"
    ".reg .pred %%p<8>; .reg .b16 %%h<8>; .reg .b32 %%r<16>; .reg .b64 %%d<8>;\n"
    ".shared .align 16 .b8 tile[2048];\n"
    "mov.u32 %%r0, %%tid.x; mov.u32 %%r1, %%ctaid.x; mad.lo.u32 %%r2, %%r1, 64, %%r0;"
    "mov.u32 %%r4, tile; mad.lo.u32 %%r4, %%r0, 16, %%r4; ld.param.u64 %%d0, [both];"
    "mad.wide.u32 %%d1, %%r2, 16, %%d0; xor.b32 %%r5, %%r2, 32; mad.wide.u32 %%d2, %%r5, 16, %%d0;"
    "ld.param.u64 %%d3, [in]; mad.wide.u32 %%d3, %%r2, 16, %%d3;"
    "setp.lt.u32 %%p1, %%r0, 32; setp.ge.u32 %%p2, %%r0, 32; setp.eq.u32 %%p3, %%r1, 1;\n"
    "%s\nret;\n}\n";
#define BODY_LINE 8u

typedef struct fixture {
    vm_memory *memory;
    uint64_t params[2];
} fixture;

static int set_up(void **state) {
    static fixture f;
    ev_error err;
    assert_int_equal(vm_memory_new(1 << 20, &f.memory, &err), EV_OK);
    const vm_buffer_kind kinds[] = {VM_BUFFER_INOUT, VM_BUFFER_IN};
    static const char *const names[] = {"both", "in"};
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(
            vm_memory_alloc(f.memory, WORDS * 4ull, kinds[i], names[i], &f.params[i], &err), EV_OK);
    *state = &f;
    return 0;
}

static int tear_down(void **state) {
    vm_memory_free(((fixture *)*state)->memory);
    return 0;
}

static vm_result run(const fixture *f, const char *body, unsigned isa, uint64_t seed,
                     vm_checks checks, uint32_t jobs) {
    char ptx[4096];
    int length = snprintf(ptx, sizeof ptx, text, body);
    ev_error err;
    vm_module *module;
    if (vm_module_load(ptx, (size_t)length, "promise", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_set_isa(module, isa);
    vm_launch launch = {.module = module,
                        .entry = vm_module_find(module, "k"),
                        .grid = {2, 1, 1},
                        .block = {64, 1, 1},
                        .params = f->params,
                        .checks = checks,
                        .fuel = 1u << 29,
                        .jobs = jobs,
                        .schedule_seed = seed};
    vm_result result;
    assert_int_equal(vm_run(f->memory, &launch, &result, &err), EV_OK);
    vm_module_free(module);
    return result;
}

typedef struct row {
    const char *what;
    const char *before; /* an earlier launch; NULL: none */
    const char *body;
    vm_trap_kind expected;
    const char *words; /* of the message */
} row;

#define NC "ld.global.nc.u32 %r6, "
#define LDU "ldu.global.u32 %r6, "
#define ST "st.global.u32 "
#define OWN "[%d1]"
#define OTHER "[%d2]"
#define PATH VM_TRAP_READ_ONLY_PATH

static const row paths[] = {
    {"the constant buffer", NULL, NC "[%d3];" ST OWN ", %r6;", VM_TRAP_NONE, ""},
    {"ldu of the constant buffer", NULL, LDU "[%d3];" ST OWN ", %r6;", VM_TRAP_NONE, ""},
    {"what nobody writes", NULL, NC OWN ";", VM_TRAP_NONE, ""},
    {"what an earlier launch wrote", ST OWN ", %r0;", NC OWN ";", VM_TRAP_NONE, ""},
    {"what an earlier launch read so", NC OWN ";", ST OWN ", %r0;", VM_TRAP_NONE, ""},
    {"its neighbour word", NULL, NC OWN ";" ST "[%d1+4], %r6;", VM_TRAP_NONE, ""},
    {"another byte of the word", NULL,
     "ld.global.nc.u8 %r6, [%d1+1]; st.global.u8 [%d1+2], %r6; st.global.u8 [%d1], %r6;",
     VM_TRAP_NONE, ""},
    {"the plain path in place", NULL, "ld.global.u32 %r6, " OWN ";" ST OWN ", %r6;", VM_TRAP_NONE,
     ""},
    {"read, then written", NULL, NC OWN ";\n" ST OWN ", %r6;", PATH,
     "a write to what warp 0 of block 0 reads through the read-only path"},
    {"written, then read", NULL, ST OWN ", %r0;\n" NC OWN ";", PATH,
     "a read through the read-only path (ld.global.nc) of what warp 0 of block 0 writes"},
    {"ldu: read, then written", NULL, LDU OWN ";\n" ST OWN ", %r6;", PATH,
     "(ld.global.nc, ldu, a texture)"},
    {"ldu: written, then read", NULL, ST OWN ", %r0;\n" LDU OWN ";", PATH, "path (ldu) of what"},
    {"generic ldu", NULL, "st.u32 " OWN ", %r0;\nldu.u32 %r6, " OWN ";", PATH, "path (ldu)"},
    {"read, a barrier, another warp writes", NULL, NC OWN "; bar.sync 0;\n" ST OTHER ", %r0;", PATH,
     "a write to what warp "},
    {"written, a barrier, another warp reads", NULL, ST OWN ", %r0; bar.sync 0;\n" NC OTHER ";",
     PATH, "(ld.global.nc) of what warp "},
    {"a byte of the word written", NULL, "st.global.u8 [%d1+3], %r0;\n" NC OWN ";", PATH, ""},
    {"a byte of the word read", NULL, "ld.global.nc.u8 %r6, [%d1+3];\n" ST OWN ", %r6;", PATH, ""},
    {"the last word of a vector", NULL,
     "ld.global.nc.v4.u32 {%r6, %r7, %r8, %r9}, [%d1];\n" ST "[%d1+12], %r6;", PATH, ""},
    {"an atomic", NULL, NC OWN ";\nred.global.add.u32 " OWN ", 1;", PATH, "a write to what"},
    {"after an atomic", NULL, "red.global.add.u32 " OWN ", 1;\n" NC OWN ";", PATH,
     "a read through"},
    {"read both ways, then written", NULL,
     NC OWN "; ld.global.u32 %r7, " OWN "; bar.sync 0;\n" ST OWN ", %r7;", PATH, ""},
    {"by what an earlier launch wrote, and this one writes again", ST OWN ", %r0;",
     NC OWN ";\n" ST OWN ", %r6;", PATH, ""},
};

#define COPY "cp.async.ca.shared.global [%r4], [%d1], 16;"
#define WAIT "cp.async.wait_all;"
#define SOURCE VM_TRAP_COPY_SOURCE

static const row copies[] = {
    {"waited for, then written", NULL, COPY WAIT ST OWN ", %r0;", VM_TRAP_NONE, ""},
    {"waited for, a barrier, another warp writes", NULL, COPY WAIT "bar.sync 0;" ST OTHER ", %r0;",
     VM_TRAP_NONE, ""},
    {"its neighbour", NULL, "cp.async.ca.shared.global [%r4], [%d1], 8;" ST "[%d1+8], %r0;" WAIT,
     VM_TRAP_NONE, ""},
    {"zeros in place of the second half", NULL,
     "cp.async.cg.shared.global [%r4], [%d1], 16, 8;" ST "[%d1+8], %r0;" WAIT, VM_TRAP_NONE, ""},
    {"the group of it waited for", NULL,
     COPY "cp.async.commit_group; cp.async.ca.shared.global [%r4+1024], [%d3], 4;"
          "cp.async.commit_group; cp.async.wait_group 1;" ST OWN ", %r0;" WAIT,
     VM_TRAP_NONE, ""},
    {"an earlier launch's copy", COPY WAIT, ST OWN ", %r0;", VM_TRAP_NONE, ""},
    {"written at once", NULL, COPY "\n" ST OWN ", %r0;\n" WAIT, SOURCE,
     "reads, which is not waited for"},
    {"its last word", NULL, COPY "\n" ST "[%d1+12], %r0;\n" WAIT, SOURCE, "cp.async of warp "},
    {"its last byte", NULL, COPY "\nst.global.u8 [%d1+15], %r0;\n" WAIT, SOURCE, ""},
    {"another group waited for", NULL,
     COPY "cp.async.commit_group; cp.async.ca.shared.global [%r4+1024], [%d3], 4;"
          "cp.async.commit_group; cp.async.wait_group 2;\n" ST OWN ", %r0;\n" WAIT,
     SOURCE, ""},
    {"a barrier is no wait", NULL, COPY "bar.sync 0;\n" ST OTHER ", %r0;\n" WAIT, SOURCE, ""},
    {"another thread's wait", NULL,
     COPY "@%p1 " WAIT "bar.sync 0;\n@%p1 " ST OTHER ", %r0;\nbar.sync 0;" WAIT, SOURCE,
     "of warp 1 of block"},
    {"an atomic over it", NULL, COPY "\nred.global.add.u32 " OWN ", 1;\n" WAIT, SOURCE, ""},
};

/* Nothing orders the write after the wait: which of the two traps depends on the order of warps. */
static void test_unordered_wait(void **state) {
    const fixture *f = *state;
    for (uint64_t seed = 0; seed < 16; seed++) {
        vm_memory_reset(f->memory, 0);
        vm_result r =
            run(f, COPY "bar.sync 0; @%p1 " ST OTHER ", %r0;" WAIT, 0, seed, VM_CHECK_ALL, 1);
        assert_false(r.ok);
        assert_true(r.trap.kind == SOURCE || r.trap.kind == VM_TRAP_RACE_GLOBAL);
    }
}

static void check_row(const fixture *f, const row *at, unsigned isa, uint64_t seed, uint32_t jobs) {
    vm_memory_reset(f->memory, 0);
    if (at->before)
        assert_true(run(f, at->before, isa, seed, VM_CHECK_ALL, jobs).ok);
    vm_result r = run(f, at->body, isa, seed, VM_CHECK_ALL, jobs);
    vm_trap_kind kind = r.ok ? VM_TRAP_NONE : r.trap.kind;
    if (kind != at->expected)
        fail_msg("%s: expected %s, got %s", at->what, vm_trap_name(at->expected),
                 r.ok ? "none" : r.trap.message);
    if (kind == VM_TRAP_NONE)
        return;
    if (r.trap.line != BODY_LINE + 1 || !r.trap.has_address || !strstr(r.trap.message, "'both'"))
        fail_msg("%s: line %u, %s", at->what, r.trap.line, r.trap.message);
    uint64_t offset = r.trap.address - f->params[0];
    assert_true(offset < WORDS * 4ull);
    if (seed == 0 && !strstr(r.trap.message, at->words))
        fail_msg("%s: %s", at->what, r.trap.message);
}

static void check_rows(const fixture *f, const row *rows, size_t count) {
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (size_t i = 0; vm_isa_supported(isa) && i < count; i++)
            for (uint64_t seed = 0; seed < 3; seed++)
                for (uint32_t jobs = 1; jobs <= 2; jobs++)
                    check_row(f, &rows[i], isa, seed, jobs);
}

static void test_paths(void **state) {
    check_rows(*state, paths, sizeof paths / sizeof paths[0]);
}

static void test_copies(void **state) {
    check_rows(*state, copies, sizeof copies / sizeof copies[0]);
}

/* Without race checks there are no stamps, and so no marks. */
static void test_unchecked(void **state) {
    const fixture *f = *state;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        vm_memory_reset(f->memory, 0);
        assert_true(run(f, paths[i].body, 0, 0, VM_CHECK_INIT, 1).ok);
    }
}

/* With race checks, a wait for copies behind a barrier takes a new stamp, and after 2^20 of them
 * stamps begin anew. Without checks, stamps that ran out once ended the process. */
static void test_stamps_begin_anew(void **state) {
    static const char body[] =
        "mov.u32 %r6, 0;\nTURN:\ncp.async.ca.shared.global [%r4], [%d3], 16;\n"
        "cp.async.wait_all;\nbar.sync 0;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p4, %r6, 264000;\n"
        "@%p4 bra TURN;";
    static const vm_checks checks[] = {VM_CHECK_NONE, VM_CHECK_ALL};
    const fixture *f = *state;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        vm_memory_reset(f->memory, 0);
        vm_result result = run(f, body, 0, 0, checks[i], 1);
        if (!result.ok)
            fail_msg("checks %u: %s", (unsigned)checks[i], result.trap.message);
        assert_true(result.counters.warp_instructions > 6ull * (1ull << 20));
    }
}

/* The plane of marks costs memory only where marked words may be written. */
static void test_cost(void **state) {
    const fixture *f = *state;
    vm_usage before, after;
    vm_memory_usage(f->memory, &before);
    assert_true(run(f, NC "[%d3];", 0, 0, VM_CHECK_ALL, 1).ok);
    vm_memory_usage(f->memory, &after);
    assert_int_equal(before.shadow, after.shadow);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_paths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_copies, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unordered_wait, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_unchecked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_stamps_begin_anew, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_cost, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
