/* Recipe: the parents, steps and limits of a child. The search fills a recipe (search_draw.c), and
 * a worker makes the child from it (draw.c). Equal recipes give equal children. A recipe owns
 * references to its genomes; recipe_free releases them. */
#ifndef TUNER_SEARCH_RECIPE_H
#define TUNER_SEARCH_RECIPE_H

#include "fitness/gates/score.h"
#include "tuner/search/tabu.h"
#include "tuner/search/wrong.h"

#include <stdbool.h>
#include <stdint.h>

#define RECIPE_STEPS 8        /* at most */
#define RECIPE_ALTERNATIVES 4 /* arms of a step, at most */
#define RECIPE_STOCK 8        /* genomes, at most */
#define RECIPE_LINEAGE 48     /* bytes */

/* A step. The worker takes the first arm (tuner/search/draw.h) that has a place. */
typedef struct recipe_step {
    unsigned arms[RECIPE_ALTERNATIVES];
    unsigned count;
} recipe_step;

/* How the search made the one parent, beside the steps. */
typedef enum recipe_made {
    RECIPE_TAKEN,   /* not at all: the parent is a variant, or there are two */
    RECIPE_CROSSED, /* by crossover */
    RECIPE_REDUCED, /* by leaving out an edit */
    RECIPE_TUNED,   /* of `origin`, by another option, form or order of its edits, or a knob */
    RECIPE_SET,     /* of `origin`, by other values of its macros */
    RECIPE_JOINED,  /* of `origin`, by edits of another variant */
    RECIPE_MADE_COUNT
} recipe_made;

/* The seed of the child's random numbers. */
typedef struct recipe_stream {
    uint64_t seed, child;
    uint32_t island, generation;
} recipe_stream;

/* The filter's limits on the small cases. A child is stopped if its time exceeds the limit and its
 * error is at least `error`. Times in modelled ns; 0: no limit. */
typedef struct recipe_reach {
    double sketch, built; /* limits for the fast code and for LLVM's code, over all small cases */
    double first;         /* limit for the fast code over the first small case */
    double error;         /* relative L2 */
} recipe_reach;

/* Limits on the fast code's time at full shape. Times in modelled ns; 0: no limit. */
typedef struct recipe_estimate {
    bool times;  /* the fast code is timed at full shape */
    double near; /* a child whose time on the small cases is near this one is neither timed nor
                    built */
    double due;  /* a child that takes this time or longer at full shape is not built */
} recipe_estimate;

typedef struct recipe {
    /* Owned references. With two parents, the worker crosses them. */
    const ir_genome *parents[2];
    unsigned parent_count;
    recipe_made made;
    const ir_genome *origin[1]; /* owned reference: the skeleton of which the parent was made */
    unsigned origin_count;
    recipe_step steps[RECIPE_STEPS];
    unsigned step_count;
    const ir_genome *stock[RECIPE_STOCK]; /* genomes of one edit; owned references */
    unsigned stock_count;
    uint64_t tabu[TABU_MOST]; /* marks of edits that are not drawn (ir_edit_mark) */
    unsigned tabu_count;
    uint64_t wrong[WRONG_MOST]; /* marks of settings that are not drawn (wrong_mark) */
    unsigned wrong_count;
    bool by_heat; /* edits are drawn by the site weights */
    /* Structural edits that are not drawn as followers: bit `kind` - IR_EDIT_LOCAL_COUNT. */
    uint64_t without;
    recipe_stream stream;
    recipe_reach reach;
    score_sketch sketch; /* consequence of wrong fast code; SKETCH_NOTHING: no fast code is made */
    recipe_estimate estimate;
    char lineage[RECIPE_LINEAGE]; /* the parents' numbers, "3,17", for the records; not for workers
                                   */
    bool failed;                  /* memory ran out while the recipe was filled, and it must
                                     not be used */
} recipe;

/* Releases the references. */
void recipe_free(recipe *r);

#endif
