/* What the .c files of ir/ share: the base, the module being edited, and the rules of the edits.
 * The one header with LLVM types; the sources of ir alone may include it. */
#ifndef IR_INTERNAL_H
#define IR_INTERNAL_H

#include "base/arena.h"
#include "ir/dominance.h"
#include "ir/edit.h"
#include "ir/ir.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

struct ir_base {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
    LLVMTargetMachineRef light_machine; /* generates code at the default level, not the highest */
    LLVMPassBuilderOptionsRef options;
    char *entry;
    int sm;
    bool optimised;      /* as its genomes */
    LLVMValueRef *insns; /* by number */
    uint32_t *lines;     /* by number */
    uint32_t count;
    int64_t *constants; /* launch constants, sorted, each once */
    size_t constant_count;
    uint32_t block[3];
    ev_sha256 sha;
    char *complaint; /* LLVM's first error since it was last cleared; malloc'ed */
};

/* Forgets what LLVM complained about; the rest of a call may then ask. */
void ir_base_clear_complaint(ir_base *base);
/* SHA-256 of the module's bitcode, which is quicker to write than its text; the module has no names
 * and no debug info. */
ev_sha256 ir_module_sha256(LLVMModuleRef module);

/* EV_BAD when the module holds what is known to make LLVM 19's NVPTX back end abort the process. */
ev_status ir_refuse_fatal(LLVMModuleRef module, ev_error *err) EV_CHECKED;
/* Appends the PTX of the base's entry in `module`, which stays as it is: the direct emitter's.
 * EV_BAD, naming the instruction: there is something that it has no way for. */
ev_status ir_emit_direct(const ir_base *base, LLVMModuleRef module, ev_str *out,
                         ev_error *err) EV_CHECKED;
int ir_base_ptx_version(const ir_base *base); /* 78 is 7.8 */
/* The two parts of a pass pipeline (ir/pipelines.def), as LLVMRunPasses takes them; NULL: none. */
typedef struct ir_passes {
    const char *first, *rest;
} ir_passes;

/* Of the pipeline that the genome's knob names; of the default without one, and none where the base
 * is optimised already. */
ir_passes ir_passes_of(const ir_genome *genome);
/* EV_BAD, with LLVM's words: a pass failed. Not to be run on a module that `first` was not. */
ev_status ir_passes_first(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                          ev_error *err) EV_CHECKED;
ev_status ir_passes_rest(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                         ev_error *err) EV_CHECKED;
/* All functions that are defined, but one; NULL: none is left out. */
void ir_make_internal(LLVMModuleRef module, LLVMValueRef but);
/* To be called before a module is disposed of that default<O1> to <O3> have been through and that
 * no code was generated of: it is empty afterwards. LLVM 19's NVPTX keeps what nvvm.annotations say
 * of a module by the addresses of it and its functions; these pipelines ask, and only the end of
 * code generation forgets. What is left of a module that is gone is taken for the next one's at its
 * address: a kernel for none, its launch bounds for another's. */
void ir_passes_forget(LLVMTargetMachineRef machine, LLVMModuleRef module);
bool ir_passes_ask(const ir_genome *genome); /* whether its pipeline is such a one */
/* The machine that generates code after that pipeline. */
LLVMTargetMachineRef ir_machine_of(const ir_base *base, const ir_genome *genome);

/* ---- the module being edited ------------------------------------------------------------------
 */

typedef struct ir_node {
    LLVMValueRef value; /* NULL: erased */
    bool added;
    bool doomed;  /* goes when its uses are repaired */
    bool suspect; /* its operands are to be looked at when uses are repaired */
    uint64_t tag;
    uint32_t number; /* of the base, or part */
    uint32_t block;
    uint32_t order; /* place in the module, for comparing within a block */
} ir_node;

/* Pointer to number: open addressing, never shrinks. Nothing depends on its order. */
typedef struct ir_slot {
    const void *key; /* NULL: free */
    uint32_t value;
} ir_slot;

typedef struct ir_map {
    ir_slot *slots;
    uint32_t capacity; /* a power of two */
    uint32_t count;
} ir_map;

/* Room for `count` keys. False: out of memory. */
bool ir_map_reserve(ir_map *map, ev_arena *arena, uint32_t count);
void ir_map_put(ir_map *map, const void *key, uint32_t value); /* the caller has reserved room */
uint32_t ir_map_get(const ir_map *map, const void *key);       /* IR_NONE: not there */

typedef struct ir_block {
    LLVMBasicBlockRef block;
    LLVMValueRef function;
    uint32_t first, last; /* places in the sequence, last exclusive */
} ir_block;

typedef struct ir_work {
    const ir_base *base;
    ev_arena *arena;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    ir_node *nodes;
    uint32_t count, capacity;
    ir_map map;         /* instructions to nodes */
    uint32_t *sequence; /* nodes in the order of the module */
    uint32_t sequence_count, sequence_capacity;
    uint32_t *spare_sequence; /* room for the next one */
    uint32_t spare_capacity;
    ir_block *blocks; /* block b is node b + 1 of the graph, whose root goes to every entry block */
    uint32_t block_count, block_capacity;
    ir_map block_map;
    ir_graph graph;
    ir_dominance dominance;
    bool cfg_changed;  /* an edit's apply sets it */
    bool reordered;    /* it added, moved or erased an instruction */
    bool dooms;        /* it doomed one */
    uint32_t *touched; /* nodes: by the edit being applied */
    uint32_t touched_count, touched_capacity;
    uint32_t *places; /* of suspects in the sequence */
    uint32_t place_count, place_capacity;
    uint64_t tag;      /* of the edit being applied; 0 while it is being drawn */
    uint32_t parts;    /* inserted by it so far */
    ir_value *scratch; /* what ir_values_in_reach lists */
    uint32_t scratch_capacity;
} ir_work;

/* Clones the base's module and numbers the clone alike. */
ev_status ir_work_open(const ir_base *base, ir_work **out, ev_error *err) EV_CHECKED;
void ir_work_close(ir_work *work);
LLVMModuleRef ir_work_take_module(ir_work *work); /* the caller's now; the work is only closed */

/* Applies one edit with its repairs. With `rng`, repairs are drawn and added to the edit; without,
 * the stored ones are used, and where a use needs one that is not stored or not valid here, the
 * nearest dominating value of the type (else zero) is taken. A failing apply changes nothing. */
ev_status ir_work_apply(ir_work *work, ir_edit *edit, ev_pcg *rng, ev_error *err) EV_CHECKED;
ev_status ir_work_replay(ir_work *work, const ir_edit *edit, ev_error *err) EV_CHECKED;
/* What an edit inserted while it was drawn gets its tag, once it has one. */
void ir_work_seal(ir_work *work, uint64_t tag);

uint32_t ir_work_id(const ir_work *work, LLVMValueRef value); /* IR_NONE: no instruction of it */
uint32_t ir_work_block_of(const ir_work *work, LLVMBasicBlockRef block);
ir_name ir_work_name(const ir_work *work, uint32_t id);
uint32_t ir_work_find(const ir_work *work, const ir_name *name); /* IR_NONE: not there */
uint32_t ir_work_line(const ir_work *work, uint32_t id);         /* source line, 0: none */
/* The same, with an EV_BAD that says which of the edit's names is not there. */
ev_status ir_work_need(const ir_work *work, const ir_name *name, const char *what, uint32_t *out,
                       ev_error *err) EV_CHECKED;

/* Registers an instruction that the edit inserted as its next part. */
void ir_work_added(ir_work *work, LLVMValueRef value);
void ir_work_doom(ir_work *work, uint32_t id);
void ir_work_erase(ir_work *work, uint32_t id); /* at once: nothing uses it */
void ir_work_move_before(ir_work *work, uint32_t id, uint32_t place);
/* Who uses the one now uses the other. */
void ir_work_replace_uses(ir_work *work, LLVMValueRef from, LLVMValueRef to);
/* Of an edit that adds, dooms or moves: what it does to instructions in no other way than by these
 * functions, it has to tell here, or nothing repairs their uses and operands. */
void ir_work_touch(ir_work *work, uint32_t id);

/* Whether instruction `def` may be used as operand `operand` of `user`. */
bool ir_work_dominates(const ir_work *work, uint32_t def, uint32_t user, uint32_t operand);
/* Whether block a dominates block b (indices of blocks). */
bool ir_work_block_dominates(const ir_work *work, uint32_t a, uint32_t b);

/* Whether a use may take any value of its type (no immediate, callee, label or metadata). */
bool ir_operand_is_free(LLVMValueRef user, uint32_t operand);
uint32_t ir_operand_count(LLVMValueRef user);

/* ---- values -----------------------------------------------------------------------------------
 */

typedef struct ir_values {
    ir_value *items;
    uint32_t count;
} ir_values;

/* Instructions and arguments of `type` that operand `operand` of `user` could take, in order. The
 * list holds until the next call. */
ir_values ir_values_in_reach(ir_work *work, uint32_t user, uint32_t operand, LLVMTypeRef type);
/* A value for a use: mostly one in reach, else a constant; kind NONE where there is neither. Never
 * `except`. */
ir_value ir_value_draw(ir_work *work, uint32_t user, uint32_t operand, LLVMValueRef except,
                       ev_pcg *rng);
/* One of {0, 1, -1, 2^k, launch constants} for `type`; kind NONE for types without such. */
ir_value ir_value_draw_constant(const ir_work *work, LLVMTypeRef type, ev_pcg *rng);
/* The LLVM value for a use, or NULL: not there, not dominating or of another type. */
LLVMValueRef ir_value_resolve(const ir_work *work, const ir_value *value, uint32_t user,
                              uint32_t operand);
/* The constant of `type` that an INT or REAL names; NULL for a type that has none. */
LLVMValueRef ir_value_constant(const ir_value *value, LLVMTypeRef type);

/* ---- rules ------------------------------------------------------------------------------------
 */

/* A place where an edit can be drawn: an instruction and, where one has several places, which. */
typedef struct ir_site {
    uint32_t id;
    uint32_t index;
} ir_site;

typedef struct ir_sites {
    ev_arena *arena;
    ir_site *items;
    uint32_t count, capacity;
} ir_sites;

void ir_sites_add(ir_sites *sites, uint32_t id, uint32_t index);

/* How one kind of edit works. `sites` lists the places in order; `draw` fills in the edit for one
 * (false: no way there); `apply` alters the module, or fails and leaves it as it was; `describe`
 * says it in words ("drops the barrier at line 31"), before it is applied. */
typedef struct ir_rule {
    void (*sites)(const ir_work *work, ir_sites *sites);
    bool (*draw)(ir_work *work, ir_site site, ev_pcg *rng, ir_edit *edit);
    ev_status (*apply)(ir_work *work, const ir_edit *edit, ev_error *err);
    void (*describe)(const ir_work *work, const ir_edit *edit, ev_str *out);
} ir_rule;

const ir_rule *ir_rule_of(ir_edit_kind kind);

#define IR_EDIT(id, name, family, extent, fresh, needs, describes)                                 \
    extern const ir_rule ir_rule_##id;
#include "ir/edits.def"
#undef IR_EDIT

/* Sets operand `operand` of `at` to `value`: the apply of all edits that replace an operand. */
ev_status ir_apply_operand(ir_work *work, const ir_edit *edit, ev_error *err) EV_CHECKED;

void ir_describe_operand(const ir_work *work, const ir_edit *edit, ev_str *out);

/* Whether a min-blocks or max-registers could be applied; others never. */
bool ir_knob_fits(const ir_work *work, const ir_edit *edit);

/* ---- help for rules ---------------------------------------------------------------------------
 */

bool ir_insn_is_movable(LLVMValueRef insn); /* no terminator, PHI or token */
bool ir_insn_is_pure(LLVMValueRef insn);    /* no memory, no trap: may run anywhere */
bool ir_type_is_value(LLVMTypeRef type);    /* can be an operand that an edit draws */
/* The name of the function that a call calls, "" for none. */
const char *ir_call_name(LLVMValueRef insn);
/* "the fmul at line 12", or "the fmul i31" where it has no line. */
void ir_describe_insn(const ir_work *work, const ir_name *name, ev_str *out);
void ir_describe_value(const ir_work *work, const ir_value *value, ev_str *out);
const char *ir_opcode_name(LLVMOpcode opcode);
LLVMValueRef ir_intrinsic_call(ir_work *work, const char *name, LLVMTypeRef *overloads,
                               size_t overload_count, LLVMValueRef *args, size_t count);

#endif
