/* The texts of the command line: the option table and its parser, help, tables, progress. */
#include "base/file.h"
#include "base/str.h"
#include "base/table.h"
#include "fitness/vm/isa.h"
#include "tuner/cli/cli.h"
#include "tuner/cli/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- the parser ---- */

static cli_args parse(const char *const words[]) {
    char *argv[16] = {(char *)"evoke"};
    int argc = 1;
    for (; words[argc - 1] != NULL; argc++)
        argv[argc] = (char *)words[argc - 1];
    cli_args args;
    ev_error err = {0};
    if (cli_parse(argc, argv, &args, &err) != EV_OK)
        fail_msg("%s", err.text);
    return args;
}
#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void reads_options_and_operands(void **state) {
    (void)state;
    cli_args a =
        PARSE("tune", "one", "--seed=9", "two", "--seconds", "1.5", "--resume", "--", "--x");
    assert_int_equal(a.command, CLI_TUNE);
    assert_int_equal(a.operand_count, 3);
    assert_string_equal(a.operands[2], "--x");
    assert_int_equal(cli_count(&a, CLI_OPT_SEED, 0), 9);
    assert_true(cli_real(&a, CLI_OPT_SECONDS, 0) == 1.5);
    assert_true(cli_flag(&a, CLI_OPT_RESUME));
    assert_false(cli_flag(&a, CLI_OPT_JSON));
    assert_string_equal(cli_text(&a, CLI_OPT_DEVICE), "vm:h200");
    assert_null(cli_text(&a, CLI_OPT_RECORDS));
    assert_int_equal(cli_count(&a, CLI_OPT_EVALUATIONS, 77), 77);
    cli_args_free(&a);
}

static void reads_lists_and_sizes(void **state) {
    (void)state;
    cli_args a = PARSE("run", "f.ptx", "--arg", "u32:1", "--grid", "4,2", "--arg=out:8");
    uint32_t grid[3], block[3];
    cli_sizes(&a, CLI_OPT_GRID, grid);
    cli_sizes(&a, CLI_OPT_BLOCK, block);
    assert_int_equal(grid[0], 4);
    assert_int_equal(grid[1], 2);
    assert_int_equal(grid[2], 1);
    assert_int_equal(block[0], 1);
    assert_int_equal(a.list_count, 2);
    assert_string_equal(a.list[0], "u32:1");
    assert_string_equal(a.list[1], "out:8");
    cli_args_free(&a);
}

static void effort_is_what_the_help_says(void **state) {
    (void)state;
    static const char *const words[] = {"quick", "normal", "thorough"};
    for (size_t i = 0; i < 3; i++) {
        char shown[64];
        uint64_t count = cli_effort(words[i]);
        assert_true(count > 0);
        (void)snprintf(shown, sizeof shown, "%s %llu", words[i], (unsigned long long)count);
        assert_non_null(strstr(CLI_EFFORTS, shown));
    }
    assert_true(cli_effort("quick") < cli_effort("normal"));
    assert_true(cli_effort("normal") < cli_effort("thorough"));
}

/* Every row of the table can be parsed, and every command finds its own options only. */
static void every_option_is_read(void **state) {
    (void)state;
    static const char *const values[] = {
        [CLI_IS_TEXT] = "x", [CLI_IS_COUNT] = "1",   [CLI_IS_MAYBE_COUNT] = "1",
        [CLI_IS_REAL] = "1", [CLI_IS_SIZES] = "1,1", [CLI_IS_LIST] = "x"};
    for (size_t o = 0; o < CLI_OPTION_COUNT; o++) {
        const cli_option_row *row = &cli_options[o];
        assert_true(row->commands != 0 && row->doc[0] != '\0');
        for (size_t c = 0; c < CLI_COMMAND_COUNT; c++) {
            char name[64], choice[64];
            (void)snprintf(name, sizeof name, "--%s", row->name);
            (void)snprintf(choice, sizeof choice, "%.*s", (int)strcspn(row->argument, "|"),
                           row->argument);
            const char *value = row->kind == CLI_IS_CHOICE ? choice : values[row->kind];
            char *argv[] = {(char *)"evoke",
                            (char *)cli_commands[c].name,
                            name,
                            (char *)value,
                            (char *)"operand",
                            (char *)"operand"};
            int words = row->kind == CLI_IS_FLAG ? 3 : 4;
            if (row->kind == CLI_IS_FLAG)
                argv[3] = argv[4];
            cli_args args;
            ev_error err = {0};
            bool takes = (row->commands >> c & 1u) != 0;
            int operands = (int)cli_commands[c].least;
            assert_true(words + operands <= (int)(sizeof argv / sizeof *argv));
            bool ok = cli_parse(words + operands, argv, &args, &err) == EV_OK;
            if (takes && !ok)
                fail_msg("%s %s: %s", cli_commands[c].name, name, err.text);
            if (ok) {
                /* Another row of the same name may have taken it. */
                assert_true(takes ? args.given[o] : !args.given[o]);
                cli_args_free(&args);
            }
        }
    }
}

/* ---- help ---- */

static void help_is_narrow(void **state) {
    (void)state;
    ev_str all = EV_STR_EMPTY;
    cli_print_help(&all);
    for (size_t c = 0; c < CLI_COMMAND_COUNT; c++) {
        size_t before = all.length;
        cli_print_command_help(&all, (cli_command)c);
        assert_non_null(strstr(all.data + before, "Examples:\n  evoke "));
    }
    const char *line = ev_str_text(&all);
    while (*line != '\0') {
        size_t length = strcspn(line, "\n");
        if (length > 100 || (length > 0 && line[length - 1] == ' '))
            fail_msg("%zu columns, or a space at the end: %.*s", length, (int)length, line);
        line += length + 1;
    }
    ev_str_free(&all);
}

static void help_of_run_shows_examples(void **state) {
    (void)state;
    ev_str help = EV_STR_EMPTY;
    cli_print_command_help(&help, CLI_RUN);
    size_t count = 0;
    for (const char *at = strstr(help.data, "\n  evoke run "); at != NULL;
         at = strstr(at + 1, "\n  evoke run "))
        count++;
    assert_true(count >= 3);
    ev_str_free(&help);
}

static void docs_are_what_the_table_says(void **state) {
    (void)state;
    ev_str want = EV_STR_EMPTY;
    char *have = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    cli_print_markdown(&want);
    if (ev_file_read(EVOKE_SOURCE_DIR "/docs/cli.md", &have, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (strcmp(have, ev_str_text(&want)) != 0)
        fail_msg("docs/cli.md is old: build/evoke help --markdown > docs/cli.md");
    free(have);
    ev_str_free(&want);
}

static void the_isa_page_is_what_the_tables_say(void **state) {
    (void)state;
    ev_str want = EV_STR_EMPTY;
    char *have = NULL;
    size_t bytes = 0;
    ev_error err = {0};
    vm_isa_print_markdown(&want);
    if (ev_file_read(EVOKE_SOURCE_DIR "/docs/isa.md", &have, &bytes, &err) != EV_OK)
        fail_msg("%s", err.text);
    if (strcmp(have, ev_str_text(&want)) != 0)
        fail_msg("docs/isa.md is old: build/evoke isa --markdown > docs/isa.md");
    free(have);
    ev_str_free(&want);
}

/* No row is too long for its place, and each says what it does. */
static void isa_rows_are_whole(void **state) {
    (void)state;
    vm_isa_row row;
    size_t count = 0;
    for (; vm_isa_row_get(count, &row); count++)
        if (strlen(row.form) + 1 == sizeof row.form ||
            strlen(row.operands) + 1 == sizeof row.operands ||
            strlen(row.types) + 1 == sizeof row.types || !*row.meaning || !*row.pipe ||
            strncmp(row.form, row.name, strlen(row.name)) != 0)
            fail_msg("%s: the row is cut off or empty", row.form);
    assert_true(count > 200);
}

/* ---- tables ---- */

static void tables_line_up(void **state) {
    (void)state;
    static const char *const columns[] = {"name", ">count", "note", NULL};
    table *t = table_new(columns);
    ev_str out = EV_STR_EMPTY;
    table_cell(t, "a");
    table_cell(t, "%d", 12345678);
    table_cell(t, "%s", "");
    table_cell(t, "longer name");
    table_cell(t, "%d", 7);
    table_cell(t, "µs ±");
    assert_int_equal(table_print(t, &out, NULL), EV_OK);
    assert_string_equal(ev_str_text(&out), "name            count  note\n"
                                           "-----------  --------  ----\n"
                                           "a            12345678\n"
                                           "longer name         7  µs ±\n");
    ev_str_free(&out);
    table_free(t);
}

static void times_have_units(void **state) {
    (void)state;
    static const struct {
        double ns;
        const char *want;
    } cases[] = {{0, "-"},           {1, "1.00 ns"},     {9.994, "9.99 ns"},
                 {9.996, "10.0 ns"}, {99.96, "100 ns"},  {999.4, "999 ns"},
                 {999.6, "1.00 us"}, {45600, "45.6 us"}, {2.34e6, "2.34 ms"},
                 {1.5e9, "1.50 s"},  {5e12, "5000 s"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[24];
        table_time(cases[i].ns, text);
        assert_string_equal(text, cases[i].want);
    }
}

/* ---- progress ---- */

static tune_progress at_half(void) {
    return (tune_progress){.kernel = "sd_lstm_fp",
                           .task_index = 1,
                           .task_count = 4,
                           .evaluations = 80,
                           .budget = 160,
                           .duplicates = 9,
                           .rejected = {[GATE_SAFE] = 5, [GATE_ACCURATE] = 30},
                           .baseline_ns = 443000,
                           .best_ns = 91800,
                           .best_error = 3.9e-7,
                           .seconds = 37.5};
}

/* Columns that a terminal shows: without SGR codes, a character of several bytes is one. */
static size_t columns_of(const char *text) {
    size_t count = 0;
    while (*text != '\0') {
        if (*text == '\033')
            text += strcspn(text, "m");
        else
            count += ((unsigned char)*text & 0xc0) != 0x80;
        text++;
    }
    return count;
}

static void the_bar_fits_its_terminal(void **state) {
    (void)state;
    tune_progress now = at_half();
    progress_view view = {.terminal = true, .width = 80, .time_kind = "modelled"};
    ev_str out = EV_STR_EMPTY;
    progress_pace pace = {.done = 0.5, .rate = 12.25, .seconds = 6.5, .left_seconds = 62.5};
    progress_bar(&now, &pace, &view, &out);
    assert_string_equal(
        ev_str_text(&out),
        "[2/4] sd_lstm_fp [#########..........]  80/160  12/s  4.83x modelled  1:03 left");
    view.width = 140;
    ev_str_clear(&out);
    progress_bar(&now, &pace, &view, &out);
    assert_string_equal(ev_str_text(&out),
                        "[2/4] sd_lstm_fp [################................]  80/160  12/s  best "
                        "91.8 us, 4.83x modelled, error 3.9e-07  1:03 left");
    now.kernel = "stra\xc3\x9f\x65";
    for (unsigned width = 2; width < 200; width++) {
        view.width = width;
        view.colours = width % 2 == 0;
        ev_str_clear(&out);
        progress_bar(&now, &pace, &view, &out);
        assert_true(columns_of(ev_str_text(&out)) < width);
        assert_int_equal(strchr(ev_str_text(&out), '\033') != NULL, view.colours);
    }
    ev_str_free(&out);
}

static void lines_say_all(void **state) {
    (void)state;
    tune_progress now = at_half();
    progress_view view = {.time_kind = "modelled"};
    ev_str out = EV_STR_EMPTY;
    progress_line(&now, &view, &out);
    assert_string_equal(ev_str_text(&out),
                        "[2/4] sd_lstm_fp: 80/160 evaluations, 38 s, 9 duplicates, 35 rejected; "
                        "best 91.8 us modelled, 4.83x, error 3.9e-07");
    ev_str_clear(&out);
    now = (tune_progress){.kernel = "k", .task_count = 1, .failed_workers = 2};
    progress_line(&now, &view, &out);
    assert_string_equal(ev_str_text(&out), "[1/1] k: 0 evaluations, 0 s, 0 duplicates, 0 rejected, "
                                           "2 workers restarted");
    ev_str_free(&out);
}

static void the_pace_is_of_the_kernel(void **state) {
    (void)state;
    tune_progress now = at_half(); /* begun at 17.5 s: 80 evaluations in 20 s */
    progress_pace pace = progress_pace_of(&now, 0, 17.5);
    assert_true(pace.done == 0.5 && pace.rate == 4 && pace.left_seconds == 20);
    pace = progress_pace_of(&now, 25, 17.5); /* the clock ends the search before */
    assert_true(pace.done == 0.8 && pace.left_seconds == 5);
    now.budget = 0;
    pace = progress_pace_of(&now, 25, 17.5);
    assert_true(pace.done == 0.8 && pace.left_seconds == 5);
    pace = progress_pace_of(&now, 10, 17.5); /* the winner is promoted after the search */
    assert_true(pace.done == 1 && pace.left_seconds == 0);
    pace = progress_pace_of(&now, 0, 37.5); /* nothing is known */
    assert_true(pace.done == 0 && pace.rate == 0 && pace.left_seconds < 0);
}

/* What a log gets: a line a task, one every few seconds, and each note. */
static void a_log_gets_few_lines(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    progress p = {.view = {.fd = ends[1], .time_kind = "modelled", .line_seconds = 5}};
    tune_progress now = {.kernel = "k", .task_count = 2, .budget = 9};
    for (int i = 0; i < 100; i++) { /* ten seconds */
        now.seconds = i * 0.1;
        now.note = i == 20 ? "minimising" : NULL;
        progress_show(&p, &now);
    }
    now.task_index = 1;
    progress_show(&p, &now);
    progress_end(&p);
    assert_int_equal(close(ends[1]), 0);
    char text[2048] = "";
    assert_true(read(ends[0], text, sizeof text - 1) > 0);
    assert_int_equal(close(ends[0]), 0);
    assert_string_equal(text, "[1/2] k: 0/9 evaluations, 0 s, 0 duplicates, 0 rejected\n"
                              "[1/2] k: minimising\n"
                              "[1/2] k: 0/9 evaluations, 5 s, 0 duplicates, 0 rejected\n"
                              "[2/2] k: 0/9 evaluations, 10 s, 0 duplicates, 0 rejected\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_options_and_operands),
        cmocka_unit_test(reads_lists_and_sizes),
        cmocka_unit_test(effort_is_what_the_help_says),
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(help_is_narrow),
        cmocka_unit_test(help_of_run_shows_examples),
        cmocka_unit_test(docs_are_what_the_table_says),
        cmocka_unit_test(the_isa_page_is_what_the_tables_say),
        cmocka_unit_test(isa_rows_are_whole),
        cmocka_unit_test(tables_line_up),
        cmocka_unit_test(times_have_units),
        cmocka_unit_test(the_bar_fits_its_terminal),
        cmocka_unit_test(lines_say_all),
        cmocka_unit_test(the_pace_is_of_the_kernel),
        cmocka_unit_test(a_log_gets_few_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
