/* Structural edits, before and after: each row is a kernel of kernels.cu with its launch and edits.
 * The start and the edited kernel run in the virtual machine with all checks at ragged sizes, and
 * must write the same bits. Rows with a reason must be refused with it. */
#include "base/file.h"
#include "base/json.h"
#include "fitness/device/device.h"
#include "ir/ir.h"
#include "ir/structure_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

typedef struct shape {
    int m, n;
} shape;

static const shape shapes[] = {{3, 5}, {17, 7}, {1, 1}, {8, 8}, {9, 33}, {13, 40}};
#define SHAPES (sizeof shapes / sizeof shapes[0])

/* A kernel and its launch. Expressions see m and n, and `blocks`, which is m and no argument. */
typedef struct subject {
    const char *entry;
    const char *grid[3];
    uint32_t block[3];
} subject;

static const subject subjects[] = {
    {"product", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"inside", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"rows", {"m", "1", "1"}, {32, 1, 1}},
    {"untold", {"blocks", "1", "1"}, {32, 1, 1}},
    {"branches", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"reduced", {"m", "1", "1"}, {32, 1, 1}},
    {"own_steps", {"m", "1", "1"}, {32, 1, 1}},
    {"roomy", {"m", "1", "1"}, {32, 1, 1}},
    {"phases", {"1", "m", "1"}, {32, 1, 1}},
    {"local_array", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"counted", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"exchanged", {"m", "1", "1"}, {32, 1, 1}},
    {"sums", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"gathered", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"keeps", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"waves", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"compressed", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"picked", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"scaled", {"ceil_div(m, 8)", "1", "1"}, {8, 1, 1}},
    {"groups", {"ceil_div(n, 8)", "1", "1"}, {8, 1, 1}},
    {"strides", {"2", "1", "1"}, {8, 1, 1}},
    {"masked", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"lower", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"window", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"home_by_memory", {"ceil_div(m, 32)", "1", "1"}, {32, 1, 1}},
    {"home_together", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"dilated", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"stridden", {"ceil_div(m, 32)", "1", "1"}, {32, 1, 1}},
    {"backwards", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"bordered", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"channels", {"ceil_div(n, 8)", "1", "1"}, {8, 1, 1}},
    {"read_only", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"writes_back", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"some_bits", {"ceil_div(n, 32)", "m", "1"}, {32, 1, 1}},
    {"wide", {"ceil_div(n, 32)", "ceil_div(m, 32)", "1"}, {32, 32, 1}},
    {"columns", {"ceil_div(n, 32)", "1", "1"}, {32, 1, 1}},
    {"half_barrier", {"m", "1", "1"}, {32, 1, 1}},
    {"tests_memory", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"turned", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"flat", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"pairs", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"wanders", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"overruns", {"1", "m", "1"}, {8, 8, 1}},
    {"renewed", {"ceil_div(n, 8)", "ceil_div(m, 4)", "1"}, {8, 4, 1}},
    {"swapped", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"copied", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"middle", {"ceil_div(n, 8)", "1", "1"}, {8, 1, 1}},
    {"half", {"ceil_div(n, 8)", "1", "1"}, {8, 1, 1}},
    {"shrinking", {"ceil_div(n, 8)", "1", "1"}, {8, 1, 1}},
    {"chosen", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"taps", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"planes", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"halves", {"ceil_div(m * ((n + 1) / 2), 32)", "1", "1"}, {32, 1, 1}},
    {"sixes", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"rounded", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"floors", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"exact", {"m", "1", "1"}, {1, 1, 1}},
    {"unnamed", {"blocks", "1", "1"}, {32, 1, 1}},
    {"volume", {"ceil_div(n, 8)", "ceil_div(m, 4)", "2"}, {8, 4, 2}},
    {"diagonal", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"otherwise", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"blocked", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"nested_tests", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"writes_under", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"divides_under", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"calls_under", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"streamed", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"framed", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"lined", {"n", "ceil_div(m, 4)", "1"}, {1, 4, 1}},
    {"long_index", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"assumed", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spins", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"beside", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"awaited", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"doubted", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"passed_by", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"stored_between", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"placed", {"ceil_div(n, 8)", "ceil_div(m, 8)", "1"}, {8, 8, 1}},
    {"chained", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"tallied", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"tallied_most", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"tallied_least", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_far", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_rows", {"ceil_div(m, 64)", "1", "1"}, {8, 4, 2}},
    {"spread_most", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_then", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_beside", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_before", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_shared", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_told", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_reads", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_awaits", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_fenced", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"spread_kinds", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"numbered", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"fenced", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"read_back", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"tallied_rows", {"ceil_div(m, 64)", "1", "1"}, {8, 4, 2}},
    {"tallied_blocks", {"m + 2", "1", "1"}, {64, 1, 1}},
    {"asked", {"ceil_div(m * n, 64)", "1", "1"}, {64, 1, 1}},
    {"run_twice_before", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_index", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_place", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_far", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"released", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"by_lane", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"by_mask", {"ceil_div(m * n, 32)", "1", "1"}, {32, 1, 1}},
    {"run_with", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_before", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_both", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_some", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"range_unsigned", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"range_signed", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_several", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_twice", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_down", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_rows", {"2", "1", "1"}, {4, 1, 1}},
    {"run_mixed", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_until", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_round", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_own", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_within", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"run_once", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nearest", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"filtered", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"rescaled", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"triangle", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"one_sum", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"before_last", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"differences", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"some_stored", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"accumulated", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"waited", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"drained", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"overlapped", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"overlapped_late", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"moved_on", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"stored_over", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"overlapped_by", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"kept", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"turned_rows", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"chosen_store", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"local_rows", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_twice", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_several", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_beside", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_some", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_squares", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_runs", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_uses", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_deep", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_turns", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
    {"nest_writes", {"ceil_div(m, 4)", "1", "1"}, {4, 1, 1}},
};

#define COARSEN(anchor, option, form)                                                              \
    "{\"kind\":\"coarsen\",\"anchor\":\"" anchor "\",\"option\":" #option ",\"form\":\"" form "\"" \
    "}"
#define THREADS(anchor, option, form)                                                              \
    "{\"kind\":\"coarsen-threads\",\"anchor\":\"" anchor "\",\"option\":" #option                  \
    ",\"form\":\"" form "\"}"

#define SPLIT(loop, option)                                                                        \
    "{\"kind\":\"split-lanes\",\"anchor\":\"loop " loop "\",\"option\":" #option "}"

#define TEAM(option, form)                                                                         \
    "{\"kind\":\"split-threads\",\"option\":" #option ",\"form\":\"" form "\"}"

#define TEAM_IN(loop, option)                                                                      \
    "{\"kind\":\"split-threads\",\"anchor\":\"loop " loop "\",\"option\":" #option                 \
    ",\"form\":\"neighbours\"}"

#define NEST_IN(loop, option)                                                                      \
    "{\"kind\":\"split-threads\",\"anchor\":\"loop " loop "\",\"option\":" #option                 \
    ",\"form\":\"nested\"}"

#define TURNS(loop, option)                                                                        \
    "{\"kind\":\"unroll-turns\",\"anchor\":\"loop " loop "\",\"option\":" #option "}"

#define JAM(loop, option)                                                                          \
    "{\"kind\":\"jam-turns\",\"anchor\":\"loop " loop "\",\"option\":" #option "}"

#define PIPE(loop, option)                                                                         \
    "{\"kind\":\"pipeline-loads\",\"anchor\":\"loop " loop "\",\"option\":" #option "}"

#define PIPE_GUARDED(loop, option)                                                                 \
    "{\"kind\":\"pipeline-loads\",\"anchor\":\"loop " loop "\",\"option\":" #option                \
    ",\"form\":\"guarded\"}"

#define THREAD_TILE(option) "{\"kind\":\"relabel-threads\",\"option\":" #option "}"
#define BLOCK_ROWS(option) "{\"kind\":\"relabel-blocks\",\"option\":" #option "}"

#define ROWS(anchor, option)                                                                       \
    "{\"kind\":\"delinearize\",\"anchor\":\"" anchor "\",\"option\":" #option "}"
#define RAISE(loop) "{\"kind\":\"raise-loop\",\"anchor\":\"loop " loop "\",\"option\":1}"
#define RAISE_TWICE(loop) "{\"kind\":\"raise-loop\",\"anchor\":\"loop " loop "\",\"option\":2}"
#define RESIZE(anchor, option)                                                                     \
    "{\"kind\":\"resize-block\",\"anchor\":\"" anchor "\",\"option\":" #option "}"
#define BALANCE(anchor, option)                                                                    \
    "{\"kind\":\"resize-block\",\"anchor\":\"" anchor "\",\"option\":" #option                     \
    ",\"form\":\"balanced\"}"
#define SINK(loop) "{\"kind\":\"sink-loop\",\"anchor\":\"loop " loop "\"}"
#define STAGE(anchor, option)                                                                      \
    "{\"kind\":\"stage\",\"anchor\":\"" anchor "\",\"option\":" #option "}"
#define STAGE_PADDED(anchor, option)                                                               \
    "{\"kind\":\"stage\",\"anchor\":\"" anchor "\",\"option\":" #option ",\"form\":\"padded\"}"

#define SPECIALISE(anchor, option, form)                                                           \
    "{\"kind\":\"specialise\",\"anchor\":\"" anchor "\",\"option\":" #option ",\"form\":\"" form   \
    "\"}"
#define EQUAL(anchor, option) SPECIALISE(anchor, option, "equal")
#define MULTIPLE(anchor, option) SPECIALISE(anchor, option, "multiple")

#define PEEL "{\"kind\":\"peel\"}"

#define UNROLL(loop) "{\"kind\":\"unroll-loop\",\"anchor\":\"loop " loop "\"}"
#define UNROLL_IN(loop)                                                                            \
    "{\"kind\":\"unroll-loop\",\"anchor\":\"loop " loop "\",\"form\":\"interior\"}"

#define UNROLL_OF_MEMBERS(loop)                                                                    \
    "{\"kind\":\"unroll-loop\",\"anchor\":\"loop " loop "\",\"form\":\"members\"}"
#define PEEL_OF_MEMBERS "{\"kind\":\"peel\",\"form\":\"members\"}"
#define GROUP(option) "{\"kind\":\"group-loads\",\"option\":" #option "}"

#define STAGE_ATOMICS(argument, option)                                                            \
    "{\"kind\":\"stage-atomics\",\"anchor\":\"" argument "\",\"option\":" #option "}"
#define JOIN(option) "{\"kind\":\"join-atomics\",\"option\":" #option "}"

#define PAD(array, option) "{\"kind\":\"pad\",\"anchor\":\"" array "\",\"option\":" #option "}"
#define SWIZZLE(array, option)                                                                     \
    "{\"kind\":\"swizzle\",\"anchor\":\"" array "\",\"option\":" #option "}"

typedef struct row {
    const char *entry;
    const char *edits;
    const char *reason; /* NULL: the edited kernel writes what the start writes */
} row;

static const row rows[] = {
#include "tests/ir/structure/rows.def"
};

static const subject *find_subject(const char *entry) {
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0]; i++) {
        if (strcmp(subjects[i].entry, entry) == 0)
            return &subjects[i];
    }
    fail_msg("no kernel %s", entry);
    return NULL;
}

static ir_genome *genome_of(const char *edits) {
    ev_str text = EV_STR_EMPTY;
    ev_json *doc = NULL;
    ir_genome *genome = NULL;
    ev_str_printf(&text, "{\"start\":\"textbook\",\"edits\":[%s]}", edits);
    OK(ev_json_parse(ev_str_text(&text), "test", &doc, &err));
    OK(ir_genome_from_json(doc->root, &genome, &err));
    ev_json_free(doc);
    ev_str_free(&text);
    return genome;
}

static launch_plan plan_of(const subject *s, launch_rule *rule) {
    static const char *const counts[] = {"1", "2", "4", "8", "32", "64"};
    *rule = (launch_rule){.entry = s->entry, .shared = "0"};
    for (int a = 0; a < 3; a++) {
        rule->grid[a] = s->grid[a];
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            if ((uint32_t)atoi(counts[i]) == s->block[a])
                rule->block[a] = counts[i];
        }
    }
    return (launch_plan){.launches = rule, .launch_count = 1};
}

static ev_str compiled; /* kernels.cu as bitcode, for all rows */

static ev_status load_base(const subject *s, const ir_genome *genome, const launch_plan *plan,
                           ir_base **base) {
    static const char *const arguments[] = {"x", "w", "y", "m", "n"};
    ir_source source = {.path = "tests/ir/structure/kernels.cu",
                        .entry = s->entry,
                        .include = "kernels/include",
                        .sm = 90,
                        .block = {s->block[0], s->block[1], s->block[2]},
                        .genome = genome,
                        .plan = plan,
                        .arguments = arguments,
                        .argument_count = 5};
    if (compiled.length == 0)
        OK(ir_compile(&source, &compiled, &err));
    source.bitcode = ev_str_text(&compiled);
    source.bitcode_bytes = compiled.length;
    return ir_base_load(&source, base, &err);
}

typedef struct params {
    uint64_t x, w, y;
    int m, n;
} params;

/* The path lengths of a grid's blocks (vm_launch.paths). */
typedef struct lengths {
    uint64_t *of; /* malloc'ed */
    size_t count;
} lengths;

/* Runs the PTX at a shape and returns what it wrote; malloc'ed. */
static float *run(const char *ptx, size_t bytes, const launch_plan *plan, const shape *at,
                  lengths *paths) {
    device *d = NULL;
    device_kernel *kernel = NULL;
    device_buffer x, w, y;
    size_t count = (size_t)at->m * (size_t)at->n, weights = (size_t)at->n * (size_t)at->n + 9;
    float *data = calloc(count + weights, sizeof *data);
    assert_non_null(data);
    for (size_t i = 0; i < count + weights; i++)
        data[i] = (float)((i * 7 + i / 5) % 8);
    OK(device_open("vm:h200", &d, &err));
    OK(device_alloc(d, count * 4, VM_BUFFER_IN, "x", &x, &err));
    OK(device_alloc(d, weights * 4, VM_BUFFER_IN, "w", &w, &err));
    OK(device_alloc(d, count * 4, VM_BUFFER_INOUT, "y", &y, &err));
    OK(device_write(d, x, 0, data, count * 4, &err));
    OK(device_write(d, w, 0, data + count, weights * 4, &err));
    memset(data, 0, count * 4);
    OK(device_write(d, y, 0, data, count * 4, &err));
    OK(device_load(d, ptx, bytes, launch_plan_entry(plan), &kernel, &err));
    params p = {device_address(d, x), device_address(d, w), device_address(d, y), at->m, at->n};
    expr_name names[] = {
        {"m", expr_of_whole(at->m)}, {"n", expr_of_whole(at->n)}, {"blocks", expr_of_whole(at->m)}};
    expr_scope scope = {names, 3};
    launch_geometry geometry;
    OK(launch_plan_geometry(plan, 0, &scope, &LAUNCH_LIMITS_CUDA, &geometry, &err));
    device_launch launch = device_launch_of(&geometry);
    launch.params = &p;
    launch.checks = VM_CHECK_ALL;
    paths->count = (size_t)launch.grid[0] * launch.grid[1] * launch.grid[2];
    paths->of = calloc(paths->count + 1, sizeof *paths->of);
    launch.paths = paths->of;
    device_outcome out;
    OK(device_reset(d, 0xff, &err));
    OK(device_run(d, kernel, &launch, &out, &err));
    if (!out.ok)
        fail_msg("%d x %d: %s\n%s", at->m, at->n, out.fault.message, ptx);
    OK(device_read(d, y, 0, data, count * 4, &err));
    device_unload(kernel);
    device_close(d);
    return data;
}

static ir_build *build_all(const ir_base *base, const ir_genome *genome) {
    ir_build *build = NULL;
    OK(ir_build_new(base, genome, &build, &err));
    for (int stage = 0; stage < IR_STAGE_COUNT; stage++)
        OK(ir_build_run(build, (ir_stage)stage, &err));
    return build;
}

/* What the start writes at each shape, and its blocks' paths; kept for all rows of the kernel. */
static float *wanted[sizeof subjects / sizeof subjects[0]][SHAPES];
static lengths wanted_paths[sizeof subjects / sizeof subjects[0]][SHAPES];

static void run_start(const subject *s) {
    float **want = wanted[s - subjects];
    launch_rule rule;
    launch_plan plan = plan_of(s, &rule);
    ir_genome *none = genome_of("");
    ir_base *start = NULL;
    if (want[0] == NULL) {
        OK(load_base(s, none, &plan, &start));
        ir_build *build = build_all(start, none);
        size_t bytes;
        const char *ptx = ir_build_ptx(build, &bytes);
        for (size_t i = 0; i < SHAPES; i++)
            want[i] = run(ptx, bytes, &plan, &shapes[i], &wanted_paths[s - subjects][i]);
        ir_build_free(build);
        ir_base_free(start);
    }
    ir_genome_free(none);
}

#define SHORT 16 /* warp instructions that do not matter */
#define LIKE 1.2 /* paths of blocks that stand for each other differ by no more (paths.c) */

/* Edits that keep the work of blocks (ir/structure.def) keep the grid, and blocks with equal paths
 * have like ones after them. */
static void hold_work(const row *r, const lengths *before, const lengths *after) {
    if (before->count != after->count)
        fail_msg("%s: %zu blocks, not %zu", r->edits, after->count, before->count);
    for (size_t i = 0; i < before->count; i++) {
        for (size_t k = 0; k < before->count; k++) {
            if (before->of[i] == before->of[k] &&
                (double)after->of[i] > LIKE * (double)after->of[k] + SHORT)
                fail_msg("%s: blocks %zu and %zu have paths %llu, then %llu and %llu", r->edits, i,
                         k, (unsigned long long)before->of[i], (unsigned long long)after->of[i],
                         (unsigned long long)after->of[k]);
        }
    }
}

static bool is_held[IR_EDIT_COUNT]; /* whether hold_work has seen the kind */

/* Each kind whose row says that it keeps the work was held against that. */
static void hold_all_kinds(void) {
    for (size_t kind = IR_EDIT_LOCAL_COUNT; kind < IR_EDIT_COUNT; kind++) {
        if (ir_structure_row_of((ir_edit_kind)kind)->work == IR_WORK_KEPT && !is_held[kind])
            fail_msg("no row shows that %s keeps the work", ir_edit_name((ir_edit_kind)kind));
    }
}

static void compare(const subject *s, const row *r) {
    ev_arena *arena = ev_arena_new();
    launch_rule rule;
    launch_plan plan = plan_of(s, &rule);
    const launch_plan *after = NULL;
    ir_genome *genome = genome_of(r->edits);
    ir_base *edited = NULL;
    run_start(s);
    OK(load_base(s, genome, &plan, &edited));
    OK(ir_genome_plan(genome, &plan, arena, &after, &err));
    ir_build *build = build_all(edited, genome);
    size_t bytes;
    const char *ptx = ir_build_ptx(build, &bytes);
    bool keeps = ir_genome_division_count(genome) == 0;
    for (size_t i = 0; keeps && i < ir_genome_prefix_count(genome); i++)
        is_held[ir_genome_edit_kind(genome, i)] = true;
    for (size_t i = 0; i < SHAPES; i++) {
        const float *want = wanted[s - subjects][i];
        lengths paths;
        float *got = run(ptx, bytes, after, &shapes[i], &paths);
        if (keeps)
            hold_work(r, &wanted_paths[s - subjects][i], &paths);
        free(paths.of);
        for (int k = 0; k < shapes[i].m * shapes[i].n; k++) {
            if (want[k] != got[k]) /* no element is not a number or negative zero */
                fail_msg("%d x %d, element %d: %g, not %g\n%s", shapes[i].m, shapes[i].n, k,
                         (double)got[k], (double)want[k], ptx);
        }
        free(got);
    }
    ir_build_free(build);
    ir_base_free(edited);
    ir_genome_free(genome);
    ev_arena_free(arena);
}

static void refuse(const subject *s, const row *r) {
    launch_rule rule;
    launch_plan plan = plan_of(s, &rule);
    ir_genome *genome = genome_of(r->edits);
    ir_base *base = NULL;
    assert_int_equal(load_base(s, genome, &plan, &base), EV_BAD);
    if (!strstr(err.text, r->reason))
        fail_msg("'%s' lacks '%s'", err.text, r->reason);
    ir_genome_free(genome);
}

static void each_row(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_message("%s %s\n", rows[i].entry, rows[i].edits);
        (rows[i].reason ? refuse : compare)(find_subject(rows[i].entry), &rows[i]);
    }
    hold_all_kinds();
    for (size_t i = 0; i < sizeof subjects / sizeof subjects[0] * SHAPES; i++) {
        free(wanted[i / SHAPES][i % SHAPES]);
        free(wanted_paths[i / SHAPES][i % SHAPES].of);
    }
}

/* The same prefix makes the same module, and another one makes another. */
static void a_prefix_is_replayed_exactly(void **state) {
    (void)state;
    const char *const edits[] = {COARSEN("y", 4, "strided"), COARSEN("y", 4, "strided"),
                                 COARSEN("y", 2, "strided")};
    ev_sha256 sha[3];
    launch_rule rule;
    launch_plan plan = plan_of(&subjects[0], &rule);
    for (int i = 0; i < 3; i++) {
        ir_genome *genome = genome_of(edits[i]);
        ir_base *base = NULL;
        OK(load_base(&subjects[0], genome, &plan, &base));
        sha[i] = ir_base_sha256(base);
        ir_base_free(base);
        ir_genome_free(genome);
    }
    assert_true(ev_sha256_equal(&sha[0], &sha[1]));
    assert_false(ev_sha256_equal(&sha[0], &sha[2]));
}

static size_t count_in(const char *text, const char *words) {
    size_t count = 0;
    while ((text = strstr(text, words))) {
        count++;
        text += strlen(words);
    }
    return count;
}

/* How often words stand in the PTX of a kernel with a prefix. */
static size_t count_in_ptx(const char *entry, const char *edits, const char *words) {
    const subject *s = find_subject(entry);
    launch_rule rule;
    launch_plan plan = plan_of(s, &rule);
    ir_genome *genome = genome_of(edits);
    ir_base *base = NULL;
    OK(load_base(s, genome, &plan, &base));
    ir_build *build = build_all(base, genome);
    size_t bytes = 0, count = count_in(ir_build_ptx(build, &bytes), words);
    ir_build_free(build);
    ir_base_free(base);
    ir_genome_free(genome);
    return count;
}

/* The copy has no division, its loop no turns; each fact makes one copy more, not twice as many. */
static void the_copy_uses_what_is_known(void **state) {
    (void)state;
    assert_int_equal(count_in_ptx("read_only", "", "rem.s32"), 1);
    assert_int_equal(count_in_ptx("read_only", EQUAL("a4", 40), "rem.s32"), 1);
    size_t sums = count_in_ptx("product", "", "fma.rn.f32");
    assert_int_equal(count_in_ptx("product", EQUAL("a4", 7), "fma.rn.f32"), sums + 7);
    assert_int_equal(count_in_ptx("rows", EQUAL("a4", 40), "ret;"), 1);
    size_t one = count_in_ptx("exchanged", "", "shfl.sync");
    assert_int_equal(count_in_ptx("exchanged", MULTIPLE("a4", 2), "shfl.sync"), 2 * one);
    assert_int_equal(
        count_in_ptx("exchanged", MULTIPLE("a4", 2) "," MULTIPLE("a4", 4), "shfl.sync"), 3 * one);
    assert_int_equal(count_in_ptx("exchanged", EQUAL("a4", 8) "," EQUAL("a4", 40), "shfl.sync"),
                     3 * one);
    assert_int_equal(count_in_ptx("product", MULTIPLE("a4", 8), ", -8;"), 1);
}

/* How many instructions of the base have an opcode, up to the first one with another opcode (NULL:
 * all of them). */
static size_t count_up_to(const char *entry, const char *edits, const char *opcode,
                          const char *last) {
    const subject *s = find_subject(entry);
    launch_rule rule;
    launch_plan plan = plan_of(s, &rule);
    ir_genome *genome = genome_of(edits);
    ir_base *base = NULL;
    size_t count = 0;
    bool found = false;
    OK(load_base(s, genome, &plan, &base));
    for (size_t i = 0; i < ir_base_insn_count(base) && !found; i++) {
        char *text = ir_base_insn_text(base, i);
        count += count_in(text, opcode);
        found = last && count_in(text, last) > 0;
        free(text);
    }
    ir_base_free(base);
    ir_genome_free(genome);
    return count;
}

static size_t count_in_base(const char *entry, const char *edits, const char *opcode) {
    return count_up_to(entry, edits, opcode, NULL);
}

/* Members without work take another's coordinates by selects; in the interior all have work. */
static void the_interior_has_no_tests(void **state) {
    (void)state;
    static const char four[] = COARSEN("x", 4, "neighbours");
    size_t selects = count_in_base("product", four, " select "),
           stores = count_in_base("product", four, "store ");
    assert_true(selects > 0);
    assert_int_equal(count_in_base("product", COARSEN("x", 4, "neighbours") "," PEEL, " select "),
                     selects);
    assert_int_equal(count_in_base("product", COARSEN("x", 4, "neighbours") "," PEEL, "store "),
                     2 * stores);
}

/* A window's outputs of neighbouring threads load each value once, in the copy of the interior;
 * the other copy keeps its loops. */
static void members_and_turns_share_loads(void **state) {
    (void)state;
    static const char loads[] = "load float";
    assert_int_equal(count_in_base("window", "", loads), 2);
    assert_int_equal(count_in_base("window", UNROLL("0"), loads), 9 + 9);
    assert_int_equal(
        count_in_base("window", COARSEN("y", 4, "neighbours") "," UNROLL_IN("0"), loads),
        (4 + 2) * 3 + 9 + (4 + 1));
    assert_int_equal(
        count_in_base("window", COARSEN("x", 2, "neighbours") "," UNROLL_IN("0"), loads),
        3 * (2 + 2) + 9 + (2 + 1));
    assert_int_equal(count_in_base("window",
                                   COARSEN("x", 2, "neighbours") "," COARSEN(
                                       "y", 2, "neighbours") "," UNROLL_IN("0"),
                                   loads),
                     (2 + 2) * (2 + 2) + 9 + (4 + 1));
    /* Two tests are too few for a copy, so the whole kernel is unrolled. */
    assert_int_equal(count_in_base("window", UNROLL_IN("0"), loads), 9 + 9);
    /* The order of the edits makes no difference. */
    assert_int_equal(
        count_in_base("window", UNROLL("0") "," COARSEN("y", 4, "neighbours") "," PEEL, loads),
        (4 + 2) * 3 + 9 + 4 * 9 + 9);
    /* What a store may have changed is loaded anew: x may be y. */
    assert_int_equal(count_in_base("renewed", UNROLL("0"), loads), 3);
}

/* Members at a border load what several of them need once, under the conditions of the first; a
 * load whose condition does not follow from an earlier one's stays. */
static void guarded_loads_are_shared(void **state) {
    (void)state;
    static const char loads[] = "load float";
    assert_int_equal(count_in_base("doubted", "", loads), 4);
    assert_int_equal(count_in_base("doubted", GROUP(32), loads), 2);
    assert_int_equal(count_in_base("passed_by", UNROLL("1") "," UNROLL("0"), loads), 3 + 3 + 3);
    size_t alone = count_in_base("bordered", COARSEN("y", 4, "neighbours") "," UNROLL("0"), loads),
           shared = count_in_base("bordered",
                                  COARSEN("y", 4, "neighbours") "," UNROLL_OF_MEMBERS("0"), loads);
    print_message("%zu loads, %zu where members share them\n", alone, shared);
    /* The other copy keeps its loops: it has a load of each array a member. */
    assert_true(shared - 4 * 2 < alone * 3 / 4);
    /* Without the ranges of coordinates, two sums that are equal in 32 bits need not be in 64: 72
     * and 47 loads. */
    assert_true(alone <= 62 && shared <= 40);
}

static size_t loads_before_product(const char *entry, const char *edits) {
    return count_up_to(entry, edits, "load float", " fmul ");
}

static void loads_go_out_in_groups(void **state) {
    (void)state;
    assert_int_equal(loads_before_product("window", UNROLL("0")), 2);
    assert_int_equal(loads_before_product("window", UNROLL("0") "," GROUP(8)), 8);
    assert_int_equal(loads_before_product("window", UNROLL("0") "," GROUP(32)), 18);
    assert_int_equal(loads_before_product("bordered", UNROLL("0")), 2);
    assert_int_equal(loads_before_product("bordered", UNROLL("0") "," GROUP(8)), 8);
    assert_int_equal(loads_before_product("bordered", UNROLL("0") "," GROUP(32)), 18);
}

/* Threads that work alone choose their copy by their own tests; those of a kernel with a shared
 * array choose together, by the block's last thread. */
static void threads_choose_their_copy(void **state) {
    (void)state;
    static const char four[] = COARSEN("x", 4, "strided"),
                      peeled[] = COARSEN("x", 4, "strided") "," PEEL, last_of_eight[] = ", 7";
    assert_int_equal(count_in_base("product", peeled, last_of_eight),
                     count_in_base("product", four, last_of_eight));
    assert_true(count_in_base("swapped", peeled, last_of_eight) >
                count_in_base("swapped", four, last_of_eight));
}

static void a_padded_array_grows_by_rows(void **state) {
    (void)state;
    assert_int_equal(count_in_ptx("turned", "", "[256]"), 1);
    assert_int_equal(count_in_ptx("turned", PAD("s0", 1), "[288]"), 1);
    assert_int_equal(count_in_ptx("turned", SWIZZLE("s0", 1), "[256]"), 1);
    assert_int_equal(count_in_ptx("turned", PAD("s1", 1), "[576]"), 1); /* 2 x 8 rows */
    /* What stays within a row by the sizes of the block needs no division by the row. */
    assert_int_equal(count_in_base("turned", PAD("s0", 1) "," PAD("s1", 1), " udiv "), 0);
    assert_int_equal(count_in_base("turned", PAD("s0", 1) "," PAD("s1", 1), " lshr "), 0);
    assert_int_equal(count_in_base("flat", PAD("s0", 1), " lshr "), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row),
        cmocka_unit_test(a_prefix_is_replayed_exactly),
        cmocka_unit_test(the_copy_uses_what_is_known),
        cmocka_unit_test(the_interior_has_no_tests),
        cmocka_unit_test(members_and_turns_share_loads),
        cmocka_unit_test(guarded_loads_are_shared),
        cmocka_unit_test(loads_go_out_in_groups),
        cmocka_unit_test(threads_choose_their_copy),
        cmocka_unit_test(a_padded_array_grows_by_rows),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    ev_str_free(&compiled);
    return failed;
}
