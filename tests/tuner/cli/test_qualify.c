/* evoke qualify, in the virtual machine and on the driver's stand-in: what loses or fails is
 * disabled in a new bundle that can be checked, explained, resolved and qualified again. */
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "bundle/reader.h"
#include "tests/cli_run.h"
#include "tuner/run/qualify_trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- the rule ---- */

static void loses_by_the_rule(void **state) {
    (void)state;
    const struct {
        bundle_time own, rival;
        bool loses;
    } rows[] = {
        {{100, 99, 101}, {110, 109, 111}, false},          /* clearly faster */
        {{110, 109, 111}, {100, 99, 101}, true},           /* clearly slower */
        {{100.4, 100.3, 100.5}, {100, 99.9, 100.1}, true}, /* by little, and yet clearly */
        {{100.9, 95, 106}, {100, 95, 105}, false},         /* they meet, and within the slack */
        {{101.1, 95, 106}, {100, 95, 105}, true},          /* they meet, and beyond it */
        {{100, 100, 100}, {100, 100, 100}, false},         /* modelled: points */
        {{100.9, 100.9, 100.9}, {100, 100, 100}, false},
        {{101.1, 101.1, 101.1}, {100, 100, 100}, true},
        {{90, 60, 120}, {100, 95, 105}, false}, /* noisy, and faster */
        {{105, 60, 150}, {100, 95, 105}, true}, /* noisy, and slower */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (qualify_loses(&rows[i].own, &rows[i].rival) != rows[i].loses)
            fail_msg("row %zu", i);
    }
}

static void judges_a_case(void **state) {
    (void)state;
    const task_case at = {.name = "one"};
    const bundle_time fast = {100, 99, 101}, slow = {200, 199, 201};
    const struct {
        trial_row row;
        bundle_verdict verdict;
        const char *words;
    } rows[] = {
        {{.stopped = GATE_NONE}, BUNDLE_VERDICT_PASS, ""},
        {{.stopped = GATE_NONE, .variant = fast, .baseline = slow}, BUNDLE_VERDICT_PASS, ""},
        {{.stopped = GATE_NONE, .variant = slow, .baseline = fast},
         BUNDLE_VERDICT_SLOWER,
         "case one: slower than the baseline: 200 ns, 100 ns (100.0 % longer)"},
        {{.stopped = GATE_NONE,
          .variant = fast,
          .baseline = slow,
          .beside_start = slow,
          .start = fast,
          .start_name = "hand"},
         BUNDLE_VERDICT_SLOWER,
         "slower than the unmodified start 'hand'"},
        {{.stopped = GATE_NONE, /* slower than a reference, and than nothing else */
          .variant = fast,
          .baseline = slow,
          .beside_reference = slow,
          .reference = fast,
          .reference_name = "expert"},
         BUNDLE_VERDICT_PASS,
         ""},
        {{.stopped = GATE_EMIT, .reason = "no"}, BUNDLE_VERDICT_REFUSED, "no"},
        {{.stopped = GATE_SAFE, .reason = "no"}, BUNDLE_VERDICT_FAULT, "no"},
        {{.stopped = GATE_ACCURATE, .reason = "no"}, BUNDLE_VERDICT_WRONG, "no"},
        {{.stopped = GATE_NONE, .unjudged = true, .reason = "no"}, BUNDLE_VERDICT_UNJUDGED, "no"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char reason[QUALIFY_REASON_BYTES];
        if (qualify_judge(&rows[i].row, &at, reason) != rows[i].verdict ||
            strstr(reason, rows[i].words) == NULL)
            fail_msg("row %zu: %s", i, reason);
    }
}

/* ---- bundles: `good` of a task with one start, `two` of a task with two ---- */

static void make_bundles(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("tune", cli_path("task.json"), "--bold", "--evaluations", "120",
                               "--out", cli_path("good"), "--json");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    r = CLI_RUN("tune", "tests/gpu/small/task.json", "--evaluations", "60", "--out",
                cli_path("two"), "--json");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

/* `pair` has the kernels scale and twice, which do the same. */
static void make_pair(void **state) {
    (void)state;
    cli_copy_changed("task.json", "twice.json", "\"name\": \"scale\"", "\"name\": \"twice\"");
    cli_copy_changed("twice.json", "twice.json", "\"scale.cu\"", "\"twice.cu\"");
    cli_copy_changed("scale.cu", "twice.cu", "void scale(", "void twice(");
    ev_proc_result r = CLI_RUN("tune", cli_path("task.json"), cli_path("twice.json"), "--bold",
                               "--evaluations", "120", "--out", cli_path("pair"), "--json");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
}

static const bundle_kernel *open_bundle(const char *name, bundle **b) {
    ev_error err = {0};
    if (bundle_open(cli_path(name), b, &err) != EV_OK)
        fail_msg("%s", err.text);
    return bundle_kernel_at(*b, 0);
}

/* Changes the text of the variant's PTX: `text` goes in before `before`, in all hashes too. */
static void plant(const char *name, const char *before, const char *text) {
    bundle *b = NULL;
    const bundle_kernel *k = open_bundle(name, &b);
    const bundle_variant *v = &k->variants[0];
    const char *at = strstr(v->ptx, before);
    assert_non_null(at);
    ev_str changed = EV_STR_EMPTY;
    ev_str_append_n(&changed, v->ptx, (size_t)(at - v->ptx));
    ev_str_append(&changed, text);
    ev_str_append(&changed, at);
    cli_plant_ptx(name, v->sha256.hex, ev_str_text(&changed));
    ev_str_free(&changed);
    bundle_close(b);
}

/* A copy of a bundle, in place of what was there. */
static void copy(const char *from, const char *to) {
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(&line, "rm -rf %s && cp -r %s %s", cli_path(to), cli_path(from), cli_path(to));
    ev_proc_result r = cli_shell(ev_str_text(&line));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    ev_str_free(&line);
}

/* Barriers at the kernel's begin: right, and slow. */
static void plant_slow(const char *name) {
    ev_str text = EV_STR_EMPTY;
    for (int i = 0; i < 60; i++)
        ev_str_append(&text, "bar.sync 0;\n");
    plant(name, "ld.param", ev_str_text(&text));
    ev_str_free(&text);
}

static json_t *qualify(const char *name, const char *on, const char *out, int exit_code) {
    return cli_json(CLI_RUN("qualify", cli_path(name), "--trust-oracle", "--device", on, "--out",
                            cli_path(out), "--json"),
                    exit_code);
}

static const json_t *item(const json_t *json, const char *list, size_t index) {
    return json_array_get(json_object_get(json, list), index);
}

/* The only variant's verdict, and a part of why it is disabled. */
static void expect_verdict(const json_t *json, const char *verdict, const char *why) {
    const json_t *v = item(json, "variants", 0);
    if (strcmp(ev_json_text(v, "verdict", ""), verdict) != 0 ||
        strstr(ev_json_text(v, "reason", ""), why) == NULL)
        fail_msg("%s: %s; expected %s: %s", ev_json_text(v, "verdict", ""),
                 ev_json_text(v, "reason", ""), verdict, why);
    assert_int_equal(ev_json_flag(v, "disabled", false), strcmp(verdict, "pass") != 0);
}

/* What a scheduler gets of the bundle's only kernel for a size. */
static bundle_choice resolve(const bundle *b, const char *id, int sm, double n) {
    const bundle_number shape = {"n", false, n};
    const bundle_request request = {
        .kernel = "scale", .gpu = id, .sm = sm, .shape = &shape, .shape_count = 1};
    bundle_choice choice = {0};
    ev_error err = {0};
    if (bundle_resolve(b, &request, &choice, &err) != EV_OK)
        fail_msg("%s", err.text);
    return choice;
}

static void check_passes(const char *name) {
    json_t *json = cli_json(CLI_RUN("check", cli_path(name), "--json"), 0);
    assert_string_equal(ev_json_text(json, "verdict", ""), "pass");
    assert_true(json_array_size(json_object_get(json, "replays")) > 0);
    json_decref(json);
}

/* ---- the command ---- */

static void good_ones_pass(void **state) {
    (void)state;
    static const char *const devices[] = {"vm:h200", "cuda:0"};
    for (size_t i = 0; i < 2; i++) {
        json_t *json = qualify("good", devices[i], "out", 0);
        cli_keys(json, "bundle:s device:s gpu:s name:s driver:s time_kind:s judged:i disabled:i "
                       "not_reached:i rows:a variants:a");
        assert_string_equal(ev_json_text(json, "time_kind", ""), "modelled");
        assert_int_equal(ev_json_integer(json, "judged", 0), 1);
        expect_verdict(json, "pass", "");
        assert_int_equal(json_array_size(json_object_get(json, "rows")), 6);
        const json_t *row = item(json, "rows", 2);
        cli_keys(row, "kernel:s gpu:s start:s device:s split:s case:s verdict:s error:n "
                      "tolerance:n ns:n low_ns:n high_ns:n baseline_ns:n baseline_low_ns:n "
                      "baseline_high_ns:n gain:n time_kind:s");
        assert_true(ev_json_number(row, "gain", 0) > 1);
        json_decref(json);
        bundle *b = NULL;
        const bundle_variant *v = &open_bundle("out", &b)->variants[0];
        assert_int_equal(v->qualified_count, 1);
        assert_true(v->qualified[0].modelled && v->disabled == NULL);
        assert_string_equal(v->qualified[0].gpu_id, "h200");
        assert_int_equal(v->qualified[0].driver[0] != '\0', i);
        assert_int_equal(resolve(b, "h200", 90, 301).rung, BUNDLE_RUNG_EXACT);
        bundle_close(b);
        check_passes("out");
    }
}

/* Beside the other start as well; and a bundle may be qualified again, in place. */
static void starts_are_to_beat(void **state) {
    (void)state;
    copy("two", "edited");
    plant("edited", "ret;", "mov.u32 %r1, %tid.x;\n");
    json_t *json = qualify("edited", "cuda:0", "edited", 0);
    const json_t *row = item(json, "rows", 2);
    cli_keys(row, "start_name:s start_ns:n start_low_ns:n start_high_ns:n beside_start_ns:n");
    assert_string_equal(ev_json_text(row, "start_name", ""), "hand");
    json_decref(json);
    json = qualify("edited", "cuda:0", "edited", 0);
    json_decref(json);
    bundle *b = NULL;
    const bundle_kernel *k = open_bundle("edited", &b);
    assert_int_equal(k->variants[0].qualified_count, 1);
    assert_int_equal(k->start_count, 1); /* as tune exported it */
    bundle_close(b);
}

static void slow_ones_are_disabled(void **state) {
    (void)state;
    static const char *const devices[] = {"vm:h200", "cuda:0"};
    for (size_t i = 0; i < 2; i++) {
        copy("two", "slow");
        plant_slow("slow");
        json_t *json = qualify("slow", devices[i], "out", 1);
        expect_verdict(json, "slower", "slower than the baseline");
        const json_t *v = item(json, "variants", 0);
        assert_string_equal(ev_json_text(v, "instead", ""), "start");
        assert_string_equal(ev_json_text(v, "instead_start", ""), "hand");
        json_decref(json);
        bundle *b = NULL;
        const bundle_kernel *k = open_bundle("out", &b);
        assert_non_null(k->variants[0].disabled);
        bundle_choice c = resolve(b, "h200", 90, 301);
        assert_int_equal(c.rung, BUNDLE_RUNG_EXACT);
        assert_string_equal(c.variant->start, "hand");
        assert_ptr_equal(c.passed_over, &k->variants[0]);
        assert_non_null(strstr(c.why, "slower"));
        c = resolve(b, "h100", 90, 301);
        assert_int_equal(c.rung, BUNDLE_RUNG_CAPABILITY);
        assert_int_equal(c.role, BUNDLE_ROLE_START);
        bundle_close(b);
        check_passes("out");
    }
}

/* Slower than the start alone: the baseline is slow too. */
static void the_start_counts(void **state) {
    (void)state;
    copy("two", "slow");
    plant("slow", "ld.param", "bar.sync 0;\nbar.sync 0;\nbar.sync 0;\nbar.sync 0;\n");
    json_t *json = qualify("slow", "vm:h200", "out", 1);
    expect_verdict(json, "slower", "case time: slower than the unmodified start 'hand'");
    json_decref(json);
}

/* The same of a reference: its time is shown, the variant stays, and the reference is in no bundle.
 */
static void references_disable_nothing(void **state) {
    (void)state;
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(&line, "rm -rf %s && cp -r tests/gpu/small %s", cli_path("slow"),
                  cli_path("small"));
    ev_proc_result r = cli_shell(ev_str_text(&line));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    ev_str_free(&line);
    cli_copy_changed("small/task.json", "small/task.json", "\"name\": \"hand\"",
                     "\"reference\": true, \"name\": \"hand\"");
    cli_copy_changed("small/textbook.cu", "small/textbook.cu", "__syncthreads();",
                     "__syncthreads(); __syncthreads(); __syncthreads(); __syncthreads(); "
                     "__syncthreads(); __syncthreads(); __syncthreads(); __syncthreads(); "
                     "__syncthreads(); __syncthreads(); __syncthreads(); __syncthreads();");
    r = CLI_RUN("tune", cli_path("small/task.json"), "--bold", "--evaluations", "60", "--out",
                cli_path("slow"), "--json");
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    json_t *json = qualify("slow", "vm:h200", "out", 0);
    const json_t *row = item(json, "rows", 2);
    cli_keys(row, "reference_name:s reference_ns:n reference_low_ns:n reference_high_ns:n "
                  "beside_reference_ns:n over_reference:n");
    assert_string_equal(ev_json_text(row, "reference_name", ""), "hand");
    assert_null(json_object_get(row, "start_name"));
    assert_true(ev_json_number(row, "over_reference", 1) < 1);
    json_decref(json);
    plant_slow("slow"); /* slower than the baseline too: the baseline is what is left */
    json = qualify("slow", "vm:h200", "out", 1);
    assert_string_equal(ev_json_text(item(json, "variants", 0), "instead", ""), "baseline");
    json_decref(json);
    bundle *b = NULL;
    assert_int_equal(open_bundle("out", &b)->start_count, 0);
    bundle_close(b);
    r = CLI_RUN("qualify", cli_path("slow"), "--trust-oracle", "--device", "vm:h200", "--out",
                cli_path("out"));
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.out), "over reference"));
    ev_proc_result_free(&r);
}

/* Times that differ among themselves: the intervals meet, and the medians decide. */
static void noise_disables_nothing(void **state) {
    (void)state;
    (void)setenv("EVOKE_STANDIN_JITTER", "0.2", 1);
    json_t *json = qualify("two", "cuda:0", "out", 0);
    (void)unsetenv("EVOKE_STANDIN_JITTER");
    const json_t *row = item(json, "rows", 2);
    assert_true(ev_json_number(row, "low_ns", 0) < ev_json_number(row, "high_ns", 0));
    assert_true(ev_json_number(row, "baseline_low_ns", 0) <
                ev_json_number(row, "baseline_high_ns", 0));
    assert_true(ev_json_number(row, "high_ns", 0) > ev_json_number(row, "baseline_low_ns", 0));
    json_decref(json);
}

/* Of a task with one start: nothing but the baseline is left. Then the text, and explain. */
static void the_baseline_is_left(void **state) {
    (void)state;
    copy("good", "slow");
    plant_slow("slow");
    ev_proc_result r = CLI_RUN("qualify", cli_path("slow"), "--device", "vm:h200");
    cli_expect(&r, 1);
    const char *text = ev_str_text(&r.out);
    assert_non_null(strstr(text, "kernel  tuned for  case   baseline"));
    assert_non_null(strstr(text, "modelled   slower\n"));
    assert_non_null(strstr(text, "disabled: scale for h200: case time: slower than the baseline"));
    assert_non_null(strstr(text, "in its place: baseline (plain)\n"));
    assert_non_null(strstr(text, "1 of 1 variants disabled\n"));
    ev_proc_result_free(&r);
    check_passes("slow-qualified");
    r = CLI_RUN("explain", cli_path("slow-qualified"));
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "\nDisabled: case time: slower"));
    ev_proc_result_free(&r);
    cli_expect_error(CLI_RUN("qualify", cli_path("slow"), "--device", "vm:h200"), 2,
                     "exists; name it with --out");
}

static void wrong_ones_are_disabled(void **state) {
    (void)state;
    static const char *const devices[] = {"vm:h200", "cuda:0"};
    for (size_t i = 0; i < 2; i++) {
        copy("good", "wrong");
        plant("wrong", "st.global", "// ");
        json_t *json = qualify("wrong", devices[i], "out", 1);
        expect_verdict(json, "wrong", "case smoke");
        assert_int_equal(json_array_size(json_object_get(json, "rows")), 1);
        json_decref(json);
        bundle *b = NULL;
        (void)open_bundle("out", &b);
        assert_int_equal(resolve(b, "h200", 90, 301).rung, BUNDLE_RUNG_BASELINE);
        bundle_close(b);
        check_passes("out");
    }
}

/* A variant that fails costs the others nothing, and --only leaves it alone. */
static void others_are_not_lost(void **state) {
    (void)state;
    copy("pair", "half");
    plant("half", "ld.param", "trap;\n");
    json_t *json = qualify("half", "cuda:0", "out", 1);
    expect_verdict(json, "fault", "case smoke");
    const json_t *other = item(json, "variants", 1);
    assert_string_equal(ev_json_text(other, "kernel", ""), "twice");
    assert_string_equal(ev_json_text(other, "verdict", ""), "pass");
    json_decref(json);
    check_passes("out");
    json = cli_json(CLI_RUN("qualify", cli_path("half"), "--only", "twice", "--device", "cuda:0",
                            "--out", cli_path("out"), "--json"),
                    0);
    assert_int_equal(json_array_size(json_object_get(json, "variants")), 1);
    json_decref(json);
    bundle *b = NULL;
    const bundle_kernel *k = open_bundle("out", &b);
    assert_int_equal(k[0].variants[0].qualified_count, 0);
    assert_int_equal(k[1].variants[0].qualified_count, 1);
    bundle_close(b);
}

/* What was tuned for a newer GPU does not load on an older one, which then gets a baseline and a
 * start of its own. */
static void refused_ones_are_disabled(void **state) {
    (void)state;
    json_t *json = qualify("two", "vm:t4", "t4", 1);
    expect_verdict(json, "refused", "sm_90");
    json_decref(json);
    bundle *b = NULL;
    (void)open_bundle("t4", &b);
    bundle_choice c = resolve(b, "t4", 75, 301);
    assert_int_equal(c.rung, BUNDLE_RUNG_EXACT);
    assert_int_equal(c.variant->sm, 75);
    assert_int_equal(resolve(b, "t4", 75, 100000).rung, BUNDLE_RUNG_BASELINE);
    bundle_close(b);
    check_passes("t4");
    /* on its own GPU it passes, and is handed out there again; on the T4 it stays disabled */
    json_decref(qualify("t4", "vm:h200", "both", 0));
    (void)open_bundle("both", &b);
    assert_int_equal(resolve(b, "h200", 90, 301).rung, BUNDLE_RUNG_EXACT);
    assert_int_equal(resolve(b, "t4", 75, 301).rung, BUNDLE_RUNG_EXACT);
    bundle_close(b);
    check_passes("both");
}

/* ---- faults ---- */

static void inject(const char *rules) {
    (void)setenv("EVOKE_STANDIN_FAIL", rules, 1);
}

/* In each process the baseline's launch is the first, the variant's the second. */
static void faults_are_the_variants(void **state) {
    (void)state;
    static const struct {
        const char *rules, *words;
    } rows[] = {
        {"launch:2=address", "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {"launch:2=address;cuCtxCreate_v2:2=700", ""}, /* and the context cannot be made anew */
        {"launch:2=hang", "the kernel runs on"},
        {"cuModuleLoadDataEx:3=jit", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        inject(rows[i].rules);
        bool hangs = strstr(rows[i].rules, "hang") != NULL;
        (void)setenv("EVOKE_WATCHDOG", hangs ? "2" : "600", 1);
        json_t *json = qualify("good", "cuda:0", "out", 1);
        (void)unsetenv("EVOKE_WATCHDOG");
        inject("");
        expect_verdict(json, i == 3 ? "refused" : "fault", rows[i].words);
        json_decref(json);
        check_passes("out");
    }
}

/* The baseline's own launch: the machine is to blame, and nothing is written. */
static void a_failing_machine_is_no_verdict(void **state) {
    (void)state;
    assert_int_equal(ev_dir_remove(cli_path("out"), NULL), EV_OK);
    inject("launch:1=lost");
    ev_proc_result r =
        CLI_RUN("qualify", cli_path("good"), "--device", "cuda:0", "--out", cli_path("out"));
    inject("");
    cli_expect_error(r, 3, "");
    assert_false(ev_path_exists(cli_path("out")));
    r = cli_shell("EVOKE_STANDIN= $EVOKE qualify /nowhere --device cuda:0");
    cli_expect_error(r, 2, "/nowhere");
    ev_str line = EV_STR_EMPTY;
    ev_str_printf(&line, "EVOKE_STANDIN= $EVOKE qualify %s --device cuda:0 --out %s",
                  cli_path("good"), cli_path("out"));
    cli_expect_error(cli_shell(ev_str_text(&line)), 3, "CUDA_ERROR_NO_DEVICE");
    ev_str_free(&line);
}

/* It fails at the second kernel's baseline: what was found of the first is kept, and told. */
static void what_was_judged_before_is_kept(void **state) {
    (void)state;
    copy("pair", "half");
    plant("half", "st.global", "// ");
    inject("launch:5=lost");
    ev_proc_result r =
        CLI_RUN("qualify", cli_path("half"), "--device", "cuda:0", "--out", cli_path("out"));
    inject("");
    cli_expect(&r, 3);
    assert_non_null(strstr(ev_str_text(&r.err), "has the 1 variants that were judged before"));
    assert_non_null(strstr(ev_str_text(&r.out), "disabled: scale for h200"));
    ev_proc_result_free(&r);
    bundle *b = NULL;
    const bundle_kernel *k = open_bundle("out", &b);
    assert_non_null(k[0].variants[0].disabled);
    assert_int_equal(k[1].variants[0].qualified_count, 0);
    bundle_close(b);
}

/* A baseline that is wrong on this machine leaves nothing to hold a variant against. */
static void a_failing_baseline_is_said(void **state) {
    (void)state;
    inject("launch:1=address");
    json_t *json = qualify("good", "cuda:0", "out", 1);
    inject("");
    expect_verdict(json, "unjudged", "the baseline");
    json_decref(json);
}

/* ---- usage ---- */

static void stops_in_time(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("qualify", cli_path("good"), "--device", "vm:h200", "--out",
                                    cli_path("late"), "--seconds", "0.000001", "--json"),
                            0);
    assert_int_equal(ev_json_integer(json, "not_reached", 0), 1);
    assert_string_equal(ev_json_text(item(json, "variants", 0), "verdict", ""), "not reached");
    json_decref(json);
    char *one = cli_read("good/manifest.json"), *two = cli_read("late/manifest.json");
    assert_string_equal(one, two);
    free(one);
    free(two);
}

static void usage_is_checked(void **state) {
    (void)state;
    cli_expect_error(CLI_RUN("qualify", cli_path("good"), "--only", "nope", "--device", "vm:h200"),
                     2, "has scale");
    cli_expect_error(CLI_RUN("qualify", cli_path("good"), "--device", "vm:nope"), 2, "nope");
    cli_expect_error(CLI_RUN("qualify", cli_path("task.json")), 2, "is no bundle");
    cli_expect_error(
        CLI_RUN("qualify", cli_path("good"), "--device", "vm:h200", "--out", cli_path("task.json")),
        2, "something else is there");
    cli_expect_error(CLI_RUN("qualify"), 2, "qualify");
    assert_false(ev_path_exists(cli_path("good-qualified")));
    json_t *json = cli_json(CLI_RUN("qualify", cli_path("good"), "--only", "scale", "--device",
                                    "vm:h200", "--out", cli_path("out"), "--json"),
                            0);
    json_decref(json);
}

/* A case that the bundle's task does not have is named. */
static void hostile_cases_are_named(void **state) {
    (void)state;
    copy("good", "hostile");
    cli_copy_changed("hostile/manifest.json", "hostile/manifest.json", "\"case\": \"time\"",
                     "\"case\": \"tame\"");
    cli_copy_changed("hostile/manifest.json", "hostile/manifest.json", "\"case\": \"time\"",
                     "\"case\": \"tame\"");
    ev_proc_result r =
        CLI_RUN("qualify", cli_path("hostile"), "--device", "vm:h200", "--out", cli_path("out"));
    cli_expect_error(r, 2, "names the case 'tame'");
}

/* Smaller shapes than those of the shared task: the stand-in computes each launch. */
static int setup(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_copy_changed("task.json", "task.json", "65536", "16384");
    cli_copy_changed("task.json", "task.json", "32768", "8192");
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loses_by_the_rule),
        cmocka_unit_test(judges_a_case),
        cmocka_unit_test(make_bundles),
        cmocka_unit_test(good_ones_pass),
        cmocka_unit_test(starts_are_to_beat),
        cmocka_unit_test(slow_ones_are_disabled),
        cmocka_unit_test(the_start_counts),
        cmocka_unit_test(references_disable_nothing),
        cmocka_unit_test(noise_disables_nothing),
        cmocka_unit_test(the_baseline_is_left),
        cmocka_unit_test(wrong_ones_are_disabled),
        cmocka_unit_test(make_pair),
        cmocka_unit_test(others_are_not_lost),
        cmocka_unit_test(refused_ones_are_disabled),
        cmocka_unit_test(faults_are_the_variants),
        cmocka_unit_test(a_failing_machine_is_no_verdict),
        cmocka_unit_test(what_was_judged_before_is_kept),
        cmocka_unit_test(a_failing_baseline_is_said),
        cmocka_unit_test(stops_in_time),
        cmocka_unit_test(usage_is_checked),
        cmocka_unit_test(hostile_cases_are_named),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
