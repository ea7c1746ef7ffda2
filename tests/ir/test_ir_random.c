/* Random genomes in child processes: each is refused with words or builds, and none ends a process.
 */
#include "base/proc.h"
#include "ir/ir.h"
#include "tests/sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHILDREN = SANITIZED ? 10 : 25, GENOMES = 20, MOST_EDITS = 12 };

typedef struct counts {
    int built, refused, mutations, no_place;
} counts;

static ir_base *load(void) {
    static const int64_t constants[] = {3, 100, 4096};
    ir_source source = {.path = "tests/ir/everything.cu",
                        .entry = "everything",
                        .include = "kernels/include",
                        .sm = 90,
                        .constants = constants,
                        .constant_count = 3,
                        .block = {256, 1, 1}};
    ev_error err;
    ir_base *base = NULL;
    if (ir_base_load(&source, &base, &err) != EV_OK)
        fail_msg("%s", err.text);
    return base;
}

static ir_genome *draw_genome(const ir_base *base, ev_pcg *rng, counts *n) {
    ir_genome *genome = ir_genome_new("textbook");
    for (uint32_t edits = 1 + ev_pcg_below(rng, MOST_EDITS); edits > 0; edits--) {
        ir_edit_kind kind = (ir_edit_kind)ev_pcg_below(rng, IR_EDIT_LOCAL_COUNT);
        ir_genome *child;
        ev_error err;
        ev_status status = ir_mutate(base, genome, kind, NULL, rng, &child, &err);
        if (status != EV_OK) {
            n->no_place++;
            continue;
        }
        n->mutations++;
        ir_genome_free(genome);
        genome = child;
    }
    return genome;
}

static bool try_genome(const ir_base *base, const ir_genome *genome, counts *n) {
    ir_build *build;
    ev_error err;
    memset(&err, 0, sizeof err);
    if (ir_build_new(base, genome, &build, &err) != EV_OK)
        return false;
    ev_status status = EV_OK;
    for (int stage = 0; status == EV_OK && stage < IR_STAGE_COUNT; stage++)
        status = ir_build_run(build, (ir_stage)stage, &err);
    n->built += status == EV_OK;
    n->refused += status == EV_BAD;
    ir_build_free(build);
    return status != EV_INFRA && (status == EV_OK || err.text[0] != '\0');
}

/* Parents cross, too: their child's edits meet a context that they were not drawn in. */
static int run_child(const ir_base *base, uint32_t child, int pipe_end) {
    ev_pcg rng = ev_pcg_child(2024, 0, 0, child);
    counts n = {0};
    bool fine = true;
    for (int i = 0; i < GENOMES && fine; i++) {
        ir_genome *a = draw_genome(base, &rng, &n), *b = draw_genome(base, &rng, &n);
        ir_genome *c = ir_genome_crossover(a, b, &rng);
        fine = c && try_genome(base, i % 2 ? c : a, &n);
        ir_genome_free(a);
        ir_genome_free(b);
        ir_genome_free(c);
    }
    fine &= write(pipe_end, &n, sizeof n) == (ssize_t)sizeof n;
    return fine ? 0 : 1;
}

static void random_genomes_end_no_process(void **state) {
    (void)state;
    ir_base *base = load();
    counts total = {0};
    int aborts = 0;
    for (uint32_t child = 0; child < CHILDREN; child++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        pid_t pid = fork();
        if (pid == 0)
            _exit(run_child(base, child, pipes[1]));
        close(pipes[1]);
        counts n = {0};
        if (read(pipes[0], &n, sizeof n) != (ssize_t)sizeof n)
            print_message("child %u said nothing\n", child);
        close(pipes[0]);
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            print_message("child %u ended with wait status %d\n", child, status);
            aborts++;
        }
        total.built += n.built;
        total.refused += n.refused;
        total.mutations += n.mutations;
        total.no_place += n.no_place;
    }
    print_message("%d built, %d refused, %d processes ended; %d mutations, %d without a place\n",
                  total.built, total.refused, aborts, total.mutations, total.no_place);
    assert_int_equal(aborts, 0);
    assert_int_equal(total.built + total.refused, CHILDREN * GENOMES);
    assert_true(total.built > CHILDREN * GENOMES / 2);
    ir_base_free(base);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_genomes_end_no_process)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
