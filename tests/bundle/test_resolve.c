/* Resolving by what the records say: the fastest at the nearest validated shape, nothing that the
 * records call slower than the baseline or an unmodified start, and the GPU's size before its
 * capability. */
#include "base/pcg.h"
#include "bundle/bundle.h"
#include "bundle/reader.h"
#include "tests/bundle/sample.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const bundle_number at_64[] = {{"N", false, 64}};
static const bundle_number at_1024[] = {{"N", false, 1024}};

/* Variants and starts of `add`, each with its times at N = 64 and at N = 1024 (the baseline's:
 * 100). */
typedef struct timed {
    const char *ptx, *gpu;
    int sm, sms;
    double small, large;
    bool is_start;
} timed;

static bundle *open_timed(const timed *rows, size_t count) {
    static bundle_case both[4][2];
    bundle_variant variants[4], starts[4];
    sample s;
    bundle *b = NULL;
    ev_error err = {0};
    sample_fill(&s);
    s.kernel.variants = variants;
    s.kernel.variant_count = 0;
    s.kernel.starts = starts;
    for (size_t i = 0; i < count; i++) {
        const timed *t = &rows[i];
        bundle_variant v = s.variant;
        both[i][0] =
            (bundle_case){"small", "search", at_64, 1, t->small, t->small, t->small, 100, 0, 0, 0};
        both[i][1] = (bundle_case){"large",  "held-out", at_1024, 1, t->large, t->large,
                                   t->large, 100,        0,       0, 0};
        v.cases = both[i];
        v.ptx = t->ptx;
        v.ptx_bytes = strlen(t->ptx);
        v.gpu_id = v.gpu_name = t->gpu;
        v.sm = t->sm;
        v.sms = t->sms;
        if (t->is_start)
            starts[s.kernel.start_count++] = v;
        else
            variants[s.kernel.variant_count++] = v;
    }
    if (bundle_write(sample_path("timed"), &s.content, &err) != EV_OK ||
        bundle_open(sample_path("timed"), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    return b;
}

static bundle_choice resolve_on(const bundle *b, const char *gpu, int sm, int sms, double n) {
    bundle_number shape[] = {{"N", false, n}};
    bundle_request request = {
        .kernel = "add", .gpu = gpu, .sm = sm, .shape = shape, .shape_count = 1, .sms = sms};
    bundle_choice choice = {0};
    ev_error err = {0};
    if (bundle_resolve(b, &request, &choice, &err) != EV_OK)
        fail_msg("%s", err.text);
    return choice;
}

/* What drivers call a GPU is its model, with the vendor's name and without. */
static void drivers_names_are_known(void **state) {
    (void)state;
    static const char *const names[] = {"H200", "H200 NVL"};
    static const struct {
        const char *gpu;
        bundle_rung rung;
    } rows[] = {{"h200", BUNDLE_RUNG_EXACT},
                {"NVIDIA H200 SXM 141GB", BUNDLE_RUNG_EXACT},
                {"NVIDIA H200", BUNDLE_RUNG_EXACT},
                {"nvidia h200 nvl", BUNDLE_RUNG_EXACT},
                {"NVIDIA H200 (modelled)", BUNDLE_RUNG_EXACT},
                {"NVIDIA GH200", BUNDLE_RUNG_CAPABILITY},
                {"NVIDIA H20", BUNDLE_RUNG_CAPABILITY},
                {"", BUNDLE_RUNG_CAPABILITY}};
    sample s;
    bundle *b = NULL;
    ev_error err = {0};
    sample_fill(&s);
    s.variant.driver_names = names;
    s.variant.driver_name_count = 2;
    assert_int_equal(bundle_write(sample_path("named"), &s.content, &err), EV_OK);
    assert_int_equal(bundle_open(sample_path("named"), &b, &err), EV_OK);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(resolve_on(b, rows[i].gpu, 70, 80, 64).rung, rows[i].rung);
    bundle_close(b);
}

/* A bundle for the A100 that `evoke qualify` has judged on a modelled H200: the driver's name of an
 * H200 finds the verdict, and so do names with another vendor's part. */
static void verdicts_are_found_by_drivers_names(void **state) {
    (void)state;
    static const char *const names[] = {"H200"};
    static const char *const asked[] = {"NVIDIA H200", "H200", "h200", "NVIDIA H200 SXM 141GB"};
    const bundle_qualified slow = {.gpu_id = "h200",
                                   .gpu_name = "NVIDIA H200 SXM 141GB",
                                   .sm = 90,
                                   .sms = 132,
                                   .driver_names = names,
                                   .driver_name_count = 1,
                                   .driver = "",
                                   .modelled = true,
                                   .verdict = BUNDLE_VERDICT_SLOWER,
                                   .reason = "it is slower"};
    bundle_qualified good = slow;
    good.gpu_id = good.gpu_name = "a100";
    good.driver_name_count = 0;
    good.verdict = BUNDLE_VERDICT_PASS;
    good.reason = "";
    sample s;
    bundle *b = NULL;
    ev_error err = {0};
    ev_arena *arena = ev_arena_new();
    sample_fill(&s);
    s.variant.gpu_id = s.variant.gpu_name = "a100";
    assert_int_equal(bundle_qualify(arena, &s.variant, &slow, &err), EV_OK);
    assert_int_equal(bundle_qualify(arena, &s.variant, &good, &err), EV_OK);
    assert_int_equal(bundle_write(sample_path("judged"), &s.content, &err), EV_OK);
    assert_int_equal(bundle_open(sample_path("judged"), &b, &err), EV_OK);
    for (size_t i = 0; i < sizeof asked / sizeof asked[0]; i++) {
        bundle_choice c = resolve_on(b, asked[i], 90, 132, 64);
        assert_int_equal(c.role, BUNDLE_ROLE_BASELINE);
        assert_string_equal(c.why, "it is slower");
    }
    assert_int_equal(resolve_on(b, "NVIDIA H100", 90, 132, 64).role, BUNDLE_ROLE_VARIANT);
    bundle_close(b);
    ev_arena_free(arena);
}

static void the_fastest_at_the_nearest_shape_is_chosen(void **state) {
    (void)state;
    const timed rows[] = {{"// h200\n", "h200", 90, 132, 50, 90, false},
                          {"// other\n", "h200", 90, 132, 80, 60, false}};
    bundle *b = open_timed(rows, 2);
    assert_string_equal(resolve_on(b, "h200", 90, 132, 64).variant->ptx, "// h200\n");
    assert_string_equal(resolve_on(b, "h200", 90, 132, 192).variant->ptx, "// h200\n");
    assert_string_equal(resolve_on(b, "h200", 90, 132, 320).variant->ptx, "// other\n");
    bundle_choice c = resolve_on(b, "h200", 90, 132, 1024);
    assert_string_equal(c.variant->ptx, "// other\n");
    assert_true(c.ratio == 0.6);
    bundle_close(b);
}

/* An unmodified start that the records call faster is handed out where it is, and so is the
 * baseline. */
static void slower_ones_are_not_handed_out(void **state) {
    (void)state;
    const timed rows[] = {{"// h200\n", "h200", 90, 132, 60, 84, false},
                          {"// start\n", "h200", 90, 132, 70, 70, true}};
    bundle *b = open_timed(rows, 2);
    bundle_choice c = resolve_on(b, "h200", 90, 132, 64);
    assert_string_equal(c.variant->ptx, "// h200\n");
    assert_int_equal(c.role, BUNDLE_ROLE_VARIANT);
    c = resolve_on(b, "h200", 90, 132, 1024);
    assert_string_equal(c.variant->ptx, "// start\n");
    assert_int_equal(c.role, BUNDLE_ROLE_START);
    bundle_close(b);
    const timed slow[] = {{"// h200\n", "h200", 90, 132, 60, 101, false}};
    b = open_timed(slow, 1);
    assert_string_equal(resolve_on(b, "h200", 90, 132, 64).variant->ptx, "// h200\n");
    c = resolve_on(b, "h200", 90, 132, 1024);
    assert_string_equal(c.variant->ptx, SAMPLE_BASE_PTX);
    assert_int_equal(c.rung, BUNDLE_RUNG_BASELINE);
    assert_string_equal(c.passed_over->ptx, "// h200\n");
    assert_non_null(strstr(c.why, "slower than the baseline at the nearest validated shape"));
    bundle_close(b);
}

static void as_many_multiprocessors_come_before_fewer(void **state) {
    (void)state;
    const timed rows[] = {{"// h200\n", "h200", 90, 132, 60, 60, false},
                          {"// other\n", "h20", 90, 78, 40, 40, false},
                          {"// a100\n", "a100", 80, 108, 20, 20, false},
                          {"// start\n", "t4", 75, 40, 10, 10, false}};
    bundle *b = open_timed(rows, 4);
    bundle_choice c = resolve_on(b, "h100", 90, 132, 64);
    assert_int_equal(c.rung, BUNDLE_RUNG_SIZE);
    assert_string_equal(c.variant->ptx, "// h200\n");
    c = resolve_on(b, "gh200", 90, 144, 64);
    assert_int_equal(c.rung, BUNDLE_RUNG_CAPABILITY);
    assert_string_equal(c.variant->ptx, "// other\n");
    c = resolve_on(b, "rtx4090", 89, 128, 64); /* the nearest capability, not the greatest gain */
    assert_int_equal(c.rung, BUNDLE_RUNG_PTX);
    assert_string_equal(c.variant->ptx, "// a100\n");
    bundle_close(b);
}

/* A case may give a real number as a whole one, which then has no multiples. */
static void a_real_range_has_no_multiple(void **state) {
    (void)state;
    const bundle_number whole[] = {{"density", false, 1}}, half[] = {{"density", true, 0.5}};
    const bundle_case cases[] = {{.name = "whole", .shape = whole, .shape_count = 1},
                                 {.name = "half", .shape = half, .shape_count = 1}};
    const bundle_variant v = {.cases = cases, .case_count = 2};
    launch_range range = bundle_range(&v, 0);
    assert_true(range.is_real && range.low == 0.5 && range.high == 1);
    assert_int_equal(range.multiple, 0);
}

/* ---- many variants ---- */

#define MANY 24
#define SHAPES 5

/* Against a plain search over all variants: least of the worst ratios at the nearest shapes. */
static double least_ratio(double ratios[MANY][SHAPES], double n) {
    double nearest = INFINITY, least = INFINITY;
    for (int s = 0; s < SHAPES; s++)
        nearest = fmin(nearest, fabs(log2(n) - 2 * s));
    for (int i = 0; i < MANY; i++) {
        double worst = 0;
        for (int s = 0; s < SHAPES; s++) {
            if (fabs(log2(n) - 2 * s) == nearest)
                worst = fmax(worst, ratios[i][s]);
        }
        least = fmin(least, worst);
    }
    return least;
}

/* Shapes 1, 4, 16, 64, 256: 2 and 8 are as near to two of them. */
static void many_variants_resolve_as_each_alone(void **state) {
    (void)state;
    static bundle_number shapes[SHAPES];
    static bundle_case cases[MANY][SHAPES];
    static bundle_variant variants[MANY];
    static char ptx[MANY][16];
    ev_pcg rng = ev_pcg_seed(7, 7);
    for (int turn = 0; turn < 6; turn++) {
        double ratios[MANY][SHAPES];
        sample s;
        bundle *b = NULL;
        ev_error err = {0};
        sample_fill(&s);
        for (int i = 0; i < MANY; i++) {
            variants[i] = s.variant;
            (void)snprintf(ptx[i], sizeof ptx[i], "// %d\n", i);
            variants[i].ptx = ptx[i];
            variants[i].ptx_bytes = strlen(ptx[i]);
            variants[i].cases = cases[i];
            variants[i].case_count = SHAPES;
            for (int k = 0; k < SHAPES; k++) {
                double ns = 10.0 * (6 + turn + (int)ev_pcg_below(&rng, 8));
                shapes[k] = (bundle_number){"N", false, (double)(1 << (2 * k))};
                cases[i][k] = (bundle_case){"c", "search", &shapes[k], 1, ns, ns, ns, 100, 0, 0, 0};
                ratios[i][k] = ns / 100;
            }
        }
        s.kernel.variants = variants;
        s.kernel.variant_count = MANY;
        if (bundle_write(sample_path("many"), &s.content, &err) != EV_OK ||
            bundle_open(sample_path("many"), &b, &err) != EV_OK)
            fail_msg("%s", err.text);
        for (int n = 1; n <= 256; n++) {
            bundle_choice c = resolve_on(b, "h200", 70, 132, n);
            double least = least_ratio(ratios, n);
            if (c.ratio != (least > 1 ? 1 : least) ||
                (c.role == BUNDLE_ROLE_VARIANT) != (least <= 1) ||
                (c.passed_over != NULL) != (least > 1))
                fail_msg("turn %d, N = %d: %g, and not %g", turn, n, c.ratio, least);
        }
        bundle_close(b);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drivers_names_are_known),
        cmocka_unit_test(verdicts_are_found_by_drivers_names),
        cmocka_unit_test(the_fastest_at_the_nearest_shape_is_chosen),
        cmocka_unit_test(slower_ones_are_not_handed_out),
        cmocka_unit_test(as_many_multiprocessors_come_before_fewer),
        cmocka_unit_test(a_real_range_has_no_multiple),
        cmocka_unit_test(many_variants_resolve_as_each_alone),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
