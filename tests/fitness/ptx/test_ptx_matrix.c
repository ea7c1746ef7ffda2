/* Instructions that move matrices: ldmatrix, stmatrix and movmatrix element by element; what traps,
 * what is refused at load, and what the loader tells of matrix instructions. Products and wmma:
 * test_ptx_tensor.c. */
#include "fitness/ptx/ptx_load.h"
#include "fitness/vm/vm.h"
#include "tests/fitness/vm/shared_rig.h"

#define MMA "mma.sync.aligned."

static const char header[] = ".version 8.5\n.target sm_90\n.address_size 64\n";

typedef struct session {
    vm_memory *memory;
    bool seen[PTX_OP_COUNT];
} session;

/* ---- running */

static uint8_t *buffer(session *s, uint64_t bytes, vm_buffer_kind use, uint64_t *address) {
    ev_error err = {0};
    if (vm_memory_alloc(s->memory, bytes, use, "buffer", address, &err) != EV_OK)
        fail_msg("%s", err.text);
    return vm_memory_host(s->memory, *address);
}

static vm_module *load(session *s, const char *text) {
    vm_module *m = rig_load_text(text);
    for (uint32_t i = 0; i < m->insn_count; i++)
        s->seen[m->code[i].row] = true;
    return m;
}

/* ---- ldmatrix, stmatrix, movmatrix */

/* Shared memory holds 16-bit words 0, 1, 2, ..; row r of matrix k begins where lane 8k + r says:
 * the rows stand in reverse. */
#define ROWS_TEXT                                                                                  \
    ".visible .entry k(.param .u64 out) {\n"                                                       \
    ".shared .align 16 .b8 tile[512];\n"                                                           \
    ".reg .b32 %t<8>, %r<4>; .reg .b64 %o, %g; .reg .pred %p;\n"                                   \
    "mov.u32 %t0, %tid.x; mov.u32 %t1, tile; ld.param.u64 %o, [out];\n"                            \
    "mad.wide.u32 %o, %t0, 16, %o; mad.lo.u32 %t2, %t0, 16, %t1; mul.lo.u32 %t3, %t0, 524296;\n"   \
    "add.u32 %t3, %t3, 65536;\n"                                                                   \
    "st.shared.u32 [%t2], %t3; add.u32 %t3, %t3, 131074; st.shared.u32 [%t2+4], %t3;\n"            \
    "add.u32 %t3, %t3, 131074; st.shared.u32 [%t2+8], %t3;\n"                                      \
    "add.u32 %t3, %t3, 131074; st.shared.u32 [%t2+12], %t3;\n"                                     \
    "bar.sync 0; sub.u32 %t4, 31, %t0; mad.lo.u32 %t4, %t4, 16, %t1;\n"                            \
    "mov.u32 %r0, 0; mov.u32 %r1, 0; mov.u32 %r2, 0; mov.u32 %r3, 0;\n"                            \
    "cvt.u64.u32 %g, %t4; cvta.shared.u64 %g, %g;\n"
#define ROWS_END "st.global.v4.b32 [%o], {%r0, %r1, %r2, %r3};\nret;\n}\n"

static uint16_t *run_rows(session *s, const char *body) {
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s%s", header, ROWS_TEXT, body, ROWS_END);
    vm_module *m = load(s, text);
    uint64_t params[1];
    vm_memory_clear(s->memory);
    uint8_t *out = buffer(s, 512, VM_BUFFER_OUT, &params[0]);
    rig_run_well(s->memory, m, params, body);
    vm_module_free(m);
    return (uint16_t *)(void *)out;
}

/* Lane i holds row i / 4, elements i % 4 * 2 and the next; transposed: the same of columns. */
static void check_rows(session *s, const char *body, unsigned matrices, bool trans) {
    const uint16_t *out = run_rows(s, body);
    for (unsigned lane = 0; lane < 32; lane++)
        for (unsigned k = 0; k < 4; k++)
            for (unsigned e = 0; e < 2; e++) {
                unsigned row = lane / 4, column = lane % 4 * 2 + e;
                unsigned from = 31 - (8 * k + (trans ? column : row));
                unsigned want = from * 8 + (trans ? row : column);
                assert_int_equal(out[lane * 8 + k * 2 + e], k < matrices ? want : 0);
            }
}

static void test_ldmatrix(void **state) {
    session *s = *state;
    check_rows(s, "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%t4];\n", 1, false);
    check_rows(s, "ldmatrix.sync.aligned.m8n8.x2.b16 {%r0, %r1}, [%g];\n", 2, false);
    check_rows(s, "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%t4];\n", 4,
               false);
    check_rows(s, "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r0, %r1}, [%t4];\n", 2, true);
    check_rows(s,
               "ldmatrix.sync.aligned.m8n8.x4.trans.shared::cta.b16 {%r0, %r1, %r2, %r3}, [%t4];\n",
               4, true);
    check_rows(s,
               "sub.u32 %t4, %t4, 32;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%t4+32];\n",
               1, false);
}

static void test_stmatrix(void **state) {
    session *s = *state;
    check_rows(s,
               "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r2, %r3}, [%t4];\nbar.sync 0;\n"
               "stmatrix.sync.aligned.m8n8.x2.shared.b16 [%t2], {%r2, %r3};\nbar.sync 0;\n"
               "mov.u32 %r2, 0; mov.u32 %r3, 0;\n"
               "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%t2];\n",
               2, false);
    check_rows(s,
               "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r0, %r1, %r2, %r3}, [%t4];\n"
               "bar.sync 0;\n"
               "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%t2], {%r0, %r1, %r2, %r3};\n"
               "bar.sync 0;\n"
               "ldmatrix.sync.aligned.m8n8.x4.b16 {%r0, %r1, %r2, %r3}, [%g];\n"
               "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%t2];\n",
               4, false);
}

static void test_movmatrix(void **state) {
    check_rows(*state,
               "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%t4];\n"
               "movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r0;\n",
               1, true);
}

/* ---- traps */

typedef struct bad_run {
    const char *body; /* in a kernel of ROWS_TEXT, after its barrier */
    const char *trap, *says;
    uint32_t threads;
} bad_run;

#define LDX1 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, "
#define LOAD8 "wmma.load.c.sync.aligned.row.m16n16k16"
#define REGS8 " {%r0, %r1, %r2, %r3, %r0, %r1, %r2, %r3}, "

static const bad_run bad_runs[] = {
    {"setp.lt.u32 %p, %t0, 16; @%p " LDX1 "[%t4];\n", "inactive-lane", "lane 0", 32},
    {LDX1 "[%t4];\n", "inactive-lane", "lane 31", 31},
    {"setp.eq.u32 %p, %t0, 3; @%p bra END;\n" LDX1 "[%t4];\nEND:\n", "inactive-lane", "lane 3", 32},
    {"setp.eq.u32 %p, %t0, 3; @%p bra ON; bra.uni OFF;\nON: bar.warp.sync -1;\nOFF: " LDX1
     "[%t4];\n",
     "deadlock", "wait", 32},
    {LDX1 "[%t4+8];\n", "misaligned", "16 bytes", 32},
    {LDX1 "[%t4+512];\n", "out-of-bounds", "shared", 32},
    {"ldmatrix.sync.aligned.m8n8.x1.b16 {%r0}, [%o];\n", "out-of-bounds", "neither", 32},
    {"st.shared.u32 [%t2], 1;\n" LDX1 "[%t4+-384];\n", "race-shared", "", 32},
    {LDX1 "[%t2];\nst.shared.u32 [tile], 1;\n", "race-shared", "", 32},
    {"add.u32 %t5, %t0, 1; cvt.u64.u32 %g, %t5; add.u64 %o, %o, %g;\n" LOAD8 ".global.s32" REGS8
     "[%o], 16;\n",
     "illegal-instruction", "another address", 32},
    {LOAD8 ".shared.s32" REGS8 "[tile], %t0;\n", "illegal-instruction", "another stride", 32},
    {LOAD8 ".shared.s32" REGS8 "[tile+16], 16;\n", "misaligned", "32 bytes", 32},
    {LOAD8 ".shared.f16 {%r0, %r1, %r2, %r3}, [tile], 12;\n", "misaligned", "a stride", 32},
    {LOAD8 ".shared.s32" REGS8 "[tile], 16;\n", "out-of-bounds", "shared", 32},
    {"mov.u64 %g, scratch; " LOAD8 ".global.s32" REGS8 "[%g], 1024;\n", "out-of-bounds", "", 32},
    {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [tile], {%r0, %r1, %r2, %r3}, 16;\n"
     "ld.shared.u32 %r0, [%t4];\n",
     "race-shared", "", 32},
};

static void check_bad_run(session *s, const bad_run *b) {
    char text[4096];
    snprintf(text, sizeof text, "%s.global .align 32 .b8 scratch[1024];\n%s%s%s", header, ROWS_TEXT,
             b->body, ROWS_END);
    vm_module *m = load(s, text);
    uint64_t params[1];
    vm_memory_clear(s->memory);
    (void)buffer(s, 512, VM_BUFFER_OUT, &params[0]);
    vm_result r = rig_launch(s->memory, m, b->threads, params, 0);
    const char *name = r.ok ? "none" : vm_trap_name(r.trap.kind);
    if (strcmp(name, b->trap) != 0 || !strstr(r.trap.message, b->says))
        fail_msg("%s\nexpected %s (%s), got %s: %s", b->body, b->trap, b->says, name,
                 r.trap.message);
    vm_module_free(m);
}

static void test_traps(void **state) {
    for (size_t i = 0; i < sizeof bad_runs / sizeof bad_runs[0]; i++)
        check_bad_run(*state, &bad_runs[i]);
}

/* A row that nothing has written; half of it is as bad. */
static void test_uninitialised(void **state) {
    static const char *const reads[] = {
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%a];",
        "wmma.load.c.sync.aligned.row.m16n16k16.shared.f16 {%r0, %r1, %r2, %r3}, [tile], 16;"};
    for (unsigned i = 0; i < 4; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "%s.visible .entry k() {\n.shared .align 32 .b8 tile[512];\n"
                 ".reg .b32 %%a, %%t, %%r<4>; .reg .pred %%p;\n"
                 "mov.u32 %%t, %%tid.x; mov.u32 %%a, tile; mad.lo.u32 %%a, %%t, 16, %%a;\n"
                 "setp.ne.u32 %%p, %%t, 13; mov.u32 %%r0, 0;\n"
                 "%sst.shared.v2.u32 [%%a], {%%r0, %%r0}; st.shared.v2.u32 [%%a+8], {%%r0, %%r0};\n"
                 "bar.sync 0;\n%s\nret;\n}\n",
                 header, i & 1 ? "@%p " : "", reads[i / 2]);
        session *s = *state;
        vm_module *m = load(s, text);
        vm_memory_clear(s->memory);
        vm_result r = rig_launch(s->memory, m, 32, NULL, 0);
        assert_int_equal(r.ok, !(i & 1));
        if (i & 1)
            assert_string_equal(vm_trap_name(r.trap.kind), "uninitialised-read");
        vm_module_free(m);
    }
}

/* Lanes that come on two ways wait for each other. */
static void test_lanes_meet(void **state) {
    check_rows(*state,
               "setp.lt.u32 %p, %t0, 7; @%p bra ONE;\nadd.u32 %t5, %t5, 1; bra.uni MEET;\n"
               "ONE: add.u32 %t5, %t0, 2;\nMEET:\n"
               "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [%t4];\n",
               1, false);
}

/* ---- at load */

static void test_refused(void **state) {
    (void)state;
    static const struct {
        const char *insn, *says;
    } bad[] = {
        {MMA "m16n8k16.row.col.f16.f16.f16.f32 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
             "{%r0,%r1,%r2,%r3};",
         "expected .f16"},
        {MMA "m16n8k16.col.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
             "{%r0,%r1};",
         "expected .row"},
        {MMA "m8n8k4.row.col.f16.f16.f16.f32 {%r0,%r1}, {%r0,%r1}, {%r0,%r1}, {%r0,%r1};",
         "expected"},
        {MMA "m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, {%r0,%r1}, {%r0,%r1};",
         "found 2 elements; expected 1"},
        {MMA "m16n8k8.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, %r0, {%r0,%r1};",
         "without { }"},
        {MMA "m8n8k4.row.col.f64.f64.f64.f64 {%r0,%r1}, {%d0}, {%d0}, {%d0,%d1};", "64 bits"},
        {MMA "m16n8k32.row.col.f32.e4m3.e4m3.f32 {%r0,%r1,%r2,%r3}, {%r0,%r1,%r2,%r3}, {%r0,%r1}, "
             "{%r0,%r1,%r2,%r3};",
         ".e4m3"},
        {"mma.sp.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r0,%r1}, {%r0,%r1}, {%r0,%r1}, "
         "{%r0,%r1}, %r0, 0;",
         ".sp"},
        {"wgmma.fence.sync.aligned;", "wgmma"},
        {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r0,%r1}, %d0, %d1, 1, 1, 1, 0, 0;",
         "wgmma"},
        {"tcgen05.wait::ld.sync.aligned;", "tcgen05"},
        {"ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%d0];", ".shared"},
        {"ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0,%r1}, [%d0];", ".m8n8"},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%d0];", "expected 2"},
        {"wmma.load.a.sync.row.m16n16k16.f16 {%r0,%r1,%r2,%r3,%r0,%r1,%r2,%r3}, [%d0];",
         ".aligned"},
        {"wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%d0];", ".row"},
        {"wmma.load.b.sync.aligned.row.m8n8k128.b1 {%r0}, [%d0];", ".col"},
        {"wmma.load.a.sync.aligned.row.m16n16k16.local.u8 {%r0,%r1}, [%d0];", ".global or .shared"},
        {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {%r0,%r1,%r2,%r3,%r0,%r1,%r2,%r3},"
         " {%r0,%r1}, {%r0,%r1}, {%r0,%r1,%r2,%r3,%r0,%r1,%r2,%r3};",
         ".s8"},
        {"movmatrix.sync.aligned.m8n8.b16 %r0, %r1;", ".trans"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "%s.visible .entry k() {\n.reg .b32 %%r<4>; .reg .b64 %%d<4>;\n%s\nret;\n}\n",
                 header, bad[i].insn);
        ev_error err = {0};
        vm_module *m = NULL;
        assert_int_equal(vm_module_load(text, strlen(text), "bad", &m, &err), EV_BAD);
        if (!strstr(err.text, bad[i].says) || !strstr(err.text, "bad:6:"))
            fail_msg("%s\nexpected \"%s\" at line 6, got: %s", bad[i].insn, bad[i].says, err.text);
    }
}

/* What an instruction reads and writes, and how it prints. */
static void test_info(void **state) {
    session *s = *state;
    static const char text[] =
        ".version 8.5\n.target sm_90\n.address_size 64\n.visible .entry k() {\n"
        ".reg .b32 %a<8>, %b<8>, %c<8>, %d<8>; .reg .pred %p;\n"
        "@%p wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%d0,%d1,%d2,%d3,%d4,%d5,%d6,%d7}, "
        "{%a0,%a1,%a2,%a3,%a4,%a5,%a6,%a7}, {%b0,%b1,%b2,%b3,%b4,%b5,%b6,%b7}, "
        "{%c0,%c1,%c2,%c3,%c4,%c5,%c6,%c7};\n"
        "ldmatrix.sync.aligned.m8n8.x2.b16 {%a0,_}, [%b1+16];\nret;\n}\n";
    vm_module *m = load(s, text);
    vm_insn_info info;
    vm_module_info(m, 0, &info);
    assert_int_equal(info.pipe, VM_PIPE_TENSOR);
    assert_int_equal(info.def_count, 8);
    assert_int_equal(info.use_count, 25);
    vm_module_info(m, 1, &info);
    assert_true(info.is_load && info.space == VM_SPACE_SHARED && info.access_bytes == 8);
    assert_int_equal(info.def_count, 1);
    assert_int_equal(info.use_count, 1);
    char *line = vm_module_disassemble(m, 1);
    assert_string_equal(line, "ldmatrix.sync.aligned.m8n8.x2.b16 {%a0, _}, [%b1+16];");
    free(line);
    vm_module_free(m);
}

/* Runs last: the rows of this test ran. */
static void test_every_row(void **state) {
    const session *s = *state;
    assert_true(s->seen[PTX_OP_LDMATRIX]);
    assert_true(s->seen[PTX_OP_STMATRIX]);
    assert_true(s->seen[PTX_OP_MOVMATRIX]);
}

static int session_open(void **state) {
    session *s = calloc(1, sizeof *s);
    *state = s;
    ev_error err = {0};
    return !s || vm_memory_new(1u << 24, &s->memory, &err) != EV_OK;
}

static int session_close(void **state) {
    session *s = *state;
    vm_memory_free(s->memory);
    free(s);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ldmatrix),      cmocka_unit_test(test_stmatrix),
        cmocka_unit_test(test_movmatrix),     cmocka_unit_test(test_traps),
        cmocka_unit_test(test_uninitialised), cmocka_unit_test(test_lanes_meet),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_info),
        cmocka_unit_test(test_every_row),
    };
    return cmocka_run_group_tests(tests, session_open, session_close);
}
