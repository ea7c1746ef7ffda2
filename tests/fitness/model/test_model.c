/* The timing model: occupancy against the rules of NVIDIA's calculator, registers by liveness, and
 * that it orders kernels as a GPU would. */
#include "fitness/model/model.h"
#include "tests/fitness/model/gpu_of.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- occupancy ---- */

typedef struct occupancy_row {
    const char *gpu;
    uint32_t registers, threads, shared;
    uint32_t blocks; /* expected */
    model_limiter limiter;
} occupancy_row;

/* Worked out by hand from the allocation rules: registers a warp in units of 256, warps in
 * multiples of the granularity, shared memory with the reserved kilobyte since sm_80. */
static const occupancy_row OCCUPANCY[] = {
    {"h200", 64, 256, 0, 4, MODEL_BY_REGISTERS},   /* 32 warps of 2048 registers */
    {"h200", 32, 256, 0, 8, MODEL_BY_WARPS},       /* 64 warps */
    {"h200", 33, 256, 0, 6, MODEL_BY_REGISTERS},   /* 1280 a warp: 51, so 48 warps */
    {"h200", 96, 128, 0, 5, MODEL_BY_REGISTERS},   /* 3072 a warp: 21, so 20 warps */
    {"h200", 255, 256, 0, 1, MODEL_BY_REGISTERS},  /* 8192 a warp: 8 warps */
    {"h200", 32, 128, 51200, 4, MODEL_BY_SHARED},  /* 233472 / 52224 */
    {"h200", 32, 128, 232448, 1, MODEL_BY_SHARED}, /* all that a block may have */
    {"h200", 16, 32, 0, 32, MODEL_BY_BLOCKS},
    {"h200", 128, 1024, 0, 1, MODEL_BY_REGISTERS}, /* 131072 registers: capped at 64 a thread */
    {"h200", 32, 128, 232449, 0, MODEL_BY_WARPS},  /* more than a block may have */
    {"a100", 16, 32, 0, 32, MODEL_BY_BLOCKS},
    {"a100", 40, 192, 20000, 7, MODEL_BY_SHARED}, /* 167936 / 21120 */
    {"t4", 32, 1024, 0, 1, MODEL_BY_WARPS},
    {"t4", 16, 32, 0, 16, MODEL_BY_BLOCKS},
    {"rtx4090", 40, 256, 0, 6, MODEL_BY_WARPS}, /* 48 warps at most */
    {"v100", 255, 256, 0, 1, MODEL_BY_REGISTERS},
    {"v100", 32, 64, 12288, 8, MODEL_BY_SHARED}, /* 98304 / 12288, nothing reserved */
    {"p100", 168, 64, 0, 6, MODEL_BY_REGISTERS}, /* 5376 a warp: 12 warps */
    {"p100", 72, 96, 0, 9, MODEL_BY_REGISTERS},  /* 2304 a warp: 28 warps */
};

static void test_occupancy(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof OCCUPANCY / sizeof OCCUPANCY[0]; i++) {
        const occupancy_row *row = &OCCUPANCY[i];
        gpu *g = load_gpu(row->gpu);
        vm_entry entry = {.shared_bytes = row->shared / 2};
        const uint32_t grid[3] = {100000, 1, 1}, block[3] = {row->threads, 1, 1};
        model_occupancy o = model_occupancy_of(g, &entry, row->registers, grid, block,
                                               row->shared - row->shared / 2);
        if (o.blocks_per_sm != row->blocks || (o.blocks_per_sm > 0 && o.limiter != row->limiter))
            fail_msg("row %zu (%s): %u blocks by %s, expected %u by %s", i, row->gpu,
                     o.blocks_per_sm, model_limiter_name(o.limiter), row->blocks,
                     model_limiter_name(row->limiter));
        assert_int_equal(o.warps_per_sm, o.blocks_per_sm * ((row->threads + 31) / 32));
        gpu_free(g);
    }
}

static void test_small_grid(void **state) {
    (void)state;
    gpu *g = load_gpu("h200");
    vm_entry entry = {0};
    const uint32_t grid[3] = {133, 1, 1}, block[3] = {64, 1, 1};
    model_occupancy o = model_occupancy_of(g, &entry, 32, grid, block, 0);
    assert_int_equal(o.blocks_per_sm, 2);
    assert_int_equal(o.limiter, MODEL_BY_GRID);
    gpu_free(g);
}

static void test_sample(void **state) {
    (void)state;
    uint32_t s[8];
    assert_int_equal(model_sample_blocks(1000, 3, s), 3);
    assert_int_equal(s[0], 0);
    assert_int_equal(s[1], 499);
    assert_int_equal(s[2], 999);
    assert_int_equal(model_sample_blocks(2, 3, s), 2);
    assert_int_equal(s[1], 1);
    assert_int_equal(model_sample_blocks(7, 7, s), 7);
    assert_int_equal(s[6], 6);
    assert_int_equal(model_sample_blocks(4000000000u, 2, s), 2);
    assert_int_equal(s[1], 2000000000u);
    assert_int_equal(model_sample_blocks(10, 1, s), 1);
}

/* ---- kernels ---- */

#define HEAD                                                                                       \
    ".version 7.8\n.target sm_60\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 k0, .param .u64 k1)\n"
#define REGS                                                                                       \
    "{\n.reg .pred %p<9>;\n.reg .b32 %r<60>;\n.reg .f32 %f<60>;\n.reg .f64 %d<20>;\n"              \
    ".reg .b64 %rd<20>;\n"                                                                         \
    "ld.param.u64 %rd1, [k0];\nld.param.u64 %rd2, [k1];\n"                                         \
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"                        \
    "mad.lo.s32 %r4, %r2, %r3, %r1;\n"
#define TAIL "ret;\n}\n"

/* One element a thread: y[i * stride] = x[i * stride] * 2 (addresses stay within the buffers). */
#define COPY(stride)                                                                               \
    HEAD REGS                                                                                      \
        "mul.lo.s32 %r5, %r4, " stride ";\nand.b32 %r5, %r5, 0xfffff;\n"                           \
        "mul.wide.u32 %rd3, %r5, 4;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"       \
        "ld.global.f32 %f1, [%rd4];\nadd.f32 %f2, %f1, %f1;\nst.global.f32 [%rd5], %f2;\n" TAIL

/* `count` rounds of `body` on %f1, stored at the end. */
#define LOOP(count, body)                                                                          \
    HEAD REGS                                                                                      \
        "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f3F000000;\nmov.f32 %f3, 0f3F000000;\n"           \
        "mov.f32 %f4, 0f3F000000;\nmov.f32 %f5, 0f3F000000;\nmov.u32 %r6, 0;\n"                    \
        "L:\n" body "add.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, " count ";\n@%p1 bra L;\n"        \
        "add.f32 %f1, %f1, %f5;\nadd.f32 %f1, %f1, %f4;\nadd.f32 %f1, %f1, %f3;\n"                 \
        "mul.wide.u32 %rd3, %r4, 4;\nadd.s64 %rd5, %rd2, %rd3;\nst.global.f32 [%rd5], %f1;\n" TAIL

/* Shared memory at a stride of `bytes` a lane, sixteen rounds. */
#define SHARED(bytes)                                                                              \
    HEAD REGS                                                                                      \
        ".shared .align 4 .b8 s[8192];\n"                                                          \
        "and.b32 %r7, %r1, 31;\nmul.lo.s32 %r8, %r7, " bytes ";\nmov.u32 %r9, s;\n"                \
        "add.s32 %r9, %r9, %r8;\nmov.f32 %f1, 0f3F800000;\nst.shared.f32 [%r9], %f1;\n"            \
        "mov.u32 %r6, 0;\nL:\nld.shared.f32 %f2, [%r9];\nadd.f32 %f1, %f1, %f2;\n"                 \
        "add.s32 %r6, %r6, 1;\nsetp.lt.s32 %p1, %r6, 200;\n@%p1 bra L;\n"                          \
        "mul.wide.u32 %rd3, %r4, 4;\nadd.s64 %rd5, %rd2, %rd3;\nst.global.f32 [%rd5], %f1;\n" TAIL

#define BUFFER_BYTES (1u << 22)

typedef struct timed {
    const char *ptx;
    const char *gpu;
    uint32_t grid, block, dynamic_shared;
    size_t sample;
} timed;

/* `scratch` NULL: of its own. */
static model_time model_in(model_scratch *scratch, const timed *t, double *stall_sum) {
    ev_error err = {.text = ""};
    gpu *g = load_gpu(t->gpu);
    vm_module *module = NULL;
    vm_memory *memory = NULL;
    if (vm_module_load(t->ptx, strlen(t->ptx), "test", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(vm_memory_new(1u << 26, &memory, &err), EV_OK);
    model_buffer buffers[2] = {{0, BUFFER_BYTES}, {0, BUFFER_BYTES}};
    uint64_t params[2];
    for (int i = 0; i < 2; i++) {
        vm_buffer_kind kind = i == 0 ? VM_BUFFER_IN : VM_BUFFER_OUT;
        assert_int_equal(vm_memory_alloc(memory, BUFFER_BYTES, kind, "b", &params[i], &err), EV_OK);
        buffers[i].address = params[i];
    }
    uint32_t sample[64];
    vm_launch l = {.module = module,
                   .entry = vm_module_find(module, NULL),
                   .grid = {t->grid, 1, 1},
                   .block = {t->block, 1, 1},
                   .dynamic_shared = t->dynamic_shared,
                   .params = params,
                   .sample = t->sample > 0 ? sample : NULL};
    if (t->sample > 0)
        l.sample_count = model_sample_blocks(t->grid, t->sample, sample);
    model *m = NULL;
    model_code *code = NULL;
    if (scratch != NULL) {
        assert_int_equal(model_code_new(g, module, l.entry, &code, &err), EV_OK);
        assert_int_equal(model_new_of(code, &l, scratch, &m, &err), EV_OK);
        if (stall_sum != NULL)
            assert_int_equal(model_watch_stalls(m, &err), EV_OK);
    } else {
        assert_int_equal(model_new(g, &l, &m, &err), EV_OK);
    }
    model_set_buffers(m, buffers, 2);
    l.observer = model_observer(m);
    vm_result result;
    if (vm_run(memory, &l, &result, &err) != EV_OK || !result.ok)
        fail_msg("%s", err.text[0] ? err.text : result.trap.message);
    model_time time;
    assert_int_equal(model_finish(m, &result, &time, &err), EV_OK);
    double shares = 0, stalls = 0;
    for (int i = 0; i < MODEL_TERM_COUNT; i++) {
        assert_true(isfinite(time.term_ns[i]) && time.term_ns[i] >= 0);
        shares += time.stall_share[i];
    }
    assert_true(fabs(shares - 1) < 1e-9);
    for (size_t i = 0; i < vm_module_insn_count(module); i++)
        stalls += model_stalls_by_pc(m)[i];
    assert_true((stalls == 0) == (scratch != NULL && stall_sum == NULL)); /* not watched */
    if (stall_sum != NULL)
        *stall_sum = stalls;
    assert_true(time.ns >= time.floor_ns && time.ns > time.term_ns[MODEL_LAUNCH]);
    model_free(m);
    model_code_free(code);
    vm_memory_free(memory);
    vm_module_free(module);
    gpu_free(g);
    return time;
}

static model_time model_of(const timed *t, double *stall_sum) {
    return model_in(NULL, t, stall_sum);
}

static double ns_of(const char *ptx) {
    timed t = {.ptx = ptx, .gpu = "h200", .grid = 4000, .block = 256, .sample = 3};
    return model_of(&t, NULL).ns;
}

static void assert_faster(const char *what, double fast, double slow) {
    if (!(fast < slow))
        fail_msg("%s: %.1f ns is not below %.1f ns", what, fast, slow);
}

#define FOUR_TIMES(text) text text text text

static void test_orders(void **state) {
    (void)state;
    assert_faster("coalescing", ns_of(COPY("1")), ns_of(COPY("8")));
    assert_faster("fewer rounds", ns_of(LOOP("100", "fma.rn.f32 %f1, %f1, %f2, %f2;\n")),
                  ns_of(LOOP("110", "fma.rn.f32 %f1, %f1, %f2, %f2;\n")));
    assert_faster("approximate division", ns_of(LOOP("50", "div.approx.f32 %f1, %f1, %f2;\n")),
                  ns_of(LOOP("50", "div.rn.f32 %f1, %f1, %f2;\n")));
    assert_faster("single precision",
                  ns_of(LOOP("50", FOUR_TIMES("fma.rn.f32 %f1, %f1, %f2, %f2;\n"))),
                  ns_of(LOOP("50", FOUR_TIMES("fma.rn.f64 %d1, %d1, %d1, %d1;\n"))));
    assert_faster("no conflicts", ns_of(SHARED("4")), ns_of(SHARED("128")));
    assert_faster("no barrier", ns_of(LOOP("50", "fma.rn.f32 %f1, %f1, %f2, %f2;\n")),
                  ns_of(LOOP("50", "bar.sync 0;\nfma.rn.f32 %f1, %f1, %f2, %f2;\n")));
}

/* What other launches left in the scratch pool says nothing, nor does it whether stalls are
 * watched. */
static void test_scratch(void **state) {
    (void)state;
    const timed all[] = {
        {.ptx = LOOP("20", "fma.rn.f32 %f1, %f1, %f2, %f2;\nbar.sync 0;\n"),
         .gpu = "h200",
         .grid = 40,
         .block = 96},
        {.ptx = COPY("8"), .gpu = "a100", .grid = 30, .block = 256},
        {.ptx = SHARED("36"), .gpu = "h200", .grid = 3, .block = 64},
    };
    ev_error err;
    model_scratch *scratch = NULL;
    assert_int_equal(model_scratch_new(&scratch, &err), EV_OK);
    for (size_t i = 0; i < 6; i++) {
        const timed *t = &all[(size_t[]){0, 1, 0, 2, 1, 2}[i]];
        double stalls[2];
        model_time alone = model_of(t, &stalls[0]), after = model_in(scratch, t, &stalls[1]);
        assert_true(alone.ns == after.ns && stalls[0] == stalls[1]);
        assert_memory_equal(alone.term_ns, after.term_ns, sizeof alone.term_ns);
        assert_memory_equal(alone.stall_share, after.stall_share, sizeof alone.stall_share);
        model_time unwatched = model_in(scratch, t, NULL);
        assert_true(unwatched.ns == alone.ns);
        assert_memory_equal(alone.stall_share, unwatched.stall_share, sizeof alone.stall_share);
    }
    model_scratch_free(scratch);
}

/* With few warps, independent chains hide each other's latency. */
static void test_parallel_chains(void **state) {
    (void)state;
    timed t = {.gpu = "a100", .grid = 108, .block = 32};
    t.ptx = LOOP("400", "fma.rn.f32 %f1, %f1, %f2, %f2;\nfma.rn.f32 %f1, %f1, %f2, %f2;\n"
                        "fma.rn.f32 %f1, %f1, %f2, %f2;\nfma.rn.f32 %f1, %f1, %f2, %f2;\n"
                        "fma.rn.f32 %f1, %f1, %f2, %f2;\nfma.rn.f32 %f1, %f1, %f2, %f2;\n");
    double chained = model_of(&t, NULL).ns;
    t.ptx = LOOP("400", "fma.rn.f32 %f1, %f1, %f2, %f2;\nfma.rn.f32 %f3, %f3, %f2, %f2;\n"
                        "fma.rn.f32 %f4, %f4, %f2, %f2;\nfma.rn.f32 %f1, %f1, %f2, %f2;\n"
                        "fma.rn.f32 %f3, %f3, %f2, %f2;\nfma.rn.f32 %f4, %f4, %f2, %f2;\n");
    model_time apart = model_of(&t, NULL);
    if (!(apart.ns < 0.8 * chained))
        fail_msg("%.0f ns apart, %.0f ns chained", apart.ns, chained);
    assert_int_equal(apart.bound_by, MODEL_LATENCY);
}

static void test_occupancy_helps(void **state) {
    (void)state;
    timed t = {.ptx = COPY("1"), .gpu = "a100", .grid = 20000, .block = 128, .sample = 3};
    double before = 0;
    for (uint32_t shared = 0; shared <= 160000; shared += 40000) {
        t.dynamic_shared = shared;
        double ns = model_of(&t, NULL).ns;
        assert_true(ns >= before * 0.999);
        before = ns;
    }
    t.dynamic_shared = 0;
    assert_true(before > 2 * model_of(&t, NULL).ns);
}

static void test_bounds(void **state) {
    (void)state;
    timed t = {.ptx = COPY("1"), .gpu = "h200", .grid = 4096, .block = 256, .sample = 3};
    model_time time = model_of(&t, NULL);
    assert_int_equal(time.occupancy.blocks_per_sm, 8);
    assert_float_equal(time.dram_bytes, 2.0 * BUFFER_BYTES, BUFFER_BYTES / 100);
    t.ptx = LOOP("300", "fma.rn.f32 %f1, %f1, %f2, %f2;\nfma.rn.f32 %f3, %f3, %f2, %f2;\n"
                        "fma.rn.f32 %f4, %f4, %f2, %f2;\nfma.rn.f32 %f5, %f5, %f2, %f2;\n");
    time = model_of(&t, NULL);
    assert_true(time.bound_by == MODEL_ISSUE || time.bound_by == MODEL_FMA);
    double stalls = 0;
    (void)model_of(&t, &stalls);
    assert_true(fabs(stalls - 1) < 1e-9);
}

/* Even lanes come back to the barrier at once, odd ones after some work: each warp still arrives
 * once a round, and as all warps are alike none waits longer than the barrier itself takes. */
static void test_barrier_in_parts(void **state) {
    (void)state;
    timed t = {.gpu = "h200", .grid = 132, .block = 256, .sample = 2};
    t.ptx = LOOP("100", "bar.sync 0;\nand.b32 %r10, %r1, -31;\nsetp.eq.u32 %p2, %r10, 0;\n"
                        "setp.lt.s32 %p3, %r6, 98;\nand.pred %p4, %p2, %p3;\n"
                        "@%p4 add.s32 %r6, %r6, 1;\n@%p4 bra L;\n"
                        "fma.rn.f32 %f1, %f1, %f2, %f2;\n");
    model_time time = model_of(&t, NULL);
    double waited = time.stall_share[MODEL_BARRIER] * time.term_ns[MODEL_LATENCY] * 1.98;
    if (!(waited < 1.1 * 100 * 29)) /* cycles; the barrier's own are 29 a round */
        fail_msg("%g cycles", waited);
}

#define READ_AGAIN FOUR_TIMES("ld.global.f32 %f6, [%rd9];\nadd.f32 %f1, %f1, %f6;\n")

/* A loop of 24 rounds with a barrier, or none, behind `reads` times four loads. The even lanes of
 * every other warp come back to the barrier at once, the odd ones later. The caller frees the text.
 */
static char *reads_in_parts(unsigned reads, bool has_barrier) {
    static const char begin[] =
        HEAD REGS "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, 0f3F000000;\nmov.u32 %r6, 0;\nand.b32 "
                  "%r10, %r1, 31;\n"
                  "mul.wide.u32 %rd8, %r10, 4;\nadd.s64 %rd9, %rd1, %rd8;\n"
                  "and.b32 %r10, %r1, 33;\nsetp.eq.u32 %p2, %r10, 32;\n"
                  "L:\nmov.u32 %r11, 0;\nM:\n" READ_AGAIN "add.s32 %r11, %r11, 1;\n";
    static const char end[] =
        "setp.lt.s32 %p3, %r6, 23;\nand.pred %p4, %p2, %p3;\nadd.s32 %r6, %r6, 1;\n"
        "@%p4 bra L;\nfma.rn.f32 %f1, %f1, %f2, %f2;\nsetp.lt.s32 %p3, %r6, 24;\n@%p3 bra L;\n"
        "mul.wide.u32 %rd3, %r4, 4;\nadd.s64 %rd5, %rd2, %rd3;\nst.global.f32 [%rd5], %f1;\n" TAIL;
    char *text = NULL;
    assert_true(asprintf(&text, "%ssetp.lt.u32 %%p5, %%r11, %u;\n@%%p5 bra M;\n%s%s", begin, reads,
                         has_barrier ? "bar.sync 0;\n" : "", end) > 0);
    return text;
}

/* Lanes that arrive in parts, and read through the L1 on the way: a warp has arrived with its last
 * lanes, not with its first. What is read comes from the L1 with and without the barrier. */
static void test_loads_before_a_barrier_in_parts(void **state) {
    (void)state;
    timed t = {.gpu = "h200", .grid = 132, .block = 256, .sample = 2};
    for (unsigned reads = 4; reads < 64; reads += 3) {
        model_time times[2];
        for (int has_barrier = 0; has_barrier < 2; has_barrier++) {
            char *text = reads_in_parts(reads, has_barrier);
            t.ptx = text;
            times[has_barrier] = model_of(&t, NULL);
            free(text);
        }
        assert_float_equal(times[1].dram_bytes, times[0].dram_bytes, 0.01 * times[0].dram_bytes);
        if (!(times[1].ns > 0.95 * times[0].ns && times[1].ns < 1.5 * times[0].ns))
            fail_msg("%u times four loads: %g ns, %g without a barrier", reads, times[1].ns,
                     times[0].ns);
    }
}

/* What is read again comes from the L1. */
static void test_l1(void **state) {
    (void)state;
    timed t = {.gpu = "h200", .grid = 4000, .block = 256, .sample = 3};
    t.ptx = LOOP("20", "and.b32 %r10, %r1, 31;\nmul.wide.u32 %rd8, %r10, 4;\n"
                       "add.s64 %rd9, %rd1, %rd8;\nld.global.f32 %f6, [%rd9];\n"
                       "add.f32 %f1, %f1, %f6;\n");
    model_time time = model_of(&t, NULL);
    assert_true(time.l1_hit_rate > 0.95);
    assert_true(time.dram_bytes < 1.2 * BUFFER_BYTES);
}

static void test_sampling(void **state) {
    (void)state;
    timed t = {.ptx = LOOP("30", "fma.rn.f32 %f1, %f1, %f2, %f2;\n"),
               .gpu = "h200",
               .grid = 2000,
               .block = 128};
    model_time all = model_of(&t, NULL);
    t.sample = 3;
    model_time sampled = model_of(&t, NULL);
    assert_int_equal(all.sampled_blocks, 2000);
    assert_int_equal(sampled.sampled_blocks, 3);
    assert_true(fabs(all.ns - sampled.ns) < 0.02 * all.ns);
    model_time again = model_of(&t, NULL);
    assert_memory_equal(&sampled.ns, &again.ns, sizeof again.ns);
}

/* ---- registers ---- */

static uint32_t registers_of(const char *ptx) {
    vm_module *module = NULL;
    ev_error err = {.text = ""};
    if (vm_module_load(ptx, strlen(ptx), "test", &module, &err) != EV_OK)
        fail_msg("%s", err.text);
    uint32_t registers = model_registers(module, vm_module_find(module, NULL));
    vm_module_free(module);
    return registers;
}

/* `count` loads alive at once, then summed; the loads stand in a loop, so what is carried round it
 * is alive too. */
static char *sum_of_loads(int count, const char *bounds) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out, "%s%s%s", HEAD, bounds, REGS);
    fprintf(out, "mul.wide.u32 %%rd3, %%r4, 4;\nadd.s64 %%rd4, %%rd1, %%rd3;\nL:\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "ld.global.f32 %%f%d, [%%rd4+%d];\n", i + 1, 4 * i);
    for (int i = 1; i < count; i++)
        fprintf(out, "add.f32 %%f1, %%f1, %%f%d;\n", i + 1);
    fprintf(out, "setp.lt.f32 %%p1, %%f1, 0f00000000;\n@%%p1 bra L;\n");
    fprintf(out, "add.s64 %%rd5, %%rd2, %%rd3;\nst.global.f32 [%%rd5], %%f1;\n%s", TAIL);
    (void)fclose(out);
    return text;
}

static void test_registers(void **state) {
    (void)state;
    uint32_t before = 0;
    for (int count = 8; count <= 56; count += 8) {
        char *ptx = sum_of_loads(count, "");
        uint32_t registers = registers_of(ptx);
        free(ptx);
        /* The loads, two addresses of two words; some slack of the assembler's. */
        assert_true(registers >= (uint32_t)count + 4 && registers <= (uint32_t)count * 6 / 5 + 20);
        assert_true(registers >= before && registers % 8 == 0);
        before = registers;
    }
    char *capped = sum_of_loads(56, ".maxnreg 32\n");
    assert_int_equal(registers_of(capped), 32);
    free(capped);
    char *bound = sum_of_loads(56, ".maxntid 1024, 1, 1\n.minnctapersm 2\n");
    assert_int_equal(registers_of(bound), 32); /* 65536 / 2048 */
    free(bound);
}

/* A cap gives occupancy, and is paid for in spills. */
static void test_spills(void **state) {
    (void)state;
    char *free_choice = sum_of_loads(40, ""), *capped = sum_of_loads(40, ".maxnreg 24\n");
    timed t = {.ptx = free_choice, .gpu = "h200", .grid = 500, .block = 64, .sample = 3};
    model_time a = model_of(&t, NULL);
    t.ptx = capped;
    model_time b = model_of(&t, NULL);
    assert_int_equal(a.spilled, 0);
    assert_true(b.spilled > 10);
    assert_true(b.term_ns[MODEL_ISSUE] > a.term_ns[MODEL_ISSUE]);
    assert_true(b.term_ns[MODEL_LATENCY] > a.term_ns[MODEL_LATENCY]);
    free(free_choice);
    free(capped);
}

/* A block that would not fit with its registers gets fewer, and pays in spills as with a cap of the
 * kernel's own. */
static void test_fits(void **state) {
    (void)state;
    char *many = sum_of_loads(59, ""), *capped = sum_of_loads(59, ".maxnreg 64\n");
    timed t = {.ptx = many, .gpu = "h200", .grid = 500, .block = 1024, .sample = 3};
    model_time a = model_of(&t, NULL);
    t.ptx = capped;
    model_time b = model_of(&t, NULL);
    assert_int_equal(a.occupancy.blocks_per_sm, 1);
    assert_int_equal(a.occupancy.registers, 64);
    assert_true(a.spilled > 0);
    assert_int_equal(a.spilled, b.spilled);
    assert_float_equal(a.term_ns[MODEL_ISSUE], b.term_ns[MODEL_ISSUE], 1e-9);
    /* loads are held to the registers that the code states: the size of the block comes later */
    assert_true(a.ns <= b.ns && a.ns > 0.8 * b.ns);
    free(many);
    free(capped);
}

/* Each spill is stored through to the L2, as the counters of an H200 have it. One block loads its
 * spills from the L1. An SM full of blocks loads them from the L2, and from DRAM where the chip's
 * blocks spill more than the L2 holds. */
static void test_spill_traffic(void **state) {
    (void)state;
    char *loose = sum_of_loads(59, ""), *capped = sum_of_loads(59, ".maxnreg 16\n");
    timed t = {.gpu = "p100", .block = 64, .sample = 1};
    double stored = 0;
    for (uint32_t grid = 1; grid <= 10000; grid += 9999) {
        t.grid = grid;
        t.ptx = loose;
        model_time a = model_of(&t, NULL);
        t.ptx = capped;
        model_time b = model_of(&t, NULL);
        assert_true(b.spilled > 40 && a.spilled == 0);
        if (grid == 1) {
            stored = b.l2_bytes - a.l2_bytes;
            assert_true(stored > 1000);
            assert_float_equal(b.dram_bytes, a.dram_bytes, 1);
            continue;
        }
        /* 40 registers, 2048 threads: 320 KiB on an SM of 24 KiB, 18 MB on a chip of 4 MB */
        assert_true(b.l2_bytes - a.l2_bytes > 1.7 * grid * stored);
        assert_true(b.dram_bytes > 1.1 * a.dram_bytes);
    }
    free(loose);
    free(capped);
}

/* A block's size bounds what a thread gets: no block is refused for its registers. */
static void test_large_block(void **state) {
    (void)state;
    vm_entry entry = {0}, bound = {.max_registers = 40};
    assert_int_equal(model_block_cap(&entry, 90, 64), 255);
    assert_int_equal(model_block_cap(&entry, 90, 512), 128);
    assert_int_equal(model_block_cap(&entry, 90, 1024), 64);
    assert_int_equal(model_block_cap(&entry, 90, 900), 64); /* 29 warps: 70 */
    assert_int_equal(model_block_cap(&bound, 90, 1024), 40);
    char *ptx = sum_of_loads(56, "");
    timed t = {.ptx = ptx, .gpu = "h200", .grid = 500, .block = 1024, .sample = 3};
    assert_int_equal(model_of(&t, NULL).occupancy.blocks_per_sm, 1);
    free(ptx);
}

/* Four sums over one row of shared memory, 16 places apart: in the order of the text 48 values stay
 * alive, but the sums can follow each other with a few. Of values in constant memory at known
 * addresses, none takes a register. */
static char *shared_sums(const char *target, const char *bounds, int taps) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out,
            ".version 7.8\n.target %s\n.address_size 64\n.const .align 4 .b8 c[1024];\n"
            ".visible .entry k(.param .u64 k0, .param .u64 k1)\n%s{\n.reg .b32 %%r<9>;\n"
            ".reg .f32 %%s<200>;\n.reg .f32 %%c<200>;\n.reg .f32 %%f<800>;\n.reg .b64 %%rd<9>;\n"
            ".shared .align 4 .b8 s[4096];\nld.param.u64 %%rd1, [k1];\nmov.u32 %%r1, %%tid.x;\n"
            "shl.b32 %%r2, %%r1, 2;\nmov.u32 %%r3, s;\nadd.s32 %%r4, %%r3, %%r2;\n",
            target, bounds);
    for (int y = 0; y < 4; y++)
        fprintf(out, "mov.f32 %%f%d, 0f00000000;\n", 200 * y);
    for (int i = 0; i < taps; i++) {
        fprintf(out, "ld.const.f32 %%c%d, [c+%d];\n", i, 4 * i);
        for (int y = 0; y < 4; y++) {
            if (y == 3 || i < 16)
                fprintf(out, "ld.shared.f32 %%s%d, [%%r4+%d];\n", i + 16 * y, 4 * (i + 16 * y));
            fprintf(out, "fma.rn.f32 %%f%d, %%s%d, %%c%d, %%f%d;\n", 200 * y + i + 1, i + 16 * y, i,
                    200 * y + i);
        }
    }
    fprintf(out, "mul.wide.u32 %%rd2, %%r1, 4;\nadd.s64 %%rd3, %%rd1, %%rd2;\n");
    for (int y = 0; y < 4; y++)
        fprintf(out, "st.global.f32 [%%rd3+%d], %%f%d;\n", 512 * y, 200 * y + taps);
    fprintf(out, "ret;\n}\n");
    (void)fclose(out);
    return text;
}

static void test_saved_registers(void **state) {
    (void)state;
    static const struct {
        const char *target;
        uint32_t registers; /* at which an SM holds all its warps */
    } rows[] = {{"sm_75", 64}, {"sm_80", 32}, {"sm_86", 40}, {"sm_90", 32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *ptx = shared_sums(rows[i].target, "", 96);
        assert_int_equal(registers_of(ptx), rows[i].registers);
        free(ptx);
    }
}

/* In a budget that the kernel states, the assembler saves no registers for a further warp. */
static void test_stated_registers(void **state) {
    (void)state;
    static const char *const stated[] = {".maxnreg 128\n", ".maxntid 256, 1, 1\n.minnctapersm 2\n"};
    for (size_t i = 0; i < sizeof stated / sizeof stated[0]; i++) {
        char *ptx = shared_sums("sm_90", stated[i], 96);
        assert_true(registers_of(ptx) >= 48 && registers_of(ptx) <= 128);
        free(ptx);
    }
    char *size_alone = shared_sums("sm_90", ".maxntid 256, 1, 1\n", 96);
    assert_int_equal(registers_of(size_alone), 32);
    free(size_alone);
}

/* Launch bounds of more warps or blocks than an SM holds count as none: "will be ignored", says
 * ptxas 13.0. */
static void test_bounds_past_an_sm(void **state) {
    (void)state;
    static const struct {
        int sm;
        uint32_t threads, blocks, cap;
    } rows[] = {{90, 256, 8, 32}, {90, 256, 9, 255}, {75, 256, 4, 64}, {75, 256, 5, 255},
                {86, 256, 6, 40}, {86, 256, 7, 255}, {75, 64, 16, 64}, {75, 32, 17, 255},
                {89, 64, 24, 40}, {89, 32, 25, 255}, {80, 64, 32, 32}, {80, 32, 33, 255}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vm_entry entry = {.max_threads = rows[i].threads, .min_blocks = rows[i].blocks};
        assert_int_equal(model_register_cap(&entry, rows[i].sm), rows[i].cap);
    }
}

/* A few registers are saved where an SM then holds a quarter more warps: at 48 in place of 56 it
 * holds 40 warps in place of 32 of blocks of 256 threads, and 40 in place of 36 of 64 threads. */
static void test_saved_for_warps(void **state) {
    (void)state;
    int saved = 0;
    for (int loads = 36; loads <= 48; loads++) {
        char *large = sum_of_loads(loads, ".maxntid 256, 1, 1\n");
        char *small = sum_of_loads(loads, ".maxntid 64, 1, 1\n");
        uint32_t in_large = registers_of(large), in_small = registers_of(small);
        assert_true(in_large == in_small || (in_large == 48 && in_small == 56));
        saved += in_large < in_small;
        free(large);
        free(small);
    }
    assert_in_range(saved, 1, 3);
}

static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < MODEL_TERM_COUNT; i++) {
        for (int k = 0; k < i; k++)
            assert_string_not_equal(model_term_name((model_term)i), model_term_name((model_term)k));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_small_grid),
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_parallel_chains),
        cmocka_unit_test(test_occupancy_helps),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_l1),
        cmocka_unit_test(test_barrier_in_parts),
        cmocka_unit_test(test_loads_before_a_barrier_in_parts),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_spills),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_spill_traffic),
        cmocka_unit_test(test_large_block),
        cmocka_unit_test(test_saved_registers),
        cmocka_unit_test(test_stated_registers),
        cmocka_unit_test(test_bounds_past_an_sm),
        cmocka_unit_test(test_saved_for_warps),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
