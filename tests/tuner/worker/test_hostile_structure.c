/* Illegal applications of structural edits: each row of hostile/rows.def is a kernel of
 * hostile/kernels.cu, a prefix, and what stops the two: a refusal at application, or a gate with
 * its trap or its reason. A row that nothing stops is right, and stands beside a wrong twin. */
#include "base/file.h"
#include "base/json.h"
#include "tuner/worker/worker.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FOLDER "tests/tuner/worker/hostile"

static ev_error err;

typedef struct row {
    const char *entry;
    const char *grid, *block, *shared;
    const char *edits;
    const char *stop;  /* "refused", a gate's name, or "none" */
    const char *words; /* in the reason, or in the trap's name */
} row;

#define COARSEN(axis, count, form)                                                                 \
    "{\"kind\":\"coarsen\",\"anchor\":\"" axis "\",\"option\":" #count ",\"form\":\"" form "\"}"
#define THREADS(axis, count, form)                                                                 \
    "{\"kind\":\"coarsen-threads\",\"anchor\":\"" axis "\",\"option\":" #count ",\"form\":\"" form \
    "\"}"
#define SPECIALISE(anchor, option, form)                                                           \
    "{\"kind\":\"specialise\",\"anchor\":\"" anchor "\",\"option\":" #option ",\"form\":\"" form   \
    "\"}"
#define AT(kind, anchor, option)                                                                   \
    "{\"kind\":\"" kind "\",\"anchor\":\"" anchor "\",\"option\":" #option "}"
#define TEAM(option, form)                                                                         \
    "{\"kind\":\"split-threads\",\"option\":" #option ",\"form\":\"" form "\"}"
#define PLAIN(kind, option) "{\"kind\":\"" kind "\",\"option\":" #option "}"
#define PEEL "{\"kind\":\"peel\"}"
#define PEEL_OF_MEMBERS "{\"kind\":\"peel\",\"form\":\"members\"}"
#define GROUP(option) "{\"kind\":\"group-loads\",\"option\":" #option "}"

static const row rows[] = {
#include "tests/tuner/worker/hostile/rows.def"
};

enum { ROWS = sizeof rows / sizeof rows[0], FEWEST_STOPPED = 30 };

static char scratch[] = "/tmp/evoke-hostile-XXXXXX";

/* The arguments (x, w, y, m, n), with room for what y is. */
#define HEAD                                                                                       \
    "{\"name\":\"x\",\"kind\":\"in\",\"type\":\"f32\",\"count\":\"m*n\","                          \
    "\"data\":{\"generator\":\"normal\"}},"                                                        \
    "{\"name\":\"w\",\"kind\":\"in\",\"type\":\"f32\",\"count\":\"n*n+9\","                        \
    "\"data\":{\"generator\":\"normal\"}},"                                                        \
    "{\"name\":\"y\",\"type\":\"f32\",\"count\":\"m*n\","
#define TAIL                                                                                       \
    "},"                                                                                           \
    "{\"name\":\"m\",\"kind\":\"scalar\",\"type\":\"s32\"},"                                       \
    "{\"name\":\"n\",\"kind\":\"scalar\",\"type\":\"s32\"}"

/* What y is: it begins with what a caller may have left there, but for a chain of flags. */
static const char *output_of(const char *entry) {
    if (strcmp(entry, "chained") == 0)
        return "\"kind\":\"inout\",\"initial\":\"constant\",\"data\":{\"generator\":\"zeros\"}";
    return "\"kind\":\"inout\",\"data\":{\"generator\":\"zeros\"}";
}

/* The task of one kernel. */
static task *task_of(const row *r) {
    static const char cases[] = "{\"name\":\"a\",\"split\":\"search\",\"use\":\"smoke\",\"shape\":{"
                                "\"m\":3,\"n\":5,\"p\":3}},"
                                "{\"name\":\"b\",\"split\":\"search\",\"use\":\"check\",\"shape\":{"
                                "\"m\":17,\"n\":40,\"p\":17}},"
                                "{\"name\":\"c\",\"split\":\"search\",\"use\":\"time\",\"shape\":{"
                                "\"m\":64,\"n\":64,\"p\":64}},"
                                "{\"name\":\"d\",\"split\":\"held-out\",\"use\":\"check\","
                                "\"shape\":{\"m\":9,\"n\":33,\"p\":9}},"
                                "{\"name\":\"e\",\"split\":\"held-out\",\"use\":\"time\",\"shape\":"
                                "{\"m\":96,\"n\":32,\"p\":96}},"
                                "{\"name\":\"f\",\"split\":\"adversarial\",\"use\":\"check\","
                                "\"shape\":{\"m\":2,\"n\":1,\"p\":2}}";
    ev_str text = EV_STR_EMPTY;
    char path[PATH_MAX], home[PATH_MAX];
    task *t = NULL;
    assert_non_null(getcwd(home, sizeof home));
    ev_str_printf(&text,
                  "{\"name\":\"%s\",\"family\":\"tests\",\"doc\":\"hostile\",\"arguments\":[" HEAD
                  "%s" TAIL "],"
                  "\"starts\":[{\"name\":\"plain\",\"source\":\"kernels.cu\",\"grid\":%s,"
                  "\"block\":%s,\"shared\":\"%s\"}],\"oracle\":\"baseline\",\"tolerance\":"
                  "{\"relative_l2\":1e-5},\"cases\":[%s]}",
                  r->entry, output_of(r->entry), r->grid, r->block, r->shared, cases);
    (void)snprintf(path, sizeof path, "%s/kernels.cu", scratch);
    if (access(path, R_OK) != 0) {
        char from[PATH_MAX + 64];
        (void)snprintf(from, sizeof from, "%s/" FOLDER "/kernels.cu", home);
        assert_int_equal(symlink(from, path), 0);
    }
    (void)snprintf(path, sizeof path, "%s/task.json", scratch);
    OK(ev_file_write(path, ev_str_text(&text), text.length, &err));
    OK(task_load(path, &t, &err));
    ev_str_free(&text);
    return t;
}

static ir_genome *genome_of(const char *edits) {
    ev_str text = EV_STR_EMPTY;
    ev_json *doc = NULL;
    ir_genome *genome = NULL;
    ev_str_printf(&text, "{\"start\":\"plain\",\"edits\":[%s]}", edits);
    OK(ev_json_parse(ev_str_text(&text), "test", &doc, &err));
    OK(ir_genome_from_json(doc->root, &genome, &err));
    ev_json_free(doc);
    ev_str_free(&text);
    return genome;
}

static void open_worker(worker *w, const row *r) {
    worker_build b;
    score s;
    *w = (worker){.t = task_of(r)};
    OK(device_open("vm:h200", &w->device, &err));
    OK(bases_new(w->t, 90, 2, &w->bases, &err));
    OK(fitness_open(w->t, w->device, NULL, &w->fitness, &err));
    OK(worker_build_begin(w, genome_of(""), &b, &err));
    OK(worker_build_all(w, &b, &err));
    OK(fitness_set_baseline(w->fitness, &b.candidate, (1u << CORPUS_SPLIT_COUNT) - 1, &s, &err));
    worker_build_end(&b);
}

/* Where the variant is stopped, and why. */
static void judge(worker *w, const row *r, ev_str *stop, ev_str *why) {
    worker_build b;
    score s;
    ev_status status = worker_build_begin(w, genome_of(r->edits), &b, &err);
    if (status == EV_BAD) {
        ev_str_append(stop, "refused");
        ev_str_append(why, err.text);
        return;
    }
    OK(status);
    OK(worker_build_all(w, &b, &err));
    OK(fitness_score(w->fitness, &b.candidate, &s, &err));
    if (s.stopped == GATE_NONE)
        OK(fitness_promote(w->fitness, &b.candidate, &s, &err));
    bool is_right = s.stopped == GATE_PROMOTED && strstr(s.reason, "not faster");
    ev_str_append(stop, gate_name(is_right ? GATE_NONE : s.stopped));
    ev_str_printf(why, "%s %s", s.trap, s.reason);
    worker_build_end(&b);
}

/* True if the row says what happened. */
static bool check_row(const row *r) {
    worker w;
    ev_str stop = EV_STR_EMPTY, why = EV_STR_EMPTY;
    open_worker(&w, r);
    judge(&w, r, &stop, &why);
    bool right = strcmp(ev_str_text(&stop), r->stop) == 0 && strstr(ev_str_text(&why), r->words);
    if (!right)
        print_error("%s %s: %s, %s\n", r->entry, r->edits, ev_str_text(&stop), ev_str_text(&why));
    ev_str_free(&stop);
    ev_str_free(&why);
    worker_close_task(&w);
    return right;
}

static void test_each_application_is_stopped_where_the_table_says(void **state) {
    (void)state;
    unsigned wrong = 0, stopped = 0;
    for (size_t i = 0; i < ROWS; i++) {
        wrong += !check_row(&rows[i]);
        stopped += strcmp(rows[i].stop, "none") != 0;
        assert_true(strcmp(rows[i].stop, "none") == 0 || rows[i].words[0] != '\0');
    }
    assert_int_equal(wrong, 0);
    assert_true(stopped >= FEWEST_STOPPED);
}

static int open_all(void **state) {
    (void)state;
    return mkdtemp(scratch) == NULL;
}

static int close_all(void **state) {
    char path[PATH_MAX];
    (void)state;
    (void)snprintf(path, sizeof path, "%s/kernels.cu", scratch);
    (void)unlink(path);
    (void)snprintf(path, sizeof path, "%s/task.json", scratch);
    (void)unlink(path);
    return rmdir(scratch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_application_is_stopped_where_the_table_says),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
