/* Shadow memory against its definition: random accesses by some lanes of two warps of one block or
 * two, where every pair of accesses to a byte is looked at. */
#include "fitness/vm/vm_memory.h"

#include "base/pcg.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPS 7
#define PLACES 64 /* of an access: each of as many bytes as a lane takes */
enum { BYTES = 16 * PLACES };
#define THREADS 64 /* a block */
#define BLOCKS 2
#define KERNELS 900

typedef enum sync { NO_SYNC, WARP_SYNC, BLOCK_SYNC } sync;

typedef struct op {
    bool store, same_value;
    unsigned bytes;               /* a lane */
    uint32_t mask[2];             /* lanes of each warp */
    unsigned first_block, blocks; /* that take part */
    unsigned twist, step, first, apart;
    sync after;
} op;

/* Where a random kernel runs. */
typedef struct setting {
    bool shared;
    uint32_t threads, blocks; /* threads of a block */
    uint32_t checks;
    vm_buffer_kind kind;
} setting;

static unsigned byte_of(const op *o, unsigned thread) {
    unsigned lane = thread & 31, warp = thread / 32 & 1;
    return ((lane ^ o->twist) * o->step + o->first + warp * o->apart) % PLACES * o->bytes;
}

static unsigned block_of(unsigned thread) {
    return thread / THREADS;
}

static bool takes_part(const op *o, unsigned thread) {
    return block_of(thread) - o->first_block < o->blocks &&
           o->mask[thread / 32 & 1] >> (thread & 31) & 1;
}

static uint32_t draw_mask(ev_pcg *rng) {
    uint32_t drawn;
    switch (ev_pcg_below(rng, 6)) {
    case 0:
    case 1:
        return UINT32_MAX;
    case 2:
    case 3:
        return 0;
    case 4:
        return 1u << ev_pcg_below(rng, 32);
    default:
        drawn = ev_pcg_next(rng); /* a quarter of the bits */
        return drawn & ev_pcg_next(rng);
    }
}

static op draw_op(ev_pcg *rng, const setting *at, unsigned stores_in) {
    static const unsigned steps[] = {0, 1, 1, 1, 1, 5};
    static const sync syncs[] = {NO_SYNC, WARP_SYNC, BLOCK_SYNC, BLOCK_SYNC, BLOCK_SYNC};
    static const unsigned bytes[] = {1, 2, 4, 4, 4, 8, 16};
    unsigned first = ev_pcg_below(rng, at->blocks);
    return (op){.store = ev_pcg_below(rng, stores_in) == 0,
                .same_value = ev_pcg_below(rng, 4) == 0,
                .bytes = bytes[ev_pcg_below(rng, 7)],
                .mask = {draw_mask(rng), draw_mask(rng)},
                .first_block = first,
                .blocks = ev_pcg_below(rng, at->blocks - first) + 1,
                .twist = ev_pcg_below(rng, 6) == 0 ? ev_pcg_below(rng, 32) : 0,
                .step = steps[ev_pcg_below(rng, 6)],
                .first = ev_pcg_below(rng, 2) * 32,
                .apart = ev_pcg_below(rng, 2) * 32,
                .after = syncs[ev_pcg_below(rng, 5)]};
}

/* ---- the kernel */

/* r2: lane, r3: warp, r5 and d1: the address, r13: block, p3: it takes part. */
static void put_place(ev_str *out, const op *o) {
    ev_str_printf(out,
                  "selp.b32 %%r6, %u, %u, %%p1; shr.b32 %%r6, %%r6, %%r2; and.b32 %%r6, %%r6, 1;"
                  "setp.eq.u32 %%p3, %%r6, 1; sub.u32 %%r7, %%r13, %u;"
                  "setp.lt.u32 %%p4, %%r7, %u; and.pred %%p3, %%p3, %%p4;\n",
                  o->mask[0], o->mask[1], o->first_block, o->blocks);
    ev_str_printf(out,
                  "xor.b32 %%r7, %%r2, %u; mad.lo.u32 %%r7, %%r7, %u, %u;"
                  "mad.lo.u32 %%r7, %%r3, %u, %%r7; and.b32 %%r7, %%r7, %u;"
                  "mul.lo.u32 %%r7, %%r7, %u; add.u32 %%r5, %%r7, %%r4; cvt.u64.u32 %%d1, %%r7;"
                  "add.u64 %%d1, %%d1, %%d0;\n",
                  o->twist, o->step, o->first, o->apart, PLACES - 1, o->bytes);
}

static void put_op(ev_str *out, const op *o, bool shared) {
    static const char *const types[] = {
        [1] = ".u8", [2] = ".u16", [4] = ".u32", [8] = ".v2.u32", [16] = ".v4.u32"};
    static const char *const from[] = {
        [1] = "%r8", [2] = "%r8", [4] = "%r8", [8] = "{%r8,%r8}", [16] = "{%r8,%r8,%r8,%r8}"};
    static const char *const to[] = {
        [1] = "%r9", [2] = "%r9", [4] = "%r9", [8] = "{%r9,%r10}", [16] = "{%r9,%r10,%r11,%r12}"};
    static const char *const syncs[] = {"", "bar.warp.sync 0xffffffff;", "bar.sync 0;"};
    const char *space = shared ? "shared" : "global", *at = shared ? "[%r5]" : "[%d1]";
    put_place(out, o);
    ev_str_printf(out, "mov.u32 %%r8, %s; @%%p3 ", o->same_value ? "7" : "%r0");
    if (o->store)
        ev_str_printf(out, "st.%s%s %s, %s;", space, types[o->bytes], at, from[o->bytes]);
    else
        ev_str_printf(out, "ld.%s%s %s, %s;", space, types[o->bytes], to[o->bytes], at);
    ev_str_printf(out, "%s\n", syncs[o->after]);
}

static void put_kernel(ev_str *out, const op *ops, const setting *at) {
    ev_str_append(out, ".version 8.0\n.target sm_80\n.address_size 64\n"
                       ".visible .entry k(.param .u64 buffer) {\n"
                       ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<4>;\n"
                       ".shared .align 16 .b8 tile[1024];\n"
                       "mov.u32 %r0, %tid.x; and.b32 %r2, %r0, 31; shr.u32 %r3, %r0, 5;"
                       "mov.u32 %r4, tile; setp.eq.u32 %p1, %r3, 0; ld.param.u64 %d0, [buffer];"
                       "mov.u32 %r13, %ctaid.x;\n");
    if (at->threads == THREADS)
        ev_str_append(out, "mad.lo.u32 %r5, %r0, 16, %r4; mov.u32 %r8, 0;"
                           "st.shared.v4.u32 [%r5], {%r8,%r8,%r8,%r8}; bar.sync 0;\n");
    for (int i = 0; i < OPS; i++)
        put_op(out, &ops[i], at->shared);
    ev_str_append(out, "ret;\n}\n");
}

static vm_trap_kind run(const op *ops, const setting *at, unsigned isa) {
    ev_str text = EV_STR_EMPTY;
    put_kernel(&text, ops, at);
    ev_error err;
    vm_module *module;
    vm_memory *memory;
    if (vm_module_load(ev_str_text(&text), text.length, "pairs", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_set_isa(module, isa);
    uint64_t buffer = 0;
    assert_int_equal(vm_memory_new(1u << 16, &memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(memory, BYTES, at->kind, "buffer", &buffer, &err), EV_OK);
    vm_launch launch = {.module = module,
                        .entry = vm_module_find(module, "k"),
                        .grid = {at->blocks, 1, 1},
                        .block = {at->threads, 1, 1},
                        .params = &buffer,
                        .checks = at->checks,
                        .fuel = 1u << 20};
    vm_result result;
    assert_int_equal(vm_run(memory, &launch, &result, &err), EV_OK);
    vm_module_free(module);
    vm_memory_free(memory);
    ev_str_free(&text);
    return result.ok ? VM_TRAP_NONE : result.trap.kind;
}

/* ---- the definition */

typedef struct access {
    unsigned thread;
    int op;
} access;

/* Nothing orders two blocks. Threads of a warp are ordered by its own syncs too, and may write the
 * same value at once. */
static bool races(const op *ops, access a, access b) {
    if (a.thread == b.thread || !(ops[a.op].store || ops[b.op].store))
        return false;
    if (block_of(a.thread) != block_of(b.thread))
        return true;
    if (a.op == b.op && a.thread / 32 == b.thread / 32)
        return !ops[a.op].same_value;
    int first = a.op < b.op ? a.op : b.op, last = a.op < b.op ? b.op : a.op;
    sync most = NO_SYNC;
    for (int i = first; i < last; i++)
        most = ops[i].after > most ? ops[i].after : most;
    return most == NO_SYNC || (most == WARP_SYNC && a.thread / 32 != b.thread / 32);
}

static bool any_races(const op *ops) {
    static access of[BYTES][THREADS * BLOCKS * OPS];
    size_t count[BYTES] = {0};
    for (int i = 0; i < OPS; i++)
        for (unsigned t = 0; t < THREADS * BLOCKS; t++)
            for (unsigned k = 0; takes_part(&ops[i], t) && k < ops[i].bytes; k++) {
                unsigned byte = byte_of(&ops[i], t) + k;
                for (size_t j = 0; j < count[byte]; j++)
                    if (races(ops, of[byte][j], (access){t, i}))
                        return true;
                of[byte][count[byte]++] = (access){t, i};
            }
    return false;
}

/* Of one warp. */
static bool any_early(const op *ops) {
    bool written[BYTES] = {false};
    for (int i = 0; i < OPS; i++) {
        for (unsigned t = 0; t < 32; t++)
            for (unsigned k = 0; takes_part(&ops[i], t) && k < ops[i].bytes; k++)
                if (!ops[i].store && !written[byte_of(&ops[i], t) + k])
                    return true;
        for (unsigned t = 0; ops[i].store && t < 32; t++)
            for (unsigned k = 0; takes_part(&ops[i], t) && k < ops[i].bytes; k++)
                written[byte_of(&ops[i], t) + k] = true;
    }
    return false;
}

static void expect(const op *ops, int kernel, const setting *at, vm_trap_kind expected) {
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        vm_trap_kind got = vm_isa_supported(isa) ? run(ops, at, isa) : expected;
        if (got == expected)
            continue;
        ev_str text = EV_STR_EMPTY;
        put_kernel(&text, ops, at);
        fprintf(stderr, "kernel %d, %u blocks: expected %s, got %s\n%s", kernel, at->blocks,
                vm_trap_name(expected), vm_trap_name(got), ev_str_text(&text));
        ev_str_free(&text);
        fail();
    }
}

static void test_races(void **state) {
    (void)state;
    static const setting settings[] = {
        {true, THREADS, 1, VM_CHECK_ALL, VM_BUFFER_INOUT},
        {false, THREADS, 1, VM_CHECK_ALL, VM_BUFFER_INOUT},
        {false, THREADS, BLOCKS, VM_CHECK_ALL, VM_BUFFER_INOUT},
    };
    unsigned found = 0;
    ev_pcg rng = ev_pcg_seed(11, 0);
    for (int i = 0; i < KERNELS; i++) {
        const setting *at = &settings[i % 3];
        op ops[OPS];
        for (int k = 0; k < OPS; k++)
            ops[k] = draw_op(&rng, at, at->blocks > 1 ? 6 : 3);
        bool race = any_races(ops);
        vm_trap_kind kind = at->shared ? VM_TRAP_RACE_SHARED : VM_TRAP_RACE_GLOBAL;
        found += race;
        expect(ops, i, at, race ? kind : VM_TRAP_NONE);
    }
    assert_in_range(found, KERNELS / 4, KERNELS - KERNELS / 4);
}

/* By one warp, in order, with nobody looking for races. */
static void test_early_reads(void **state) {
    (void)state;
    unsigned found = 0;
    ev_pcg rng = ev_pcg_seed(12, 0);
    for (int i = 0; i < KERNELS; i++) {
        const setting at = {i % 2 == 0, 32, 1, VM_CHECK_INIT, VM_BUFFER_OUT};
        op ops[OPS];
        for (int k = 0; k < OPS; k++)
            ops[k] = draw_op(&rng, &at, k < OPS - 2 ? 1 : 3);
        bool early = any_early(ops);
        found += early;
        expect(ops, i, &at, early ? VM_TRAP_UNINITIALISED : VM_TRAP_NONE);
    }
    assert_in_range(found, KERNELS / 4, KERNELS - KERNELS / 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_races),
                                       cmocka_unit_test(test_early_reads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
