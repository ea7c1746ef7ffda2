/* Stores to shared memory in every pattern that the machine treats on its own path, against a plain
 * count here: what stands there afterwards, and races between lanes, warps and a thread aside. */
#include "tests/fitness/vm/shared_rig.h"

#define WRITERS 64 /* threads of two warps; a third one reads or writes the victim */
#define THREADS 96
#define WORDS 1536
#define NOBODY 0xffffffffu
#define TRIALS 400
#define BEFORE 0x5a000000u /* word w is filled with BEFORE + w */

typedef struct params {
    uint64_t table, out;
    uint32_t own;    /* 1: each lane stores its own value, 0: the place says which */
    uint32_t reads;  /* 1: the victim is read, 0: written */
    uint32_t victim; /* word that thread 70 touches, or NOBODY */
} params;

typedef struct bench {
    shared_rig rig;
    params params;
    uint32_t *table, *out; /* words written first by each thread; all words at the end */
} bench;

/* Fill; barrier; the writers store at their place of the table, thread 70 touches the victim;
 * barrier; all words are copied out. Word k of a lane gets its place + k, or its thread + k. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 table, .param .u64 out, .param .u32 own, .param .u32 reads,"
    " .param .u32 victim) {\n"
    ".shared .align 16 .b8 tile[6144];\n"
    ".reg .pred %%p<8>; .reg .b32 %%r<20>; .reg .b64 %%d<8>;\n"
    "mov.u32 %%r0, %%tid.x; mov.u32 %%r2, tile; mov.u32 %%r3, %%r0;\n"
    "FILL: shl.b32 %%r4, %%r3, 2; add.u32 %%r4, %%r4, %%r2; add.u32 %%r5, %%r3, 0x5a000000;\n"
    "st.shared.u32 [%%r4], %%r5;\n"
    "add.u32 %%r3, %%r3, 96; setp.lt.u32 %%p1, %%r3, 1536; @%%p1 bra FILL;\n"
    "bar.sync 0;\n"
    "setp.ge.u32 %%p2, %%r0, 64; @%%p2 bra ASIDE;\n"
    "ld.param.u64 %%d0, [table]; mul.wide.u32 %%d1, %%r0, 4; add.u64 %%d0, %%d0, %%d1;\n"
    "ld.global.u32 %%r5, [%%d0]; ld.param.u32 %%r1, [own]; setp.ne.u32 %%p3, %%r1, 0;\n"
    "selp.b32 %%r6, %%r0, %%r5, %%p3; add.u32 %%r7, %%r6, 1; add.u32 %%r8, %%r6, 2;\n"
    "add.u32 %%r9, %%r6, 3; shl.b32 %%r5, %%r5, 2; add.u32 %%r5, %%r5, %%r2;\n"
    "%s\n"
    "bra.uni MEET;\n"
    "ASIDE: ld.param.u32 %%r10, [victim]; setp.ne.u32 %%p4, %%r0, 70; @%%p4 bra MEET;\n"
    "setp.eq.u32 %%p5, %%r10, 0xffffffff; @%%p5 bra MEET;\n"
    "shl.b32 %%r11, %%r10, 2; add.u32 %%r11, %%r11, %%r2;\n"
    "ld.param.u32 %%r12, [reads]; setp.ne.u32 %%p6, %%r12, 0;\n"
    "@%%p6 ld.shared.u32 %%r13, [%%r11]; @!%%p6 st.shared.u32 [%%r11], %%r0;\n"
    "MEET: bar.sync 0;\n"
    "mov.u32 %%r3, %%r0; ld.param.u64 %%d2, [out];\n"
    "COPY: shl.b32 %%r4, %%r3, 2; add.u32 %%r4, %%r4, %%r2; ld.shared.u32 %%r14, [%%r4];\n"
    "mul.wide.u32 %%d3, %%r3, 4; add.u64 %%d3, %%d3, %%d2; st.global.u32 [%%d3], %%r14;\n"
    "add.u32 %%r3, %%r3, 96; setp.lt.u32 %%p7, %%r3, 1536; @%%p7 bra COPY;\n"
    "ret;\n}\n";

static const char *const stores[RIG_WIDTHS] = {
    "st.shared.u32 [%r5], %r6;",
    "st.shared.v2.u32 [%r5], {%r6, %r7};",
    "st.shared.v4.u32 [%r5], {%r6, %r7, %r8, %r9};",
};

static int set_up(void **state) {
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    rig_load_widths(&b->rig, text, stores);
    rig_open(&b->rig, WRITERS, WORDS);
    b->params.table = b->rig.table_at;
    b->params.out = b->rig.out_at;
    b->table = b->rig.table;
    b->out = b->rig.out;
    *state = b;
    return 0;
}

static int tear_down(void **state) {
    bench *b = *state;
    rig_close(&b->rig);
    free(b);
    return 0;
}

static uint32_t draw(bench *b, uint32_t below) {
    return rig_draw(&b->rig, below);
}

/* Places of a warp within [from, from + room): groups of lanes, contiguous, strided or the same;
 * the groups follow each other, ascending or descending, or lie anywhere. */
static void draw_places(bench *b, uint32_t *place, uint32_t words, uint32_t from, uint32_t room) {
    uint32_t lanes = 1u << draw(b, 6), step = draw(b, 8) ? words : draw(b, 3) * words;
    uint32_t how = draw(b, 4), gap = draw(b, 2) * words, each = (lanes + 1) * words + gap;
    uint32_t groups = 32 / lanes;
    for (uint32_t g = 0; g < groups; g++) {
        uint32_t base;
        if (how == 0)
            base = draw(b, (room - 64 * words) / words) * words;
        else if (how == 1)
            base = (groups - 1 - g) * each;
        else
            base = g * each;
        for (uint32_t i = 0; i < lanes; i++)
            place[g * lanes + i] = from + (base + i * step) % (room - words);
    }
    for (uint32_t i = 0; i < 32; i++)
        place[i] -= place[i] % words;
}

/* Works out what stands in each word; false: there is a race. */
static bool expect(const bench *b, uint32_t words, uint32_t *content) {
    uint32_t writer[WORDS];
    for (uint32_t w = 0; w < WORDS; w++) {
        content[w] = BEFORE + w;
        writer[w] = NOBODY;
    }
    bool clean = true;
    for (uint32_t t = 0; t < WRITERS; t++)
        for (uint32_t k = 0; k < words; k++) {
            uint32_t w = b->table[t] + k, value = (b->params.own ? t : b->table[t]) + k;
            if (writer[w] != NOBODY)
                clean &= writer[w] / 32 == t / 32 && content[w] == value;
            writer[w] = t;
            content[w] = value;
        }
    uint32_t v = b->params.victim;
    if (v != NOBODY) {
        clean &= writer[v] == NOBODY;
        if (!b->params.reads)
            content[v] = 70;
    }
    return clean;
}

/* Whether the trial was clean. */
static bool check_trial(bench *b, unsigned k, uint64_t seed) {
    uint32_t words = 1u << k, content[WORDS];
    bool apart = draw(b, 4) != 0; /* the warps' words */
    draw_places(b, b->table, words, 0, apart ? WORDS / 2 : WORDS);
    draw_places(b, b->table + 32, words, apart ? WORDS / 2 : 0, apart ? WORDS / 2 : WORDS);
    b->params.own = draw(b, 2);
    b->params.reads = draw(b, 2);
    if (draw(b, 2))
        b->params.victim = NOBODY;
    else if (draw(b, 2))
        b->params.victim = draw(b, WORDS);
    else
        b->params.victim = b->table[draw(b, WRITERS)] + draw(b, words);
    bool clean = expect(b, words, content);
    vm_result r = rig_run(&b->rig, b->rig.modules[k], THREADS, &b->params, seed);
    if (clean && !r.ok)
        fail_msg("%u words a lane: expected no race, got %s", words, r.trap.message);
    if (!clean && (r.ok || r.trap.kind != VM_TRAP_RACE_SHARED))
        fail_msg("%u words a lane: expected a race, got %s", words, r.ok ? "none" : r.trap.message);
    if (clean)
        assert_memory_equal(b->out, content, sizeof content);
    return clean;
}

static void test_stores(void **state) {
    bench *b = *state;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        b->rig.random = 11;
        for (unsigned k = 0; k < 3; k++) {
            unsigned clean = 0;
            vm_module_set_isa(b->rig.modules[k], isa);
            for (unsigned trial = 0; trial < TRIALS; trial++)
                clean += check_trial(b, k, trial % 3);
            assert_in_range(clean, TRIALS / 8, TRIALS - TRIALS / 8); /* both ends are tried */
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_stores, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
