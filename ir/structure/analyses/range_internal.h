/* Range: the least and the greatest number that a value can be. Private to ir/structure. */
#ifndef IR_STRUCTURE_ANALYSES_RANGE_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_RANGE_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

typedef struct ir_range {
    int64_t least, most; /* both included */
} ir_range;

/* What ranges follow from. */
typedef struct ir_ranges {
    const ir_flow *flow;
    const uint32_t *block; /* threads in x, y and z; 0: not known */
} ir_ranges;

/* The range of a value as the block of code `place` sees it; false: it has none that is known. */
bool ir_range_of(const ir_ranges *r, LLVMValueRef value, uint32_t place, ir_range *out);
/* The constant on the right of a binary operation; 0: none from 1 to 2^31 - 1. */
int64_t ir_right_of(LLVMValueRef value);

#endif
