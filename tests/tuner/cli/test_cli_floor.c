/* The floor that a task declares, from end to end: a kernel that reaches it ends the search, no
 * share is shown of anything else, and waste does not raise it. */
#include "base/json.h"
#include "base/str.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cli_run.h"

/* y = x + 1, four numbers a thread: nothing but the bytes. `wasteful` reads each number of a second
 * buffer, too, and adds nothing of it. */
static const char stream_cu[] =
    "#include \"evoke_cuda.h\"\n"
    "extern \"C\" __global__ void stream(const float4 *x, const float4 *z, float4 *y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) {\n"
    "        float4 v = x[i];\n"
    "        y[i] = make_float4(v.x + 1.0f, v.y + 1.0f, v.z + 1.0f, v.w + 1.0f);\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void wasteful(const float4 *x, const float4 *z, float4 *y, int n) {\n"
    "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) {\n"
    "        float4 v = x[i], w = z[i];\n"
    "        float a = fminf(fabsf(w.x), 1.0f) * 1e-30f;\n"
    "        y[i] = make_float4(v.x + 1.0f + a, v.y + 1.0f, v.z + 1.0f, v.w + 1.0f);\n"
    "    }\n"
    "}\n";

/* So many timed cases that none is drawn: a small one would be far from its floor. */
#define TIMED(name, n)                                                                             \
    "  {\"name\": \"" name "\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": " n   \
    "}},\n"
#define MORE TIMED("a", "360448") TIMED("b", "458752") TIMED("c", "655360")

#define WORK_LINE " \"work\": {\"bytes\": \"32 * n\", \"f32\": \"4 * n\"},\n"

static const char stream_json[] =
    "{\"name\": \"stream\", \"family\": \"tests\", \"doc\": \"y = x + 1\",\n"
    " \"arguments\": [\n"
    "  {\"name\": \"x\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"4 * n\",\n"
    "   \"data\": {\"generator\": \"normal\"}},\n"
    "  {\"name\": \"z\", \"kind\": \"in\", \"type\": \"f32\", \"count\": \"4 * n\",\n"
    "   \"data\": {\"generator\": \"normal\"}, \"domain\": {\"finite\": true}},\n"
    "  {\"name\": \"y\", \"kind\": \"out\", \"type\": \"f32\", \"count\": \"4 * n\"},\n"
    "  {\"name\": \"n\", \"kind\": \"scalar\", \"type\": \"s32\"}],\n"
    " \"starts\": [{\"name\": \"plain\", \"source\": \"stream.cu\", \"grid\": \"ceil_div(n, "
    "256)\",\n"
    "  \"block\": 256}],\n"
    " \"oracle\": \"baseline\", \"tolerance\": {\"relative_l2\": 1e-6},\n" WORK_LINE
    " \"cases\": [\n"
    "  {\"name\": \"smoke\", \"split\": \"search\", \"use\": \"smoke\", \"shape\": {\"n\": 64}},\n"
    "  {\"name\": \"odd\", \"split\": \"search\", \"use\": \"check\", \"shape\": {\"n\": 301}},\n"
    "  {\"name\": \"time\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": "
    "524288}},\n"
    "  {\"name\": \"less\", \"split\": \"search\", \"use\": \"time\", \"shape\": {\"n\": "
    "262144}},\n" MORE
    "  {\"name\": \"other\", \"split\": \"held-out\", \"use\": \"check\", \"shape\": {\"n\": "
    "200}},\n"
    "  {\"name\": \"later\", \"split\": \"held-out\", \"use\": \"time\", \"shape\": {\"n\": "
    "393216}}]}"
    "\n";

static int set_up(void **state) {
    if (cli_setup(state) != 0)
        return 1;
    cli_write("stream.cu", stream_cu);
    cli_write("stream.json", stream_json);
    cli_copy_changed("stream.json", "none.json", WORK_LINE, "");
    /* half of the bytes: the kernel stays far from that on every case */
    cli_copy_changed("stream.json", "low.json", "32 * n", "16 * n");
    /* on one case of the two alone */
    cli_copy_changed("stream.json", "one.json", "32 * n", "32 * n * (n > 300000)");
    cli_copy_changed("stream.json", "drawn.json", MORE, "");
    cli_copy_changed("stream.json", "wasteful.json", "\"source\": \"stream.cu\"",
                     "\"source\": \"stream.cu\", \"entry\": \"wasteful\"");
    return 0;
}

static const json_t *row_of(const json_t *json) {
    const json_t *row = json_array_get(json_object_get(json, "rows"), 0);
    assert_non_null(row);
    return row;
}

static void stops_at_the_floor(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("tune", cli_path("stream.json"), "--evaluations", "100",
                                    "--records", cli_path("r.sqlite"), "--workers", "1", "--json"),
                            0);
    json_int_t evaluations = ev_json_integer(json, "evaluations", 0);
    assert_in_range(evaluations, 1, 90); /* well before the budget */
    const json_t *row = row_of(json);
    assert_true(ev_json_flag(row, "at_floor", false));
    double share = ev_json_number(row, "floor_share", 0);
    assert_true(share >= 1 / 1.05 && share <= 1);
    assert_true(fabs(ev_json_number(row, "floor_ns", 0) - (3130 + 32.0 * 393216 / 4554)) < 1e-6);
    json_decref(json);
    /* as many children with more workers, and the same rows from the records */
    json = cli_json(CLI_RUN("tune", cli_path("stream.json"), "--evaluations", "100", "--workers",
                            "3", "--json"),
                    0);
    assert_int_equal(ev_json_integer(json, "evaluations", 0), evaluations);
    json_decref(json);
    json = cli_json(CLI_RUN("tune", cli_path("stream.json"), "--evaluations", "100", "--records",
                            cli_path("r.sqlite"), "--resume", "--json"),
                    0);
    assert_true(ev_json_flag(row_of(json), "at_floor", false));
    assert_true(ev_json_number(row_of(json), "floor_share", 0) == share);
    json_decref(json);
}

static void says_so_in_words(void **state) {
    (void)state;
    ev_proc_result r = CLI_RUN("tune", cli_path("stream.json"), "--evaluations", "100");
    cli_expect(&r, 0);
    const char *out = ev_str_text(&r.out), *said = ev_str_text(&r.err);
    assert_non_null(strstr(out, "of floor"));
    assert_non_null(strstr(out, "stream: the search stopped early: its best is within 5 % of the "
                                "floor on all timed cases\n"));
    assert_non_null(strstr(said, "of the floor that the task declares, or more, on every timed "
                                 "case: the search stops"));
    ev_proc_result_free(&r);
    r = CLI_RUN("explain", cli_path("r.sqlite"));
    cli_expect(&r, 0);
    out = ev_str_text(&r.out);
    assert_non_null(strstr(out, "  later: "));
    assert_non_null(strstr(out, ", the floor is 5.89 us, 9"));
    ev_proc_result_free(&r);
}

/* One timed case that is far from its floor is enough to go on, a drawn one as well. */
static void goes_on_elsewhere(void **state) {
    (void)state;
    static const char *const tasks[] = {"low.json", "one.json", "drawn.json", "none.json"};
    for (size_t i = 0; i < sizeof tasks / sizeof tasks[0]; i++) {
        json_t *json =
            cli_json(CLI_RUN("tune", cli_path(tasks[i]), "--evaluations", "20", "--json"), 0);
        assert_int_equal(ev_json_integer(json, "evaluations", 0), 20);
        assert_false(ev_json_flag(row_of(json), "at_floor", true));
        assert_true((json_object_get(row_of(json), "floor_ns") == NULL) == (i == 3));
        json_decref(json);
    }
    ev_proc_result r = CLI_RUN("tune", cli_path("none.json"), "--evaluations", "4");
    cli_expect(&r, 0);
    assert_non_null(
        strstr(ev_str_text(&r.out),
               "stream: no floor is known: the task declares no work (docs/task.md)\n"));
    ev_proc_result_free(&r);
}

static json_t *profile_of(const char *task) {
    return cli_json(CLI_RUN("profile", cli_path(task), "--case", "time", "--json"), 0);
}

/* Half as many bytes again raise what was executed, and not the floor. */
static void waste_is_no_work(void **state) {
    (void)state;
    json_t *plain = profile_of("stream.json"), *wasteful = profile_of("wasteful.json");
    cli_keys(plain, "floor_ns:n floor_share:n floor_bound_by:s executed_floor_ns:n");
    assert_true(ev_json_number(plain, "floor_ns", 0) == ev_json_number(wasteful, "floor_ns", 1));
    assert_true(ev_json_number(wasteful, "executed_floor_ns", 0) >
                1.5 * ev_json_number(plain, "executed_floor_ns", 0));
    assert_true(ev_json_number(wasteful, "floor_share", 0) <
                0.85 * ev_json_number(plain, "floor_share", 0));
    json_decref(plain);
    json_decref(wasteful);
    ev_proc_result r = CLI_RUN("profile", cli_path("stream.json"), "--case", "time");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "\nfloor       6.81 us by the task's work: DRAM "
                                                "and a launch of 3.13 us; 9"));
    ev_proc_result_free(&r);
}

/* A start that moves less than the task declares, beside a baseline that moves more. */
static void too_fast_is_an_alarm(void **state) {
    (void)state;
    cli_copy_changed("stream.json", "much.json", "32 * n", "44 * n");
    cli_copy_changed("much.json", "alarm.json", "\"starts\": [",
                     "\"starts\": [{\"name\": \"slow\", \"source\": \"stream.cu\", \"entry\": "
                     "\"wasteful\", \"grid\": \"ceil_div(n, 256)\", \"block\": 256}, ");
    cli_copy_changed("alarm.json", "fine.json", "44 * n", "32 * n");
    static const char *const tasks[] = {"alarm.json", "fine.json"};
    for (size_t i = 0; i < 2; i++) {
        json_t *json = cli_json(
            CLI_RUN("tune", cli_path(tasks[i]), "--start", "plain", "--evaluations", "2", "--json"),
            0);
        const json_t *rejected = json_object_get(json, "rejected");
        assert_int_equal(ev_json_integer(rejected, "timed", -1), i == 0);
        assert_int_equal(ev_json_integer(rejected, "accurate", -1), 0);
        json_decref(json);
    }
}

/* A reference is checked and timed, and no search begins there, though it is the faster start. */
static void references_are_not_searched(void **state) {
    (void)state;
    cli_copy_changed("stream.json", "twin.json", "\"starts\": [{",
                     "\"starts\": [{\"name\": \"slow\", \"source\": \"stream.cu\", \"entry\": "
                     "\"wasteful\", \"grid\": \"ceil_div(n, 256)\", \"block\": 256}, "
                     "{\"reference\": true, ");
    json_t *json =
        cli_json(CLI_RUN("tune", cli_path("twin.json"), "--evaluations", "8", "--json"), 0);
    const json_t *row = row_of(json);
    assert_string_equal(ev_json_text(row, "start", ""), "slow");
    assert_false(ev_json_flag(row, "at_floor", true));
    assert_true(ev_json_number(row, "hand_ns", 0) < 0.9 * ev_json_number(row, "best_ns", 0));
    json_decref(json);
    cli_expect_error(CLI_RUN("tune", cli_path("twin.json"), "--start", "plain"), 2,
                     "has its start 'plain' as a reference, which is never searched");
    json = cli_json(CLI_RUN("check", cli_path("twin.json"), "--start", "plain", "--json"), 0);
    assert_string_equal(ev_json_text(row_of(json), "start", ""), "plain");
    json_decref(json);
}

/* Of a search of one start alone, the rows have the time of that start as it is beside those of the
 * first and the last one. */
static void one_start_is_timed(void **state) {
    (void)state;
    cli_copy_changed("stream.json", "three.json", "\"starts\": [{",
                     "\"starts\": [{\"name\": \"slow\", \"source\": \"stream.cu\", \"entry\": "
                     "\"wasteful\", \"grid\": \"ceil_div(n, 256)\", \"block\": 256}, "
                     "{\"name\": \"middle\", \"source\": \"stream.cu\", \"entry\": "
                     "\"wasteful\", \"grid\": \"ceil_div(n, 64)\", \"block\": 64}, {");
    static const char *const starts[] = {"slow", "middle", "plain", "all"};
    double alone[4], first[4], last[4];
    for (size_t i = 0; i < 4; i++) {
        json_t *json = cli_json(CLI_RUN("tune", cli_path("three.json"), "--evaluations", "1",
                                        "--start", starts[i], "--json"),
                                0);
        alone[i] = ev_json_number(row_of(json), "alone_ns", 0);
        first[i] = ev_json_number(row_of(json), "baseline_ns", 0);
        last[i] = ev_json_number(row_of(json), "hand_ns", 0);
        json_decref(json);
    }
    assert_true(alone[0] == first[0] && alone[2] == last[2] && alone[3] == 0);
    assert_true(alone[1] > 0 && alone[1] != first[1] && alone[1] != last[1]);
}

/* Relabelled blocks of a coarsened grid, of which many have work for one of three members: as many
 * instructions, a third of the stores. Such blocks stand for each other alone, or the time comes
 * out below the floor (9.9 us where 14.0 us of bytes move). */
static void idle_members_are_no_gain(void **state) {
    (void)state;
    cli_write("idle.genome",
              "{\"start\": \"hand\", \"macros\": {\"STEPS\": 1}, \"edits\": ["
              "{\"kind\": \"relabel-blocks\", \"option\": 4}, {\"anchor\": \"y\", \"form\": "
              "\"neighbours\", \"kind\": \"coarsen\", \"option\": 3}, "
              "{\"kind\": \"relabel-blocks\", \"option\": 8}]}");
    json_t *json = cli_json(CLI_RUN("check", "ar_adam", "--genome", cli_path("idle.genome"),
                                    "--split", "search", "--json"),
                            0);
    const json_t *rows = json_object_get(json, "rows"), *row = NULL;
    size_t timed = 0, i = 0;
    json_array_foreach(rows, i, row) {
        if (strcmp(ev_json_text(row, "case", ""), "coconet.2p20-p4") != 0)
            continue;
        assert_true(ev_json_number(row, "ns", 0) >= 3130 + 52.0 * 1048576 / 4554);
        timed++;
    }
    assert_int_equal(timed, 1);
    json_decref(json);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops_at_the_floor),   cmocka_unit_test(says_so_in_words),
        cmocka_unit_test(goes_on_elsewhere),    cmocka_unit_test(waste_is_no_work),
        cmocka_unit_test(too_fast_is_an_alarm), cmocka_unit_test(references_are_not_searched),
        cmocka_unit_test(one_start_is_timed),   cmocka_unit_test(idle_members_are_no_gain)};
    return cmocka_run_group_tests(tests, set_up, cli_teardown);
}
