/* Edits as plain values, free of LLVM. Private to ir/.
 *
 * Names of instructions: a base instruction is its number; an inserted instruction is the tag of
 * its edit and a part, counted from 0; `self` is the edit that holds the name. The tag is the first
 * 64 bits of the edit's key, so it is not stored, and equal edits have equal tags everywhere.
 *
 * JSON of an edit: {"kind":"copy","at":"i12","to":"i40","operand":1,"option":2,"use":["i41",0],
 * "value":"a3","repairs":[["i50",0,"t0123456789abcdef.0"],["i51",1,0.5]]}; keys that do not apply
 * are left out. A structural edit has {"kind":"coarsen","anchor":"y","option":4,"form":"strided"}.
 * A value is "iN", "tTAG.N" or "self.N" (instructions), "aN" (argument), an integer or a real
 * (constant of the type that its use has). */
#ifndef IR_EDIT_H
#define IR_EDIT_H

#include "ir/genome.h"

typedef enum ir_name_kind {
    IR_NAME_NONE,
    IR_NAME_BASE,  /* number */
    IR_NAME_ADDED, /* tag, number = part */
    IR_NAME_SELF   /* number = part */
} ir_name_kind;

typedef struct ir_name {
    ir_name_kind kind;
    uint32_t number;
    uint64_t tag;
} ir_name;

typedef enum ir_value_kind {
    IR_VALUE_NONE,
    IR_VALUE_INSN,
    IR_VALUE_ARG,
    IR_VALUE_INT,
    IR_VALUE_REAL
} ir_value_kind;

typedef struct ir_value {
    ir_value_kind kind;
    ir_name insn;
    uint32_t arg;
    int64_t integer;
    double real;
} ir_value;

typedef struct ir_use {
    ir_name user; /* IR_NAME_NONE: no use */
    uint32_t operand;
} ir_use;

/* The place of a structural edit. It is named by what the source has, so that it outlives other
 * edits. */
typedef enum ir_anchor_kind {
    IR_ANCHOR_NONE,
    IR_ANCHOR_DIMENSION, /* "x", "y", "z": number 0 to 2 */
    IR_ANCHOR_LOOP,      /* "loop 0.1": the second loop in the first outermost one */
    IR_ANCHOR_ARGUMENT,  /* "a3" */
    IR_ANCHOR_SHARED,    /* "s0": the first shared array of the kernel */
    IR_ANCHOR_DIVISOR    /* "x by w": the index along x where w divides it */
} ir_anchor_kind;

#define IR_ANCHOR_PATH 64

typedef struct ir_anchor {
    ir_anchor_kind kind;
    uint32_t number;
    char path[IR_ANCHOR_PATH]; /* of a loop, "0.1"; of a divisor, "w" or "(w + 1) / 2" */
} ir_anchor;

/* The form of a structural edit that has several; "strided" and so on in JSON. */
typedef enum ir_form {
    IR_FORM_NONE,
    IR_FORM_STRIDED,
    IR_FORM_NEIGHBOURS,
    IR_FORM_FAR,
    IR_FORM_PADDED,
    IR_FORM_EQUAL,
    IR_FORM_MULTIPLE,
    IR_FORM_KEPT,
    IR_FORM_INTERIOR,
    IR_FORM_GUARDED,
    IR_FORM_MEMBERS,
    IR_FORM_BALANCED,
    IR_FORM_NESTED,
    IR_FORM_COUNT
} ir_form;

typedef struct ir_repair {
    ir_use use;
    ir_value value;
} ir_repair;

typedef struct ir_edit {
    ir_edit_kind kind;
    ir_name at; /* the edited instruction */
    ir_name to; /* the second instruction, or the place: before this instruction */
    bool has_operand;
    uint32_t operand;
    bool has_option;
    int64_t option; /* its meaning depends on the kind */
    ir_use use;     /* the use that takes the inserted value */
    ir_value value;
    ir_anchor anchor; /* of a structural edit */
    ir_form form;
    ir_repair *repairs;
    size_t repair_count;
    ev_sha256 key; /* set by ir_edit_seal */
    uint64_t tag;
} ir_edit;

#define IR_NAME_TEXT 32 /* bytes that hold any name's text */

void ir_name_print(const ir_name *name, char text[IR_NAME_TEXT]);
bool ir_name_equal(const ir_name *a, const ir_name *b);

/* Computes key and tag from the rest; false: out of memory. */
bool ir_edit_seal(ir_edit *edit);
bool ir_edit_copy(const ir_edit *from, ir_edit *to); /* deep; false: out of memory */
void ir_edit_clear(ir_edit *edit);                   /* frees what it holds */
bool ir_edit_add_repair(ir_edit *edit, ir_repair repair);
/* True if the edit leaves no use to repair, and so is complete before it is applied. */
bool ir_edit_only_marks(ir_edit_kind kind);

/* The text of an anchor, such as "loop 0.1". */
#define IR_ANCHOR_TEXT (IR_ANCHOR_PATH + 8)
void ir_anchor_print(const ir_anchor *anchor, char text[IR_ANCHOR_TEXT]);
const char *ir_form_name(ir_form form);

/* The first axis behind `axis` along which a launch has one block of one thread; IR_AXES: none. */
enum { IR_AXES = 3 };
uint32_t ir_genome_unused_axis(const launch_rule *rule, uint32_t axis);
/* The axis that gives or takes threads when a block gets others along `axis` and keeps their
 * number: the last other one along which a block has more than one thread, else the last along
 * which the grid has more than one block. IR_AXES: none. */
uint32_t ir_genome_partner_axis(const launch_rule *rule, uint32_t axis);
/* The launch plan after one structural edit of a kernel with the plan `from`; *out is `from`, or
 * lives in the arena. */
ev_status ir_genome_plan_step(const ir_edit *edit, const launch_plan *from, ev_arena *arena,
                              const launch_plan **out, ev_error *err) EV_CHECKED;

const ir_edit *ir_genome_edit(const ir_genome *genome, size_t index);
/* Appends `edit` and takes over its repairs; an earlier edit of the same knob is removed. A
 * structural edit goes to the end of the prefix. */
bool ir_genome_append(ir_genome *genome, ir_edit edit);

json_t *ir_edit_to_json(const ir_edit *edit);
ev_status ir_edit_from_json(const json_t *json, ir_edit *out, ev_error *err) EV_CHECKED;

#endif
