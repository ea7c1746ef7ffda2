/* A whole run against workers that only pretend to compile: order, duplicates, deaths, resume,
 * promotion and stop, with no LLVM and no kernel.
 * The worker is fake_worker.c. */
#include "tests/tuner/worker/fake_worker.h"

#include "tuner/run/records.h"
#include "tuner/run/tune.h"
#include "tuner/search/draw.h"
#include "tuner/worker/protocol.h"

#include "base/file.h"
#include "base/json.h"
#include "fitness/gates/score.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TASK "bp_data_masked"
#define EVALUATIONS 150

/* ================================ the tests =====================================================
 */

#define WORKER EVOKE_BINARY_DIR "/tests/fake_worker"

static char scratch[64];

static int make_scratch(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-pool-XXXXXX");
    return mkdtemp(scratch) == NULL;
}

static int remove_scratch(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

static int clear_faults(void **state) {
    (void)state;
    const char *names[] = {"EVOKE_FAULT",       "EVOKE_BAD_BASELINE",   "EVOKE_OTHER_VERSION",
                           "EVOKE_ALWAYS_DIES", "EVOKE_SLOW",           "EVOKE_FRAGILE",
                           "EVOKE_OTHER_CASES", "EVOKE_BUILDS_NOTHING", "EVOKE_SHELF"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    return 0;
}

static const char *in_scratch(const char *name) {
    static char buffers[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    (void)snprintf(buffers[turn], sizeof buffers[turn], "%s/%s", scratch, name);
    return buffers[turn];
}

static const char *const tasks[] = {TASK};

static tune_options options_for(const char *records_path, unsigned workers) {
    static const char *const argv[] = {WORKER, NULL};
    return (tune_options){.tasks = tasks,
                          .task_count = 1,
                          .device = "vm:h200",
                          .evaluations = EVALUATIONS,
                          .seed = 5,
                          .workers = workers,
                          .starts = "all",
                          .records = records_path,
                          .worker_argv = argv};
}

static void set_fault(const char *fault) {
    assert_int_equal(setenv("EVOKE_FAULT", fault, 1), 0);
    assert_int_equal(setenv("EVOKE_FAULT_MARKER", in_scratch("marker"), 1), 0);
    (void)unlink(in_scratch("marker"));
}

static tune_report run(const tune_options *o) {
    ev_error err = {0};
    tune_report report;
    if (tune_run(o, &report, &err) != EV_OK)
        fail_msg("%s", err.text);
    return report;
}

/* The winner's genome and rows; malloc'ed. */
static char *winner_of(const char *records_path) {
    ev_error err = {0};
    records *r = NULL;
    records_winner *list = NULL;
    size_t count = 0;
    if (records_open_read(records_path, &r, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_int_equal(records_winners(r, &list, &count, &err), EV_OK);
    assert_int_equal(count, 1);
    size_t bytes = strlen(list[0].genome) + strlen(list[0].rows) + 2;
    char *text = malloc(bytes);
    (void)snprintf(text, bytes, "%s\n%s", list[0].genome, list[0].rows);
    records_winners_free(list, count);
    records_close(r);
    return text;
}

static char *unbroken; /* the winner that all runs of these settings must find */

static int find_unbroken(void **state) {
    (void)state;
    tune_options o = options_for(in_scratch("unbroken"), 1);
    tune_report report = run(&o);
    assert_int_equal(report.evaluations, EVALUATIONS);
    assert_true(report.duplicates > 0);
    assert_true(report.rejected[GATE_SAFE] > 0);
    assert_true(report.rejected[GATE_VERIFY] > 0);
    tune_report_free(&report);
    unbroken = winner_of(in_scratch("unbroken"));
    return clear_faults(state);
}

static void expect_unbroken(const char *records_path) {
    char *winner = winner_of(records_path);
    assert_string_equal(winner, unbroken);
    free(winner);
    assert_int_equal(unlink(records_path), 0);
}

/* Counts gates and reasons over all stored children. */
typedef struct tally {
    size_t all, aborted;
    uint64_t next;
} tally;

static ev_status count_gates(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    tally *t = context;
    assert_int_equal(e->number, t->next);
    t->next++;
    t->all++;
    if (strcmp(e->gate, "emit") == 0 && strstr(e->reason, "abort") && strstr(e->reason, "emit")) {
        assert_non_null(e->genome);
        t->aborted++;
    }
    return EV_OK;
}

static void test_the_winner_is_minimal_and_does_not_cheat(void **state) {
    (void)state;
    /* The cheat is the fastest, and fails at promotion; the neutral edits are minimised away. */
    assert_null(strstr(unbroken, "\"i7\""));
    const char *neutral[] = {"\"i0\"", "\"i1\"", "\"i2\"", "\"i4\"", "\"i30\"", "\"i31\""};
    for (size_t i = 0; i < sizeof neutral / sizeof neutral[0]; i++)
        assert_null(strstr(unbroken, neutral[i]));
    bool pays = false;
    for (size_t i = 0; i < sizeof gains / sizeof gains[0]; i++) {
        char text[8];
        (void)snprintf(text, sizeof text, "\"i%d\"", gains[i]);
        pays = pays || strstr(unbroken, text);
    }
    assert_true(pays);
    assert_non_null(strstr(unbroken, "\"promoted\":true"));
    assert_non_null(strstr(unbroken, "\"time_kind\":\"modelled\""));
}

static bool has_edit_at(const json_t *genome, int number) {
    size_t at = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(genome, "edits"), at, edit) {
        if (strtol(ev_json_text(edit, "at", "i0") + 1, NULL, 10) == number)
            return true;
    }
    return false;
}

/* Evaluations of one phase, and those of them that hold the cheat. */
typedef struct cheats {
    size_t all, cheating, refused;
} cheats;

static ev_status count_cheats(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    cheats *c = context;
    c->all++;
    c->cheating += has_edit_at(e->genome, CHEAT);
    c->refused += strstr(e->reason, "wrong at another shape") != NULL;
    return EV_OK;
}

static cheats cheats_in(const char *records_path, const char *phase) {
    ev_error err;
    records *r = NULL;
    cheats c = {0};
    assert_int_equal(records_open_read(records_path, &r, &err), EV_OK);
    assert_int_equal(records_each(r, 0, phase, count_cheats, &c, &err), EV_OK);
    records_close(r);
    return c;
}

/* Gate 6 comes first: no trial is spent on what it refuses, and each refusal stands in the records.
 */
static void test_what_cheats_is_not_minimised(void **state) {
    (void)state;
    cheats trials = cheats_in(in_scratch("unbroken"), "minimise");
    cheats promotions = cheats_in(in_scratch("unbroken"), "promote");
    assert_true(trials.all > 0 && promotions.cheating > 0);
    assert_int_equal(trials.cheating, 0);
    assert_int_equal(promotions.refused, promotions.cheating);
}

/* Gate 6 has the last word on what is minimised: here it wants one edit beside those that pay. */
static void test_what_is_minimised_passes_gate_six(void **state) {
    (void)state;
    char *winners[2];
    setenv("EVOKE_FRAGILE", "1", 1);
    for (unsigned i = 0; i < 2; i++) {
        tune_options o = options_for(in_scratch("fragile"), 1 + 4 * i);
        tune_report report = run(&o);
        assert_true(report.row_count > 0 && report.rows[0].promoted);
        tune_report_free(&report);
        assert_true(cheats_in(in_scratch("fragile"), "promote").refused > 0);
        winners[i] = winner_of(in_scratch("fragile"));
        assert_int_equal(unlink(in_scratch("fragile")), 0);
    }
    assert_string_equal(winners[0], winners[1]);
    json_t *genome = json_loads(winners[0], JSON_DISABLE_EOF_CHECK, NULL);
    size_t paying = 0, edits = json_array_size(json_object_get(genome, "edits"));
    for (size_t i = 0; i < sizeof gains / sizeof gains[0]; i++)
        paying += has_edit_at(genome, gains[i]);
    paying += has_edit_at(genome, PAIR_A) && has_edit_at(genome, PAIR_B) ? 2 : 0;
    assert_true(paying > 0);
    assert_int_equal(edits, paying + 1);
    json_decref(genome);
    free(winners[0]);
    free(winners[1]);
}

static void test_any_number_of_workers_finds_the_same(void **state) {
    (void)state;
    const unsigned counts[] = {2, 7};
    for (size_t i = 0; i < 2; i++) {
        tune_options o = options_for(in_scratch("many"), counts[i]);
        tune_report report = run(&o);
        assert_true(report.row_count > 0 && report.rows[0].promoted);
        tune_report_free(&report);
        expect_unbroken(in_scratch("many"));
    }
}

/* Children are drawn from what was committed, in order: strategies with generations wait, and still
 * every number of workers gives the same course. */
static void test_every_strategy_runs_the_same_with_any_number_of_workers(void **state) {
    (void)state;
    char *winners[STRATEGY_COUNT] = {0};
    for (int i = 0; i < STRATEGY_COUNT; i++) {
        for (unsigned workers = 1; workers <= 7; workers += 6) {
            tune_options o = options_for(in_scratch("strategy"), workers);
            o.strategy = (strategy)i;
            if (i != STRATEGY_EVOLVE)
                o.evaluations = 60; /* their winners are compared with each other alone */
            tune_report report = run(&o);
            /* macros ends when it has tried all settings */
            assert_true(report.evaluations == o.evaluations ||
                        (i == STRATEGY_MACROS && report.evaluations > 0));
            tune_report_free(&report);
            char *winner = winner_of(in_scratch("strategy"));
            if (winners[i])
                assert_string_equal(winner, winners[i]);
            free(winners[i]);
            winners[i] = winner;
            assert_int_equal(unlink(in_scratch("strategy")), 0);
        }
    }
    assert_string_equal(winners[STRATEGY_EVOLVE], unbroken);
    for (int i = 0; i < STRATEGY_COUNT; i++)
        free(winners[i]);
}

static ev_status take_genome(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    *(json_t **)context = json_incref((json_t *)e->genome);
    return EV_OK;
}

static json_t *genome_of(const char *records_path, uint64_t number) {
    ev_error err;
    records *r = NULL;
    json_t *genome = NULL;
    bool found = false;
    assert_int_equal(records_open_read(records_path, &r, &err), EV_OK);
    assert_int_equal(records_get(r, 0, "search", number, take_genome, &genome, &found, &err),
                     EV_OK);
    assert_true(found);
    records_close(r);
    return genome;
}

static void test_another_seed_runs_another_course(void **state) {
    (void)state;
    tune_options o = options_for(in_scratch("seed"), 2);
    o.seed = 12;
    tune_report report = run(&o);
    tune_report_free(&report);
    json_t *a = genome_of(in_scratch("seed"), 120), *b = genome_of(in_scratch("unbroken"), 120);
    assert_false(json_equal(a, b));
    json_decref(a);
    json_decref(b);
    assert_int_equal(unlink(in_scratch("seed")), 0);
}

static void test_what_kills_a_worker_is_rejected_and_named(void **state) {
    (void)state;
    ev_error err;
    records *r = NULL;
    tally t = {0};
    assert_int_equal(records_open_read(in_scratch("unbroken"), &r, &err), EV_OK);
    assert_int_equal(records_each(r, 0, "search", count_gates, &t, &err), EV_OK);
    records_close(r);
    assert_int_equal(t.all, EVALUATIONS);
    assert_true(t.aborted > 0);
}

static void test_a_killed_worker_costs_nothing(void **state) {
    (void)state;
    const char *faults[] = {"kill-worker:100", "leave:3", "babble:50", "stammer:60"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        set_fault(faults[i]);
        tune_options o = options_for(in_scratch("killed"), 2);
        tune_report report = run(&o);
        assert_int_equal(report.evaluations, EVALUATIONS);
        assert_true(report.failed_workers > 0);
        assert_true(ev_path_exists(in_scratch("marker")));
        tune_report_free(&report);
        expect_unbroken(in_scratch("killed"));
    }
}

/* Runs in a process of its own, which is to be killed. */
static void run_to_death(const tune_options *o) {
    pid_t pid = fork();
    if (pid == 0) {
        ev_error err;
        tune_report report;
        _exit(tune_run(o, &report, &err) == EV_OK ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_resume_after_kill(void **state) {
    (void)state;
    const char *at[] = {"kill-coordinator:0", "kill-coordinator:77", "kill-coordinator:140"};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        set_fault(at[i]);
        tune_options o = options_for(in_scratch("resumed"), 2);
        run_to_death(&o);
        o.resume = true;
        o.workers = 3;
        tune_report report = run(&o);
        assert_int_equal(report.evaluations, EVALUATIONS);
        tune_report_free(&report);
        expect_unbroken(in_scratch("resumed"));
    }
}

static void test_resume_of_a_finished_run_gives_its_rows(void **state) {
    (void)state;
    setenv("EVOKE_ALWAYS_DIES", "1", 1); /* no worker is needed */
    tune_options o = options_for(in_scratch("unbroken"), 1);
    o.resume = true;
    tune_report report = run(&o);
    assert_true(report.row_count > 0);
    assert_string_equal(report.rows[0].kernel, TASK);
    assert_true(report.rows[0].modelled && report.rows[0].speedup > 1);
    tune_report_free(&report);
}

static void expect_failure(const tune_options *o, ev_status want, const char *a, const char *b) {
    ev_error err = {0};
    tune_report report;
    assert_int_equal(tune_run(o, &report, &err), want);
    if (!strstr(err.text, a) || !strstr(err.text, b))
        fail_msg("'%s' lacks '%s' or '%s'", err.text, a, b);
}

static void test_resume_of_another_run_is_refused(void **state) {
    (void)state;
    static const char *const others[] = {"ar_adam"};
    tune_options o = options_for(in_scratch("unbroken"), 1);
    expect_failure(&o, EV_BAD, "exist already", "--resume");
    o.resume = true;
    o.seed = 12;
    expect_failure(&o, EV_BAD, "seed = 5", "12");
    o = options_for(in_scratch("unbroken"), 1);
    o.resume = true;
    o.tasks = others;
    expect_failure(&o, EV_BAD, "tasks", TASK);
    o = options_for(in_scratch("nothing"), 1);
    o.resume = true;
    expect_failure(&o, EV_BAD, "nothing", "--resume");
}

static void test_workers_that_keep_dying(void **state) {
    (void)state;
    setenv("EVOKE_ALWAYS_DIES", "1", 1);
    tune_options o = options_for(in_scratch("dying"), 2);
    expect_failure(&o, EV_INFRA, "in a row", "signal 9");
    assert_false(ev_path_exists(in_scratch("dying")));
}

/* Through a shell, with counts: the same winner. */
static void test_workers_by_command(void **state) {
    (void)state;
    static const char *const texts[] = {"exec '" WORKER "'", "2:EVOKE_IGNORED=1 '" WORKER "'"};
    tune_options o = options_for(in_scratch("commands"), 0);
    o.worker_argv = (const char *const[]){"/nosuch/evoke", NULL};
    o.worker_commands = texts;
    o.worker_command_count = 2;
    tune_report report = run(&o);
    assert_int_equal(report.workers, 3);
    tune_report_free(&report);
    expect_unbroken(in_scratch("commands"));
}

static void test_bad_commands(void **state) {
    (void)state;
    static const struct {
        const char *text, *word;
    } rows[] = {{"0:true", "from 1"}, {"17:true", "more than 16"}, {"3: ", "names no command"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tune_options o = options_for(in_scratch("bad"), 0);
        o.worker_commands = &rows[i].text;
        o.worker_command_count = 1;
        expect_failure(&o, EV_BAD, "--worker-command", rows[i].word);
    }
}

static void test_a_worker_of_another_version(void **state) {
    (void)state;
    setenv("EVOKE_OTHER_VERSION", "99.9", 1);
    tune_options o = options_for(in_scratch("other"), 2);
    expect_failure(&o, EV_BAD, "99.9", "same build");
}

static size_t count_word(const char *text, const char *word) {
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
        count++;
    return count;
}

/* What one worker made of a base all others get, those that come for another killed one too. */
static void test_what_one_worker_made(void **state) {
    (void)state;
    assert_int_equal(setenv("EVOKE_SHELF", in_scratch("shelf"), 1), 0);
    set_fault("kill-worker:100");
    tune_options o = options_for(in_scratch("shelved"), 2);
    tune_report report = run(&o);
    assert_true(report.failed_workers > 0);
    tune_report_free(&report);
    ev_error err;
    char *log = NULL;
    size_t bytes = 0;
    assert_int_equal(ev_file_read(in_scratch("shelf"), &log, &bytes, &err), EV_OK);
    size_t makers = count_word(log, "made"); /* two that want it at once make it both */
    assert_true(makers == 1 || makers == 2);
    assert_int_equal(count_word(log, "used"), EVALUATIONS - makers);
    assert_null(strstr(log, "odd!"));
    free(log);
    expect_unbroken(in_scratch("shelved"));
}

static void test_workers_that_draw_other_cases(void **state) {
    (void)state;
    setenv("EVOKE_OTHER_CASES", "1", 1);
    setenv("EVOKE_SLOW", "1", 1);
    tune_options o = options_for(in_scratch("other cases"), 3);
    expect_failure(&o, EV_BAD, "odd:n=3", "different cases");
    (void)unlink(in_scratch("other cases"));
}

/* The openings' times are LLVM's: there is no parent to reckon them from. */
static void test_a_worker_that_builds_nothing(void **state) {
    (void)state;
    setenv("EVOKE_BUILDS_NOTHING", "1", 1);
    tune_options o = options_for(in_scratch("estimated"), 2);
    expect_failure(&o, EV_INFRA, "did not build", "no parent's sketch");
    (void)unlink(in_scratch("estimated"));
}

static void test_a_bad_baseline_leaves_nothing_behind(void **state) {
    (void)state;
    setenv("EVOKE_BAD_BASELINE", "1", 1);
    tune_options o = options_for(in_scratch("bad"), 2);
    expect_failure(&o, EV_BAD, TASK, "disagrees with its oracle");
    assert_false(ev_path_exists(in_scratch("bad")));
}

static void test_bad_options(void **state) {
    (void)state;
    tune_options o = options_for(in_scratch("bad"), 2);
    o.starts = "nosuch";
    expect_failure(&o, EV_BAD, "nosuch", "textbook");
    o = options_for(in_scratch("bad"), 2);
    o.evaluations = 0;
    expect_failure(&o, EV_BAD, "--evaluations", "--seconds");
    static const char *const missing[] = {"missing_program"};
    o = options_for(in_scratch("bad"), 2);
    o.worker_argv = (const char *const[]){"/nosuch/evoke", NULL};
    expect_failure(&o, EV_BAD, "/nosuch/evoke", "not found");
    o.tasks = missing;
    expect_failure(&o, EV_BAD, "missing_program", TASK);
}

static volatile int stop;

static void stop_later(void *context, const tune_progress *p) {
    (void)context;
    if (p->evaluations > 0)
        stop = 1;
}

static void test_stop_ends_cleanly_and_resumes(void **state) {
    (void)state;
    stop = 0;
    setenv("EVOKE_SLOW", "1", 1);
    tune_options o = options_for(in_scratch("stopped"), 2);
    o.stop = &stop;
    o.progress = stop_later;
    tune_report report = run(&o);
    assert_true(report.stopped);
    assert_true(report.evaluations < EVALUATIONS);
    assert_true(report.row_count > 0);
    tune_report_free(&report);
    o = options_for(in_scratch("stopped"), 2);
    o.resume = true;
    report = run(&o);
    assert_false(report.stopped);
    assert_int_equal(report.evaluations, EVALUATIONS);
    tune_report_free(&report);
    expect_unbroken(in_scratch("stopped"));
}

static void stop_behind_the_search(void *context, const tune_progress *p) {
    (void)context;
    if (p->note && strstr(p->note, "promoting"))
        stop = 1;
}

/* What is found by then stands, and --resume brings the rest to its end. */
static void test_stop_while_promoting(void **state) {
    (void)state;
    stop = 0;
    tune_options o = options_for(in_scratch("cut"), 2);
    o.stop = &stop;
    o.progress = stop_behind_the_search;
    tune_report report = run(&o);
    assert_true(report.stopped && report.row_count > 0);
    assert_int_equal(report.evaluations, EVALUATIONS);
    tune_report_free(&report);
    assert_int_equal(cheats_in(in_scratch("cut"), "minimise").all, 0);
    o = options_for(in_scratch("cut"), 2);
    o.resume = true;
    report = run(&o);
    assert_false(report.stopped);
    tune_report_free(&report);
    expect_unbroken(in_scratch("cut"));
}

static void test_seconds_end_the_search(void **state) {
    (void)state;
    tune_options o = options_for(NULL, 2);
    o.evaluations = 0;
    o.seconds = 0.3;
    tune_report report = run(&o);
    assert_true(report.evaluations > 0 && report.row_count > 0 && !report.stopped);
    tune_report_free(&report);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_the_winner_is_minimal_and_does_not_cheat, find_unbroken),
        cmocka_unit_test_setup(test_what_cheats_is_not_minimised, clear_faults),
        cmocka_unit_test_setup(test_what_is_minimised_passes_gate_six, clear_faults),
        cmocka_unit_test_setup(test_any_number_of_workers_finds_the_same, clear_faults),
        cmocka_unit_test_setup(test_every_strategy_runs_the_same_with_any_number_of_workers,
                               clear_faults),
        cmocka_unit_test_setup(test_another_seed_runs_another_course, clear_faults),
        cmocka_unit_test_setup(test_what_kills_a_worker_is_rejected_and_named, clear_faults),
        cmocka_unit_test_setup(test_a_killed_worker_costs_nothing, clear_faults),
        cmocka_unit_test_setup(test_resume_after_kill, clear_faults),
        cmocka_unit_test_setup(test_resume_of_a_finished_run_gives_its_rows, clear_faults),
        cmocka_unit_test_setup(test_resume_of_another_run_is_refused, clear_faults),
        cmocka_unit_test_setup(test_workers_that_keep_dying, clear_faults),
        cmocka_unit_test_setup(test_workers_by_command, clear_faults),
        cmocka_unit_test_setup(test_bad_commands, clear_faults),
        cmocka_unit_test_setup(test_a_worker_of_another_version, clear_faults),
        cmocka_unit_test_setup(test_workers_that_draw_other_cases, clear_faults),
        cmocka_unit_test_setup(test_what_one_worker_made, clear_faults),
        cmocka_unit_test_setup(test_a_worker_that_builds_nothing, clear_faults),
        cmocka_unit_test_setup(test_a_bad_baseline_leaves_nothing_behind, clear_faults),
        cmocka_unit_test_setup(test_bad_options, clear_faults),
        cmocka_unit_test_setup(test_stop_ends_cleanly_and_resumes, clear_faults),
        cmocka_unit_test_setup(test_stop_while_promoting, clear_faults),
        cmocka_unit_test_setup(test_seconds_end_the_search, clear_faults),
    };
    int failed = cmocka_run_group_tests(tests, make_scratch, remove_scratch);
    free(unbroken);
    return failed;
}
