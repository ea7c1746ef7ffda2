/* A test a mechanism of the timing model: two kernels, or one kernel on two descriptions, that
 * differ in the one thing only, and what the description says that the difference is. Those of
 * memory are in test_model_memory.c. */
#include "tests/fitness/model/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- throughput ---- */

#define START "mov.f32 %f1, 0f3F800000;\nmov.f32 %f2, %f1;\nmov.f32 %f3, %f1;\nmov.f32 %f4, %f1;\n"
#define WARPS 32

typedef struct pipe_row {
    const char *name, *inner; /* four independent operations */
    gpu_key rate;
    double each; /* lane results an operation; the half pipe gives two */
} pipe_row;

#define FOUR(op, r, tail)                                                                          \
    op " %" r "1, " tail ";\n" op " %" r "2, " tail ";\n" op " %" r "3, " tail ";\n" op " %" r     \
       "4, " tail ";\n"

static const pipe_row PIPES[] = {
    {"fp32", FOUR("fma.rn.f32", "f", "%f9, %f9, %f9"), GPU_FP32, 1},
    {"fp64", FOUR("fma.rn.f64", "d", "%d9, %d9, %d9"), GPU_FP64, 1},
    {"fp16", FOUR("fma.rn.f16x2", "r1", "%r29, %r29, %r29"), GPU_FP16, 2},
    {"iadd", FOUR("add.s32", "r1", "%r29, 7"), GPU_IADD, 1},
    {"imul", FOUR("mul.lo.s32", "r1", "%r29, %r28"), GPU_IMUL, 1},
    {"logic", FOUR("xor.b32", "r1", "%r29, %r28"), GPU_LOGIC, 1},
    {"shift", FOUR("shl.b32", "r1", "%r29, 3"), GPU_SHIFT, 1},
    {"compare", FOUR("min.s32", "r1", "%r29, %r28"), GPU_COMPARE, 1},
    {"sfu", FOUR("rsqrt.approx.ftz.f32", "f", "%f9"), GPU_SFU, 1},
    {"popc", FOUR("popc.b32", "r1", "%r29"), GPU_POPC, 1},
    {"cvt64", FOUR("cvt.f64.f32", "d", "%f9"), GPU_CVT64, 1},
    {"shuffle", FOUR("shfl.sync.idx.b32", "r1", "%r29, 0, 31, 0xffffffff"), GPU_SHUFFLE, 1},
};

/* Each pipe alone: a warp's 32 results at its rate, whatever the description says that is. */
static void test_pipes(void **state) {
    (void)state;
    for (int half = 0; half < 2; half++)
        for (size_t i = 0; i < sizeof PIPES / sizeof *PIPES; i++) {
            const pipe_row *row = &PIPES[i];
            gpu *g = load_small("a100");
            double rate = gpu_get(g, row->rate) / (half + 1);
            set(g, row->rate, rate);
            double is = more_cycles(g, START, row->inner, SMS, WARPS * 32, 8);
            double expected = 4 * WARPS * 32 * row->each / rate;
            assert_ratio(row->name, is, expected, 1, 0.03);
            gpu_free(g);
        }
}

/* Where double precision has two lanes, conversions of doubles take its pipe; elsewhere they have
 * their own. */
static void test_shared_fp64(void **state) {
    (void)state;
    static const char both[] =
        FOUR("cvt.f64.f32", "d", "%f9") FOUR("fma.rn.f64", "d1", "%d9, %d9, %d9");
    gpu *g = load_small("rtx4090");
    double slow = more_cycles(g, START, both, SMS, WARPS * 32, 2);
    double fp64 = 4 * WARPS * 32 / gpu_get(g, GPU_FP64);
    double cvt = 4 * WARPS * 32 / gpu_get(g, GPU_CVT64);
    assert_ratio("one pipe", slow, fp64 + cvt, 1, 0.03);
    set(g, GPU_CVT64_SHARED, 0);
    set(g, GPU_CVT64, 2 * gpu_get(g, GPU_FP64));
    assert_ratio("two pipes", more_cycles(g, START, both, SMS, WARPS * 32, 2), fp64, 1, 0.03);
    gpu_free(g);
}

/* Wider integers are a move, or a shift for the sign; narrower ones nothing. */
static void test_integer_conversions(void **state) {
    (void)state;
    gpu *g = load_small("a100");
    double each = 4 * WARPS * 32 / gpu_get(g, GPU_LOGIC);
    double is = more_cycles(g, START, FOUR("cvt.u64.u32", "rd1", "%r29"), SMS, WARPS * 32, 8);
    assert_ratio("wider", is, each, 1, 0.03);
    is = more_cycles(g, START, FOUR("cvt.s64.s32", "rd1", "%r29"), SMS, WARPS * 32, 8);
    assert_ratio("wider with sign", is, each, 1, 0.03);
    static const char narrow[] =
        FOUR("cvt.u32.u64", "r1", "%rd9") FOUR("xor.b32", "r2", "%r29, %r28");
    assert_ratio("narrower", more_cycles(g, START, narrow, SMS, WARPS * 32, 8), each, 1, 0.03);
    gpu_free(g);
}

/* Division and root of doubles are eight operations of the pipe, a reciprocal five. */
static void test_doubles(void **state) {
    (void)state;
    gpu *g = load_small("h100");
    double each = 4 * WARPS * 32 / gpu_get(g, GPU_FP64);
    double is = more_cycles(g, START, FOUR("div.rn.f64", "d", "%d9, %d8"), SMS, WARPS * 32, 4);
    assert_ratio("division", is, fmax(8 * each, 4 * 14.0 * WARPS / 4), 1, 0.03);
    is = more_cycles(g, START, FOUR("sqrt.rn.f64", "d", "%d9"), SMS, WARPS * 32, 4);
    assert_ratio("root", is, fmax(8 * each, 4 * 16.0 * WARPS / 4), 1, 0.03);
    is = more_cycles(g, START, FOUR("rcp.rn.f64", "d", "%d9"), SMS, WARPS * 32, 4);
    assert_ratio("reciprocal", is, fmax(5 * each, 4 * 9.0 * WARPS / 4), 1,
                 0.06); /* the special-function pipe is nearly as busy */
    set(g, GPU_FP64, 2);
    is = more_cycles(g, START, FOUR("sqrt.rn.f64", "d", "%d9"), SMS, WARPS * 32, 1);
    assert_ratio("root on two lanes", is, 8.0 * 4 * WARPS * 32 / 2, 1, 0.03);
    gpu_free(g);
}

/* Two registers a cycle and scheduler: three that are all new take a lane for each thread one and a
 * half cycles; with one that the neighbour reads as well, one. Half as many lanes never wait. */
static void test_register_banks(void **state) {
    (void)state;
    static const char fresh[] =
        "fma.rn.f32 %f1, %f11, %f12, %f13;\nfma.rn.f32 %f2, %f14, %f15, %f16;\n"
        "fma.rn.f32 %f3, %f17, %f18, %f19;\nfma.rn.f32 %f4, %f20, %f21, %f22;\n";
    static const char reuse[] =
        "fma.rn.f32 %f1, %f11, %f12, %f13;\nfma.rn.f32 %f2, %f11, %f15, %f16;\n"
        "fma.rn.f32 %f3, %f17, %f15, %f19;\nfma.rn.f32 %f4, %f17, %f12, %f22;\n";
    static const struct {
        const char *id;
        double slower;
    } rows[] = {{"rtx4090", 1.5}, {"h100", 1.5}, {"a100", 1}, {"v100", 1}, {"t4", 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gpu *g = load_small(rows[i].id);
        double peak = 4.0 * WARPS * 32 / gpu_get(g, GPU_FP32);
        double is = more_cycles(g, START, fresh, SMS, WARPS * 32, 8);
        assert_ratio("three registers", is, peak, rows[i].slower, 0.03);
        assert_ratio("reuse", more_cycles(g, START, reuse, SMS, WARPS * 32, 8), peak, 1, 0.03);
        gpu_free(g);
    }
}

/* mma.m16n8k16 of halves is 2,048 multiply-adds; tf32 has half the rate; without tensor pipes the
 * half pipe does it. */
static void test_tensor(void **state) {
    (void)state;
    static const char half[] = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r10, %r11}, "
                               "{%r20, %r21, %r22, %r23}, {%r24, %r25}, {%r26, %r27};\n";
    static const char tf32[] = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                               "{%f1, %f2, %f3, %f4}, {%r20, %r21, %r22, %r23}, {%r24, %r25}, "
                               "{%f5, %f6, %f7, %f8};\n";
    gpu *g = load_small("a100");
    double a = more_cycles(g, START, half, SMS, WARPS * 32, 8);
    assert_ratio("mma of halves", a, WARPS * 2048 / gpu_get(g, GPU_TENSOR), 1, 0.03);
    double b = more_cycles(g, START, tf32, SMS, WARPS * 32, 8);
    assert_ratio("tf32", b, WARPS * 1024 / gpu_get(g, GPU_TENSOR_TF32), 1, 0.03);
    set(g, GPU_TENSOR, 0);
    double c = more_cycles(g, START, half, SMS, WARPS * 32, 8);
    assert_ratio("without tensor pipes", c, WARPS * 2048 / (gpu_get(g, GPU_FP16) / 2), 1, 0.03);
    gpu_free(g);
}

/* Two multiply-adds beside one addition fill the issue slots of an A100: 3 of them need 3 slots of
 * 4 a cycle, the pipes less. With two issues a cycle the pipes decide. */
static void test_dual_issue(void **state) {
    (void)state;
    static const char mixed[] = "fma.rn.f32 %f1, %f9, %f9, %f9;\nfma.rn.f32 %f2, %f9, %f9, %f9;\n"
                                "add.s32 %r11, %r29, 7;\nfma.rn.f32 %f3, %f9, %f9, %f9;\n"
                                "fma.rn.f32 %f4, %f9, %f9, %f9;\nadd.s32 %r12, %r29, 7;\n";
    gpu *g = load_small("rtx4090");
    set(g, GPU_FP32, 128);
    set(g, GPU_IADD, 64);
    double one = more_cycles(g, START, mixed, SMS, WARPS * 32, 8);
    assert_ratio("issue slots", one, 6.0 * WARPS / gpu_get(g, GPU_SCHEDULERS), 1, 0.03);
    set(g, GPU_ISSUE, 2);
    double two = more_cycles(g, START, mixed, SMS, WARPS * 32, 8);
    assert_true(two < 0.8 * one && two >= 4.0 * WARPS * 32 / 128 * 0.99); /* of the pipe */
    gpu_free(g);
}

/* ---- latency ---- */

/* One warp: a chain costs its latency an operation, whatever that is; four chains a quarter. */
static void test_scoreboard(void **state) {
    (void)state;
    static const char chain[] = "fma.rn.f32 %f1, %f1, %f9, %f9;\n";
    static const char four[] = "fma.rn.f32 %f1, %f1, %f9, %f9;\nfma.rn.f32 %f2, %f2, %f9, %f9;\n"
                               "fma.rn.f32 %f3, %f3, %f9, %f9;\nfma.rn.f32 %f4, %f4, %f9, %f9;\n";
    gpu *g = load_small("v100");
    for (int latency = 4; latency <= 12; latency += 4) {
        set(g, GPU_LAT_FMA, latency);
        assert_ratio("a chain", more_cycles(g, START, chain, 1, 32, 16), latency, 1, 0.02);
        double apart = more_cycles(g, START, four, 1, 32, 8);
        double least = fmax(latency, 4 * 32 / (gpu_get(g, GPU_FP32) / 4)); /* a scheduler's part */
        assert_ratio("four chains", apart, least, 1, 0.02);
    }
    static const char shared[] = "ld.shared.u32 %r11, [%r11];\n";
    static const char zero[] = "mov.u32 %r11, s;\nst.shared.u32 [%r11], %r11;\n";
    for (int latency = 20; latency <= 40; latency += 20) {
        set(g, GPU_LAT_SHARED, latency);
        assert_ratio("a chain through shared memory", more_cycles(g, zero, shared, 1, 32, 8),
                     latency, 1, 0.02);
    }
    gpu_free(g);
}

typedef enum copy_form { PLAIN, GUARDED, NESTED } copy_form;

/* Cycles of four copies from global to shared memory by one warp. `limit`: an instruction that says
 * in %r7 how many of its lanes take a guarded one. */
static double copies(const gpu *g, copy_form form, const char *limit) {
    char *body = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&body, &bytes);
    fprintf(out,
            "%s\nmul.wide.u32 %%rd4, %%r1, 4;\nadd.u64 %%rd5, %%rd1, %%rd4;\n"
            "mov.u32 %%r5, s;\nmad.lo.u32 %%r6, %%r1, 4, %%r5;\n",
            limit);
    for (int i = 0; i < 4; i++) {
        fprintf(out, "setp.ge.u32 %%p%d, %%r1, %%r7;\n", i + 1);
        if (form != PLAIN)
            fprintf(out, "@%%p%d bra G%d;\n", i + 1, form == NESTED ? 3 : i);
        fprintf(out, "ld.global.f32 %%f%d, [%%rd5+%d];\nst.shared.f32 [%%r6+%d], %%f%d;\n", i + 1,
                4096 * i, 128 * i, i + 1);
        if (form == GUARDED || (form == NESTED && i == 3))
            fprintf(out, "G%d:\n", i);
    }
    fputs("bar.sync 0;\n", out);
    (void)fclose(out);
    subject s = {.body = body, .grid = 1, .block = 32};
    double is = cycles_of(g, &s);
    free(body);
    return is;
}

/* Loads that are guarded one after the other are on their way together, as the assembler predicates
 * them; those of nested guards are not, but for the last two. What all lanes step over takes no
 * time, and a predicate that is loaded is waited for. */
static void test_guarded_loads(void **state) {
    (void)state;
    static const char all[] = "mov.u32 %r7, 99;", none[] = "mov.u32 %r7, 0;",
                      loaded[] = "ld.global.u32 %r7, [%rd2];\nadd.u32 %r7, %r7, 99;";
    gpu *g = load_small("a100");
    set(g, GPU_DRAM_QUEUE, 0);
    double load = gpu_get(g, GPU_LAT_DRAM);
    double plain = copies(g, PLAIN, all), guarded = copies(g, GUARDED, all);
    assert_ratio("guarded", guarded, plain, 1, 0.05);
    assert_ratio("nested", copies(g, NESTED, all) - guarded, 2 * load, 1, 0.05);
    assert_ratio("stepped over", guarded - copies(g, GUARDED, none), load, 1, 0.05);
    assert_ratio("loaded", copies(g, GUARDED, loaded) - guarded, load, 1, 0.05);
    gpu_free(g);
}

static void test_barrier(void **state) {
    (void)state;
    gpu *g = load_small("h100");
    for (int latency = 20; latency <= 60; latency += 20) {
        set(g, GPU_LAT_BARRIER, latency);
        assert_ratio("a barrier", more_cycles(g, "", "bar.sync 0;\n", 1, 64, 8), latency, 1, 0.05);
    }
    gpu_free(g);
}

/* ---- how terms join ---- */

/* Time is (throughput^p + latency^p)^(1/p): where both are alike, a high p gives the larger one. */
static void test_smooth_maximum(void **state) {
    (void)state;
    gpu *g = load_small("a100");
    char *body = loop_of(START, FOUR("fma.rn.f32", "f", "%f9, %f9, %f9"), 16, ROUNDS);
    subject s = {.body = body, .grid = SMS, .block = 128};
    model_time t = time_of(g, &s);
    double pipe = t.term_ns[MODEL_FMA], latency = t.term_ns[MODEL_LATENCY];
    assert_true(pipe > 0.4 * latency && latency > 0.4 * pipe);
    for (int p = 2; p <= 64; p *= 2) {
        set(g, GPU_LATENCY_POWER, p);
        set(g, GPU_LOCAL_POWER, 100);
        set(g, GPU_JOIN_POWER, 100);
        set(g, GPU_PIPES_POWER, 100);
        t = time_of(g, &s);
        double joined = pow(pow(pipe, p) + pow(latency, p), 1.0 / p);
        assert_ratio("joined", t.ns - t.term_ns[MODEL_LAUNCH], joined, 1, 0.01);
    }
    free(body);
    gpu_free(g);
}

/* Of two units that are busy as long as each other. */
static void assert_joined(gpu *g, const char *what, const char *inner, model_term a, model_term b,
                          gpu_key slower, double p) {
    for (int i = 0; i < 2; i++) {
        char *body = loop_of("mov.u32 %r5, s;\nmov.u32 %r6, 0;\n" START, inner, 16, 64);
        subject s = {.body = body, .grid = SMS, .block = 1024};
        model_time t = time_of(g, &s);
        double x = t.term_ns[a], y = t.term_ns[b];
        if (i == 0) {
            set(g, slower, gpu_get(g, slower) * y / x);
        } else {
            assert_ratio(what, x, y, 1, 0.02);
            assert_ratio(what, t.ns - t.term_ns[MODEL_LAUNCH], pow(2, 1 / p) * x, 1, 0.06);
        }
        free(body);
    }
}

/* Arithmetic hides shared memory, or the L1, in part only. Where the two are one array, their
 * requests follow each other through it. */
static void test_local_join(void **state) {
    (void)state;
    gpu *g = load_small("a100");
    double p = gpu_get(g, GPU_LOCAL_POWER);
    assert_true(p < 3);
    assert_joined(g, "shared memory and arithmetic",
                  "ld.shared.f32 %f10, [%r5];\nld.shared.f32 %f11, [%r5];\n" FOUR("fma.rn.f32", "f",
                                                                                  "%f9, %f9, %f9"),
                  MODEL_SHARED, MODEL_FMA, GPU_FP32, p);
    gpu_free(g);
    g = load_small("a100");
    assert_joined(g, "L1 and arithmetic",
                  "ld.global.f32 %f10, [%rd1];\nld.global.f32 %f11, [%rd1];\n" FOUR(
                      "fma.rn.f32", "f", "%f9, %f9, %f9"),
                  MODEL_L1, MODEL_FMA, GPU_FP32, p);
    gpu_free(g);
    g = load_small("a100");
    set(g, GPU_LOCAL_POWER, 100);
    double apart =
        more_cycles(g, "mov.u32 %r5, s;\n", "ld.shared.f32 %f10, [%r5];\n", SMS, 1024, 32);
    double both =
        more_cycles(g, "mov.u32 %r5, s;\n",
                    "ld.shared.f32 %f10, [%r5];\nld.global.f32 %f11, [%rd1];\n", SMS, 1024, 32);
    assert_ratio("one array", both, apart * 2.05, 1, 0.05);
    set(g, GPU_UNIFIED_L1, 0);
    both = more_cycles(g, "mov.u32 %r5, s;\n",
                       "ld.shared.f32 %f10, [%r5];\nld.global.f32 %f11, [%rd1];\n", SMS, 1024, 32);
    assert_true(both < 1.3 * apart);
    gpu_free(g);
}

/* Empty blocks: each wave costs the start of a block. */
static void test_start(void **state) {
    (void)state;
    gpu *g = load_small("h100");
    uint32_t wave = SMS * 32;
    subject one = {.body = "", .grid = wave, .block = 32}, many = one;
    many.grid = 5 * wave;
    double before = cycles_of(g, &many) - cycles_of(g, &one);
    set(g, GPU_START_CLK, gpu_get(g, GPU_START_CLK) + 1000);
    double after = cycles_of(g, &many) - cycles_of(g, &one);
    assert_ratio("four waves' start", after - before, 4 * 1000, 1, 0.01);
    gpu_free(g);
}

/* The whole chip starts so many blocks a cycle, however many SMs are free. */
static void test_dispatch(void **state) {
    (void)state;
    static const char *const ids[] = {"a100", "h200"};
    static const double rates[] = {0.95, 0.83};
    for (int i = 0; i < 2; i++) {
        gpu *g = load_gpu(ids[i]);
        subject s = {.body = "", .grid = 40000, .block = 32};
        double is = cycles_of(g, &s);
        assert_ratio("small blocks", is, s.grid / rates[i], 1, 0.02);
        set(g, GPU_BLOCKS_CLK, rates[i] / 2);
        assert_ratio("at half of the rate", cycles_of(g, &s), is, 2, 0.02);
        gpu_free(g);
    }
}

/* On Hopper, a block that stores keeps its slot for longer. */
static void test_store_hold(void **state) {
    (void)state;
    gpu *g = load_small("h100");
    subject s = {.body = "mul.wide.u32 %rd3, %r4, 4;\nadd.u64 %rd4, %rd2, %rd3;\n"
                         "st.global.u32 [%rd4], %r4;\n",
                 .grid = 5 * SMS,
                 .block = 32,
                 .shared = 160000}; /* five waves of one block an SM */
    double with = cycles_of(g, &s), hold = gpu_get(g, GPU_STORE_HOLD);
    assert_true(hold >= 64 && hold <= 80);
    set(g, GPU_STORE_HOLD, 0);
    assert_ratio("stores", with - cycles_of(g, &s), 5 * hold, 1, 0.01);
    gpu_free(g);
}

/* Chains: one block more than a wave takes a wave more. Throughput: it takes its own share. */
static void test_waves(void **state) {
    (void)state;
    gpu *g = load_small("a100");
    char *chain = loop_of(START, "fma.rn.f32 %f1, %f1, %f9, %f9;\n", 8, 200);
    subject s = {.body = chain, .grid = SMS, .block = 32, .shared = 160000}; /* one block an SM */
    double full = cycles_of(g, &s);
    s.grid = SMS + 1;
    assert_ratio("a wave more", cycles_of(g, &s), full, 2, 0.01);
    s.grid = 2 * SMS;
    assert_ratio("two waves", cycles_of(g, &s), full, 2, 0.01);
    free(chain);
    char *dense = loop_of(START, FOUR("fma.rn.f64", "d", "%d9, %d9, %d9"), 16, ROUNDS);
    s = (subject){.body = dense, .grid = 4 * SMS, .block = 512};
    double four = cycles_of(g, &s); /* a wave of four blocks an SM */
    s.grid = 5 * SMS;
    assert_ratio("a tail of a quarter", cycles_of(g, &s), four, 1.25, 0.03);
    free(dense);
    gpu_free(g);
}

/* ---- registers ---- */

/* `count` values alive at once. */
static char *alive(int count) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out, "mul.wide.u32 %%rd3, %%r1, 4;\nadd.u64 %%rd4, %%rd1, %%rd3;\nL:\n");
    for (int i = 0; i < count; i++)
        fprintf(out, "ld.global.f32 %%f%d, [%%rd4+%d];\n", i + 1, 4 * i);
    for (int i = 1; i < count; i++)
        fprintf(out, "add.f32 %%f1, %%f1, %%f%d;\n", i + 1);
    fprintf(out, "setp.lt.f32 %%p1, %%f1, 0f00000000;\n@%%p1 bra L;\n"
                 "add.u64 %%rd5, %%rd2, %%rd3;\nst.global.f32 [%%rd5], %%f1;\n");
    (void)fclose(out);
    return text;
}

/* 32 values more alive are 32 registers more, and so many fewer warps; a bound gives them back, and
 * costs a store and a load of what does not fit each eighth instruction. */
static void test_registers(void **state) {
    (void)state;
    gpu *g = load_small("h200");
    char *few = alive(16), *many = alive(80);
    subject a = {.body = few, .grid = 100, .block = 64}, b = a, c = a;
    b.body = c.body = many;
    c.bounds = ".maxnreg 40\n";
    model_time light = time_of(g, &a), heavy = time_of(g, &b), bound = time_of(g, &c);
    double more = (double)heavy.occupancy.registers - light.occupancy.registers;
    assert_true(more >= 56 && more <= 80);
    uint32_t warps = 65536 / (heavy.occupancy.registers * 32) / 4 * 4;
    assert_int_equal(heavy.occupancy.warps_per_sm, warps);
    assert_int_equal(bound.occupancy.registers, 40);
    assert_int_equal(bound.occupancy.warps_per_sm, 48); /* 65536 / 1280 = 51 */
    double live = bound.spilled + 40;
    assert_true(live >= 80 && live <= heavy.occupancy.registers);
    assert_ratio("instructions of spills", bound.term_ns[MODEL_ISSUE], heavy.term_ns[MODEL_ISSUE],
                 1 + bound.spilled / live * 2 / 4, 0.001);
    assert_true(bound.term_ns[MODEL_L1] > heavy.term_ns[MODEL_L1]);
    free(few);
    free(many);
    gpu_free(g);
}

/* ---- links ---- */

/* 2 MiB read from a peer cross its link in lines with a header of 16 bytes each, and nothing of
 * it one's own DRAM; a load waits the latency of the link. */
static void test_links(void **state) {
    (void)state;
    gpu *g = load_small("h200");
    subject s = {.body = "setp.eq.u32 %p1, %r1, 5000;\nmul.wide.u32 %rd3, %r4, 16;\n"
                         "add.u64 %rd4, %rd1, %rd3;\n"
                         "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4];\n"
                         "add.u32 %r10, %r10, %r11;\nadd.u64 %rd5, %rd2, %rd3;\n"
                         "@%p1 st.global.u32 [%rd5], %r10;\n", /* by nobody */
                 .grid = 256,
                 .block = 512,
                 .peer = 1,
                 .reach = MODEL_ONE_NODE};
    assert_ratio("half of NVLink", gpu_get(g, GPU_LINK_GBS), gpu_get(g, GPU_NVLINK_GBS), 0.5, 1e-9);
    set(g, GPU_LINK_GBS, 30);
    model_time far = time_of(g, &s);
    double bytes = BUFFER_BYTES * (1 + 16 / 128.0);
    assert_ratio("bytes", far.link_in, bytes, 1, 1e-9);
    assert_ratio("the link's time", far.term_ns[MODEL_LINK], bytes / gpu_get(g, GPU_LINK_GBS), 1,
                 1e-9);
    assert_true(far.dram_bytes < 1e-3 * BUFFER_BYTES && far.l2_bytes < 1e-3 * BUFFER_BYTES);
    assert_int_equal(far.bound_by, MODEL_LINK);
    set(g, GPU_LINK_GBS, gpu_get(g, GPU_LINK_GBS) / 3);
    model_time slow = time_of(g, &s);
    assert_ratio("a third of the bandwidth", cycles(g, &slow), cycles(g, &far), 3, 0.02);

    s.reach = MODEL_TWO_NODES;
    model_time network = time_of(g, &s);
    assert_ratio("the network's time", network.term_ns[MODEL_LINK],
                 bytes / gpu_get(g, GPU_NETWORK_GBS), 1, 1e-9);
    s.reach = MODEL_ONE_GPU;
    model_time near = time_of(g, &s);
    assert_true(near.term_ns[MODEL_LINK] == 0 && near.dram_bytes > 0.99 * BUFFER_BYTES);
    s.reach = MODEL_ONE_NODE;

    subject one = s;
    one.grid = 1;
    one.block = 32;
    double before = cycles_of(g, &one);
    set(g, GPU_LAT_PEER, gpu_get(g, GPU_LAT_PEER) + 5000);
    assert_ratio("latency", cycles_of(g, &one) - before, 5000, 1, 0.01);
    before = cycles_of(g, &one);
    one.reach = MODEL_TWO_NODES;
    double wait = gpu_get(g, GPU_LAT_NETWORK_US) * gpu_get(g, GPU_BOOST_MHZ);
    assert_ratio("the network's latency", cycles_of(g, &one) - before,
                 floor(wait) - floor(gpu_get(g, GPU_LAT_PEER)), 1, 0.02);
    s.peer = 0;
    model_time own = time_of(g, &s);
    assert_true(own.term_ns[MODEL_LINK] == 0 && own.dram_bytes > 0.99 * BUFFER_BYTES);
    gpu_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipes),          cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_shared_fp64),    cmocka_unit_test(test_integer_conversions),
        cmocka_unit_test(test_doubles),        cmocka_unit_test(test_register_banks),
        cmocka_unit_test(test_dual_issue),     cmocka_unit_test(test_scoreboard),
        cmocka_unit_test(test_guarded_loads),  cmocka_unit_test(test_barrier),
        cmocka_unit_test(test_smooth_maximum), cmocka_unit_test(test_local_join),
        cmocka_unit_test(test_start),          cmocka_unit_test(test_dispatch),
        cmocka_unit_test(test_store_hold),     cmocka_unit_test(test_waves),
        cmocka_unit_test(test_registers),      cmocka_unit_test(test_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
