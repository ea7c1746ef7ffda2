/* The status line on a terminal: redrawn in place, cut to the width that the terminal has by then,
 * one line a kernel, and a clean line at the end. */
#include "tuner/cli/progress.h"

#include <poll.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cmocka.h>

#define CLEAR "\r\033[K"

static int screen, terminal, saved;

/* A terminal whose lines are not translated; stderr is on it. */
static int open_terminal(void **state) {
    (void)state;
    struct termios raw;
    if (openpty(&screen, &terminal, NULL, NULL, NULL) != 0 || tcgetattr(terminal, &raw) != 0)
        return 1;
    cfmakeraw(&raw);
    saved = dup(STDERR_FILENO);
    return tcsetattr(terminal, TCSANOW, &raw) != 0 || saved < 0 ||
           dup2(terminal, STDERR_FILENO) < 0;
}

static int close_terminal(void **state) {
    (void)state;
    (void)dup2(saved, STDERR_FILENO);
    return close(saved) + close(terminal) + close(screen);
}

static void set_columns(unsigned short columns) {
    const struct winsize size = {.ws_row = 24, .ws_col = columns};
    assert_int_equal(ioctl(screen, TIOCSWINSZ, &size), 0);
}

/* What was drawn since the last call. The system hands a terminal's output on in parts. */
static const char *drawn(void) {
    static char text[4096];
    struct pollfd more = {.fd = screen, .events = POLLIN};
    size_t length = 0;
    while (length < sizeof text - 1 && poll(&more, 1, length == 0 ? 5000 : 100) > 0) {
        ssize_t got = read(screen, text + length, sizeof text - 1 - length);
        assert_true(got > 0);
        length += (size_t)got;
    }
    assert_true(length > 0);
    text[length] = '\0';
    return text;
}

static progress begin(const char *term, const char *no_color) {
    assert_int_equal(setenv("TERM", term, 1), 0);
    if (no_color != NULL)
        assert_int_equal(setenv("NO_COLOR", no_color, 1), 0);
    else
        assert_int_equal(unsetenv("NO_COLOR"), 0);
    return (progress){.view = progress_view_stderr("modelled", 0)};
}

static tune_progress at_half(char *kernel) {
    return (tune_progress){.kernel = kernel,
                           .task_count = 2,
                           .evaluations = 80,
                           .budget = 160,
                           .baseline_ns = 8000,
                           .best_ns = 4000,
                           .seconds = 10};
}

static void one_line_a_kernel(void **state) {
    (void)state;
    char name[] = "sd_lstm_fp";
    tune_progress now = at_half(name);
    set_columns(80);
    progress p = begin("xterm", "1");
    assert_true(p.view.terminal && !p.view.colours);
    assert_int_equal(p.view.width, 80);
    progress_show(&p, &now);
    (void)drawn();
    now.seconds = 20;
    now.note = "minimising";
    progress_show(&p, &now);
    const char *text = drawn();
    assert_ptr_equal(strstr(text, CLEAR "[1/2] sd_lstm_fp: minimising\n[1/2] sd_lstm_fp ["), text);
    assert_non_null(strstr(text, "80/160  8.0/s  2.00x modelled  0:10 left"));
    assert_int_equal(strlen(strchr(text, '\n') + 1) < 80, 1);
    set_columns(30);
    now.note = NULL;
    progress_show(&p, &now);
    assert_string_equal(drawn(), CLEAR "[1/2] sd_lstm_fp  80/160  8.0");
    set_columns(80);
    tune_progress next = now;
    next.kernel = "other";
    next.task_index = 1;
    progress_show(&p, &next);
    text = drawn();
    assert_ptr_equal(strstr(text, CLEAR
                            "[1/2] sd_lstm_fp  80/160  8.0/s  2.00x modelled  0:10 taken\n" CLEAR
                            "[2/2] other"),
                     text);
    memset(name, '?', sizeof name - 1); /* the run's names end with the run */
    progress_end(&p);
    text = drawn();
    assert_ptr_equal(strstr(text, CLEAR "[2/2] other  80/160"), text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    progress_end(&p); /* a second end draws nothing */
    assert_int_equal(write(terminal, "x", 1), 1);
    assert_string_equal(drawn(), "x");
}

/* The name of a kernel is copied: the line is drawn once more when the run and its tasks are gone.
 */
static void the_name_outlives_the_run(void **state) {
    (void)state;
    char *name = strdup("short_lived");
    assert_non_null(name);
    tune_progress now = at_half(name);
    set_columns(80);
    progress p = begin("xterm", "1");
    progress_show(&p, &now);
    (void)drawn();
    memset(name, '?', strlen(name));
    free(name);
    progress_end(&p);
    assert_non_null(strstr(drawn(), "[1/2] short_lived  80/160"));
}

static void colours_only_where_wanted(void **state) {
    (void)state;
    char name[] = "k";
    tune_progress now = at_half(name);
    set_columns(80);
    progress p = begin("xterm", NULL);
    progress_show(&p, &now);
    assert_non_null(strstr(drawn(), "\033[1;32m"));
    p = begin("xterm", ""); /* empty counts as not set */
    assert_true(p.view.colours);
    p = begin("dumb", NULL); /* nothing can be redrawn: lines */
    assert_false(p.view.terminal);
    progress_show(&p, &now);
    assert_string_equal(drawn(),
                        "[1/2] k: 80/160 evaluations, 10 s, 0 duplicates, 0 rejected; best "
                        "4.00 us modelled, 2.00x, error 0\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_line_a_kernel, open_terminal, close_terminal),
        cmocka_unit_test_setup_teardown(the_name_outlives_the_run, open_terminal, close_terminal),
        cmocka_unit_test_setup_teardown(colours_only_where_wanted, open_terminal, close_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
