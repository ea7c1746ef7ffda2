/* Draw: makes a child's genome from a recipe (tuner/search/recipe.h). The parents are crossed, then
 * for each step the first arm (edit or operator) that has a place is applied. The child depends on
 * the recipe alone. Genomes and children that are returned belong to the caller. */
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
#define OPERATOR(id, name, meaning) OPERATOR_##id,
#include "tuner/search/operators.def"
#undef OPERATOR
    OPERATOR_COUNT
} operator_kind;

/* An arm: the number of an edit (below IR_EDIT_COUNT), or IR_EDIT_COUNT plus an operator. */
#define ARM_COUNT ((unsigned)IR_EDIT_COUNT + (unsigned)OPERATOR_COUNT)
#define ARM_OF(operator_id) ((unsigned)IR_EDIT_COUNT + (unsigned)OPERATOR_##operator_id)

const char *arm_name(unsigned arm);
const char *arm_meaning(unsigned arm);
bool arm_find(const char *name, unsigned *out);

/* Gives base modules to draw_child. `get`: the base of a genome's start and macros, borrowed until
 * the next call. */
typedef struct draw_bases {
    void *context;
    ev_status (*get)(void *context, const ir_genome *genome, const ir_base **out, ev_error *err);
    /* The site weights of the base, for recipes with by_heat; borrowed, too. */
    ev_status (*heat)(void *context, const ir_genome *genome, const double **out, ev_error *err);
    /* A child of `parent` with one more structural edit, as ir_structure_draw. */
    ev_status (*structure)(void *context, const ir_genome *parent, ir_edit_kind kind,
                           const ir_hints *hints, ev_pcg *rng, ir_genome **out, ev_error *err);
    /* A child without the structural edits of its parents that lost their place, as
     * ir_structure_mend. NULL: such a child fails when it is built. */
    ev_status (*mend)(void *context, const ir_genome *child, const ir_genome *const *parents,
                      size_t count, ir_genome **out, ev_error *err);
} draw_bases;

/* Pairs of linked edits: a child that has one of a pair gets the other as well. */
typedef struct draw_links {
    const edit_pair *pairs; /* borrowed */
    size_t count;
} draw_links;

/* Crosses two genomes. After some tries, the child may still equal a parent. NULL: out of memory.
 */
ir_genome *draw_crossed(const ir_genome *first, const ir_genome *second, const draw_links *needs,
                        ev_pcg *rng);

/* A child, and the edited module that its build can reuse. */
typedef struct drawn_child {
    ir_genome *genome;
    ir_edited *edited; /* NULL: the build applies the genome's edits */
} drawn_child;

void drawn_child_free(drawn_child *child);

/* Draws a child. `operators` receives the names of the arms taken, separated by commas. EV_BAD: no
 * step has a place. */
ev_status draw_child(const task *t, const draw_bases *bases, const recipe *r, drawn_child *out,
                     ev_str *operators, ev_error *err) EV_CHECKED;

/* The value of a macro in a genome: its default where the genome does not set it. */
int64_t draw_macro_value(const ir_genome *genome, const task_macro *macro);
/* Copies the genome with one macro at another value. A default value is stored by leaving the macro
 * out. `keep_edits`: keeps edits that refer to instructions of the old base module. */
ev_status draw_with_macro(const ir_genome *genome, const task_macro *macro, int64_t value,
                          bool keep_edits, ir_genome **out, ev_error *err) EV_CHECKED;

#endif
