/* Report of a bundle: the page has the times, errors, edits and verdicts of the manifest, as text
 * that no browser takes for markup, and nothing of a search. */
#include "tuner/report/report.h"

#include "bundle/bundle.h"
#include "tests/bundle/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static void expect(const ev_str *page, const char *part, size_t times) {
    size_t found = count_of(ev_str_text(page), part);
    if (found != times)
        fail_msg("the page has '%s' %zu times, not %zu", part, found, times);
}

/* The page of what is written to a folder. */
static ev_str page_of(const sample *s) {
    ev_str page = EV_STR_EMPTY;
    OK(bundle_write(sample_path("b"), &s->content, &err));
    OK(report_bundle(sample_path("b"), &page, &err));
    assert_int_equal(strncmp(ev_str_text(&page), "<!DOCTYPE html>", 15), 0);
    assert_int_equal(count_of(page.data, "<tr>"), count_of(page.data, "</tr>"));
    assert_int_equal(count_of(page.data, "<td"), count_of(page.data, "</td>"));
    assert_int_equal(count_of(page.data, "<section"), count_of(page.data, "</section>"));
    expect(&page, "http", 0);     /* nothing from a network */
    expect(&page, "<script>", 1); /* the page's own */
    return page;
}

static void test_results(void **state) {
    (void)state;
    static const char *const edits[] = {"unrolls 4 times: 90 % of the gain",
                                        "<script>alert(1)</script>"};
    sample s;
    sample_fill(&s);
    s.kernel.doc = "doubles <b>";
    s.variant.edits = edits;
    s.variant.edit_count = 2;
    s.variant.error = 3e-6;
    s.variant.seed = 7;
    ev_str page = page_of(&s);
    expect(&page, "1 kernel, 1 tuned variant for NVIDIA H200 SXM 141GB.", 1);
    expect(&page, "<td data-v=\"2\">2.00x</td>", 1); /* 200 ns by 100 ns */
    expect(&page, "<td data-v=\"3\">3.00x</td>", 1);
    expect(&page, "<td data-v=\"1e-05\">1e-05</td>", 2); /* the tolerance */
    expect(&page, "<td class=\"t\">modelled</td>", 2);
    expect(&page, "<td class=\"t\">no</td>", 2); /* not disabled */
    expect(&page, "worst error over 2 cases is 3e-06, and the tolerance is 1e-05", 1);
    expect(&page, "doubles &lt;b&gt;", 1);
    expect(&page, "&lt;script&gt;alert(1)", 1);
    expect(&page, "unrolls 4 times <span class=\"share\">", 1);
    expect(&page, "Not known: ", 1); /* the task of the sample does not load */
    /* what the bundle has not */
    expect(&page, "hand-tuned", 0);
    expect(&page, "evaluations", 0);
    expect(&page, "What evoke qualify found", 0);
    expect(&page, "isabled on every GPU", 0);
    expect(&page, "NaN", 0);
    ev_str_free(&page);
}

static void test_starts_and_gpus(void **state) {
    (void)state;
    sample s;
    sample_fill(&s);
    static const bundle_number shape[] = {{"N", false, 64}};
    static const bundle_case timed[] = {
        {"small", "search", shape, 1, 150, 150, 150, 200, -1, 0, 0}};
    bundle_variant start = s.variant, two[2] = {s.variant, s.variant};
    start.start = "hand";
    start.cases = timed;
    start.case_count = 1;
    two[1].gpu_id = "a100";
    two[1].gpu_name = "A & B";
    two[1].modelled = false;
    two[1].cases = timed;
    two[1].case_count = 1;
    s.kernel.starts = &start;
    s.kernel.start_count = 1;
    s.kernel.variants = two;
    s.kernel.variant_count = 2;
    ev_str page = page_of(&s);
    expect(&page, "1 kernel, 2 tuned variants.", 1);
    expect(&page, ">hand-tuned</button>", 1);
    expect(&page, ">GPU</button>", 1);
    expect(&page, "<td data-v=\"150\">150 ns</td>", 2); /* the start's, and the other GPU's */
    expect(&page, "<td class=\"t\">A &amp; B</td>", 1);
    expect(&page, "<td class=\"t\">measured</td>", 1);
    expect(&page, "<td data-v=\"0\">-</td>", 3); /* two times of starts, one error: not known */
    ev_str_free(&page);
}

static void test_qualified(void **state) {
    (void)state;
    static const bundle_trial measured[] = {
        {.name = "small", .verdict = BUNDLE_VERDICT_PASS, .error = 2e-6},
        {.name = "large",
         .verdict = BUNDLE_VERDICT_SLOWER,
         .variant = {300, 290, 310},
         .baseline = {150, 140, 160},
         .error = -1}};
    static const bundle_trial modelled[] = {{.name = "large",
                                             .verdict = BUNDLE_VERDICT_PASS,
                                             .variant = {100, 100, 100},
                                             .baseline = {250, 250, 250},
                                             .beside_start = {100, 100, 100},
                                             .start = {125, 125, 125},
                                             .start_name = "hand",
                                             .error = 1e-6}};
    const bundle_qualified both[] = {{.gpu_id = "h200",
                                      .gpu_name = "NVIDIA H200 SXM 141GB",
                                      .sm = 90,
                                      .sms = 132,
                                      .driver = "",
                                      .modelled = true,
                                      .verdict = BUNDLE_VERDICT_PASS,
                                      .reason = "",
                                      .trials = modelled,
                                      .trial_count = 1},
                                     {.gpu_id = "h200",
                                      .gpu_name = "NVIDIA H200 SXM 141GB",
                                      .sm = 90,
                                      .sms = 132,
                                      .driver = "550.54",
                                      .verdict = BUNDLE_VERDICT_SLOWER,
                                      .reason = "case large: slower < baseline",
                                      .trials = measured,
                                      .trial_count = 2}};
    sample s;
    sample_fill(&s);
    s.variant.qualified = both;
    s.variant.qualified_count = 2;
    s.variant.disabled = both[1].reason;
    ev_str page = page_of(&s);
    expect(&page, "1 of 1 disabled", 1);
    expect(&page, "<td class=\"t\">yes</td>", 2);
    expect(&page, "Disabled on every GPU:</strong> case large: slower &lt; baseline", 1);
    expect(&page,
           "driver 550.54, measured times: <strong>slower</strong>, so the variant is disabled "
           "there: case large: slower &lt; baseline",
           1);
    expect(&page, "modelled times: <strong>pass</strong>. Another entry of this GPU counts", 1);
    expect(&page, "<td data-v=\"300\">300 ns [290 ns, 310 ns]</td>", 1);
    expect(&page, "<td data-v=\"150\">150 ns [140 ns, 160 ns]</td>", 1);
    expect(&page, "<td data-v=\"0.5\">0.50x</td>", 1);
    expect(&page, "1 cases more passed and is not timed", 0);
    expect(&page, "1 more case passed and is not timed", 1);
    expect(&page, "<td data-v=\"125\">125 ns</td>", 1); /* modelled: without an interval */
    ev_str_free(&page);
}

static void test_refused(void **state) {
    (void)state;
    ev_str page = EV_STR_EMPTY;
    sample s;
    sample_fill(&s);
    s.kernel.variant_count = 0;
    OK(bundle_write(sample_path("bare"), &s.content, &err));
    assert_int_equal(report_bundle(sample_path("bare"), &page, &err), EV_BAD);
    assert_non_null(strstr(err.text, "has no tuned variant"));
    assert_int_equal(report_bundle(sample_path("none"), &page, &err), EV_BAD);
    assert_int_equal(page.length, 0);
    ev_str_free(&page);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_starts_and_gpus),
        cmocka_unit_test(test_qualified),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
