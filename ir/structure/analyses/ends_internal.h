/* Ends: whether the first thread of a block tells what the others do. Private to ir/structure.
 *
 * A comparison does if its sides grow with the thread's place, or shrink: in `i < n`, the first
 * thread has the least i. Factors that are the same for all threads are taken to be positive. */
#ifndef IR_STRUCTURE_ANALYSES_ENDS_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_ENDS_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

/* Whether a condition has the value at all threads of a block if the first one has it. is_place: by
 * instruction: it reads the thread's place in its block, along any axis. */
bool ir_first_decides(const ir_flow *flow, const bool *is_place, LLVMValueRef condition,
                      bool value);

#endif
