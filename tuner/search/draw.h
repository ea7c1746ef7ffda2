/* Draw: makes a child's genome of a recipe (tuner/search/recipe.h): crosses the parents, then takes
 * of each step the first arm (edit or operator) that has a place. The child depends on the recipe
 * alone. */
#ifndef TUNER_SEARCH_DRAW_H
#define TUNER_SEARCH_DRAW_H

#include "base/pcg.h"
#include "base/status.h"
#include "base/str.h"
#include "ir/genome.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/search/bandit.h"
#include "tuner/search/links.h"
#include "tuner/search/recipe.h"

#include <stdbool.h>

typedef enum operator_kind {
#define OPERATOR(id, name, fresh, meaning) OPERATOR_##id,
#include "tuner/search/operators.def"
#undef OPERATOR
    OPERATOR_COUNT
} operator_kind;

/* An arm: an edit (below IR_EDIT_COUNT) or IR_EDIT_COUNT plus an operator. */
#define ARM_COUNT ((unsigned)IR_EDIT_COUNT + (unsigned)OPERATOR_COUNT)
#define ARM_OF(operator_id) ((unsigned)IR_EDIT_COUNT + (unsigned)OPERATOR_##operator_id)

const char *arm_name(unsigned arm);
const char *arm_meaning(unsigned arm);
double
arm_odds(unsigned arm); /* probability that its child is new and right, before it was tried */
bool arm_find(const char *name, unsigned *out);

/* Gives the base module of a genome's start and macros; borrowed until the next call. */
typedef struct draw_bases {
    void *context;
    ev_status (*get)(void *context, const ir_genome *genome, const ir_base **out, ev_error *err);
    /* The weights of its places, by which edits are drawn where the recipe says so (by_heat). */
    ev_status (*heat)(void *context, const ir_genome *genome, const double **out, ev_error *err);
} draw_bases;

/* Links between edits: of two that belong together, a child that has the one gets the other. */
typedef struct draw_links {
    const edit_pair *pairs; /* borrowed */
    size_t count;
} draw_links;

/* A child of two genomes that is neither, if some tries find one. NULL: out of memory. */
ir_genome *draw_crossed(const ir_genome *first, const ir_genome *second, const draw_links *links,
                        ev_pcg *rng);

/* A child, and what its build need not do again. */
typedef struct drawn_child {
    ir_genome *genome;
    ir_edited *edited; /* NULL: the genome's edits are still to be applied */
} drawn_child;

void drawn_child_free(drawn_child *child);

/* `operators` gets the names of the arms that were taken, with commas between. EV_BAD: none
 * of the steps has a place. */
ev_status draw_child(const task *t, const draw_bases *bases, const recipe *r, drawn_child *out,
                     ev_str *operators, ev_error *err) EV_CHECKED;

/* The genome with one macro at another value; its default is stored by leaving the macro out.
 * `keep_edits`: also edits that name instructions of the old base module. */
ev_status draw_with_macro(const ir_genome *genome, const task_macro *macro, int64_t value,
                          bool keep_edits, ir_genome **out, ev_error *err) EV_CHECKED;

#endif
