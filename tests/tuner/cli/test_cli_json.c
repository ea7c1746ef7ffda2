/* What programs read: the JSON of every command, key by key, and what it says. */
#include "tests/cli_run.h"

#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/asserts.h"

static const json_t *get(const json_t *object, const char *key) {
    return json_object_get(object, key);
}

static const char *text(const json_t *object, const char *key) {
    return ev_json_text(object, key, "");
}

static double number(const json_t *object, const char *key) {
    return ev_json_number(object, key, -1);
}

static void lists_the_tasks(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("list", "--json"), 0);
    const json_t *tasks = get(json, "tasks");
    assert_true(json_array_size(tasks) >= 4);
    for (size_t i = 0; i < json_array_size(tasks); i++) {
        const json_t *t = json_array_get(tasks, i);
        cli_keys(t, "kernel:s family:s doc:s path:s task_sha256:s starts:a cases:a");
        assert_true(json_array_size(get(t, "starts")) >= 2);
        assert_true(json_array_size(get(t, "cases")) > 0);
        cli_keys(json_array_get(get(t, "cases"), 0), "case:s split:s use:s shape:o");
    }
    json_decref(json);
}

static void lists_the_named_tasks(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("list", "ar_adam", "examples/matmul/task.json", "--json"), 0);
    const json_t *tasks = get(json, "tasks");
    assert_int_equal(json_array_size(tasks), 2);
    assert_string_equal(text(json_array_get(tasks, 0), "kernel"), "ar_adam");
    assert_string_equal(text(json_array_get(tasks, 1), "kernel"), "matmul");
    json_decref(json);
    cli_expect_error(CLI_RUN("list", "ar_adm"), 2, "unknown task \"ar_adm\"; there are");
}

static void lists_the_devices(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("devices", "--json"), 0);
    const json_t *devices = get(json, "devices");
    size_t machines = 0;
    bool found = false;
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *d = json_array_get(devices, i);
        cli_keys(d, "device:s name:s sm:i time_kind:s memory_bytes:i max_threads_per_block:i "
                    "max_shared_per_block:i max_registers_per_thread:i");
        if (strncmp(text(d, "device"), "vm:", 3) != 0)
            continue;
        machines++;
        const json_t *figure = get(get(d, "figures"), "dram_bw_peak_GBs");
        cli_keys(figure, "value:n unit:s source:s checked:b");
        assert_string_equal(text(d, "time_kind"), "modelled");
        found = found || strcmp(text(d, "device"), "vm:h200") == 0;
    }
    assert_true(found);
    assert_int_equal(machines, 17);
    if (json_array_size(devices) == machines) /* why there is no GPU */
        assert_non_null(strstr(text(json, "no_gpu"), "CUDA driver"));
    else
        assert_null(get(json, "no_gpu"));
    json_decref(json);
}

static void runs_a_kernel(void **state) {
    (void)state;
    json_t *json =
        cli_json(CLI_RUN("run", cli_path("add.ptx"), "--block", "2", "--arg", "in:0000803f00000040",
                         "--arg", "out:8", "--arg", "u32:2", "--json"),
                 0);
    cli_keys(json, "status:s outputs:a counters:o");
    assert_string_equal(text(json, "status"), "ok");
    assert_int_equal(json_array_size(get(json, "outputs")), 1);
    assert_string_equal(json_string_value(json_array_get(get(json, "outputs"), 0)),
                        "0000004000004040"); /* 2.0 and 3.0 */
    cli_keys(get(json, "counters"),
             "thread_instructions:i warp_instructions:i blocks:i "
             "global_load_bytes:i shared_passes:i barriers:i warp_by_pipe:o");
    assert_true(number(get(json, "counters"), "global_load_bytes") == 8);
    json_decref(json);
}

static void takes_a_files_bytes(void **state) {
    (void)state;
    cli_write("one", "abcd");
    ev_str spec = EV_STR_EMPTY;
    ev_str_printf(&spec, "inout:@%s", cli_path("one"));
    json_t *json = cli_json(CLI_RUN("run", cli_path("add.ptx"), "--arg", ev_str_text(&spec),
                                    "--arg", "out:4", "--arg", "u32:1", "--json"),
                            0);
    assert_string_equal(json_string_value(json_array_get(get(json, "outputs"), 0)), "61626364");
    json_decref(json);
    ev_str_free(&spec);
}

static void ends_an_endless_loop(void **state) {
    (void)state;
    cli_write("loop.ptx", ".version 7.8\n.target sm_70\n.address_size 64\n"
                          ".visible .entry spin()\n{\nagain:\n  bra again;\n}\n");
    json_t *json = cli_json(CLI_RUN("run", cli_path("loop.ptx"), "--fuel", "100000", "--json"), 1);
    assert_string_equal(text(get(json, "trap"), "kind"), "livelock");
    assert_true(json_is_null(get(get(json, "trap"), "address")));
    json_decref(json);
}

/* Outputs are told in the order of out and inout arguments; in is none. */
static void tells_outputs_in_order(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("run", cli_path("add.ptx"), "--arg", "inout:0000803f", "--arg",
                                    "out:4", "--arg", "u32:1", "--json"),
                            0);
    assert_int_equal(json_array_size(get(json, "outputs")), 2);
    assert_string_equal(json_string_value(json_array_get(get(json, "outputs"), 0)), "0000803f");
    assert_string_equal(json_string_value(json_array_get(get(json, "outputs"), 1)), "00000040");
    json_decref(json);
}

static void tells_a_trap(void **state) {
    (void)state;
    const char *ptx = cli_path("add.ptx");
    json_t *json = cli_json(CLI_RUN("run", ptx, "--block", "2", "--arg", "in:0000803f", "--arg",
                                    "out:8", "--arg", "u32:2", "--json"),
                            1);
    cli_keys(json, "status:s trap:o");
    assert_string_equal(text(json, "status"), "trap");
    const json_t *trap = get(json, "trap");
    cli_keys(trap, "kind:s rank:i line:i column:i block:a thread:a address:i message:s");
    assert_string_equal(text(trap, "kind"), "out-of-bounds");
    assert_int_equal(number(trap, "line"), 15);
    assert_int_equal(json_array_size(get(trap, "thread")), 3);
    assert_int_equal(json_integer_value(json_array_get(get(trap, "thread"), 0)), 1);
    json_decref(json);
    ev_proc_result r = CLI_RUN("run", ptx, "--block", "2", "--arg", "in:0000803f", "--arg", "out:8",
                               "--arg", "u32:2");
    cli_expect(&r, 1);
    assert_non_null(strstr(ev_str_text(&r.err), "    15 | ld.global.f32 %f1, [%rd1];\n"));
    ev_proc_result_free(&r);
}

/* Where ptxas is known to break the PTX ISA, the launch is as the ISA says, and stderr says so. */
static void warns_of_the_assembler(void **state) {
    (void)state;
    cli_write("set.ptx",
              ".version 8.0\n.target sm_90\n.address_size 64\n"
              ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %p; .reg .b16 %a; .reg .b32 %d; "
              ".reg .pred %g;\nld.param.u64 %p, [p];\nmov.u16 %a, 3;\nmov.u32 %d, 7;\n"
              "setp.ne.u16 %g, %a, 3;\n@%g set.eq.u32.u16 %d, %a, %a;\n"
              "st.global.u32 [%p], %d;\nret;\n}\n");
    ev_proc_result r = CLI_RUN("run", cli_path("set.ptx"), "--arg", "out:4");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "output 0: 07000000\n"));
    assert_non_null(strstr(ev_str_text(&r.err), "set.ptx:11: ptxas 12.4 and 13.0 change"));
    ev_proc_result_free(&r);
    r = CLI_RUN("run", cli_path("add.ptx"), "--arg", "inout:0000803f", "--arg", "out:4", "--arg",
                "u32:1");
    cli_expect(&r, 0);
    assert_string_equal(ev_str_text(&r.err), "");
    ev_proc_result_free(&r);
}

/* Prints before it traps; the trap stands behind a tab and another statement. */
static const char printing_ptx[] =
    ".version 8.5\n.target sm_90\n.address_size 64\n"
    ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);\n"
    ".global .align 1 .b8 words[9] = {114, 97, 110, 107, 32, 37, 100, 10};\n"
    ".visible .entry say(.param .u32 n)\n{\n.reg .b32 %r<4>; .reg .b64 %d<4>;\n"
    ".local .align 8 .b32 args[2];\nld.param.u32 %r1, [n]; st.local.u32 [args], %r1;\n"
    "mov.u64 %d1, words; cvta.global.u64 %d1, %d1;\nmov.u64 %d2, args; cvta.local.u64 %d2, %d2;\n"
    "call (%r2), vprintf, (%d1, %d2);\n"
    "\tmov.u64 %d1, 4;\tld.global.u32\t%r1, [%d1];\nret;\n}\n";

static void prints_and_points(void **state) {
    (void)state;
    ev_error err = {0};
    assert_int_equal(
        ev_file_write(cli_path("say.ptx"), printing_ptx, sizeof printing_ptx - 1, &err), EV_OK);
    ev_proc_result r = CLI_RUN("run", cli_path("say.ptx"), "--arg", "u32:7");
    cli_expect(&r, 1);
    const char *said = ev_str_text(&r.err);
    const char *trap = strstr(said, "trap: ");
    if (strncmp(said, "rank 7\n", 7) != 0 || trap == NULL)
        fail_msg("%s", said);
    assert_non_null(strstr(trap, "out-of-bounds"));
    assert_non_null(strstr(trap, "    14 | mov.u64 %d1, 4;\tld.global.u32\t%r1, [%d1];\n"
                                 "       |                \t^\n"));
    ev_proc_result_free(&r);
}

/* Those that move most first; all together they move it all. */
static void profiles_accesses(const json_t *accesses) {
    double all = 0, before = 1;
    bool loads = false;
    for (size_t i = 0; i < json_array_size(accesses); i++) {
        const json_t *at = json_array_get(accesses, i);
        cli_keys(at, "line:i source_line:i stall_share:n waited_for:o executions:i "
                     "sectors_per_request:n passes_per_request:n lanes_per_request:n text:s "
                     "traffic_share:n");
        double share = number(at, "traffic_share");
        assert_true(share > 0 && share <= before && number(at, "executions") > 0);
        before = share;
        all += share;
        loads |= strstr(text(at, "text"), "ld.global") != NULL &&
                 number(at, "sectors_per_request") == 4 && number(at, "lanes_per_request") == 32;
    }
    assert_true(loads && fabs(all - 1) < 1e-9);
}

static void profiles_a_task(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("profile", cli_path("task.json"), "--json"), 0);
    cli_keys(
        json,
        "status:s kernel:s case:s device:s time_kind:s ns:n warm_ns:n executed_floor_ns:n "
        "bound_by:s "
        "launch:o occupancy:o term_ns:o peak_share:o stall_share:o memory:o counters:o "
        "lines:a source_lines:a accesses:a blocks:i sampled_blocks:i repeated_blocks:i grid:s");
    assert_string_equal(text(json, "grid"), "even");
    assert_string_equal(text(json, "case"), "time");
    assert_string_equal(text(json, "time_kind"), "modelled");
    assert_true(number(json, "ns") > number(json, "executed_floor_ns"));
    assert_null(get(json, "floor_ns")); /* the task declares no work */
    assert_int_equal(json_integer_value(json_array_get(get(get(json, "launch"), "grid"), 0)), 512);
    cli_keys(get(json, "occupancy"),
             "registers:i shared_bytes:i blocks_per_sm:i warps_per_sm:i max_warps_per_sm:i "
             "limiter:s waves:n spilled:i");
    cli_keys(get(json, "memory"),
             "load_sectors_per_request:n store_sectors_per_request:n shared_passes_per_request:n "
             "bank_conflict_share:n l1_hit_rate:n l2_bytes:n dram_bytes:n divergent_share:n "
             "lanes_per_instruction:n");
    assert_true(number(get(json, "memory"), "load_sectors_per_request") == 4);
    assert_true(number(get(json, "memory"), "lanes_per_instruction") == 32);
    double sum = 0;
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)get(json, "stall_share"), key, value) {
        sum += json_number_value(value);
    }
    assert_true(sum > 0.99 && sum < 1.01);
    assert_true(json_array_size(get(json, "lines")) > 3);
    static const char line[] = "line:i source_line:i stall_share:n waited_for:o executions:i "
                               "sectors_per_request:n passes_per_request:n lanes_per_request:n "
                               "text:s";
    const json_t *hot = json_array_get(get(json, "lines"), 0);
    cli_keys(hot, line);
    sum = 0;
    json_object_foreach((json_t *)get(hot, "waited_for"), key, value) {
        sum += json_number_value(value);
    }
    assert_true(sum > 0 && fabs(sum - number(hot, "stall_share")) < 1e-9);
    hot = json_array_get(get(json, "source_lines"), 0);
    cli_keys(hot, line);
    assert_non_null(strstr(text(hot, "text"), "part[threadIdx.x] = i < n ? x[i]"));
    profiles_accesses(get(json, "accesses"));
    json_decref(json);
}

/* Everything is there, and fits 100 columns. */
static void profiles_in_words(void **state) {
    (void)state;
    static const char *const words[] = {
        "launch      grid 512 x 1 x 1, block 128 x 1 x 1\n",
        " modelled, warm ",
        "\nfloor       not known: the task declares no work; what was executed takes at least ",
        "bound by    ",
        "occupancy   16 of 64 warps an SM (25 %) in 4 blocks, limited by grid; 0.97 waves",
        "unit ",
        "share of its peak",
        "of warps' cycles",
        "\ndram ",
        " of bytes moved",
        "\nglobal loads ",
        "\nconflicts   0 % of the passes",
        "\ndivergence  0 of ",
        "\nsource  stalls  waiting for ",
        "  part[threadIdx.x] = i < n ? x[i]",
        "  ld.global",
        "\nPTX  source  traffic  lanes  sectors  passes  text\n"};
    ev_proc_result r = CLI_RUN("profile", cli_path("task.json"));
    cli_expect(&r, 0);
    const char *out = ev_str_text(&r.out);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(out, words[i]) == NULL)
            fail_msg("no '%s' in\n%s", words[i], out);
    for (size_t length, at = 0; out[at] != '\0'; at += length + (out[at + length] == '\n')) {
        length = strcspn(out + at, "\n");
        size_t columns = 0; /* characters of UTF-8 */
        for (size_t i = 0; i < length; i++)
            columns += ((unsigned char)out[at + i] & 0xc0u) != 0x80u;
        if (columns > 100)
            fail_msg("%zu columns: %.*s", columns, (int)length, out + at);
    }
    ev_proc_result_free(&r);
}

static void profiles_a_file(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("profile", cli_path("add.ptx"), "--device", "vm:t4", "--arg",
                                    "in:0000803f", "--arg", "out:4", "--arg", "u32:1", "--lines",
                                    "2", "--json"),
                            0);
    assert_string_equal(text(json, "kernel"), "add");
    assert_string_equal(text(json, "device"), "vm:t4");
    assert_int_equal(json_array_size(get(json, "lines")), 2);
    json_decref(json);
    json = cli_json(CLI_RUN("profile", cli_path("add.ptx"), "--block", "9", "--arg", "in:0000803f",
                            "--arg", "out:4", "--arg", "u32:1", "--json"),
                    1);
    assert_string_equal(text(json, "status"), "trap");
    json_decref(json);
}

static void checks_a_task(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("check", cli_path("task.json"), "--json"), 0);
    cli_keys(json, "verdict:s rows:a");
    assert_string_equal(text(json, "verdict"), "pass");
    assert_int_equal(json_array_size(get(json, "rows")), 6);
    for (size_t i = 0; i < 6; i++) {
        const json_t *row = json_array_get(get(json, "rows"), i);
        cli_keys(row, "kernel:s split:s case:s verdict:s error:n tolerance:n");
        assert_true(number(row, "error") <= number(row, "tolerance"));
    }
    json_decref(json);
    json = cli_json(CLI_RUN("check", cli_path("task.json"), "--split", "held-out", "--json"), 0);
    assert_int_equal(json_array_size(get(json, "rows")), 2);
    json_decref(json);
}

static void finds_a_regression(void **state) {
    (void)state;
    cli_copy_changed("scale.cu", "worse.cu", "* 2.0f", "* 2.00001f");
    cli_copy_changed("task.json", "worse.json", "\"plain\", \"source\": \"scale.cu\"",
                     "\"plain\", \"source\": \"worse.cu\", \"entry\": \"scale\"");
    json_t *json = cli_json(CLI_RUN("check", cli_path("worse.json"), "--json"), 1);
    assert_string_equal(text(json, "verdict"), "fail");
    const json_t *row = json_array_get(get(json, "rows"), 0);
    assert_string_equal(text(row, "verdict"), "fail");
    assert_non_null(strstr(text(row, "reason"), "disagrees"));
    json_decref(json);
}

static void benches_compilation(void **state) {
    (void)state;
    json_t *json = cli_json(
        CLI_RUN("bench", "compile", "--variants", "6", "--only", cli_path("task.json"), "--json"),
        0);
    cli_keys(json, "bench:s ms_mean:n own_share:n own_share_deviation:n rows:a");
    assert_string_equal(text(json, "bench"), "compile");
    const json_t *row = json_array_get(get(json, "rows"), 0);
    cli_keys(row, "kernel:s variants:i ms_mean:n ms_p90:n own_share:n rejected:i aborted:i");
    double all = number(row, "variants") + number(row, "rejected") + number(row, "aborted");
    assert_true(all == 6);
    assert_true(number(row, "ms_mean") > 0 && number(row, "own_share") > 0);
    json_decref(json);
}

static void benches_bundles(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("bench", "bundle", "--variants", "40", "--json"), 0);
    cli_keys(json, "bench:s rows:a");
    assert_int_equal(json_array_size(json_object_get(json, "rows")), 2);
    const json_t *row = json_array_get(json_object_get(json, "rows"), 1);
    cli_keys(
        row,
        "kernels:i variants_each:i tar_bytes:i open_ms:n open_tar_ms:n open_cpu_ms:n verify_ms:n "
        "resolve_ns:n memory_by_file:n");
    assert_int_equal(ev_json_integer(row, "variants_each", 0), 40);
    assert_true(ev_json_number(row, "resolve_ns", 0) > 0);
    json_decref(json);
}

static void benches_the_machine(void **state) {
    (void)state;
    json_t *json =
        cli_json(CLI_RUN("bench", "vm", "--only", "histogram", "--checks", "none", "--json"), 0);
    cli_keys(json, "bench:s rows:a");
    assert_int_equal(json_array_size(get(json, "rows")), 1);
    const json_t *row = json_array_get(get(json, "rows"), 0);
    cli_keys(row, "kernel:s checks:s thread_instructions:i seconds:n per_second:n");
    assert_string_equal(text(row, "checks"), "none");
    double product = number(row, "per_second") * number(row, "seconds");
    double instructions = number(row, "thread_instructions");
    assert_true(instructions > 1e6 && product > 0.999 * instructions &&
                product < 1.001 * instructions);
    json_decref(json);
}

static void benches_parts_of_the_machine(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("bench", "vm", "--only", "load", "--json"), 0);
    const json_t *load = get(json, "load");
    cli_keys(load, "lines:i bytes:i ms:n ms_p10:n ms_p90:n ms_per_1000_lines:n bar:n");
    assert_true(number(load, "lines") > 300 && number(load, "ms") > 0);
    double each = number(load, "ms") * 1000 / number(load, "lines");
    assert_true(each > 0.999 * number(load, "ms_per_1000_lines") &&
                each < 1.001 * number(load, "ms_per_1000_lines"));
    json_decref(json);
    json = cli_json(CLI_RUN("bench", "vm", "--only", "shadow", "--json"), 0);
    const json_t *shadow = get(json, "shadow");
    assert_int_equal(json_array_size(shadow), 4);
    for (size_t i = 0; i < json_array_size(shadow); i++) {
        const json_t *row = json_array_get(shadow, i);
        cli_keys(row, "kernel:s bytes:i shadow_bytes:i list_bytes:i shadow_per_byte:n bar:n");
        assert_true(number(row, "bytes") > 1e6);
        assert_true(number(row, "shadow_bytes") <= number(row, "bar") * number(row, "bytes"));
    }
    assert_true(number(json_array_get(shadow, 0), "shadow_per_byte") > 1.5);
    json_decref(json);
    cli_expect_error(CLI_RUN("bench", "vm", "--only", "nothing"), 2, "load, jobs, sizes, shadow");
}

/* Strategies are compared at the seeds from --seed on. */
static void benches_strategies(void **state) {
    (void)state;
    cli_copy_changed("task.json", "two.json", "{\"name\": \"plain\", ",
                     "{\"name\": \"textbook\", \"source\": \"scale.cu\", \"grid\": "
                     "\"ceil_div(n, 128)\", \"block\": 128}, {\"name\": \"hand\", ");
    json_t *json = cli_json(CLI_RUN("bench", "search", "--strategies", "--among", "macros",
                                    "--seeds", "2", "--seed", "7", "--evaluations", "1", "--only",
                                    cli_path("two.json"), "--json"),
                            0);
    const json_t *rows = get(json, "rows");
    assert_int_equal(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(number(json_array_get(rows, i), "seed"), 7 + i / 2);
    for (size_t i = 0; i < 4; i++)
        cli_keys(get(json_array_get(rows, i), "genome"), "start:s macros:o edits:a");
    json_decref(json);
}

static void benches_the_search(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("bench", "search", "--evaluations", "12", "--only",
                                    cli_path("task.json"), "--json"),
                            0);
    cli_keys(json, "bench:s scored_per_second:n scored:i duplicates:i rejected:o stage_seconds:o "
                   "stage_shares:o duplicates_by:o recalled_by:o audits:o estimates:o filter:o "
                   "scored_per_second_a_core:n workers:i "
                   "scored_per_cpu_second:n cpu_seconds:n coordinator_bytes:i "
                   "coordinator_ms_an_evaluation:n records_bytes_an_evaluation:n");
    assert_true(number(json, "scored") + number(json, "duplicates") >= 12);
    cli_keys(get(json, "rejected"), "verify:i emit:i safe:i accurate:i timed:i promoted:i");
    static const char stages[] = "mutate:n build:n load:n safe:n accurate:n timed:n promote:n "
                                 "coordinator:n other:n";
    cli_keys(get(json, "stage_seconds"), stages);
    cli_keys(get(json, "stage_shares"), stages);
    cli_keys(get(json, "duplicates_by"), "genome:i IR:i sketch:i PTX:i");
    double by =
        number(get(json, "duplicates_by"), "genome") + number(get(json, "duplicates_by"), "IR") +
        number(get(json, "duplicates_by"), "sketch") + number(get(json, "duplicates_by"), "PTX");
    assert_true(by == number(json, "duplicates"));
    cli_keys(get(json, "recalled_by"), "sketch-run:i run:i");
    cli_keys(get(json, "audits"), "audited:i missed:i miss:n");
    cli_keys(get(json, "estimates"), "made:i audited:i faster:i slower:i");
    double shares = 0;
    const char *name = NULL;
    json_t *share = NULL;
    json_object_foreach((json_t *)get(json, "stage_shares"), name, share) shares +=
        json_number_value(share);
    assert_true(shares > 0.99 && shares < 1.5); /* two clocks: other is never negative */
    assert_true(number(json, "cpu_seconds") > 0 && number(json, "coordinator_bytes") > 1e6);
    json_decref(json);
}

/* A start that is wrong at one value of its macro: said, and not drawn again. */
static void tune_lists_wrong_settings(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", "tests/fitness/gates/width/task.json", "--evaluations",
                                    "60", "--seed", "1", "--workers", "1", "--records",
                                    cli_path("wrong.sqlite"), "--json"),
                            0);
    const json_t *list = get(json, "wrong_settings");
    assert_int_equal(json_array_size(list), 1);
    const json_t *one = json_array_get(list, 0);
    cli_keys(one, "kernel:s start:s macros:s gate:s reason:s");
    assert_string_equal(text(one, "macros"), "WIDTH=3");
    assert_string_equal(text(one, "gate"), "accurate");
    json_decref(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_the_tasks),
        cmocka_unit_test(lists_the_named_tasks),
        cmocka_unit_test(lists_the_devices),
        cmocka_unit_test(runs_a_kernel),
        cmocka_unit_test(tells_outputs_in_order),
        cmocka_unit_test(takes_a_files_bytes),
        cmocka_unit_test(ends_an_endless_loop),
        cmocka_unit_test(tells_a_trap),
        cmocka_unit_test(prints_and_points),
        cmocka_unit_test(profiles_a_task),
        cmocka_unit_test(tune_lists_wrong_settings),
        cmocka_unit_test(profiles_in_words),
        cmocka_unit_test(profiles_a_file),
        cmocka_unit_test(checks_a_task),
        cmocka_unit_test(finds_a_regression),
        cmocka_unit_test(benches_compilation),
        cmocka_unit_test(benches_bundles),
        cmocka_unit_test(benches_the_machine),
        cmocka_unit_test(benches_parts_of_the_machine),
        cmocka_unit_test(benches_strategies),
        cmocka_unit_test(benches_the_search),
        cmocka_unit_test(warns_of_the_assembler),
    };
    return cmocka_run_group_tests(tests, cli_setup, cli_teardown);
}
