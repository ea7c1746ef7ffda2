/* Mutants: edits drawn at random on the starts of several tasks, the gates that a search would put
 * them through, and a judge of its own that says which of them are wrong. */
#ifndef TESTS_TUNER_JUDGE_MUTANTS_H
#define TESTS_TUNER_JUDGE_MUTANTS_H

#include "fitness/gates/fitness.h"
#include "ir/ir.h"
#include "tests/tuner/judge/enumerate.h"

#include <stdbool.h>

/* A kernel whose start is edited. */
typedef struct mutant_kernel {
    const char *path;    /* of task.json */
    const char *start;   /* that is edited */
    const char *base;    /* start that is the baseline; NULL: the start's source with SLOW */
    const judged *small; /* all inputs of its small domain are tried, too; NULL: it has none */
    expr_name shapes[4]
                    [JUDGE_SIZES]; /* of the judge, within the task's ranges; ends in NULL names */
} mutant_kernel;

extern const mutant_kernel mutant_kernels[];
extern const size_t mutant_kernel_count;

/* What became of a mutant. */
typedef enum mutant_end {
    MUTANT_NOT_BUILT, /* no place for the edit, the start's own code, or a build that is refused */
    MUTANT_STOPPED,   /* at a gate from 2 to 5 */
    MUTANT_UNREFUTED, /* the judge finds nothing */
    MUTANT_SLOW,      /* wrong; gate 6 refuses it for its time, and says nothing of the answers */
    MUTANT_BY_GATE,   /* wrong, and stopped at gate 6 */
    MUTANT_BY_STRESS, /* wrong, and stopped by the stress that follows gate 6 */
    MUTANT_PASSED,    /* wrong, and promoted */
    MUTANT_ENDS
} mutant_end;

typedef struct mutant_bench mutant_bench;

mutant_bench *mutant_bench_open(const mutant_kernel *of);
void mutant_bench_close(mutant_bench *b);

/* The base that edits are drawn on. */
const ir_base *mutant_base(const mutant_bench *b);
/* Puts a genome through gates, judge, gate 6 and stress. *bold: the number of its bold edits.
 * Appends to `why` what refuted and what stopped it. */
mutant_end mutant_try(mutant_bench *b, const ir_genome *genome, size_t *bold, ev_str *why);

#endif
