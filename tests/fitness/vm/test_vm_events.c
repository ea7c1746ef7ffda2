/* What the observer is told of a memory access: sectors, lines and passes over the banks, against
 * counts worked out by hand for strided, uniform and vector accesses. */
#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MOST_EVENTS 64

typedef struct seen {
    const vm_module *module;
    vm_event access[MOST_EVENTS]; /* of the row at `line` */
    size_t count;
    uint32_t line;
    uint64_t sectors[MOST_EVENTS]; /* of the last one */
} seen;

static void on_batch(void *context, const vm_batch *batch) {
    seen *s = context;
    for (size_t i = 0; i < batch->count; i++) {
        const vm_event *e = &batch->events[i];
        vm_insn_info info;
        vm_module_info(s->module, e->pc + e->count - 1, &info);
        if (info.line != s->line)
            continue;
        assert_true(s->count < MOST_EVENTS);
        s->access[s->count++] = *e;
        if (e->sectors)
            memcpy(s->sectors, batch->sectors + e->first_sector, e->sectors * sizeof *s->sectors);
    }
}

/* One warp; line 4 reads at lane * stride + start of 64 KiB that start at a multiple of 128. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64 "
    ".visible .entry k(.param .u64 in, .param .u32 stride, .param .u32 start) { "
    ".reg .b32 %%r<16>; .reg .b64 %%d<8>; .reg .pred %%p<2>; .local .align 16 .b8 depot[512];"
    ".shared .align 128 .b8 tile[8192];"
    "mov.u32 %%r0, %%tid.x; ld.param.u32 %%r1, [stride]; ld.param.u32 %%r2, [start];"
    "mad.lo.u32 %%r3, %%r0, %%r1, %%r2; ld.param.u64 %%d0, [in]; cvt.u64.u32 %%d1, %%r3;"
    "add.u64 %%d2, %%d0, %%d1; setp.lt.u32 %%p0, %%r0, 2; mov.u64 %%d3, depot;"
    "add.u64 %%d3, %%d3, %%d1;\n%s\nret; }\n";

typedef struct params {
    uint64_t in;
    uint32_t stride, start;
} params;

static vm_event event_of(const char *access, uint32_t stride, uint32_t start, unsigned isa) {
    char ptx[2048];
    int n = snprintf(ptx, sizeof ptx, text, access);
    ev_error err;
    vm_module *module;
    vm_memory *memory;
    if (vm_module_load(ptx, (size_t)n, "events", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    vm_module_set_isa(module, isa);
    params p = {.stride = stride, .start = start};
    assert_int_equal(vm_memory_new(1 << 20, &memory, &err), EV_OK);
    assert_int_equal(vm_memory_alloc(memory, 1 << 16, VM_BUFFER_INOUT, "in", &p.in, &err), EV_OK);
    seen s = {.module = module, .line = 4};
    vm_observer observer = {.context = &s, .batch = on_batch};
    vm_launch launch = {.module = module,
                        .entry = vm_module_find(module, "k"),
                        .grid = {1, 1, 1},
                        .block = {32, 1, 1},
                        .params = &p,
                        .observer = &observer};
    vm_result result;
    assert_int_equal(vm_run(memory, &launch, &result, &err), EV_OK);
    if (!result.ok)
        fail_msg("%s", result.trap.message);
    assert_int_equal(s.count, 1);
    for (unsigned i = 0; i < s.access[0].sectors; i++)
        for (unsigned j = 0; j < i; j++)
            assert_true(s.sectors[i] != s.sectors[j]);
    vm_module_free(module);
    vm_memory_free(memory);
    return s.access[0];
}

typedef struct row {
    const char *access;
    uint32_t stride, start;
    unsigned sectors, lines, passes;
} row;

static const char LD[] = "ld.global.u32 %r4, [%d2];";
static const char LD2[] = "ld.global.v2.u32 {%r4, %r5}, [%d2];";
static const char LD4[] = "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%d2];";
static const char LDB[] = "ld.global.u8 %r4, [%d2];";
static const char LDG[] = "@%p0 ld.global.u32 %r4, [%d2];";
static const char LDS[] = "mov.u32 %r4, tile; add.u32 %r4, %r4, %r3; st.shared.u32 [%r4], %r3;";
static const char ATS[] = "mov.u32 %r4, tile; add.u32 %r4, %r4, %r3; "
                          "red.shared.add.u32 [%r4], %r3;";
static const char LDL[] = "st.local.v2.u32 [%d3], {%r4, %r5};";

static const row rows[] = {
    {LD, 4, 0, 4, 1, 1},       /* coalesced */
    {LD, 4, 64, 4, 2, 1},      /* across a line */
    {LD, 4, 4, 5, 2, 1},       /* off by a word: each lane still its own bank */
    {LD, 0, 12, 1, 1, 1},      /* all the same word */
    {LD, 8, 0, 8, 2, 2},       /* every second bank, twice */
    {LD, 12, 0, 12, 3, 1},     /* odd strides meet no bank twice */
    {LD, 16, 0, 16, 4, 4},     /**/
    {LD, 32, 0, 32, 8, 8},     /**/
    {LD, 64, 0, 32, 16, 16},   /**/
    {LD, 128, 0, 32, 32, 32},  /* a column of a matrix 32 wide */
    {LD, 132, 0, 32, 32, 1},   /* the same, padded */
    {LD, 1024, 0, 32, 32, 32}, /* far apart */
    {LD, 2044, 0, 32, 32, 1},  /* span of more than 63 rows of banks */
    {LDB, 1, 0, 1, 1, 1},      /* bytes of one word merge */
    {LDB, 4, 0, 4, 1, 1},      /**/
    {LDB, 64, 0, 32, 16, 16},  /**/
    {LD2, 8, 0, 8, 2, 2},      /* half warps */
    {LD2, 16, 0, 16, 4, 4},    /**/
    {LD4, 16, 0, 16, 4, 4},    /* quarter warps */
    {LD4, 32, 0, 32, 8, 8},    /**/
    {LDG, 4, 0, 1, 1, 1},      /* two lanes */
    {LDG, 128, 0, 2, 2, 2},    /**/
    {ATS, 4, 0, 0, 0, 1},      /* an atomic, each lane its own bank */
    {ATS, 8, 0, 0, 0, 2},      {ATS, 0, 0, 0, 0, 32}, /* all the same word: one after the other */
    {LDS, 8, 0, 0, 0, 2},                             /* shared memory has no lines */
    {LDL, 0, 8, 1, 1, 2}, /* local memory: each lane its bank, two words */
};

static void test_rows(void **state) {
    (void)state;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++)
        for (size_t i = 0; vm_isa_supported(isa) && i < sizeof rows / sizeof rows[0]; i++) {
            const row *r = &rows[i];
            vm_event e = event_of(r->access, r->stride, r->start, isa);
            if (e.sectors != r->sectors || e.lines != r->lines || e.passes != r->passes)
                fail_msg("%s stride %u: %u sectors, %u lines, %u passes", r->access, r->stride,
                         e.sectors, e.lines, e.passes);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
