/* Jam: writes a function anew so that one thread does the work of several members. Private to
 * ir/structure.
 *
 * Each instruction that differs among the members is cloned once for each member, side by side; an
 * instruction that does not differ is written once and shared. A region whose branch differs is
 * cloned as a whole, once for each member, one after the other. Barriers stay one. */
#ifndef IR_STRUCTURE_JAM_INTERNAL_H
#define IR_STRUCTURE_JAM_INTERNAL_H

#include "ir/structure/analyses/vary_internal.h"

#define IR_MOST_MEMBERS 16

typedef struct ir_jam {
    const ir_flow *flow;
    const ir_vary *vary;
    LLVMBuilderRef builder;
    uint32_t members;
    /* Whether a member has work, an i1; NULL: always. A member without work computes what another
     * one does, and its effects are skipped. */
    LLVMValueRef alive[IR_MOST_MEMBERS];
    /* The new value of each instruction, for each member: [insn * members + member]. The caller
     * sets those of the seeds and of other instructions that it replaces; NULL: jam writes it. */
    LLVMValueRef *map;
    LLVMValueRef *own;              /* each object's storage, [object * members + member] */
    LLVMBasicBlockRef *begin, *end; /* [block * members + member] */
    LLVMBasicBlockRef *joins;       /* [region * members + member] */
    struct ir_jam_phi *phis;
    uint32_t phi_count, phi_capacity;
    struct ir_jam_join *merged;
    uint32_t merged_count, merged_capacity;
    uint32_t *queue; /* effects that wait for their guard */
    uint32_t queue_count;
} ir_jam;

/* EV_BAD, with the reason: the function cannot be jammed. */
ev_status ir_jam_check(const ir_vary *vary, ev_error *err) EV_CHECKED;
/* `builder` is borrowed and stays the caller's. */
ev_status ir_jam_begin(const ir_vary *vary, uint32_t members, LLVMBuilderRef builder, ir_jam *out,
                       ev_error *err) EV_CHECKED;
/* Writes storage for each member where the builder stands: allocas, and new shared arrays. */
void ir_jam_allocate(ir_jam *jam);
/* Writes the function's body and a branch to it where the builder stands, and removes the old
 * blocks. The builder's block and what it was built after are kept: `keep` lists them, the new
 * entry block first. */
ev_status ir_jam_write(ir_jam *jam, const LLVMBasicBlockRef *keep, size_t keep_count,
                       ev_error *err) EV_CHECKED;
/* Clones the value's expression for one member where the builder stands: `map` gives what is
 * replaced. NULL: the value is not computed from arguments, constants and replaced values by pure
 * instructions alone. */
LLVMValueRef ir_jam_expression(ir_jam *jam, LLVMValueRef value, uint32_t member);

#endif
