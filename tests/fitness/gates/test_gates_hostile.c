/* Cheats and their right twins, a folder a subject: each PTX file says in its first line at which
 * gate it is stopped and by which trap, as in test_gates.c; "none": promoted. A file NAME.checked
 * is the build of NAME.ptx with its asserted facts as checks. */
#include "base/file.h"
#include "fitness/gates/fitness.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/ok.h"

#define FOLDER "tests/fitness/gates/"
#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1)

static ev_error err;

typedef struct bench {
    task *t;
    device *d;
    fitness *f;
    char *text; /* of the PTX loaded last */
    char *checked;
} bench;

static candidate candidate_of(bench *b, const char *folder, const char *name) {
    char path[256];
    (void)snprintf(path, sizeof path, FOLDER "%s/%s", folder, name);
    size_t bytes = 0;
    free(b->text);
    OK(ev_file_read(path, &b->text, &bytes, &err));
    return (candidate){.ptx = b->text,
                       .ptx_bytes = bytes,
                       .plan = b->t->starts[0].plan,
                       .start = &b->t->starts[0]};
}

/* Gives the candidate its build with checks, if there is one. */
static void add_checked(bench *b, const char *folder, const char *name, candidate *c) {
    char path[256];
    int stem = (int)strcspn(name, ".");
    (void)snprintf(path, sizeof path, FOLDER "%s/%.*s.checked", folder, stem, name);
    free(b->checked);
    b->checked = NULL;
    if (access(path, R_OK) != 0)
        return;
    OK(ev_file_read(path, &b->checked, &c->checked_bytes, &err));
    c->checked_ptx = b->checked;
    c->checked_mark = "// asserted: ";
}

static void open_bench(bench *b, const char *folder) {
    char path[256];
    memset(b, 0, sizeof *b);
    (void)snprintf(path, sizeof path, FOLDER "%s/task.json", folder);
    OK(task_load(path, &b->t, &err));
    OK(device_open("vm:h200", &b->d, &err));
    OK(fitness_open(b->t, b->d, NULL, &b->f, &err));
    candidate c = candidate_of(b, folder, "baseline.ptx");
    score s;
    OK(fitness_set_baseline(b->f, &c, SPLITS_ALL, &s, &err));
}

static void close_bench(bench *b) {
    fitness_close(b->f);
    device_close(b->d);
    task_free(b->t);
    free(b->text);
    free(b->checked);
}

/* "// expect: GATE [TRAP]"; false: another gate or trap. */
static bool stopped_as_told(const char *ptx, const score *s) {
    char gate[32] = "", trap[32] = "";
    assert_true(sscanf(ptx, "// expect: %31s%*[ ]%31[^\n]", gate, trap) >= 1);
    return strcmp(gate_name(s->stopped), gate) == 0 && strcmp(s->trap, trap) == 0;
}

static bool check_file(bench *b, const char *folder, const char *name) {
    candidate c = candidate_of(b, folder, name);
    add_checked(b, folder, name, &c);
    score s;
    OK(fitness_score(b->f, &c, &s, &err));
    if (s.stopped == GATE_NONE)
        OK(fitness_promote(b->f, &c, &s, &err));
    bool right = stopped_as_told(c.ptx, &s);
    if (!right)
        print_error("%s/%s: stopped at %s by '%s' (%s)\n", folder, name, gate_name(s.stopped),
                    s.trap, s.reason);
    return right;
}

static int is_variant(const struct dirent *at) {
    return strstr(at->d_name, ".ptx") != NULL && strcmp(at->d_name, "baseline.ptx") != 0;
}

static void check_folder(const char *folder, int least) {
    bench b;
    char path[256];
    struct dirent **names = NULL;
    open_bench(&b, folder);
    (void)snprintf(path, sizeof path, FOLDER "%s", folder);
    int count = scandir(path, &names, is_variant, alphasort), wrong = 0;
    assert_true(count >= least);
    for (int i = 0; i < count; i++) {
        wrong += !check_file(&b, folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    close_bench(&b);
    assert_int_equal(wrong, 0);
}

static void test_promises(void **state) {
    (void)state;
    check_folder("promises", 12);
}

/* The reason says which edit asserts what, and who breaks the fact. */
static void test_asserted_words(void **state) {
    (void)state;
    bench b;
    score s;
    open_bench(&b, "promises");
    candidate c = candidate_of(&b, "promises", "asserted_breaks.ptx");
    add_checked(&b, "promises", "asserted_breaks.ptx", &c);
    OK(fitness_promote(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_PROMOTED);
    assert_string_equal(s.reason, "case odd: edit 3 asserts that the add at line 9 does not wrap "
                                  "(signed), and block (15, 0, 0) thread (40, 0, 0) breaks this");
    c.checked_ptx = NULL;
    OK(fitness_promote(b.f, &c, &s, &err));
    assert_int_equal(s.stopped, GATE_NONE);
    close_bench(&b);
}

/* Gate 3 has variables and buffers at odd multiples of the alignment that they declare. */
static void test_alignment(void **state) {
    (void)state;
    check_folder("alignment", 16);
}

/* A variant that states what it needs of an argument is tried with that, and with no more. */
static void test_stated_alignment(void **state) {
    (void)state;
    static const struct {
        uint64_t aligned;
        uint32_t to;
        gate stopped;
    } rows[] = {{0, 0, GATE_SAFE}, {1, 8, GATE_SAFE}, {2, 16, GATE_SAFE}, {1, 16, GATE_NONE}};
    bench b;
    score s;
    open_bench(&b, "alignment");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        candidate c = candidate_of(&b, "alignment", "argument_of_4.ptx");
        c.aligned = rows[i].aligned;
        c.aligned_to = rows[i].to;
        OK(fitness_score(b.f, &c, &s, &err));
        assert_int_equal(s.stopped, rows[i].stopped);
        assert_true(s.stopped == GATE_NONE || strcmp(s.trap, "misaligned") == 0);
    }
    candidate c = candidate_of(&b, "alignment", "argument_of_4.ptx");
    c.aligned = 1;
    c.aligned_to = 16;
    OK(fitness_promote(b.f, &c, &s, &err));
    if (s.stopped != GATE_NONE)
        fail_msg("%s", s.reason);
    close_bench(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_asserted_words),
        cmocka_unit_test(test_stated_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
