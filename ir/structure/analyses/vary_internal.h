/* Vary: which values differ among the members of a group of threads. Private to ir/structure.
 *
 * The group is given by its seeds, the special registers that differ within it: `tid` for the
 * threads of a block (divergence analysis), `ctaid.y` for blocks that one block replaces. A value
 * varies if an operand varies, if it is a PHI behind a varying branch, or if it is loaded from
 * memory of the group's own (a shared or local array) after a store that varies. A load from
 * elsewhere varies with its address alone: blocks may not wait for each other's stores.
 *
 * A store that does not vary, to an array whose contents vary elsewhere, goes to each member's own
 * copy, unless a varying store to the same place follows before any member reads. Guessed: a
 * varying store that dominates the loads is to all places that were written, where arguments and
 * indices alone decide whether the loads run. */
#ifndef IR_STRUCTURE_ANALYSES_VARY_INTERNAL_H
#define IR_STRUCTURE_ANALYSES_VARY_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

/* A shared array or an alloca. */
typedef struct ir_object {
    LLVMValueRef root;
    bool is_shared;
    bool varies; /* its contents differ among the members */
} ir_object;

typedef struct ir_vary {
    const ir_flow *flow;
    const bool *is_seed;     /* by instruction */
    bool shared_is_one;      /* the members share one block's shared arrays, so these do not vary */
    bool *varies;            /* by instruction: its value differs, or its effect */
    bool *differs_in_memory; /* by load or store of a varying object: it is in the part of the
                                code where the contents differ */
    ir_region *regions;      /* around varying branches */
    uint32_t region_count, region_capacity;
    uint32_t *region_of; /* by block: the region that holds all of the block; IR_NONE: none */
    uint32_t *branch_of; /* by block: the region that holds its branch */
    ir_object *objects;
    uint32_t object_count;
    uint32_t *accesses;    /* the instructions with an address, in order */
    ir_object **object_of; /* by access: the object that the address points into; NULL: none */
    uint32_t access_count;
} ir_vary;

/* is_seed [flow->insn_count] is borrowed. EV_INFRA: out of memory. */
ev_status ir_vary_make(const ir_flow *flow, const bool *is_seed, bool shared_is_one, ir_vary *out,
                       ev_error *err) EV_CHECKED;
/* Whether told conditions alone (plain_internal.h) decide if one block leads to another. */
bool ir_is_led_by_told(const ir_flow *flow, uint32_t from, uint32_t to);
bool ir_varies(const ir_vary *vary, LLVMValueRef value);
/* The object that a pointer points into, through address arithmetic and casts; NULL: none, or
 * several. */
const ir_object *ir_vary_object(const ir_vary *vary, LLVMValueRef pointer);

/* ---- what an instruction does -----------------------------------------------------------------
 */

typedef enum ir_deed {
    IR_DEED_PURE,    /* its value depends on its operands alone */
    IR_DEED_LOAD,    /* reads memory */
    IR_DEED_STORE,   /* writes memory; once more does no harm */
    IR_DEED_COUNTED, /* an atomic, or a volatile access: as often as the source says */
    IR_DEED_WARP,    /* exchanges values within the warp */
    IR_DEED_BARRIER, /* a barrier or a fence */
    IR_DEED_MARKER,  /* lifetime, assume: no code */
    IR_DEED_UNKNOWN
} ir_deed;

ir_deed ir_deed_of(LLVMValueRef insn);
/* Whether it divides whole numbers, or takes a remainder. */
bool ir_divides(LLVMValueRef value);
/* Whether it may run where the source does not run it: it computes alone, and neither fails, as a
 * division by zero, nor runs for ever, as a function with a loop may. */
bool ir_may_run_anywhere(LLVMValueRef insn);
/* Whether it does more than to compute and to read: it stores, waits or exchanges values, or is not
 * known. */
bool ir_has_effect(LLVMValueRef insn);
/* Whether an instruction's value may differ among the threads of a block by itself: it reads a
 * special register that is not the block's, exchanges in the warp, is an atomic, or is not known.
 */
bool ir_differs_in_block(LLVMValueRef insn);
/* Whether it is a barrier that gives a value: __syncthreads_or and its kin. */
bool ir_is_block_vote(LLVMValueRef insn);
/* Whether the threads of a warp exchange values by it, or wait for each other: threads that come
 * into another warp cannot. */
bool ir_binds_warp(LLVMValueRef insn);
/* Whether a shuffle, or a wait of the warp, is one of all lanes, also of those that end early. */
bool ir_names_all_lanes(LLVMValueRef insn);
/* Whether its value depends on which threads take part: a vote of the warp or the block. */
bool ir_counts_threads(LLVMValueRef insn);
/* EV_BAD: threads wait in a loop for what others do: it is left by the value of a volatile or
 * atomic access, or of assembly, or by what such a value decides. A compare-and-swap with a value
 * that the loop computes tries again and waits for nobody. */
ev_status ir_check_waits(const ir_flow *flow, ev_error *err) EV_CHECKED;
/* The pointer of a load, store, atomic or memset, the target of a copy, of a matrix that a warp
 * stores; else NULL. */
LLVMValueRef ir_pointer_of(LLVMValueRef insn);
/* What a memcpy or memmove reads from; else NULL. */
LLVMValueRef ir_source_of(LLVMValueRef insn);
/* What a call calls: the name of a function, or "assembly". */
const char *ir_called(LLVMValueRef insn);
/* EV_BAD: a thread may end in the loop or before it, by assembly that ends or leaves or by a
 * function that is not known. loop NULL: anywhere. */
ev_status ir_check_stays(const ir_flow *flow, const ir_loop *loop, ev_error *err) EV_CHECKED;
/* Whether it is assembly that names a special register. */
bool ir_names_register(LLVMValueRef value);
/* Whether it is a call that reads a special register. */
bool ir_reads_any_register(LLVMValueRef value);
/* Whether it is a call that reads the special register, such as "ctaid.x". */
bool ir_reads_register(LLVMValueRef value, const char *name);
/* Whether it is a call that reads the thread's place in its block, along any axis. */
bool ir_reads_place(LLVMValueRef value);
/* Whether it reads the thread's place in its warp, or the warp's in its block: %laneid,
 * %lanemask_lt and its kin, %warpid. Edits that move threads to other warps refuse these. */
bool ir_reads_warp_place(LLVMValueRef value);

/* ---- memory of the block or the thread (near.c) -----------------------------------------------
 */

/* Whether a value is an address computed from another one: a step to an element, a cast. */
bool ir_is_step(LLVMValueRef value);
bool ir_is_shared_array(LLVMValueRef global);
/* Whether an address, and all that is computed from it, is for loads and as the source of copies
 * alone. */
bool ir_is_only_read(LLVMValueRef address);
/* EV_BAD: the address of a shared or local array goes elsewhere, so accesses may be to the array
 * that do not say so; or a struct that is passed by value, which each thread has of its own, is
 * written to. */
ev_status ir_check_near(const ir_flow *flow, ev_error *err) EV_CHECKED;

/* ---- what is written where (writes.c) ---------------------------------------------------------
 */

/* Whether a load reads from an argument that no write of the kernel goes to, if arguments are
 * apart: a pointer that was loaded, chosen among several or made of a number may lead to each, and
 * so may assembly and calls that are not declared to write nothing. They may not where the argument
 * is `__restrict__` and nothing hands its address on. *base: what it reads from, an argument or
 * not.
 */
bool ir_reads_only(const ir_flow *flow, LLVMValueRef load, LLVMValueRef *base);
/* Whether the kernel may write to where a pointer leads: to an argument, or a pointer in a struct
 * that is passed by value. Other pointers may lead anywhere; constants do not change. */
bool ir_may_change(const ir_flow *flow, LLVMValueRef pointer);
/* EV_BAD: the kernel loads from an argument and writes to another one that may be one buffer, and
 * not at the same place in each turn of a loop, so that turns may depend on each other. Or it
 * copies from memory that it may write to. */
ev_status ir_check_overlap(const ir_flow *flow, ev_error *err) EV_CHECKED;
/* Whether a base is a place of its own: an argument, a variable, an array of the thread, or a
 * pointer in a struct that is passed by value. Two of them are apart, or the task says so. A
 * pointer that was loaded, chosen or made of a number may lead to each. */
bool ir_is_own_base(LLVMValueRef base);
/* EV_BAD: a member without work would load from a place, divide or leave a loop by a value that is
 * not its own: of an atomic, which such a member does not make, or of memory that the kernel writes
 * to. */
ev_status ir_check_idle(const ir_vary *vary, ev_error *err) EV_CHECKED;

#endif
