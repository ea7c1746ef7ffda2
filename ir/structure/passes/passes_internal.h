/* Passes: what brings a function into early form beside LLVM's own passes. Private to ir/structure.
 */
#ifndef IR_STRUCTURE_PASSES_INTERNAL_H
#define IR_STRUCTURE_PASSES_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

/* Moves the bound of each loop's test in front of the loop, where no turn changes the bound. A
 * function with blocks that lead nowhere stays as it is. */
ev_status ir_structure_hoist_bounds(LLVMValueRef function, ev_error *err) EV_CHECKED;

/* Merges equal loads, and writes addresses that are a constant apart as such. *changed: whether it
 * changed anything. EV_BAD: as ir_flow_make. */
ev_status ir_merge_loads(LLVMValueRef function, ev_arena *arena, bool *changed,
                         ev_error *err) EV_CHECKED;

#endif
