/* Atomics: what the edits share that let a thread's atomics wait until all threads of its block
 * meet. Private to ir/structure.
 *
 * An atomic may wait if its value is not used, and if nothing that the kernel does between the
 * atomic and the meeting may see what the atomic writes. Guessed: no two arguments overlap. */
#ifndef IR_STRUCTURE_ATOMICS_INTERNAL_H
#define IR_STRUCTURE_ATOMICS_INTERNAL_H

#include "ir/structure/analyses/vary_internal.h"
#include "ir/structure/structure_internal.h"
#include "ir/structure/sums_internal.h"

enum { IR_MOST_THREADS = 1024 }; /* of a block (CUDA C++ Programming Guide, compute capabilities) */

/* A kernel whose atomics an edit moves. */
typedef struct ir_atomics {
    ir_structure *s;
    ir_flow flow;
    ir_vary vary;        /* what differs among the threads of a block */
    uint32_t threads;    /* of a block */
    ir_share share;      /* its builder is the edit's */
    LLVMValueRef thread; /* its number in the block, an i32; set by ir_atomics_number_threads */
} ir_atomics;

/* Reads the kernel of `s`; `out` is zero but for the builder of its share. EV_BAD, with the reason:
 * the number of a block's threads is not known. */
ev_status ir_atomics_open(ir_structure *s, ir_atomics *out, ev_error *err) EV_CHECKED;

/* How an atomic combines; IR_SUM_NONE: in another way than a sum, greatest or least value. */
ir_sum_kind ir_atomics_kind(LLVMValueRef atomic);

/* The first block of code from `block` on that all threads come to, outside of all loops; IR_NONE:
 * the threads end in different places. */
uint32_t ir_atomics_meet_at(const ir_atomics *a, uint32_t block);

/* EV_BAD, with the reason: the atomic, by its instruction's number, combines in another way, has a
 * use, is volatile, or stands behind a fence, or the kernel may wait for what the atomic writes. */
ev_status ir_atomics_check(const ir_atomics *a, uint32_t atomic, ev_error *err) EV_CHECKED;

/* EV_BAD, with the reason: the atomic cannot wait until the end of the block `at`, to which all
 * ways from the atomic lead, or what the atomic writes is accessed later. */
ev_status ir_atomics_check_wait(const ir_atomics *a, uint32_t atomic, uint32_t at,
                                ev_error *err) EV_CHECKED;

/* Computes each thread's number in its block, where the builder stands. */
void ir_atomics_number_threads(ir_atomics *a);

#endif
