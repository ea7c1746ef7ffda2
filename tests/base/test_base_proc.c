/* Child processes: outputs, ends, time limits, and nothing left running. */
#include "base/child.h"
#include "base/proc.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int open_files(void) {
    DIR *dir = opendir("/proc/self/fd");
    if (dir == NULL)
        return -1;
    int count = 0;
    while (readdir(dir) != NULL)
        count++;
    (void)closedir(dir);
    return count;
}

/* Runs a shell line that must start. */
static ev_proc_result shell(const char *line, const char *input, double seconds) {
    const char *const argv[] = {"sh", "-c", line, NULL};
    ev_proc_result result = {0};
    ev_error err = {0};
    int before = open_files();
    if (ev_proc_run(argv, input, seconds, &result, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(open_files(), before);
    return result;
}

static void test_outputs(void **state) {
    (void)state;
    ev_proc_result result = shell("cat; echo problem >&2; exit 3", "in\nput", 20);
    assert_string_equal(ev_str_text(&result.out), "in\nput");
    assert_string_equal(ev_str_text(&result.err), "problem\n");
    assert_int_equal(result.exit_code, 3);
    assert_int_equal(result.signal, 0);
    assert_false(result.timed_out);
    ev_proc_result_free(&result);
    result = shell("cat", NULL, 20); /* no input: an end at once, not a wait */
    assert_string_equal(ev_str_text(&result.out), "");
    assert_int_equal(result.exit_code, 0);
    ev_proc_result_free(&result);
}

/* More than any pipe holds, in and out, on both outputs. */
static void test_much(void **state) {
    (void)state;
    size_t bytes = 1000000;
    char *input = malloc(bytes + 1);
    assert_non_null(input);
    memset(input, 'x', bytes);
    input[bytes] = '\0';
    ev_proc_result result = shell("tee /dev/stderr", input, 60);
    assert_int_equal(result.out.length, bytes);
    assert_int_equal(result.err.length, bytes);
    ev_proc_result_free(&result);
    result = shell("exit 0", input, 60); /* it never reads: no SIGPIPE for us */
    assert_int_equal(result.exit_code, 0);
    ev_proc_result_free(&result);
    free(input);
}

static void test_signal(void **state) {
    (void)state;
    ev_proc_result result = shell("kill -TERM $$", NULL, 20);
    assert_int_equal(result.exit_code, -1);
    assert_int_equal(result.signal, SIGTERM);
    assert_false(result.timed_out);
    ev_proc_result_free(&result);
}

static void test_timeout(void **state) {
    (void)state;
    double start = ev_clock_now();
    ev_proc_result result = shell("trap '' TERM; echo begun; sleep 60; echo never", NULL, 0.5);
    double took = ev_clock_now() - start;
    assert_true(result.timed_out);
    assert_int_equal(result.signal, SIGKILL);
    assert_int_equal(result.exit_code, -1);
    assert_string_equal(ev_str_text(&result.out), "begun\n");
    assert_true(took >= 0.5 && took < 30);
    ev_proc_result_free(&result);
}

/* A child that closed its outputs still has its time limit. */
static void test_timeout_after_outputs(void **state) {
    (void)state;
    ev_proc_result result = shell("exec >/dev/null 2>&1; sleep 60", NULL, 0.3);
    assert_true(result.timed_out);
    ev_proc_result_free(&result);
}

/* A process goes away a moment after its SIGKILL. */
static bool is_gone(pid_t pid) {
    char path[64], line[256] = "";
    for (int i = 0; i < 500; i++) {
        (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
        FILE *file = fopen(path, "r");
        if (file == NULL)
            return true;
        char *got = fgets(line, sizeof line, file);
        (void)fclose(file);
        if (got == NULL || strstr(line, ") Z ") != NULL || strstr(line, ") X ") != NULL)
            return true; /* dead, and only waits for some init to take note */
        (void)usleep(10000);
    }
    return false;
}

/* The child ends at once but leaves a process that holds the pipes: neither waited for nor kept. */
static void test_grandchild(void **state) {
    (void)state;
    double start = ev_clock_now();
    ev_proc_result result = shell("sleep 60 & echo $!", NULL, 0);
    assert_true(ev_clock_now() - start < 30);
    assert_int_equal(result.exit_code, 0);
    pid_t left = (pid_t)strtol(ev_str_text(&result.out), NULL, 10);
    assert_true(left > 1);
    assert_true(is_gone(left));
    ev_proc_result_free(&result);
}

static void test_missing_program(void **state) {
    (void)state;
    const char *const missing[] = {"evoke-no-such-program", NULL};
    const char *const no_program[] = {"/etc/passwd", NULL};
    ev_error err = {0};
    ev_proc_result result = {.exit_code = 99};
    ev_proc proc = {.pid = 99};
    int before = open_files();
    assert_int_equal(ev_proc_run(missing, NULL, 5, &result, &err), EV_BAD);
    assert_non_null(strstr(err.text, "'evoke-no-such-program' was not found; install it"));
    assert_int_equal(ev_proc_run(no_program, "x", 5, &result, &err), EV_BAD);
    assert_non_null(strstr(err.text, "'/etc/passwd' cannot be run"));
    assert_int_equal(ev_proc_spawn(missing, &proc, &err), EV_BAD);
    assert_int_equal(result.exit_code, 99);
    assert_int_equal(proc.pid, 99);
    assert_int_equal(open_files(), before);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie either */
}

static void test_signals_are_reset(void **state) {
    (void)state;
    (void)signal(SIGPIPE, SIG_IGN);
    ev_proc_result result = shell("yes | head -n 1; kill -PIPE $$; echo ignored", NULL, 20);
    (void)signal(SIGPIPE, SIG_DFL);
    assert_string_equal(ev_str_text(&result.out), "y\n");
    assert_int_equal(result.signal, SIGPIPE);
    ev_proc_result_free(&result);
}

static void test_spawn(void **state) {
    (void)state;
    const char *const argv[] = {"cat", NULL};
    ev_proc proc = {0};
    ev_error err = {0};
    int before = open_files();
    if (ev_proc_spawn(argv, &proc, &err) != EV_OK)
        fail_msg("%s", err.text);
    for (int i = 0; i < 3; i++) {
        char answer[8] = "";
        assert_int_equal(write(proc.in, "ping", 4), 4);
        assert_int_equal(read(proc.out, answer, sizeof answer), 4);
        assert_string_equal(answer, "ping");
    }
    int status = ev_proc_end(&proc, EV_PROC_PATIENCE); /* its stdin ends, and so does cat */
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_int_equal(ev_proc_end(&proc, 0), -1);
    assert_int_equal(open_files(), before);
}

/* The second child must not hold the first one's stdin open, or the first would never end. */
/* It does not read to the end of its input, and is killed when the time is over. */
static void test_end_of_patience(void **state) {
    (void)state;
    const char *const argv[] = {"sleep", "1000", NULL};
    ev_proc proc = {0};
    double before = ev_clock_now();
    assert_int_equal(ev_proc_spawn(argv, &proc, NULL), EV_OK);
    int status = ev_proc_end(&proc, 0.1);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_true(ev_clock_now() - before >= 0.1);
}

static void test_spawn_two(void **state) {
    (void)state;
    const char *const argv[] = {"cat", NULL};
    ev_proc first = {0}, second = {0};
    assert_int_equal(ev_proc_spawn(argv, &first, NULL), EV_OK);
    assert_int_equal(ev_proc_spawn(argv, &second, NULL), EV_OK);
    assert_int_equal(ev_proc_end(&first, EV_PROC_PATIENCE), 0);
    assert_int_equal(ev_proc_end(&second, EV_PROC_PATIENCE), 0);
}

static void test_end_by_force(void **state) {
    (void)state;
    const char *const argv[] = {"sh", "-c", "sleep 60 & echo $!; sleep 60", NULL};
    ev_proc proc = {0};
    assert_int_equal(ev_proc_spawn(argv, &proc, NULL), EV_OK);
    char line[32] = "";
    assert_true(read(proc.out, line, sizeof line - 1) > 0);
    pid_t grandchild = (pid_t)strtol(line, NULL, 10);
    int status = ev_proc_end(&proc, 0);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    assert_true(is_gone(grandchild));
}

/* A parent that is killed takes its children with it. */
static void test_dies_with_parent(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t parent = fork();
    if (parent == 0) {
        const char *const argv[] = {"sleep", "60", NULL};
        ev_proc proc = {0};
        if (ev_proc_spawn(argv, &proc, NULL) != EV_OK)
            _exit(1);
        ssize_t put = write(ends[1], &proc.pid, sizeof proc.pid);
        (void)put;
        (void)pause();
        _exit(0);
    }
    pid_t child = -1;
    assert_int_equal(read(ends[0], &child, sizeof child), sizeof child);
    assert_int_equal(kill(child, 0), 0);
    (void)kill(parent, SIGKILL);
    assert_int_equal(waitpid(parent, NULL, 0), parent);
    assert_true(is_gone(child));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void test_clocks(void **state) {
    (void)state;
    double wall = ev_clock_now(), cpu = ev_clock_cpu();
    (void)usleep(50000);
    double wall_took = ev_clock_now() - wall, cpu_took = ev_clock_cpu() - cpu;
    assert_true(wall_took >= 0.05);
    assert_true(cpu_took >= 0 && cpu_took < wall_took);
}

static ev_status raise_signal(void *context, ev_str *out, ev_error *err) {
    (void)out;
    (void)err;
    (void)raise(*(const int *)context);
    return EV_OK;
}

/* A crash is the work's; a signal that somebody sends is the machine's. */
static void a_killed_child_tells_nothing_of_its_work(void **state) {
    (void)state;
    static const int signals[] = {SIGKILL, SIGTERM, SIGABRT, SIGXCPU};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        int signal = signals[i];
        const ev_child child = {"the work", raise_signal, &signal, 20, EV_BAD};
        ev_str out = EV_STR_EMPTY;
        ev_error err = {0};
        assert_int_equal(ev_signal_is_sent(signal), i < 2);
        assert_int_equal(ev_child_run(&child, &out, &err), i < 2 ? EV_INFRA : EV_BAD);
        assert_non_null(strstr(err.text, "the work died of signal"));
        ev_str_free(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_much),
        cmocka_unit_test(test_signal),
        cmocka_unit_test(test_timeout),
        cmocka_unit_test(test_timeout_after_outputs),
        cmocka_unit_test(test_grandchild),
        cmocka_unit_test(test_missing_program),
        cmocka_unit_test(test_signals_are_reset),
        cmocka_unit_test(test_spawn),
        cmocka_unit_test(test_spawn_two),
        cmocka_unit_test(test_end_of_patience),
        cmocka_unit_test(test_end_by_force),
        cmocka_unit_test(test_dies_with_parent),
        cmocka_unit_test(a_killed_child_tells_nothing_of_its_work),
        cmocka_unit_test(test_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
