/* Results that go into registers which the same instruction reads: the addresses of a load of two
 * elements, of an atomic. */
#include "fitness/vm/vm_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define LANES 32
#define CELLS 64 /* pairs of 64 bits */

typedef struct params {
    uint64_t table, out;
} params;

/* %r0: lane, %d0: table, %d1: the lane's address, %d9: where the lane's results go; the body has
 * the lane's place in %r1. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 table, .param .u64 out) {\n"
    ".shared .align 16 .b8 tile[1024];\n"
    ".reg .pred %%p<4>; .reg .b32 %%r<8>; .reg .b64 %%d<16>;\n"
    "mov.u32 %%r0, %%tid.x; ld.param.u64 %%d0, [table]; ld.param.u64 %%d8, [out];\n"
    "mul.wide.u32 %%d9, %%r0, 16; add.u64 %%d9, %%d9, %%d8; setp.ne.u32 %%p1, %%r0, 7;\n"
    "L: mul.wide.u32 %%d2, %%r0, 16; add.u64 %%d3, %%d2, %%d0; ld.global.v2.u64 {%%d4, %%d5}, "
    "[%%d3];\n"
    "mov.u64 %%d6, tile; add.u64 %%d7, %%d6, %%d2; st.shared.v2.u64 [%%d7], {%%d4, %%d5};\n"
    "add.u64 %%d3, %%d3, 512; ld.global.v2.u64 {%%d4, %%d5}, [%%d3]; st.shared.v2.u64 [%%d7+512], "
    "{%%d4, "
    "%%d5}; bar.sync 0;\n"
    "%s mul.wide.u32 %%d1, %%r1, 16; %s\n"
    "st.global.v2.u64 [%%d9], {%%d1, %%d3};\nret;\n}\n";

#define FROM_GLOBAL "add.u64 %d1, %d1, %d0;"
#define FROM_SHARED "add.u64 %d1, %d1, %d6;"
#define FROM_GENERIC FROM_SHARED "cvta.shared.u64 %d1, %d1;"

static const char *const places[] = {
    "mov.u32 %r1, %r0;",
    "xor.b32 %r1, %r0, 21;",
    "mul.lo.u32 %r1, %r0, 2; and.b32 %r1, %r1, 63;",
    "shr.u32 %r1, %r0, 3;",
    "shr.u32 %r1, %r0, 4;",
    "and.b32 %r1, %r0, 7;",
    "mov.u32 %r1, 5;",
    "mul.lo.u32 %r1, %r0, 37; and.b32 %r1, %r1, 63;",
};
static unsigned place_of(size_t which, unsigned lane) {
    const unsigned all[] = {lane,     lane ^ 21, lane * 2 & 63, lane >> 3, lane >> 4,
                            lane & 7, 5,         lane * 37 & 63};
    return all[which];
}

typedef struct load {
    const char *what, *text;
} load;
static const load loads[] = {
    {"global", FROM_GLOBAL "ld.global.v2.u64 {%d1, %d3}, [%d1];"},
    {"read-only", FROM_GLOBAL "ld.global.nc.v2.f64 {%d1, %d3}, [%d1];"},
    {"shared", FROM_SHARED "ld.shared.v2.b64 {%d1, %d3}, [%d1];"},
    {"generic", FROM_GENERIC "ld.v2.u64 {%d1, %d3}, [%d1];"},
    {"volatile", FROM_GLOBAL "ld.volatile.global.v2.u64 {%d1, %d3}, [%d1];"},
    {"the second", FROM_GLOBAL "mov.u64 %d3, %d1; ld.global.v2.u64 {%d1, %d3}, [%d3];"},
};

/* A pair is its place, and the place in the upper half. */
static uint64_t element(unsigned place, unsigned k) {
    return k == 0 ? place + 1000 : (uint64_t)place << 32 | 77;
}

typedef struct rig {
    vm_memory *memory;
    params params;
    uint64_t *table, *out;
} rig;

static vm_result run(rig *r, const char *place, const char *body, unsigned isa, uint32_t threads) {
    char ptx[4096];
    int bytes = snprintf(ptx, sizeof ptx, text, place, body);
    ev_error err;
    vm_module *m = NULL;
    if (vm_module_load(ptx, (size_t)bytes, "k", &m, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_set_isa(m, isa);
    vm_memory_reset(r->memory, 0xcd);
    for (unsigned i = 0; i < CELLS * 2; i++)
        r->table[i] = element(i / 2, i % 2);
    memset(r->out, 0, LANES * 16ul);
    vm_launch launch = {.module = m,
                        .entry = vm_module_find(m, "k"),
                        .grid = {1, 1, 1},
                        .block = {threads, 1, 1},
                        .params = &r->params,
                        .checks = VM_CHECK_ALL};
    vm_result result;
    if (vm_run(r->memory, &launch, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_free(m);
    return result;
}

static void test_loads(void **state) {
    rig *r = *state;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (size_t i = 0; vm_isa_supported(isa) && i < sizeof loads / sizeof loads[0]; i++)
            for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
                vm_result result = run(r, places[p], loads[i].text, isa, LANES);
                if (!result.ok)
                    fail_msg("%s, place %zu: %s", loads[i].what, p, result.trap.message);
                for (unsigned at = 0; at < LANES * 2; at++)
                    if (r->out[at] != element(place_of(p, at / 2), at % 2))
                        fail_msg("%s, place %zu, lane %u, element %u: got %llx", loads[i].what, p,
                                 at / 2, at % 2, (unsigned long long)r->out[at]);
            }
}

/* Each lane exchanges the second element of its place: as many sectors as with a result elsewhere.
 */
static void test_atomics(void **state) {
    rig *r = *state;
    static const char *const bodies[] = {
        FROM_GLOBAL "mov.u64 %d3, 9; atom.global.exch.b64 %d4, [%d1+8], %d3; mov.u64 %d1, %d4;",
        FROM_GLOBAL "mov.u64 %d3, 9; atom.global.exch.b64 %d1, [%d1+8], %d3;",
        FROM_GLOBAL "mov.u64 %d3, 9; atom.exch.b64 %d1, [%d1+8], %d3;",
    };
    vm_counters first = {0};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++) {
        vm_result result = run(r, places[1], bodies[i], 0, LANES);
        if (!result.ok)
            fail_msg("body %zu: %s", i, result.trap.message);
        for (unsigned lane = 0; lane < LANES; lane++) {
            assert_int_equal(r->out[lane * 2ul], element(lane ^ 21, 1));
            assert_int_equal(r->table[lane * 2ul + 1], 9);
        }
        first = i == 0 ? result.counters : first;
        assert_int_equal(result.counters.global_store_sectors, first.global_store_sectors);
    }
}

static int set_up(void **state) {
    static rig r;
    ev_error err;
    assert_int_equal(vm_memory_new(1 << 20, &r.memory, &err), EV_OK);
    assert_int_equal(
        vm_memory_alloc(r.memory, CELLS * 16ul, VM_BUFFER_INOUT, "table", &r.params.table, &err),
        EV_OK);
    assert_int_equal(
        vm_memory_alloc(r.memory, LANES * 16ul, VM_BUFFER_INOUT, "out", &r.params.out, &err),
        EV_OK);
    r.table = vm_memory_host(r.memory, r.params.table);
    r.out = vm_memory_host(r.memory, r.params.out);
    *state = &r;
    return 0;
}

static int tear_down(void **state) {
    rig *r = *state;
    vm_memory_free(r->memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loads),
                                       cmocka_unit_test(test_atomics)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
