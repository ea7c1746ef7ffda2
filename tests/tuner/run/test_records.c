/* Records: what is written comes back; what is not a records file, or of another run, is refused
 * with the cure; a full disk is the machine's failure. */
#include "tuner/run/records.h"

#include "base/file.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/asserts.h"

static char scratch[64], path[128];

static int make_scratch(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-records-XXXXXX");
    bool made = mkdtemp(scratch) != NULL;
    (void)snprintf(path, sizeof path, "%s/run.evoke", scratch);
    return !made;
}

static int remove_scratch(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

static json_t *identity(const char *device, int seed) {
    return json_pack("{s:s,s:i,s:[{s:s,s:s}]}", "device", device, "seed", seed, "tasks", "name",
                     "mul", "sha256", "ab");
}

static void expect_bad(ev_status status, const ev_error *err, const char *a, const char *b) {
    assert_int_equal(status, EV_BAD);
    if (!strstr(err->text, a) || !strstr(err->text, b))
        fail_msg("'%s' lacks '%s' or '%s'", err->text, a, b);
}

static records *create(void) {
    ev_error err;
    records *r = NULL;
    json_t *id = identity("vm:h200", 1);
    if (records_create(path, id, &r, &err) != EV_OK)
        fail_msg("%s", err.text);
    json_decref(id);
    return r;
}

static void run_sql(const char *sql) {
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* ---- the schema ---- */

static int take_schema(void *context, int count, char **values, char **names) {
    (void)names;
    assert_int_equal(count, 1);
    size_t used = strlen(context);
    (void)snprintf((char *)context + used, 4096 - used, "%s;", values[0]);
    return 0;
}

/* Files of this version are read by their schema, so that not a byte of it may change. */
static void test_the_schema_stays(void **state) {
    (void)state;
    static const char want[] =
        "CREATE TABLE run(id INTEGER PRIMARY KEY CHECK(id = 1), identity TEXT NOT NULL);"
        "CREATE TABLE edit(id INTEGER PRIMARY KEY, sha256 BLOB NOT NULL UNIQUE, json TEXT NOT "
        "NULL);"
        "CREATE TABLE evaluation(task INTEGER NOT NULL, phase TEXT NOT NULL, number INTEGER NOT "
        "NULL, island INTEGER NOT NULL, generation INTEGER NOT NULL, parents TEXT NOT NULL,"
        " operators TEXT NOT NULL, genome TEXT, genome_sha256 BLOB, ir_sha256 BLOB,"
        " sketch_sha256 BLOB, sketch_likeness BLOB, ptx_sha256 BLOB, likeness BLOB,"
        " gate TEXT NOT NULL, reason TEXT NOT NULL, ns REAL NOT NULL, error REAL NOT NULL,"
        " score TEXT NOT NULL, seconds REAL NOT NULL, bold INTEGER NOT NULL,"
        " let_through INTEGER NOT NULL,"
        " PRIMARY KEY(task, phase, number));"
        "CREATE TABLE winner(task INTEGER PRIMARY KEY, finished INTEGER NOT NULL, kernel TEXT,"
        " task_path TEXT, task_sha256 TEXT, device TEXT, gpu_name TEXT, sm INTEGER, start TEXT,"
        " genome TEXT, genome_sha256 TEXT, ptx TEXT, ptx_sha256 TEXT, entry TEXT, baseline_ptx "
        "TEXT, baseline_entry TEXT, rows TEXT, score TEXT, edits TEXT, versions TEXT, seed INTEGER,"
        " promoted INTEGER, bold TEXT, stress TEXT, portfolio TEXT);";
    char got[4096] = "";
    records_close(create());
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL",
                                  take_schema, got, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    assert_string_equal(got, want);
    assert_int_equal(unlink(path), 0);
}

/* ---- evaluations ---- */

static const char *hash(char c) {
    static char text[4][EV_SHA256_HEX];
    static int turn;
    turn = (turn + 1) % 4;
    memset(text[turn], c, EV_SHA256_HEX - 1);
    return text[turn];
}

static json_t *genome(int edits) {
    json_t *list = json_array();
    for (int i = 0; i < edits; i++)
        (void)json_array_append_new(list,
                                    json_pack("{s:s,s:s,s:[[s,i,s]]}", "kind", "copy", "at", "i12",
                                              "repairs", "i40", i, "t0123456789abcdef.0"));
    return json_pack("{s:s,s:{s:i},s:o}", "start", "hand", "macros", "TILE", 16, "edits", list);
}

static void put(records *r, uint64_t number, const json_t *of, const char *reason) {
    ev_error err;
    records_evaluation e = {.phase = "search",
                            .number = number,
                            .island = 1,
                            .generation = 2,
                            .parents = "3,17",
                            .operators = "crossover,copy",
                            .genome = of,
                            .hashes = {[SEARCH_BY_GENOME] = of ? hash('a') : "",
                                       [SEARCH_BY_IR] = hash('b'),
                                       [SEARCH_RAN] = hash('c')},
                            .gate = "safe",
                            .reason = reason,
                            .ns = 1.5,
                            .error = 0.1,
                            .score = "{}",
                            .let_through = number == 7,
                            .seconds = 7.25};
    if (records_put(r, &e, &err) != EV_OK)
        fail_msg("%s", err.text);
}

static ev_status check_first(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    assert_int_equal(e->number, 4);
    assert_int_equal(e->island, 1);
    assert_int_equal(e->generation, 2);
    assert_string_equal(e->parents, "3,17");
    assert_string_equal(e->operators, "crossover,copy");
    assert_true(json_equal(e->genome, context));
    assert_string_equal(e->hashes[SEARCH_BY_GENOME], hash('a'));
    assert_string_equal(e->hashes[SEARCH_BY_IR], hash('b'));
    assert_string_equal(e->hashes[SEARCH_BY_PTX], "");
    assert_string_equal(e->hashes[SEARCH_RAN], hash('c'));
    assert_string_equal(e->gate, "safe");
    assert_string_equal(e->reason, "out-of-bounds");
    assert_true(e->ns == 1.5 && e->error == 0.1 && e->seconds == 7.25);
    return EV_OK;
}

static void test_evaluations_come_back(void **state) {
    (void)state;
    ev_error err;
    records *r = create();
    json_t *g = genome(3);
    put(r, 4, g, "out-of-bounds");
    bool found = false;
    assert_int_equal(records_get(r, 0, "search", 4, check_first, g, &found, &err), EV_OK);
    assert_true(found);
    assert_int_equal(records_get(r, 0, "search", 5, check_first, g, &found, &err), EV_OK);
    assert_false(found);
    assert_int_equal(records_get(r, 1, "search", 4, check_first, g, &found, &err), EV_OK);
    assert_false(found);
    json_decref(g);
    records_close(r);
    char beside[160];
    (void)snprintf(beside, sizeof beside, "%s-wal", path);
    assert_false(ev_path_exists(beside)); /* a closed file stands alone */
    assert_int_equal(unlink(path), 0);
}

static ev_status check_order(void *context, const records_evaluation *e, ev_error *err) {
    (void)err;
    uint64_t *next = context;
    assert_int_equal(e->number, *next);
    assert_string_equal(e->gate, e->number == 6 ? "seen" : e->number == 7 ? "none" : "safe");
    if (e->number == 6)
        assert_string_equal(e->reason, "same IR as 2");
    if (e->number == 7)
        assert_true(e->ns == 12 && e->error == 0.5 && e->score[0] == '\0');
    assert_int_equal(e->genome == NULL, e->number == 3);
    assert_int_equal(e->let_through, e->number == 7);
    *next += 1;
    return EV_OK;
}

static void test_evaluations_are_read_in_order(void **state) {
    (void)state;
    ev_error err;
    records *r = create();
    json_t *g = genome(1);
    for (uint64_t i = 10; i-- > 0;)
        put(r, i, i == 3 ? NULL : g, "x");
    put(r, 5, g, "again"); /* replaces */
    const records_evaluation known = {.number = 6, .gate = "seen", .reason = "same IR as 2"};
    const records_evaluation like = {
        .number = 7, .gate = "none", .reason = "same run as 2", .ns = 12, .error = 0.5};
    assert_int_equal(records_mark_known(r, &known, &err), EV_OK);
    assert_int_equal(records_mark_known(r, &like, &err), EV_OK);
    uint64_t next = 0;
    assert_int_equal(records_each(r, 0, "search", check_order, &next, &err), EV_OK);
    assert_int_equal(next, 10);
    json_decref(g);
    records_close(r);
    assert_int_equal(unlink(path), 0);
}

/* A search's genomes grow by an edit a child, and share the others. */
static void test_evaluations_are_small(void **state) {
    (void)state;
    records *r = create();
    char reason[301];
    memset(reason, 'r', 300);
    reason[300] = '\0';
    enum { N = 2000 };
    for (uint64_t i = 0; i < N; i++) {
        json_t *g = genome((int)(i % 60));
        put(r, i, g, reason);
        json_decref(g);
    }
    records_close(r);
    struct stat is;
    assert_int_equal(stat(path, &is), 0);
    assert_true(is.st_size / N < 2048);
    assert_int_equal(unlink(path), 0);
}

/* ---- refusals ---- */

static void test_an_existing_file_is_not_touched(void **state) {
    (void)state;
    ev_error err;
    records_close(create());
    records *r = NULL;
    json_t *id = identity("vm:h200", 1);
    expect_bad(records_create(path, id, &r, &err), &err, path, "--resume");
    assert_int_equal(records_resume(path, id, &r, &err), EV_OK);
    records_close(r);
    json_decref(id);
    assert_int_equal(unlink(path), 0);
}

static void test_a_run_of_another_identity_is_refused(void **state) {
    (void)state;
    ev_error err;
    records_close(create());
    records *r = NULL;
    json_t *id = identity("vm:p100", 1);
    expect_bad(records_resume(path, id, &r, &err), &err, "device", "vm:h200");
    json_decref(id);
    id = identity("vm:h200", 2);
    expect_bad(records_resume(path, id, &r, &err), &err, "seed", "give what that run was given");
    (void)json_object_set_new(id, "seed", json_integer(1));
    (void)json_object_set_new(id, "protocol", json_integer(9));
    expect_bad(records_resume(path, id, &r, &err), &err, "protocol", "the build that began it");
    (void)json_object_del(id, "protocol");
    (void)json_array_clear(json_object_get(id, "tasks"));
    expect_bad(records_resume(path, id, &r, &err), &err, "tasks", "mul");
    json_decref(id);
    assert_int_equal(unlink(path), 0);
}

static void test_another_version_is_refused(void **state) {
    (void)state;
    ev_error err;
    records_close(create());
    run_sql("PRAGMA user_version = 7");
    records *r = NULL;
    expect_bad(records_open_read(path, &r, &err), &err, "version 7", "version 6");
    json_t *id = identity("vm:h200", 1);
    expect_bad(records_resume(path, id, &r, &err), &err, "version 7", "--resume");
    json_decref(id);
    assert_int_equal(unlink(path), 0);
}

static void test_what_is_no_records_file_is_refused(void **state) {
    (void)state;
    ev_error err;
    records *r = NULL;
    expect_bad(records_open_read(path, &r, &err), &err, path, "no records");
    run_sql("CREATE TABLE other(x)");
    expect_bad(records_open_read(path, &r, &err), &err, path, "no records file");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (int i = 0; i < 500; i++)
        (void)fputs("this is a text and no database\n", f);
    assert_int_equal(fclose(f), 0);
    expect_bad(records_open_read(path, &r, &err), &err, path, "no records file");
    assert_int_equal(unlink(path), 0);
}

static void test_a_folder_that_is_not_there(void **state) {
    (void)state;
    ev_error err;
    records *r = NULL;
    json_t *id = identity("vm:h200", 1);
    char missing[160];
    (void)snprintf(missing, sizeof missing, "%s/none/run.evoke", scratch);
    expect_bad(records_create(missing, id, &r, &err), &err, missing, "No such file");
    json_decref(id);
}

static void test_a_full_disk_is_the_machines_failure(void **state) {
    (void)state;
    ev_error err = {0};
    records *r = create();
    json_t *g = genome(30);
    struct rlimit before, small = {.rlim_cur = 200000};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    ev_status status = EV_OK;
    for (uint64_t i = 0; status == EV_OK && i < 5000; i++) {
        records_evaluation e = {.phase = "search",
                                .number = i,
                                .parents = "",
                                .operators = "",
                                .genome = g,
                                .gate = "none",
                                .reason = "",
                                .score = ""};
        status = records_put(r, &e, &err);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, EV_INFRA);
    assert_non_null(strstr(err.text, path));
    json_decref(g);
    records_close(r);
    assert_int_equal(records_open_read(path, &r, &err), EV_OK); /* what was written stands */
    records_close(r);
    assert_int_equal(unlink(path), 0);
}

/* ---- winners ---- */

static void test_winners_come_back(void **state) {
    (void)state;
    ev_error err;
    records *r = create();
    records_winner w = {.kernel = "mul",
                        .task_path = "a/task.json",
                        .device = "vm:h200",
                        .sm = 90,
                        .genome = "{}",
                        .ptx = ".version 8.5",
                        .seed = UINT64_MAX,
                        .rows = "[]",
                        .edits = "one\ntwo\n",
                        .promoted = true};
    bool finished = true;
    assert_int_equal(records_finished(r, 1, &finished, &err), EV_OK);
    assert_false(finished);
    assert_int_equal(records_put_winner(r, 1, &w, false, &err), EV_OK);
    assert_int_equal(records_finished(r, 1, &finished, &err), EV_OK);
    assert_false(finished);
    w.entry = "mul_kernel";
    assert_int_equal(records_put_winner(r, 1, &w, true, &err), EV_OK);
    w.kernel = "first";
    assert_int_equal(records_put_winner(r, 0, &w, true, &err), EV_OK);
    records_close(r);
    assert_int_equal(records_open_read(path, &r, &err), EV_OK);
    records_winner *list = NULL;
    size_t count = 0;
    assert_int_equal(records_winners(r, &list, &count, &err), EV_OK);
    assert_int_equal(count, 2);
    assert_string_equal(list[0].kernel, "first");
    assert_string_equal(list[1].kernel, "mul");
    assert_string_equal(list[1].entry, "mul_kernel");
    assert_string_equal(list[1].edits, "one\ntwo\n");
    assert_string_equal(list[1].baseline_ptx, "");
    assert_true(list[1].seed == UINT64_MAX && list[1].promoted && list[1].sm == 90);
    assert_int_equal(records_finished(r, 1, &finished, &err), EV_OK);
    assert_true(finished);
    records_winners_free(list, count);
    records_close(r);
    assert_int_equal(unlink(path), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_schema_stays),
        cmocka_unit_test(test_evaluations_come_back),
        cmocka_unit_test(test_evaluations_are_read_in_order),
        cmocka_unit_test(test_evaluations_are_small),
        cmocka_unit_test(test_an_existing_file_is_not_touched),
        cmocka_unit_test(test_a_run_of_another_identity_is_refused),
        cmocka_unit_test(test_another_version_is_refused),
        cmocka_unit_test(test_what_is_no_records_file_is_refused),
        cmocka_unit_test(test_a_folder_that_is_not_there),
        cmocka_unit_test(test_a_full_disk_is_the_machines_failure),
        cmocka_unit_test(test_winners_come_back),
    };
    return cmocka_run_group_tests(tests, make_scratch, remove_scratch);
}
