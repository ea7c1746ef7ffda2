/* Plain: what a guess may rest on. Private to ir/structure.
 *
 * Cases differ in arguments and indices, so a guess about numbers that are computed of these meets
 * a case where it is wrong. What hides behind a choice by data, a load or an equality may be shown
 * by no case: nothing is guessed of that. */
#ifndef IR_STRUCTURE_ANALYSES_PLAIN_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_PLAIN_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

/* Whether a value is a field of a struct that is passed by value and only read. */
bool ir_is_field(LLVMValueRef value);

/* Where the counters of loops may be, which run from a plain number to another one. */
typedef enum ir_counters {
    IR_COUNTERS_NONE,
    IR_COUNTERS_SUMS, /* in sums and products alone */
    IR_COUNTERS_ALL
} ir_counters;

/* Whether a value is plain: computed of arguments, indices and numbers alone, by sums, products,
 * quotients by a small number and choices of the less of two. */
bool ir_is_plain(const ir_flow *flow, LLVMValueRef value, ir_counters counters);
/* Whether an instruction of a kind is among those that a value is computed by, not through PHIs. */
bool ir_has_part(LLVMValueRef value, bool (*is)(LLVMValueRef insn));
/* By how much a product or a left shift by a number multiplies, at most 2^32; 1: it is neither. */
uint64_t ir_multiplier(LLVMValueRef value);
/* Whether a call gives the less or the greater of two whole numbers. */
bool ir_orders_two(LLVMValueRef call);
/* Whether a value is told: computed of indices, counters and numbers alone, in any way; a condition
 * may compare the order of plain numbers, too. in_order: the value's order beside another number is
 * in question, so arguments may be in it, but in no remainder and no bits. */
bool ir_is_told(const ir_flow *flow, LLVMValueRef value, bool in_order);

#endif
