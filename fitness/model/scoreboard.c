/* Scoreboard: the cycle in which each instruction of a warp issues, and the reason for each wait.
 *
 * The model is an in-order scoreboard with one ready time a register; the term is from the CDC
 * 6600 (Thornton, "Design of a Computer: The Control Data 6600", 1970). An instruction issues when
 * its operands are ready and its pipe is free of the warp's own earlier instructions. Other warps
 * do not delay the warp here: model.c adds contention as throughput terms. A time is a 64-bit
 * number: the cycle in the upper bits, the reason (a model_term) in the lower MODEL_REASON_BITS.
 *
 * The function `step` is the whole simulation of one instruction. The rest of the file memoises
 * `step` at two levels.
 *
 * Outcomes: the effect of a straight-line block depends only on the block's inputs relative to the
 * warp's clock. The inputs are the ready times of the registers that the block reads before it
 * writes them, the busy times of its pipes, and the times of its memory accesses. Loops repeat the
 * same inputs, so `follow_kept` stores the effect under that key and applies it again. Times up to
 * the clock count as zero, because they delay nothing. A memoised outcome therefore equals the
 * simulated one bit for bit.
 *
 * Steps: states.c numbers the whole state of a warp. A step maps (state, block, access times) to
 * the next state. `follow_block` looks for a step first: a hit needs no key. Stall counts of
 * memoised outcomes are added up when the tables are emptied and at the end (`settle`). */
#include "fitness/model/scoreboard.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define REASON_MASK ((UINT64_C(1) << MODEL_REASON_BITS) - 1)
_Static_assert(MODEL_TERM_COUNT <= 1 << MODEL_REASON_BITS, "reasons fit");

#define LEAST_KEYED 6     /* instructions of a block that is worth a key */
#define MOST_KEY 160      /* words */
#define SLOTS 4096        /* outcomes kept, a power of two */
#define PROBES 8          /* places looked at for one */
#define ARENA_WORDS 98304 /* for their keys and values */
#define TRIED_OFTEN                                                                                \
    512 /* after so many tries, a block that was found in less than a quarter is                   \
         */
        /* not looked for again */

typedef struct board_block {
    uint32_t first, end;
    uint32_t inputs, pipes, accesses, outputs; /* into board.lists */
    uint32_t input_count, pipe_count, access_count, output_count;
    uint32_t tries, hits;
    bool kept, keyed; /* its outcomes; also where the warp's state has no number */
    model_step *step; /* found last; or NULL */
} board_block;

typedef struct outcome {
    uint64_t hash;
    uint32_t block; /* + 1; 0: empty */
    uint32_t at;    /* into board.arena: key, outputs, pipes, waits */
    uint32_t clock, wait;
    uint32_t uses[MODEL_KINDS];
} outcome;

struct model_tables {
    model_states *states;
    outcome slots[SLOTS]; /* empty between boards */
    uint32_t taken[SLOTS];
    uint64_t arena[ARENA_WORDS];
};

struct model_board {
    const model_rows *rows;
    const model_schedule *schedule;
    uint64_t dram_extra;
    board_block *blocks;
    uint32_t block_count;
    uint32_t *block_of; /* by pc of a block's begin */
    uint32_t *lists;
    uint16_t *kept; /* registers of a state: those that some block reads before it writes them */
    uint32_t kept_count;
    model_states *states; /* the tables', as slots, taken and arena are */
    const uint64_t *steps_memory;
    uint32_t begin;   /* state of a warp that has done nothing; 0: there is no room for it */
    uint32_t epoch;   /* counts how often steps were forgotten */
    bool states_help; /* as of the last step that was not found */
    uint64_t *vector; /* of a state being made */
    outcome *slots;
    uint32_t *taken; /* slots that are not empty */
    uint32_t taken_count;
    uint64_t *arena;
    size_t arena_used;
    uint32_t *waits; /* of the block being followed: cycles << bits | reason */
    uint64_t *by_pc; /* [kind][pc][term] cycles; NULL: nobody asks */
    uint64_t stall[MODEL_KINDS][MODEL_TERM_COUNT];
    uint8_t pipe_reason[VM_PIPE_COUNT];
};

/* ---- one instruction after the other ---- */

static inline uint64_t latest(const uint64_t *ready, const uint16_t *uses, unsigned count) {
    uint64_t most = 0;
    for (unsigned i = 0; i < count; i++)
        most = ready[uses[i]] > most ? ready[uses[i]] : most;
    return most;
}

/* Issues not before `wanted`; returns the cycle, and what was waited in *waited. */
static inline uint64_t issue_after(const model_board *board, board_warp *w, uint64_t wanted,
                                   uint64_t *waited) {
    uint64_t cycle = wanted >> MODEL_REASON_BITS;
    *waited = 0;
    if (cycle <= w->clock)
        return w->clock;
    uint64_t delay = cycle - w->clock, reason = wanted & REASON_MASK;
    *waited = delay << MODEL_REASON_BITS | reason;
    if (reason == MODEL_DRAM)
        w->wait += delay < board->dram_extra ? delay : board->dram_extra;
    return cycle;
}

/* Waits, issues, sets when its results are ready; returns what was waited. */
static inline uint64_t step(const model_board *board, board_warp *w, uint64_t *ready,
                            const model_row *row, uint64_t memory) {
    const uint16_t *uses = board->rows->operands + row->operands;
    const uint16_t *defs = uses + row->use_count;
    uint64_t wanted = latest(ready, uses, row->use_count), waited = 0;
    if (row->kind == ROW_FOLDED) {
        for (unsigned i = 0; i < row->def_count; i++)
            ready[defs[i]] = wanted;
        return 0;
    }
    uint64_t busy = w->pipe_free[row->pipe];
    uint64_t at = issue_after(board, w, busy > wanted ? busy : wanted, &waited);
    w->pipe_free[row->pipe] =
        (at + row->interval) << MODEL_REASON_BITS | board->pipe_reason[row->pipe];
    w->clock = at + row->slots;
    uint64_t result = (at << MODEL_REASON_BITS) + memory;
    for (unsigned i = 0; i < row->def_count; i++)
        ready[defs[i]] = result;
    return waited;
}

static uint64_t *waited_at(const model_board *board, unsigned kind, uint32_t pc) {
    return board->by_pc + ((size_t)kind * board->rows->count + pc) * MODEL_TERM_COUNT;
}

static void note_wait(model_board *board, unsigned kind, uint32_t pc, uint64_t waited,
                      uint64_t times) {
    uint64_t cycles = (waited >> MODEL_REASON_BITS) * times;
    if (board->by_pc != NULL)
        waited_at(board, kind, pc)[waited & REASON_MASK] += cycles;
    board->stall[kind][waited & REASON_MASK] += cycles;
}

void model_board_note(model_board *board, unsigned kind, uint32_t pc, model_term term,
                      uint64_t cycles) {
    if (board->by_pc != NULL)
        waited_at(board, kind, pc)[term] += cycles;
}

/* False: a wait was too long to be kept. */
static bool follow_each(model_board *board, board_warp *w, uint64_t *ready, uint32_t first,
                        uint32_t end, const uint64_t *memory, bool in_order, unsigned kind) {
    bool fits = true;
    for (uint32_t at = first; at < end; at++) {
        uint32_t pc = in_order ? board->schedule->order[at] : at;
        const model_row *row = &board->rows->rows[pc];
        uint64_t time = model_row_is_access(row)
                            ? memory[pc - first]
                            : (uint64_t)row->latency << MODEL_REASON_BITS | row->reason;
        uint64_t waited = step(board, w, ready, row, time);
        if (waited)
            note_wait(board, kind, pc, waited, 1);
        board->waits[at - first] = (uint32_t)waited;
        fits &= waited <= UINT32_MAX;
    }
    return fits;
}

/* ---- kept outcomes ---- */

/* A time relative to the clock: 0 for all that is not later. */
static inline uint64_t relative(uint64_t time, uint64_t base) {
    return time >= base + (UINT64_C(1) << MODEL_REASON_BITS) ? time - base : 0;
}
static inline uint64_t absolute(uint64_t time, uint64_t base) {
    return time ? time + base : 0;
}

static uint32_t make_key(const model_board *board, const board_block *b, const board_warp *w,
                         const uint64_t *ready, const uint64_t *memory, uint64_t *key) {
    uint64_t base = w->clock << MODEL_REASON_BITS;
    const uint32_t *inputs = board->lists + b->inputs, *pipes = board->lists + b->pipes;
    const uint32_t *accesses = board->lists + b->accesses;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->input_count; i++)
        key[n++] = relative(ready[inputs[i]], base);
    for (uint32_t i = 0; i < b->pipe_count; i++)
        key[n++] = relative(w->pipe_free[pipes[i]], base);
    for (uint32_t i = 0; i < b->access_count; i++)
        key[n++] = memory[accesses[i]];
    return n;
}

/* Multiplies and folds, four words at a time beside each other. */
static uint64_t hash_key(const uint64_t *key, uint32_t count, uint64_t seed) {
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t a = seed, b = ~seed;
    for (uint32_t i = 0; i + 1 < count; i += 2) {
        a = (a ^ key[i]) * odd;
        b = (b ^ key[i + 1]) * odd;
        a ^= a >> 29;
        b ^= b >> 31;
    }
    if (count & 1)
        a = (a ^ key[count - 1]) * odd;
    a = (a ^ b >> 7) * odd;
    return a ^ a >> 32;
}

static outcome *find_outcome(model_board *board, uint64_t hash, uint32_t block, const uint64_t *key,
                             uint32_t count, outcome **room) {
    *room = NULL;
    for (uint32_t i = 0; i < PROBES; i++) {
        outcome *o = &board->slots[(hash + i) & (SLOTS - 1)];
        if (o->block == 0) {
            *room = o;
            return NULL;
        }
        if (o->hash == hash && o->block == block + 1 &&
            memcmp(board->arena + o->at, key, count * sizeof *key) == 0)
            return o;
    }
    return NULL;
}

static size_t key_words(const board_block *b) {
    return (size_t)b->input_count + b->pipe_count + b->access_count;
}

static const uint32_t *waits_of(const model_board *board, const board_block *b, const outcome *o) {
    const uint64_t *at = board->arena + o->at + key_words(b) + b->output_count + b->pipe_count;
    return (const uint32_t *)(const void *)at;
}

/* What was waited in all uses of the outcomes joins the sums. */
static void settle(model_board *board) {
    for (uint32_t i = 0; i < board->taken_count; i++) {
        const outcome *o = &board->slots[board->taken[i]];
        const board_block *b = &board->blocks[o->block - 1];
        const uint32_t *waits = waits_of(board, b, o);
        for (unsigned kind = 0; kind < MODEL_KINDS; kind++)
            for (uint32_t k = 0; o->uses[kind] && k < b->end - b->first; k++)
                note_wait(board, kind, board->schedule->order[b->first + k], waits[k],
                          o->uses[kind]);
    }
}

static void empty_slots(model_board *board) {
    for (uint32_t i = 0; i < board->taken_count; i++)
        board->slots[board->taken[i]] = (outcome){0};
    board->taken_count = 0;
}

/* All outcomes are settled and forgotten, and the steps that lead to them. */
static void forget(model_board *board) {
    settle(board);
    empty_slots(board);
    board->arena_used = 0;
    board->epoch++;
    model_steps_forget(board->states);
}

static void apply(const model_board *board, const board_block *b, outcome *o, board_warp *w,
                  uint64_t *ready, unsigned kind) {
    uint64_t base = w->clock << MODEL_REASON_BITS;
    const uint32_t *outputs = board->lists + b->outputs, *pipes = board->lists + b->pipes;
    const uint64_t *value = board->arena + o->at + key_words(b);
    for (uint32_t i = 0; i < b->output_count; i++)
        ready[outputs[i]] = absolute(*value++, base);
    for (uint32_t i = 0; i < b->pipe_count; i++)
        w->pipe_free[pipes[i]] = absolute(*value++, base);
    w->clock += o->clock;
    w->wait += o->wait;
    o->uses[kind]++;
}

/* Keeps what follow_each has just done; `before`: the warp as it was. */
static void keep(model_board *board, const board_block *b, outcome *room, uint64_t hash,
                 const uint64_t *key, const board_warp *before, const board_warp *w,
                 const uint64_t *ready) {
    uint64_t base = before->clock << MODEL_REASON_BITS;
    uint32_t count = b->end - b->first;
    const uint32_t *outputs = board->lists + b->outputs, *pipes = board->lists + b->pipes;
    size_t keyed = key_words(b);
    *room = (outcome){.hash = hash,
                      .block = (uint32_t)(b - board->blocks) + 1,
                      .at = (uint32_t)board->arena_used,
                      .clock = (uint32_t)(w->clock - before->clock),
                      .wait = (uint32_t)(w->wait - before->wait)};
    board->taken[board->taken_count++] = (uint32_t)(room - board->slots);
    uint64_t *to = board->arena + board->arena_used;
    memcpy(to, key, keyed * sizeof *key);
    to += keyed;
    for (uint32_t i = 0; i < b->output_count; i++)
        *to++ = relative(ready[outputs[i]], base);
    for (uint32_t i = 0; i < b->pipe_count; i++)
        *to++ = relative(w->pipe_free[pipes[i]], base);
    memcpy(to, board->waits, count * sizeof *board->waits);
    board->arena_used += keyed + b->output_count + b->pipe_count + (count + 1) / 2;
}

static size_t outcome_words(const board_block *b) {
    return key_words(b) + b->output_count + b->pipe_count + (b->end - b->first + 1) / 2;
}

/* What came out, kept; NULL: it is not. */
static outcome *follow_kept(model_board *board, board_block *b, board_warp *w, uint64_t *ready,
                            const uint64_t *memory, unsigned kind) {
    uint64_t key[MOST_KEY];
    uint32_t count = make_key(board, b, w, ready, memory, key);
    uint32_t index = (uint32_t)(b - board->blocks);
    uint64_t hash = hash_key(key, count, index);
    outcome *room, *found = find_outcome(board, hash, index, key, count, &room);
    if (found != NULL) {
        b->hits++;
        apply(board, b, found, w, ready, kind);
        return found;
    }
    board_warp before = *w;
    if (b->tries >= TRIED_OFTEN && b->hits < b->tries / 4)
        b->kept = false;
    if (!follow_each(board, w, ready, b->first, b->end, memory, true, kind))
        return NULL;
    if (room == NULL || board->arena_used + outcome_words(b) > ARENA_WORDS) {
        forget(board);
        room = &board->slots[hash & (SLOTS - 1)];
    }
    keep(board, b, room, hash, key, &before, w, ready);
    return room;
}

/* ---- states ---- */

static uint32_t number_state(const model_board *board, const board_warp *w, const uint64_t *ready) {
    uint64_t base = w->clock << MODEL_REASON_BITS, *to = board->vector;
    for (uint32_t i = 0; i < board->kept_count; i++)
        *to++ = relative(ready[board->kept[i]], base);
    for (uint32_t i = 0; i < VM_PIPE_COUNT; i++)
        *to++ = relative(w->pipe_free[i], base);
    return model_states_number(board->states, board->vector);
}

static void clear_times(const model_board *board, board_warp *w, uint64_t *ready) {
    memset(ready, 0, ((size_t)board->rows->register_count + 1) * sizeof *ready);
    w->is_ready = true;
}

/* Puts its times where it may be followed one instruction after the other. */
static void leave_state(const model_board *board, board_warp *w, uint64_t *ready) {
    if (w->state == 0)
        return;
    if (!w->is_ready)
        clear_times(board, w, ready);
    uint64_t base = w->clock << MODEL_REASON_BITS;
    const uint64_t *from = model_states_get(board->states, w->state);
    for (uint32_t i = 0; i < board->kept_count; i++)
        ready[board->kept[i]] = absolute(*from++, base);
    for (uint32_t i = 0; i < VM_PIPE_COUNT; i++)
        w->pipe_free[i] = absolute(*from++, base);
    w->state = 0;
}

void model_board_start(const model_board *board, board_warp *w, uint64_t *ready) {
    w->state = board->begin;
    w->clock = w->wait = 0;
    w->is_ready = false;
    if (w->state != 0)
        return;
    memset(w->pipe_free, 0, sizeof w->pipe_free);
    clear_times(board, w, ready);
}

/* The step that is kept, tried first where *hint points, which then points to it; or NULL, and
 * *hint stays. */
static model_step *find_step(const model_board *board, uint32_t state, uint32_t block,
                             const uint64_t *memory, uint32_t count, model_step **hint) {
    if (*hint != NULL && model_step_is(board->steps_memory, *hint, state, block, memory, count))
        return *hint;
    model_step *step = model_steps_find(board->states, state, block, memory, count);
    if (step != NULL)
        *hint = step;
    return step;
}

/* A wait is a step as a block is, of a block behind all others and of one access: so long. */
void model_board_wait(model_board *board, board_warp *w, uint64_t *ready, uint64_t clock,
                      model_step **hint) {
    uint64_t cycles = clock - w->clock;
    uint32_t state = board->states_help && cycles <= UINT32_MAX ? w->state : 0;
    const model_step *step =
        state != 0 ? find_step(board, state, board->block_count, &cycles, 1, hint) : NULL;
    if (step != NULL) {
        w->state = step->next;
        w->clock = clock;
        return;
    }
    leave_state(board, w, ready);
    w->clock = clock;
    uint32_t next = state != 0 ? number_state(board, w, ready) : 0;
    if (next == 0)
        return;
    model_step made = {
        .state = state, .block = board->block_count, .next = next, .clock = (uint32_t)cycles};
    model_steps_add(board->states, &made, &cycles, 1);
    w->state = next;
}

static uint32_t list_times(const model_board *board, const board_block *b, const uint64_t *memory,
                           uint64_t *times) {
    const uint32_t *accesses = board->lists + b->accesses;
    for (uint32_t i = 0; i < b->access_count; i++)
        times[i] = memory[accesses[i]];
    return b->access_count;
}

static void follow_block(model_board *board, board_block *b, board_warp *w, uint64_t *ready,
                         const uint64_t *memory, unsigned kind) {
    uint64_t times[MOST_KEY];
    uint32_t index = (uint32_t)(b - board->blocks), count = 0, state = 0;
    b->tries++;
    if (board->states_help) {
        state = w->state != 0 ? w->state : number_state(board, w, ready);
        count = list_times(board, b, memory, times);
    }
    model_step *step = state != 0 ? find_step(board, state, index, times, count, &b->step) : NULL;
    if (step != NULL) {
        b->hits++;
        model_step_take(w, step, kind);
        return;
    }
    board->states_help = model_states_help(board->states);
    leave_state(board, w, ready);
    outcome *o = follow_kept(board, b, w, ready, memory, kind);
    uint32_t next = o != NULL && state != 0 ? number_state(board, w, ready) : 0;
    if (next == 0)
        return;
    model_step made = {.state = state,
                       .block = index,
                       .next = next,
                       .clock = o->clock,
                       .wait = o->wait,
                       .uses = o->uses};
    model_steps_add(board->states, &made, times, count);
    w->state = next;
}

uint32_t model_board_epoch(const model_board *board) {
    return board->epoch;
}

uint32_t model_board_accesses(const model_board *board, uint32_t first) {
    return board->blocks[board->block_of[first]].access_count;
}

model_step *model_board_recall(model_board *board, board_warp *w, uint32_t first,
                               const uint64_t *times, unsigned kind) {
    uint32_t index = board->block_of[first];
    board_block *b = &board->blocks[index];
    if (!board->states_help || !b->kept || w->state == 0)
        return NULL;
    model_step *step = find_step(board, w->state, index, times, b->access_count, &b->step);
    if (step == NULL)
        return NULL;
    b->tries++;
    b->hits++;
    model_step_take(w, step, kind);
    return step;
}

void model_board_follow(model_board *board, board_warp *w, uint64_t *ready, uint32_t first,
                        uint32_t end, const uint64_t *memory, unsigned kind) {
    bool is_whole = first < end && board->schedule->block_end[first] == end;
    board_block *b = is_whole ? &board->blocks[board->block_of[first]] : NULL;
    if (b != NULL && b->kept && (b->keyed || board->states_help))
        follow_block(board, b, w, ready, memory, kind);
    else {
        leave_state(board, w, ready);
        (void)follow_each(board, w, ready, first, end, memory, is_whole, kind);
    }
}

static void add_by_pc(const model_board *board, unsigned kind, double weight, double *by_pc,
                      model_site *sites) {
    for (uint32_t pc = 0; pc < board->rows->count; pc++) {
        const uint64_t *waited = waited_at(board, kind, pc);
        for (int i = 0; i < MODEL_TERM_COUNT; i++) {
            double cycles = weight * (double)waited[i];
            by_pc[pc] += cycles;
            if (sites != NULL)
                sites[pc].stall[i] += cycles;
        }
    }
}

void model_board_stalls(model_board *board, const double weights[MODEL_KINDS], double *by_pc,
                        double *by_term, model_site *sites) {
    settle(board);
    for (unsigned kind = 0; kind < MODEL_KINDS; kind++) {
        if (weights[kind] > 0 && board->by_pc != NULL)
            add_by_pc(board, kind, weights[kind], by_pc, sites);
        for (int i = 0; i < MODEL_TERM_COUNT; i++)
            by_term[i] += weights[kind] * (double)board->stall[kind][i];
    }
}

/* ---- what goes into a block and comes out ---- */

typedef struct lister {
    model_board *board;
    uint32_t *seen;   /* by register: number of the block that last defined or listed it, + 1 */
    uint8_t *is_read; /* by register: some block reads it before it writes it */
    size_t used;      /* of the lists */
} lister;

static void list_inputs(lister *l, board_block *b, uint32_t mark) {
    const model_rows *rows = l->board->rows;
    b->inputs = (uint32_t)l->used;
    for (uint32_t at = b->first; at < b->end; at++) {
        const model_row *row = &rows->rows[l->board->schedule->order[at]];
        const uint16_t *operand = rows->operands + row->operands;
        for (unsigned i = 0; i < (unsigned)row->use_count + row->def_count; i++) {
            uint16_t reg = operand[i];
            if (l->seen[reg] == mark)
                continue;
            l->seen[reg] = mark;
            if (i >= row->use_count)
                continue;
            l->is_read[reg] = 1;
            l->board->lists[l->used++] = reg;
        }
    }
    b->input_count = (uint32_t)l->used - b->inputs;
}

/* Registers that the block writes and some block reads first. */
static void list_outputs(lister *l, board_block *b, uint32_t mark) {
    const model_rows *rows = l->board->rows;
    b->outputs = (uint32_t)l->used;
    for (uint32_t pc = b->first; pc < b->end; pc++) {
        const model_row *row = &rows->rows[pc];
        const uint16_t *defs = rows->operands + row->operands + row->use_count;
        for (unsigned i = 0; i < row->def_count; i++) {
            if (l->seen[defs[i]] == mark || !l->is_read[defs[i]])
                continue;
            l->seen[defs[i]] = mark;
            l->board->lists[l->used++] = defs[i];
        }
    }
    b->output_count = (uint32_t)l->used - b->outputs;
}

static void list_pipes(lister *l, board_block *b) {
    uint64_t pipes = 0;
    b->pipes = (uint32_t)l->used;
    for (uint32_t pc = b->first; pc < b->end; pc++) {
        const model_row *row = &l->board->rows->rows[pc];
        if (row->kind != ROW_FOLDED)
            pipes |= UINT64_C(1) << row->pipe;
    }
    for (uint32_t pipe = 0; pipe < VM_PIPE_COUNT; pipe++)
        if (pipes >> pipe & 1)
            l->board->lists[l->used++] = pipe;
    b->pipe_count = (uint32_t)l->used - b->pipes;
}

static void list_accesses(lister *l, board_block *b) {
    b->accesses = (uint32_t)l->used;
    for (uint32_t pc = b->first; pc < b->end; pc++)
        if (model_row_is_access(&l->board->rows->rows[pc]))
            l->board->lists[l->used++] = pc - b->first;
    b->access_count = (uint32_t)l->used - b->accesses;
}

static uint32_t find_blocks(model_board *board) {
    uint32_t count = 0;
    for (uint32_t pc = 0; pc < board->rows->count; pc++) {
        uint32_t end = board->schedule->block_end[pc];
        if (end == 0)
            continue;
        board->block_of[pc] = count;
        board->blocks[count++] = (board_block){.first = pc, .end = end};
    }
    return count;
}

static void list_all(lister *l) {
    uint32_t count = l->board->block_count = find_blocks(l->board);
    for (uint32_t i = 0; i < count; i++) {
        board_block *b = &l->board->blocks[i];
        list_inputs(l, b, i + 1);
        list_pipes(l, b);
        list_accesses(l, b);
    }
    for (uint32_t reg = 0; reg < l->board->rows->register_count; reg++)
        if (l->is_read[reg])
            l->board->kept[l->board->kept_count++] = (uint16_t)reg;
    for (uint32_t i = 0; i < count; i++) {
        board_block *b = &l->board->blocks[i];
        list_outputs(l, b, count + i + 1);
        b->kept = key_words(b) <= MOST_KEY && outcome_words(b) < ARENA_WORDS / 8;
        b->keyed = b->end - b->first >= LEAST_KEYED;
    }
}

/* ---- making ---- */

static size_t operand_count(const model_rows *rows) {
    size_t count = 0;
    for (uint32_t pc = 0; pc < rows->count; pc++)
        count += (size_t)rows->rows[pc].use_count + rows->rows[pc].def_count;
    return count;
}

ev_status model_tables_make(model_tables **out, ev_error *err) {
    model_tables *tables = calloc(1, sizeof *tables); /* pages come when touched */
    if (tables == NULL)
        return ev_fail_memory(err, sizeof *tables);
    ev_status status = model_states_make(&tables->states, err);
    if (status != EV_OK) {
        free(tables);
        return status;
    }
    *out = tables;
    return EV_OK;
}

void model_tables_free(model_tables *tables) {
    if (tables == NULL)
        return;
    model_states_free(tables->states);
    free(tables);
}

/* The state of a warp that has done nothing is the first. */
static void begin_states(model_board *board) {
    uint32_t words = board->kept_count + VM_PIPE_COUNT;
    model_states_begin(board->states, words);
    memset(board->vector, 0, words * sizeof *board->vector);
    board->steps_memory = model_steps_memory(board->states);
    board->begin = model_states_number(board->states, board->vector);
    board->states_help = true;
}

ev_status model_board_make(const model_rows *rows, const model_schedule *schedule,
                           uint64_t dram_extra, model_tables *tables, model_board **out,
                           ev_error *err) {
    size_t count = (size_t)rows->count + 1, registers = (size_t)rows->register_count + 1;
    /* Every block lists each operand once at most, its accesses, and its pipes. */
    size_t listed = operand_count(rows) * 2 + count * (1 + VM_PIPE_COUNT);
    model_board *board = calloc(1, sizeof *board);
    lister l = {
        .board = board, .seen = calloc(registers, sizeof *l.seen), .is_read = calloc(registers, 1)};
    if (board != NULL) {
        *board =
            (model_board){.rows = rows,
                          .schedule = schedule,
                          .dram_extra = dram_extra,
                          .blocks = calloc(count, sizeof *board->blocks),
                          .block_of = calloc(count, sizeof *board->block_of),
                          .lists = malloc(listed * sizeof *board->lists),
                          .kept = malloc(registers * sizeof *board->kept),
                          .vector = malloc((registers + VM_PIPE_COUNT) * sizeof *board->vector),
                          .states = tables->states,
                          .slots = tables->slots,
                          .taken = tables->taken,
                          .arena = tables->arena,
                          .waits = malloc(count * sizeof *board->waits)};
    }
    bool made = board != NULL && l.seen != NULL && l.is_read != NULL && board->blocks != NULL &&
                board->block_of != NULL && board->lists != NULL && board->kept != NULL &&
                board->vector != NULL && board->waits != NULL;
    for (int p = 0; made && p < VM_PIPE_COUNT; p++) {
        model_term term = model_pipe_term((vm_pipe)p);
        board->pipe_reason[p] = (uint8_t)(term == MODEL_TERM_COUNT ? MODEL_ISSUE : term);
    }
    if (made)
        list_all(&l);
    assert(!made || l.used <= listed);
    free(l.seen);
    free(l.is_read);
    if (!made) {
        model_board_free(board);
        return ev_fail_memory(err, listed * sizeof *board->lists);
    }
    begin_states(board);
    *out = board;
    return EV_OK;
}

ev_status model_board_watch(model_board *board, ev_error *err) {
    size_t count = ((size_t)board->rows->count + 1) * MODEL_KINDS * MODEL_TERM_COUNT;
    if (board->by_pc == NULL)
        board->by_pc = calloc(count, sizeof *board->by_pc);
    return board->by_pc != NULL ? EV_OK : ev_fail_memory(err, count * sizeof *board->by_pc);
}

void model_board_free(model_board *board) {
    if (board == NULL)
        return;
    free(board->blocks);
    free(board->block_of);
    free(board->lists);
    free(board->kept);
    free(board->vector);
    empty_slots(board);
    free(board->waits);
    free(board->by_pc);
    free(board);
}
