/* The loader's data and functions, shared by its files (ptx_parse.c, ptx_insn.c, ptx_decode.c). */
#ifndef FITNESS_PTX_PTX_LOAD_H
#define FITNESS_PTX_PTX_LOAD_H

#include "fitness/ptx/ptx.h"
#include "fitness/ptx/ptx_lex.h"

#define PTX_FIRST_VERSION 30 /* the first PTX version that is read, times ten */
#define PTX_MAX_OPERANDS 8
#define PTX_MAX_ELEMENTS 8 /* of a vector operand */
#define PTX_MAX_PARTS 16
#define PTX_MAX_FORMAT 12

typedef enum ptx_symbol_kind {
    PTX_Y_REG,   /* one register */
    PTX_Y_RANGE, /* %r<12> */
    PTX_Y_VAR,
    PTX_Y_FUNC,
    PTX_Y_LABEL,
    PTX_Y_PROTOTYPE,
    PTX_Y_TARGETS,  /* of calls */
    PTX_Y_BRANCHES, /* targets of branches */
} ptx_symbol_kind;

typedef struct ptx_symbol ptx_symbol;
struct ptx_symbol {
    ptx_symbol *next_in_bucket, *next_in_scope;
    const char *name;
    uint32_t length, hash;
    uint8_t kind;
    uint8_t bits;   /* of registers */
    uint8_t lanes;  /* of a vector register or a range of them: 2 or 4; else 0 */
    uint32_t scope; /* depth it was declared at */
    uint32_t index; /* register, function, table of branches, or pc of a label */
    uint32_t count; /* of a range or table */
    uint32_t *ids;  /* of a range or vector: register of each number and lane + 1, 0: not used
                       yet; of targets: functions */
    ptx_var *var;
    const ptx_signature *sig; /* of a prototype or targets of calls */
};

typedef struct ptx_pattern_item {
    char letter; /* 0 at the end */
    bool piped, optional;
} ptx_pattern_item;

/* The operands of a row. */
typedef struct ptx_pattern {
    ptx_pattern_item items[PTX_MAX_OPERANDS + 1];
    uint8_t least, most;
} ptx_pattern;

/* A row that matches the dot-parts of a mnemonic. */
typedef struct ptx_match {
    uint16_t row;
    uint8_t t, u;
    uint8_t mod[PTX_G_COUNT];
    ptx_need need;
    const char *never; /* not NULL: PTX has no such form; the text says what is expected */
    ptx_pattern pattern;
    ptx_insn form; /* an instruction of this form, as far as the mnemonic determines it */
} ptx_match;

#define PTX_MAX_MATCHES 4

/* A mnemonic at its dots: the name first. */
typedef struct ptx_parts {
    unsigned count;
    const char *at[PTX_MAX_PARTS];
    uint32_t length[PTX_MAX_PARTS];
} ptx_parts;

/* All rows that match a mnemonic; cached, since few mnemonics differ. */
typedef struct ptx_mnemonic ptx_mnemonic;
struct ptx_mnemonic {
    ptx_mnemonic *next;
    const char *text; /* NUL-terminated */
    const char *name; /* the same text, owned by the `module`-th module of these words */
    uint64_t module;
    uint32_t length, hash;
    unsigned count;
    ptx_match matches[PTX_MAX_MATCHES];
};

typedef struct ptx_fixup {
    uint32_t insn;
    uint32_t *place; /* NULL: the target of `insn` */
    uint32_t scope;
    const char *name;
    uint32_t length;
} ptx_fixup;

/* End of the shared variables: packed as on the chip, and the gaps that the virtual machine adds
 * between them, both in bytes. */
typedef struct ptx_shared_end {
    uint64_t packed, gaps;
} ptx_shared_end;

#define PTX_BUCKETS 1024

/* Numbers of rules in ptx_since.def and ptx_never.def. */
enum {
    PTX_SINCE_COUNT = 0
#define PTX_SINCE(names, parts, ptx, sm) +1
#include "fitness/ptx/ptx_since.def"
#undef PTX_SINCE
    ,
    PTX_NEVER_COUNT = 0
#define PTX_NEVER(names, parts, expected) +1
#include "fitness/ptx/ptx_never.def"
#undef PTX_NEVER
};

/* First letters of each rule's names, as bits, to reject a mnemonic quickly. */
typedef struct ptx_letters {
    uint32_t since[PTX_SINCE_COUNT], never[PTX_NEVER_COUNT];
} ptx_letters;

struct vm_words {
    ev_arena *arena;
    uint64_t modules; /* loaded so far, the present one included */
    size_t count;
    ptx_mnemonic *mnemonics[PTX_BUCKETS];
    uint16_t first_row[PTX_OP_COUNT]; /* rows chained by base name */
    uint16_t next_row[PTX_OP_COUNT];
    ptx_letters letters;
};

typedef struct ptx_loader {
    ptx_lexer lex;
    vm_module *m;
    ev_arena *arena;
    ev_error *err;
    bool failed; /* `err` has the message */
    bool oom;
    ptx_symbol *buckets[PTX_BUCKETS];
    ptx_symbol *scopes[64];
    uint32_t scope;
    vm_words *words;
    bool digit_ranges;      /* some register range has a name that ends in a digit */
    ptx_symbol *ranges[32]; /* cache of ranges, by the last letter of their names */
    bool reads_workspace;   /* %envreg1 or %envreg2 */
    bool reads_reserved;    /* some %reserved_smem_offset */
    bool has_vectors;       /* some register is a vector */
    bool selects;           /* the instruction being read may have selectors and signs */
    bool independent;       /* textures and samplers have variables of their own */
    bool digit_names;       /* some other name begins with % and ends in a digit */
    ptx_fixup *fixups;
    size_t fixup_count, fixup_capacity;
    size_t code_capacity, cold_capacity, reg_capacity, func_capacity, call_capacity, reloc_capacity;
    size_t branches_capacity;
    size_t fragment_capacity;
    ptx_func *func; /* being read */
    uint32_t func_index;
    size_t const_capacity, sreg_capacity;
    vm_placement placement;
    uint32_t dynamic_align;       /* the largest of .extern .shared variables; 0: none */
    uint32_t local_moved;         /* bytes that VM_PLACE_ODD adds to the function's depot */
    ptx_shared_end shared_module; /* of module-scope shared variables, and of functions */
    uint64_t shared_most;         /* where the entries above end */
    ptx_shared_end shared_func;   /* of those of the function being read, and all of device
                                     functions */
    uint32_t source_line;
    bool after_control;            /* nothing falls from the last instruction into what follows */
    uint32_t label_at_end;         /* pc of the newest label */
    uint32_t pred_slot, pred_left; /* predicates share 64-byte blocks */
} ptx_loader;

/* Grows *array of `size`-byte elements so that index `count` exists; false when memory runs out. */
bool ptx_grow(ptx_loader *L, void **array, size_t *capacity, size_t count, size_t size);
/* Writes "NAME:LINE:COLUMN: " and the message; only the first failure is kept. Returns false. */
bool ptx_fail_at(ptx_loader *L, const char *at, const char *format, ...) EV_PRINTF(3, 4);
/* "found ...; expected WHAT" at the current token. Returns false. */
bool ptx_fail_expected(ptx_loader *L, const char *what);
/* The same for the operand at `at`. */
bool ptx_fail_operand(ptx_loader *L, const char *at, const char *format, ...) EV_PRINTF(3, 4);
/* Fails with the message of ptx_absent.def if `at` is listed there. False: it is not listed. */
bool ptx_fail_absent(ptx_loader *L, const char *at, size_t length);
/* The same for a name that stands elsewhere than `at`, the place that the message has. */
bool ptx_fail_absent_name(ptx_loader *L, const char *at, const char *name, size_t length);
bool ptx_fail_punct(ptx_loader *L, char punct);

static inline bool ptx_accept(ptx_loader *L, char punct) {
    if (!ptx_lex_is(&L->lex, punct))
        return false;
    ptx_lex_next(&L->lex);
    return true;
}
static inline bool ptx_expect(ptx_loader *L, char punct) {
    return ptx_accept(L, punct) || ptx_fail_punct(L, punct);
}

uint32_t ptx_hash(const char *text, size_t length);
ptx_symbol *ptx_symbol_find(ptx_loader *L, const char *name, uint32_t length);
ptx_symbol *ptx_symbol_add(ptx_loader *L, const char *name, uint32_t length, ptx_symbol_kind kind);
bool ptx_scope_enter(ptx_loader *L);
bool ptx_scope_leave(ptx_loader *L);
/* The register of a name, or PTX_NONE. */
uint32_t ptx_register_find(ptx_loader *L, const char *name, uint32_t length);
uint32_t ptx_register_new(ptx_loader *L, const char *name, uint32_t length, unsigned bits);
/* The range that has a member of that name, and its number there; NULL: none. */
ptx_symbol *ptx_range_find(ptx_loader *L, const char *name, uint32_t length, uint32_t *out);
/* Vector registers (ptx_vector.c). The register of "v.x", or PTX_NONE: */
uint32_t ptx_lane_find(ptx_loader *L, const char *name, uint32_t length);

/* Slots of the function being read. */
/* The first place for a variable of that alignment at `from` or behind it, by the placement. */
uint64_t ptx_place_at(const ptx_loader *L, uint64_t from, uint32_t align);
uint32_t ptx_slot_new(ptx_loader *L, unsigned bits);
uint32_t ptx_slot_const(ptx_loader *L, unsigned bits, uint64_t value, unsigned base);
uint32_t ptx_slot_sreg(ptx_loader *L, ptx_sreg sreg);

/* An instruction statement: guard, mnemonic, operands, semicolon. */
bool ptx_parse_instruction(ptx_loader *L);
bool ptx_parse_number(ptx_loader *L, int64_t *out);
bool ptx_parse_operand(ptx_loader *L, ptx_operand *out);
/* Textures and surfaces (ptx_texture.c). */
bool ptx_parse_opaque(ptx_loader *L, vm_space space, uint8_t *kind);
bool ptx_init_opaque(ptx_loader *L, ptx_var *v);
bool ptx_parse_texel(ptx_loader *L, const ptx_operand *base, ptx_operand *out);
/* The operands of a call, after its mnemonic. */
bool ptx_parse_call(ptx_loader *L, ptx_insn *insn);
/* The bits of a literal operand as type t; false with a message. */
bool ptx_literal_bits(ptx_loader *L, const ptx_operand *o, ptx_type t, uint64_t *out);
/* Writes the pc of a label to *place (NULL: into the next instruction), once the pc is known. */
bool ptx_label_fixup(ptx_loader *L, const ptx_operand *o, uint32_t *place);
/* Rows that match the mnemonic at the current token; NULL with a message. */
const ptx_mnemonic *ptx_mnemonic_find(ptx_loader *L);
/* Whether one item of a row's format takes a part; if so, sets in m what the part says. */
bool ptx_item_fits(const ptx_op *op, const char *item, size_t length, const char *part,
                   uint32_t part_length, ptx_match *m);
/* Parts in another order than the format's (ptx_order.c). */
typedef enum ptx_order {
    PTX_ORDER_NONE,    /* the parts do not fit the row in any order */
    PTX_ORDER_REFUSED, /* they do, but the assembler refuses theirs (ptx_order.def) */
    PTX_ORDER_TAKEN,
} ptx_order;
/* Writes the parts in the order of the row's format, unless it returns PTX_ORDER_NONE. */
ptx_order ptx_order_of(const ptx_op *op, const ptx_parts *given, ptx_parts *sorted);
typedef struct ptx_order_rule {
    const char *names, *kind, *parts;
} ptx_order_rule;
bool ptx_order_get(size_t index, ptx_order_rule *out); /* false: no more rules */
/* Call at the begin of a module. */
void ptx_words_begin(vm_words *words);
void ptx_letters_make(ptx_letters *letters);
/* PTX version and target that an instruction needs, by its row and its full name (ptx_since.def).
 */
ptx_need ptx_since(const ptx_letters *letters, const ptx_op *op, const char *mnemonic);
/* The text on what is expected, if PTX has no such form (ptx_never.def); NULL: the form exists. */
const char *ptx_never(const ptx_letters *letters, const char *mnemonic, const ptx_match *m);
typedef struct ptx_never_rule {
    const char *names, *parts, *expected;
} ptx_never_rule;
bool ptx_never_get(size_t index, ptx_never_rule *out); /* false: no more rules */
/* Checks that the module's .version and .target suffice for `name`; false with a message. */
bool ptx_allowed(ptx_loader *L, const char *at, const char *name, ptx_need need);
/* The same for the directive that is the current token, if it is one of ptx_since.def. */
bool ptx_directive_allowed(ptx_loader *L);
bool ptx_instruction_allowed(ptx_loader *L, const char *at, const char *name, const ptx_match *m);
/* Appends an instruction; its pc, or PTX_NONE. */
uint32_t ptx_emit(ptx_loader *L, const ptx_insn *insn, const ptx_cold *cold);
/* The form of such instructions, from the row and the modifiers. */
void ptx_make_form(ptx_match *match);
/* Checks operands against the match's pattern and fills slots. */
bool ptx_decode(ptx_loader *L, const ptx_match *match, ptx_operand *operands, unsigned count,
                const char *at, ptx_insn *insn);
/* An instruction while it is decoded. */
typedef struct ptx_decoding {
    ptx_loader *L;
    const ptx_match *m;
    const ptx_op *op;
    ptx_insn *insn;
    unsigned sources; /* filled so far: a, b, c, e */
    const char *at;   /* of the mnemonic */
} ptx_decoding;
bool ptx_check_register(ptx_decoding *d, const ptx_operand *o, unsigned bits);
/* Slots of the address of a variable, and of a source operand of type t; PTX_NONE with a message.
 */
uint32_t ptx_symbol_slot(ptx_decoding *d, const ptx_operand *o, unsigned bits);
uint32_t ptx_source(ptx_decoding *d, const ptx_operand *o, ptx_type t);
/* Instructions of textures and surfaces (ptx_texture.c): before the operands, and an operand of a
 * letter of their own in the pattern. */
void ptx_texture_prepare(const ptx_match *m, ptx_insn *insn);
bool ptx_put_texture(ptx_decoding *d, char letter, const ptx_operand *o);
/* Video instructions (ptx_video.c): what the mnemonic determines, the selector of the destination,
 * a source's selector or sign, and what the operands must agree in. */
void ptx_video_prepare(const ptx_match *m, ptx_insn *insn);
bool ptx_video_mask(ptx_decoding *d, const ptx_operand *o);
bool ptx_video_source(ptx_decoding *d, char letter, const ptx_operand *o);
bool ptx_video_finish(ptx_decoding *d, const ptx_operand *operands, unsigned count);
/* Matrix instructions (ptx_tensor.c): the registers of one operand, by its letter in the pattern;
 * what is decoded before the operands (false with a message) and after them. */
typedef struct ptx_fragment {
    unsigned count;
    ptx_type type; /* of a register: b32, s32, f32 or f64 */
} ptx_fragment;
ptx_fragment ptx_fragment_of(const ptx_match *match, char letter);
bool ptx_tensor_prepare(ptx_loader *L, const ptx_match *match, const char *at, ptx_insn *insn);
bool ptx_tensor_finish(ptx_loader *L, const ptx_match *match, const char *at, ptx_insn *insn);
/* Marks the accesses of [first, end) that can reuse an earlier access's look (ptx_looks.c). */
void ptx_share_looks(vm_module *m, uint32_t first, uint32_t end);
/* Marks the accesses to shared memory that the assembler joins (ptx_join.c). False: out of memory.
 */
bool ptx_join_shared(vm_module *m);
/* Lists the registers that each instruction uses and writes (ptx_info.c). False: out of memory. */
bool ptx_list_touched(ptx_loader *L);
/* Finds the parts of each function's frame to clear before the next warp (ptx_first.c). False: out
 * of memory. */
bool ptx_find_cleared(ptx_loader *L);
ev_status ptx_finish(ptx_loader *L);

/* A pattern as the ISA writes operands: "d[|p], a, b". */
void ptx_pattern_text(const char *pattern, char *out, size_t size);
const char *ptx_pattern_next(const char *pattern, ptx_pattern_item *item);
void ptx_pattern_read(const char *pattern, ptx_pattern *out);

#endif
