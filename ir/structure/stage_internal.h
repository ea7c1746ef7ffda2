/* Stage: what is staged through shared memory, and how. Private to ir/structure.
 *
 * A load is described by the *dims* that its address depends on: the thread's places in the block,
 * the turn within a tile of the staged loop, and turns of loops inside. The values that the threads
 * of a block load in one tile are a *box*, the product of these dims. Two dims that move the
 * address by the same distance (a window that slides along with the threads) are one axis of the
 * box, whose coordinate is the sum of the two. */
#ifndef IR_STRUCTURE_STAGE_INTERNAL_H
#define IR_STRUCTURE_STAGE_INTERNAL_H

#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"

enum {
    IR_DIM_TURN = 3, /* 0 to 2: the thread's place along x, y and z */
    IR_DIM_INNER,    /* and those behind it: turns of loops inside */
    IR_MOST_DIMS = 8,
    IR_MOST_STAGED = 64,
    IR_NO_DIMS = 1 << 30 /* in place of a mask: the value is not made of dims alone */
};

/* One dim. */
typedef struct ir_dim {
    uint32_t size;    /* values that it takes, from 0 on */
    LLVMValueRef phi; /* of a turn: the induction variable */
} ir_dim;

/* One axis of a box: a dim, or two whose sum is the coordinate. */
typedef struct ir_axis {
    uint32_t dim, also; /* also: IR_NONE, or a dim that moves the address as the first does */
    uint32_t size;
} ir_axis;

/* The values that one or several loads of an argument take in a tile, side by side in one shared
 * array: element e of load m is at e * members + m. */
typedef struct ir_box {
    LLVMValueRef argument;
    LLVMTypeRef type;
    ir_axis axes[IR_MOST_DIMS]; /* the first is the one along which addresses are adjacent */
    uint32_t axis_count;
    uint32_t elements; /* product of the sizes */
    uint32_t pitch;    /* elements from one row to the next, a row being along the first axis */
    uint32_t members;
    LLVMValueRef storage;
} ir_box;

/* A condition on the way to a load, and the value with which the way goes on. */
typedef struct ir_path_test {
    LLVMValueRef condition;
    bool is;
} ir_path_test;

enum { IR_MOST_TESTS_OF_PATH = 8 };

/* The conditions under which a load runs in a turn. */
typedef struct ir_path {
    ir_path_test tests[IR_MOST_TESTS_OF_PATH];
    uint32_t count;
} ir_path;

typedef struct ir_staged {
    LLVMValueRef load;
    uint32_t box, member;
    ir_path path;
} ir_staged;

typedef struct ir_staging {
    ir_structure *s;
    ir_flow flow;
    ir_vary vary; /* among the threads of a block */
    const ir_loop *loop;
    LLVMBuilderRef builder;
    uint32_t tile;    /* turns of the loop in a tile */
    uint32_t threads; /* of the block */
    bool is_padded;
    ir_dim dims[IR_MOST_DIMS];
    uint32_t dim_count;
    uint32_t *masks; /* by instruction: the dims that it depends on, plus 1; 0: not known yet */
    bool *is_place;  /* by instruction: it reads the place of a thread in its block */
    ir_staged loads[IR_MOST_STAGED];
    uint32_t load_count;
    ir_box boxes[IR_MOST_STAGED];
    uint32_t box_count;
} ir_staging;

/* Whether the value can be evaluated anew for other coordinates, and is the same as now for the
 * same ones: the mask of the dims that it depends on, or IR_NO_DIMS. */
uint32_t ir_stage_mask(ir_staging *g, LLVMValueRef value);
bool ir_stage_is_in_loop(const ir_staging *g, LLVMValueRef value);
/* How far a value moves from one value of a dim to the next: factor times `by` (NULL: 1). */
typedef struct ir_distance {
    int64_t factor;
    LLVMValueRef by;
} ir_distance;

/* False: not by the same distance everywhere, or not known. */
bool ir_stage_distance(ir_staging *g, LLVMValueRef value, uint32_t dim, ir_distance *out);
/* Whether a condition of known dims depends on two of them by their sum alone. */
bool ir_stage_is_balanced(ir_staging *g, LLVMValueRef condition, uint32_t a, uint32_t b);
/* The conditions under which a block of the loop runs once in a turn, and once in each turn of the
 * loops inside that hold the block; these make constant turns. False: it runs otherwise. */
bool ir_stage_path(const ir_staging *g, uint32_t block, ir_path *out);
/* Finds what can be staged, and refuses what cannot. */
ev_status ir_stage_plan(ir_staging *g, const ir_edit *edit, ev_error *err) EV_CHECKED;
/* Writes the loop over tiles. */
ev_status ir_stage_write(ir_staging *g, ev_error *err) EV_CHECKED;

/* The dim that reads of a register or a counter of a loop are; IR_NONE: none. */
uint32_t ir_stage_dim_of(const ir_staging *g, LLVMValueRef value);
/* Whether a value is a register that is the same for all threads of a block. */
bool ir_stage_is_of_block(LLVMValueRef value);
/* The constant that a PHI of the staged loop's header grows by in each turn; 0: it does not. */
int64_t ir_stage_step(const ir_staging *g, LLVMValueRef phi);

#endif
