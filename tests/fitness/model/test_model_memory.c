/* A test a mechanism of the timing model, as in test_model_mechanisms.c: those of caches, DRAM,
 * shared memory and atomics. */
#include "tests/fitness/model/model_rig.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WARPS 32

/* ---- caches ---- */

/* Each of 256 threads reads `stride` bytes apart, over and over `span` bytes. */
static char *reader(unsigned stride, unsigned steps, int rounds) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out,
            "mul.lo.u32 %%r5, %%r1, %u;\nmov.u32 %%r9, 0;\nL:\n"
            "rem.u32 %%r6, %%r9, %u;\nmad.lo.u32 %%r7, %%r6, %u, %%r5;\ncvt.u64.u32 %%rd4, %%r7;\n"
            "add.u64 %%rd5, %%rd1, %%rd4;\nld.global.u32 %%r8, [%%rd5];\nadd.u32 %%r10, %%r10, "
            "%%r8;\nadd.u32 %%r9, %%r9, 1;\nsetp.lt.u32 %%p1, %%r9, %d;\n@%%p1 bra L;\n",
            stride, steps, stride * 256, (int)steps * rounds);
    (void)fclose(out);
    return text;
}

/* Four rounds over what fits the L1 come from the L2 once, over eight times its size each time; the
 * shared memory of a block is cut from its L1. */
static void test_l1(void **state) {
    (void)state;
    gpu *g = load_small("a100"); /* 192 KiB */
    set(g, GPU_L1_SIZE, 131072);
    set(g, GPU_SHARED_SM, 131072 - 1024);
    char *fits = reader(4, 48, 4), *exceeds = reader(4, 1024, 4);
    subject s = {.body = fits, .grid = 1, .block = 256};
    model_time a = time_of(g, &s);
    assert_ratio("hits of four rounds", a.l1_hit_rate, 0.75, 1, 0.01);
    s.body = exceeds;
    model_time b = time_of(g, &s);
    assert_true(b.l1_hit_rate < 0.02);
    s.body = fits;
    s.shared = 98304; /* 48 KiB do not fit the 32 that are left */
    model_time c = time_of(g, &s);
    assert_true(c.l1_hit_rate < 0.4);
    set(g, GPU_UNIFIED_L1, 0);
    c = time_of(g, &s);
    assert_ratio("an L1 of its own", c.l1_hit_rate, 0.75, 1, 0.01);
    free(fits);
    free(exceeds);
    gpu_free(g);
}

/* A time does not depend on where the device placed the buffers: here the lines fill the L1 nearly,
 * so that some sets have more of them than ways. */
static void test_places_of_buffers(void **state) {
    (void)state;
    static const uint32_t before[] = {256, 1792, 4096, 77824, 1u << 20};
    gpu *g = load_small("a100");
    char *body = reader(640, 6, 4); /* one line in five */
    subject s = {.body = body, .grid = 2, .block = 256};
    model_time first = time_of(g, &s);
    assert_true(first.l1_hit_rate > 0.1 && first.l1_hit_rate < 0.74); /* else no set is full */
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        s.before = before[i];
        model_time other = time_of(g, &s);
        assert_true(other.ns == first.ns && other.l1_hit_rate == first.l1_hit_rate);
    }
    free(body);
    gpu_free(g);
}

/* A request of 32 words side by side is 4 sectors, 32 bytes apart it is 32. */
static void test_sectors(void **state) {
    (void)state;
    gpu *g = load_small("a100");
    char *dense = reader(4, 64, 1), *sparse = reader(32, 64, 1);
    subject s = {.body = dense, .grid = 1, .block = 256};
    model_time a = time_of(g, &s);
    s.body = sparse;
    model_time b = time_of(g, &s);
    assert_ratio("bytes from the L2", b.l2_bytes, a.l2_bytes, 8, 0.001);
    assert_ratio("bytes from DRAM", b.dram_bytes, a.dram_bytes, 8, 0.001);
    assert_ratio("bytes asked for", a.l2_bytes, 64 * 256 * 4, 1, 0.001);
    free(dense);
    free(sparse);
    gpu_free(g);
}

/* A load waits for the last of its lines: each doubling of their number takes a step longer. */
static void test_spread(void **state) {
    (void)state;
    gpu *g = load_small("h200");
    set(g, GPU_DRAM_QUEUE, 0);
    double of_spread[2][2];
    for (int wide = 0; wide < 2; wide++) {
        char *body = reader(wide ? 128 : 4, 16, 1);
        for (int far = 0; far < 2; far++) {
            set(g, GPU_LAT_SPREAD, 100 * far);
            of_spread[wide][far] = cycles_of(g, &(subject){.body = body, .grid = 1, .block = 32});
        }
        free(body);
    }
    assert_float_equal(of_spread[0][0], of_spread[0][1], 1); /* one line */
    assert_ratio("32 lines", of_spread[1][1] - of_spread[1][0], 16 * 500, 1, 0.02);
    gpu_free(g);
}

/* All blocks read the same 2 MiB. An L2 that holds them reads DRAM once. One that holds half of
 * them misses 0.797 of what each further wave reads: m = 1 - exp(-2 m), as lines are replaced at
 * random. Two partitions hold what their own SMs read, each half as much. */
static void test_l2(void **state) {
    (void)state;
    gpu *g = load_small("v100");
    char *body = reader(4, 2048, 1);
    subject s = {.body = body, .grid = 8, .block = 256, .shared = 90000}; /* four waves of two */
    model_time t = time_of(g, &s);
    assert_ratio("once", t.dram_bytes, 2048 * 1024, 1, 0.001);
    set(g, GPU_L2_SIZE, 1024 * 1024);
    t = time_of(g, &s);
    assert_ratio("most of three waves more", t.dram_bytes, 2048 * 1024, 1 + 3 * 0.797, 0.001);
    set(g, GPU_L2_SIZE, 2048 * 1024);
    t = time_of(g, &s);
    assert_ratio("all of it held", t.dram_bytes, 2048 * 1024, 1, 0.001);
    set(g, GPU_L2_PARTITIONS, 2);
    t = time_of(g, &s);
    assert_ratio("held in halves", t.dram_bytes, 2048 * 1024, 1 + 3 * 0.797, 0.001);
    free(body);
    gpu_free(g);
}

/* A block reads 256 KiB four times. Through an L2 of half that size, most of it comes from DRAM
 * again each time, as in a loop over 51 MB on an A100. If it reads each 8 KiB four times in a row,
 * it does not. */
static void test_l2_within_a_wave(void **state) {
    (void)state;
    gpu *g = load_small("v100");
    set(g, GPU_L1_SIZE, 1024);
    set(g, GPU_UNIFIED_L1, 0);
    char *far = reader(4, 2048, 4);
    char *near = loop_of("mul.lo.u32 %r5, %r1, 4;\n",
                         "and.b32 %r7, %r9, 63;\nshr.u32 %r8, %r9, 8;\nshl.b32 %r8, %r8, 6;\n"
                         "add.u32 %r7, %r7, %r8;\nmad.lo.u32 %r7, %r7, 1024, %r5;\n"
                         "cvt.u64.u32 %rd4, %r7;\nadd.u64 %rd5, %rd1, %rd4;\n"
                         "ld.global.u32 %r8, [%rd5];\nadd.u32 %r10, %r10, %r8;\n",
                         1, 8192);
    double once = 2048 * 128;
    subject s = {.body = far, .grid = 1, .block = 32}, n = s;
    n.body = near;
    set(g, GPU_L2_SIZE, once);
    model_time t = time_of(g, &s);
    assert_ratio("once", t.dram_bytes, once, 1, 0.001);
    assert_ratio("each time past the L1", t.l2_bytes, once, 4, 0.03);
    set(g, GPU_L2_SIZE, once / 2);
    t = time_of(g, &s);
    assert_ratio("again", t.dram_bytes, once, 1 + 3 * 0.797, 0.03);
    t = time_of(g, &n);
    assert_ratio("each time past the L1", t.l2_bytes, once, 4, 0.03);
    assert_ratio("soon again", t.dram_bytes, once, 1, 0.001);
    free(far);
    free(near);
    gpu_free(g);
}

/* Blocks of the first wave that read the same lines in step wait for DRAM as long as one of them;
 * those of later waves find the lines in the L2. */
static void test_one_answer(void **state) {
    (void)state;
    gpu *g = load_small("h200");
    char *body = reader(4, BUFFER_BYTES / 1024, 1); /* all of it, one line after the other */
    subject s = {.body = body, .grid = 1, .block = 256};
    double alone = cycles_of(g, &s);
    s.grid = SMS;
    double together = cycles_of(g, &s);
    assert_ratio("blocks that read the same", together, alone, 1, 0.02);
    set(g, GPU_MAX_BLOCKS, 1);
    s.grid = 4 * SMS;
    double waves = cycles_of(g, &s);
    double near = gpu_get(g, GPU_LAT_L2) / gpu_get(g, GPU_LAT_DRAM);
    assert_ratio("four waves, three of which find it in the L2", waves / alone, 1 + 3 * near, 1,
                 0.1);
    free(body);
    gpu_free(g);
}

/* Where DRAM is what a kernel waits for, half the bandwidth takes twice the time. */
static void test_dram(void **state) {
    (void)state;
    gpu *g = load_small("h200");
    subject s = {.body = "mul.wide.u32 %rd3, %r4, 16;\nadd.u64 %rd4, %rd1, %rd3;\n"
                         "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4];\n"
                         "add.u64 %rd5, %rd2, %rd3;\n"
                         "st.global.v4.u32 [%rd5], {%r10, %r11, %r12, %r13};\n",
                 .grid = 256,
                 .block = 512};
    model_time a = time_of(g, &s);
    assert_ratio("bytes", a.dram_bytes, 2.0 * BUFFER_BYTES, 1, 0.001);
    set(g, GPU_DRAM_GBS, gpu_get(g, GPU_DRAM_GBS) / 64);
    set(g, GPU_DRAM_QUEUE, 0);
    model_time b = time_of(g, &s);
    assert_ratio("DRAM's time", b.term_ns[MODEL_DRAM], a.term_ns[MODEL_DRAM], 64, 0.001);
    assert_int_equal(b.bound_by, MODEL_DRAM);
    assert_ratio("the time", cycles(g, &b) / gpu_get(g, GPU_BOOST_MHZ) * 1e3, b.term_ns[MODEL_DRAM],
                 1, 0.02);
    gpu_free(g);
}

/* Loads queue behind those of their own block. As many threads in four times as many blocks wait a
 * quarter as long, so that 64 warps an SM keep DRAM busy where its time is as long as a load's. */
static void test_queue(void **state) {
    (void)state;
    gpu *g = load_small("h200");
    static const char body[] =
        "mul.wide.u32 %rd3, %r4, 8;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n"
        "ld.global.v2.u32 {%r10, %r11}, [%rd4];\nst.global.v2.u32 [%rd5], {%r10, %r11};\n";
    subject large = {.body = body, .grid = 2 * SMS, .block = 1024}, small = large;
    small.grid = 8 * SMS;
    small.block = 256;
    set(g, GPU_DRAM_QUEUE, 0);
    model_time bare = time_of(g, &large);
    double dram = bare.term_ns[MODEL_DRAM], alone = bare.term_ns[MODEL_LATENCY];
    set(g, GPU_DRAM_GBS, gpu_get(g, GPU_DRAM_GBS) * dram / alone); /* both are as long */
    model_time same = time_of(g, &small);
    set(g, GPU_DRAM_QUEUE, 0.75);
    model_time two = time_of(g, &large), eight = time_of(g, &small);
    assert_ratio("a burst of two blocks", two.term_ns[MODEL_LATENCY] - alone, 0.75 / 2 * alone, 1,
                 0.01);
    assert_ratio("a burst of eight", eight.term_ns[MODEL_LATENCY] - same.term_ns[MODEL_LATENCY],
                 0.75 / 8 * alone, 1, 0.01);
    assert_true(cycles(g, &eight) <
                1.25 * eight.term_ns[MODEL_DRAM] * gpu_get(g, GPU_BOOST_MHZ) * 1e-3);
    gpu_free(g);
}

/* Behind a launch of the same kernel, what fits the L2 is neither read nor written back; of twice
 * as much as fits, 0.797 is. The launch alone takes its overhead, on Ada 1.6 us. */
static void test_warm(void **state) {
    (void)state;
    gpu *g = load_small("rtx4090");
    subject s = {.body = "mul.wide.u32 %rd3, %r4, 16;\nadd.u64 %rd4, %rd1, %rd3;\n"
                         "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4];\n"
                         "add.u64 %rd5, %rd2, %rd3;\n"
                         "st.global.v4.u32 [%rd5], {%r10, %r11, %r12, %r13};\n",
                 .grid = 256,
                 .block = 512};
    set(g, GPU_DRAM_GBS, 10);
    set(g, GPU_DRAM_QUEUE, 0);
    model_time fits = time_of(g, &s);
    double launch = fits.term_ns[MODEL_LAUNCH], bytes = 2.0 * BUFFER_BYTES;
    assert_ratio("cold", fits.ns - launch, bytes * 1.05 / 10, 1, 0.02);
    assert_true(fits.warm_ns - launch < 0.2 * (fits.ns - launch));
    set(g, GPU_L2_SIZE, bytes / 2);
    model_time half = time_of(g, &s);
    assert_ratio("cold, a smaller L2", half.ns, fits.ns, 1, 1e-6);
    assert_ratio("warm", half.warm_ns - launch, 0.797 * bytes * 1.05 / 10, 1, 0.02);
    assert_ratio("a launch", launch, 1600, 1, 1e-9);
    gpu_free(g);
}

/* ---- stores ---- */

/* Each thread loads or stores once; threads are `stride` bytes apart. */
static model_time access_time(const gpu *g, const char *what, unsigned stride) {
    char body[256];
    (void)snprintf(body, sizeof body,
                   "mul.wide.u32 %%rd3, %%r4, %u;\nadd.u64 %%rd4, %%rd1, %%rd3;\n%s\n", stride,
                   what);
    subject s = {.body = body, .grid = 128, .block = 256};
    return time_of(g, &s);
}

/* A stored sector takes the L2 as long as two loaded ones; stored in part, it is loaded as well. A
 * sector of which only a part is ever stored comes from DRAM and goes back there. */
static void test_stores(void **state) {
    (void)state;
    gpu *g = load_small("h100");
    set(g, GPU_L2_GBS, 100); /* the chip's L2, and not an SM's path to it */
    model_time loads = access_time(g, "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4];", 16);
    model_time stores = access_time(g, "st.global.v4.u32 [%rd4], {%r10, %r11, %r12, %r13};", 16);
    model_time parts = access_time(g, "st.global.u32 [%rd4], %r10;", 32);
    double l2 = loads.term_ns[MODEL_L2];
    assert_ratio("the L2 for stores", stores.term_ns[MODEL_L2], l2, 2, 1e-6);
    assert_ratio("for parts of twice the sectors", parts.term_ns[MODEL_L2], l2, 2 * 3, 1e-6);
    assert_ratio("bytes of stores", stores.dram_bytes, loads.dram_bytes, 1, 1e-6);
    double sectors = 128 * 256 * 32;
    assert_ratio("bytes of parts", parts.dram_bytes, sectors, 1 + 28 / 32.0, 1e-6);
    set(g, GPU_L2_WRITE, 4);
    stores = access_time(g, "st.global.v4.u32 [%rd4], {%r10, %r11, %r12, %r13};", 16);
    assert_ratio("at a quarter of the rate", stores.term_ns[MODEL_L2], l2, 4, 1e-6);
    gpu_free(g);
}

/* A block of 32 x 32 threads moves a tile of 512 x 1024 words to its transposed place, by words
 * or by rows through shared memory, where an exclusive or keeps the banks apart. */
#define TILE                                                                                       \
    "and.b32 %r5, %r1, 31;\nshr.u32 %r6, %r1, 5;\nand.b32 %r7, %r2, 15;\nshr.u32 %r8, %r2, 4;\n"   \
    "shl.b32 %r7, %r7, 5;\nshl.b32 %r8, %r8, 5;\nadd.u32 %r10, %r8, %r6;\n"                        \
    "shl.b32 %r10, %r10, 9;\nadd.u32 %r10, %r10, %r7;\nadd.u32 %r10, %r10, %r5;\n"                 \
    "mul.wide.u32 %rd3, %r10, 4;\nadd.u64 %rd4, %rd1, %rd3;\nld.global.u32 %r11, [%rd4];\n"
#define OUT_AT(row, column)                                                                        \
    "add.u32 %r10, %r7, " row ";\nshl.b32 %r10, %r10, 10;\nadd.u32 %r10, %r10, %r8;\n"             \
    "add.u32 %r10, %r10, " column ";\nmul.wide.u32 %rd3, %r10, 4;\nadd.u64 %rd5, %rd2, %rd3;\n"    \
    "st.global.u32 [%rd5], %r11;\n"

/* Of a transpose without and with a tile, published times differ by 2.8 to 6 on chips of today: see
 * docs/model.md. */
static void test_transpose(void **state) {
    (void)state;
    gpu *g = load_gpu("h100");
    double part = SMS / gpu_get(g, GPU_SM_COUNT);
    const gpu_key chips[] = {GPU_SM_COUNT, GPU_L2_GBS, GPU_DRAM_GBS, GPU_DRAM_PEAK};
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++)
        set(g, chips[i], gpu_get(g, chips[i]) * part);
    subject plain = {.body = TILE OUT_AT("%r5", "%r6"), .grid = 512, .block = 1024};
    subject tiled = plain;
    tiled.body =
        TILE "xor.b32 %r12, %r5, %r6;\nshl.b32 %r13, %r6, 5;\nadd.u32 %r13, %r13, %r12;\n"
             "shl.b32 %r13, %r13, 2;\nmov.u32 %r14, s;\nadd.u32 %r13, %r13, %r14;\n"
             "st.shared.u32 [%r13], %r11;\nbar.sync 0;\nshl.b32 %r13, %r5, 5;\n"
             "add.u32 %r13, %r13, %r12;\nshl.b32 %r13, %r13, 2;\n"
             "add.u32 %r13, %r13, %r14;\nld.shared.u32 %r11, [%r13];\n" OUT_AT("%r6", "%r5");
    model_time slow = time_of(g, &plain), fast = time_of(g, &tiled);
    assert_ratio("bytes", slow.dram_bytes, fast.dram_bytes, 1, 0.001);
    double ratio = cycles(g, &slow) / cycles(g, &fast);
    if (ratio < 2.5 || ratio > 6)
        fail_msg("without a tile it takes %.2f times as long", ratio);
    gpu_free(g);
}

/* ---- shared memory and atomics ---- */

static void test_bank_conflicts(void **state) {
    (void)state;
    gpu *g = load_small("v100");
    set(g, GPU_LOCAL_POWER, 100); /* the banks alone */
    static const struct {
        const char *stride;
        double passes;
    } rows[] = {{"4", 1}, {"8", 2}, {"16", 4}, {"128", 32}, {"132", 1}, {"0", 1}};
    double one = 0;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char before[256];
        (void)snprintf(before, sizeof before,
                       "and.b32 %%r5, %%r1, 31;\nmul.lo.u32 %%r5, %%r5, %s;\nrem.u32 %%r5, %%r5, "
                       "4096;\nmov.u32 %%r6, s;\nadd.u32 %%r5, %%r5, %%r6;\n",
                       rows[i].stride);
        double is = more_cycles(g, before,
                                "ld.shared.u32 %r11, [%r5];\nld.shared.u32 %r12, [%r5];\n"
                                "ld.shared.u32 %r13, [%r5];\nld.shared.u32 %r14, [%r5];\n",
                                SMS, WARPS * 32, 4);
        one = i == 0 ? is : one;
        if (strcmp(rows[i].stride, "132") != 0 || is < 2 * one) /* 132 wraps round 4,096 bytes */
            assert_ratio(rows[i].stride, is, one, rows[i].passes, 0.05);
    }
    gpu_free(g);
}

/* Neighbouring words of shared memory are one access where the assembler sees that they may be: of
 * sixteen bytes at a multiple of sixteen, of eight at a multiple of eight, and else each by itself.
 * Each costs what the lanes' words take of the bus. */
static void test_joined(void **state) {
    (void)state;
    static const struct {
        const char *what, *start, *inner;
        double passes;
    } rows[] = {
        {"sixteen bytes", "mad.lo.u32 %r5, %r1, 16, %r5;\n",
         "ld.shared.u32 %r11, [%r5+8];\nld.shared.u32 %r12, [%r5];\n"
         "ld.shared.u32 %r13, [%r5+4];\nld.shared.u32 %r14, [%r5+12];\n",
         4},
        {"a gap", "mad.lo.u32 %r5, %r1, 16, %r5;\n",
         "ld.shared.u32 %r11, [%r5];\nld.shared.u32 %r12, [%r5+12];\n", 4},
        {"eight bytes", "mad.lo.u32 %r5, %r1, 8, %r5;\n",
         "ld.shared.u32 %r11, [%r5];\nld.shared.u32 %r12, [%r5+4];\n", 2},
        {"two of eight", "mad.lo.u32 %r5, %r1, 8, %r5;\n",
         "ld.shared.u32 %r11, [%r5+4];\nld.shared.u32 %r12, [%r5+8];\n", 4},
        {"words", "mad.lo.u32 %r5, %r1, 4, %r5;\n",
         "ld.shared.u32 %r11, [%r5];\nld.shared.u32 %r12, [%r5+4];\n", 2},
        {"stores between", "mad.lo.u32 %r5, %r1, 8, %r5;\n",
         "ld.shared.u32 %r11, [%r5];\nst.shared.u32 [%r5], %r1;\nld.shared.u32 %r12, [%r5+4];\n"
         "st.shared.u32 [%r5], %r1;\n",
         8},
        {"stores", "mad.lo.u32 %r5, %r1, 16, %r5;\n",
         "st.shared.u32 [%r5], %r1;\nst.shared.u32 [%r5+4], %r1;\n"
         "st.shared.u32 [%r5+8], %r1;\nst.shared.u32 [%r5+12], %r1;\n",
         4},
    };
    gpu *g = load_small("a100");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char start[200];
        (void)snprintf(start, sizeof start, "mov.u32 %%r5, s;\nand.b32 %%r1, %%r1, 31;\n%s",
                       rows[i].start);
        double is = more_cycles(g, start, rows[i].inner, SMS, WARPS * 32, 4);
        assert_ratio(rows[i].what, is, rows[i].passes * WARPS, 1, 0.03);
    }
    gpu_free(g);
}

/* 32 lanes at one word of shared memory take 32 turns; requests to one sector of global memory
 * follow one another, to as many sectors as there are they do not. */
static void test_atomics(void **state) {
    (void)state;
    gpu *g = load_small("a100");
    set(g, GPU_LOCAL_POWER, 100); /* the banks alone */
    double apart = more_cycles(g,
                               "and.b32 %r5, %r1, 31;\nshl.b32 %r5, %r5, 2;\nmov.u32 %r6, s;\n"
                               "add.u32 %r5, %r5, %r6;\n",
                               "red.shared.add.u32 [%r5], 1;\n", SMS, WARPS * 32, 4);
    double same =
        more_cycles(g, "mov.u32 %r5, s;\n", "red.shared.add.u32 [%r5], 1;\n", SMS, WARPS * 32, 4);
    assert_ratio("turns", same, apart, 32, 0.05);

    subject s = {.body = "mul.wide.u32 %rd3, %r4, 32;\nadd.u64 %rd4, %rd2, %rd3;\n"
                         "red.global.add.u32 [%rd4], 1;\n",
                 .grid = 256,
                 .block = 256};
    model_time spread = time_of(g, &s);
    double sectors = 256 * 256, mhz = gpu_get(g, GPU_BOOST_MHZ);
    assert_ratio("sectors", spread.term_ns[MODEL_ATOMIC] * mhz * 1e-3,
                 sectors / gpu_get(g, GPU_ATOMICS_CLK), 1, 0.001);
    s.body = "red.global.add.u32 [%rd2], 1;\n"; /* a request a warp, all to one sector */
    model_time met = time_of(g, &s);
    assert_ratio("requests", met.term_ns[MODEL_ATOMIC] * mhz * 1e-3,
                 sectors / 32 * gpu_get(g, GPU_ATOMIC_SAME), 1, 0.001);
    set(g, GPU_ATOMIC_SAME, 50);
    model_time slow = time_of(g, &s);
    assert_ratio("slower", slow.term_ns[MODEL_ATOMIC], met.term_ns[MODEL_ATOMIC], 50, 0.001);
    assert_int_equal(slow.bound_by, MODEL_ATOMIC);
    gpu_free(g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_l1),
        cmocka_unit_test(test_places_of_buffers),
        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_l2),
        cmocka_unit_test(test_l2_within_a_wave),
        cmocka_unit_test(test_one_answer),
        cmocka_unit_test(test_dram),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_warm),
        cmocka_unit_test(test_stores),
        cmocka_unit_test(test_transpose),
        cmocka_unit_test(test_bank_conflicts),
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_atomics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
