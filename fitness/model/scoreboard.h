/* Scoreboard: the issue cycles of a warp's instructions, and the reasons of its waits. */
#ifndef FITNESS_MODEL_SCOREBOARD_H
#define FITNESS_MODEL_SCOREBOARD_H

#include "fitness/model/rows.h"
#include "fitness/model/schedule.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- states.c: states of warps, and steps, which are the effects of blocks of code on states ----
 */

typedef struct model_states model_states;

typedef struct model_step {
    uint32_t state, block; /* 0, none: empty */
    uint32_t memory;       /* index of its accesses' times in model_steps_memory */
    uint32_t next;         /* state after it */
    uint32_t clock, wait;  /* increments of the warp's */
    uint32_t *uses;        /* of the outcome, by kind of block; NULL: it is a wait */
} model_step;

ev_status model_states_make(model_states **out, ev_error *err) EV_CHECKED;
/* Forgets all states and steps. `words`: length of a state's vector from now on. */
void model_states_begin(model_states *states, uint32_t words);
void model_states_free(model_states *states); /* NULL is fine */
/* True if steps are found often enough to pay. */
bool model_states_help(const model_states *states);
/* The number of a state, from 1; 0: no room for another. */
uint32_t model_states_number(model_states *states, const uint64_t *vector);
const uint64_t *model_states_get(const model_states *states, uint32_t state);
/* `memory`: the times of the block's `count` accesses; NULL: not known. */
model_step *model_steps_find(model_states *states, uint32_t state, uint32_t block,
                             const uint64_t *memory, uint32_t count);
/* The times of all steps' accesses. */
const uint64_t *model_steps_memory(const model_states *states);
/* True if this is the step of that state, block and times. `kept`: model_steps_memory. */
static inline bool model_step_is(const uint64_t *kept, const model_step *step, uint32_t state,
                                 uint32_t block, const uint64_t *memory, uint32_t count) {
    if (step->state != state || step->block != block)
        return false;
    uint64_t differ = 0;
    for (uint32_t i = 0; i < count; i++)
        differ |= kept[step->memory + i] ^ memory[i];
    return differ == 0;
}
/* Adds a step that was not found. */
void model_steps_add(model_states *states, const model_step *step, const uint64_t *memory,
                     uint32_t count);
/* Forgets all steps; numbers of states stay valid. */
void model_steps_forget(model_states *states);

/* ---- scoreboard.c ---- */

/* A time is cycles << MODEL_REASON_BITS | the model_term of the awaited result. One maximum then
 * gives the time and its reason. */
#define MODEL_REASON_BITS 5

/* Kinds of blocks with separate sums of waits: blocks that stand for one block of the grid, blocks
 * that stand for several, and each leader, which stands for the blocks that repeat it. */
#define MODEL_LEADERS 6
#define MODEL_KINDS (2 + MODEL_LEADERS)

typedef struct board_warp {
    uint32_t state; /* number of its state, which then holds its times and pipe_free; or 0 */
    uint64_t clock; /* cycle of the last issue, plus one */
    uint64_t wait;  /* cycles saved on its path if loads from DRAM hit the L2 */
    uint64_t pipe_free[VM_PIPE_COUNT];
    bool is_ready; /* its registers have times */
} board_warp;

typedef struct model_board model_board;
typedef struct model_tables model_tables; /* tables of outcomes, used by one board after another */

ev_status model_tables_make(model_tables **out, ev_error *err) EV_CHECKED;
void model_tables_free(model_tables *tables); /* NULL is fine */
/* `dram_extra`: latency of DRAM minus that of the L2, in cycles. Rows, schedule and tables are
 * borrowed; no other board may use the tables meanwhile. */
ev_status model_board_make(const model_rows *rows, const model_schedule *schedule,
                           uint64_t dram_extra, model_tables *tables, model_board **out,
                           ev_error *err) EV_CHECKED;
void model_board_free(model_board *board); /* NULL is fine; the tables are empty then */
/* Executes straight-line code, the pcs of [first, end): a whole block in the schedule's order,
 * other code in the order of the text. `ready`: the warp's time for each register. `memory`, by pc
 * - first: the latency of each access. */
void model_board_follow(model_board *board, board_warp *w, uint64_t *ready, uint32_t first,
                        uint32_t end, const uint64_t *memory, unsigned kind);
/* Accesses of a block of code that begins at `first`. */
uint32_t model_board_accesses(const model_board *board, uint32_t first);
/* The same for the block of code at `first`, if its effect on the warp's state is known. Returns
 * the step, valid until steps are forgotten; NULL: not known, and nothing was done. `times`: of its
 * accesses. */
model_step *model_board_recall(model_board *board, board_warp *w, uint32_t first,
                               const uint64_t *times, unsigned kind);
/* Takes a step. The caller has checked that it fits the warp's state and the times of its accesses.
 */
static inline void model_step_take(board_warp *w, const model_step *step, unsigned kind) {
    w->state = step->next;
    w->clock += step->clock;
    w->wait += step->wait;
    step->uses[kind]++;
}
/* A number that changes whenever steps are forgotten. */
uint32_t model_board_epoch(const model_board *board);
/* Initialises a warp. `ready`: as for model_board_follow. */
void model_board_start(const model_board *board, board_warp *w, uint64_t *ready);
/* Lets the warp wait until `clock`. `ready`: as for model_board_follow. *hint: the
 * step found last, or NULL. */
void model_board_wait(model_board *board, board_warp *w, uint64_t *ready, uint64_t clock,
                      model_step **hint);
/* Adds a wait of another cause, by pc alone. */
void model_board_note(model_board *board, unsigned kind, uint32_t pc, model_term term,
                      uint64_t cycles);
/* Also counts waits by pc from now on. */
ev_status model_board_watch(model_board *board, ev_error *err) EV_CHECKED;
/* Adds the waited cycles by term, by pc if watched, and by both if `sites` is not NULL. Call once,
 * at the end. */
void model_board_stalls(model_board *board, const double weights[MODEL_KINDS], double *by_pc,
                        double *by_term, model_site *sites);

#endif
