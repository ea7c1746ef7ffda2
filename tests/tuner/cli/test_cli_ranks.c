/* evoke run --ranks: buffers of each rank, arguments that name another rank's, outputs and traps by
 * rank. */
#include "tests/cli_run.h"

#include "base/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Adds the rank to the rank's own numbers, for the next rank; thread 0 notes how many ranks there
 * are in rank 0's second result. */
static const char push[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry push(.param .u64 a, .param .u64 y, .param .u64 next, .param .u64 peers,\n"
    "                     .param .u32 rank, .param .u32 ranks, .param .u64 n) {\n"
    ".reg .b32 %r<8>; .reg .b64 %d<8>; .reg .pred %p<2>;\n"
    "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [a]; ld.param.u64 %d1, [next];\n"
    "mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;\n"
    "ld.global.u32 %r1, [%d0]; ld.param.u32 %r2, [rank]; add.u32 %r1, %r1, %r2;\n"
    "st.global.u32 [%d1], %r1; setp.ne.u32 %p0, %r0, 0; @%p0 ret;\n"
    "ld.param.u64 %d3, [peers]; ld.global.u64 %d3, [%d3]; ld.param.u32 %r3, [ranks];\n"
    "red.sys.global.add.u32 [%d3], %r3; ret; }\n";

#define PUSH(...)                                                                                  \
    CLI_RUN("run", cli_path("push.ptx"), "--arg",                                                  \
            "in:0000000001000000,1000000011000000,2000000021000000", "--arg", "out:8", "--arg",    \
            "next:1", "--arg", "peers:6", "--arg", "rank:u32", "--arg", "ranks:u32", "--arg",      \
            "inout:05000000", __VA_ARGS__)

static int setup(void **state) {
    int failed = cli_setup(state);
    if (!failed)
        cli_write("push.ptx", push);
    return failed;
}

static const char *output(const json_t *rank, size_t i) {
    return json_string_value(json_array_get(json_object_get(rank, "outputs"), i));
}

static void runs_ranks(void **state) {
    (void)state;
    json_t *json = cli_json(PUSH("--ranks", "3", "--block", "2", "--json"), 0);
    assert_string_equal(ev_json_text(json, "status", ""), "ok");
    const json_t *ranks = json_object_get(json, "ranks");
    static const char *const want[][2] = {{"2200000023000000", "0e000000"},
                                          {"0000000001000000", "05000000"},
                                          {"1100000012000000", "05000000"}};
    assert_int_equal(json_array_size(ranks), 3);
    for (size_t i = 0; i < 3; i++) {
        const json_t *rank = json_array_get(ranks, i);
        cli_keys(rank, "outputs:a counters:o");
        assert_string_equal(output(rank, 0), want[i][0]);
        assert_string_equal(output(rank, 1), want[i][1]);
        const json_t *counters = json_object_get(rank, "counters");
        assert_int_equal(ev_json_number(counters, "peer_store_bytes", -1), i == 0 ? 8 : 12);
        assert_int_equal(ev_json_number(counters, "peer_atomics", -1), i == 0 ? 0 : 1);
    }
    json_decref(json);
    ev_proc_result r = PUSH("--ranks", "3", "--block", "2", "--schedule", "9");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "rank 1\noutput 0: 0000000001000000\n"));
    ev_proc_result_free(&r);
}

/* The same on GPUs, which are the stand-in's, and where each rank is. */
static void runs_on_gpus(void **state) {
    (void)state;
    json_t *json =
        cli_json(PUSH("--ranks", "3", "--block", "2", "--json", "--device", "cuda:0"), 0);
    assert_non_null(strstr(ev_json_text(json, "placement", ""), "3 ranks on 2 GPUs with peer"));
    const json_t *ranks = json_object_get(json, "ranks");
    static const char *const want[] = {"2200000023000000", "0000000001000000", "1100000012000000"};
    for (size_t i = 0; i < 3; i++)
        assert_string_equal(output(json_array_get(ranks, i), 0), want[i]);
    json_decref(json);
    ev_proc_result r = PUSH("--ranks", "3", "--block", "2", "--device", "cuda:2");
    cli_expect(&r, 0);
    assert_non_null(strstr(ev_str_text(&r.out), "3 ranks on one GPU, cuda:2, a stream each: cuda:1 "
                                                "is another model\n\nrank 0\n"));
    ev_proc_result_free(&r);
}

/* Each rank reads 4 KB of its own and stores them at the next, in packets of 128 bytes. */
static const char shift[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry shift(.param .u64 a, .param .u64 y, .param .u64 next) {\n"
    ".reg .b32 %r<4>; .reg .b64 %d<4>;\n"
    "mov.u32 %r0, %tid.x; ld.param.u64 %d0, [a]; ld.param.u64 %d1, [next];\n"
    "mul.wide.u32 %d2, %r0, 4; add.u64 %d0, %d0, %d2; add.u64 %d1, %d1, %d2;\n"
    "ld.global.u32 %r1, [%d0]; st.global.u32 [%d1], %r1; ret; }\n";

static void profiles_ranks(void **state) {
    (void)state;
    cli_write("shift.ptx", shift);
    char zeros[4096] = "";
    memset(zeros, '0', sizeof zeros - 1);
    cli_write("data", zeros);
    ev_str in = EV_STR_EMPTY;
    ev_str_printf(&in, "inout:@%s", cli_path("data"));
#define SHIFT(...)                                                                                 \
    CLI_RUN("profile", cli_path("shift.ptx"), "--block", "1023", "--arg", ev_str_text(&in),        \
            "--arg", "out:4096", "--arg", "next:1", "--ranks", __VA_ARGS__)
    json_t *json = cli_json(SHIFT("2", "--json"), 0);
    cli_keys(json, "status:s time_kind:s compute_ns:n interconnect_stall_ns:n network_stall_ns:n "
                   "ranks:a slowest_rank:i profile:o");
    assert_int_equal(json_array_size(json_object_get(json, "ranks")), 2);
    const json_t *rank = json_array_get(json_object_get(json, "ranks"), 1);
    cli_keys(rank, "compute_ns:n interconnect_stall_ns:n network_stall_ns:n link_in_bytes:n "
                   "link_out_bytes:n");
    assert_true(ev_json_number(rank, "link_out_bytes", 0) == 4096 + 32 * 16);
    assert_true(ev_json_number(rank, "link_in_bytes", 0) == 4096 + 32 * 16);
    assert_true(ev_json_number(rank, "compute_ns", 0) > 0);
    assert_true(ev_json_number(rank, "network_stall_ns", 0) > 0);
    json_decref(json);
    ev_proc_result r = SHIFT("2");
    cli_expect(&r, 0);
    const char *out = ev_str_text(&r.out);
    assert_non_null(strstr(out, "shift, 2 ranks on vm:h200"));
    assert_non_null(strstr(out, "interconnect stall"));
    assert_non_null(strstr(out, "\nrank 1 "));
    assert_non_null(strstr(out, "\nlink "));
    ev_proc_result_free(&r);
    cli_expect_error(SHIFT("2", "--device", "cuda:0"), 2, "the times of ranks are modelled");
    cli_expect_error(CLI_RUN("profile", "bp_data_masked", "--ranks", "2"), 2, "for a FILE.ptx");
    ev_str_free(&in);
}

/* One rank works, and tells the other, which waits for that by a loop. */
static const char waits[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .entry waits(.param .u64 mine, .param .u64 next, .param .u32 rank, .param .u32 "
    "works) {\n"
    ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;\n"
    "ld.param.u64 %d0, [mine]; ld.param.u64 %d1, [next]; ld.param.u32 %r0, [rank];\n"
    "ld.param.u32 %r1, [works]; setp.ne.u32 %p0, %r0, %r1; @%p0 bra WAIT;\n"
    "mov.u32 %r1, 0; mov.u32 %r2, 1;\n"
    "L: mul.lo.u32 %r2, %r2, 5; add.u32 %r2, %r2, 3; add.u32 %r1, %r1, 1;\n"
    "setp.lt.u32 %p1, %r1, 20000; @%p1 bra L;\n"
    "st.global.u32 [%d0+4], %r2; fence.acq_rel.sys; mov.u32 %r3, 1;\n"
    "st.release.sys.global.u32 [%d1], %r3; ret;\n"
    "WAIT: ld.acquire.sys.global.u32 %r4, [%d0]; setp.eq.u32 %p2, %r4, 0; @%p2 bra WAIT;\n"
    "st.global.u32 [%d0+4], %r4; ret; }\n";

/* Who waits is not to blame, however often it looks. */
static void blames_who_works(void **state) {
    (void)state;
    cli_write("waits.ptx", waits);
    for (int works = 0; works < 2; works++) {
        json_t *json =
            cli_json(CLI_RUN("profile", cli_path("waits.ptx"), "--ranks", "2", "--block", "32",
                             "--arg", "inout:0000000000000000", "--arg", "next:0", "--arg",
                             "rank:u32", "--arg", works ? "u32:1" : "u32:0", "--json"),
                     0);
        assert_int_equal(ev_json_number(json, "slowest_rank", -1), works);
        const json_t *ranks = json_object_get(json, "ranks");
        double busy = ev_json_number(json_array_get(ranks, (size_t)works), "compute_ns", 0);
        double idle = ev_json_number(json_array_get(ranks, (size_t)!works), "compute_ns", 0);
        if (!(idle > 0 && idle < busy / 10))
            fail_msg("%g ns of who works, %g ns of who waits", busy, idle);
        json_decref(json);
    }
}

static void tells_the_rank_of_a_trap(void **state) {
    (void)state;
    json_t *json = cli_json(CLI_RUN("run", cli_path("push.ptx"), "--ranks", "2", "--block", "2",
                                    "--arg", "in:0000000000000000", "--arg", "out:8", "--arg",
                                    "next:0", "--arg", "peers:6", "--arg", "rank:u32", "--arg",
                                    "ranks:u32", "--arg", "inout:05000000", "--json"),
                            1);
    const json_t *trap = json_object_get(json, "trap");
    cli_keys(trap, "kind:s rank:i line:i column:i block:a thread:a address:i message:s");
    assert_string_equal(ev_json_text(trap, "kind", ""), "write-outside-outputs");
    assert_non_null(strstr(ev_json_text(trap, "message", ""), "buffer 'a' of rank 1, in rank 0"));
    json_decref(json);
}

static void refuses(void **state) {
    (void)state;
    cli_expect_error(PUSH("--ranks", "2"), 2, "3 parts for 2 ranks");
    cli_expect_error(PUSH("--ranks", "0"), 2, "--ranks 0: give 1 to 1024");
    cli_expect_error(CLI_RUN("run", cli_path("push.ptx"), "--ranks", "2", "--arg", "peers:9"), 2,
                     "7 parameters");
    static const struct {
        const char *arg, *words;
    } wrong[] = {{"next:3", "argument 3 is no buffer"},
                 {"next:9", "argument 9 is no buffer"},
                 {"next:x", "needs the number of an argument"},
                 {"rank:f64", "needs a type: u32"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        cli_expect_error(CLI_RUN("run", cli_path("push.ptx"), "--ranks", "2", "--arg", "in:00",
                                 "--arg", "out:8", "--arg", wrong[i].arg, "--arg", "peers:1",
                                 "--arg", "rank:u32", "--arg", "ranks:u32", "--arg",
                                 "inout:05000000"),
                         2, wrong[i].words);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_ranks),
        cmocka_unit_test(runs_on_gpus),
        cmocka_unit_test(profiles_ranks),
        cmocka_unit_test(blames_who_works),
        cmocka_unit_test(tells_the_rank_of_a_trap),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, setup, cli_teardown);
}
