/* The base, the module being edited, and the rules of the edits. Private to ir/; the only header
 * with LLVM types. */
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
    bool asked;          /* the module went through default<O3> (ir_passes_forget) */
    LLVMValueRef *insns; /* by number */
    uint32_t *lines;     /* by number */
    uint32_t count;
    int64_t *constants; /* launch constants, sorted, each once */
    size_t constant_count;
    uint32_t *aligns; /* bytes that every launch grants of an argument's address; 0: it stands for
                         several buffers, of which none can be asked for more */
    size_t align_count;
    uint32_t block[3];
    ev_sha256 sha;
    char *complaint; /* LLVM's first error since the last clear; malloc'ed */
};

/* The attribute of parameters that launches may pass one buffer for (ir_source.overlapping). */
#define IR_OVERLAPS "evoke-overlaps"

/* Fills in the base's module: early IR (ir/structure), with the source's structural prefix applied.
 * EV_BAD: as ir_base_load. */
ev_status ir_early_reach(ir_base *base, const ir_source *source, ev_error *err) EV_CHECKED;
/* Reads the base's module as the source has it, with all definitions but the entry's internal. */
ev_status ir_base_read(ir_base *base, const ir_source *source, ev_error *err) EV_CHECKED;
/* The oldest PTX version that LLVM 19 needs for a target; 0: not one of LLVM's. */
int ir_ptx_version(int sm);
/* Whether two spellings of an instance differ in blanks alone. */
bool ir_same_instance(const char *a, size_t a_bytes, const char *b, size_t b_bytes);
/* Finds the kernel source->entry: by its name in the module, else by its name in the source, which
 * a C++ compiler mangles; then the function gets the name source->entry. Of several instances of a
 * template, source->instance is taken. EV_BAD: there is none, or more than one (names all). */
ev_status ir_entry_find(LLVMModuleRef module, const ir_source *source, LLVMValueRef *out,
                        ev_error *err) EV_CHECKED;
/* Keeps the base's module in the source's store as that of the first `edits` edits, and reads it
 * again. */
ev_status ir_base_settle(ir_base *base, const ir_source *source, size_t edits,
                         ev_error *err) EV_CHECKED;
/* Reads the base's module from bitcode, into a context of its own. */
ev_status ir_base_reread(ir_base *base, const char *bitcode, size_t bytes,
                         ev_error *err) EV_CHECKED;
/* As ir_base_load, but the module stays early IR, with the source's structural prefix applied. No
 * instruction has a number. */
ev_status ir_early_load(const ir_source *source, ir_base **out, ev_error *err) EV_CHECKED;
/* The number of a kernel's annotation, such as "maxntidx"; 0: it has none. */
uint32_t ir_annotation(LLVMModuleRef module, const char *entry, const char *name);
void ir_annotate(LLVMModuleRef module, const char *entry, const char *name, uint32_t value);
/* Clears the complaint, so that later code sees only new ones. */
void ir_base_clear_complaint(ir_base *base);
/* SHA-256 of the module's bitcode, which LLVM writes faster than text. The module has no names and
 * no debug info. */
ev_sha256 ir_module_sha256(LLVMModuleRef module);

/* EV_BAD: the module has a construct that makes LLVM 19's NVPTX back end abort the process. */
ev_status ir_refuse_fatal(LLVMModuleRef module, ev_error *err) EV_CHECKED;
/* Appends PTX of the base's entry in `module` by the direct emitter, and leaves the module
 * unchanged. EV_BAD: an instruction that the emitter does not support, with its name. */
ev_status ir_emit_direct(const ir_base *base, LLVMModuleRef module, ev_str *out,
                         ev_error *err) EV_CHECKED;
int ir_base_ptx_version(const ir_base *base); /* 78 is 7.8 */
/* The two parts of a pass pipeline (ir/pipelines.def), as LLVMRunPasses takes them; NULL: none. */
typedef struct ir_passes {
    const char *first, *rest;
} ir_passes;

/* The passes of the genome's pipeline, or of the default one. None if the base is optimised. */
ir_passes ir_passes_of(const ir_genome *genome);
/* Run the two parts, the first before the rest. EV_BAD, with LLVM's message: a pass failed. */
ev_status ir_passes_first(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                          ev_error *err) EV_CHECKED;
ev_status ir_passes_rest(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                         ev_error *err) EV_CHECKED;
/* Runs the genome's pipeline on a module that is no variant, and appends its PTX. EV_BAD, with
 * LLVM's message. */
ev_status ir_emit_aside(const ir_base *base, const ir_genome *genome, LLVMModuleRef module,
                        ev_str *ptx, ev_error *err) EV_CHECKED;
/* Makes all defined functions internal, except the `count` in `but`. */
void ir_make_internal(LLVMModuleRef module, const LLVMValueRef *but, size_t count);

/* ---- variables that the host fills (symbols.c) ---- */

/* Keeps LLVM from assuming the contents of variables that the host may fill. Before any pass. */
void ir_symbols_open(const ir_base *base, const ir_source *source);
/* Empties a module that went through default<O1> to <O3> without code generation. Call before the
 * module is disposed of. LLVM 19's NVPTX caches nvvm.annotations by the addresses of the module and
 * its functions. These pipelines fill the cache, and only the end of code generation clears it.
 * Otherwise the next module at that address would get stale annotations: a kernel would count as no
 * kernel, or have another's launch bounds. */
void ir_passes_forget(LLVMTargetMachineRef machine, LLVMModuleRef module);
bool ir_passes_ask(const ir_genome *genome); /* true if its pipeline fills that cache */
/* The target machine that generates code after the genome's pipeline. */
LLVMTargetMachineRef ir_machine_of(const ir_base *base, const ir_genome *genome);

/* ---- the module being edited ------------------------------------------------------------------
 */

typedef struct ir_node {
    LLVMValueRef value; /* NULL: erased */
    bool added;
    bool doomed;  /* erased after its uses are repaired */
    bool suspect; /* its operands must be checked when uses are repaired */
    uint64_t tag;
    uint32_t number; /* of the base, or part */
    uint32_t block;
    uint32_t order; /* place in the module, to compare instructions of a block */
} ir_node;

/* Map from pointer to number, by open addressing. It never shrinks. Nothing depends on its order.
 */
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
uint32_t ir_map_get(const ir_map *map, const void *key);       /* IR_NONE: not found */

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
    ir_block *blocks; /* block b is node b + 1 of the graph; the root leads to every entry block */
    uint32_t block_count, block_capacity;
    ir_map block_map;
    ir_graph graph;
    ir_dominance dominance;
    bool cfg_changed;  /* an edit's apply sets it */
    bool reordered;    /* the edit added, moved or erased an instruction */
    bool dooms;        /* the edit doomed an instruction */
    bool repaired;     /* a use lost its value and took another */
    uint32_t *touched; /* nodes touched by the edit being applied */
    uint32_t touched_count, touched_capacity;
    uint32_t *places; /* of suspects in the sequence */
    uint32_t place_count, place_capacity;
    uint32_t bold;     /* number of bold edits applied so far */
    uint64_t tag;      /* of the edit being applied; 0 while an edit is drawn */
    uint32_t parts;    /* instructions inserted by the edit so far */
    ir_value *scratch; /* the list of ir_values_in_reach */
    uint32_t scratch_capacity;
} ir_work;

/* Clones the base's module, with the same numbers. */
ev_status ir_work_open(const ir_base *base, ir_work **out, ev_error *err) EV_CHECKED;
void ir_work_close(ir_work *work);
LLVMModuleRef
ir_work_take_module(ir_work *work); /* moves it to the caller, who then closes `work` */

/* Applies one edit with its repairs. With `rng`, repairs are drawn and added to the edit. Without,
 * stored repairs are used; a use without a valid stored repair takes the nearest dominating value
 * of the type, else zero. A failing apply changes nothing. */
ev_status ir_work_apply(ir_work *work, ir_edit *edit, ev_pcg *rng, ev_error *err) EV_CHECKED;
ev_status ir_work_replay(ir_work *work, const ir_edit *edit, ev_error *err) EV_CHECKED;
/* Gives the instructions inserted while an edit was drawn the edit's tag. */
void ir_work_seal(ir_work *work, uint64_t tag);

uint32_t ir_work_id(const ir_work *work, LLVMValueRef value); /* IR_NONE: not in the module */
uint32_t ir_work_block_of(const ir_work *work, LLVMBasicBlockRef block);
ir_name ir_work_name(const ir_work *work, uint32_t id);
uint32_t ir_work_find(const ir_work *work, const ir_name *name); /* IR_NONE: not found */
uint32_t ir_work_line(const ir_work *work, uint32_t id);         /* source line, 0: none */
/* As ir_work_find; EV_BAD: not found, with the name of the edit's key `what`. */
ev_status ir_work_need(const ir_work *work, const ir_name *name, const char *what, uint32_t *out,
                       ev_error *err) EV_CHECKED;

/* Registers an inserted instruction as the edit's next part. */
void ir_work_added(ir_work *work, LLVMValueRef value);
void ir_work_doom(ir_work *work, uint32_t id);
void ir_work_erase(ir_work *work, uint32_t id); /* at once; it has no uses */
void ir_work_move_before(ir_work *work, uint32_t id, uint32_t place);
/* Replaces all uses of `from` by `to`. */
void ir_work_replace_uses(ir_work *work, LLVMValueRef from, LLVMValueRef to);
/* Marks an instruction for repair of its uses and operands. An edit that adds, dooms or moves must
 * call this for every instruction that it changes other than through the functions above. */
void ir_work_touch(ir_work *work, uint32_t id);

/* True if instruction `def` may be operand `operand` of `user`. */
bool ir_work_dominates(const ir_work *work, uint32_t def, uint32_t user, uint32_t operand);
/* True if block a dominates block b (indices of blocks). */
bool ir_work_block_dominates(const ir_work *work, uint32_t a, uint32_t b);

/* True if a use may take any value of its type (no immediate, callee, label or metadata). */
bool ir_operand_is_free(LLVMValueRef user, uint32_t operand);
uint32_t ir_operand_count(LLVMValueRef user);

/* ---- values -----------------------------------------------------------------------------------
 */

typedef struct ir_values {
    ir_value *items;
    uint32_t count;
} ir_values;

/* Instructions and arguments of `type` that could be operand `operand` of `user`, in order. The
 * list is valid until the next call. */
ir_values ir_values_in_reach(ir_work *work, uint32_t user, uint32_t operand, LLVMTypeRef type);
/* Draws a value for a use, but never `except`: mostly a value in reach, sometimes a constant; kind
 * NONE if there is neither. */
ir_value ir_value_draw(ir_work *work, uint32_t user, uint32_t operand, LLVMValueRef except,
                       ev_pcg *rng);
/* Draws one of {0, 1, -1, 2^k, launch constants} for `type`; kind NONE for other types. */
ir_value ir_value_draw_constant(const ir_work *work, LLVMTypeRef type, ev_pcg *rng);
/* The LLVM value for a use. NULL: not found, not dominating, or of another type. */
LLVMValueRef ir_value_resolve(const ir_work *work, const ir_value *value, uint32_t user,
                              uint32_t operand);
/* The LLVM constant of an INT or REAL; NULL: `type` has no such constants. */
LLVMValueRef ir_value_constant(const ir_value *value, LLVMTypeRef type);

/* ---- rules ------------------------------------------------------------------------------------
 */

/* A place of an edit: an instruction, and the index among its places if it has several. */
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

/* The functions of one kind of edit. `sites` lists the places in order. `draw` fills in the edit
 * for one place; false: not possible there. `apply` changes the module, or fails and leaves it
 * unchanged. `describe`, before the edit is applied, appends its effect in words ("drops the
 * barrier at line 31"). */
typedef struct ir_rule {
    void (*sites)(const ir_work *work, ir_sites *sites);
    bool (*draw)(ir_work *work, ir_site site, ev_pcg *rng, ir_edit *edit);
    ev_status (*apply)(ir_work *work, const ir_edit *edit, ev_error *err);
    void (*describe)(const ir_work *work, const ir_edit *edit, ev_str *out);
} ir_rule;

const ir_rule *ir_rule_of(ir_edit_kind kind);

/* Whether an edit, before it is applied, would be bold there: it changes the meaning of the program
 * other than by rounding, or rests on an assertion that nothing proves (ir/edits.def). Repairs of
 * uses make any edit bold, which ir_work_apply adds. */
bool ir_is_bold_at(const ir_work *work, const ir_edit *edit);
/* Whether nothing in the module can write to the memory at this address while the kernel runs. */
bool ir_is_never_written(const ir_work *work, LLVMValueRef address);
bool ir_may_write(LLVMValueRef insn); /* writes memory, or orders accesses of other threads */
/* Of the fast-math options: asserts that values are not NaN or infinite. */
bool ir_math_is_bold(const ir_edit *edit);
/* The alignment in bytes that is proved of an address, if its variable gets what the edit needs
 * (ir_raise_alignment): 1 to 16. */
unsigned ir_known_alignment(const ir_work *work, LLVMValueRef address);
bool ir_align_is_bold(const ir_work *work, const ir_edit *edit);
bool ir_widen_is_bold(const ir_work *work, const ir_edit *edit);
/* Of branch-to-select: a side loads. */
bool ir_branch_is_bold(const ir_work *work, const ir_edit *edit);
/* Of select-to-branch: the arm is a load, and crosses a write. */
bool ir_arm_is_bold(const ir_work *work, const ir_edit *edit);

#define IR_EDIT(id, name, family, extent, meaning, needs, describes, because)                      \
    extern const ir_rule ir_rule_##id;
#include "ir/edits.def"
#undef IR_EDIT

/* Sets operand `operand` of `at` to `value`; `apply` of all edits that replace an operand. */
ev_status ir_apply_operand(ir_work *work, const ir_edit *edit, ev_error *err) EV_CHECKED;

void ir_describe_operand(const ir_work *work, const ir_edit *edit, ev_str *out);

/* True if a min-blocks or max-registers knob can be applied; false for other kinds. */
bool ir_knob_fits(const ir_work *work, const ir_edit *edit);

/* ---- asserted facts (asserts.c) */
/* After the last edit: replaces each fact that an edit of the genome asserted by a check that
 * traps.
 */
void ir_assert_checks(ir_work *work, const ir_genome *genome);

/* ---- help for rules ---------------------------------------------------------------------------
 */

bool ir_insn_is_movable(LLVMValueRef insn); /* no terminator, PHI or token */
/* Whether an intrinsic reads a register whose value changes while a thread runs: a clock, or which
 * processor the thread is on. */
bool ir_changes_by_itself(const char *intrinsic);
bool ir_insn_is_pure(LLVMValueRef insn); /* no memory access, no trap */
bool ir_type_is_value(LLVMTypeRef type); /* edits may draw operands of this type */
/* The name of a call's function; "" if it is no call, or indirect. */
const char *ir_call_name(LLVMValueRef insn);
enum { IR_SHARED_SPACE = 3 }; /* of addresses, in NVPTX */
/* Whether a value is a parameter with the attribute, such as "noalias" or "byval". */
bool ir_param_has(LLVMValueRef value, const char *attribute);
/* What a call may do to memory, as it or its function declares: two bits for each of three kinds of
 * memory, 1 for reads and 2 for writes (llvm/Support/ModRef.h). All bits: nothing is declared. */
uint64_t ir_call_memory(LLVMValueRef call);
#define IR_MEMORY_WRITES 0x2a
/* Whether a load finds the same wherever it runs, as LLVM is told (!invariant.load). */
bool ir_load_is_invariant(LLVMValueRef load);
/* Appends "the fmul at line 12", or "the fmul i31" if it has no line. */
void ir_describe_insn(const ir_work *work, const ir_name *name, ev_str *out);
void ir_describe_value(const ir_work *work, const ir_value *value, ev_str *out);
const char *ir_opcode_name(LLVMOpcode opcode);
/* What an address is computed from: through address computations and casts, the variable, alloca,
 * argument or other value. */
LLVMValueRef ir_address_base(LLVMValueRef address);
/* Makes the variable or alloca that the address is computed from declare at least `bytes` of
 * alignment. For any other address nothing changes: the gates place arguments at their least
 * alignment. */
void ir_raise_alignment(LLVMValueRef address, unsigned bytes);
LLVMValueRef ir_intrinsic_call(ir_work *work, const char *name, LLVMTypeRef *overloads,
                               size_t overload_count, LLVMValueRef *args, size_t count);

#endif
