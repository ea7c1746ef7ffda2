/* The inside of the direct emitter: LLVM IR to PTX in one pass of selection, one of register
 * coalescing and one of printing, to screen a variant without LLVM's back end. ir/direct/direct.c
 * explains the algorithm. Only the sources of ir/direct include this header.
 *
 * Ownership: all lists and texts live in the arena of ir_direct; LLVM values are borrowed from the
 * module. Errors: the first failure is kept in ir_direct.status (EV_BAD: IR outside the emitter's
 * subset; EV_INFRA: out of memory). Later calls go on without effect on the result, so most
 * functions return no status. */
#ifndef IR_DIRECT_DIRECT_INTERNAL_H
#define IR_DIRECT_DIRECT_INTERNAL_H

#include "ir/internal.h"

/* Register classes, with the prefixes of LLVM's NVPTX back end. */
typedef enum direct_class {
    DIRECT_P,  /* predicate */
    DIRECT_RS, /* 16 bits; also for i8 and half */
    DIRECT_R,  /* 32 bits */
    DIRECT_RD, /* 64 bits; also for pointers */
    DIRECT_F,
    DIRECT_FD,
    DIRECT_CLASS_COUNT
} direct_class;

typedef enum direct_kind {
    DIRECT_UNDEF,
    DIRECT_REG,   /* a register; for a pointer, plus `imm` bytes */
    DIRECT_INT,   /* a literal of any class; integers are sign-extended from their width */
    DIRECT_SYMBOL /* the address of a variable plus `imm` bytes */
} direct_kind;

/* One scalar. `space`: the address space that a pointer's number refers to; 0: generic. Unused
 * fields are 0, so that operands can be compared with memcmp. */
typedef struct direct_operand {
    uint8_t kind;
    uint8_t cls;
    uint8_t space;
    uint8_t bits; /* width of an integer; the register's bits above the width are undefined */
    uint32_t reg; /* number of a register or of a symbol */
    int64_t imm;
} direct_operand;

/* The syntax of an instruction's operands. */
typedef enum direct_shape {
    DIRECT_PLAIN, /* op d, a, b; several d, or for DIRECT_PACK several a, in braces */
    DIRECT_PACK,
    DIRECT_LOAD,         /* op d, [a], ... */
    DIRECT_STORE,        /* op [a], b; several b in braces */
    DIRECT_MATRIX_STORE, /* op [a], {b}, c */
    DIRECT_PRODUCT,      /* op {d}, {a}, {b}, {c} */
    DIRECT_COPY,         /* op [a], [b], c */
    DIRECT_PAIR,         /* op d|p, a, b */
    DIRECT_PARAM,        /* op d, [parameter] */
    DIRECT_TEXT          /* op is the whole text */
} direct_shape;

typedef struct direct_insn {
    const char *op;
    uint32_t first; /* index of the first operand: results, then sources */
    uint8_t results, sources;
    uint8_t shape;
    bool needed;           /* at first: the instruction has an effect; later: its result is used as
                              well */
    uint8_t bytes;         /* size in bytes of a load or store that may be merged with its
                              neighbours, else 0 */
    uint8_t align;         /* known alignment of the address; 16 means at least 16 */
    uint8_t rows, columns; /* DIRECT_PRODUCT: operands of a and of b */
    bool cached;           /* ld.global.nc */
    const char *type;      /* type of a load or store: ".f32" */
} direct_insn;

/* A scalar of an LLVM type. */
typedef struct direct_leaf {
    direct_class cls;
    uint8_t bits;
    bool is_pointer, is_float;
    uint8_t space;
} direct_leaf;

enum { DIRECT_LEAVES = 16, DIRECT_ANY_SPACE = 255 }; /* DIRECT_LEAVES: most scalars of a value */

typedef enum direct_fuse {
    DIRECT_ALONE,
    DIRECT_FMA_LEFT,  /* a * b + y or a * b - y; operand 0 is the product */
    DIRECT_FMA_RIGHT, /* x + a * b or x - a * b */
    DIRECT_NEST_0,    /* a * b + (c * d + y); operand 0 is a * b + c * d */
    DIRECT_NEST_1,
    DIRECT_DISTRIBUTE_0, /* (a +- 1) * y; operand 0 is the sum */
    DIRECT_DISTRIBUTE_1,
    DIRECT_RECIPROCAL,         /* a / b, as a * (1 / b) */
    DIRECT_RECIPROCAL_CONTRACT /* as DIRECT_RECIPROCAL; the product may be fused with a sum */
} direct_fuse;

/* Whether LLVM moves an instruction to an earlier block, if LLVM moves the instructions of its
 * block as far as it can. */
typedef enum direct_moves { DIRECT_STAYS, DIRECT_MAY_MOVE, DIRECT_MOVES } direct_moves;

typedef struct direct_value {
    LLVMValueRef value;
    direct_operand *parts; /* NULL: not emitted yet */
    uint32_t block;
    uint32_t uses; /* number of uses, as LLVM's DAG of the block counts them */
    uint8_t part_count;
    uint8_t opcode;
    uint8_t fuse;
    uint8_t space; /* address space, for a pointer */
    uint8_t moves;
} direct_value;

typedef struct direct_copy {
    uint32_t phi; /* register of the PHI */
    direct_operand from;
    uint32_t next_of_phi; /* the next copy into the same PHI; IR_NONE: none */
} direct_copy;

typedef struct direct_edge {
    uint32_t to;
    uint32_t first, count; /* range of its copies */
} direct_edge;

typedef struct direct_block {
    LLVMBasicBlockRef block;
    LLVMValueRef last;         /* its terminator */
    uint32_t first, end;       /* range of its instructions */
    uint32_t edge, edges;      /* range of the emitter's edges; for a switch, the default edge
                                  first */
    uint32_t place;            /* position in the printing order */
    uint32_t value, value_end; /* range of its values */
    direct_operand condition;  /* condition of a branch with two edges */
    uint32_t test;             /* for a switch: index of the operand of its first predicate */
    uint32_t into;             /* the block that LLVM may move this block's instructions up to;
                                  IR_NONE: none */
} direct_block;

typedef struct direct_register {
    uint32_t insn;   /* the instruction that defines the register; IR_NONE: a PHI */
    uint32_t block;  /* block of the definition */
    uint32_t copies; /* index of the first copy of a PHI */
    uint32_t parent; /* parent in the union-find forest of coalesced registers */
    uint32_t number; /* number in the printed text */
    uint32_t uses;   /* index of the first use in the list of uses */
    uint8_t cls;
    bool needed;
} direct_register;

/* A use of a register. `at` is an instruction; a number past the block's last instruction stands
 * for the block's edges. */
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
    ev_status status; /* status of the first failure; EV_OK: none */
    ir_map map;       /* LLVM value to index in `values` */
    ir_map block_map; /* LLVM block to index in `blocks` */
    direct_value *values;
    uint32_t value_count, argument_count;
    direct_block *blocks; /* in reverse postorder */
    uint32_t block_count;
    uint32_t *order; /* printing order of the blocks */
    ir_dominance dominance;
    DIRECT_LIST(direct_insn) insns;
    DIRECT_LIST(direct_operand) operands;
    DIRECT_LIST(direct_register) registers;
    DIRECT_LIST(direct_copy) copies;
    DIRECT_LIST(direct_edge) edges;
    DIRECT_LIST(direct_use) uses;
    DIRECT_LIST(direct_symbol) symbols;
    DIRECT_LIST(uint32_t) known; /* hash table of pure instructions, for value numbering */
    uint32_t block;              /* the block that is being selected */
    uint32_t numbers[DIRECT_CLASS_COUNT];
    unsigned invariant_kind, loop_kind; /* LLVM's numbers of the metadata kinds */
    bool *read_only;                    /* by argument: the kernel writes to the argument's
                                           memory through no pointer */
    uint32_t stubs;                     /* number of labels for edges so far */
    uint64_t *live;                     /* live-in sets: bit r of block b is set if register r
                                           is live at the begin of b */
    uint32_t live_words;
    uint32_t *ring;                     /* for each register, the next register of its
                                           coalesced class */
    uint32_t spare[DIRECT_CLASS_COUNT]; /* by class: the register for breaking a cycle of copies */
    ir_map callees;                     /* LLVM function to row of the intrinsics table, plus 1 */
} ir_direct;

/* ---- failing ----------------------------------------------------------------------------------
 */
void direct_refuse(ir_direct *d, LLVMValueRef insn, const char *why);
void direct_no_memory(ir_direct *d);
/* Grows a list. NULL: out of memory, and the list stays as it is. */
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
/* Lists the scalars of a type in order, and returns their number. 0: the emitter does not support
 * the type. */
unsigned direct_leaves(LLVMTypeRef type, direct_leaf leaves[DIRECT_LEAVES]);
direct_value *direct_value_of(const ir_direct *d, LLVMValueRef value); /* NULL: a constant */
/* The scalars of an operand. A constant's are written to `room`; others are borrowed from the
 * emitter. */
const direct_operand *direct_parts(ir_direct *d, LLVMValueRef value,
                                   direct_operand room[DIRECT_LEAVES], unsigned *count);
direct_operand direct_part(ir_direct *d, LLVMValueRef value); /* the value's only scalar */
void direct_define(ir_direct *d, LLVMValueRef value, const direct_operand *parts, unsigned count);
uint8_t direct_space_of(ir_direct *d, LLVMValueRef pointer);

direct_operand direct_int(direct_class cls, unsigned bits, int64_t value);
/* A new register that no instruction defines yet. */
direct_operand direct_new(ir_direct *d, direct_class cls, unsigned bits);
/* The result of a pure instruction. If an equal instruction dominates this place, the result is
 * that instruction's. */
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
/* The operand in a register. direct_source: in a register or as a literal. */
direct_operand direct_register_of(ir_direct *d, direct_operand operand);
direct_operand direct_source(ir_direct *d, direct_operand operand);
/* Converts a pointer to another address space. */
direct_operand direct_to_space(ir_direct *d, direct_operand pointer, unsigned space);
/* Extends an integer to the whole register, with zeros or with its sign. */
direct_operand direct_extended(ir_direct *d, direct_operand operand, bool is_signed);

/* ---- selection --------------------------------------------------------------------------------
 */
bool direct_has_flag(LLVMValueRef insn, LLVMFastMathFlags flag);
bool direct_is_unit(LLVMValueRef value); /* whether the value is the floating-point constant 1
                                            or -1 */
void direct_fuse_block(ir_direct *d, uint32_t first, uint32_t end);
void direct_select_float(ir_direct *d, LLVMValueRef insn);
/* Replaces divisions by one divisor with products by its reciprocal where LLVM does so. Returns
 * whether this division is now a product. The caller must visit the divisions of a block from the
 * last to the first. */
bool direct_share_divisor(ir_direct *d, direct_value *division);
/* The reciprocal of a division's divisor. `by`: the divisor in a register. */
direct_operand direct_reciprocal(ir_direct *d, const direct_value *division, direct_operand by);
/* Finds the blocks whose instructions LLVM may move up. */
void direct_note_moves(ir_direct *d);
/* Whether LLVM's moves may bring the two values into one block, or separate them. */
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
/* Selects a load. `cached`: the pointer is known to be read-only, so ld.global.nc serves. */
void direct_load(ir_direct *d, LLVMValueRef insn, LLVMValueRef pointer, unsigned align,
                 bool is_volatile, bool cached);
/* The name of a load or store such as "ld.shared.v2.f32", in the arena. */
const char *direct_access_name(ir_direct *d, const char *verb, const direct_insn *like,
                               unsigned space, unsigned together);
void direct_join_accesses(ir_direct *d, uint32_t first, uint32_t end);
const char *direct_type_name(const direct_leaf *leaf); /* ".f32": suffix of a load or a parameter */
/* The name of the instruction that loads an argument. */
const char *direct_param_load(const direct_leaf *leaf);
/* The address of a constant pointer expression. */
direct_operand direct_constant_address(ir_direct *d, LLVMValueRef value);
/* The address of an access through `pointer`; refuses what no access has. */
direct_operand direct_address_of(ir_direct *d, LLVMValueRef insn, LLVMValueRef pointer);
/* ".shared"; "" of generic addresses. */
const char *direct_space_name(unsigned space);
void direct_select_matrix(ir_direct *d, LLVMValueRef call, const char *name);
void direct_select_copy(ir_direct *d, LLVMValueRef call, const char *op, const char *bytes);

/* ---- blocks (direct_flow.c, direct_phi.c, direct_print.c) -------------------------------------
 */
void direct_find_blocks(ir_direct *d);
void direct_end_block(ir_direct *d, uint32_t block);
void direct_allocate(ir_direct *d);
void direct_print(ir_direct *d, ev_str *out);
void direct_print_head(ir_direct *d, ev_str *out); /* prints the text up to the first instruction */
/* Whether register `reg` is live at the begin of block `block`. */
bool direct_live_into(const ir_direct *d, uint32_t reg, uint32_t block);
uint32_t direct_class_of(ir_direct *d, uint32_t reg);

#endif
