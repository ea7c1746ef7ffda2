/* A search that begins with an earlier result: on the same GPU model with its times, on another one
 * with its genomes alone. */
#include "tests/cli_run.h"

#include "base/json.h"
#include "bundle/reader.h"
#include "tuner/run/records.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

/* Two products a thread that the whole block has in common: edits and macros gain. */
static const char wave_cu[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void wave(const float *x, float *y, int n) {\n"
    "    float factor = 1.0f;\n"
    "    for (int i = 0; i < 32; i++)\n"
    "        factor = factor * x[i] + 0.5f;\n"
    "    for (int k = 0; k < PER; k++) {\n"
    "        int at = (blockIdx.x * PER + k) * 128 + threadIdx.x;\n"
    "        if (at < n)\n"
    "            y[at] = x[at] * factor;\n"
    "    }\n"
    "}\n";

static const char wave_json[] =
    "{\"name\": \"wave\", \"family\": \"tests\", \"doc\": \"y = x times a factor\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"n\",\n"
    "   \"data\": {\"generator\": \"uniform\", \"low\": 0.1, \"high\": 0.9}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"n\"},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"wave.cu\",\n"
    "  \"grid\": \"ceil_div(n, 128 * PER)\", \"block\": 128,\n"
    "  \"macros\": [{\"name\": \"PER\", \"default\": 1, \"values\": [1, 8]}]}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n"
    " \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 64}},\n"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 301}},\n"
    "  {\"name\": \"many\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": "
    "2097152}},\n"
    "  {\"name\": \"other\", \"split\": \"held-out\", \"use\": \"check\", \"shape\": {\"n\": "
    "200}},\n"
    "  {\"name\": \"later\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": "
    "1048576}},\n"
    "  {\"name\": \"least\", \"split\": \"adversarial\", \"use\": \"check\", \"shape\": {\"n\": "
    "65}}]}\n";

static double cold_found; /* what the first search reached */
static char cold_genome[65];

static int setup(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_write("wave.cu", wave_cu);
    cli_write("wave.json", wave_json);
    return 0;
}

static const json_t *first_row(const json_t *json) {
    return json_array_get(json_object_get(json, "rows"), 0);
}

/* How much faster than the start the search found it, at the cases that it saw. */
static double found(const json_t *json) {
    const json_t *fronts = json_object_get(first_row(json), "fronts");
    return ev_json_number(json_object_get(fronts, "exact"), "speedup", 0);
}

static void a_cold_search_finds_something(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("wave.json"), "--evaluations", "160", "--seed",
                                    "3", "--records", cli_path("cold.sqlite"), "--out",
                                    cli_path("cold.tar"), "--json"),
                            0);
    cold_found = found(json);
    (void)snprintf(cold_genome, sizeof cold_genome, "%s",
                   ev_json_text(first_row(json), "genome_sha256", ""));
    assert_true(ev_json_number(first_row(json), "speedup", 0) > 1.1);
    assert_null(json_object_get(json, "recalled"));
    json_decref(json);
}

/* What a search's child is. */
typedef struct child {
    char genome[65];
    double ns;
} child;

static ev_status take(void *context, const records_evaluation *e, ev_error *ignored) {
    child *c = context;
    (void)ignored;
    (void)snprintf(c->genome, sizeof c->genome, "%s", e->hashes[SEARCH_BY_GENOME]);
    c->ns = e->ns;
    return EV_OK;
}

static child child_of(const char *name, uint64_t number) {
    records *r = NULL;
    child c = {.ns = 0};
    bool found = false;
    OK(records_open_read(cli_path(name), &r, &err));
    OK(records_get(r, 0, "search", number, take, &c, &found, &err));
    assert_true(found);
    records_close(r);
    return c;
}

/* The first child behind the start is the earlier winner, whose time is not computed again. */
static void the_first_child_is_the_earlier_winner(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("wave.json"), "--evaluations", "12", "--seed",
                                    "4", "--from", cli_path("cold.sqlite"), "--records",
                                    cli_path("warm.sqlite"), "--json"),
                            0);
    assert_true(ev_json_integer(json, "recalled", 0) >= 2); /* the start is known, too */
    assert_true(found(json) >= 0.98 * cold_found);
    json_decref(json);
    child second = child_of("warm.sqlite", 1);
    assert_string_equal(second.genome, cold_genome);
    assert_true(second.ns > 0);
}

/* What is recalled is what is computed: the same children without the earlier times. */
static void recalled_times_are_the_computed_ones(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("wave.json"), "--evaluations", "12", "--seed",
                                    "4", "--from", cli_path("cold.tar"), "--records",
                                    cli_path("bundle.sqlite"), "--json"),
                            0);
    assert_null(json_object_get(json, "recalled")); /* a bundle has no such times */
    json_decref(json);
    child recalled = child_of("warm.sqlite", 1), computed = child_of("bundle.sqlite", 1);
    assert_string_equal(recalled.genome, computed.genome);
    assert_true(recalled.ns == computed.ns);
}

/* Another GPU model: the genomes, and none of the times. */
static void another_gpu_takes_the_genomes_alone(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("wave.json"), "--device", "vm:a100",
                                    "--evaluations", "12", "--from", cli_path("cold.sqlite"),
                                    "--records", cli_path("a100.sqlite"), "--json"),
                            0);
    assert_null(json_object_get(json, "recalled"));
    json_decref(json);
    child here = child_of("warm.sqlite", 1), there = child_of("a100.sqlite", 1);
    assert_string_equal(there.genome, cold_genome);
    assert_true(there.ns > 0 && there.ns != here.ns);
}

/* A task of other shapes takes the genomes, and leaves out those whose macros it lacks. */
static void what_does_not_apply_is_told(void **state) {
    (void)state;
    cli_copy_changed("wave.json", "narrow.json", "\"values\": [1, 8]", "\"values\": [1]");
    cli_copy_changed("wave.json", "renamed.json", "\"name\": \"plain\"", "\"name\": \"first\"");
    ev_proc_result r = CLI_RUN("tune", cli_path("renamed.json"), "--evaluations", "6", "--from",
                               cli_path("cold.tar"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.err), "is left out: the task has no start 'plain'"));
    assert_non_null(strstr(ev_str_text(&r.err), "begins with 0 genomes"));
    ev_proc_result_free(&r);
    r = CLI_RUN("tune", cli_path("narrow.json"), "--evaluations", "6", "--from",
                cli_path("cold.sqlite"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.err), "has no macro PER with the value 8"));
    assert_non_null(strstr(ev_str_text(&r.err), "knows 0 times")); /* it is another task */
    ev_proc_result_free(&r);
}

static void resumes_with_the_same_file_alone(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("wave.json"), "--evaluations", "12", "--seed",
                                    "4", "--from", cli_path("cold.sqlite"), "--records",
                                    cli_path("warm.sqlite"), "--resume", "--json"),
                            0);
    json_decref(json);
    cli_expect_error(CLI_RUN("tune", cli_path("wave.json"), "--evaluations", "12", "--seed", "4",
                             "--records", cli_path("warm.sqlite"), "--resume"),
                     2, "from");
}

static void wrong_files_are_refused(void **state) {
    (void)state;
    const char *task = cli_path("wave.json");
    cli_expect_error(CLI_RUN("tune", task, "--from", cli_path("none.sqlite")), 2, "none.sqlite");
    cli_expect_error(CLI_RUN("tune", task, "--from", task), 2, "no records file");
    cli_expect_error(CLI_RUN("tune", cli_path("task.json"), "--from", cli_path("cold.tar")), 2,
                     "has no variant of scale");
    cli_expect_error(CLI_RUN("tune", task, "--from", cli_path("cold.tar"), "--strategy", "random"),
                     2, "evolve alone");
}

/* Times of another timing model are computed again. */
static void another_model_takes_the_genomes_alone(void **state) {
    (void)state;
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(cli_path("cold.sqlite"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db,
                                  "UPDATE run SET identity = "
                                  "json_set(identity, '$.model', '0123456789abcdef')",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_changes(db), 1);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    json_t *json = cli_json(CLI_RUN("tune", cli_path("wave.json"), "--evaluations", "12", "--seed",
                                    "4", "--from", cli_path("cold.sqlite"), "--records",
                                    cli_path("newer.sqlite"), "--json"),
                            0);
    assert_null(json_object_get(json, "recalled"));
    json_decref(json);
    child second = child_of("newer.sqlite", 1);
    assert_string_equal(second.genome, cold_genome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cold_search_finds_something),
        cmocka_unit_test(the_first_child_is_the_earlier_winner),
        cmocka_unit_test(recalled_times_are_the_computed_ones),
        cmocka_unit_test(another_gpu_takes_the_genomes_alone),
        cmocka_unit_test(what_does_not_apply_is_told),
        cmocka_unit_test(resumes_with_the_same_file_alone),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(another_model_takes_the_genomes_alone),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
