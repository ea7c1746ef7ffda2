/* Reads of shared memory in every pattern that the machine treats on its own path, against a plain
 * count here: values, bank passes, races and reads of what nothing has written. */
#include "tests/fitness/vm/shared_rig.h"

#define READERS 64 /* threads of two warps; a third one only fills and perhaps writes */
#define THREADS 96
#define WORDS 1536
#define NOBODY 0xffffffffu
#define TRIALS 600

typedef struct params {
    uint64_t table, out;
    uint32_t hole;   /* word that is not filled */
    uint32_t writer; /* thread that writes `victim` after the reads of its warp */
    uint32_t victim;
} params;

typedef struct bench {
    shared_rig rig;
    params params;
    uint32_t *table, *out; /* words read first by each thread; sums */
} bench;

/* Fill all but the hole; barrier; the readers read at their place of the table, and add up. */
static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry k(.param .u64 table, .param .u64 out, .param .u32 hole, .param .u32 writer,"
    " .param .u32 victim) {\n"
    ".shared .align 16 .b8 tile[6144];\n"
    ".reg .pred %%p<4>; .reg .b32 %%r<16>; .reg .b64 %%d<8>;\n"
    "mov.u32 %%r0, %%tid.x; ld.param.u32 %%r1, [hole]; mov.u32 %%r2, tile; mov.u32 %%r3, %%r0;\n"
    "FILL: shl.b32 %%r4, %%r3, 2; add.u32 %%r4, %%r4, %%r2; setp.ne.u32 %%p0, %%r3, %%r1;\n"
    "@%%p0 st.shared.u32 [%%r4], %%r3;\n"
    "add.u32 %%r3, %%r3, 96; setp.lt.u32 %%p1, %%r3, 1536; @%%p1 bra FILL;\n"
    "bar.sync 0;\n"
    "setp.ge.u32 %%p2, %%r0, 64; @%%p2 bra WRITE;\n"
    "ld.param.u64 %%d0, [table]; mul.wide.u32 %%d1, %%r0, 4; add.u64 %%d0, %%d0, %%d1;\n"
    "ld.global.u32 %%r5, [%%d0]; shl.b32 %%r5, %%r5, 2; add.u32 %%r5, %%r5, %%r2;\n"
    "%s\n"
    "ld.param.u64 %%d2, [out]; add.u64 %%d2, %%d2, %%d1; st.global.u32 [%%d2], %%r6;\n"
    "WRITE: ld.param.u32 %%r10, [writer]; setp.ne.u32 %%p3, %%r0, %%r10; @%%p3 bra END;\n"
    "ld.param.u32 %%r11, [victim]; shl.b32 %%r11, %%r11, 2; add.u32 %%r11, %%r11, %%r2;\n"
    "st.shared.u32 [%%r11], %%r0;\n"
    "END: ret;\n}\n";

static const char *const reads[RIG_WIDTHS] = {
    "ld.shared.u32 %r6, [%r5];",
    "ld.shared.v2.u32 {%r6, %r7}, [%r5]; add.u32 %r6, %r6, %r7;",
    ("ld.shared.v4.u32 {%r6, %r7, %r8, %r9}, [%r5];"
     "add.u32 %r6, %r6, %r7; add.u32 %r8, %r8, %r9; add.u32 %r6, %r6, %r8;"),
};

static int set_up(void **state) {
    bench *b = calloc(1, sizeof *b);
    assert_non_null(b);
    rig_load_widths(&b->rig, text, reads);
    rig_open(&b->rig, READERS, READERS);
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

/* Places for the 32 lanes of a warp: groups of lanes, each contiguous, uniform or strided. */
static void draw_places(bench *b, uint32_t *place, uint32_t words) {
    uint32_t lanes = 1u << draw(b, 6), step = draw(b, 3) * words, base = 0;
    uint32_t room = draw(b, 2) ? 256 : WORDS - 32 * 2 * words;
    for (uint32_t i = 0; i < 32; i++) {
        if (i % lanes == 0)
            base = draw(b, room / words) * words;
        place[i] = base + i % lanes * step;
    }
}

static bool reads_word(const uint32_t *place, uint32_t words, uint32_t word) {
    return word >= *place && word < *place + words;
}

/* Do all lanes read the same place as the lane that is so far apart? */
static bool has_pairs(const uint32_t *place, unsigned apart) {
    bool same = true;
    for (unsigned i = 0; i < 32; i++)
        same &= place[i] == place[i ^ apart];
    return same;
}

/* Warps read 1 word a lane at once; 2 in halves and 4 in quarters, and twice as many lanes if their
 * pairs read the same place. */
static unsigned expected_passes(const uint32_t *place, uint32_t words) {
    bool paired = words > 1 && (has_pairs(place, 1) || has_pairs(place, 2));
    unsigned passes = 0, width = 32 / words * (paired ? 2 : 1);
    for (unsigned from = 0; from < 32; from += width) {
        unsigned count[32] = {0}, most = 0;
        for (uint32_t word = 0; word < WORDS; word++)
            for (unsigned i = from; i < from + width; i++)
                if (reads_word(&place[i], words, word)) {
                    most = ++count[word % 32] > most ? count[word % 32] : most;
                    break;
                }
        passes += most;
    }
    return passes;
}

/* Is `word` read by a thread other than `but`? */
static bool is_read(const bench *b, uint32_t words, uint32_t word, uint32_t but) {
    for (uint32_t i = 0; i < READERS; i++)
        if (i != but && reads_word(&b->table[i], words, word))
            return true;
    return false;
}

static void check_sums(const bench *b, uint32_t words) {
    for (uint32_t i = 0; i < READERS; i++)
        assert_int_equal(b->out[i], words * b->table[i] + words * (words - 1) / 2);
}

static void check_trial(bench *b, unsigned k, uint64_t seed) {
    uint32_t words = 1u << k, what = draw(b, 3), word = draw(b, 2) ? draw(b, 256) : draw(b, WORDS);
    draw_places(b, b->table, words);
    draw_places(b, b->table + 32, words);
    uint32_t writer = draw(b, THREADS), reader = draw(b, READERS);
    if (draw(b, 2)) /* a word that somebody reads, perhaps the writer: more often than by chance */
        word = b->table[reader];
    if (draw(b, 2))
        writer = reader;
    b->params.hole = what == 1 ? word : NOBODY;
    b->params.writer = what == 2 ? writer : NOBODY;
    b->params.victim = word;
    vm_trap_kind expected = VM_TRAP_NONE;
    if (what == 1 && is_read(b, words, word, NOBODY))
        expected = VM_TRAP_UNINITIALISED;
    if (what == 2 && is_read(b, words, word, b->params.writer))
        expected = VM_TRAP_RACE_SHARED;
    vm_result r = rig_run(&b->rig, b->rig.modules[k], THREADS, &b->params, seed);
    if ((r.ok ? VM_TRAP_NONE : r.trap.kind) != expected)
        fail_msg("%u words a lane: expected %s of word %u, got %s", words, vm_trap_name(expected),
                 word, r.ok ? "none" : r.trap.message);
    if (!r.ok)
        return;
    check_sums(b, words);
    assert_int_equal(r.counters.shared_passes, r.counters.shared_requests - 2 +
                                                   expected_passes(b->table, words) +
                                                   expected_passes(b->table + 32, words));
}

static void test_reads(void **state) {
    bench *b = *state;
    for (unsigned isa = 0; isa < VM_ISA_COUNT; isa++) {
        if (!vm_isa_supported(isa))
            continue;
        b->rig.random = 5;
        for (unsigned k = 0; k < 3; k++) {
            vm_module_set_isa(b->rig.modules[k], isa);
            for (unsigned trial = 0; trial < TRIALS; trial++)
                check_trial(b, k, trial % 3);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reads)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
