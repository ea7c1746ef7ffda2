/* Live page: it is replaced in one step, reloads itself while the run lasts, and no longer. */
#include "tuner/report/live.h"

#include "base/file.h"
#include "base/proc.h"
#include "tuner/report/inside.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;
static char scratch[64], page_path[128], records_path[128];

static int make_scratch(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-live-XXXXXX");
    bool made = mkdtemp(scratch) != NULL;
    (void)snprintf(page_path, sizeof page_path, "%s/page.html", scratch);
    (void)snprintf(records_path, sizeof records_path, "%s/run.sqlite", scratch);
    return !made;
}

static int remove_scratch(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

static void read_page(ev_str *out) {
    char *text = NULL;
    size_t bytes = 0;
    OK(ev_file_read(page_path, &text, &bytes, &err));
    ev_str_clear(out);
    ev_str_append(out, text);
    free(text);
    assert_non_null(strstr(ev_str_text(out), "</html>"));
}

static size_t files_in_scratch(void) {
    size_t count = 0;
    DIR *folder = opendir(scratch);
    assert_non_null(folder);
    for (const struct dirent *e = readdir(folder); e != NULL; e = readdir(folder))
        count += e->d_name[0] != '.';
    (void)closedir(folder);
    return count;
}

/* Records of two tasks that are searched; they stay open, as in a run. */
static records *begin_run(void) {
    records *r = NULL;
    json_t *identity = json_pack("{s:s, s:I, s:[{s:s}, {s:s}]}", "device", "vm:h200", "seed",
                                 (json_int_t)9, "tasks", "name", "first", "name", "second");
    OK(records_create(records_path, identity, &r, &err));
    json_decref(identity);
    return r;
}

static void put_child(records *r, uint64_t number, double ns) {
    const records_evaluation e = {.phase = "search",
                                  .number = number,
                                  .parents = number > 0 ? "0" : "",
                                  .operators = "unroll",
                                  .gate = "none",
                                  .reason = "",
                                  .ns = ns,
                                  .score = "",
                                  .seconds = (double)number};
    OK(records_put(r, &e, &err));
}

static const tune_progress AT_TWO = {.kernel = "first",
                                     .task_count = 2,
                                     .evaluations = 2,
                                     .budget = 50,
                                     .baseline_ns = 8000,
                                     .best_ns = 4000,
                                     .seconds = 12};

/* Shows the run until the page was written anew. */
static void show_until(report_live *live, const char *want, ev_str *page) {
    double until = ev_clock_now() + 20;
    do {
        report_live_show(live, &AT_TWO);
        read_page(page);
    } while (strstr(ev_str_text(page), want) == NULL && ev_clock_now() < until);
    assert_non_null(strstr(ev_str_text(page), want));
}

static void reloads_while_the_run_lasts(void **state) {
    (void)state;
    report_live *live = NULL;
    ev_str page = EV_STR_EMPTY;
    OK(report_live_new(page_path, records_path, 0, &live, &err));
    read_page(&page);
    assert_non_null(strstr(ev_str_text(&page), "id=\"live\" data-stamp=\""));
    assert_non_null(strstr(ev_str_text(&page), "location.reload()"));
    records *r = begin_run();
    put_child(r, 0, 8000);
    put_child(r, 1, 4000);
    show_until(live, "first, kernel 1 of 2, 2 of 50 evaluations", &page);
    assert_non_null(strstr(ev_str_text(&page), "The best so far has 2.00 times"));
    assert_null(strstr(ev_str_text(&page), "id=\"second\"")); /* not begun */
    assert_non_null(strstr(ev_str_text(&page), "class=\"best\""));
    records_close(r);
    OK(report_live_end(live, "The run has ended: <2> evaluations.", &err));
    read_page(&page);
    assert_non_null(strstr(ev_str_text(&page), "ended: &lt;2&gt; evaluations"));
    assert_null(strstr(ev_str_text(&page), "id=\"live\""));
    assert_null(strstr(ev_str_text(&page), "location.reload()"));
    assert_non_null(strstr(ev_str_text(&page), "id=\"first\""));
    report_live_free(live);
    ev_str_free(&page);
    assert_int_equal(remove(records_path), 0);
}

/* Who has the page open reads the old one to its end, and no other file is left. */
static void is_replaced_in_one_step(void **state) {
    (void)state;
    report_live *live = NULL;
    char text[1 << 15];
    ev_str page = EV_STR_EMPTY;
    OK(report_live_new(page_path, records_path, 0, &live, &err));
    int old = open(page_path, O_RDONLY | O_CLOEXEC);
    assert_true(old >= 0);
    show_until(live, "The run goes on", &page);
    ssize_t got = read(old, text, sizeof text - 1);
    assert_true(got > 0);
    text[got] = '\0';
    assert_non_null(strstr(text, "The run begins."));
    assert_non_null(strstr(text, "</html>"));
    assert_int_equal(close(old), 0);
    assert_int_equal(files_in_scratch(), 1);
    report_live_free(live);
    ev_str_free(&page);
}

/* Not before its time; and a place that cannot be written shows before the run. */
static void waits_and_refuses(void **state) {
    (void)state;
    report_live *live = NULL;
    ev_str page = EV_STR_EMPTY;
    OK(report_live_new(page_path, records_path, 3600, &live, &err));
    for (int i = 0; i < 100; i++)
        report_live_show(live, &AT_TWO);
    read_page(&page);
    assert_non_null(strstr(ev_str_text(&page), "The run begins."));
    report_live_free(live);
    ev_str_free(&page);
    assert_int_equal(report_live_new("/nowhere/page.html", records_path, 0, &live, &err), EV_BAD);
    assert_non_null(strstr(err.text, "/nowhere"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reloads_while_the_run_lasts),
        cmocka_unit_test(is_replaced_in_one_step),
        cmocka_unit_test(waits_and_refuses),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
