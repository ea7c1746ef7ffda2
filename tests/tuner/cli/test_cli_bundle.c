/* From a task to a checked bundle, through the binary. */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const json_t *row_of(const json_t *json, size_t index) {
    return json_array_get(json_object_get(json, "rows"), index);
}

/* The task's second barrier is of no use: deleting it is a win that any search finds. The edit is
 * bold, since no proof says that the barrier is of no use. */
static void tunes_and_exports(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("task.json"), "--bold", "--evaluations", "120",
                                    "--seed", "1", "--records", cli_path("r.sqlite"), "--out",
                                    cli_path("out"), "--json"),
                            0);
    cli_keys(json, "seed:i rows:a");
    assert_int_equal(ev_json_integer(json, "seed", 0), 1);
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 1);
    const json_t *row = row_of(json, 0);
    cli_keys(
        row,
        "kernel:s case:s device:s time_kind:s baseline_ns:n best_ns:n speedup:n error:n "
        "tolerance:n promoted:b preserving:b bold_speedup:n genome:o genome_sha256:s ptx_sha256:s");
    assert_string_equal(ev_json_text(row, "kernel", ""), "scale");
    assert_string_equal(ev_json_text(row, "case", ""), "later");
    assert_string_equal(ev_json_text(row, "time_kind", ""), "modelled");
    assert_true(ev_json_flag(row, "promoted", false));
    assert_false(ev_json_flag(row, "preserving", true));
    assert_true(ev_json_number(row, "speedup", 0) > 1);
    json_decref(json);
}

/* The variants of a bundle's only kernel. */
static json_t *variants_of(const char *bundle, json_t **manifest) {
    char path[64];
    (void)snprintf(path, sizeof path, "%s/manifest.json", bundle);
    char *text = cli_read(path);
    *manifest = json_loads(text, 0, NULL);
    free(text);
    return json_object_get(json_array_get(json_object_get(*manifest, "kernels"), 0), "variants");
}

static const json_t *variant_that_is(const json_t *variants, const char *meaning) {
    for (size_t i = 0; i < json_array_size(variants); i++) {
        const json_t *v = json_array_get(variants, i);
        if (strcmp(ev_json_text(v, "meaning", ""), meaning) == 0)
            return v;
    }
    fail_msg("the bundle has no variant that is %s", meaning);
    return NULL;
}

/* What won by --bold is bold, and the default of its bundle. */
static void a_bold_winner_is_the_default(void **state) {
    (void)state;
    json_t *manifest = NULL;
    const json_t *variants = variants_of("out", &manifest);
    assert_int_equal(json_array_size(variants), 1);
    const json_t *bold = variant_that_is(variants, "bold");
    assert_true(ev_json_flag(bold, "default", false));
    json_decref(manifest);
}

/* Without --bold the bundle has the preserving winner and, marked, the bold one, which stood the
 * whole stress. */
static void both_winners_are_exported(void **state) {
    (void)state;
    json_t *manifest = NULL;
    cli_copy_changed("task.json", "both.json", "\"scale.cu\"", "\"both.cu\", \"entry\": \"scale\"");
    cli_copy_changed("scale.cu", "both.cu", "    __syncthreads();\n    __syncthreads();\n",
                     "#pragma unroll 1\n    for (int k = 0; k < 40; k++)\n"
                     "        __syncthreads();\n");
    ev_proc_result r = CLI_RUN("tune", cli_path("both.json"), "--evaluations", "120", "--seed", "1",
                               "--no-structure", "--records", cli_path("both.sqlite"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("export", "--records", cli_path("both.sqlite"), "--out", cli_path("both"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    const json_t *variants = variants_of("both", &manifest);
    assert_int_equal(json_array_size(variants), 2);
    const json_t *bold = variant_that_is(variants, "bold");
    const json_t *preserving = variant_that_is(variants, "preserving");
    assert_false(ev_json_flag(bold, "default", false));
    assert_null(json_object_get(preserving, "changes"));
    const json_t *changes = json_object_get(bold, "changes");
    assert_true(json_array_size(changes) > 0);
    assert_non_null(strstr(json_string_value(json_array_get(changes, 0)), "[bold"));
    const json_t *tried = json_object_get(bold, "tried");
    assert_int_equal(ev_json_integer(tried, "shapes", 0), 100);
    assert_true(ev_json_integer(tried, "runs", 0) > 500);
    tried = json_object_get(preserving, "tried");
    assert_in_range(ev_json_integer(tried, "shapes", 0), 1, 99);
    json_decref(manifest);
    json_t *json = cli_json(CLI_RUN("check", cli_path("both"), "--json"), 0);
    json_decref(json);
}

/* Without --bold the winner is the baseline, and the bold variant is told beside it: here a barrier
 * in a loop is of no use. */
/* Tunes the kernel that waits fifty times; whether a bold variant of it is told. */
static bool finds_bold(const char *seed, const char *records) {
    json_t *json = cli_json(CLI_RUN("tune", cli_path("waits.json"), "--evaluations", "200",
                                    "--seed", seed, "--records", cli_path(records), "--json"),
                            0);
    const json_t *row = row_of(json, 0);
    assert_true(ev_json_flag(row, "preserving", false));
    bool found = ev_json_number(row, "bold_speedup", 0) > 1.05;
    json_decref(json);
    return found;
}

/* No seed has to find the bold edit, but one of three will. */
static void a_bold_variant_does_not_win(void **state) {
    (void)state;
    static const char *const seeds[] = {"2", "4", "5"};
    size_t at = 0;
    cli_copy_changed("task.json", "waits.json", "\"scale.cu\"", "\"waits.cu\"");
    cli_copy_changed("scale.cu", "waits.cu", "    if (i < n)\n",
                     "#pragma unroll 1\n    for (int k = 0; k < 50; k++)\n"
                     "        __syncthreads();\n    if (i < n)\n");
    while (!finds_bold(seeds[at], seeds[at]))
        assert_true(++at < sizeof seeds / sizeof seeds[0]);
    ev_proc_result r = CLI_RUN("tune", cli_path("waits.json"), "--evaluations", "200", "--seed",
                               seeds[at], "--records", cli_path(seeds[at]), "--resume");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "scale, later: a bold variant is "));
    ev_proc_result_free(&r);
}

static void checks_the_bundle(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("check", cli_path("out"), "--json"), 0);
    assert_string_equal(ev_json_text(json, "verdict", ""), "pass");
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 6);
    const json_t *replay = json_array_get(json_object_get(json, "replays"), 0);
    assert_string_equal(ev_json_text(replay, "verdict", ""), "pass");
    assert_string_equal(ev_json_text(replay, "ptx_sha256", "a"),
                        ev_json_text(replay, "replayed_sha256", "b"));
    json_decref(json);
}

/* The bundle alone is enough: its task, sources and oracle are copies. */
static void needs_nothing_but_the_bundle(void **state) {
    (void)state;
    assert_int_equal(rename(cli_path("task.json"), cli_path("away.json")), 0);
    assert_int_equal(rename(cli_path("scale.cu"), cli_path("away.cu")), 0);
    assert_int_equal(rename(cli_path("out"), cli_path("elsewhere")), 0);
    ev_proc_result r = CLI_RUN("check", cli_path("elsewhere"));
    assert_int_equal(rename(cli_path("elsewhere"), cli_path("out")), 0);
    assert_int_equal(rename(cli_path("away.cu"), cli_path("scale.cu")), 0);
    assert_int_equal(rename(cli_path("away.json"), cli_path("task.json")), 0);
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "replay of scale (plain): the same PTX\n"));
    assert_non_null(strstr(ev_str_text(&r.out), "verdict: pass\n"));
    ev_proc_result_free(&r);
}

/* The winner's edits stand in the list with their shares, and what they save (a barrier, or the
 * shared memory that both are for) is gone from the PTX. Records and bundle tell the same. */
static void explains_the_winner(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("explain", cli_path("out"), "scale");
    cli_expect(&r, 0);
    const char *text = ev_str_text(&r.out);
    assert_non_null(strstr(text, "scale for "));
    assert_non_null(strstr(text, " % of the gain\n"));
    if (!strstr(text, "\n-\tbar.sync") && !strstr(text, "\n-\tst.shared"))
        fail_msg("nothing is saved in:\n%s", text);
    json_t *json = cli_json(CLI_RUN("explain", cli_path("r.sqlite"), "--json"), 0);
    const json_t *one = json_array_get(json_object_get(json, "variants"), 0);
    cli_keys(one, "kernel:s gpu:s sm:i start:s promoted:b genome:o edits:a times:a ir_diff:s "
                  "ptx_diff:s");
    assert_non_null(strstr(text, ev_json_text(one, "ir_diff", "none")));
    assert_non_null(strstr(text, ev_json_text(one, "ptx_diff", "none")));
    json_decref(json);
    ev_proc_result_free(&r);
    r = CLI_RUN("explain", cli_path("out"), "other");
    cli_expect(&r, 2);
    assert_non_null(strstr(ev_str_text(&r.err), "no tuned variant of 'other'"));
    ev_proc_result_free(&r);
}

/* What was drawn adds up: every arm's valid children are some of its drawn ones. */
static void counts_the_edits(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("edits", cli_path("r.sqlite"), "--json"), 0);
    const json_t *list = json_object_get(json, "edits"), *row = NULL;
    json_int_t drawn = 0, valid_ones = 0;
    size_t at = 0;
    assert_true(json_array_size(list) > 34);
    json_array_foreach(list, at, row) {
        json_int_t valid = ev_json_integer(row, "valid", -1);
        drawn += ev_json_integer(row, "drawn", -1);
        valid_ones += valid;
        assert_true(valid >=
                    ev_json_integer(row, "neutral", 0) + ev_json_integer(row, "better", 0));
        assert_true(valid + ev_json_integer(row, "duplicates", -1) <=
                    ev_json_integer(row, "drawn", -1));
    }
    assert_true(drawn >= 120 && valid_ones > 0);
    json_decref(json);
}

/* How often an edit was drawn in a run. */
static json_int_t drawn_of(const char *records, const char *edit) {
    json_t *json = cli_json(CLI_RUN("edits", cli_path(records), "--json"), 0);
    const json_t *row = NULL;
    json_int_t drawn = -1;
    size_t at = 0;
    json_array_foreach(json_object_get(json, "edits"), at, row) {
        if (strcmp(ev_json_text(row, "edit", ""), edit) == 0)
            drawn = ev_json_integer(row, "drawn", -1);
    }
    json_decref(json);
    return drawn;
}

static void left_out_edits_are_not_drawn(void **state) {
    (void)state;
    static const char *const names[] = {"align", "max-threads", "pipeline"};
    ev_proc_result r = CLI_RUN("tune", cli_path("task.json"), "--evaluations", "60", "--seed", "1",
                               "--no-structure", "--without", "align,max-threads,pipeline",
                               "--records", cli_path("less.sqlite"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_true(drawn_of("r.sqlite", names[i]) > 0);
        assert_int_equal(drawn_of("less.sqlite", names[i]), 0);
    }
}

static void exports_the_same_bytes(void **state) {
    (void)state;
    json_t *json = cli_json(
        CLI_RUN("export", "--records", cli_path("r.sqlite"), "--out", cli_path("again"), "--json"),
        0);
    cli_keys(json, "bundle:s kernels:i variants:i");
    assert_int_equal(ev_json_integer(json, "variants", 0), 1);
    json_decref(json);
    char *one = cli_read("out/manifest.json"), *two = cli_read("again/manifest.json");
    assert_string_equal(one, two);
    free(one);
    free(two);
}

static void writes_a_c_header(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("export", "--to", "c-header", cli_path("out"), "--out",
                                    cli_path("kernels.h"), "--json"),
                            0);
    cli_keys(json, "header:s kernels:i bytes:i");
    json_decref(json);
    char *text = cli_read("kernels.h");
    assert_non_null(strstr(text, "scale_resolve("));
    free(text);
    cli_expect_error(CLI_RUN("export", "--to", "c-header", "--out", cli_path("kernels.h")), 2,
                     "needs one bundle and --out FILE.h");
}

/* A bundle merged with itself is itself, and what is left out is told. */
static void merges_bundles(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("export", "--merge", cli_path("out"), cli_path("again"),
                                    "--out", cli_path("merged"), "--json"),
                            0);
    cli_keys(json, "bundle:s kernels:i variants:i left_out:a");
    assert_int_equal(ev_json_integer(json, "variants", 0), 1);
    const json_t *row = json_array_get(json_object_get(json, "left_out"), 0);
    cli_keys(row, "kernel:s gpu:s kept:s left_out:s sha256:s kept_gain:n left_out_gain:n reason:s");
    assert_string_equal(ev_json_text(row, "left_out", ""), cli_path("again"));
    assert_string_equal(ev_json_text(row, "reason", ""), "the same PTX and launch");
    json_decref(json);
    char *first = cli_read("out/manifest.json"), *second = cli_read("merged/manifest.json");
    assert_string_equal(first, second);
    free(first);
    free(second);
    cli_expect_error(CLI_RUN("export", "--merge", cli_path("out"), "--out", cli_path("merged")), 2,
                     "needs two bundles or more");
    cli_expect_error(CLI_RUN("export", cli_path("out"), "--out", cli_path("merged")), 2,
                     "takes a bundle with --merge or --to FORMAT alone");
}

/* As one file, for every command that takes a bundle. */
static void one_file_will_do(void **state) {
    (void)state;
    ev_proc_result r =
        CLI_RUN("export", "--records", cli_path("r.sqlite"), "--out", cli_path("one.tar"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path("one.tar"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "verdict: pass\n"));
    ev_proc_result_free(&r);
    r = CLI_RUN("explain", cli_path("one.tar"), "scale");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("qualify", cli_path("one.tar"), "--device", "vm:h200");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("check", cli_path("one-qualified.tar"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

static void resumes_to_the_same_end(void **state) {
    (void)state;
    json_t *json =
        cli_json(CLI_RUN("tune", cli_path("task.json"), "--bold", "--evaluations", "120", "--seed",
                         "1", "--records", cli_path("r.sqlite"), "--resume", "--json"),
                 0);
    char *manifest = cli_read("out/manifest.json");
    const char *sha256 = ev_json_text(row_of(json, 0), "ptx_sha256", "none");
    assert_non_null(strstr(manifest, sha256));
    free(manifest);
    json_decref(json);
}

/* A wrong kernel in the bundle, with hashes that fit, is found by running it. */
static void finds_a_wrong_kernel(void **state) {
    (void)state;
    char *manifest = cli_read("out/manifest.json");
    json_t *json = json_loads(manifest, 0, NULL);
    const json_t *kernel = json_array_get(json_object_get(json, "kernels"), 0);
    const json_t *variant = json_array_get(json_object_get(kernel, "variants"), 0);
    const char *sha256 = ev_json_text(variant, "sha256", "");
    char name[160];
    (void)snprintf(name, sizeof name, "out/kernels/%s.ptx", sha256);
    char *ptx = cli_read(name);
    /* The store becomes a comment: nothing is written. */
    ev_str changed = EV_STR_EMPTY;
    char *store = strstr(ptx, "st.global");
    assert_non_null(store);
    ev_str_append_n(&changed, ptx, (size_t)(store - ptx));
    ev_str_append(&changed, "// ");
    ev_str_append(&changed, store);
    cli_plant_ptx("out", sha256, ev_str_text(&changed));
    ev_str_free(&changed);
    ev_proc_result r = CLI_RUN("check", cli_path("out"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "verdict: fail\n"));
    assert_non_null(strstr(ev_str_text(&r.out), "the replayed PTX is another"));
    ev_proc_result_free(&r);
    json_decref(json);
    free(ptx);
    free(manifest);
}

/* What is checked is what the bundle says of the launch, not what the task says. */
static void finds_a_wrong_launch(void **state) {
    (void)state;
    static const struct {
        const char *grid, *words;
        int exit_code;
    } rows[] = {
        {"1", "verdict: fail\n", 1},
        {"n * 65536 * 65536", "start plain, case ", 1},
        {"1 / 0", "launch 0 (scale), grid[0]: expression \"1 / 0\", column 3: division by zero", 2},
    };
    char *manifest = cli_read("again/manifest.json");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *json = json_loads(manifest, 0, NULL);
        const json_t *kernel = json_array_get(json_object_get(json, "kernels"), 0);
        const json_t *variant = json_array_get(json_object_get(kernel, "variants"), 0);
        json_t *grid = json_object_get(json_object_get(variant, "launch"), "grid");
        assert_int_equal(json_array_set_new(grid, 0, json_string(rows[i].grid)), 0);
        char *text = ev_json_print(json, false);
        cli_write("again/manifest.json", text);
        ev_proc_result r = CLI_RUN("check", cli_path("again"));
        cli_expect(&r, rows[i].exit_code);
        const ev_str *told = rows[i].exit_code == 1 ? &r.out : &r.err;
        if (strstr(ev_str_text(told), rows[i].words) == NULL)
            fail_msg("\"%s\" is not in: %s", rows[i].words, ev_str_text(told));
        ev_proc_result_free(&r);
        json_decref(json);
        free(text);
    }
    cli_write("again/manifest.json", manifest);
    free(manifest);
}

static void names_a_damaged_file(void **state) {
    (void)state;
    cli_write("again/tasks/scale/scale.cu", "// other\n");
    cli_expect_error(CLI_RUN("check", cli_path("again")), 2, "tasks/scale/scale.cu");
    assert_int_equal(unlink(cli_path("again/tasks/scale/scale.cu")), 0);
    cli_expect_error(CLI_RUN("check", cli_path("again")), 2, "tasks/scale/scale.cu");
    cli_write("again/manifest.json", "{\"schema\": \"evoke-bundle\",\n \"version\": }");
    cli_expect_error(CLI_RUN("check", cli_path("again")), 2, "manifest.json:2:");
    cli_write("again/manifest.json", "{\"schema\": \"evoke-bundle\", \"version\": 7}");
    cli_expect_error(CLI_RUN("check", cli_path("again")), 2, "schema version 4");
}

/* One SIGINT ends the run cleanly: what is known is told, and the exit code is 0. */
static void stops_cleanly(void **state) {
    (void)state;
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(&line,
                  "\"$EVOKE\" tune %s --seconds 600 --json & child=$!; sleep 3; "
                  "kill -INT $child; wait $child",
                  cli_path("task.json"));
    json_t *json = cli_json(cli_shell(ev_str_text(&line)), 0);
    assert_true(ev_json_flag(json, "stopped", false));
    json_decref(json);
    ev_str_free(&line);
}

/* A source's place may be written in several ways; the bundle has one, and can be opened. */
static void places_of_sources_are_plain(void **state) {
    (void)state;
    cli_copy_changed("task.json", "dotted.json", "\"scale.cu\"", "\".//scale.cu\"");
    ev_proc_result r = CLI_RUN("tune", cli_path("dotted.json"), "--evaluations", "4", "--out",
                               cli_path("dotted.tar"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    json_decref(cli_json(CLI_RUN("check", cli_path("dotted.tar"), "--json"), 0));
}

/* A bundle has the headers of a source in a folder below the task's, and their headers. A run with
 * another header is another run. */
static void headers_of_a_source_are_bundled(void **state) {
    (void)state;
    char *kernel = cli_read("scale.cu");
    ev_str text = EV_STR_EMPTY;
    ev_str_printf(&text, "#include \"part.hpp\"\n#ifdef PART\n%s\n#endif\n", kernel);
    assert_int_equal(ev_dir_make(cli_path("below"), NULL), EV_OK);
    cli_write("below/part.hpp", "#include \"../top.inc\"\n");
    cli_write("top.inc", "#define PART\n");
    cli_write("below/scale.cu", ev_str_text(&text));
    cli_copy_changed("task.json", "below.json", "\"scale.cu\"", "\"below/scale.cu\"");
    ev_proc_result r = CLI_RUN("tune", cli_path("below.json"), "--evaluations", "4", "--records",
                               cli_path("below.sqlite"), "--out", cli_path("below.tar"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    cli_write("top.inc", "#define PART 1\n");
    cli_expect_error(CLI_RUN("tune", cli_path("below.json"), "--evaluations", "4", "--records",
                             cli_path("below.sqlite"), "--resume"),
                     2, "tasks");
    assert_int_equal(ev_dir_remove(cli_path("below"), NULL), EV_OK);
    cli_write("top.inc", "#error of the bundle alone\n");
    json_decref(cli_json(CLI_RUN("check", cli_path("below.tar"), "--json"), 0));
    ev_str_free(&text);
    free(kernel);
}

/* A source that no bundle can have is told before the search. */
static void sources_elsewhere_are_told_first(void **state) {
    (void)state;
    ev_str old = EV_STR_EMPTY;
    ev_str_printf(&old, "\"%s\"", cli_path("elsewhere/../scale.cu"));
    cli_copy_changed("task.json", "far.json", "\"scale.cu\"", ev_str_text(&old));
    ev_str_free(&old);
    assert_int_equal(ev_dir_make(cli_path("elsewhere"), NULL), EV_OK);
    cli_expect_error(CLI_RUN("tune", cli_path("far.json"), "--evaluations", "100000000", "--out",
                             cli_path("far.tar")),
                     2, "lies outside the task's folder");
}

/* The bundle cannot be written when the search is over: the records are kept, and told. */
static void a_search_is_not_lost(void **state) {
    (void)state;
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(&line,
                  "cd %s && mkdir -p tmp && TMPDIR=$PWD/tmp $EVOKE tune task.json --evaluations 4 "
                  "--worker-command \"echo x > taken.tar; exec $EVOKE worker --stdio\" "
                  "--out taken.tar",
                  cli_folder());
    ev_proc_result r = cli_shell(ev_str_text(&line));
    cli_expect(&r, 2);
    assert_non_null(strstr(ev_str_text(&r.err), "the records of this run are kept in "));
    assert_non_null(strstr(ev_str_text(&r.err), "something else is there"));
    ev_proc_result_free(&r);
    ev_str_free(&line);
    line = EV_STR_EMPTY;
    ev_str_printf(&line,
                  "cd %s && $EVOKE export --records tmp/evoke-*/records.sqlite --out saved.tar",
                  cli_folder());
    r = cli_shell(ev_str_text(&line));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    ev_str_free(&line);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tunes_and_exports),
        cmocka_unit_test(a_bold_winner_is_the_default),
        cmocka_unit_test(both_winners_are_exported),
        cmocka_unit_test(a_bold_variant_does_not_win),
        cmocka_unit_test(checks_the_bundle),
        cmocka_unit_test(needs_nothing_but_the_bundle),
        cmocka_unit_test(explains_the_winner),
        cmocka_unit_test(counts_the_edits),
        cmocka_unit_test(left_out_edits_are_not_drawn),
        cmocka_unit_test(exports_the_same_bytes),
        cmocka_unit_test(merges_bundles),
        cmocka_unit_test(writes_a_c_header),
        cmocka_unit_test(one_file_will_do),
        cmocka_unit_test(resumes_to_the_same_end),
        cmocka_unit_test(finds_a_wrong_kernel),
        cmocka_unit_test(finds_a_wrong_launch),
        cmocka_unit_test(names_a_damaged_file),
        cmocka_unit_test(places_of_sources_are_plain),
        cmocka_unit_test(headers_of_a_source_are_bundled),
        cmocka_unit_test(sources_elsewhere_are_told_first),
        cmocka_unit_test(a_search_is_not_lost),
        cmocka_unit_test(stops_cleanly),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
