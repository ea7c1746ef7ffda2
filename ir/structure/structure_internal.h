/* Structure: the structural edits of a genome's prefix, on early IR. Private to ir/structure;
 * ir/internal.h declares what base.c calls. docs/structure.md explains the design. */
#ifndef IR_STRUCTURE_INTERNAL_H
#define IR_STRUCTURE_INTERNAL_H

#include "ir/structure/analyses/flow_internal.h"

/* What the structural edits of one base act on. */
typedef struct ir_structure {
    ir_base *base;
    LLVMValueRef function;
    ev_arena *arena;
    const ir_source *source;
    const launch_plan *plan; /* as the edits so far left it; NULL: not known */
} ir_structure;

/* Writes the call of an intrinsic without overloads where the builder stands. */
LLVMValueRef ir_structure_call(const ir_structure *s, LLVMBuilderRef builder, const char *intrinsic,
                               LLVMValueRef *arguments, unsigned count);
/* The same of a special register along an axis: "tid", "ntid", "ctaid" or "nctaid". */
LLVMValueRef ir_structure_read(const ir_structure *s, LLVMBuilderRef builder, const char *which,
                               uint32_t axis);

/* Makes a PHI anew, with the edge from the block `before` replaced by one from `after`. */
void ir_structure_renew_phi(LLVMBuilderRef builder, LLVMValueRef phi, LLVMBasicBlockRef before,
                            LLVMBasicBlockRef after);

/* The launch of the kernel; NULL: it is not known, or several launches of the kernel differ in grid
 * or block. */
const launch_rule *ir_structure_rule(const ir_structure *s);

/* Bytes of static shared memory that a block may have (CUDA C++ Programming Guide, compute
 * capabilities); more has to be sized at the launch. */
enum { IR_MOST_SHARED = 48 * 1024 };

/* Bytes of the module's shared arrays that are used, but `without`, which may be NULL. */
uint64_t ir_shared_bytes(LLVMModuleRef module, LLVMValueRef without);

/* Runs passes of LLVM's, as `opt -passes` names them. EV_INFRA: a pass failed. */
ev_status ir_early_run(const ir_base *base, LLVMModuleRef module, const char *passes,
                       ev_error *err) EV_CHECKED;
/* Brings a function into early form: normalises what clang or an edit left. */
ev_status ir_early_normalise(const ir_base *base, LLVMModuleRef module, ev_error *err) EV_CHECKED;

/* Loops inside the loop at `path` that are known to run at most one turn become straight code, such
 * as a copy of as many elements as the block has threads. EV_BAD: as ir_flow_make. */
ev_status ir_unroll_single_turns(const ir_structure *s, const char *path, ev_error *err) EV_CHECKED;

/* Applies one structural edit of any kind, and verifies the module. EV_BAD, with the reason: it is
 * refused; the module is then of no use. */
ev_status ir_structure_apply(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

/* Rewrites the kernel such that its tests of coordinates at the beginning send home whole blocks
 * only. A thread that would have ended takes over the place 0 in the dimensions that its failed
 * tests depend on, so what it loads is valid, and its effects are skipped. Guessed: if a thread of
 * a block passes a test, then so does the one whose places in these dimensions are 0. Tests from
 * the first on that reads memory stay as they are, so threads may still end there. EV_BAD: the
 * kernel cannot be written anew. */
ev_status ir_predicate(ir_structure *s, ev_error *err) EV_CHECKED;

/* Instructions of a kernel of `insns` after an edit, at most. `in_loop`: those of the loop that the
 * edit names; 0: it names none. */
uint64_t ir_structure_grown(const ir_edit *edit, uint64_t insns, uint64_t in_loop);
/* Instructions in a loop. */
uint64_t ir_structure_loop_insns(const ir_flow *flow, const ir_loop *loop);

/* The edits; EV_BAD, with the reason: it is refused. */
ev_status ir_structure_coarsen(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_split(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_team(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_unroll_turns(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_jam_turns(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_pipeline(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_relabel(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_sink(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_raise(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_specialise(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_group(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;
ev_status ir_structure_peel(ir_structure *s, ir_form form, ev_error *err) EV_CHECKED;

ev_status ir_structure_unroll_loop(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

/* `pad` and `swizzle`. */
ev_status ir_structure_pitch(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_stage(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

ev_status ir_structure_resize(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

/* In ir/structure/atomics. */
ev_status ir_structure_join_atomics(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;
ev_status ir_structure_stage_atomics(ir_structure *s, const ir_edit *edit,
                                     ev_error *err) EV_CHECKED;

ev_status ir_structure_delinearize(ir_structure *s, const ir_edit *edit, ev_error *err) EV_CHECKED;

/* By what the kernel divides its index along an axis, as expressions of the launch plan, each once:
 * arguments in their order, then what is computed from arguments, as "(width + 1) / 2"; returns how
 * many. `size`: threads of a block along the axis. */
#define IR_DIVISORS 8
uint32_t ir_structure_divisors(const ir_flow *flow, const ir_source *source, uint32_t axis,
                               uint32_t size, char out[IR_DIVISORS][IR_ANCHOR_PATH]);

/* Whether `specialise` takes an argument: a whole number whose value makes the kernel cheaper. */
bool ir_structure_specialises(const ir_flow *flow, LLVMValueRef argument);

/* Writes the value of an expression of the launch plan as an i64 where the builder stands, from the
 * kernel's arguments and the macros. NULL: it uses a name that is neither, or a real number. */
LLVMValueRef ir_extent_write(const ir_structure *s, LLVMBuilderRef builder, const char *text);

#endif
