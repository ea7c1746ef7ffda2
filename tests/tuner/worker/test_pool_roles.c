/* The pool with timers and screeners, against workers that only pretend: who gets which job, and
 * what happens when a timer dies in the middle of one.
 *
 * This program is its own worker: `test_pool_roles worker`. It notes each job in the file
 * EVOKE_ROLES_LOG names: "ROLE DEVICE MESSAGE NUMBER". */
#include "tuner/worker/pool.h"

#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "fitness/gates/score.h"
#include "ir/ir.h"
#include "tuner/run/tune.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/genomes.h"

#define JOBS 40
#define DROPPED(n) ((n) % 4 == 0) /* a screener has no more to do with these */

/* ---- the worker ---- */

typedef struct fake {
    channel line;
    char role[16], device[64];
} fake;

static void say(fake *f, const message *m) {
    ev_error err;
    if (message_send(&f->line, m, &err) != EV_OK)
        _exit(3);
}

/* False: the coordinator is gone. */
static bool hear(fake *f, message *out) {
    ev_error err;
    bool got = false;
    return message_receive(&f->line, out, &got, &err) == EV_OK && got;
}

static void note(const fake *f, message_kind kind, uint64_t number) {
    char text[160];
    int length = snprintf(text, sizeof text, "%s %s %s %llu\n", f->role, f->device,
                          message_name(kind), (unsigned long long)number);
    int fd = open(getenv("EVOKE_ROLES_LOG"), O_CREAT | O_APPEND | O_WRONLY, 0600);
    if (fd < 0 || write(fd, text, (size_t)length) != length)
        _exit(3);
    (void)close(fd);
}

/* The first process that asks is told yes. */
static bool is_first(const char *variable) {
    const char *path = getenv(variable);
    int fd = path ? open(path, O_CREAT | O_EXCL | O_WRONLY, 0600) : -1;
    if (fd >= 0)
        (void)close(fd);
    return fd >= 0;
}

static void send_score(fake *f, double ns) {
    say(f, &(message){.kind = MESSAGE_DONE,
                      .done = {.has_score = true,
                               .score = {.stopped = GATE_NONE, .ns = ns, .small_ns = 7}}});
}

static void send_screened(fake *f, const char *ptx) {
    say(f, &(message){.kind = MESSAGE_SCREENED,
                      .passed = {.ptx = ptx, .score = {.stopped = GATE_NONE, .small_ns = 7}}});
}

/* The genome of a child: its one macro is the child's number. */
static ir_genome *numbered(int64_t number) {
    return genome_from(json_pack("{s:s,s:{s:I}}", "start", "a", "macros", "N", (json_int_t)number));
}

static void do_child(fake *f, uint64_t number) {
    char ptx[32];
    message answer = {0};
    ir_genome *genome = numbered((int64_t)number);
    ev_sha256 sha = ev_sha256_of(&number, sizeof number);
    message drawn = {.kind = MESSAGE_DRAWN, .drawn = {.genome = genome, .operators = ""}};
    memcpy(drawn.drawn.sha256, sha.hex, sizeof sha.hex);
    say(f, &drawn);
    ir_genome_free(genome);
    if (!hear(f, &answer))
        _exit(0);
    message_free(&answer);
    (void)snprintf(ptx, sizeof ptx, "ptx %llu", (unsigned long long)number);
    if (DROPPED(number))
        send_score(f, 1);
    else
        send_screened(f, ptx);
}

static void wait_for_go(void) {
    const char *path = getenv("EVOKE_ROLES_GO");
    while (path && !ev_path_exists(path))
        (void)usleep(2000);
}

/* The PTX and the score that the screener of this very genome sent have to be here. */
static void do_time(fake *f, const screened_message *m, uint64_t number) {
    unsigned long long built = 0;
    bool right = sscanf(m->ptx, "ptx %llu", &built) == 1 && built == number;
    wait_for_go();
    (void)usleep(5000); /* so that the other timer has its share */
    if (is_first("EVOKE_ROLES_DIES"))
        (void)kill(getpid(), SIGKILL);
    if (getenv("EVOKE_ROLES_ODD"))
        send_screened(f, "ptx");
    else
        send_score(f, right && m->score.small_ns == 7 ? 100 + (double)number : -1);
}

/* All that a promotion, a replay or a check may ask for. */
static void do_rest(fake *f) {
    ev_sha256 sha = ev_sha256_of("", 0);
    message m = {.kind = MESSAGE_DONE,
                 .done = {.has_score = true,
                          .score = {.stopped = GATE_NONE, .ns = 5},
                          .has_code = getenv("EVOKE_ROLES_SHORT") == NULL,
                          .code = {.ptx = "", .entry = ""},
                          .words = "",
                          .has_cases = true}};
    memcpy(m.done.code.genome_sha256, sha.hex, sizeof sha.hex);
    memcpy(m.done.code.ir_sha256, sha.hex, sizeof sha.hex);
    memcpy(m.done.code.ptx_sha256, sha.hex, sizeof sha.hex);
    say(f, &m);
}

static void do_open(fake *f, const open_message *m) {
    (void)snprintf(f->role, sizeof f->role, "%s", worker_role_name(m->role));
    (void)snprintf(f->device, sizeof f->device, "%s", m->device);
    message ready = {.kind = MESSAGE_READY, .ready = {.gpu_name = "fake", .driver = ""}};
    ev_sha256 sha = ev_sha256_of("", 0);
    memcpy(ready.ready.task_sha256, sha.hex, sizeof sha.hex);
    say(f, &ready);
}

static uint64_t number_of(const ir_genome *genome) {
    return (uint64_t)ir_genome_macro_value(genome, 0);
}

static void do_job(fake *f, const message *m) {
    switch (m->kind) {
    case MESSAGE_CHILD:
        note(f, m->kind, m->child.recipe.stream.child);
        do_child(f, m->child.recipe.stream.child);
        break;
    case MESSAGE_TIME:
        note(f, m->kind, number_of(m->screened.genome));
        do_time(f, &m->screened, number_of(m->screened.genome));
        break;
    case MESSAGE_PROMOTE:
        note(f, m->kind, number_of(m->promote.genome));
        do_rest(f);
        break;
    default:
        note(f, m->kind, number_of(m->variant.genome));
        do_rest(f);
    }
}

static int serve(void) {
    fake f = {.line = {.in = 0, .out = 1}};
    message m = {0};
    const message hello = {.kind = MESSAGE_HELLO,
                           .hello = {PROTOCOL_VERSION, EVOKE_VERSION, ir_llvm_version()}};
    while (hear(&f, &m)) {
        if (m.kind == MESSAGE_HELLO)
            say(&f, &hello);
        else if (m.kind == MESSAGE_OPEN)
            do_open(&f, &m.open);
        else
            do_job(&f, &m);
        message_free(&m);
    }
    channel_free(&f.line);
    return 0;
}

/* ---- the tests ---- */

static char scratch[64], self[512];

static const char *in_scratch(const char *name) {
    static char buffers[4][128];
    static int turn;
    turn = (turn + 1) % 4;
    (void)snprintf(buffers[turn], sizeof buffers[turn], "%s/%s", scratch, name);
    return buffers[turn];
}

static int begin(void **state) {
    (void)state;
    (void)snprintf(scratch, sizeof scratch, "/tmp/evoke-roles-XXXXXX");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    (void)signal(SIGPIPE, SIG_IGN);
    if (mkdtemp(scratch) == NULL || length <= 0)
        return 1;
    const char *names[] = {"EVOKE_ROLES_DIES", "EVOKE_ROLES_ODD", "EVOKE_ROLES_GO",
                           "EVOKE_ROLES_SHORT"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
    return setenv("EVOKE_ROLES_LOG", in_scratch("log"), 1);
}

static int end(void **state) {
    (void)state;
    return ev_dir_remove(scratch, NULL) != EV_OK;
}

static pool *open_pool(void) {
    static const char *argv[3], *const gpus[] = {"cuda:0", "cuda:1"};
    argv[0] = self;
    argv[1] = "worker";
    pool_options options = {
        .argv = argv, .workers = 4, .device = "vm:h200", .timers = 2, .timer_devices = gpus};
    ev_error err = {0};
    pool *p = NULL;
    const ready_message *ready = NULL;
    assert_int_equal(pool_new(&options, &p, &err), EV_OK);
    if (pool_open(p, "a task", &ready, &err) != EV_OK)
        fail_msg("%s", err.text);
    assert_string_equal(ready->gpu_name, "fake");
    return p;
}

static void submit(pool *p, message_kind kind, int number) {
    ir_genome *genome = numbered(number);
    recipe r = {.parents = {genome}, .parent_count = 1, .stream = {.child = (uint64_t)number}};
    if (kind == MESSAGE_CHILD)
        pool_submit(p, pool_job_child((uint64_t)number, &r));
    else
        pool_submit(p, pool_job_variant(kind, (uint64_t)number, genome));
    if (kind != MESSAGE_CHILD)
        ir_genome_free(genome);
}

static pool_job *next(pool *p) {
    ev_error err = {0};
    pool_job *job = NULL;
    for (int i = 0; !job && i < 3000; i++) {
        if (pool_wait(p, 0.02, &job, &err) != EV_OK)
            fail_msg("%s", err.text);
    }
    assert_non_null(job);
    return job;
}

/* All children come back: timed what was screened, once each. */
static void expect_all(pool *p) {
    bool seen[JOBS] = {false};
    for (int i = 0; i < JOBS; i++) {
        pool_job *job = next(p);
        assert_false(seen[job->number]);
        seen[job->number] = true;
        double wanted = DROPPED(job->number) ? 1 : 100 + (double)job->number;
        assert_true(job->reply->score.ns == wanted);
        assert_int_equal(job->screened, !DROPPED(job->number));
        pool_job_free(job);
    }
    assert_int_equal(pool_jobs(p), 0);
}

/* How many lines of the log begin with the words. */
static size_t count(const char *words) {
    char *log = NULL;
    size_t bytes = 0, found = 0;
    ev_error err;
    assert_int_equal(ev_file_read(in_scratch("log"), &log, &bytes, &err), EV_OK);
    for (char *at = log; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        found += strncmp(at, words, strlen(words)) == 0;
    free(log);
    return found;
}

static void test_each_does_its_part(void **state) {
    (void)state;
    pool *p = open_pool();
    for (int i = 0; i < JOBS; i++)
        submit(p, MESSAGE_CHILD, i);
    expect_all(p);
    assert_true(pool_timer_seconds(p) > 0);
    submit(p, MESSAGE_PROMOTE, 1);
    submit(p, MESSAGE_CHECK, 2);
    submit(p, MESSAGE_REPLAY, 3);
    for (int i = 0; i < 3; i++)
        pool_job_free(next(p));
    pool_free(p);
    assert_int_equal(count("screener vm:h200 child"), JOBS);
    assert_int_equal(count("screener vm:h200 replay"), 1);
    assert_int_equal(count("screener"), JOBS + 1);
    size_t first = count("timer cuda:0 time"), second = count("timer cuda:1 time");
    assert_int_equal(first + second, JOBS - JOBS / 4);
    assert_true(first > 0 && second > 0);
    /* the held-out cases are opened on one GPU only */
    assert_int_equal(count("timer cuda:0 promote") + count("timer cuda:0 check"), 2);
    assert_int_equal(count("timer"), JOBS - JOBS / 4 + 2);
}

/* What a screener did is not done again. */
static void test_a_timer_that_dies(void **state) {
    (void)state;
    assert_int_equal(setenv("EVOKE_ROLES_DIES", in_scratch("died"), 1), 0);
    pool *p = open_pool();
    for (int i = 0; i < JOBS; i++)
        submit(p, MESSAGE_CHILD, i);
    expect_all(p);
    assert_int_equal(pool_failed_workers(p), 1);
    pool_free(p);
    assert_int_equal(count("screener vm:h200 child"), JOBS);
    assert_int_equal(count("timer cuda:0 time") + count("timer cuda:1 time"), JOBS - JOBS / 4 + 1);
}

static void test_starving(void **state) {
    (void)state;
    assert_int_equal(setenv("EVOKE_ROLES_GO", in_scratch("go"), 1), 0);
    pool *p = open_pool();
    ev_error err = {0};
    assert_true(pool_timers_starve(p));
    for (int i = 0; i < JOBS; i++)
        submit(p, MESSAGE_CHILD, i);
    assert_true(pool_timers_starve(p)); /* nothing is screened yet */
    pool_job *done[JOBS] = {NULL};
    size_t got = 0;
    for (int i = 0; pool_timers_starve(p) && i < 1000; i++) {
        assert_int_equal(pool_wait(p, 0.01, &done[got], &err), EV_OK);
        got += done[got] != NULL;
    }
    assert_false(pool_timers_starve(p)); /* both are at work, and two wait */
    for (size_t i = 0; i < got; i++) {
        assert_true(DROPPED(done[i]->number));
        pool_job_free(done[i]);
    }
    assert_int_equal(ev_file_write(in_scratch("go"), "", 0, &err), EV_OK);
    while (got++ < JOBS)
        pool_job_free(next(p));
    assert_true(pool_timers_starve(p));
    pool_free(p);
}

/* The job ends the run: every worker that takes it does what the variable says. */
static void expect_end(const char *variable, message_kind kind, const char *words) {
    assert_int_equal(setenv(variable, "1", 1), 0);
    pool *p = open_pool();
    submit(p, kind, 1);
    ev_error err = {0};
    pool_job *job = NULL;
    ev_status status = EV_OK;
    for (int i = 0; status == EV_OK && !job && i < 3000; i++)
        status = pool_wait(p, 0.02, &job, &err);
    assert_int_equal(status, EV_INFRA);
    if (!strstr(err.text, words))
        fail_msg("'%s' lacks '%s'", err.text, words);
    pool_free(p);
}

/* A timer has nobody to pass a job on to. */
static void test_a_timer_that_screens(void **state) {
    (void)state;
    expect_end("EVOKE_ROLES_ODD", MESSAGE_CHILD, "out of place");
}

static void test_an_answer_with_a_part_missing(void **state) {
    (void)state;
    expect_end("EVOKE_ROLES_SHORT", MESSAGE_PROMOTE, "lacks a part");
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "worker") == 0)
        return serve();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_does_its_part, begin, end),
        cmocka_unit_test_setup_teardown(test_a_timer_that_dies, begin, end),
        cmocka_unit_test_setup_teardown(test_starving, begin, end),
        cmocka_unit_test_setup_teardown(test_a_timer_that_screens, begin, end),
        cmocka_unit_test_setup_teardown(test_an_answer_with_a_part_missing, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
