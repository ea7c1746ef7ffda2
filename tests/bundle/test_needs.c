/* What a variant's PTX asks of a driver: found in the PTX, written, held against the PTX and the
 * table of drivers. */
#include "bundle/needs.h"

#include "base/file.h"
#include "base/json.h"
#include "base/ptx/versions.h"
#include "bundle/bundle.h"
#include "tests/bundle/sample.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void heads_are_found(void **state) {
    (void)state;
    static const struct {
        const char *ptx;
        int version;
        const char *target;
    } rows[] = {
        {".version 8.4\n.target sm_90\n", 84, "sm_90"},
        {"// a\n/* .version 1.0 */ .version 7.0 .target sm_90a, debug\n", 70, "sm_90a"},
        {"//\n\n\t.version 6.5\n//b\n.target sm_100f", 65, "sm_100f"},
        {".version 10.3\n.target sm_90\n", 103, "sm_90"},
        {".target sm_90\n.version 8.4\n", 0, ""},
        {".version 8\n.target sm_90\n", 0, ""},
        {".version 8.45\n.target sm_90\n", 0, ""},
        {".version 8.4\n.address_size 64\n", 0, ""},
        {".version 8.4\n.target sm_9000000000000000000000\n", 0, ""},
        {".version 8.4 /* .target sm_90", 0, ""},
        {".version", 0, ""},
        {"/*", 0, ""},
        {"", 0, ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        needs_head head = needs_of_ptx(rows[i].ptx, strlen(rows[i].ptx));
        if (head.version != rows[i].version || strcmp(head.target, rows[i].target) != 0)
            fail_msg("row %zu: %d, %s", i, head.version, head.target);
    }
    assert_int_equal(needs_of_ptx(".version 8.4\n.target sm_90", 13).version, 0);
    assert_int_equal(needs_target("sm_90a"), 90);
    assert_int_equal(needs_target("sm_90ab"), 0);
    assert_int_equal(needs_target("compute_90"), 0);
    assert_int_equal(needs_target("sm_"), 0);
}

/* The oldest driver that takes a version takes it by ev_ptx_taken, too, and the one before does
 * not. */
static void the_table_has_the_least_driver(void **state) {
    (void)state;
    static const int rows[][3] = {{50, 9000, 384},  {60, 9000, 384},  {65, 10020, 440},
                                  {70, 11000, 450}, {78, 11080, 520}, {85, 12050, 555},
                                  {86, 12070, 565}, {90, 13000, 580}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ev_ptx_row *row = ev_ptx_needs(rows[i][0]);
        assert_non_null(row);
        assert_int_equal(row->cuda, rows[i][1]);
        assert_int_equal(row->branch, rows[i][2]);
        assert_true(ev_ptx_taken(row->cuda) >= rows[i][0]);
        assert_true(ev_ptx_taken(row->cuda - 10) < rows[i][0]);
    }
    assert_null(ev_ptx_needs(91));
}

static bundle *open_sample(const char *name) {
    bundle *b = NULL;
    ev_error err = {0};
    if (bundle_open(sample_path(name), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    return b;
}

static void the_writer_tells_them(void **state) {
    (void)state;
    ev_error err = {0};
    sample s;
    const launch_rule rule = {
        "add", {"ceil_div(N, TILE)", "1", "1"}, {"TILE", "1", "1"}, "4 * N", NULL, 0};
    const launch_plan plan = {.launches = &rule, .launch_count = 1};
    sample_fill(&s);
    s.variant.plan = &plan;
    s.baseline.ptx = "// no directive\n";
    s.baseline.ptx_bytes = strlen(s.baseline.ptx);
    assert_int_equal(bundle_write(sample_path("told"), &s.content, &err), EV_OK);
    bundle *b = open_sample("told");
    const bundle_kernel *k = bundle_kernel_at(b, 0);
    const bundle_variant *v = &k->variants[0];
    assert_int_equal(v->ptx_version, 70);
    assert_string_equal(v->target, "sm_70");
    assert_int_equal(v->least_cuda, 11000);
    assert_int_equal(v->least_driver, 450);
    assert_int_equal(v->dynamic_shared_bytes, 4 * 4096);
    assert_int_equal(k->baselines[0].ptx_version, 0);
    assert_string_equal(k->baselines[0].target, "");
    assert_int_equal(k->baselines[0].least_cuda, 0);
    bundle_close(b);
}

/* Changes the first variant by a text, and expects the reader to say `words`; `is_lazy`: only when
 * the PTX is read. */
static void expect_refusal(const char *from, const char *to, const char *words, bool is_lazy) {
    ev_error err = {0};
    bundle *b = NULL;
    char *text = NULL, *ptx = NULL;
    size_t bytes = 0;
    assert_int_equal(sample_write(sample_path("lied"), &err), EV_OK);
    const char *path = sample_path("lied/manifest.json");
    assert_int_equal(ev_file_read(path, &text, &bytes, &err), EV_OK);
    char *variants = strstr(text, "\"variants\"");
    char *place = strstr(variants, from);
    if (place == NULL)
        fail_msg("%s is not there", from);
    ev_str changed = EV_STR_EMPTY;
    ev_str_append_n(&changed, text, (size_t)(place - text));
    ev_str_append(&changed, to);
    ev_str_append(&changed, place + strlen(from));
    assert_int_equal(ev_file_write(path, ev_str_text(&changed), changed.length, &err), EV_OK);
    ev_str_free(&changed);
    free(text);
    assert_int_equal(bundle_open(sample_path("lied"), &b, &err), EV_BAD);
    if (strstr(err.text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, err.text);
    assert_int_equal(bundle_open_lazy(sample_path("lied"), &b, &err), is_lazy ? EV_OK : EV_BAD);
    if (is_lazy) {
        const bundle_variant *v = &bundle_kernel_at(b, 0)->variants[0];
        assert_int_equal(bundle_read_ptx(b, v, &ptx, &bytes, &err), EV_BAD);
        assert_non_null(strstr(err.text, words));
        bundle_close(b);
    }
}

static void the_reader_holds_them(void **state) {
    (void)state;
    expect_refusal("\"ptx_version\": \"7.0\"", "\"ptx_version\": \"6.0\"",
                   "is PTX 7.0 for \"sm_70\", and the manifest says 6.0 for \"sm_70\"", true);
    expect_refusal("\"target\": \"sm_70\"", "\"target\": \"sm_70a\"", "says 7.0 for \"sm_70a\"",
                   true);
    expect_refusal("\"ptx_version\": \"7.0\"", "\"ptx_version\": \"7\"", "is no PTX version",
                   false);
    expect_refusal("\"target\": \"sm_70\"", "\"target\": \"sm_80\"", "not the target of the GPU",
                   false);
    expect_refusal("\"target\": \"sm_70\",", "", "go together", false);
    expect_refusal("\"least_driver\": 450,", "", "go together", false);
    expect_refusal("\"least_cuda\": \"11.0\"", "\"least_cuda\": \"eleven\"", "is no CUDA version",
                   false);
    expect_refusal("\"least_driver\": 450", "\"least_driver\": -1", "a branch of drivers", false);
    expect_refusal("\"registers\": 8", "\"registers\": -8", "a resource is from 0", false);
    expect_refusal("\"dynamic_shared_bytes\": 0,", "", "dynamic_shared_bytes", false);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_found),
        cmocka_unit_test(the_table_has_the_least_driver),
        cmocka_unit_test(the_writer_tells_them),
        cmocka_unit_test(the_reader_holds_them),
    };
    return cmocka_run_group_tests(tests, sample_make_folder, sample_remove_folder);
}
