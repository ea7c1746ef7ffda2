/* Blocks that repeat an earlier one at moved addresses, and batches that repeat an earlier one's
 * events: the model's figures are those of following every block and every event, and it sees where
 * blocks part. */
#include "fitness/model/repeat.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    ".version 7.8\n.target sm_70\n.address_size 64\n"                                              \
    ".visible .entry k(.param .u64 in, .param .u64 out)\n"                                         \
    "{\n.reg .pred %p<5>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<12>;\n"                                \
    ".shared .align 4 .b8 s[1024];\n"                                                              \
    "ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\n"                                        \
    "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\n"                        \
    "mad.lo.s32 %r4, %r2, %r3, %r1;\nmul.wide.u32 %rd3, %r4, 4;\n"                                 \
    "add.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
#define LOAD "ld.global.u32 %r5, [%rd4];\nadd.u32 %r5, %r5, 1;\n"
#define STORE "st.global.u32 [%rd5], %r5;\n"
/* Through shared memory, to the neighbour. */
#define EXCHANGE                                                                                   \
    "shl.b32 %r6, %r1, 2;\nmov.u32 %r7, s;\nadd.u32 %r8, %r7, %r6;\nst.shared.u32 [%r8], %r5;\n"   \
    "bar.sync 0;\nxor.b32 %r6, %r6, 4;\nadd.u32 %r8, %r7, %r6;\nld.shared.u32 %r5, [%r8];\n"
#define TAIL "ret;\n}\n"

/* %p1 in blocks that do something else. */
#define ROUNDS                                                                                     \
    "mov.u32 %r10, 0;\nL:\nadd.u32 %r5, %r5, 3;\nmul.lo.u32 %r5, %r5, 5;\nadd.u32 %r10, %r10, "    \
    "1;\n"                                                                                         \
    "setp.lt.u32 %p2, %r10, 9;\n@%p2 bra L;\n"

typedef struct row {
    const char *name, *ptx;
    uint32_t grid, block, resident;
    uint64_t seed;
    uint64_t least, most; /* blocks that repeat another */
} row;

static const row ROWS[] = {
    {"copy", HEAD LOAD STORE TAIL, 64, 128, 0, 0, 63, 63},
    /* 64 bytes a block: whole lines only from every second one to the other */
    {"half lines", HEAD LOAD STORE TAIL, 64, 16, 0, 0, 62, 62},
    {"through a barrier, one after the other", HEAD LOAD EXCHANGE STORE TAIL, 64, 256, 1, 0, 63,
     63},
    {"through a barrier, side by side", HEAD LOAD EXCHANGE STORE TAIL, 64, 256, 16, 0, 63, 63},
    {"one block parts at its end",
     HEAD LOAD EXCHANGE "setp.ne.u32 %p1, %r2, 40;\n@%p1 bra M;\n" ROUNDS "M:\n" STORE TAIL, 64,
     256, 4, 0, 62, 62},
    {"every second block works more",
     HEAD LOAD EXCHANGE "and.b32 %r9, %r2, 1;\nsetp.eq.u32 %p1, %r9, 0;\n@%p1 bra M;\n" ROUNDS
                        "M:\n" STORE TAIL,
     64, 256, 8, 0, 62, 62},
    /* As many rounds as the block's number: none repeats another. */
    {"all differ",
     HEAD LOAD "mov.u32 %r10, 0;\nL:\nadd.u32 %r10, %r10, 1;\nsetp.lt.u32 %p2, %r10, %r2;\n"
               "@%p2 bra L;\n" STORE TAIL,
     64, 128, 4, 0, 1, 1},
    {"a shared row beside an own one",
     HEAD LOAD "mul.wide.u32 %rd6, %r1, 4;\nadd.s64 %rd7, %rd1, %rd6;\n"
               "ld.global.u32 %r11, [%rd7];\nadd.u32 %r5, %r5, %r11;\n" STORE TAIL,
     64, 128, 4, 0, 0, 0},
    /* Batches end where they are full: in the middle of a round, and of a block of code. */
    {"long loops",
     HEAD LOAD LOAD
     "mov.u32 %r10, 0;\nL:\nld.global.u32 %r11, [%rd4];\n"
     "mul.wide.u32 %rd6, %r10, 128;\nadd.s64 %rd7, %rd1, %rd6;\n"
     "ld.global.u32 %r12, [%rd7];\nadd.u32 %r5, %r5, %r11;\nadd.u32 %r5, %r5, %r12;\n"
     "ld.global.u32 %r12, [%rd7+64];\nadd.u32 %r5, %r5, %r12;\nadd.u32 %r10, %r10, 1;\n"
     "setp.lt.u32 %p2, %r10, 150;\n@%p2 bra L;\n" STORE TAIL,
     16, 128, 4, 0, 0, 15},
    {"loops with barriers and lanes that leave",
     HEAD "mov.u32 %r10, 0;\nL:\n" LOAD EXCHANGE "bar.sync 0;\nadd.u32 %r10, %r10, 1;\n"
          "setp.lt.u32 %p2, %r10, 9;\n@%p2 bra L;\nand.b32 %r9, %r1, 1;\n"
          "setp.eq.u32 %p1, %r9, 0;\n@%p1 ret;\n" STORE TAIL,
     16, 256, 4, 0, 0, 15},
    {"guards that no, some and all lanes step over",
     HEAD "mov.u32 %r10, 0;\nand.b32 %r9, %r1, 3;\nL:\n" LOAD
          "setp.gt.u32 %p1, %r1, 63;\n@%p1 bra A;\nld.global.u32 %r11, [%rd4+256];\n"
          "add.u32 %r5, %r5, %r11;\nA:\nsetp.eq.u32 %p2, %r9, 0;\n@%p2 bra B;\nbra.uni C;\nB:\n"
          "st.global.u32 [%rd5], %r5;\nld.global.u32 %r12, [%rd4+512];\nC:\n"
          "setp.ne.u32 %p3, %r9, 1;\n@%p3 bra D;\nst.global.u32 [%rd5], %r12;\nD:\n"
          "add.u32 %r10, %r10, 1;\nsetp.lt.u32 %p4, %r10, 40;\n@%p4 bra L;\n" STORE TAIL,
     16, 128, 4, 0, 0, 15},
    {"atomics", HEAD LOAD "red.global.add.u32 [%rd5], %r5;\n" TAIL, 64, 128, 4, 0, 63, 63},
    {"atomics that meet", HEAD LOAD "red.global.add.u32 [%rd2], %r5;\n" TAIL, 64, 128, 4, 0, 63,
     63},
    {"in any order", HEAD LOAD EXCHANGE STORE TAIL, 64, 256, 16, 7, 0, 63},
    /* The last ones' second loads are in no buffer's first half, but in the buffer. */
    {"past a buffer's line",
     HEAD LOAD "ld.global.u32 %r11, [%rd4+128];\nadd.u32 %r5, %r5, %r11;\n" STORE TAIL, 64, 128, 0,
     0, 63, 63},
};

#define BYTES (1u << 18)

typedef struct outcome {
    model_time time;
    double *stalls;
    uint64_t *stored;
    size_t instructions, stored_count;
} outcome;

/* What of the row is not recalled. A model that counts accesses by instruction takes each event as
 * it comes. */
typedef enum way { RECALLS, FOLLOWS_BLOCKS, FOLLOWS_EVENTS } way;

static outcome run(const row *r, way w) {
    ev_error err = {.text = ""};
    gpu *g = NULL;
    vm_module *module = NULL;
    vm_memory *memory = NULL;
    model *m = NULL;
    uint64_t params[2];
    model_buffer buffers[2];
    if (gpu_load("a100", &g, &err) != EV_OK ||
        vm_module_load(r->ptx, strlen(r->ptx), r->name, &module, &err) != EV_OK ||
        vm_memory_new(1u << 24, &memory, &err) != EV_OK)
        fail_msg("%s: %s", r->name, err.text);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(vm_memory_alloc(memory, BYTES, i == 0 ? VM_BUFFER_IN : VM_BUFFER_INOUT,
                                         "b", &params[i], &err),
                         EV_OK);
        buffers[i] = (model_buffer){params[i], BYTES};
    }
    vm_launch l = {.module = module,
                   .entry = vm_module_find(module, NULL),
                   .grid = {r->grid, 1, 1},
                   .block = {r->block, 1, 1},
                   .params = params,
                   .resident_blocks = r->resident,
                   .schedule_seed = r->seed};
    assert_int_equal(model_new(g, &l, &m, &err), EV_OK);
    model_set_buffers(m, buffers, 2);
    model_site *sites = calloc(vm_module_insn_count(module), sizeof *sites);
    if (w >= FOLLOWS_BLOCKS)
        model_follow_all(m);
    if (w >= FOLLOWS_EVENTS)
        model_watch_sites(m, sites);
    l.observer = model_observer(m);
    vm_result result;
    if (vm_run(memory, &l, &result, &err) != EV_OK || !result.ok)
        fail_msg("%s: %s", r->name, err.text[0] ? err.text : result.trap.message);
    outcome o = {.instructions = vm_module_insn_count(module)};
    assert_int_equal(model_finish(m, &result, &o.time, &err), EV_OK);
    o.stalls = malloc(o.instructions * sizeof *o.stalls);
    memcpy(o.stalls, model_stalls_by_pc(m), o.instructions * sizeof *o.stalls);
    const uint64_t *stored = model_stored(m, &o.stored_count);
    o.stored = malloc((o.stored_count + 1) * sizeof *o.stored);
    memcpy(o.stored, stored, o.stored_count * sizeof *o.stored);
    model_free(m);
    free(sites);
    vm_memory_free(memory);
    vm_module_free(module);
    gpu_free(g);
    return o;
}

static void outcome_free(outcome *o) {
    free(o->stalls);
    free(o->stored);
}

static void assert_near(const char *name, const char *what, double a, double b) {
    if (fabs(a - b) > 1e-9 * fmax(fabs(a), fabs(b)))
        fail_msg("%s: %s is %.17g where blocks repeat, %.17g where all are followed", name, what, a,
                 b);
}

static void compare(const row *r, const outcome *a, const outcome *b) {
    assert_near(r->name, "the time", a->time.ns, b->time.ns);
    assert_near(r->name, "DRAM's share", a->time.dram_bytes, b->time.dram_bytes);
    assert_near(r->name, "the L1's hit rate", a->time.l1_hit_rate, b->time.l1_hit_rate);
    for (int i = 0; i < MODEL_TERM_COUNT; i++) {
        assert_near(r->name, model_term_name((model_term)i), a->time.term_ns[i],
                    b->time.term_ns[i]);
        assert_near(r->name, "a stall", a->time.stall_share[i], b->time.stall_share[i]);
    }
    for (size_t i = 0; i < a->instructions; i++)
        assert_near(r->name, "an instruction's stall", a->stalls[i], b->stalls[i]);
    bool updates = strstr(r->ptx, "red.global") != NULL;
    assert_int_equal(a->time.term_ns[MODEL_ATOMIC] > 0, updates);
    assert_int_equal(a->stored_count, b->stored_count);
    assert_memory_equal(a->stored, b->stored, a->stored_count * sizeof *a->stored);
}

static void test_same_figures(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        outcome a = run(&ROWS[i], RECALLS), b = run(&ROWS[i], FOLLOWS_BLOCKS);
        compare(&ROWS[i], &a, &b);
        assert_int_equal(b.time.repeated_blocks, 0);
        if (a.time.repeated_blocks < ROWS[i].least || a.time.repeated_blocks > ROWS[i].most)
            fail_msg("%s: %llu blocks repeat another", ROWS[i].name,
                     (unsigned long long)a.time.repeated_blocks);
        outcome_free(&a);
        outcome_free(&b);
    }
}

/* To the bit: cycles are summed as whole numbers. */
static void test_same_events(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        outcome a = run(&ROWS[i], FOLLOWS_BLOCKS), b = run(&ROWS[i], FOLLOWS_EVENTS);
        compare(&ROWS[i], &a, &b);
        if (a.time.ns != b.time.ns)
            fail_msg("%s: %.17g ns, and %.17g event by event", ROWS[i].name, a.time.ns, b.time.ns);
        assert_memory_equal(a.time.term_ns, b.time.term_ns, sizeof a.time.term_ns);
        assert_memory_equal(a.time.stall_share, b.time.stall_share, sizeof a.time.stall_share);
        assert_memory_equal(a.stalls, b.stalls, a.instructions * sizeof *a.stalls);
        outcome_free(&a);
        outcome_free(&b);
    }
}

/* ---- logs ---- */

#define BASE 0x1000000u /* sectors */

static vm_batch batch_of(uint32_t warp, const vm_event *events, size_t count,
                         const uint64_t *sectors) {
    return (vm_batch){.warp = warp, .events = events, .count = count, .sectors = sectors};
}

static void test_logs(void **state) {
    (void)state;
    model_buffers buffers = {.list = {{BASE * 32ull, 4096}, {(BASE + 1000) * 32ull, 4096}},
                             .count = 2};
    const vm_event events[] = {
        {.pc = 0, .count = 3, .active = 7, .sectors = 2, .lines = 1, .passes = 1},
        {.pc = 3, .count = 2, .active = 7, .sectors = 1, .lines = 1, .first_sector = 2}};
    const uint64_t first[] = {BASE, BASE + 1, BASE + 1004};
    model_log *log = model_log_new();
    assert_non_null(log);
    vm_batch b = batch_of(0, events, 2, first);
    model_log_add(log, &buffers, &b);
    model_log_store(log, &buffers, BASE + 1004);
    model_log_end(log);

    const struct {
        uint32_t warp;
        uint64_t sectors[3];
        bool fits, ends;
    } tries[] = {
        {0, {BASE, BASE + 1, BASE + 1004}, true, true},
        {0, {BASE + 8, BASE + 9, BASE + 1000}, true, true}, /* each buffer its own shift */
        {1, {BASE, BASE + 1, BASE + 1004}, false, false},
        {0, {BASE + 2, BASE + 3, BASE + 1004}, false, false},    /* half a line */
        {0, {BASE + 4, BASE + 6, BASE + 1004}, false, false},    /* not the same pattern */
        {0, {BASE + 128, BASE + 129, BASE + 1004}, true, false}, /* past the buffer */
    };
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        model_repeat at = {.batch = 0};
        vm_batch now = batch_of(tries[i].warp, events, 2, tries[i].sectors);
        assert_int_equal(model_log_fits(log, &at, &now), tries[i].fits);
        assert_int_equal(model_log_ends(log, &at, &buffers), tries[i].ends);
        if (!tries[i].fits)
            continue;
        model_copy copy = {.room = 0};
        vm_batch read;
        assert_true(model_log_read(log, &at, 0, 5, &copy, &read));
        assert_int_equal(read.block, 5);
        assert_memory_equal(read.events, events, sizeof events);
        assert_memory_equal(read.sectors, tries[i].sectors, sizeof tries[i].sectors);
        assert_int_equal(model_log_stored(log, &at, 0), tries[i].sectors[2]);
        assert_false(model_log_fits(log, &at, &now)); /* it ends here */
        free(copy.sectors);
    }
    model_log_free(log);
}

/* What is too long, or in two buffers at once, is no log; what stands there can be read. */
static void test_broken_logs(void **state) {
    (void)state;
    model_buffers buffers = {.list = {{BASE * 32ull, 4096}}, .count = 1};
    const vm_event across = {.count = 1, .sectors = 2};
    const vm_event plain = {.count = 1};
    const uint64_t sectors[] = {BASE, BASE - 100};
    model_log *log = model_log_new();
    vm_batch b = batch_of(0, &plain, 1, sectors), two = batch_of(0, &across, 1, sectors);
    model_log_add(log, &buffers, &b);
    model_log_add(log, &buffers, &two);
    model_log_end(log);
    model_repeat at = {.batch = 0};
    assert_true(model_log_fits(log, &at, &b));
    assert_false(model_log_ends(log, &at, &buffers));
    model_log_free(log);

    log = model_log_new();
    for (unsigned i = 0; i < 70000; i++)
        model_log_add(log, &buffers, &b);
    model_log_end(log);
    at = (model_repeat){.batch = 0};
    unsigned fits = 0;
    while (model_log_fits(log, &at, &b))
        fits++;
    assert_int_equal(fits, 65536);
    assert_false(model_log_ends(log, &at, &buffers));
    model_log_free(log);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_figures),
        cmocka_unit_test(test_same_events),
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_broken_logs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
