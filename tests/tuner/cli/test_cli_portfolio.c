/* A portfolio from the search to the scheduler: two shapes want different variants of one kernel.
 */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/json.h"
#include "bundle/reader.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

/* Each block computes a factor for itself. Many elements a thread share this work, and few elements
 * a thread keep all multiprocessors busy. */
static const char stripe_cu[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void stripe(const float *x, float *y, int n) {\n"
    "    float factor = 1.0f;\n"
    "    for (int i = 0; i < 64; i++)\n"
    "        factor = factor * x[i] + 0.5f;\n"
    "    int first = blockIdx.x * 128 * PER + threadIdx.x;\n"
    "    for (int k = 0; k < PER; k++) {\n"
    "        int at = first + k * 128;\n"
    "        if (at < n)\n"
    "            y[at] = x[at] * factor;\n"
    "    }\n"
    "}\n";

static const char stripe_json[] =
    "{\"name\": \"stripe\", \"family\": \"tests\", \"doc\": \"y = x times a factor\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"
    "   \"data\": {\"generator\": \"uniform\", \"low\": 0.1, \"high\": 0.9}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"stripe.cu\",\n"
    "  \"grid\": \"ceil_div(n, 128 * PER)\", \"block\": 128,\n"
    "  \"macros\": [{\"name\": \"PER\", \"default\": 2, \"values\": [1, 2, 4, 16]}]}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 64}},\n"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 301}},\n"
    "  {\"name\": \"few\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": 16384},\n"
    "   \"weight\": 40},\n"
    "  {\"name\": \"many\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": "
    "2097152}},\n"
    "  {\"name\": \"other\", \"split\": \"held-out\", \"use\": \"check\", \"shape\": {\"n\": "
    "200}},\n"
    "  {\"name\": \"later\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": "
    "524288}},\n"
    "  {\"name\": \"least\", \"split\": \"adversarial\", \"use\": \"check\", \"shape\": {\"n\": "
    "65}}]}\n";

static int setup(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_write("stripe.cu", stripe_cu);
    cli_write("stripe.json", stripe_json);
    return 0;
}

/* The report of a search over all settings of PER. */
static json_t *tune(const char *shapes, const char *most, const char *name) {
    char records[64];
    (void)snprintf(records, sizeof records, "%s.sqlite", name);
    json_t *json =
        cli_json(CLI_RUN("tune", cli_path("stripe.json"), "--strategy", "macros", "--evaluations",
                         "8", "--no-structure", "--shapes", shapes, "--most", most, "--records",
                         cli_path(records), "--out", cli_path(name), "--json"),
                 0);
    json_t *list = json_object_get(json, "portfolios");
    assert_int_equal(json_array_size(list), 1);
    json_t *portfolio = json_incref(json_array_get(list, 0));
    json_decref(json);
    return portfolio;
}

static json_int_t per_of(const json_t *portfolio, size_t index) {
    const json_t *variant = json_array_get(json_object_get(portfolio, "variants"), index);
    const json_t *macros = json_object_get(json_object_get(variant, "genome"), "macros");
    return ev_json_integer(macros, "PER", 2);
}

static const json_t *shape_of(const json_t *portfolio, const char *name) {
    const json_t *shapes = json_object_get(portfolio, "shapes");
    for (size_t i = 0; i < json_array_size(shapes); i++) {
        if (strcmp(ev_json_text(json_array_get(shapes, i), "case", ""), name) == 0)
            return json_array_get(shapes, i);
    }
    fail_msg("the portfolio has no shape %s", name);
    return NULL;
}

static void two_variants_beat_the_best_single_one(void **state) {
    (void)state;
    json_t *one = tune("few,many", "1", "one"), *two = tune("few,many", "2", "two");
    assert_int_equal(json_array_size(json_object_get(one, "variants")), 1);
    assert_int_equal(json_array_size(json_object_get(two, "variants")), 2);
    double single = ev_json_number(one, "ns", 0), both = ev_json_number(two, "ns", 0);
    assert_true(both > 0 && both < single && single < ev_json_number(two, "baseline_ns", 0));
    const json_t *few = shape_of(two, "few"), *many = shape_of(two, "many");
    assert_true(ev_json_number(few, "weight", 0) == 40 && ev_json_number(many, "weight", 0) == 1);
    json_int_t for_few = ev_json_integer(few, "variant", -1);
    json_int_t for_many = ev_json_integer(many, "variant", -1);
    assert_true(for_few >= 0 && for_many >= 0 && for_few != for_many);
    assert_true(per_of(two, (size_t)for_few) < per_of(two, (size_t)for_many));
    json_decref(one);
    json_decref(two);
}

static double macro_of(const bundle_variant *v) {
    assert_int_equal(v->macro_count, 1);
    return v->macros[0].value;
}

static double resolved(const bundle *b, double n, bundle_rung *rung) {
    bundle_number shape[] = {{"n", false, n}};
    bundle_choice choice;
    bundle_request request = {
        .kernel = "stripe", .gpu = "h200", .sm = 90, .sms = 132, .shape = shape, .shape_count = 1};
    OK(bundle_resolve(b, &request, &choice, &err));
    *rung = choice.rung;
    return macro_of(choice.variant);
}

static void resolve_hands_out_each_at_its_shape(void **state) {
    (void)state;
    bundle *b = NULL;
    bundle_rung rung = BUNDLE_RUNG_BASELINE;
    OK(bundle_open(cli_path("two"), &b, &err));
    assert_int_equal(bundle_kernel_at(b, 0)->variant_count, 2);
    double few = resolved(b, 16384, &rung);
    assert_int_equal(rung, BUNDLE_RUNG_EXACT);
    double many = resolved(b, 2097152, &rung);
    assert_int_equal(rung, BUNDLE_RUNG_EXACT);
    assert_true(few == 1 && many > 2);
    assert_true(resolved(b, 20000, &rung) == few && resolved(b, 2000000, &rung) == many);
    assert_true(resolved(b, 4194304, &rung) == 2 && rung == BUNDLE_RUNG_BASELINE);
    bundle_close(b);
}

static void check_holds_all_members(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("check", cli_path("two"), "--json"), 0);
    const json_t *rows = json_object_get(json, "rows");
    size_t timed = 0;
    for (size_t i = 0; i < json_array_size(rows); i++)
        timed += strcmp(ev_json_text(json_array_get(rows, i), "case", ""), "many") == 0;
    assert_int_equal(timed, 2);
    assert_int_equal(json_array_size(json_object_get(json, "replays")), 2);
    json_decref(json);
}

/* Weights of a file stand before those of the task. */
static void weights_come_from_a_file(void **state) {
    (void)state;
    cli_write("weights.json", "{\"few\": 1, \"many\": 3}");
    json_t *portfolio = tune(cli_path("weights.json"), "1", "weighted");
    assert_true(ev_json_number(shape_of(portfolio, "few"), "weight", 0) == 1);
    assert_true(ev_json_number(shape_of(portfolio, "many"), "weight", 0) == 3);
    assert_true(per_of(portfolio, 0) > 2);
    json_decref(portfolio);
}

/* A finished run tells its portfolio again, and other shapes are another run. */
static void a_finished_run_has_its_portfolio(void **state) {
    (void)state;
    json_t *json =
        cli_json(CLI_RUN("tune", cli_path("stripe.json"), "--strategy", "macros", "--evaluations",
                         "8", "--no-structure", "--shapes", "few,many", "--most", "2", "--records",
                         cli_path("two.sqlite"), "--resume", "--json"),
                 0);
    const json_t *list = json_object_get(json, "portfolios");
    assert_int_equal(json_array_size(list), 1);
    assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "variants")), 2);
    json_decref(json);
    cli_expect_error(CLI_RUN("tune", cli_path("stripe.json"), "--strategy", "macros",
                             "--evaluations", "8", "--no-structure", "--records",
                             cli_path("two.sqlite"), "--resume"),
                     2, "shapes");
}

static void wrong_options_are_refused(void **state) {
    (void)state;
    const char *task = cli_path("stripe.json");
    cli_expect_error(CLI_RUN("tune", task, "--most", "2"), 2, "name the shapes");
    cli_expect_error(CLI_RUN("tune", task, "--shapes", "few", "--most", "0"), 2, "1 to 16");
    cli_expect_error(CLI_RUN("tune", task, "--shapes", "few", "--most", "17"), 2, "1 to 16");
    cli_expect_error(CLI_RUN("tune", task, "--shapes", "fewer"), 2, "the search times few, many");
    cli_expect_error(CLI_RUN("tune", task, "--shapes", "later"), 2, "no timed case");
    cli_expect_error(CLI_RUN("tune", task, cli_path("task.json"), "--shapes", "few"), 2,
                     "one task");
    cli_expect_error(CLI_RUN("tune", task, "--shapes", "./none.json"), 2, "none.json");
    cli_write("bad.json", "{\"few\": -1}");
    cli_expect_error(CLI_RUN("tune", task, "--shapes", cli_path("bad.json")), 2, "above 0");
    cli_write("bad.json", "[\"few\"]");
    cli_expect_error(CLI_RUN("tune", task, "--shapes", cli_path("bad.json")), 2, "object");
    cli_copy_changed("stripe.json", "weightless.json", "\"weight\": 40", "\"weight\": 0");
    cli_expect_error(CLI_RUN("tune", cli_path("weightless.json"), "--shapes", "few"), 2, "above 0");
}

/* The bundle of a search is signed by the key that the options name. */
static void a_tuned_bundle_is_signed(void **state) {
    (void)state;
    char line[600];
    (void)snprintf(line, sizeof line,
                   "openssl genpkey -algorithm ed25519 -out %s/key.pem && openssl pkey -in "
                   "%s/key.pem -pubout -out %s/public.pem",
                   cli_folder(), cli_folder(), cli_folder());
    ev_proc_result r = cli_shell(line);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("tune", cli_path("stripe.json"), "--strategy", "macros", "--evaluations", "2",
                "--no-structure", "--sign", cli_path("key.pem"), "--out", cli_path("signed.tar"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path("signed.tar"), "--trust", cli_path("public.pem"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    const char *task = cli_path("stripe.json");
    cli_expect_error(CLI_RUN("tune", task, "--sign", cli_path("key.pem")), 2, "name one");
    cli_expect_error(CLI_RUN("tune", task, "--sign", task, "--out", cli_path("signed.tar")), 2,
                     "stripe.json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(two_variants_beat_the_best_single_one),
        cmocka_unit_test(resolve_hands_out_each_at_its_shape),
        cmocka_unit_test(check_holds_all_members),
        cmocka_unit_test(weights_come_from_a_file),
        cmocka_unit_test(a_finished_run_has_its_portfolio),
        cmocka_unit_test(a_tuned_bundle_is_signed),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
