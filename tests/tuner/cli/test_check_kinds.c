/* evoke check on bundles with one planted regression of each kind; oracles that a bundle brings;
 * signatures; an older bundle; and the reports for CI. */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Its library leaves a mark when it is loaded. */
static void write_oracle(void) {
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text,
                  "#include \"evoke_oracle.h\"\n#include <stdio.h>\n"
                  "__attribute__((constructor)) static void leave_mark(void) {\n"
                  "    FILE *mark = fopen(\"%s\", \"w\");\n"
                  "    if (mark) fclose(mark);\n}\n"
                  "int evoke_oracle(evoke_oracle_call *call);\n"
                  "int evoke_oracle(evoke_oracle_call *call) {\n"
                  "    const float *x = call->arguments[0].data;\n"
                  "    for (uint64_t i = 0; i < call->count; i++)\n"
                  "        call->value[i] = 2.0 * x[call->first + i];\n"
                  "    return 0;\n}\n",
                  cli_path("mark"));
    cli_write("oracle.c", ev_str_text(&text));
    ev_str_free(&text);
}

static void run_shell(const char *line) {
    ev_proc_result r = cli_shell(line);
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

static int make_bundle(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    write_oracle();
    ev_proc_result r =
        CLI_RUN("tune", cli_path("task.json"), "--bold", "--evaluations", "120", "--seed", "1",
                "--records", cli_path("r.sqlite"), "--out", cli_path("honest"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    return 0;
}

/* A fresh copy of the bundle as FOLDER/out. */
static void copy_bundle(void) {
    char line[300];
    (void)snprintf(line, sizeof line, "rm -rf %s/out && cp -r %s/honest %s/out", cli_folder(),
                   cli_folder(), cli_folder());
    run_shell(line);
}

static json_t *read_manifest(void) {
    char *text = cli_read("out/manifest.json");
    json_t *manifest = json_loads(text, 0, NULL);
    assert_non_null(manifest);
    free(text);
    return manifest;
}

/* Takes the reference. */
static void write_manifest(json_t *manifest) {
    char *text = ev_json_print(manifest, false);
    cli_write("out/manifest.json", text);
    free(text);
    json_decref(manifest);
}

static json_t *kernel_of(json_t *manifest) {
    return json_array_get(json_object_get(manifest, "kernels"), 0);
}

static json_t *variant_of(json_t *manifest) {
    return json_array_get(json_object_get(kernel_of(manifest), "variants"), 0);
}

static json_t *timed_case(json_t *variant) {
    size_t i = 0;
    json_t *c = NULL;
    json_array_foreach(json_object_get(variant, "cases"), i, c) {
        if (json_object_get(c, "ns") != NULL)
            return c;
    }
    fail_msg("no case is timed");
    return NULL;
}

/* Multiplies the recorded times of the variant. */
static void scale_times(double factor) {
    static const char *const keys[] = {"ns", "low_ns", "high_ns"};
    json_t *manifest = read_manifest(), *c = timed_case(variant_of(manifest));
    for (size_t i = 0; i < 3; i++)
        (void)json_object_set_new(c, keys[i], json_real(ev_json_number(c, keys[i], 0) * factor));
    write_manifest(manifest);
}

/* Puts other PTX in the place of the variant's: `from` in the PTX becomes `to`. */
static void change_ptx(const char *from, const char *to) {
    char path[160], sha256[80];
    json_t *manifest = read_manifest();
    (void)snprintf(sha256, sizeof sha256, "%s", ev_json_text(variant_of(manifest), "sha256", ""));
    (void)snprintf(path, sizeof path, "out/kernels/%s.ptx", sha256);
    char *ptx = cli_read(path), *place = strstr(ptx, from);
    if (place == NULL)
        fail_msg("'%s' is not in: %s", from, ptx);
    ev_str text = EV_STR_EMPTY;
    ev_str_append_n(&text, ptx, (size_t)(place - ptx));
    ev_str_append(&text, to);
    ev_str_append(&text, place + strlen(from));
    cli_plant_ptx("out", sha256, ev_str_text(&text));
    ev_str_free(&text);
    free(ptx);
    json_decref(manifest);
}

/* The verdict of the only kernel, and a finding of that kind with these words (NULL: none). */
static void expect_kind(const char *kind, int exit_code, const char *words) {
    json_t *json =
        cli_json(CLI_RUN("check", cli_path("out"), "--trust-oracle", "--json"), exit_code);
    const json_t *kernel = json_array_get(json_object_get(json, "kernels"), 0);
    cli_keys(kernel, "kernel:s verdict:s accuracy:i performance:i drift:i setup:i");
    if (strcmp(ev_json_text(kernel, "verdict", ""), kind) != 0) {
        char *text = ev_json_print(json, false);
        print_error("%s\n", text);
        free(text);
    }
    assert_string_equal(ev_json_text(kernel, "kernel", ""), "scale");
    assert_string_equal(ev_json_text(kernel, "verdict", ""), kind);
    bool found = words == NULL;
    static const char *const lists[] = {"rows", "replays"};
    for (size_t l = 0; l < 2; l++) {
        const json_t *rows = json_object_get(json, lists[l]);
        for (size_t i = 0; i < json_array_size(rows); i++) {
            const json_t *row = json_array_get(rows, i);
            found = found || (strcmp(ev_json_text(row, "kind", ""), kind) == 0 &&
                              strstr(ev_json_text(row, "reason", ""), words) != NULL);
        }
    }
    if (!found)
        fail_msg("no finding of %s has '%s'", kind, words);
    json_decref(json);
}

static void an_honest_bundle_is_ok(void **state) {
    (void)state;
    copy_bundle();
    expect_kind("ok", 0, NULL);
}

static void wrong_answers_are_accuracy(void **state) {
    (void)state;
    copy_bundle();
    change_ptx("st.global", "// st.global"); /* nothing is written */
    expect_kind("accuracy", 1, "");
}

static void slower_than_recorded_is_performance(void **state) {
    (void)state;
    copy_bundle();
    scale_times(0.5);
    expect_kind("performance", 1, "ns are recorded");
}

/* Another timing model gives other times, which are neither slower nor drift. */
static void times_of_another_model_are_not_held_exactly(void **state) {
    (void)state;
    copy_bundle();
    scale_times(0.9);
    json_t *manifest = read_manifest();
    json_t *provenance = json_object_get(variant_of(manifest), "provenance");
    json_t *versions = json_object_get(provenance, "versions");
    assert_int_equal(strlen(ev_json_text(versions, "model", "")), 16);
    (void)json_object_set_new(versions, "model", json_string("0123456789abcdef"));
    write_manifest(manifest);
    expect_kind("ok", 0, NULL);
}

static void all_else_that_differs_is_drift(void **state) {
    (void)state;
    copy_bundle();
    scale_times(2);
    expect_kind("drift", 1, "ns are recorded");
    copy_bundle();
    change_ptx("\n.target", " // another text\n.target");
    expect_kind("drift", 1, "the replayed PTX is another");
    copy_bundle();
    json_t *manifest = read_manifest();
    (void)json_object_set_new(kernel_of(manifest), "doc", json_string("y = 3 x"));
    write_manifest(manifest);
    expect_kind("drift", 1, "doc is \"y = 3 x\"");
    copy_bundle();
    manifest = read_manifest();
    json_t *c = timed_case(variant_of(manifest));
    double base = ev_json_number(c, "baseline_ns", 0);
    (void)json_object_set_new(c, "baseline_ns", json_real(base * 1.5));
    write_manifest(manifest);
    expect_kind("drift", 1, "the baseline takes");
}

/* A reason that is cut in the middle of a character is a reason all the same. */
static void long_names_are_drift(void **state) {
    (void)state;
    ev_str name = EV_STR_EMPTY;
    copy_bundle();
    json_t *manifest = read_manifest();
    ev_str_char(&name, 'a');
    for (int i = 0; i < 200; i++)
        ev_str_append(&name, "\xc3\xa9");
    (void)json_object_set_new(kernel_of(manifest), "doc", json_string(ev_str_text(&name)));
    ev_str_free(&name);
    write_manifest(manifest);
    expect_kind("drift", 1, "doc is \"a??");
}

static void what_cannot_be_judged_is_setup(void **state) {
    (void)state;
    copy_bundle();
    json_t *manifest = read_manifest();
    (void)json_array_clear(json_object_get(kernel_of(manifest), "baselines"));
    write_manifest(manifest);
    expect_kind("setup", 2, "has no baseline of scale");
    ev_proc_result r = CLI_RUN("check", cli_path("out"), "--trust-oracle");
    cli_expect(&r, 2);
    assert_non_null(strstr(ev_str_text(&r.out), "scale: setup; setup: 1 finding\nverdict: setup"));
    ev_proc_result_free(&r);
}

/* ---- oracles ---- */

/* Whether the bundle's oracle was loaded, and whether a line tells that it was not. */
static void expect_oracle(ev_proc_result r, bool is_built) {
    cli_expect(&r, 0);
    assert_int_equal(ev_path_exists(cli_path("mark")), is_built);
    const char *told = strstr(ev_str_text(&r.err), "scale: the bundle brings an oracle in C");
    assert_int_equal(told == NULL, is_built);
    assert_true(is_built || strstr(told + 20, "the bundle brings") == NULL); /* told once */
    ev_proc_result_free(&r);
    (void)unlink(cli_path("mark"));
}

static void foreign_oracles_are_not_built(void **state) {
    (void)state;
    char line[400];
    copy_bundle();
    assert_true(ev_path_exists(cli_path("mark"))); /* the task's own was built by evoke tune */
    (void)unlink(cli_path("mark"));
    expect_oracle(CLI_RUN("check", cli_path("out")), false);
    expect_oracle(CLI_RUN("check", cli_path("out"), "--trust-oracle"), true);
    expect_oracle(
        CLI_RUN("qualify", cli_path("out"), "--device", "vm:h200", "--out", cli_path("out2")),
        false);
    cli_write("key.pem", "-----BEGIN PRIVATE KEY-----\n"
                         "MC4CAQAwBQYDK2VwBCIEIJ1hsZ3v/VpguoRK9JLsLMREScVpezJpGXA7rAMcrn9g\n"
                         "-----END PRIVATE KEY-----\n");
    (void)snprintf(line, sizeof line,
                   "$EVOKE export --records %s/r.sqlite --out %s/signed.tar --sign %s/key.pem",
                   cli_folder(), cli_folder(), cli_folder());
    run_shell(line);
    (void)unlink(cli_path("mark"));
    expect_oracle(CLI_RUN("check", cli_path("signed.tar")), false); /* by nobody's key */
    expect_oracle(CLI_RUN("check", cli_path("signed.tar"), "--trust",
                          "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
                  true);
}

/* Without its oracle, a wrong variant is found all the same. */
static void the_baseline_stands_for_an_oracle(void **state) {
    (void)state;
    copy_bundle();
    change_ptx("st.global", "// st.global"); /* nothing is written */
    ev_proc_result r = CLI_RUN("check", cli_path("out"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "scale: accuracy; "));
    ev_proc_result_free(&r);
}

static void untrusted_bundles_are_refused(void **state) {
    (void)state;
    copy_bundle();
    cli_expect_error(CLI_RUN("check", cli_path("out"), "--trust",
                             "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
                     2, "has no signature, and only signed ones are trusted");
    cli_expect_error(CLI_RUN("check", cli_path("signed.tar"), "--trust",
                             "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
                     2, "has a foreign signature");
    cli_expect_error(CLI_RUN("check", cli_path("out"), "--trust", cli_path("key.pem")), 2,
                     "no public Ed25519 key");
    cli_expect_error(CLI_RUN("check", cli_path("out"), "--trust", "none"), 2,
                     "no public Ed25519 key");
    cli_expect_error(CLI_RUN("export", "--records", cli_path("r.sqlite"), "--out",
                             cli_path("other.tar"), "--sign", cli_path("task.json")),
                     2, "holds no Ed25519 key");
    assert_false(ev_path_exists(cli_path("other.tar")));
}

/* A qualified bundle is another one, and signed anew. */
static void qualified_bundles_are_signed_anew(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("qualify", cli_path("signed.tar"), "--device", "vm:h200", "--out",
                               cli_path("anew.tar"), "--sign", cli_path("key.pem"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path("anew.tar"), "--trust",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("qualify", cli_path("signed.tar"), "--device", "vm:h200", "--out",
                cli_path("bare.tar"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    cli_expect_error(CLI_RUN("check", cli_path("bare.tar"), "--trust",
                             "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"),
                     2, "has no signature");
}

/* ---- against an older bundle ---- */

static void expect_slack(const char *slack, const char *verdict, int exit_code) {
    json_t *json = cli_json(CLI_RUN("check", cli_path("honest"), "--trust-oracle", "--against",
                                    cli_path("out"), "--slack", slack, "--json"),
                            exit_code);
    const json_t *rows = json_object_get(json, "against");
    bool found = false;
    assert_true(json_array_size(rows) > 0);
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *own = ev_json_text(row, "verdict", "");
        found = found || strcmp(own, verdict) == 0;
        assert_true(strcmp(own, verdict) == 0 || strcmp(own, "same") == 0);
    }
    assert_true(found);
    json_decref(json);
}

static void expect_against(const char *verdict, int exit_code) {
    expect_slack("0", verdict, exit_code);
}

static void an_older_bundle_is_compared(void **state) {
    (void)state;
    copy_bundle();
    expect_against("same", 0);
    scale_times(0.9);
    expect_against("slower", 1);
    expect_slack("11", "slower", 1); /* 1 / 0.9 is 11.1 % more */
    expect_slack("11.2", "same", 0);
    copy_bundle();
    scale_times(1.001);
    expect_against("better", 0);
    copy_bundle();
    json_t *manifest = read_manifest();
    (void)json_object_set_new(kernel_of(manifest), "kernel", json_string("gone"));
    write_manifest(manifest);
    expect_against("lost", 1);
    ev_proc_result r = CLI_RUN("check", cli_path("honest"), "--against", cli_path("out"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "error before"));
    assert_non_null(strstr(ev_str_text(&r.out), "lost"));
    ev_proc_result_free(&r);
    cli_expect_error(CLI_RUN("check", cli_path("task.json"), "--against", cli_path("out")), 2,
                     "--against compares one bundle");
    cli_expect_error(CLI_RUN("check", cli_path("honest"), "--against", cli_path("nothing/there")),
                     2, "is no bundle");
    cli_expect_error(CLI_RUN("check", cli_path("honest"), "--slack", "2"), 2,
                     "--slack is for --against");
}

static void a_larger_error_is_less_accurate(void **state) {
    (void)state;
    copy_bundle();
    char line[300];
    (void)snprintf(line, sizeof line, "rm -rf %s/old && cp -r %s/out %s/old", cli_folder(),
                   cli_folder(), cli_folder());
    run_shell(line);
    json_t *manifest = read_manifest(), *v = variant_of(manifest);
    (void)json_object_set_new(timed_case(v), "error", json_real(5e-7));
    (void)json_object_set_new(v, "error", json_real(5e-7));
    write_manifest(manifest);
    json_t *json = cli_json(
        CLI_RUN("check", cli_path("out"), "--trust-oracle", "--against", cli_path("old"), "--json"),
        1);
    char *text = ev_json_print(json_object_get(json, "against"), true);
    assert_non_null(strstr(text, "less accurate"));
    free(text);
    json_decref(json);
}

/* ---- reports ---- */

static void annotations_are_for_github(void **state) {
    (void)state;
    char line[300];
    copy_bundle();
    scale_times(0.5);
    (void)snprintf(line, sizeof line,
                   "GITHUB_ACTIONS=true $EVOKE check %s/out --trust-oracle --json", cli_folder());
    ev_proc_result r = cli_shell(line);
    cli_expect(&r, 1);
    const char *found = strstr(ev_str_text(&r.err), "::error file=");
    assert_non_null(found);
    assert_non_null(strstr(found, ",title=scale%3A performance::later: it takes "));
    assert_null(strstr(ev_str_text(&r.out), "::error"));
    ev_proc_result_free(&r);
    (void)snprintf(line, sizeof line, "unset GITHUB_ACTIONS; $EVOKE check %s/out --trust-oracle",
                   cli_folder());
    r = cli_shell(line);
    cli_expect(&r, 1);
    assert_null(strstr(ev_str_text(&r.err), "::error"));
    ev_proc_result_free(&r);
}

static void junit_has_a_case_for_each_row(void **state) {
    (void)state;
    copy_bundle();
    scale_times(0.5);
    ev_proc_result r =
        CLI_RUN("check", cli_path("out"), "--trust-oracle", "--junit", cli_path("check.xml"));
    cli_expect(&r, 1);
    ev_proc_result_free(&r);
    char *text = cli_read("check.xml");
    size_t cases = 0;
    for (const char *at = text; (at = strstr(at, "<testcase ")) != NULL; at++)
        cases++;
    json_t *json = cli_json(CLI_RUN("check", cli_path("out"), "--trust-oracle", "--json"), 1);
    assert_int_equal(cases, json_array_size(json_object_get(json, "rows")) +
                                json_array_size(json_object_get(json, "replays")));
    json_decref(json);
    assert_non_null(strstr(text, "<failure message=\"it takes "));
    assert_non_null(strstr(text, "type=\"performance\"/>"));
    free(text);
    cli_expect_error(CLI_RUN("check", cli_path("out"), "--trust-oracle", "--junit",
                             cli_path("no/folder/check.xml")),
                     2, "check.xml");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_honest_bundle_is_ok),
        cmocka_unit_test(wrong_answers_are_accuracy),
        cmocka_unit_test(slower_than_recorded_is_performance),
        cmocka_unit_test(times_of_another_model_are_not_held_exactly),
        cmocka_unit_test(all_else_that_differs_is_drift),
        cmocka_unit_test(long_names_are_drift),
        cmocka_unit_test(what_cannot_be_judged_is_setup),
        cmocka_unit_test(foreign_oracles_are_not_built),
        cmocka_unit_test(the_baseline_stands_for_an_oracle),
        cmocka_unit_test(untrusted_bundles_are_refused),
        cmocka_unit_test(qualified_bundles_are_signed_anew),
        cmocka_unit_test(an_older_bundle_is_compared),
        cmocka_unit_test(a_larger_error_is_less_accurate),
        cmocka_unit_test(annotations_are_for_github),
        cmocka_unit_test(junit_has_a_case_for_each_row),
    };
    return cmocka_run_group_tests(tests, make_bundle, cli_teardown);
}
