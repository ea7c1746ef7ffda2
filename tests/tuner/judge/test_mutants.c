/* The mutation score of gate 6: of random edits that pass gates 0 to 5 and that a judge of its own
 * proves wrong, gate 6 and the stress behind it stop 95 of 100. The judge shares no generator,
 * shape or seed with them.
 *
 *   test_mutants              a seeded sample of some seconds
 *   test_mutants full [N]     N draws a kernel, 2,000 unless given: what results/notes.md cites
 *   test_mutants full N PART  on the kernels alone whose path has PART
 *
 * Columns: draws without a place or with the start's own code; stopped at a gate up to 5; not
 * refuted by the judge; wrong, but refused for the time; wrong, and of these stopped by gate 6,
 * there for an arm that no case takes, by the stress, and by nothing; stopped or wrong without a
 * bold edit, which rounding alone explains. */
#include "tests/tuner/judge/mutants.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define DRAWS_QUICK 160 /* a kernel */
#define SHARE_QUICK 4   /* of them on a shipped kernel, whose gates cost more: one in so many */
#define DRAWS_FULL 2000
#define SEED 20261
#define LEAST_SHARE 95 /* of 100 */
#define LEAST_QUICK 20 /* wrong ones in the sample */

static ev_error err;
static uint64_t draws; /* a kernel; 0: the sample */
static const char *only;

typedef struct tally {
    unsigned ends[MUTANT_ENDS];
    unsigned arms;    /* of MUTANT_BY_GATE: for an arm that no case takes */
    unsigned plain;   /* without a bold edit, and stopped at any gate or wrong */
    unsigned kernels; /* with wrong ones */
} tally;

static unsigned wrong_of(const tally *n) {
    return n->ends[MUTANT_BY_GATE] + n->ends[MUTANT_BY_STRESS] + n->ends[MUTANT_PASSED];
}

static void print_row(const char *name, const tally *n) {
    print_message("%-16s %7u %7u %9u %5u %6u %5u %5u %6u %6u %6u\n", name,
                  n->ends[MUTANT_NOT_BUILT], n->ends[MUTANT_STOPPED], n->ends[MUTANT_UNREFUTED],
                  n->ends[MUTANT_SLOW], wrong_of(n), n->ends[MUTANT_BY_GATE], n->arms,
                  n->ends[MUTANT_BY_STRESS], n->ends[MUTANT_PASSED], n->plain);
}

/* ---- one mutant ---- */

/* One edit, or two in every other draw; NULL: no place. */
static ir_genome *draw(const mutant_bench *b, const char *start, uint64_t number) {
    ev_pcg rng = ev_pcg_seed(SEED + number, 77);
    ir_genome *genome = ir_genome_new(start);
    for (unsigned i = 0; genome != NULL && i < 1 + number % 2; i++) {
        ir_edit_kind kind = (ir_edit_kind)ev_pcg_below(&rng, IR_EDIT_LOCAL_COUNT);
        ir_genome *child = NULL;
        ev_status status = ir_mutate(mutant_base(b), genome, kind, NULL, &rng, &child, &err);
        assert_int_not_equal(status, EV_INFRA);
        ir_genome_free(genome);
        genome = status == EV_OK ? child : NULL;
    }
    return genome;
}

static void print_words(const mutant_bench *b, const ir_genome *genome) {
    for (size_t i = 0; i < ir_genome_edit_count(genome); i++) {
        ev_str words = EV_STR_EMPTY;
        OK(ir_describe_edit(mutant_base(b), genome, i, &words, &err));
        print_message("  edit %zu: %s\n", i, ev_str_text(&words));
        ev_str_free(&words);
    }
}

static void try_one(mutant_bench *b, const mutant_kernel *k, uint64_t number, tally *n) {
    ir_genome *genome = draw(b, k->start, number);
    ev_str why = EV_STR_EMPTY;
    size_t bold = 0;
    if (genome == NULL) {
        n->ends[MUTANT_NOT_BUILT]++;
        return;
    }
    mutant_end end = mutant_try(b, genome, &bold, &why);
    bool is_plain = bold == 0 && (end == MUTANT_STOPPED || end >= MUTANT_SLOW);
    n->ends[end]++;
    n->plain += is_plain;
    n->arms += end == MUTANT_BY_GATE && strstr(ev_str_text(&why), "\"assume\"") != NULL;
    if (end == MUTANT_PASSED || is_plain) {
        print_message("%s, draw %llu, %zu bold, %s: %s\n", k->path, (unsigned long long)number,
                      bold, end == MUTANT_PASSED ? "passed" : "stopped", ev_str_text(&why));
        print_words(b, genome);
    }
    ev_str_free(&why);
    ir_genome_free(genome);
}

/* ---- the score ---- */

static const char *name_of(const mutant_kernel *k) {
    const char *slash = strrchr(k->path, '/');
    return slash != NULL ? slash + 1 : k->path;
}

static void try_kernel(const mutant_kernel *k, tally *all) {
    tally n = {0};
    mutant_bench *b = mutant_bench_open(k);
    uint64_t sample = k->base != NULL ? DRAWS_QUICK / SHARE_QUICK : DRAWS_QUICK;
    uint64_t most = draws > 0 ? draws : sample;
    for (uint64_t i = 0; i < most; i++)
        try_one(b, k, i, &n);
    mutant_bench_close(b);
    for (int i = 0; i < MUTANT_ENDS; i++)
        all->ends[i] += n.ends[i];
    all->arms += n.arms;
    all->plain += n.plain;
    all->kernels += wrong_of(&n) > 0;
    print_row(name_of(k), &n);
    (void)fflush(stdout);
}

static void test_score(void **state) {
    (void)state;
    tally all = {0};
    print_message("kernel           no code stopped unrefuted  slow  wrong  gate  arms stress "
                  "passed  plain\n");
    for (size_t i = 0; i < mutant_kernel_count; i++) {
        if (only == NULL || strstr(mutant_kernels[i].path, only) != NULL)
            try_kernel(&mutant_kernels[i], &all);
    }
    print_row("all", &all);
    unsigned wrong = wrong_of(&all), stopped = wrong - all.ends[MUTANT_PASSED];
    print_message("%u of %u wrong ones on %u kernels stopped\n", stopped, wrong, all.kernels);
    assert_true(only != NULL || wrong >= LEAST_QUICK);
    assert_true(100 * stopped >= LEAST_SHARE * wrong);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_score),
    };
    if (argc > 1 && strcmp(argv[1], "full") == 0)
        draws = argc > 2 ? strtoull(argv[2], NULL, 10) : DRAWS_FULL;
    only = argc > 3 ? argv[3] : NULL;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
