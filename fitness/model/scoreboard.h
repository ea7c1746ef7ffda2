/* Scoreboard: when a warp's instructions issue, and what they wait for. */
#ifndef FITNESS_MODEL_SCOREBOARD_H
#define FITNESS_MODEL_SCOREBOARD_H

#include "fitness/model/rows.h"
#include "fitness/model/schedule.h"
#include "fitness/model/states.h"

#include <stdbool.h>
#include <stdint.h>

/* A time: cycles << MODEL_REASON_BITS | model_term of what is waited for, so that one maximum gives
 * both. */
#define MODEL_REASON_BITS 5

/* Kinds of blocks, whose waits are summed apart: those that stand for one block of the grid each,
 * those for several, and each block that others repeat, which stands for them too. */
#define MODEL_LEADERS 6
#define MODEL_KINDS (2 + MODEL_LEADERS)

typedef struct board_warp {
    uint32_t
        state; /* number of its state: then its times and pipe_free are there, not here; or 0 */
    uint64_t clock; /* cycle of the last issue, plus one */
    uint64_t wait;  /* cycles that its path would be shorter by if loads from DRAM hit the L2 */
    uint64_t pipe_free[VM_PIPE_COUNT];
    bool is_ready; /* its registers' times were written */
} board_warp;

typedef struct model_board model_board;
typedef struct model_tables model_tables; /* where one board after another keeps outcomes */

ev_status model_tables_make(model_tables **out, ev_error *err) EV_CHECKED;
void model_tables_free(model_tables *tables); /* NULL is fine */
/* `dram_extra`: cycles that DRAM is further than the L2. Rows, schedule and tables are borrowed; no
 * other board has the tables meanwhile. */
ev_status model_board_make(const model_rows *rows, const model_schedule *schedule,
                           uint64_t dram_extra, model_tables *tables, model_board **out,
                           ev_error *err) EV_CHECKED;
void model_board_free(model_board *board); /* NULL is fine; the tables are empty then */
/* The warp executes the pcs of [first, end), straight-line code: in the schedule's order where it
 * is a whole block, else as it stands. `ready`: the warp's time for each register; `memory`: for
 * each access, by pc - first, the time until its result is there. */
void model_board_follow(model_board *board, board_warp *w, uint64_t *ready, uint32_t first,
                        uint32_t end, const uint64_t *memory, unsigned kind);
/* Accesses of a block of code that begins at `first`. */
uint32_t model_board_accesses(const model_board *board, uint32_t first);
/* The same for the block of code at `first`, where what it makes of the warp's state is known: the
 * step that it took, which stays until steps are forgotten; NULL: it is not known, and nothing was
 * done. `times`: of its accesses. */
model_step *model_board_recall(model_board *board, board_warp *w, uint32_t first,
                               const uint64_t *times, unsigned kind);
/* Takes the step of a block, known to be of the warp's state and the times of its accesses. */
static inline void model_step_take(board_warp *w, const model_step *step, unsigned kind) {
    w->state = step->next;
    w->clock += step->clock;
    w->wait += step->wait;
    step->uses[kind]++;
}
/* Another one when steps were forgotten since. */
uint32_t model_board_epoch(const model_board *board);
/* A warp that has done nothing. `ready`: as above. */
void model_board_start(const model_board *board, board_warp *w, uint64_t *ready);
/* The warp waits until `clock`; `ready`, *step: as above. */
void model_board_wait(model_board *board, board_warp *w, uint64_t *ready, uint64_t clock,
                      model_step **hint);
/* A wait that is not the scoreboard's own; by pc alone. */
void model_board_note(model_board *board, unsigned kind, uint32_t pc, model_term term,
                      uint64_t cycles);
/* From now on waits are counted by pc as well. */
ev_status model_board_watch(model_board *board, ev_error *err) EV_CHECKED;
/* Adds the cycles waited so far, by term, and, where it is watched, by pc and, where sites are not
 * NULL, by both. Once, at the end. */
void model_board_stalls(model_board *board, const double weights[MODEL_KINDS], double *by_pc,
                        double *by_term, model_site *sites);

#endif
