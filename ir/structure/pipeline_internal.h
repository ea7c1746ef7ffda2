/* Pipeline: what both forms of `pipeline-loads` stand on. Private to pipeline*.c. */
#ifndef IR_STRUCTURE_PIPELINE_INTERNAL_H
#define IR_STRUCTURE_PIPELINE_INTERNAL_H

#include "ir/structure/structure_internal.h"

enum { PIPING_LOADS = 64, PIPING_DEEPEST = 32 };

/* One load that runs ahead. */
typedef struct early_load {
    LLVMValueRef load;
    LLVMValueRef before; /* the first turn's, before the loop */
    LLVMValueRef phi;    /* this turn's */
    LLVMValueRef next;   /* the next turn's */
} early_load;

typedef struct piping {
    ir_structure *s;
    ir_flow flow;
    const ir_loop *loop;
    LLVMBuilderRef builder;
    early_load loads[PIPING_LOADS];
    uint32_t count;
    bool takes_chains; /* loads whose address was loaded in the loop run ahead as well */
    LLVMValueRef more; /* whether there is a next turn */
} piping;

/* The turn that an expression is written for. AHEAD: the next one, or this one if it is the last.
 */
typedef enum turn { FIRST, NEXT, AHEAD } turn;

bool piping_holds(const piping *p, LLVMValueRef value); /* an instruction of the loop */
LLVMBasicBlockRef piping_header(const piping *p);
const early_load *piping_find(const piping *p, LLVMValueRef value);
/* Whether a value of the loop can be computed ahead: from the header's PHIs that count, from what
 * comes from outside, and from loads that run ahead. */
bool piping_knows(const piping *p, LLVMValueRef value);
/* Writes a value of the loop as it is in that turn, where the builder stands. */
LLVMValueRef piping_write(const piping *p, LLVMValueRef value, turn at);
/* Whether the loop goes on, in the first or in the next turn. */
LLVMValueRef piping_goes_on(const piping *p, turn at);
LLVMValueRef piping_clone_load(const piping *p, LLVMValueRef load, LLVMValueRef pointer);

/* The form `guarded`; EV_BAD, with the reason: it is refused. */
ev_status piping_guarded(piping *p, ev_error *err) EV_CHECKED;

#endif
