/* Version: a kernel gets a second copy, and a test at its entry chooses one of them. Private to
 * ir/structure.
 *
 * The test has the same value in all threads of a block, so a block runs one copy: barriers stay as
 * uniform as they were, and both copies use the same shared and local arrays. In the new copy the
 * caller may use that the test holds. The other copy stays what it was, so whatever the arguments
 * are, the kernel computes what it computed.
 *
 * A kernel that has copies already gets one more of its latest copy, in which the new test holds
 * besides the earlier ones. A second value of one argument gets a copy of its own, beside that of
 * the first value. */
#ifndef IR_STRUCTURE_VERSION_INTERNAL_H
#define IR_STRUCTURE_VERSION_INTERNAL_H

#include "ir/structure/structure_internal.h"

typedef struct ir_version {
    ir_structure *s;
    ir_flow flow;              /* the kernel before the edit */
    uint64_t argument;         /* whose value is tested, counted from 1; 0: another test */
    uint64_t choices;          /* between copies, so far */
    uint32_t root;             /* where the part begins that gets a copy */
    bool *holds;               /* by block: it is copied */
    LLVMBuilderRef builder;    /* stands at the end of the test's block */
    LLVMBasicBlockRef test;    /* ends with the choice between the copies */
    LLVMBasicBlockRef *blocks; /* by block: its copy */
    LLVMValueRef *copies;      /* by instruction: its copy; NULL: not copied */
    LLVMValueRef from, to;     /* the copy uses `to` in place of `from`; NULL: nothing */
} ir_version;

/* Finds what to copy, and makes the test's block. `argument`: the one whose value is tested,
 * counted from 1; 0: another test. EV_BAD: the kernel cannot get another copy. The
 * caller frees *out with ir_version_close, whatever is returned. */
ev_status ir_version_open(ir_structure *s, uint32_t argument, ir_version *out,
                          ev_error *err) EV_CHECKED;
/* Writes the copy, and the choice of it where `test` (an i1, written with the builder) holds. */
ev_status ir_version_write(ir_version *v, LLVMValueRef test, ev_error *err) EV_CHECKED;
void ir_version_close(ir_version *v);

#endif
