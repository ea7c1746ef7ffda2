/* Flat: the number of a thread in its grid along an axis, block index times threads of a block plus
 * thread index, for edits that give threads other places. Private to ir/structure. */
#ifndef IR_STRUCTURE_FLAT_INTERNAL_H
#define IR_STRUCTURE_FLAT_INTERNAL_H

#include "ir/structure/analyses/affine_internal.h"
#include "ir/structure/structure_internal.h"

/* The value without the extensions around it. */
LLVMValueRef ir_flat_without_casts(LLVMValueRef value);
/* Whether a value is that of a special register along an axis ("tid", "ntid", "ctaid", "nctaid"),
 * perhaps in more bits. */
bool ir_flat_reads(LLVMValueRef value, const char *what, uint32_t axis);
/* How often a form has the number of the thread in the grid along an axis whose blocks have `size`
 * threads; 0: the form does not grow with that number, or with the block or thread alone. */
int64_t ir_flat_factor(const ir_affine *form, uint32_t axis, uint32_t size);
/* Whether a value is the number of the thread in the grid along an axis whose blocks have `size`
 * threads. */
bool ir_flat_is(LLVMValueRef value, uint32_t axis, uint32_t size);
/* Whether the kernel's own test keeps threads away that its launch does not have: a thread
 * stays only if its number is below something that has no place of a thread or block in it, and the
 * grid is not capped. A guess: that test and grid mean the same number. Without memory: false. */
bool ir_flat_keeps_others_away(const ir_structure *s, const ir_flow *flow, uint32_t axis,
                               uint32_t size);
/* Writes that number where the builder stands, for blocks of `threads`, in 32 or 64 bits. In 32
 * bits it wraps along x where a grid has more threads than that; the caller says whether it may. */
LLVMValueRef ir_flat_write(const ir_structure *s, LLVMBuilderRef builder, uint32_t axis,
                           int64_t threads, LLVMTypeRef type, bool may_wrap);
/* Writes the threads of the launch along an axis as an i64. NULL: no argument tells them. */
LLVMValueRef ir_flat_extent(const ir_structure *s, LLVMBuilderRef builder, uint32_t axis);
/* EV_BAD: the threads of a block work together, by a barrier, a warp function or shared memory, or
 * an effect is not known. Else they may change places. */
ev_status ir_flat_check_alone(const ir_structure *s, const ir_flow *flow, ev_error *err) EV_CHECKED;

/* A new first block. It takes the local arrays over; the caller writes what is computed there, and
 * ends it. */
typedef struct ir_entry {
    LLVMBasicBlockRef body, out; /* the first block of before; a block that ends the thread */
} ir_entry;

/* The builder stands at the new block's end afterwards. */
ir_entry ir_flat_open(const ir_structure *s, const ir_flow *flow, LLVMBuilderRef builder);

#endif
