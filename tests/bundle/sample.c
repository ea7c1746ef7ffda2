/* The small bundle of the tests of one file, of the library, and of its launches. */
#include "tests/bundle/sample.h"

#include "base/file.h"
#include "bundle/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];

#define PTX(mark, last, n, scale)                                                                  \
    "// " mark "\n"                                                                                \
    ".version 7.0\n.target sm_70\n.address_size 64\n"                                              \
    ".const .align 4 .f32 shift[2];\n"                                                             \
    ".visible .entry add(.param .u64 x, .param .u64 y, " last ")\n{\n"                             \
    "  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<5>; .reg .b64 %rd<8>;\n"                    \
    "  ld.param.u64 %rd1, [x];\n  ld.param.u64 %rd2, [y];\n"                                       \
    "  ld.param.s32 %r1, [" n "];\n  ld.param.f32 %f2, [" scale "];\n"                             \
    "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n  mov.u32 %r4, %tid.x;\n"                  \
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n  setp.ge.s32 %p1, %r5, %r1;\n  @%p1 bra done;\n"           \
    "  cvta.to.global.u64 %rd3, %rd1;\n  cvta.to.global.u64 %rd4, %rd2;\n"                         \
    "  mul.wide.s32 %rd5, %r5, 4;\n  add.s64 %rd6, %rd3, %rd5;\n  add.s64 %rd7, %rd4, %rd5;\n"     \
    "  ld.global.f32 %f1, [%rd6];\n  ld.const.f32 %f4, [shift];\n"                                 \
    "  fma.rn.f32 %f3, %f1, %f2, %f4;\n  st.global.f32 [%rd7], %f3;\n"                             \
    "done:\n  ret;\n}\n"

#define PTX_OF(...) PTX(__VA_ARGS__)
#define TWO ".param .s32 n, .param .f32 scale", "n", "scale"
#define ONE ".param .align 8 .b8 both[16]", "both", "both+8"

const char SAMPLE_PTX[] = PTX_OF("tuned", TWO);
const char SAMPLE_BASE_PTX[] = PTX_OF("base", TWO);
static const char struct_ptx[] = PTX_OF("struct", ONE);

int sample_make_folder(void **state) {
    (void)state;
    (void)strcpy(folder, "/tmp/evoke-test-bundle-XXXXXX");
    return mkdtemp(folder) == NULL;
}

int sample_remove_folder(void **state) {
    (void)state;
    return ev_dir_remove(folder, NULL) != EV_OK;
}

const char *sample_path(const char *name) {
    static char paths[4][160];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const bundle_number small_shape[] = {{"N", false, 64}};
static const bundle_number large_shape[] = {{"N", false, 4096}};
static const bundle_case cases[] = {
    {"small", "search", small_shape, 1, 100, 90, 110, 200, 0, 0, 0},
    {"large", "held-out", large_shape, 1, 100, 90, 110, 300, 0, 0, 0}};
static const bundle_number macros[] = {{"TILE", false, 64}};
static const launch_rule rule = {
    "add", {"ceil_div(N, TILE)", "1", "1"}, {"TILE", "1", "1"}, "0", NULL, 0};
static const launch_plan plan = {.launches = &rule, .launch_count = 1};
static const bundle_argument arguments[] = {
    {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false},
    {"y", "out", "f32", "n", 4, false, 0, 0, NULL, NULL, false},
    {"n", "scalar", "s32", "N", 0, false, 0, 0, NULL, NULL, false},
    {"scale", "scalar", "f32", "4.0 / 2", 0, false, 0, 0, NULL, NULL, false}};
static const bundle_argument of_struct[] = {
    {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false},
    {"y", "out", "f32", "both.n", 4, false, 0, 0, NULL, NULL, false},
    {"both.n", "scalar", "s32", "N", 0, true, 0, 16, NULL, NULL, false},
    {"both.scale", "scalar", "f32", "both.n * 0 + 4.0 / 2", 0, true, 8, 16, NULL, NULL, false}};
static const bundle_symbol symbols[] = {{"shift", "f32", "2"}};

static bundle_variant variant_of(const char *ptx) {
    return (bundle_variant){.ptx = ptx,
                            .ptx_bytes = strlen(ptx),
                            .start = "textbook",
                            .plan = &plan,
                            .macros = macros,
                            .macro_count = 1,
                            .gpu_id = "h200",
                            .gpu_name = "NVIDIA H200 SXM 141GB",
                            .sm = 70,
                            .sms = 132,
                            .registers = 8,
                            .modelled = true,
                            .tolerance = 1e-5,
                            .cases = cases,
                            .case_count = 2,
                            .genome = "{}",
                            .genome_sha256 = "00",
                            .versions = "{}"};
}

void sample_fill(sample *s) {
    *s = (sample){.variant = variant_of(SAMPLE_PTX),
                  .baseline = variant_of(SAMPLE_BASE_PTX),
                  .file = {"tasks/add/task.json", "{}\n", 3}};
    s->kernel = (bundle_kernel){.name = "add",
                                .family = "f",
                                .doc = "doubles",
                                .task = "tasks/add/task.json",
                                .task_sha256 = "11",
                                .arguments = arguments,
                                .argument_count = 4,
                                .baselines = &s->baseline,
                                .baseline_count = 1,
                                .variants = &s->variant,
                                .variant_count = 1,
                                .symbols = symbols,
                                .symbol_count = 1};
    s->content = (bundle_content){"0.1.0", &s->kernel, 1, &s->file, 1};
}

void sample_use_struct(sample *s) {
    s->kernel.arguments = of_struct;
    s->variant.ptx = s->baseline.ptx = struct_ptx;
    s->variant.ptx_bytes = s->baseline.ptx_bytes = strlen(struct_ptx);
}

/* ---- several launches ---- */

/* to[i] = from[i] + shift for i < n */
#define KERNEL(name)                                                                               \
    ".visible .entry " name "(.param .u64 from, .param .u64 to, .param .s32 n, .param .f32 shift)" \
    "\n{\n  .reg .pred %p<2>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .b64 %rd<8>;\n"               \
    "  ld.param.u64 %rd1, [from];\n  ld.param.u64 %rd2, [to];\n"                                   \
    "  ld.param.s32 %r1, [n];\n  ld.param.f32 %f2, [shift];\n"                                     \
    "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n  mov.u32 %r4, %tid.x;\n"                  \
    "  mad.lo.s32 %r5, %r2, %r3, %r4;\n  setp.ge.s32 %p1, %r5, %r1;\n  @%p1 bra done;\n"           \
    "  cvta.to.global.u64 %rd3, %rd1;\n  cvta.to.global.u64 %rd4, %rd2;\n"                         \
    "  mul.wide.s32 %rd5, %r5, 4;\n  add.s64 %rd6, %rd3, %rd5;\n  add.s64 %rd7, %rd4, %rd5;\n"     \
    "  ld.global.f32 %f1, [%rd6];\n  add.f32 %f3, %f1, %f2;\n  st.global.f32 [%rd7], %f3;\n"       \
    "done:\n  ret;\n}\n"

static const char steps_ptx[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n" KERNEL("put") KERNEL("last");

/* a = x + 1; R times b = a + (k + 1), after which a and b change places; y = a. */

#define GRID {"ceil_div(n, TILE)", "1", "1"}, {"TILE", "1", "1"}, "0"

static const launch_given first[] = {
    {.name = "x"}, {.name = "a"}, {.name = "n"}, {.type = EV_F32, .value = "1"}};
static const launch_given turn[] = {
    {.name = "a"}, {.name = "b"}, {.name = "n"}, {.type = EV_F32, .value = "k + 1"}};
static const launch_given end[] = {
    {.name = "a"}, {.name = "y"}, {.name = "n"}, {.type = EV_F32, .value = "0"}};
static const launch_rule launches[] = {
    {"put", GRID, first, 4}, {"put", GRID, turn, 4}, {"last", GRID, end, 4}};
static const launch_pair swaps[] = {{{"a", "b"}}};
static const launch_loop loops[] = {{1, 1, "R", "k", swaps, 1}};
static const launch_scratch scratch[] = {{.name = "a", .bytes = "4 * N"},
                                         {.name = "b", .bytes = "n * 4"}};
const launch_plan SAMPLE_STEPS = {.launches = launches,
                                  .launch_count = 3,
                                  .loops = loops,
                                  .loop_count = 1,
                                  .scratch = scratch,
                                  .scratch_count = 2};
static const bundle_argument of_steps[] = {
    {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false},
    {"y", "out", "f32", "n", 4, false, 0, 0, NULL, NULL, false},
    {"n", "scalar", "s32", "N", 0, false, 0, 0, NULL, NULL, false}};
static const bundle_number small_steps[] = {{"N", false, 1}, {"R", false, 0}};
static const bundle_number large_steps[] = {{"N", false, SAMPLE_STEPS_MOST}, {"R", false, 20}};
static const bundle_case cases_of_steps[] = {
    {"small", "search", small_steps, 2, 100, 90, 110, 200, 0, 0, 0},
    {"large", "held-out", large_steps, 2, 100, 90, 110, 300, 0, 0, 0}};

void sample_use_steps(sample *s) {
    bundle_variant *const all[] = {&s->variant, &s->baseline};
    s->kernel.arguments = of_steps;
    s->kernel.argument_count = 3;
    s->kernel.symbol_count = 0;
    for (size_t i = 0; i < 2; i++) {
        all[i]->plan = &SAMPLE_STEPS;
        all[i]->ptx = steps_ptx;
        all[i]->ptx_bytes = strlen(steps_ptx);
        all[i]->cases = cases_of_steps;
    }
}

/* ---- ranks ---- */

static const bundle_argument of_ranks[] = {
    {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false},
    {"y", "out", "f32", "n", 4, false, 0, 0, NULL, NULL, false},
    {"stage", "inout", "f32", "2 * N", 16, false, 0, 0, NULL, NULL, true},
    {"stages", "peers", "u64", "ranks", 16, false, 0, 0, "stage", NULL, false},
    {"flags", "inout", "u32", "ranks", 16, false, 0, 0, NULL, "(epoch - 1) * ranks", false},
    {"all_flags", "peers", "u64", "ranks", 16, false, 0, 0, "flags", NULL, false},
    {"n", "scalar", "s32", "N", 0, false, 0, 0, NULL, NULL, false},
    {"rank", "rank", "s32", "0", 0, false, 0, 0, NULL, NULL, false}};
static const launch_given put_given[] = {{.name = "x"},      {.name = "mine"}, {.name = "stage"},
                                         {.name = "stages"}, {.name = "rank"}, {.name = "n"}};
static const launch_given get_given[] = {{.name = "mine"},      {.name = "all"},
                                         {.name = "y"},         {.name = "flags"},
                                         {.name = "all_flags"}, {.type = EV_U32, .value = "epoch"}};
static const launch_rule launches_of_ranks[] = {{"put", GRID, put_given, 6},
                                                {"get", GRID, get_given, 6}};
static const launch_scratch scratch_of_ranks[] = {
    {.name = "mine", .bytes = "4 * N"}, {.name = "all", .bytes = "8 * ranks", .peers_of = "mine"}};
static const launch_plan plan_of_ranks = {.launches = launches_of_ranks,
                                          .launch_count = 2,
                                          .scratch = scratch_of_ranks,
                                          .scratch_count = 2};
static const bundle_number small_ranks[] = {
    {"N", false, 1}, {"ranks", false, 2}, {"epoch", false, 1}};
static const bundle_number large_ranks[] = {
    {"N", false, 1000}, {"ranks", false, 8}, {"epoch", false, 1000}};
static const bundle_case cases_of_ranks[] = {
    {"small", "search", small_ranks, 3, 100, 90, 110, 200, 0, 0, 0},
    {"large", "held-out", large_ranks, 3, 100, 90, 110, 300, 0, 0, 0}};
static const bundle_ranks ranks_of = {"ranks", true, false};
static const char *const waiting[] = {"get"};

void sample_use_ranks(sample *s) {
    bundle_variant *const all[] = {&s->variant, &s->baseline};
    s->kernel.arguments = of_ranks;
    s->kernel.argument_count = sizeof of_ranks / sizeof of_ranks[0];
    s->kernel.symbol_count = 0;
    s->kernel.ranks = &ranks_of;
    for (size_t i = 0; i < 2; i++) {
        all[i]->plan = &plan_of_ranks;
        all[i]->cases = cases_of_ranks;
        all[i]->resident = waiting;
        all[i]->resident_count = 1;
    }
}

ev_status sample_write(const char *path, ev_error *err) {
    sample s;
    sample_fill(&s);
    return bundle_write(path, &s.content, err);
}
