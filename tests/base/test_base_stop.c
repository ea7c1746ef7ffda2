/* A request to stop: two signals at once are one, a later one ends the process, a child shares it.
 * And a file of lines: begun anew, whole lines, added to by a child, NULL for none. */
#include "base/file.h"
#include "base/lines.h"
#include "base/stop.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

static ev_error err;

static void sleep_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0)
        continue;
}

/* In a child of its own, since signals are the process's: what `work` returns is its exit code. */
static int in_child(int (*work)(void)) {
    int ended = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(work());
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    return ended;
}

static int takes_two_for_one(void) {
    if (ev_stop_asked())
        return 1;
    ev_stop_catch();
    if (ev_stop_asked() || *ev_stop_flag() != 0)
        return 2;
    (void)raise(SIGTERM);
    (void)raise(SIGTERM);
    return ev_stop_asked() && *ev_stop_flag() != 0 ? 0 : 3;
}

static int dies_of_a_later_one(void) {
    ev_stop_catch();
    (void)raise(SIGINT);
    sleep_ms(700);
    (void)raise(SIGTERM);
    return 0;
}

/* The grandchild alone gets the signal. */
static int hears_of_a_childs(void) {
    ev_stop_catch();
    pid_t pid = fork();
    if (pid == 0) {
        (void)raise(SIGTERM);
        _exit(0);
    }
    int ended = 0;
    if (waitpid(pid, &ended, 0) != pid || ended != 0)
        return 1;
    return ev_stop_asked() ? 0 : 2;
}

static void stops(void **state) {
    (void)state;
    assert_int_equal(in_child(takes_two_for_one), 0);
    int ended = in_child(dies_of_a_later_one);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGTERM);
    assert_int_equal(in_child(hears_of_a_childs), 0);
}

static void add(ev_lines *lines, int number) {
    json_t *row = json_pack("{s:i}", "n", number);
    OK(ev_lines_add(lines, row, &err));
    json_decref(row);
}

static void writes_lines(void **state) {
    (void)state;
    char path[] = "/tmp/evoke-test-lines-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0 && write(fd, "before", 6) == 6);
    (void)close(fd);
    ev_lines *lines = NULL;
    OK(ev_lines_open(path, &lines, &err));
    add(lines, 1);
    pid_t pid = fork();
    if (pid == 0) {
        add(lines, 2);
        _exit(0);
    }
    int ended = 0;
    assert_int_equal(waitpid(pid, &ended, 0), pid);
    add(lines, 3);
    char *text = NULL; /* before it is closed: nothing waits in a buffer */
    size_t bytes = 0;
    OK(ev_file_read(path, &text, &bytes, &err));
    assert_string_equal(text, "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n");
    free(text);
    ev_lines_close(lines);
    (void)unlink(path);
}

static void refuses_what_cannot_be_written(void **state) {
    (void)state;
    ev_lines *lines = NULL;
    assert_int_equal(ev_lines_open("/nonexistent/rows", &lines, &err), EV_BAD);
    assert_non_null(strstr(err.text, "/nonexistent/rows"));
    assert_null(lines);
    OK(ev_lines_open(NULL, &lines, &err));
    assert_null(lines);
    add(NULL, 1);
    ev_lines_close(NULL);
    OK(ev_lines_open("/dev/full", &lines, &err));
    json_t *row = json_object();
    assert_int_equal(ev_lines_add(lines, row, &err), EV_INFRA);
    assert_non_null(strstr(err.text, "/dev/full"));
    json_decref(row);
    ev_lines_close(lines);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stops),
        cmocka_unit_test(writes_lines),
        cmocka_unit_test(refuses_what_cannot_be_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
