/* Recipe: what a child is to be made of, and the limits that it is held against. The search fills
 * one (search_draw.c), a worker makes the child of it (draw.c); the same recipe gives the same
 * child. */
#ifndef TUNER_SEARCH_RECIPE_H
#define TUNER_SEARCH_RECIPE_H

#include "fitness/gates/score.h"
#include "tuner/search/tabu.h"

#include <stdbool.h>
#include <stdint.h>

#define RECIPE_STEPS 8        /* at most */
#define RECIPE_ALTERNATIVES 4 /* arms of a step, at most */
#define RECIPE_STOCK 8        /* genomes, at most */
#define RECIPE_LINEAGE 48     /* bytes */

/* A step takes the first of its arms (tuner/search/draw.h) that has a place. */
typedef struct recipe_step {
    unsigned arms[RECIPE_ALTERNATIVES];
    unsigned count;
} recipe_step;

/* Names the child's stream of random numbers. */
typedef struct recipe_stream {
    uint64_t seed, child;
    uint32_t island, generation;
} recipe_stream;

/* The filter's limits on the small cases. A child that takes longer than its parent's limit and is
 * no more accurate than `error` is stopped. Times in modelled ns; 0: no limit. */
typedef struct recipe_reach {
    double sketch, built; /* of the fast code, and of what LLVM builds; over all small cases */
    double first;         /* of the fast code, over the first small case alone */
    double error;         /* relative L2 */
} recipe_reach;

/* Limits on the fast code's time at full shape. Times in modelled ns; 0: no limit. */
typedef struct recipe_estimate {
    bool times;  /* whether the fast code is timed at full shape at all */
    double near; /* a child as near as that on the small cases is neither timed nor built */
    double due;  /* a child that takes as long at full shape is not built */
} recipe_estimate;

typedef struct recipe {
    /* Genomes, each a reference of the recipe's own. Two parents: the child is crossed of them. */
    const ir_genome *parents[2];
    unsigned parent_count;
    bool crossed; /* the one parent was made by crossover */
    recipe_step steps[RECIPE_STEPS];
    unsigned step_count;
    const ir_genome *stock[RECIPE_STOCK]; /* genomes of one edit; references of the recipe's own */
    unsigned stock_count;
    uint64_t tabu[TABU_MOST]; /* marks of edits that are not drawn (ir_edit_mark) */
    unsigned tabu_count;
    bool by_heat; /* edits are drawn by the site weights of their places */
    recipe_stream stream;
    recipe_reach reach;
    score_sketch sketch; /* what follows where the fast code is wrong; SKETCH_NOTHING: it is not
                            made */
    recipe_estimate estimate;
    char lineage[RECIPE_LINEAGE]; /* the parents' numbers, "3,17", for the records; not for workers
                                   */
    bool failed;                  /* memory ran out while it was filled: of no use */
} recipe;

/* Gives the references back. */
void recipe_free(recipe *r);

#endif
