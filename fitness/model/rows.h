/* Rows: the facts of each instruction for the scoreboard, made once a launch. */
#ifndef FITNESS_MODEL_ROWS_H
#define FITNESS_MODEL_ROWS_H

#include "fitness/model/insns.h"
#include "fitness/model/model.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum row_kind {
    ROW_PLAIN,   /* result after `latency` */
    ROW_FOLDED,  /* no machine instruction: its result is ready when its operands are */
    ROW_LOAD,    /* global or generic */
    ROW_STORE,   /* global or generic */
    ROW_LOCAL,   /* load or store of local memory */
    ROW_SHARED,  /* load or store of shared memory */
    ROW_ATOMIC,  /* global */
    ROW_BARRIER, /* of the block, and waited for */
    ROW_EXIT,    /* lanes end */
} row_kind;

typedef struct model_row {
    uint32_t operands; /* into model_rows.operands: uses, then defs */
    uint8_t use_count, def_count;
    uint8_t kind;
    uint8_t pipe;
    uint8_t slots;        /* machine instructions */
    uint8_t access_bytes; /* a lane */
    bool bypasses_l1;
    bool is_joined;       /* its slot and its request are those of an earlier access
                             (fitness/ptx/ptx_join.c) */
    bool is_guarded;      /* predicated, and stepped over where no lane takes it (blocks.c) */
    uint16_t latency;     /* cycles until a dependent instruction may issue */
    uint16_t interval;    /* cycles until the same warp may use the pipe again */
    uint8_t reason;       /* model_term of a wait for the result */
    uint8_t term;         /* model_term of pipe_cycles; MODEL_TERM_COUNT: none */
    float pipe_cycles;    /* of the pipe of an SM, a warp execution */
    float special_cycles; /* of the special-function pipe beside it */
} model_row;

typedef struct model_rows {
    model_row *rows; /* by pc */
    uint32_t count;
    const uint16_t *operands;
    uint32_t register_count;
} model_rows;

static inline bool model_row_is_access(const model_row *row) {
    return row->kind >= ROW_LOAD && row->kind <= ROW_ATOMIC;
}
/* g NULL: latencies in round figures, no throughputs. The operands are borrowed from `insns`. */
ev_status model_rows_make(const gpu *g, const model_insns *insns, model_rows *out,
                          ev_error *err) EV_CHECKED;
/* The cost of a mnemonic in machine instructions (costs.def). */
const model_cost *model_cost_of(const char *name);
void model_rows_free(model_rows *rows);
/* The term that a pipe's throughput counts to; MODEL_TERM_COUNT: none of its own. */
model_term model_pipe_term(vm_pipe pipe);

#endif
