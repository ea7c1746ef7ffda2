/* The direct emitter: what its files share. LLVM IR to PTX in one pass of selection, one of
 * register coalescing and one of printing, for a first look at a variant; ir/direct/direct.c tells
 * how it works. The sources of ir alone may include it. */
#ifndef IR_DIRECT_DIRECT_INTERNAL_H
#define IR_DIRECT_DIRECT_INTERNAL_H

#include "ir/internal.h"

/* Classes of registers, by the names that LLVM's NVPTX gives them. */
typedef enum direct_class {
    DIRECT_P,  /* predicate */
    DIRECT_RS, /* 16 bits; also i8 and half */
    DIRECT_R,  /* 32 bits */
    DIRECT_RD, /* 64 bits; also pointers */
    DIRECT_F,
    DIRECT_FD,
    DIRECT_CLASS_COUNT
} direct_class;

typedef enum direct_kind {
    DIRECT_UNDEF,
    DIRECT_REG,   /* a register, of a pointer: plus `imm` bytes */
    DIRECT_INT,   /* bits of any class; integers sign-extended from their width */
    DIRECT_SYMBOL /* the address of a variable plus `imm` bytes */
} direct_kind;

/* One scalar. A pointer's `space` says of which address space its number is: 0 is generic. Unused
 * fields are 0, so that operands compare as memory. */
typedef struct direct_operand {
    uint8_t kind;
    uint8_t cls;
    uint8_t space;
    uint8_t bits; /* of an integer: above them a register holds anything */
    uint32_t reg; /* number of a register or of a symbol */
    int64_t imm;
} direct_operand;

/* How an instruction's operands are written. */
typedef enum direct_shape {
    DIRECT_PLAIN, /* op d, a, b; several d or, of a pack, several a in braces */
    DIRECT_PACK,
    DIRECT_LOAD,  /* op d, [a], ... */
    DIRECT_STORE, /* op [a], b; several b in braces */
    DIRECT_PAIR,  /* op d|p, a, b */
    DIRECT_PARAM, /* op d, [parameter] */
    DIRECT_TEXT   /* op, as it stands */
} direct_shape;

typedef struct direct_insn {
    const char *op;
    uint32_t first; /* operand: results, then sources */
    uint8_t results, sources;
    uint8_t shape;
    bool needed;      /* at first: has an effect */
    uint8_t bytes;    /* of a load or store that may be joined with its neighbours, else 0 */
    uint8_t align;    /* known of its address; 16 means at least that */
    bool cached;      /* ld.global.nc */
    const char *type; /* of a load or store: ".f32" */
} direct_insn;

/* A scalar of an LLVM type. */
typedef struct direct_leaf {
    direct_class cls;
    uint8_t bits;
    bool is_pointer, is_float;
    uint8_t space;
} direct_leaf;

enum { DIRECT_LEAVES = 16, DIRECT_ANY_SPACE = 255 }; /* scalars of a value at most */

typedef enum direct_fuse {
    DIRECT_ALONE,
    DIRECT_FMA_LEFT,  /* a * b + y or a * b - y, operand 0 being the product */
    DIRECT_FMA_RIGHT, /* x + a * b or x - a * b */
    DIRECT_NEST_0,    /* a * b + (c * d + y), operand 0 being a * b + c * d */
    DIRECT_NEST_1,
    DIRECT_DISTRIBUTE_0, /* (a +- 1) * y, operand 0 being the sum */
    DIRECT_DISTRIBUTE_1,
    DIRECT_RECIPROCAL,         /* a / b, as a * (1 / b) */
    DIRECT_RECIPROCAL_CONTRACT /* the same, and the product may join a sum */
} direct_fuse;

/* Whether LLVM moves an instruction up, should it move what it can of its block. */
typedef enum direct_moves { DIRECT_STAYS, DIRECT_MAY_MOVE, DIRECT_MOVES } direct_moves;

typedef struct direct_value {
    LLVMValueRef value;
    direct_operand *parts; /* NULL: not emitted yet */
    uint32_t block;
    uint32_t uses; /* as LLVM's DAG of its block counts them */
    uint8_t part_count;
    uint8_t opcode;
    uint8_t fuse;
    uint8_t space; /* of a pointer */
    uint8_t moves;
} direct_value;

typedef struct direct_copy {
    uint32_t phi; /* register */
    direct_operand from;
    uint32_t next_of_phi; /* another copy into the same, IR_NONE: none */
} direct_copy;

typedef struct direct_edge {
    uint32_t to;
    uint32_t first, count; /* copies */
} direct_edge;

typedef struct direct_block {
    LLVMBasicBlockRef block;
    LLVMValueRef last;         /* its terminator */
    uint32_t first, end;       /* instructions */
    uint32_t edge, edges;      /* in the emitter's edges; of a switch, the default first */
    uint32_t place;            /* in the order of printing */
    uint32_t value, value_end; /* its values */
    direct_operand condition;  /* of a branch with two edges */
    uint32_t test;             /* of a switch: index of the first of its predicates' operands */
    uint32_t into;             /* block that LLVM may move it up into, else IR_NONE */
} direct_block;

typedef struct direct_register {
    uint32_t insn;   /* that defines it; IR_NONE: a PHI */
    uint32_t block;  /* of its definition */
    uint32_t copies; /* of a PHI: the first of its copies */
    uint32_t parent; /* of its class after coalescing */
    uint32_t number; /* as printed */
    uint32_t uses;   /* first in the list of its uses */
    uint8_t cls;
    bool needed;
} direct_register;

/* A place where a register is read; `at` is an instruction, or past the block's last, its edges. */
typedef struct direct_use {
    uint32_t block, at, next;
} direct_use;

typedef struct direct_symbol {
    LLVMValueRef variable;
    const char *name;
    uint8_t space;
} direct_symbol;

/* A growing array in the arena. */
#define DIRECT_LIST(type)                                                                          \
    struct {                                                                                       \
        type *items;                                                                               \
        uint32_t count, capacity;                                                                  \
    }

typedef struct ir_direct {
    const ir_base *base;
    LLVMModuleRef module;
    LLVMValueRef function;
    LLVMTargetDataRef layout;
    const char *name;
    ev_arena *arena;
    ev_error *err;
    ev_status status; /* of the first failure: all goes on, and nothing comes of it */
    ir_map map;       /* values to their numbers */
    ir_map block_map; /* blocks to theirs */
    direct_value *values;
    uint32_t value_count, argument_count;
    direct_block *blocks; /* in reverse postorder */
    uint32_t block_count;
    uint32_t *order; /* of printing */
    ir_dominance dominance;
    DIRECT_LIST(direct_insn) insns;
    DIRECT_LIST(direct_operand) operands;
    DIRECT_LIST(direct_register) registers;
    DIRECT_LIST(direct_copy) copies;
    DIRECT_LIST(direct_edge) edges;
    DIRECT_LIST(direct_use) uses;
    DIRECT_LIST(direct_symbol) symbols;
    DIRECT_LIST(uint32_t) known; /* hash table of pure instructions */
    uint32_t block;              /* being selected */
    uint32_t numbers[DIRECT_CLASS_COUNT];
    unsigned invariant_kind, loop_kind; /* of metadata */
    bool *read_only;                    /* by argument: no pointer writes to what it points to */
    uint32_t stubs;                     /* labels of edges so far */
    uint64_t *live;                     /* bit r of block b: register r is live where b begins */
    uint32_t live_words;
    uint32_t *ring;                     /* of each register, the next of its class */
    uint32_t spare[DIRECT_CLASS_COUNT]; /* registers for copies in a ring */
    ir_map callees;                     /* functions to rows of the intrinsics, plus 1 */
} ir_direct;

/* ---- failing ----------------------------------------------------------------------------------
 */
void direct_refuse(ir_direct *d, LLVMValueRef insn, const char *why);
void direct_no_memory(ir_direct *d);
/* NULL: out of memory, and the list stays as it is. */
void *direct_grow(ir_direct *d, void *items, uint32_t *capacity, uint32_t count, size_t size);
#define DIRECT_ROOM(d, list)                                                                       \
    do {                                                                                           \
        void *grown_ =                                                                             \
            direct_grow((d), (list).items, &(list).capacity, (list).count, sizeof *(list).items);  \
        if (grown_)                                                                                \
            (list).items = grown_;                                                                 \
    } while (0)
#define DIRECT_PUSH(d, list, item)                                                                 \
    do {                                                                                           \
        if ((list).count == (list).capacity)                                                       \
            DIRECT_ROOM(d, list);                                                                  \
        if ((list).count < (list).capacity)                                                        \
            (list).items[(list).count++] = (item);                                                 \
    } while (0)

/* ---- values (direct_values.c) -----------------------------------------------------------------
 */
bool direct_leaf_of(LLVMTypeRef type, direct_leaf *out);
/* Scalars of a type in order; 0: not of this emitter. */
unsigned direct_leaves(LLVMTypeRef type, direct_leaf leaves[DIRECT_LEAVES]);
direct_value *direct_value_of(const ir_direct *d, LLVMValueRef value); /* NULL: a constant */
/* The scalars of an operand; `room` serves for a constant's. */
const direct_operand *direct_parts(ir_direct *d, LLVMValueRef value,
                                   direct_operand room[DIRECT_LEAVES], unsigned *count);
direct_operand direct_part(ir_direct *d, LLVMValueRef value); /* the only one */
void direct_define(ir_direct *d, LLVMValueRef value, const direct_operand *parts, unsigned count);
uint8_t direct_space_of(ir_direct *d, LLVMValueRef pointer);

direct_operand direct_int(direct_class cls, unsigned bits, int64_t value);
/* A new register, of no instruction yet. */
direct_operand direct_new(ir_direct *d, direct_class cls, unsigned bits);
/* A pure instruction's result, a known one's where that dominates. */
direct_operand direct_pure(ir_direct *d, const char *op, direct_class cls, unsigned bits,
                           unsigned count, const direct_operand *sources);
direct_operand direct_pure1(ir_direct *d, const char *op, direct_class cls, direct_operand a);
direct_operand direct_pure2(ir_direct *d, const char *op, direct_class cls, direct_operand a,
                            direct_operand b);
direct_operand direct_pure3(ir_direct *d, const char *op, direct_class cls, direct_operand a,
                            direct_operand b, direct_operand c);
void direct_insn_add(ir_direct *d, const char *op, direct_shape shape, bool effect,
                     unsigned results, const direct_operand *result, unsigned sources,
                     const direct_operand *source);
/* The operand in a register; `direct_source`: in one or as a literal. */
direct_operand direct_register_of(ir_direct *d, direct_operand operand);
direct_operand direct_source(ir_direct *d, direct_operand operand);
/* A pointer's number in another address space. */
direct_operand direct_to_space(ir_direct *d, direct_operand pointer, unsigned space);
/* An integer with all bits of its register as its width says. */
direct_operand direct_extended(ir_direct *d, direct_operand operand, bool is_signed);

/* ---- selection --------------------------------------------------------------------------------
 */
bool direct_has_flag(LLVMValueRef insn, LLVMFastMathFlags flag);
bool direct_is_unit(LLVMValueRef value); /* 1 or -1, floating point */
void direct_fuse_block(ir_direct *d, uint32_t first, uint32_t end);
void direct_select_float(ir_direct *d, LLVMValueRef insn);
/* Takes a division and those by its divisor as LLVM does; whether they are products now. It must be
 * asked of a block's divisions from the last to the first. */
bool direct_share_divisor(ir_direct *d, direct_value *division);
/* 1 over the divisor of a division; `by`: that in a register. */
direct_operand direct_reciprocal(ir_direct *d, const direct_value *division, direct_operand by);
/* Finds the blocks that LLVM may move up. */
void direct_note_moves(ir_direct *d);
/* Whether the two may come to be in one block, or no longer be. */
bool direct_unsettled(const ir_direct *d, const direct_value *a, const direct_value *b);
void direct_select_binary(ir_direct *d, LLVMValueRef insn);
void direct_select_compare(ir_direct *d, LLVMValueRef insn);
void direct_select_select(ir_direct *d, LLVMValueRef insn);
void direct_select_cast(ir_direct *d, LLVMValueRef insn);
direct_operand direct_integer(ir_direct *d, LLVMValueRef insn, LLVMOpcode opcode, direct_operand a,
                              direct_operand b);
direct_operand direct_divide(ir_direct *d, LLVMOpcode opcode, direct_operand a, direct_operand b);
void direct_select_address(ir_direct *d, LLVMValueRef insn);
void direct_select_load(ir_direct *d, LLVMValueRef insn);
void direct_select_store(ir_direct *d, LLVMValueRef insn);
void direct_select_atomic(ir_direct *d, LLVMValueRef insn);
void direct_select_call(ir_direct *d, LLVMValueRef insn);
/* A load of `type` from a pointer known to be read-only where `cached`. */
void direct_load(ir_direct *d, LLVMValueRef insn, LLVMValueRef pointer, unsigned align,
                 bool is_volatile, bool cached);
/* "ld.shared.v2.f32", in the arena. */
const char *direct_access_name(ir_direct *d, const char *verb, const direct_insn *like,
                               unsigned space, unsigned together);
void direct_join_accesses(ir_direct *d, uint32_t first, uint32_t end);
const char *direct_type_name(const direct_leaf *leaf); /* ".f32", of a load or a parameter */
/* The instruction that loads an argument. */
const char *direct_param_load(const direct_leaf *leaf);
/* Constant expressions of pointers. */
direct_operand direct_constant_address(ir_direct *d, LLVMValueRef value);

/* ---- blocks (direct_flow.c, direct_phi.c, direct_print.c) -------------------------------------
 */
void direct_find_blocks(ir_direct *d);
void direct_end_block(ir_direct *d, uint32_t block);
void direct_allocate(ir_direct *d);
void direct_print(ir_direct *d, ev_str *out);
void direct_print_head(ir_direct *d, ev_str *out); /* up to the first instruction */
/* Whether register `reg` is live where block `block` begins. */
bool direct_live_into(const ir_direct *d, uint32_t reg, uint32_t block);
uint32_t direct_class_of(ir_direct *d, uint32_t reg);

#endif
