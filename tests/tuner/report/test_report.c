/* Report: the page holds what the records hold, as text that no browser takes for markup, and
 * stays small for large runs. */
#include "tuner/report/report.h"

#include "base/file.h"
#include "tuner/report/inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define START_NS 8000.0

static ev_error err;
static char scratch[64], path[128];

static int make_scratch(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-report-XXXXXX");
    bool made = mkdtemp(scratch) != NULL;
    (void)snprintf(path, sizeof path, "%s/run.sqlite", scratch);
    return !made;
}

static int remove_scratch(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

/* ---- a run ---- */

typedef struct made_child {
    const char *parents, *operators, *gate;
    double ns, error;
    uint32_t bold;
} made_child;

static const made_child CHILDREN[] = {
    {"", "start", "none", START_NS, 0, 0},
    {"0", "unroll", "none", 4000, 1e-7, 0},
    {"0", "unroll", "seen", 0, 0, 0},
    {"1", "delete", "accurate", 0, 0, 0},
    {"1,0", "crossover,unroll", "none", 2000, 1e-6, 0},
    {"4", "delete", "none", 1000, 2e-6, 1}, /* bold */
    {"1", "unroll", "none", 5000, 5e-7, 0}, /* beaten in both */
};
#define CHILD_COUNT (sizeof CHILDREN / sizeof CHILDREN[0])

static const char ROWS[] =
    "[{\"kernel\":\"a<b\",\"case\":\"wide\",\"baseline_ns\":8000.0,\"hand_ns\":0.0,\"best_ns\":"
    "2000.0,\"speedup\":4.0,\"error\":1e-6,\"tolerance\":2e-6,\"floor_share\":0.5,\"time_kind\":"
    "\"modelled\",\"promoted\":true}]";

static records_winner winner_of(void) {
    return (records_winner){.kernel = "a<b",
                            .task_path = "/nowhere/task.json",
                            .task_sha256 = "00",
                            .device = "vm:h200",
                            .gpu_name = "A & B",
                            .sm = 90,
                            .start = "plain",
                            .genome = "{}",
                            .genome_sha256 = "00",
                            .ptx = "",
                            .ptx_sha256 = "00",
                            .entry = "f",
                            .baseline_ptx = "",
                            .baseline_entry = "f",
                            .rows = ROWS,
                            .score = "{}",
                            .edits = "unrolls 4 times: 90 % of the gain\n<script>alert(1)</script>",
                            .versions = "{}",
                            .seed = 7,
                            .promoted = true,
                            .bold = "",
                            .stress = "",
                            .portfolio = ""};
}

static records *create(void) {
    records *r = NULL;
    json_t *identity = json_pack("{s:s}", "device", "vm:h200");
    OK(records_create(path, identity, &r, &err));
    json_decref(identity);
    return r;
}

static void put_child(records *r, uint64_t number, const made_child *child) {
    const records_evaluation e = {.phase = "search",
                                  .number = number,
                                  .parents = child->parents,
                                  .operators = child->operators,
                                  .gate = child->gate,
                                  .reason = "",
                                  .ns = child->ns,
                                  .error = child->error,
                                  .score = "",
                                  .bold = child->bold,
                                  .seconds = (double)number / 10};
    OK(records_put(r, &e, &err));
}

/* The run above, open for reading. */
static records *make_run(bool wins) {
    records *r = create();
    for (size_t i = 0; i < CHILD_COUNT; i++)
        put_child(r, i, &CHILDREN[i]);
    const records_winner w = winner_of();
    if (wins)
        OK(records_put_winner(r, 0, &w, true, &err));
    records_close(r);
    OK(records_open_read(path, &r, &err));
    return r;
}

static void end_run(records *r) {
    records_close(r);
    assert_int_equal(remove(path), 0);
}

/* ---- the page ---- */

static size_t count_of(const char *text, const char *part) {
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static void expect(const char *page, const char *part, size_t times) {
    if (count_of(page, part) != times)
        fail_msg("the page has '%s' %zu times, not %zu", part, count_of(page, part), times);
}

static void test_page(void **state) {
    (void)state;
    ev_str page = EV_STR_EMPTY;
    records_close(make_run(true));
    OK(report_records(path, &page, &err));
    const char *text = ev_str_text(&page);
    assert_int_equal(strncmp(text, "<!DOCTYPE html>", 15), 0);
    expect(text, "<td data-v=\"4\">4.00x</td>", 1);
    expect(text, "<td data-v=\"8000\">8.00 us</td>", 2); /* the table, and the lineage's root */
    expect(text, "a&lt;b", 4); /* link, its text, the heading and its name */
    expect(text, "A &amp; B", 1);
    expect(text, "&lt;script&gt;alert(1)", 1);
    expect(text, "<script>", 1); /* the page's own */
    expect(text, "<svg ", 4);
    expect(text, "class=\"member\"", 4); /* the front: 6 alone is beaten in both */
    expect(text, "Not known: ", 1);      /* the task is not there */
    expect(text, "http", 0);             /* nothing from a network */
    assert_int_equal(count_of(text, "<tr>"), count_of(text, "</tr>"));
    assert_int_equal(count_of(text, "<td"), count_of(text, "</td>"));
    ev_str_free(&page);
    assert_int_equal(remove(path), 0);
}

static void test_no_winner(void **state) {
    (void)state;
    ev_str page = EV_STR_EMPTY;
    records_close(make_run(false));
    assert_int_equal(report_records(path, &page, &err), EV_BAD);
    assert_non_null(strstr(err.text, "has no winner yet"));
    assert_int_equal(page.length, 0);
    assert_int_equal(remove(path), 0);
    assert_int_equal(report_records(path, &page, &err), EV_BAD); /* no such file */
    ev_str_free(&page);
}

/* ---- the data ---- */

static void test_children(void **state) {
    (void)state;
    report_task t;
    records *r = make_run(true);
    const records_winner w = winner_of();
    OK(report_task_read(r, 0, "k", &w, &t, &err));
    assert_int_equal(t.evaluations, CHILD_COUNT);
    assert_int_equal(t.count, 5);
    assert_float_equal(report_start_ns(&t), START_NS, 0);
    assert_int_equal(report_fastest(&t)->number, 4); /* 5 is bold */
    assert_int_equal(report_find(&t, 4)->parent, 1); /* the faster parent */
    assert_null(report_find(&t, 3));                 /* stopped */
    bool on[5];
    OK(report_mark_front(&t, on, &err));
    const bool want[] = {true, true, true, true, false};
    assert_memory_equal(on, want, sizeof want);
    unsigned arm = 0;
    assert_true(arm_find("unroll", &arm));
    assert_int_equal(t.edits.arms[arm].drawn, 4);
    assert_int_equal(t.edits.arms[arm].duplicates, 1);
    assert_int_equal(t.edits.arms[arm].better, 2);
    report_task_free(&t);
    end_run(r);
}

/* 20,000 evaluations make a page of less than 1 MB. */
static void test_large_run(void **state) {
    (void)state;
    ev_str page = EV_STR_EMPTY;
    records *r = create();
    for (uint64_t i = 0; i < 20000; i++) {
        const made_child child = {
            "0", "unroll", "none", START_NS / (1 + (double)i / 1e4), 1e-7 * (double)(i % 97), 0};
        put_child(r, i, &child);
    }
    const records_winner w = winner_of();
    OK(records_put_winner(r, 0, &w, true, &err));
    records_close(r);
    OK(report_records(path, &page, &err));
    assert_in_range(page.length, 10000, 1000000);
    /* the last number of an axis ends at its tick, as half of it would be cut */
    assert_non_null(strstr(page.data, " text-anchor=\"end\">20000</text>"));
    assert_null(strstr(page.data, " text-anchor=\"middle\">20000</text>"));
    ev_str_free(&page);
    assert_int_equal(remove(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_no_winner),
        cmocka_unit_test(test_children),
        cmocka_unit_test(test_large_run),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
