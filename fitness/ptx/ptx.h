/* The inside of a decoded PTX module: tables, instructions, functions, variables. Shared by the
 * sources of fitness/ptx and fitness/vm and by their tests.
 *
 *   row      one line of ptx_ops.def; a row and its types name a handler of the executor
 *   slot     byte offset of a register in a warp's frame: 32 lanes of 4 or 8 bytes, or a mask
 *   frame    the registers, constants and call parameters of one function for one warp
 *   pc       index of an instruction in vm_module.code
 *
 * Ownership: a vm_module owns its text, code and lists through one arena; names and operands point
 * into that memory. The tables are constant. Source: NVIDIA, "Parallel Thread Execution ISA". */
#ifndef FITNESS_PTX_PTX_H
#define FITNESS_PTX_PTX_H

#include "base/arena.h"
#include "fitness/ptx/module.h"

#define PTX_NONE UINT32_MAX

typedef enum ptx_type {
#define PTX_TYPE(id, bits, kind) PTX_T_##id,
#include "fitness/ptx/ptx_types.def"
#undef PTX_TYPE
    PTX_T_COUNT
} ptx_type;

typedef enum ptx_group {
    PTX_G_rnd,
    PTX_G_irnd,
    PTX_G_ftz,
    PTX_G_sat,
    PTX_G_relu,
    PTX_G_nan,
    PTX_G_xorsign,
    PTX_G_abs,
    PTX_G_cc,
    PTX_G_part,
    PTX_G_prec,
    PTX_G_cmp,
    PTX_G_bool,
    PTX_G_testp,
    PTX_G_space,
    PTX_G_to,
    PTX_G_volatile,
    PTX_G_sem,
    PTX_G_scope,
    PTX_G_barscope,
    PTX_G_nc,
    PTX_G_cop,
    PTX_G_l1,
    PTX_G_l2,
    PTX_G_pre,
    PTX_G_level,
    PTX_G_vec,
    PTX_G_op,
    PTX_G_noftz,
    PTX_G_sync,
    PTX_G_shfl,
    PTX_G_vote,
    PTX_G_ballot,
    PTX_G_match,
    PTX_G_uniform,
    PTX_G_aligned,
    PTX_G_barred,
    PTX_G_dir,
    PTX_G_wrap,
    PTX_G_shiftamt,
    PTX_G_prmt,
    PTX_G_tile,
    PTX_G_matrix,
    PTX_G_ab,
    PTX_G_layout,
    PTX_G_blayout,
    PTX_G_satfinite,
    PTX_G_number,
    PTX_G_trans,
    PTX_G_copy,
    PTX_G_smem,
    PTX_G_noinc,
    PTX_G_arrival,
    PTX_G_waiting,
    PTX_G_mbscope,
    PTX_G_proxy,
    PTX_G_proxyspace,
    PTX_G_griddep,
    PTX_G_pack,
    PTX_G_parts,
    PTX_G_sums,
    PTX_G_second,
    PTX_G_po,
    PTX_G_scale,
    PTX_G_cluster,
    PTX_G_geom,
    PTX_G_comp,
    PTX_G_edge,
    PTX_G_query,
    PTX_G_opaque,
    PTX_G_COUNT
} ptx_group;

/* Modifiers; 0 is "not given". */
typedef enum ptx_mod {
    PTX_M_NONE = 0,
#define PTX_MOD(group, id, text) PTX_M_##id,
#include "fitness/ptx/ptx_mods.def"
#undef PTX_MOD
    PTX_M_COUNT
} ptx_mod;

typedef enum ptx_sreg {
#define PTX_SREG(id, ...) PTX_SR_##id,
#include "fitness/ptx/ptx_sregs.def"
#undef PTX_SREG
    PTX_SR_COUNT
} ptx_sreg;

typedef enum ptx_row {
#define PTX_OP(id, ...) PTX_OP_##id,
#include "fitness/ptx/ptx_ops.def"
#undef PTX_OP
    PTX_OP_COUNT
} ptx_row;

/* The form in which the executor wraps a row's expression. The decoder prepares the fields that the
 * form reads. */
typedef enum ptx_shape {
#define PTX_SHAPE(id, traits) PTX_S_##id,
#include "fitness/ptx/ptx_shapes.def"
#undef PTX_SHAPE
} ptx_shape;

/* Traits of a shape, as bits. */
enum {
    PTX_SHAPE_LINE = 1,    /* no other lanes of the warp run before the next instruction */
    PTX_SHAPE_TENSOR = 2,  /* matrix instructions, decoded by ptx_tensor.c */
    PTX_SHAPE_LANES = 4,   /* a lane may read registers of other lanes */
    PTX_SHAPE_TEXTURE = 8, /* textures and surfaces, decoded by ptx_texture.c */
    PTX_SHAPE_VIDEO = 16   /* operands with selectors, decoded by ptx_video.c */
};

enum { PTX_PIPE_FLOAT = VM_PIPE_COUNT, PTX_PIPE_CONV, PTX_PIPE_MEMORY };

/* The least PTX version, times ten, and the least target (sm) of a feature. */
typedef struct ptx_need {
    uint8_t version, sm;
} ptx_need;

typedef struct ptx_op {
    const char *name;
    const char *format;
    const char *pattern;
    const char *meaning;
    uint32_t types; /* bit t: type t may be T */
    uint32_t types2;
    uint8_t pipe;
    ptx_need need;
    uint8_t shape;
} ptx_op;

typedef struct ptx_type_row {
    const char *name;
    uint8_t bits;
    char kind; /* one letter, ptx_types.def */
} ptx_type_row;

extern const ptx_op ptx_ops[PTX_OP_COUNT];
extern const uint8_t ptx_shape_traits[];
extern const ptx_type_row ptx_types[PTX_T_COUNT];

static inline const ptx_op *ptx_op_get(unsigned row) {
    return &ptx_ops[row];
}
static inline bool ptx_shape_has(uint8_t shape, unsigned trait) {
    return (ptx_shape_traits[shape] & trait) != 0;
}
static inline const char *ptx_type_name(ptx_type t) {
    return ptx_types[t].name;
}
static inline unsigned ptx_type_bits(ptx_type t) {
    return ptx_types[t].bits;
}
static inline char ptx_type_kind(ptx_type t) {
    return ptx_types[t].kind;
}
ptx_type ptx_type_find(const char *text, size_t length);
const char *ptx_mod_text(ptx_mod m);
ptx_group ptx_mod_group(ptx_mod m);
const char *ptx_group_name(ptx_group g);
bool ptx_group_find(const char *text, size_t length, ptx_group *out);
/* The modifier of `group` with this spelling; PTX_M_NONE: there is none. */
ptx_mod ptx_mod_find(ptx_group group, const char *text, size_t length);
/* The next modifier after `after` with this spelling, of any group; PTX_M_NONE: there is none. */
ptx_mod ptx_mod_next(ptx_mod after, const char *text, size_t length);
const char *ptx_sreg_text(ptx_sreg s);
unsigned ptx_sreg_bits(ptx_sreg s);
bool ptx_sreg_dynamic(ptx_sreg s);
ptx_need ptx_sreg_need(ptx_sreg s);
bool ptx_sreg_find(const char *text, size_t length, ptx_sreg *out);

/* One line of ptx_since.def. ptx_since_get returns false past the last line. */
typedef struct ptx_since_rule {
    const char *names, *parts;
    ptx_need need;
} ptx_since_rule;
bool ptx_since_get(size_t index, ptx_since_rule *out);

/* One line of ptx_absent.def: a feature of PTX that the virtual machine lacks. ptx_absent_get
 * returns false past the last line. */
typedef struct ptx_absent {
    const char *name, *what, *cure;
} ptx_absent;
bool ptx_absent_get(size_t index, ptx_absent *out);
/* The line for an instruction, directive or special register; false: the virtual machine has no
 * such line. */
bool ptx_absent_find(const char *text, size_t length, ptx_absent *out);

/* A target of ptx_targets.def. */
typedef struct ptx_target {
    int sm;
    char suffix;     /* 0, 'a' or 'f' */
    uint8_t version; /* the least PTX version of the target, times ten */
} ptx_target;
/* Parses a target such as "sm_90a"; false: ptx_targets.def has no such target. */
bool ptx_target_find(const char *text, size_t length, ptx_target *out);

/* ---- decoded code */

#define PTX_LOOKS 8 /* looks that a warp keeps at once; number 0 means "no look" */

typedef struct ptx_insn ptx_insn;
typedef struct vm_warp vm_warp;
/* Executes `ip` for the lanes of `mask`. Returns the next instruction, or NULL to leave the run. */
typedef const ptx_insn *(*ptx_handler)(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                       uint32_t mask);

struct ptx_insn {
    ptx_handler fn;      /* the wrapper for the guard, or `body` */
    ptx_handler body;    /* the handler that row and types name */
    uint32_t d, d2;      /* destination slots */
    uint32_t a, b, c, e; /* source slots */
    uint32_t v[4];       /* elements of a vector operand; for mma: the indices in the module's
                            fragments where d, a, b and c begin */
    int64_t imm;         /* address offset, table of lop3, or offset in local memory */
    uint32_t target;     /* pc of a branch's target, or number of a call, table or special
                            register */
    uint32_t guard;      /* slot of the guard predicate; PTX_NONE: no guard */
    uint16_t row;
    uint8_t t, u;   /* types */
    uint8_t bytes;  /* bytes of one element of a memory access */
    uint8_t count;  /* elements of a vector operand */
    uint8_t space;  /* vm_space */
    uint8_t negate; /* bits 0 to 3: source predicate a, b, c, e is inverted; bit 7: the guard
                       is inverted */
    uint8_t rnd;    /* rounding mode as ptx_mod, if the shape reads one */
    uint8_t ftz, sat, relu;
    uint8_t op;            /* cmp, shfl, vote, testp, wrap, prmt, barred, part: ptx_mod */
    uint8_t bool_op;       /* and, or, xor: ptx_mod */
    uint8_t wide;          /* destination or data register has 8 bytes a lane */
    uint8_t strong;        /* volatile, relaxed or stronger, atomic */
    uint8_t look;          /* number of the vm_look that keeps the lanes' addresses of a load
                              or store, from 1; 0: not kept */
    uint8_t looked : 1;    /* an earlier instruction of the same straight-line code made that
                              look */
    uint8_t releases : 1;  /* release, acq_rel or sc */
    uint8_t acquires : 1;  /* acquire, acq_rel or sc */
    uint8_t of_block : 1;  /* scope .cta: strong only for threads of its own block */
    uint8_t of_system : 1; /* scope .sys or .volatile: strong for threads of all ranks */
    uint8_t joins : 3;     /* 2 or 4: the assembler makes one access of so many words of it and
                              later ones; 1: it is one of these (ptx_join.c) */
    uint8_t address_bits;  /* width of the base register: 32 or 64 */
    uint8_t flags;         /* PTX_F_* */
    uint32_t site;         /* number of the memory access in the module, index of the segment
                              cache */
};

enum {
    PTX_F_NAN = 1,     /* .NaN */
    PTX_F_XORSIGN = 2, /* .xorsign.abs */
    PTX_F_ABS = 4,
    PTX_F_SIGNED = 8,  /* sign-extends a load */
    PTX_F_SINK2 = 16,  /* the second destination is `_` or missing */
    PTX_F_ARRIVE = 32, /* bar.arrive: does not wait */
    PTX_F_SYNC = 64,   /* has a member mask */
    PTX_F_ALIGNED = 128,
};

/* Flags of matrix instructions in `target`: layout and matrix. `c` holds the number of registers of
 * the fragment that a load fills or a store reads. */
enum {
    PTX_TENSOR_COL = 1,  /* column-major: the matrix that is moved, or a; .trans */
    PTX_TENSOR_BCOL = 2, /* b is column-major */
    PTX_TENSOR_A = 4,    /* a wmma.load.a */
    PTX_TENSOR_B = 8,    /* a wmma.load.b */
};

/* Video instructions: v[0] is what d takes of the result, v[1] and v[2] are what a and b give. Of a
 * scalar one: the first bit and the number of bits. Of parts at once: the mask, a bit a part, and
 * places, four bits a part, that count the parts of a and then those of b. v[3] are signs. `op` is
 * the type of b as PTX_M_PARTS_*, `bool_op` the comparison or the kind of shift, `rnd` the second
 * operation or the scale. */
#define PTX_VIDEO_PICK(first, bits) ((uint32_t)(first) | (uint32_t)(bits) << 8)
enum { PTX_VIDEO_PRODUCT = 1, PTX_VIDEO_SUMMAND = 2, PTX_VIDEO_PLUS_ONE = 4 };

/* Textures and surfaces: `target` is the index in the module's fragments of the slots of an
 * instruction's coordinates and offsets, PTX_NONE where it has none. `a` is the slot of the
 * texture, `b` of the sampler, d2 of the predicate, v[] of the elements, `op` the geometry,
 * `bool_op` the component or the query, and `rnd` what happens outside a surface. */
enum { PTX_AT_OFFSETS = 4, PTX_AT_COUNT = 8 };

/* What a .samplerref is initialised with; the value of the variable is the tag and these bits. */
#define PTX_SAMPLER_TAG (UINT64_C(0x5a3d) << 48)
enum {
    PTX_SAMPLER_LINEAR = 1,
    PTX_SAMPLER_UNNORMALIZED = 2,
    PTX_SAMPLER_MODES = 2, /* shift of the address modes, two bits each */
};
typedef enum ptx_address_mode { /* numbers as of CUDA's address modes */
                                PTX_ADDRESS_WRAP,
                                PTX_ADDRESS_CLAMP,
                                PTX_ADDRESS_MIRROR,
                                PTX_ADDRESS_BORDER
} ptx_address_mode;

/* Coordinates that an instruction of this geometry (PTX_M_G*) names, and of these the ones that
 * count. */
unsigned ptx_geometry_names(uint8_t geometry);
unsigned ptx_geometry_uses(uint8_t geometry);

typedef struct ptx_tile { /* A is m x k, B is k x n, C and D are m x n */
    uint16_t m, n, k;
} ptx_tile;
ptx_tile ptx_tile_of(ptx_mod mod); /* `mod` is of the group `tile` */

typedef enum ptx_operand_kind {
    PTX_O_NONE,
    PTX_O_REG,
    PTX_O_INT,
    PTX_O_F32,
    PTX_O_F64,
    PTX_O_SREG,
    PTX_O_SYMBOL,
    PTX_O_ADDRESS,
    PTX_O_VECTOR,
    PTX_O_LABEL,
    PTX_O_SINK,
    PTX_O_CALL,
    PTX_O_FUNC, /* a function; value: its number */
    /* A place in a texture or surface, "[a, {x, y}]" or "[a, b, {x, y}]": the items are the
     * texture, the sampler if there is one, and the coordinates; value: the number of names before
     * these. */
    PTX_O_TEXEL,
} ptx_operand_kind;

typedef struct ptx_var ptx_var;
typedef struct ptx_operand ptx_operand;
struct ptx_operand {
    uint8_t kind;
    bool negated; /* !%p */
    bool piped;   /* the operand follows a | */
    bool indexed; /* variable[i] */
    bool minus;   /* -%r */
    uint8_t selector_length;
    uint8_t count; /* number of items of a vector or texel */
    uint32_t reg;  /* the register, or the base of an address; PTX_NONE: none */
    int64_t value; /* integer, float bits, offset of an address or symbol, special register */
    const ptx_var *var;
    const char *label;
    uint32_t label_length;
    const char *selector; /* "b0" of %r.b0; NULL: none */
    ptx_operand *items;   /* items of a vector or texel */
    const char *at;       /* the place in the text, for messages */
};

/* The parts of an instruction that execution does not read: for decoding, messages, analysis and
 * profiles. */
typedef struct ptx_cold {
    const char *name;
    uint32_t line, source_line;
    uint32_t column; /* column of the name, from 1; 0: not in the text */
    uint32_t guard_reg;
    uint32_t func;
    uint8_t operand_count;
    uint8_t written; /* bit i: operand i is written, by the pattern */
    uint8_t use_count, def_count;
    uint32_t touched; /* index of its registers in vm_module.touched: uses, then defs */
    ptx_operand *operands;
} ptx_cold;

typedef struct ptx_reg {
    uint32_t slot;
    uint8_t bits; /* 1, 16, 32, 64 */
    const char *name;
} ptx_reg;

struct ptx_var {
    const char *name;
    uint8_t space; /* vm_space */
    uint32_t bytes, align;
    ptx_type type;
    bool array;
    bool dynamic;        /* .extern .shared, size given by the launch */
    uint8_t opaque;      /* a texture, sampler or surface, of 8 bytes: PTX_M_OPAQUE_*; else 0 */
    uint64_t offset;     /* offset in its space; for a .param of a call: slot in the frame */
    uint32_t stride;     /* bytes a lane, of a .param */
    uint32_t local;      /* for a parameter whose address is taken: offset + 1 of its copy in
                            local memory; 0: none */
    uint8_t *init;       /* initial bytes; NULL: all zero */
    const ptx_var *next; /* next in the list of the module's variables */
    uint32_t func;       /* function that declares the variable; PTX_NONE: the module */
};

enum { PTX_BASE_NONE, PTX_BASE_GLOBAL, PTX_BASE_DYNAMIC };

typedef struct ptx_const {
    uint32_t slot;
    uint8_t bits; /* 1, 32 or 64 */
    uint8_t base; /* PTX_BASE_*: the address that is added when a frame is made */
    uint64_t value;
} ptx_const;

/* A range of bytes in a frame. */
typedef struct ptx_stretch {
    uint32_t offset, bytes;
} ptx_stretch;

typedef struct ptx_sreg_use {
    uint32_t slot;
    ptx_sreg sreg;
} ptx_sreg_use;

/* The types that a call must agree with. A parameter with space NONE is a register of the function.
 */
typedef struct ptx_signature {
    ptx_var *params;
    size_t param_count;
    ptx_var *rets;
    size_t ret_count;
} ptx_signature;

typedef enum ptx_system {
    PTX_SYS_NONE,
#define PTX_SYSTEM(id, name, ret, args, meaning) PTX_SYS_##id,
#include "fitness/ptx/ptx_system.def"
#undef PTX_SYSTEM
} ptx_system;

typedef struct ptx_func {
    const char *name;
    bool entry, defined;
    uint32_t alias; /* the function that this one is an alias of; PTX_NONE: no alias */
    vm_entry pub;
    ptx_signature sig;
    uint32_t frame_bytes;
    ptx_const *consts;
    size_t const_count;
    ptx_sreg_use *sregs;
    size_t sreg_count;
    uint32_t local_bytes;
    uint32_t local_align;   /* alignment of its local variables; 0: it has none */
    uint32_t shared_span;   /* bytes of an entry's shared memory, with the gaps */
    uint32_t shared_before; /* of its shared_bytes: the variables of the module and of functions */
    uint32_t first_reg, end_reg;
    const ptx_stretch *cleared; /* bytes that must be zero when a frame is used again
                                   (ptx_first.c) */
    size_t cleared_count;
} ptx_func;

/* An argument or a result of a call, in the caller's frame. */
typedef struct ptx_value {
    uint32_t slot; /* PTX_NONE: `_`, an ignored result */
    uint32_t stride, bytes;
    uint32_t reg; /* register number; PTX_NONE: a .param variable or a literal */
} ptx_value;

typedef struct ptx_call {
    uint32_t func;            /* number of the function; PTX_NONE: an indirect call */
    uint32_t pointer, reg;    /* slot and number of the register of an indirect call */
    const ptx_signature *sig; /* signature that the callee must have */
    const uint32_t *targets;  /* allowed callees by .calltargets; NULL: any function */
    size_t target_count;
    ptx_system system;
    ptx_value *args, *rets; /* as many as `sig` has */
    size_t arg_count, ret_count;
    const char *text; /* text of the operands */
    uint32_t text_bytes;
} ptx_call;

/* Bytes of the unused gap behind each .global variable and between the .shared variables of a
 * block. An access that overruns a variable falls into the gap and traps. The gap of .shared
 * variables keeps each variable at the bank that it has without gaps. */
#define PTX_GLOBAL_GAP 256u
#define PTX_SHARED_GAP 128u
/* Shared memory of the system that cooperative groups may use: CUDA 13 expects as many at least. */
#define PTX_RESERVED_BYTES 288u

/* The targets of a brx.idx. */
typedef struct ptx_branches {
    uint32_t *pcs;
    uint32_t count;
} ptx_branches;

typedef struct ptx_reloc {
    uint64_t offset; /* offset in the image of .global or .const variables */
    uint64_t value;  /* offset of the .global variable that is pointed to */
    uint8_t shift;   /* right shift of the address in bits, for mask() */
    uint8_t bytes;
    bool in_const;
} ptx_reloc;

struct vm_module {
    ev_arena *arena;
    char *text;
    size_t text_bytes;
    uint32_t *line_starts;
    uint32_t line_count;
    const char *name;
    int sm, version;
    int least;             /* the least PTX version, times ten, for the module's contents */
    const char *least_for; /* name of the instruction or feature that needs `least` */
    uint32_t version_at;   /* offset of the .version number in the text */
    uint32_t versions;     /* number of .version directives in the text */
    uint64_t text_hash;
    uint64_t fill_hash; /* of global_image, since the host filled a variable; else 0 */
    ptx_func *funcs;
    size_t func_count;
    uint32_t *entries; /* indices of funcs */
    size_t entry_count;
    ptx_insn *code; /* insn_count instructions, and one sentinel that is never reached */
    ptx_cold *cold;
    uint16_t *touched; /* registers of all instructions (ptx_info.c) */
    uint32_t insn_count;
    uint32_t site_count;
    uint32_t *fragments; /* slots of the registers of matrix operands, one operand after another */
    size_t fragment_count;
    ptx_reg *regs;
    uint32_t reg_count;
    ptx_call *calls;
    size_t call_count;
    const ptx_var *variables; /* list of the variables of all spaces, the newest first */
    ptx_branches *branches;
    size_t branches_count;
    uint8_t *global_image;
    uint64_t global_bytes;
    ptx_reloc *relocs;
    size_t reloc_count;
    uint8_t *const_image;
    uint64_t const_bytes;
    uint64_t workspace;       /* offset of the workspace of grid-wide barriers among the .global
                                 variables + 1; 0: none */
    uint32_t dynamic_base;    /* offset of dynamic shared memory in a block's shared memory */
    uint32_t reserved_shared; /* offset of the PTX_RESERVED_BYTES bytes that the system keeps in a
                                 block's shared memory; 0: the module names none */
    unsigned isa;
};

/* Generic addresses: each space except global has a window. The upper bits of an address name the
 * window. */
#define VM_WINDOW_SHIFT 40
#define VM_WINDOW(n) ((uint64_t)(n) << VM_WINDOW_SHIFT)
#define VM_WINDOW_SHARED VM_WINDOW(1)
#define VM_WINDOW_LOCAL VM_WINDOW(2)
#define VM_WINDOW_CONST VM_WINDOW(3)
#define VM_WINDOW_PARAM VM_WINDOW(4)
#define VM_WINDOW_CODE VM_WINDOW(5) /* addresses of functions; reads there trap */
#define VM_CODE_STEP 16u

/* The space that a generic address lies in. */
static inline vm_space ptx_window_space(uint64_t address) {
    switch (address >> VM_WINDOW_SHIFT) {
    case 1:
        return VM_SPACE_SHARED;
    case 2:
        return VM_SPACE_LOCAL;
    case 3:
        return VM_SPACE_CONST;
    case 4:
        return VM_SPACE_PARAM;
    default:
        return VM_SPACE_GLOBAL;
    }
}

/* The generic address of a function, and the function at an address; PTX_NONE: no function there.
 */
static inline uint64_t ptx_func_address(uint32_t func) {
    return VM_WINDOW_CODE + ((uint64_t)func + 1) * VM_CODE_STEP;
}
static inline uint32_t ptx_func_at(const vm_module *m, uint64_t address) {
    uint64_t n = (address - VM_WINDOW_CODE) / VM_CODE_STEP;
    bool fits = address % VM_CODE_STEP == 0 && n >= 1 && n <= m->func_count;
    return fits ? (uint32_t)n - 1 : PTX_NONE;
}
/* Resolves an alias; a function that is no alias resolves to itself. */
static inline uint32_t ptx_func_resolve(const vm_module *m, uint32_t func) {
    uint32_t alias = m->funcs[func].alias;
    return alias == PTX_NONE ? func : alias;
}
/* Relocates: writes the addresses of .global variables into `image`, an image of the module's
 * .global variables or, if `consts`, its .const variables. `globals`: address of the first .global
 * variable. */
void ptx_relocate(const vm_module *m, bool consts, uint64_t globals, uint8_t *image);
const char *ptx_system_name(ptx_system which);
/* Whether both have the same number of parameters and results with the same sizes. */
bool ptx_signatures_agree(const ptx_signature *a, const ptx_signature *b);

/* ---- instruction sets of the host: the executor is compiled once for each */
enum { VM_ISA_BASELINE, VM_ISA_AVX2, VM_ISA_AVX512, VM_ISA_COUNT };
unsigned vm_isa_best(void);
bool vm_isa_supported(unsigned isa);
/* Chooses another executor for this module. Tests compare the executors. */
void vm_module_set_isa(vm_module *module, unsigned isa);
ptx_handler vm_find_handler_baseline(unsigned row, unsigned t, unsigned x);
ptx_handler vm_find_handler_avx2(unsigned row, unsigned t, unsigned x);
ptx_handler vm_find_handler_avx512(unsigned row, unsigned t, unsigned x);
/* The second index of a handler: comparison, source type, space, or 1 for modifiers. */
unsigned ptx_handler_variant(const ptx_insn *insn);
/* Whether the executor has a handler for the instruction's row, types, comparison and space. */
bool vm_isa_executes(const ptx_insn *insn);
vm_pipe ptx_insn_pipe(const vm_module *m, uint32_t pc);

#endif
