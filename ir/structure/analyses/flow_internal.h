/* Flow: the control flow of one function, its dominators, its loops and its single-entry regions.
 * Private to ir/structure.
 *
 * Blocks are numbered in reverse postorder from the entry, so a number depends on the code alone,
 * not on the order of the blocks in memory. Instructions are numbered block by block. All arrays
 * live in the arena and describe the function as it was when ir_flow_make read it. */
#ifndef IR_STRUCTURE_ANALYSES_FLOW_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_FLOW_INTERNAL_H

#include "ir/internal.h"

/* The address space of shared memory (NVPTX back end's usage guide, "Address Spaces"). */
/* Threads of a warp. */
enum { IR_WARP = 32 };

/* A natural loop. Loops are listed with outer loops first; siblings stand in the order of their
 * headers. */
typedef struct ir_loop {
    uint32_t header;
    uint32_t latch;     /* the block with the branch back; IR_NONE: there are several */
    uint32_t preheader; /* the only block outside that leads to the header; IR_NONE: none */
    uint32_t exit;      /* the only block outside that the loop leads to; IR_NONE: several */
    uint32_t parent;    /* the loop around it; IR_NONE: none */
    uint32_t place;     /* its place among the loops of its parent */
    uint32_t depth;     /* 0: outermost */
    const bool *holds;  /* by block */
    /* The induction variable: a PHI of the header that grows by a constant each turn and decides
     * when the loop ends. NULL: there is none such. */
    LLVMValueRef induction;
    LLVMValueRef start; /* its first value */
    int64_t step;
    LLVMValueRef bound;     /* the value that it is compared with, computed before the loop */
    LLVMIntPredicate stays; /* the loop goes on while `induction stays bound` */
    bool compares_next;     /* the value of the next turn is compared */
    int64_t trips;          /* turns of the body, if constant; else -1 */
} ir_loop;

typedef struct ir_flow {
    ev_arena *arena;
    LLVMValueRef function;
    LLVMBasicBlockRef *blocks;
    uint32_t count;
    uint32_t *first; /* first instruction of each block; [count + 1] */
    LLVMValueRef *insns;
    uint32_t *home; /* block of each instruction */
    uint32_t insn_count;
    ir_map block_map, insn_map;
    ir_graph next, back; /* node b is block b; edges to successors and to predecessors */
    ir_dominance over;   /* dominators */
    ir_dominance under;  /* postdominators; node 0 is the exit, node b + 1 is block b */
    bool *reaches; /* [a * count + b]: a path of at least one edge leads from block a to block b */
    ir_loop *loops;
    uint32_t loop_count;
} ir_flow;

/* EV_BAD: a block from which no path leads to the function's end. */
ev_status ir_flow_make(LLVMValueRef function, ev_arena *arena, ir_flow *out,
                       ev_error *err) EV_CHECKED;

uint32_t ir_flow_block(const ir_flow *flow, LLVMBasicBlockRef block);
uint32_t ir_flow_insn(const ir_flow *flow, LLVMValueRef value); /* IR_NONE: no instruction of it */
LLVMValueRef ir_flow_last(const ir_flow *flow, uint32_t block); /* the terminator */
/* The value that a PHI takes when the block before is `block`; NULL: the PHI has no such edge. */
LLVMValueRef ir_flow_incoming(const ir_flow *flow, LLVMValueRef phi, uint32_t block);
/* The nearest block through which every path from `block` to the end goes; IR_NONE: the end itself.
 */
uint32_t ir_flow_joins_at(const ir_flow *flow, uint32_t block);
/* True if an execution may run instruction `from` and later instruction `to`. */
bool ir_flow_leads(const ir_flow *flow, uint32_t from, uint32_t to);

/* A single-entry, single-exit region around a branch. */
typedef struct ir_region {
    uint32_t entry;
    bool whole;    /* the entry is a loop's header and belongs to the region with its instructions;
                      else only its branch does */
    uint32_t exit; /* the block behind the region; IR_NONE: the function's end */
    bool *holds;   /* by block; the entry is in it */
} ir_region;

/* The smallest region around the branch at the end of `block`. */
ev_status ir_region_around(const ir_flow *flow, uint32_t block, ir_region *out,
                           ev_error *err) EV_CHECKED;

/* The loop of an anchor such as "0.1", the second loop in the first outermost one; IR_NONE: none.
 */
uint32_t ir_loop_find(const ir_flow *flow, const char *path);
/* EV_BAD, with the reason: the loop does not count from a start to a bound that is tested at its
 * top, or is left in more than one place. */
ev_status ir_loop_check_counts(const ir_flow *flow, const ir_loop *loop, ev_error *err) EV_CHECKED;
/* Whether the loop is left at its header alone, to a block that nothing else leads to. */
bool ir_loop_is_left_once(const ir_flow *flow, const ir_loop *loop);
/* Whether the loop is left at its header by a comparison of one of its PHIs with a value from
 * outside; sets `bound`, `stays` and `compares_next` of *loop. */
bool ir_loop_is_tested_at_top(const ir_flow *flow, LLVMValueRef phi, ir_loop *loop);
/* Appends the path of a loop. */
void ir_loop_path(const ir_flow *flow, uint32_t loop, ev_str *out);
/* The innermost loop that holds a block; IR_NONE: none. */
uint32_t ir_loop_of(const ir_flow *flow, uint32_t block);

/* The predicate that says the same with its sides exchanged. */
LLVMIntPredicate ir_predicate_swapped(LLVMIntPredicate p);
/* The predicate that holds where another one does not. */
LLVMIntPredicate ir_predicate_inverse(LLVMIntPredicate p);

/* Fills in flow->loops; a part of ir_flow_make. */
bool ir_loops_make(ir_flow *flow);

#endif
