/* Accesses through one register share a look at where the lanes point: drawn kernels must do the
 * same, count the same and trap alike when each access goes through a register of its own. */
#include "tests/fitness/vm/shared_rig.h"

#include <inttypes.h>

#define PROGRAMS 500
#define STATEMENTS 20
#define OUT_WORDS 2048
#define WRITTEN_WORDS (1024 + 32)

typedef struct params {
    uint64_t table, out;
} params;

/* Fill both memories; each lane's place from the table; then the drawn statements; then what the
 * lanes gathered. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 table, .param .u64 out) {\n"
    ".shared .align 16 .b8 tile[4096];\n"
    ".reg .pred %%p<4>; .reg .b32 %%r<16>; .reg .b64 %%d<8>; .reg .b64 %%own<64>;\n"
    "mov.u32 %%r0, %%tid.x; ld.param.u64 %%d0, [table]; ld.param.u64 %%d1, [out];\n"
    "mov.u64 %%d2, tile; mov.u32 %%r1, %%r0;\n"
    "FILL: mul.wide.u32 %%d3, %%r1, 4; add.u64 %%d4, %%d2, %%d3; st.shared.u32 [%%d4], %%r1;\n"
    "add.u64 %%d4, %%d1, %%d3; st.global.u32 [%%d4], %%r1;\n"
    "add.u32 %%r1, %%r1, 32; setp.lt.u32 %%p0, %%r1, 1024; @%%p0 bra FILL;\n"
    "bar.sync 0;\n"
    "mul.wide.u32 %%d3, %%r0, 4; add.u64 %%d4, %%d0, %%d3; ld.global.u32 %%r2, [%%d4];\n"
    "cvt.u64.u32 %%d4, %%r2; add.u64 %%d2, %%d2, %%d4; add.u64 %%d5, %%d1, %%d4;\n"
    "setp.lt.u32 %%p1, %%r0, 20; setp.lt.u32 %%p2, %%r0, 64; setp.gt.u32 %%p3, %%r0, 64;\n"
    "mov.u32 %%r3, 0; mov.u32 %%r8, 0; mul.wide.u32 %%d6, %%r0, 16;\n"
    "LOOP:\n%s\n" /* twice, the lanes' addresses elsewhere the second time */
    "add.u64 %%d2, %%d2, %%d6; add.u64 %%d5, %%d5, %%d6; add.u32 %%r8, %%r8, 1;\n"
    "setp.lt.u32 %%p0, %%r8, 2; @%%p0 bra LOOP;\n"
    "mul.wide.u32 %%d3, %%r0, 4; add.u64 %%d4, %%d1, %%d3; st.global.u32 [%%d4+4096], %%r3;\n"
    "ret;\n}\n";

typedef struct program {
    char shared[12000], apart[12000]; /* through one register; each through its own */
    unsigned accesses, step;
} program;

static void add_text(char *to, size_t size, const char *format, ...) EV_PRINTF(3, 4);
static void add_text(char *to, size_t size, const char *format, ...) {
    size_t used = strlen(to);
    va_list args;
    va_start(args, format);
    int n = vsnprintf(to + used, size - used, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < size - used);
}
#define BOTH(p, ...)                                                                               \
    do {                                                                                           \
        add_text((p)->shared, sizeof(p)->shared, __VA_ARGS__);                                     \
        add_text((p)->apart, sizeof(p)->apart, __VA_ARGS__);                                       \
    } while (0)

static void add_access(shared_rig *r, program *p) {
    static const char *const guards[] = {"", "", "", "", "@%p1 ", "@%p2 ", "@%p3 "};
    static const char *const loads[] = {
        "ld.%s.u8 %%r4, [%s%+d];", "ld.%s.u32 %%r4, [%s%+d];", "ld.%s.u32 %%r4, [%s%+d];",
        "ld.%s.v2.u32 {%%r4, %%r5}, [%s%+d];", "ld.%s.v4.u32 {%%r4, %%r5, %%r6, %%r7}, [%s%+d];"};
    static const char *const stores[] = {
        "st.%s.u8 [%s%+d], %%r3;", "st.%s.u32 [%s%+d], 7;", "st.%s.u32 [%s%+d], 7;",
        "st.%s.v2.u32 [%s%+d], {%%r0, %%r0};", "st.%s.v4.u32 [%s%+d], {8, 8, 8, 8};"};
    static const unsigned bytes[] = {1, 4, 4, 8, 16};
    bool global = rig_draw(r, 3) == 0, stores_it = rig_draw(r, 20) == 0;
    unsigned form = rig_draw(r, 5);
    while (bytes[form] > p->step && p->step && rig_draw(r, 50))
        form = rig_draw(r, 5); /* seldom misaligned */
    int by = (int)(rig_draw(r, 40) * bytes[form]) - (rig_draw(r, 100) ? 0 : 2000);
    if (!rig_draw(r, 100))
        by += 2;
    const char *guard = guards[rig_draw(r, 7)], *base = global ? "%d5" : "%d2";
    const char *space = global ? "global" : "shared";
    char own[16], access[96];
    (void)snprintf(own, sizeof own, "%%own%u", p->accesses++);
    add_text(p->apart, sizeof p->apart, "mov.b64 %s, %s; ", own, base);
    const char *format = stores_it ? stores[form] : loads[form];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(access, sizeof access, format, space, base, by);
    add_text(p->shared, sizeof p->shared, "%s%s", guard, access);
    (void)snprintf(access, sizeof access, format, space, own, by);
    add_text(p->apart, sizeof p->apart, "%s%s", guard, access);
#pragma GCC diagnostic pop
    BOTH(p, " mad.lo.u32 %%r3, %%r3, 31, %%r4;\n");
}

static void add_statement(shared_rig *r, program *p, unsigned number) {
    unsigned which;
    switch (rig_draw(r, 16)) {
    case 0:
        BOTH(p, "add.u64 %%d2, %%d2, 16;\n");
        break;
    case 1:
        BOTH(p, "add.u64 %%d5, %%d5, %%d6;\n"); /* another pattern */
        break;
    case 2:
        BOTH(p, "bar.warp.sync -1;\n");
        break;
    case 3:
        BOTH(p, "L%u:\n", number);
        break;
    case 4: /* all lanes pass over it, or none */
        which = 2 + rig_draw(r, 2);
        BOTH(p, "@%%p%u bra N%u;\n", which, number);
        add_access(r, p);
        BOTH(p, "N%u:\n", number);
        break;
    case 5:
        BOTH(p, "@%%p1 bra M%u; add.u64 %%d2, %%d2, 32; M%u: bar.warp.sync -1;\n", number, number);
        break;
    default:
        add_access(r, p);
    }
}

static void draw_program(shared_rig *r, program *p) {
    uint32_t lanes = 1u << rig_draw(r, 6), step = 4u << rig_draw(r, 4), at = 0;
    step = rig_draw(r, 4) ? step : 0;
    for (uint32_t i = 0; i < 32; i++) {
        if (i % lanes == 0)
            at = rig_draw(r, 40) * 16;
        r->table[i] = at + i % lanes * step;
    }
    *p = (program){.step = step};
    BOTH(p, "mov.u32 %%r4, 1;\n");
    for (unsigned i = 0; i < STATEMENTS; i++)
        add_statement(r, p, i);
}

static unsigned shared_looks(const vm_module *m) {
    unsigned n = 0;
    for (uint32_t pc = 0; pc < m->insn_count; pc++)
        n += m->code[pc].looked;
    return n;
}

static void compare_counters(const vm_counters *a, const vm_counters *b) {
    assert_int_equal(a->shared_requests, b->shared_requests);
    assert_int_equal(a->shared_passes, b->shared_passes);
    assert_int_equal(a->global_load_requests, b->global_load_requests);
    assert_int_equal(a->global_load_sectors, b->global_load_sectors);
    assert_int_equal(a->global_load_bytes, b->global_load_bytes);
    assert_int_equal(a->global_store_requests, b->global_store_requests);
    assert_int_equal(a->global_store_sectors, b->global_store_sectors);
    assert_int_equal(a->global_store_bytes, b->global_store_bytes);
}

typedef struct tally {
    unsigned ok, looks;
} tally;

static void check_program(shared_rig *r, const program *p, uint32_t threads, unsigned isa,
                          tally *t) {
    static uint32_t out[WRITTEN_WORDS];
    vm_module *shared = rig_load(text, p->shared), *apart = rig_load(text, p->apart);
    params given = {r->table_at, r->out_at};
    vm_module_set_isa(shared, isa);
    vm_module_set_isa(apart, isa);
    assert_int_equal(shared_looks(apart), 0);
    t->looks += shared_looks(shared);
    vm_result a = rig_run(r, apart, threads, &given, 0);
    memcpy(out, r->out, sizeof out);
    vm_result b = rig_run(r, shared, threads, &given, 0);
    if (a.ok != b.ok || (!a.ok && (a.trap.kind != b.trap.kind || a.trap.address != b.trap.address)))
        fail_msg("apart: %s; shared: %s; of\n%s", a.ok ? "ok" : a.trap.message,
                 b.ok ? "ok" : b.trap.message, p->shared);
    if (a.ok) {
        assert_memory_equal(out, r->out, sizeof out);
        compare_counters(&a.counters, &b.counters);
        t->ok++;
    } else {
        assert_memory_equal(a.trap.thread, b.trap.thread, sizeof a.trap.thread);
        assert_int_equal(a.trap.address, b.trap.address);
    }
    vm_module_free(shared);
    vm_module_free(apart);
}

static void test_looks(void **state) {
    (void)state;
    shared_rig r = {.random = 11};
    program *p = malloc(sizeof *p);
    assert_non_null(p);
    rig_open(&r, 32, OUT_WORDS);
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        tally t = {0};
        r.random = 11;
        for (unsigned i = 0; i < PROGRAMS; i++) {
            draw_program(&r, p);
            uint32_t threads = i % 2 ? 32 : 1 + rig_draw(&r, 31); /* whole warps, and others */
            check_program(&r, p, threads, isa, &t);
        }
        assert_in_range(t.ok, PROGRAMS / 5, PROGRAMS - PROGRAMS / 10); /* some of each */
        assert_true(t.looks > PROGRAMS);
    }
    rig_close(&r);
    free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_looks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
