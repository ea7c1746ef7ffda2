/* Dominance on a plain graph, for the sources of ir only; free of LLVM.
 *
 * Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm", 2001: immediate dominators by
 * intersecting along the reverse postorder until nothing changes; then the dominator tree is
 * numbered once, so that a query is two comparisons. */
#ifndef IR_DOMINANCE_H
#define IR_DOMINANCE_H

#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

/* Node 0 is the root. The successors of n are succ[first[n]] .. succ[first[n + 1] - 1]. */
typedef struct ir_graph {
    uint32_t count;
    const uint32_t *first;
    const uint32_t *succ;
} ir_graph;

#define IR_NONE UINT32_MAX

typedef struct ir_dominance {
    uint32_t count;
    uint32_t *idom;  /* IR_NONE: the root, or not reachable from it */
    uint32_t *enter; /* preorder number in the tree; 0: not reachable */
    uint32_t *leave; /* number at which a depth-first walk leaves the node */
} ir_dominance;

/* Arrays live in `arena`. False: out of memory. */
bool ir_dominance_make(const ir_graph *graph, ev_arena *arena, ir_dominance *out);
bool ir_dominance_reaches(const ir_dominance *dominance, uint32_t node);
/* True if every path from the root to `b` contains `a`, or a == b. Both must be reachable. */
bool ir_dominance_over(const ir_dominance *dominance, uint32_t a, uint32_t b);

#endif
