/* Bundles: what is written is read back, equal content gives equal bytes, damage is named, and a
 * variant is never picked outside the shapes it was validated for. */
#include "base/file.h"
#include "base/json.h"
#include "base/pcg.h"
#include "base/str.h"
#include "bundle/bundle.h"
#include "bundle/reader.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];

static int make_folder(void **state) {
    (void)state;
    (void)strcpy(folder, "/tmp/evoke-test-bundle-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state) {
    (void)state;
    return ev_dir_remove(folder, NULL) != EV_OK;
}

static const char *in_folder(const char *name) {
    static char paths[4][160];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* ---- a bundle with two kernels, variants for two GPUs, and a task's files ---- */

#define PTX_H200 "// h200\n"
#define PTX_A100 "// a100\n"
#define PTX_BASE "// base\n"

static const bundle_number shape_small[] = {{"N", false, 64}, {"density", true, 0.1}};
static const bundle_number shape_large[] = {{"N", false, 256}, {"density", true, 0.5}};
static const bundle_case cases[] = {
    {"small", "search", shape_small, 2, 100, 90, 110, 200, 1e-7, 190, 215},
    {"large", "held-out", shape_large, 2, 0, 0, 0, 0, -1, 0, 0},
};
static const bundle_number macros[] = {{"TILE", false, 16}};
static const char *const edits[] = {"deletes a barrier (line 12)", "swaps two loads"};

static const launch_rule rule = {"kernel", {"N / TILE", "1", "1"}, {"TILE", "1", "1"}, "0", 0, 0};
static const launch_plan plan = {.launches = &rule, .launch_count = 1};

static const bundle_argument arguments[] = {
    {"x", "in", "f32", "N", 4, false, 0, 0, NULL, NULL, false},
    {"n", "scalar", "u32", "N", 0, false, 0, 0, NULL, NULL, false}};

static bundle_variant variant_of(const char *ptx, const char *gpu, const char *name, int sm) {
    return (bundle_variant){
        .ptx = ptx,
        .ptx_bytes = strlen(ptx),
        .start = "textbook",
        .plan = &plan,
        .macros = macros,
        .macro_count = 1,
        .gpu_id = gpu,
        .gpu_name = name,
        .sm = sm,
        .registers = 32,
        .shared_bytes = 1024,
        .max_threads = 256,
        .modelled = true,
        .error = 1e-7,
        .tolerance = 1e-5,
        .cases = cases,
        .case_count = 2,
        .genome = "{\"edits\":[],\"start\":\"textbook\"}",
        .genome_sha256 = "00",
        .edits = edits,
        .edit_count = 2,
        .seed = 7,
        .versions = "{\"evoke\":\"0.1.0\"}",
    };
}

static ev_status write_sample(const char *path, bool other_order, ev_error *err) {
    bundle_variant h200 = variant_of(PTX_H200, "h200", "NVIDIA H200", 90);
    bundle_variant a100 = variant_of(PTX_A100, "a100", "NVIDIA A100", 80);
    bundle_variant base = variant_of(PTX_BASE, "a100", "NVIDIA A100", 80);
    bundle_variant variants[2] = {other_order ? a100 : h200, other_order ? h200 : a100};
    static const bundle_symbol centres = {"centres", "f32", "4 * N"};
    bundle_kernel two[2] = {
        {"add", "f", "adds", "tasks/add/task.json", "11", arguments, 2, &base, 1, variants, 2, NULL,
         0, &centres, 1, NULL},
        {"mul", "f", "multiplies", "tasks/add/task.json", "22", arguments, 2, &base, 1, NULL, 0,
         NULL, 0, NULL, 0, NULL},
    };
    if (other_order) {
        bundle_kernel first = two[0];
        two[0] = two[1];
        two[1] = first;
    }
    static const bundle_file files[] = {{"tasks/add/task.json", "{}\n", 3},
                                        {"tasks/add/add.cu", "// cu\n", 6}};
    bundle_content content = {"0.1.0", two, 2, files, 2};
    return bundle_write(path, &content, err);
}

static void write_ok(const char *path, bool other_order) {
    ev_error err = {0};
    ev_status status = write_sample(path, other_order, &err);
    if (status != EV_OK)
        fail_msg("%s", err.text);
}

static bundle *open_ok(const char *path) {
    bundle *b = NULL;
    ev_error err = {0};
    if (bundle_open(path, &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    return b;
}

static void open_fails(const char *path, const char *words) {
    bundle *b = NULL;
    ev_error err = {0};
    assert_int_equal(bundle_open(path, &b, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, err.text);
}

static char *read_text(const char *path) {
    char *text = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    if (ev_file_read(path, &text, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    return text;
}

/* The manifest with one text changed to another. */
static void edit_manifest(const char *bundle_dir, const char *from, const char *to) {
    char path[200];
    (void)snprintf(path, sizeof path, "%s/manifest.json", bundle_dir);
    char *text = read_text(path);
    char *at = strstr(text, from);
    assert_non_null(at);
    ev_str changed = EV_STR_EMPTY;
    ev_str_append_n(&changed, text, (size_t)(at - text));
    ev_str_append(&changed, to);
    ev_str_append(&changed, at + strlen(from));
    assert_int_equal(ev_file_write(path, changed.data, changed.length, NULL), EV_OK);
    ev_str_free(&changed);
    free(text);
}

/* ---- tests ---- */

static void reads_what_was_written(void **state) {
    (void)state;
    write_ok(in_folder("b"), false);
    bundle *b = open_ok(in_folder("b"));
    assert_int_equal(bundle_kernel_count(b), 2);
    const bundle_kernel *k = bundle_find(b, "add");
    assert_non_null(k);
    assert_string_equal(k->doc, "adds");
    assert_string_equal(k->arguments[1].expression, "N");
    assert_int_equal(k->symbol_count, 1);
    assert_string_equal(k->symbols[0].name, "centres");
    assert_string_equal(k->symbols[0].type, "f32");
    assert_string_equal(k->symbols[0].count, "4 * N");
    assert_int_equal(k->variant_count, 2);
    const bundle_variant *v = &k->variants[1]; /* after a100 */
    assert_string_equal(v->gpu_id, "h200");
    assert_string_equal(v->ptx, PTX_H200);
    assert_true(launch_plan_is_plain(v->plan));
    assert_string_equal(launch_plan_entry(v->plan), "kernel");
    assert_string_equal(v->plan->launches[0].grid[0], "N / TILE");
    assert_true(v->macros[0].value == 16 && v->registers == 32 && v->modelled);
    assert_int_equal(v->case_count, 2);
    const bundle_case *c = v->cases;
    assert_true(c[0].ns == 100 && c[0].baseline_ns == 200 && c[0].baseline_low_ns == 190);
    assert_true(c[0].baseline_high_ns == 215 && c[1].ns == 0 && c[1].error < 0);
    assert_true(c[1].baseline_low_ns == 0);
    assert_string_equal(v->edits[1], "swaps two loads");
    assert_int_equal(v->seed, 7);
    assert_string_equal(v->genome, "{\"edits\":[],\"start\":\"textbook\"}");
    assert_null(bundle_find(b, "sub"));
    bundle_close(b);
}

static void ranges_cover_the_cases(void **state) {
    (void)state;
    bundle *b = open_ok(in_folder("b"));
    const bundle_variant *v = &bundle_find(b, "add")->variants[0];
    const launch_range *ranges = v->plan->ranges;
    assert_int_equal(v->plan->range_count, 2);
    assert_string_equal(ranges[0].name, "N");
    assert_true(ranges[0].low == 64 && ranges[0].high == 256);
    assert_int_equal(ranges[0].multiple, 64);
    assert_true(ranges[1].is_real && ranges[1].low == 0.1 && ranges[1].high == 0.5);
    bundle_close(b);
}

static void equal_content_gives_equal_bytes(void **state) {
    (void)state;
    write_ok(in_folder("c"), true);
    char *one = read_text(in_folder("b/manifest.json"));
    char *two = read_text(in_folder("c/manifest.json"));
    assert_string_equal(one, two);
    free(one);
    free(two);
}

static bundle_choice resolve_ok(const bundle *b, const char *gpu, int sm, double n,
                                double density) {
    bundle_number shape[] = {{"N", false, n}, {"density", true, density}};
    bundle_request request = {
        .kernel = "add", .gpu = gpu, .sm = sm, .shape = shape, .shape_count = 2};
    bundle_choice choice = {0};
    ev_error err = {0};
    if (bundle_resolve(b, &request, &choice, &err) != EV_OK)
        fail_msg("%s", err.text);
    return choice;
}

static void resolves_by_rungs(void **state) {
    (void)state;
    bundle *b = open_ok(in_folder("b"));
    bundle_choice c = resolve_ok(b, "h200", 90, 128, 0.3);
    assert_int_equal(c.rung, BUNDLE_RUNG_EXACT);
    assert_string_equal(c.variant->ptx, PTX_H200);
    c = resolve_ok(b, "NVIDIA A100", 80, 128, 0.3);
    assert_int_equal(c.rung, BUNDLE_RUNG_EXACT);
    assert_string_equal(c.variant->ptx, PTX_A100);
    c = resolve_ok(b, "h100", 90, 128, 0.3);
    assert_int_equal(c.rung, BUNDLE_RUNG_CAPABILITY);
    assert_string_equal(c.variant->ptx, PTX_H200);
    c = resolve_ok(b, "rtx4090", 89, 128, 0.3);
    assert_int_equal(c.rung, BUNDLE_RUNG_PTX);
    assert_string_equal(c.variant->ptx, PTX_A100);
    assert_string_equal(bundle_rung_name(c.rung), "ptx");
    bundle_close(b);
}

/* A variant that needs more of an argument than launches grant is chosen where the caller grants
 * it, and its launch is checked. */
static void alignments_are_requirements(void **state) {
    (void)state;
    static const bundle_alignment needs[] = {{"x", 16}};
    bundle_variant v = variant_of(PTX_H200, "h200", "NVIDIA H200", 90);
    bundle_variant base = variant_of(PTX_BASE, "a100", "NVIDIA A100", 80);
    v.alignments = needs;
    v.alignment_count = 1;
    bundle_kernel k = {
        "add", "f", "adds", "tasks/add/task.json", "11", arguments, 2, &base, 1, &v, 1, NULL, 0,
        NULL,  0,   NULL};
    static const bundle_file files[] = {{"tasks/add/task.json", "{}\n", 3}};
    bundle_content content = {"0.1.0", &k, 1, files, 1};
    ev_error err = {0};
    if (bundle_write(in_folder("aligned"), &content, &err) != EV_OK)
        fail_msg("%s", err.text);
    bundle *b = open_ok(in_folder("aligned"));
    const bundle_kernel *read = bundle_find(b, "add");
    assert_int_equal(read->arguments[0].align, 4);
    assert_int_equal(read->variants[0].alignment_count, 1);
    assert_string_equal(read->variants[0].alignments[0].argument, "x");
    bundle_choice c = resolve_ok(b, "h200", 90, 128, 0.3);
    assert_int_equal(c.rung, BUNDLE_RUNG_BASELINE);
    bundle_number shape[] = {{"N", false, 128}, {"density", true, 0.3}};
    bundle_alignment grants[] = {{"x", 8}};
    bundle_request request = {"add", "h200", 90, shape, 2, grants, 1, false, 0, false, 0};
    assert_int_equal(bundle_resolve(b, &request, &c, &err), EV_OK);
    assert_int_equal(c.rung, BUNDLE_RUNG_BASELINE);
    grants[0].bytes = 32;
    assert_int_equal(bundle_resolve(b, &request, &c, &err), EV_OK);
    assert_int_equal(c.rung, BUNDLE_RUNG_EXACT);
    const uint64_t good[] = {0x7010, 1}, four[] = {0x7004, 1}, odd[] = {0x7002, 1};
    assert_int_equal(bundle_check_addresses(read, c.variant, good, &err), EV_OK);
    assert_int_equal(bundle_check_addresses(read, c.variant, four, &err), EV_BAD);
    assert_non_null(strstr(err.text, "0x7004 of 'x' is no multiple of 16 bytes"));
    assert_int_equal(bundle_check_addresses(read, &read->baselines[0], four, &err), EV_OK);
    assert_int_equal(bundle_check_addresses(read, &read->baselines[0], odd, &err), EV_BAD);
    grants[0].argument = "z";
    assert_int_equal(bundle_resolve(b, &request, &c, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no argument 'z'"));
    bundle_close(b);
    edit_manifest(in_folder("aligned"), "\"x\": 16", "\"x\": 12");
    open_fails(in_folder("aligned"), "no power of two");
}

/* A bundle of `add` with a preserving variant and a faster bold one. */
static void write_bold(bool is_default) {
    static const bundle_case fast[] = {
        {"small", "search", shape_small, 2, 50, 50, 50, 200, 1e-7, 0, 0},
        {"large", "held-out", shape_large, 2, 0, 0, 0, 0, -1, 0, 0}};
    bundle_variant both[2] = {variant_of(PTX_H200, "h200", "NVIDIA H200", 90),
                              variant_of(PTX_A100, "h200", "NVIDIA H200", 90)};
    bundle_variant base = variant_of(PTX_BASE, "a100", "NVIDIA A100", 80);
    both[1].cases = fast;
    both[1].is_bold = true;
    both[1].is_default = is_default;
    both[1].changes = edits;
    both[1].change_count = 1;
    both[1].tried = (bundle_tried){"vm:h200", 100, 1117, 7};
    bundle_kernel k = {
        "add", "f", "adds", "tasks/add/task.json", "11", arguments, 2, &base, 1, both, 2, NULL, 0,
        NULL,  0,   NULL};
    static const bundle_file files[] = {{"tasks/add/task.json", "{}\n", 3}};
    bundle_content content = {"0.1.0", &k, 1, files, 1};
    ev_error err = {0};
    if (bundle_write(in_folder("bold"), &content, &err) != EV_OK)
        fail_msg("%s", err.text);
}

static bundle_choice resolve_bold(const bundle *b, const char *gpu, bool allow_bold) {
    bundle_number shape[] = {{"N", false, 128}, {"density", true, 0.3}};
    bundle_request request = {"add", gpu, 90, shape, 2, NULL, 0, allow_bold, 0, false, 0};
    bundle_choice choice = {0};
    ev_error err = {0};
    if (bundle_resolve(b, &request, &choice, &err) != EV_OK)
        fail_msg("%s", err.text);
    return choice;
}

/* On every rung, only a caller that allows bold variants gets one. */
static void bold_variants_have_to_be_allowed(void **state) {
    (void)state;
    static const char *const gpus[] = {"h200", "h100", NULL};
    write_bold(false);
    bundle *b = open_ok(in_folder("bold"));
    for (size_t i = 0; i < sizeof gpus / sizeof gpus[0]; i++) {
        bundle_choice c = resolve_bold(b, gpus[i], false);
        assert_string_equal(c.variant->ptx, PTX_H200);
        assert_false(c.variant->is_bold);
        assert_null(c.passed_over);
        c = resolve_bold(b, gpus[i], true);
        assert_string_equal(c.variant->ptx, PTX_A100);
        assert_true(c.variant->is_bold && !c.variant->is_default);
        assert_int_equal(c.variant->change_count, 1);
        assert_string_equal(c.variant->changes[0], edits[0]);
        assert_string_equal(c.variant->tried.device, "vm:h200");
        assert_int_equal(c.variant->tried.shapes, 100);
        assert_int_equal(c.variant->tried.runs, 1117);
        assert_int_equal(c.variant->tried.seed, 7);
    }
    bundle_close(b);
    write_bold(true); /* it was tuned with --bold */
    b = open_ok(in_folder("bold"));
    assert_string_equal(resolve_bold(b, "h200", false).variant->ptx, PTX_A100);
    bundle_close(b);
}

static void bad_marks_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } rows[] = {
        {"\"meaning\": \"bold\"", "\"meaning\": \"brave\"", "\"brave\" is no meaning"},
        {"\"meaning\": \"bold\",", "", "meaning"},
        {"\"meaning\": \"preserving\",", "", "meaning"},
        {"\"meaning\": \"bold\"", "\"meaning\": \"preserving\"", "a preserving one has none"},
        {"\"meaning\": \"preserving\"", "\"meaning\": \"bold\"", "a bold variant has changes"},
        {"\"meaning\": \"preserving\"", "\"default\": true, \"meaning\": \"preserving\"",
         "is no default"},
        {"\"shapes\": 100", "\"shape\": 100", "did you mean 'shapes'"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_bold(false);
        edit_manifest(in_folder("bold"), rows[i].from, rows[i].to);
        open_fails(in_folder("bold"), rows[i].words);
        open_fails(in_folder("bold"), "manifest.json:");
    }
}

static void never_leaves_the_validated_shapes(void **state) {
    (void)state;
    bundle *b = open_ok(in_folder("b"));
    static const double outside[][2] = {{32, 0.3},  {512, 0.3}, {96, 0.3},
                                        {64, 0.05}, {64, 0.51}, {64.5, 0.3}};
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        bundle_choice c = resolve_ok(b, "h200", 90, outside[i][0], outside[i][1]);
        assert_int_equal(c.rung, BUNDLE_RUNG_BASELINE);
        assert_string_equal(c.variant->ptx, PTX_BASE);
    }
    bundle_close(b);
}

static void resolve_names_what_is_wrong(void **state) {
    (void)state;
    bundle *b = open_ok(in_folder("b"));
    bundle_number shape[] = {{"N", false, 64}};
    bundle_choice c = {0};
    ev_error err = {0};
    assert_int_equal(
        bundle_resolve(b,
                       &(bundle_request){"sub", "h200", 90, shape, 1, NULL, 0, false, 0, false, 0},
                       &c, &err),
        EV_BAD);
    assert_non_null(strstr(err.text, "it has add, mul"));
    assert_int_equal(
        bundle_resolve(b,
                       &(bundle_request){"add", "h200", 90, shape, 1, NULL, 0, false, 0, false, 0},
                       &c, &err),
        EV_BAD);
    assert_non_null(strstr(err.text, "the shape lacks 'density'"));
    assert_int_equal(
        bundle_resolve(b,
                       &(bundle_request){"mul", "p100", 60, shape, 1, NULL, 0, false, 0, false, 0},
                       &c, &err),
        EV_BAD);
    assert_non_null(strstr(err.text, "compute capability 6.0"));
    bundle_close(b);
}

static void damage_is_named(void **state) {
    (void)state;
    write_ok(in_folder("d"), false);
    assert_int_equal(ev_file_write(in_folder("d/tasks/add/add.cu"), "// CU\n", 6, NULL), EV_OK);
    open_fails(in_folder("d"), "tasks/add/add.cu has the hash");
    assert_int_equal(unlink(in_folder("d/tasks/add/add.cu")), 0);
    open_fails(in_folder("d"), "tasks/add/add.cu");
    write_ok(in_folder("d"), false); /* and a bundle is replaced by a new one */
    bundle_close(open_ok(in_folder("d")));
    char ptx[160];
    (void)snprintf(ptx, sizeof ptx, "d/kernels/%s.ptx",
                   ev_sha256_of(PTX_H200, strlen(PTX_H200)).hex);
    assert_int_equal(ev_file_write(in_folder(ptx), "// evil\n", 8, NULL), EV_OK);
    open_fails(in_folder("d"), ptx + 2);
}

static void bad_manifests_are_named(void **state) {
    (void)state;
    open_fails(in_folder("none"), "is no bundle");
    write_ok(in_folder("e"), false);
    edit_manifest(in_folder("e"), "\"version\": 4", "\"version\": 99");
    open_fails(in_folder("e"), "has 99");
    edit_manifest(in_folder("e"), "\"version\": 99", "\"version\": 4,,");
    open_fails(in_folder("e"), "manifest.json:");
    write_ok(in_folder("f"), false);
    edit_manifest(in_folder("f"), "\"family\"", "\"famly\"");
    open_fails(in_folder("f"), "did you mean 'family'");
    write_ok(in_folder("f"), false);
    edit_manifest(in_folder("f"), "\"tasks/add/add.cu\"", "\"tasks/../../x\"");
    open_fails(in_folder("f"), "leads out of the bundle");
}

/* A launch that a scheduler could not evaluate is refused at opening, by name and place. */
static void bad_launches_are_named(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } rows[] = {
        {"\"N / TILE\"", "\"N / TILES\"",
         "launch 0 (kernel), grid[0]: expression \"N / TILES\", column 5: unknown name \"TILES\"; "
         "known here: N, density, n, TILE"},
        {"\"N / TILE\"", "\"x\"", "unknown name \"x\""}, /* a buffer */
        {"\"N / TILE\"", "\"1/0\"", "launch 0 (kernel), grid[0]: expression \"1/0\", column 2"},
        {"\"N / TILE\"", "\"9223372036854775807*4\"", "does not fit in 64 bits"},
        {"\"N / TILE\"", "\"N / (\"", "expected a number"},
        {"\"shared\": \"0\"", "\"shared\": \"-4\"", "launch 0 (kernel), shared"},
        {"\"entry\": \"kernel\"", "\"entry\": \"\"", "launch 0, entry: \"\" is no name"},
        {"\"multiple\": 64", "\"multiple\": -64", "range of N"},
        {"\"high\": 256", "\"high\": 6", "range of N: from 64 to 6 there is nothing"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_ok(in_folder("l"), false);
        edit_manifest(in_folder("l"), rows[i].from, rows[i].to);
        open_fails(in_folder("l"), rows[i].words);
        open_fails(in_folder("l"), "manifest.json:");
    }
}

/* ---- qualifications ---- */

#define PTX_START "// start\n"

static const bundle_trial passed[] = {
    {.name = "small",
     .variant = {100, 99, 101},
     .baseline = {300, 299, 301},
     .beside_start = {102, 101, 103},
     .start = {150, 149, 151},
     .start_name = "hand",
     .error = 0.25},
    {.name = "large", .error = -1},
};

static bundle_qualified qualified(const char *gpu, bool modelled, bundle_verdict verdict) {
    return (bundle_qualified){.gpu_id = gpu,
                              .gpu_name = gpu,
                              .sm = 90,
                              .driver = modelled ? "" : "CUDA driver 13.0",
                              .modelled = modelled,
                              .verdict = verdict,
                              .reason = verdict == BUNDLE_VERDICT_PASS ? "" : "it is slower",
                              .trials = passed,
                              .trial_count = 2};
}

/* The sample, with the h200's variant qualified so, and a start beside it. */
static void write_qualified(const char *path, const bundle_qualified *list, size_t count) {
    write_ok(in_folder("q"), false);
    bundle *b = open_ok(in_folder("q"));
    ev_arena *arena = ev_arena_new();
    bundle_content content;
    ev_error err = {0};
    assert_int_equal(bundle_content_of(b, arena, &content, &err), EV_OK);
    bundle_kernel kernels[2] = {content.kernels[0], content.kernels[1]};
    bundle_variant variants[2] = {kernels[0].variants[0], kernels[0].variants[1]};
    bundle_variant start = variant_of(PTX_START, "h200", "NVIDIA H200", 90);
    bundle_qualified good = qualified("h200", false, BUNDLE_VERDICT_PASS);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(bundle_qualify(arena, &variants[1], &list[i], &err), EV_OK);
    assert_int_equal(bundle_qualify(arena, &start, &good, &err), EV_OK);
    kernels[0].variants = variants;
    kernels[0].starts = &start;
    kernels[0].start_count = 1;
    content.kernels = kernels;
    if (bundle_write(path, &content, &err) != EV_OK)
        fail_msg("%s", err.text);
    ev_arena_free(arena);
    bundle_close(b);
}

static void unchanged_content_gives_the_same_bytes(void **state) {
    (void)state;
    write_ok(in_folder("b"), false);
    bundle *b = open_ok(in_folder("b"));
    ev_arena *arena = ev_arena_new();
    bundle_content content;
    ev_error err = {0};
    assert_int_equal(bundle_content_of(b, arena, &content, &err), EV_OK);
    assert_int_equal(bundle_write(in_folder("same"), &content, &err), EV_OK);
    ev_arena_free(arena);
    bundle_close(b);
    char *one = read_text(in_folder("b/manifest.json")),
         *two = read_text(in_folder("same/manifest.json"));
    assert_string_equal(one, two);
    assert_null(strstr(one, "qualified"));
    free(one);
    free(two);
    bundle_close(open_ok(in_folder("same")));
}

static void qualifications_are_read_back(void **state) {
    (void)state;
    const bundle_qualified list[] = {qualified("h200", false, BUNDLE_VERDICT_SLOWER)};
    write_qualified(in_folder("q"), list, 1);
    bundle *b = open_ok(in_folder("q"));
    const bundle_kernel *k = bundle_find(b, "add");
    const bundle_variant *v = &k->variants[1];
    assert_string_equal(v->disabled, "it is slower");
    assert_int_equal(v->qualified_count, 1);
    const bundle_qualified *q = &v->qualified[0];
    assert_string_equal(q->driver, "CUDA driver 13.0");
    assert_true(!q->modelled && q->verdict == BUNDLE_VERDICT_SLOWER && q->sm == 90);
    assert_int_equal(q->trial_count, 2);
    assert_true(q->trials[0].beside_start.ns == 102 && q->trials[0].start.high_ns == 151);
    assert_string_equal(q->trials[0].start_name, "hand");
    assert_true(q->trials[1].variant.ns == 0 && q->trials[1].error < 0);
    assert_null(k->variants[0].disabled);
    assert_int_equal(k->start_count, 1);
    bundle_close(b);
}

/* A disabled one is skipped, and said: an unmodified start of the same GPU stands in. */
static void disabled_variants_are_passed_over(void **state) {
    (void)state;
    const bundle_qualified list[] = {qualified("h200", false, BUNDLE_VERDICT_SLOWER)};
    write_qualified(in_folder("q"), list, 1);
    bundle *b = open_ok(in_folder("q"));
    bundle_choice c = resolve_ok(b, "h200", 90, 128, 0.3);
    assert_int_equal(c.rung, BUNDLE_RUNG_EXACT);
    assert_int_equal(c.role, BUNDLE_ROLE_START);
    assert_string_equal(c.variant->ptx, PTX_START);
    assert_string_equal(c.passed_over->ptx, PTX_H200);
    assert_string_equal(c.why, "it is slower");
    c = resolve_ok(b, "h100", 90, 128, 0.3);
    assert_int_equal(c.rung, BUNDLE_RUNG_CAPABILITY);
    assert_string_equal(c.variant->ptx, PTX_START);
    assert_string_equal(c.passed_over->ptx, PTX_H200);
    c = resolve_ok(b, "h200", 90, 512, 0.3); /* outside of all shapes: nothing was passed over */
    assert_int_equal(c.rung, BUNDLE_RUNG_BASELINE);
    assert_int_equal(c.role, BUNDLE_ROLE_BASELINE);
    assert_null(c.passed_over);
    bundle_close(b);
}

/* Which result counts: of one GPU the measured one; elsewhere, whether any passes. */
static void measured_results_come_before_modelled(void **state) {
    (void)state;
    static const bundle_verdict pass = BUNDLE_VERDICT_PASS, slow = BUNDLE_VERDICT_SLOWER;
    const struct {
        bundle_qualified list[3];
        size_t count, kept;
        bool here, there, disabled; /* handed out on h200, on another GPU; nowhere */
    } rows[] = {
        {{qualified("h200", true, slow)}, 1, 1, false, false, true},
        {{qualified("h200", false, pass), qualified("h200", true, slow)}, 2, 2, true, true, false},
        {{qualified("h200", false, slow), qualified("h200", true, pass)}, 2, 2, false, false, true},
        {{qualified("h200", false, slow), qualified("h200", false, pass)}, 2, 1, true, true, false},
        {{qualified("h200", true, slow), qualified("h200", true, pass)}, 2, 1, true, true, false},
        {{qualified("h200", false, pass), qualified("h100", false, slow)}, 2, 2, true, true, false},
        {{qualified("h200", false, slow), qualified("h100", false, pass)},
         2,
         2,
         false,
         true,
         false},
        {{qualified("h200", false, slow), qualified("h100", true, pass)}, 2, 2, false, false, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ev_arena *arena = ev_arena_new();
        bundle_variant v = variant_of(PTX_H200, "h200", "NVIDIA H200", 90);
        ev_error err = {0};
        for (size_t k = 0; k < rows[i].count; k++)
            assert_int_equal(bundle_qualify(arena, &v, &rows[i].list[k], &err), EV_OK);
        if (v.qualified_count != rows[i].kept ||
            (bundle_disabled(&v, "h200") == NULL) != rows[i].here ||
            (bundle_disabled(&v, "b200") == NULL) != rows[i].there ||
            (v.disabled != NULL) != rows[i].disabled)
            fail_msg("case %zu", i);
        ev_arena_free(arena);
    }
}

/* The gain of a GPU's own qualification counts before that of the tuning. */
static void gains_are_of_the_gpu(void **state) {
    (void)state;
    const bundle_qualified list[] = {qualified("h200", false, BUNDLE_VERDICT_PASS)};
    write_qualified(in_folder("q"), list, 1);
    bundle *b = open_ok(in_folder("q"));
    const bundle_variant *v = &bundle_find(b, "add")->variants[1];
    assert_true(bundle_gain(v, "h200") > 2.99 && bundle_gain(v, "h200") < 3.01);
    assert_true(bundle_gain(v, "h100") > 1.99 && bundle_gain(v, "h100") < 2.01);
    assert_true(bundle_gain(v, NULL) > 1.99 && bundle_gain(v, NULL) < 2.01);
    bundle_close(b);
}

/* "manifest.json:LINE:COLUMN:" */
static bool has_place(const char *text) {
    const char *at = strstr(text, "manifest.json:");
    for (int i = 0; i < 2 && at != NULL; i++) {
        at = strchr(at, ':') + 1;
        size_t digits = strspn(at, "0123456789");
        at = digits > 0 && at[digits] == ':' ? at + digits : NULL;
    }
    return at != NULL;
}

static void hostile_qualifications_are_named(void **state) {
    (void)state;
    static const struct {
        const char *from, *to, *words;
    } rows[] = {
        {"\"verdict\": \"slower\"", "\"verdict\": \"slow\"", "there is no verdict 'slow'"},
        {"\"verdict\": \"slower\"", "\"verdict\": \"pass\"", "'pass' has no 'reason'"},
        {"\"verdict\": \"slower\"", "\"verdict\": 1", "verdict"},
        {"\"disabled\": \"it is slower\"", "\"disabled\": \"\"", "say why"},
        {"\"disabled\": \"it is slower\"", "\"disabled\": true", "disabled"},
        {"\"driver\": \"CUDA driver 13.0\"", "\"drivr\": \"\"", "did you mean 'driver'"},
        {"\"low_ns\": 101.0", "\"low_ns\": -1", "low_ns <= ns"},
        {"\"low_ns\": 101.0", "\"low_ns\": 1e300", "low_ns <= ns"},
        {"\"ns\": 102.0", "\"ns\": 0", "low_ns <= ns"},
        {"\"high_ns\": 103.0,", "", "high_ns"},
        {"\"start_name\": \"hand\",", "", "go together"},
        {"\"beside_start\": {", "\"beside_start\": 7, \"x\": {", "must be an object"},
        {"\"error\": 0.25", "\"error\": -0.25", "not below 0"},
        {"\"qualified\": [", "\"qualified\": [7,", "qualified[0]"},
        {"\"qualified\": [", "\"qualified\": {}, \"y\": [", "must be an array"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bundle_qualified list[] = {qualified("h200", false, BUNDLE_VERDICT_SLOWER)};
        write_qualified(in_folder("h"), list, 1);
        edit_manifest(in_folder("h"), rows[i].from, rows[i].to);
        bundle *b = NULL;
        ev_error err = {0};
        if (bundle_open(in_folder("h"), &b, &err) != EV_BAD)
            fail_msg("%s is taken", rows[i].to);
        if (!has_place(err.text) || strstr(err.text, rows[i].words) == NULL)
            fail_msg("'%s' is not in: %s", rows[i].words, err.text);
    }
}

/* ev_file_write would wait for the disk each time. */
static bool write_fast(const char *path, const char *text, size_t length) {
    FILE *file = fopen(path, "wb");
    if (file == NULL)
        return false;
    bool whole = fwrite(text, 1, length, file) == length;
    return fclose(file) == 0 && whole;
}

/* A manifest with random damage is opened or refused, and never trusted further. */
static void damaged_manifests_do_no_harm(void **state) {
    (void)state;
    const bundle_qualified list[] = {qualified("h200", false, BUNDLE_VERDICT_SLOWER)};
    write_qualified(in_folder("m"), list, 1);
    char path[200];
    (void)snprintf(path, sizeof path, "%s", in_folder("m/manifest.json"));
    char *text = read_text(path);
    size_t length = strlen(text), refused = 0;
    char *changed = malloc(length + 1);
    assert_non_null(changed);
    ev_pcg rng = ev_pcg_seed(20, 1);
    for (int i = 0; i < 600; i++) {
        static const char letters[] = "0123456789-.e\",:{}[]truefalsn \\\x01\xff";
        memcpy(changed, text, length + 1);
        for (uint32_t k = ev_pcg_below(&rng, 3) + 1; k > 0; k--)
            changed[ev_pcg_below(&rng, (uint32_t)length)] =
                letters[ev_pcg_below(&rng, sizeof letters - 1)];
        assert_true(write_fast(path, changed, length));
        bundle *b = NULL;
        ev_error err = {0};
        ev_status status = bundle_open(in_folder("m"), &b, &err);
        if (status != EV_OK) {
            assert_int_equal(status, EV_BAD);
            assert_true(err.text[0] != '\0');
            refused++;
            continue;
        }
        bundle_number shape[] = {{"N", false, 128}, {"density", true, 0.3}};
        bundle_choice choice;
        (void)(bundle_resolve(
                   b, &(bundle_request){"add", "h200", 90, shape, 2, NULL, 0, false, 0, false, 0},
                   &choice, &err) == EV_OK);
        bundle_close(b);
    }
    assert_true(refused > 200 && refused < 600);
    free(changed);
    free(text);
}

static void does_not_write_over_other_things(void **state) {
    (void)state;
    ev_error err = {0};
    assert_int_equal(ev_dir_make(in_folder("mine"), NULL), EV_OK);
    assert_int_equal(ev_file_write(in_folder("mine/letter"), "dear", 4, NULL), EV_OK);
    assert_int_equal(write_sample(in_folder("mine"), false, &err), EV_BAD);
    assert_non_null(strstr(err.text, "something else is there"));
    assert_true(ev_path_exists(in_folder("mine/letter")));
    assert_int_equal(write_sample(in_folder("mine/letter"), false, &err), EV_BAD);
    assert_int_equal(write_sample(in_folder("no/where"), false, &err), EV_BAD);
    assert_non_null(strstr(err.text, "no folder can be made there"));
    assert_int_equal(bundle_check_target("/proc/evoke", &err), EV_BAD);
}

/* A limit on file sizes stands for a full disk: the same errors come back. */
static void a_full_disk_leaves_nothing(void **state) {
    (void)state;
    struct rlimit before, small = {0};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){64, before.rlim_max};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    ev_error err = {0};
    ev_status status = write_sample(in_folder("full"), false, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, EV_INFRA);
    assert_false(ev_path_exists(in_folder("full")));
    char left[160];
    (void)snprintf(left, sizeof left, "%s.new-%ld", in_folder("full"), (long)getpid());
    assert_false(ev_path_exists(left));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(ranges_cover_the_cases),
        cmocka_unit_test(equal_content_gives_equal_bytes),
        cmocka_unit_test(resolves_by_rungs),
        cmocka_unit_test(alignments_are_requirements),
        cmocka_unit_test(bold_variants_have_to_be_allowed),
        cmocka_unit_test(bad_marks_are_refused),
        cmocka_unit_test(never_leaves_the_validated_shapes),
        cmocka_unit_test(resolve_names_what_is_wrong),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(bad_manifests_are_named),
        cmocka_unit_test(bad_launches_are_named),
        cmocka_unit_test(unchanged_content_gives_the_same_bytes),
        cmocka_unit_test(qualifications_are_read_back),
        cmocka_unit_test(disabled_variants_are_passed_over),
        cmocka_unit_test(measured_results_come_before_modelled),
        cmocka_unit_test(gains_are_of_the_gpu),
        cmocka_unit_test(hostile_qualifications_are_named),
        cmocka_unit_test(damaged_manifests_do_no_harm),
        cmocka_unit_test(does_not_write_over_other_things),
        cmocka_unit_test(a_full_disk_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
