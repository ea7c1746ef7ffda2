/* The table of what structural edits can be drawn with (ir/structure.def). Private to ir/. */
#ifndef IR_STRUCTURE_TABLE_H
#define IR_STRUCTURE_TABLE_H

#include "ir/edit.h"

#define IR_STRUCTURE_OPTIONS 10
#define IR_STRUCTURE_FOLLOWERS 4

/* The order in which structural edits usually stand in a prefix. */
typedef enum ir_phase {
    IR_PHASE_PLACES,    /* what a thread's place stands for */
    IR_PHASE_DIVIDE,    /* the work among threads and blocks */
    IR_PHASE_MOVE,      /* loops */
    IR_PHASE_STAGE,     /* tiles in shared memory */
    IR_PHASE_LAYOUT,    /* of shared arrays */
    IR_PHASE_COPY,      /* copies of the kernel for some arguments or blocks */
    IR_PHASE_UNROLL,    /* several turns at a time */
    IR_PHASE_PIPELINE,  /* loads ahead of their turn */
    IR_PHASE_WRITE_OUT, /* all turns */
    IR_PHASE_GROUP,     /* loads that go out together */
    IR_PHASE_RELABEL    /* threads and blocks */
} ir_phase;

/* What an edit does to the work of blocks. */
typedef enum ir_division {
    IR_WORK_KEPT,
    IR_WORK_DIVIDED, /* anew */
} ir_division;

/* What an edit is to other edits. */
typedef enum ir_opening {
    IR_FINISHES,
    IR_OPENS,     /* it makes places for them */
    IR_UNDERLIES, /* it does, and may change no time itself */
} ir_opening;

typedef struct ir_structure_row {
    ir_edit_kind kind;
    ir_division work;
    ir_opening opening;
    ir_anchor_kind anchors[IR_STRUCTURE_OPTIONS];
    int64_t options[IR_STRUCTURE_OPTIONS]; /* none is 0 */
    ir_form forms[IR_FORM_COUNT];
    size_t anchor_count, option_count, form_count;
    ir_phase phase;
    ir_edit_kind
        followers[IR_STRUCTURE_FOLLOWERS]; /* the last one IR_EDIT_COUNT: none, or no more */
    size_t follower_count;
} ir_structure_row;

/* The row of a structural edit. */
const ir_structure_row *ir_structure_row_of(ir_edit_kind kind);
/* Number of pairs of option and form. */
size_t ir_structure_ways(const ir_structure_row *row);
/* Sets option and form of an edit to those of pair `way`. */
void ir_structure_set_way(const ir_structure_row *row, size_t way, ir_edit *edit);

#endif
