/* A bundle whose manifest lies is found out: one lie a key, by evoke check, before anything runs.
 */
#include "base/file.h"
#include "base/json.h"
#include "bundle/reader.h"
#include "tests/cli_run.h"
#include "tuner/check/manifest.h"
#include "tuner/run/shipped.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char *honest; /* the manifest */

/* An assembler whose machine code is the text's check sum. */
static const char fake_ptxas[] =
    "#!/bin/sh\n"
    "[ \"$1\" = --version ] && { echo 'Cuda compilation tools, release 1.2, V1.2.3'; exit; }\n"
    "echo 'ptxas info    : Function properties for scale' >&2\n"
    "echo '    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads' >&2\n"
    "echo 'ptxas info    : Used 16 registers' >&2\n"
    "printf '\\177ELF '; cksum\n";

static int make_bundle(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_write("ptxas", fake_ptxas);
    if (chmod(cli_path("ptxas"), 0700) != 0 || setenv("EVOKE_PTXAS", cli_path("ptxas"), 1) != 0)
        return 1;
    ev_proc_result r =
        CLI_RUN("tune", cli_path("task.json"), "--bold", "--evaluations", "120", "--seed", "1",
                "--records", cli_path("r.sqlite"), "--out", cli_path("out"));
    cli_expect(&r, 0);
    ev_proc_result_free(&r);
    honest = cli_read("out/manifest.json");
    return 0;
}

static int remove_bundle(void **state) {
    free(honest);
    return cli_teardown(state);
}

/* The lies that are found; -1: the bundle does not even open. */
static int count_lies(ev_str *reasons) {
    bundle *b = NULL;
    task *t = NULL;
    ev_error err = {0};
    json_t *lies = json_array();
    if (bundle_open(cli_path("out"), &b, &err) != EV_OK) {
        ev_str_append(reasons, err.text);
        json_decref(lies);
        return -1;
    }
    const bundle_kernel *k = bundle_kernel_at(b, 0);
    if (shipped_task(b, k, &(shipped_trust){.oracle = true}, NULL, &t, &err) != EV_OK) {
        ev_str_append(reasons, err.text);
        bundle_close(b);
        json_decref(lies);
        return -1;
    }
    if (check_manifest(k, t, lies, &err) != EV_OK)
        fail_msg("%s", err.text);
    for (size_t i = 0; i < json_array_size(lies); i++)
        ev_str_printf(reasons, "%s\n", ev_json_text(json_array_get(lies, i), "reason", ""));
    int count = (int)json_array_size(lies);
    json_decref(lies);
    task_free(t);
    bundle_close(b);
    return count;
}

/* The machine code stands beside the PTX, with what the assembler says of it. */
static void the_machine_code_is_there(void **state) {
    (void)state;
    ev_error err = {0};
    bundle *b = NULL;
    if (bundle_open(cli_path("out"), &b, &err) != EV_OK)
        fail_msg("%s", err.text);
    const bundle_kernel *k = bundle_kernel_at(b, 0);
    assert_int_equal(k->variants[0].cubin_count, 1);
    assert_int_equal(k->baselines[0].cubin_count, 1);
    const bundle_cubin *c = &k->variants[0].cubins[0];
    assert_string_equal(c->arch, "sm_90");
    assert_string_equal(c->assembler, "ptxas V1.2.3");
    assert_true(c->registers == 16 && c->spill_bytes == 8 && c->bytes > 4);
    assert_memory_equal(c->data, "\177ELF", 4);
    bundle_close(b);
}

static void the_truth_is_taken(void **state) {
    (void)state;
    ev_str reasons = EV_STR_EMPTY;
    if (count_lies(&reasons) != 0)
        fail_msg("%s", ev_str_text(&reasons));
    ev_str_free(&reasons);
}

/* A path in the manifest ("kernels.0.variants.0.gpu.sm"), and what is put there (JSON; NULL: the
 * key is taken out). "KERNEL" and "VARIANT" stand for the paths of the first of each. */
typedef struct lie_row {
    const char *path, *value;
} lie_row;

static const lie_row rows[] = {
    {"schema", "\"other\""},
    {"version", "5"},
    {"evoke", "1"},
    {"files", "{}"},
    {"FILE.sha256", "\"00\""},
    {"FILE.bytes", "5"},
    {"KERNEL.kernel", "\"other\""},
    {"KERNEL.family", "\"other\""},
    {"KERNEL.doc", "\"y = 3 x\""},
    {"KERNEL.task", "\"tasks/scale/scale.cu\""},
    {"KERNEL.task_sha256", "\"00\""},
    {"KERNEL.arguments", "[]"},
    {"KERNEL.arguments.0.name", "\"z\""},
    {"KERNEL.arguments.0.kind", "\"out\""},
    {"KERNEL.arguments.0.type", "\"f64\""},
    {"KERNEL.arguments.0.expression", "\"2 * n\""},
    {"KERNEL.arguments.0.align", "64"},
    {"KERNEL.arguments.0.offset", "0"},
    {"KERNEL.arguments.0.struct_bytes", "8"},
    {"KERNEL.arguments.2.type", "\"u64\""},
    {"KERNEL.arguments.2.expression", "\"n - 1\""},
    {"KERNEL.symbols", "[{\"name\": \"a\", \"type\": \"f32\", \"count\": \"1\"}]"},
    {"KERNEL.baselines.0.launch.grid.0", "\"1\""},
    {"VARIANT.sha256", "\"00\""},
    {"VARIANT.entry", "\"other\""},
    {"VARIANT.start", "\"hand\""},
    {"VARIANT.ptx_version", "\"6.0\""},
    {"VARIANT.target", "\"sm_90a\""},
    {"VARIANT.least_cuda", "\"9.0\""},
    {"VARIANT.least_driver", "384"},
    {"VARIANT.launch.grid.0", "\"1/0\""},
    {"VARIANT.launch.grid.0", "\"1/(n-n)\""},
    {"VARIANT.launch.grid.0", "\"9223372036854775807*4\""},
    {"VARIANT.launch.grid.0", "\"9223372036854775807*n\""},
    {"VARIANT.launch.grid.0", "\"n\""},
    {"VARIANT.launch.grid.1", "\"2\""},
    {"VARIANT.launch.block.0", "\"64\""},
    {"VARIANT.launch.block.0", "\"n * 1000\""},
    {"VARIANT.launch.shared", "\"4\""},
    {"VARIANT.launch.macros", "{\"TILE\": 4}"},
    {"VARIANT.gpu.id", "\"a100\""},
    {"VARIANT.gpu.name", "\"NVIDIA H100\""},
    {"VARIANT.gpu.sm", "80"},
    {"VARIANT.gpu.sms", "100"},
    {"VARIANT.gpu.driver_names", "[\"A100\"]"},
    {"VARIANT.gpu.sm_mhz", "1700"},
    {"VARIANT.gpu.sm_mhz", "-1"},
    {"VARIANT.resources.registers", "3"},
    {"VARIANT.resources.shared_bytes", "3"},
    {"VARIANT.resources.dynamic_shared_bytes", "3"},
    {"VARIANT.resources.local_bytes", "3"},
    {"VARIANT.resources.max_threads", "3"},
    {"VARIANT.time_kind", "\"guessed\""},
    {"VARIANT.error", "-1e308"},
    {"VARIANT.error", "0.5"},
    {"VARIANT.tolerance", "1"},
    {"VARIANT.tolerance", "-1"},
    {"VARIANT.cases.0.case", "\"other\""},
    {"VARIANT.cases.0.split", "\"held-out\""},
    {"VARIANT.cases.0.shape.n", "63"},
    {"VARIANT.cases.0.shape", "{\"m\": 64}"},
    {"VARIANT.cases.0.error", "-1e308"},
    {"VARIANT.cases.0.error", "0.1"},
    {"TIMED.ns", "-4"},
    {"TIMED.low_ns", "1e300"},
    {"TIMED.high_ns", "0"},
    {"TIMED.low_ns", "0.5"},
    {"TIMED.high_ns", "1e9"},
    {"TIMED.baseline_ns", "0"},
    {"TIMED.baseline_low_ns", "1e300"},
    {"TIMED.baseline_low_ns", "0.5"},
    {"TIMED.baseline_high_ns", "0"},
    {"TIMED.baseline_high_ns", "1e9"},
    {"VARIANT.ranges", "[]"},
    {"VARIANT.ranges.0.name", "\"m\""},
    {"VARIANT.ranges.0.low", "0"},
    {"VARIANT.ranges.0.high", "1e15"},
    {"VARIANT.ranges.0.multiple", "64"},
    {"VARIANT.provenance.genome", "{\"start\": \"plain\"}"},
    {"VARIANT.provenance.genome", "{\"no\": \"genome\"}"},
    {"VARIANT.provenance.genome_sha256", "\"00\""},
    {"VARIANT.provenance.edits", "[]"},
    {"VARIANT.provenance.records_sha256", "\"00\""},
    {"VARIANT.provenance.versions.driver", "\"CUDA driver 13.0\""},
    {"VARIANT.meaning", "\"preserving\""},
    {"VARIANT.changes", "[\"nothing much\"]"},
    {"VARIANT.default", "1"},
    {"VARIANT.alignments", "{\"x\": 64}"},
    {"VARIANT.cubins", "[]"},
    {"VARIANT.cubins.0.arch", "\"sm_80\""},
    {"VARIANT.cubins.0.arch", "\"ninety\""},
    {"VARIANT.cubins.0.sha256", "\"00\""},
    {"VARIANT.cubins.0.registers", "17"},
    {"VARIANT.cubins.0.registers", "-1"},
    {"VARIANT.cubins.0.spill_bytes", "4"},
    {"VARIANT.cubins.0.assembler", "5"},
    {"VARIANT.tried", "{}"},
    {"VARIANT.qualified", "[{}]"},
    {"VARIANT.disabled", "\"\""},
};

/* The member of an object or array that a part of a path names. */
static json_t *member(json_t *of, const char *part) {
    return json_is_array(of) ? json_array_get(of, (size_t)strtoul(part, NULL, 10))
                             : json_object_get(of, part);
}

static json_t *first_timed(json_t *variant) {
    json_t *cases = json_object_get(variant, "cases"), *c = NULL;
    size_t i = 0;
    json_array_foreach(cases, i, c) {
        if (json_object_get(c, "ns") != NULL)
            return c;
    }
    fail_msg("no case is timed");
    return NULL;
}

static json_t *root_of(json_t *manifest, const char *part) {
    json_t *kernel = json_array_get(json_object_get(manifest, "kernels"), 0);
    json_t *variant = json_array_get(json_object_get(kernel, "variants"), 0);
    if (strcmp(part, "KERNEL") == 0)
        return kernel;
    if (strcmp(part, "VARIANT") == 0)
        return variant;
    if (strcmp(part, "TIMED") == 0)
        return first_timed(variant);
    if (strcmp(part, "FILE") == 0)
        return json_object_get(json_object_get(manifest, "files"), "tasks/scale/scale.cu");
    return json_object_get(manifest, part);
}

static void tell(json_t *manifest, const lie_row *row) {
    char path[128], *rest = NULL;
    (void)snprintf(path, sizeof path, "%s", row->path);
    json_t *value = row->value != NULL ? json_loads(row->value, JSON_DECODE_ANY, NULL) : NULL;
    assert_true((value != NULL) == (row->value != NULL));
    char *part = strtok_r(path, ".", &rest), *next = strtok_r(NULL, ".", &rest);
    json_t *at = next != NULL ? root_of(manifest, part) : manifest;
    for (part = next != NULL ? next : part; (next = strtok_r(NULL, ".", &rest)) != NULL;
         part = next)
        at = member(at, part);
    if (value == NULL)
        assert_int_equal(json_object_del(at, part), 0);
    else if (json_is_array(at))
        assert_int_equal(json_array_set_new(at, (size_t)strtoul(part, NULL, 10), value), 0);
    else
        assert_int_equal(json_object_set_new(at, part, value), 0);
}

static void each_lie_is_found(void **state) {
    (void)state;
    size_t missed = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *manifest = json_loads(honest, 0, NULL);
        tell(manifest, &rows[i]);
        char *text = ev_json_print(manifest, false);
        cli_write("out/manifest.json", text);
        free(text);
        json_decref(manifest);
        ev_str reasons = EV_STR_EMPTY;
        if (count_lies(&reasons) == 0) {
            print_error("%s: %s is believed\n", rows[i].path,
                        rows[i].value != NULL ? rows[i].value : "its absence");
            missed++;
        }
        ev_str_free(&reasons);
    }
    cli_write("out/manifest.json", honest);
    assert_int_equal(missed, 0);
}

/* Each row changes one key, and an interval has two ends. */
static void a_modelled_baseline_has_no_spread(void **state) {
    (void)state;
    json_t *manifest = json_loads(honest, 0, NULL), *c = NULL;
    json_t *cases = json_object_get(root_of(manifest, "VARIANT"), "cases");
    double ns = 0;
    size_t i = 0;
    json_array_foreach(cases, i, c) {
        ns = ev_json_number(c, "baseline_ns", 0);
        if (ns > 0)
            break;
    }
    assert_true(ns > 0);
    for (int lies = 0; lies < 2; lies++) {
        ev_str reasons = EV_STR_EMPTY;
        (void)json_object_set_new(c, "baseline_low_ns", json_real(lies ? ns / 2 : ns));
        (void)json_object_set_new(c, "baseline_high_ns", json_real(lies ? ns * 2 : ns));
        char *text = ev_json_print(manifest, false);
        cli_write("out/manifest.json", text);
        free(text);
        assert_int_equal(count_lies(&reasons) > 0, lies);
        ev_str_free(&reasons);
    }
    json_decref(manifest);
    cli_write("out/manifest.json", honest);
}

/* By the command: the reason is told, and the exit code is that of a regression. */
static void the_command_tells_them(void **state) {
    (void)state;
    json_t *manifest = json_loads(honest, 0, NULL);
    tell(manifest, &(lie_row){"VARIANT.launch.grid.0", "\"1/(n-n)\""});
    char *text = ev_json_print(manifest, false);
    cli_write("out/manifest.json", text);
    free(text);
    json_decref(manifest);
    json_t *json = cli_json(CLI_RUN("check", cli_path("out"), "--json"), 1);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_string_equal(ev_json_text(row, "role", ""), "manifest");
    assert_non_null(strstr(ev_json_text(row, "reason", ""), "division by zero"));
    json_decref(json);
    cli_write("out/manifest.json", honest);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_truth_is_taken),
        cmocka_unit_test(the_machine_code_is_there),
        cmocka_unit_test(each_lie_is_found),
        cmocka_unit_test(a_modelled_baseline_has_no_spread),
        cmocka_unit_test(the_command_tells_them),
    };
    return cmocka_run_group_tests(tests, make_bundle, remove_bundle);
}
