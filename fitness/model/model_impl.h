/* The parts of the timing model that its files share. */
#ifndef FITNESS_MODEL_MODEL_IMPL_H
#define FITNESS_MODEL_MODEL_IMPL_H

#include "fitness/model/model.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- values.c: what each register of the PTX costs in a register file ---- */

typedef struct model_values {
    uint8_t *words; /* 32-bit registers; 0: none of its own */
    uint16_t *home; /* the register that holds its value: mostly itself */
} model_values;

/* `infos`: of the `count` instructions of one entry. */
ev_status model_values_make(const vm_module *module, const vm_insn_info *infos, uint32_t count,
                            model_values *out, ev_error *err) EV_CHECKED;
void model_values_free(model_values *values);

/* ---- registers.c ---- */

/* What the GPU allocates for them. */
uint32_t model_given_registers(uint32_t live, uint32_t cap);

/* ---- rows.c: what the scoreboard needs of each instruction, made once a launch ---- */

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
    uint16_t latency;     /* cycles until a dependent instruction may issue */
    uint16_t interval;    /* cycles until the same warp may use the pipe again */
    uint8_t reason;       /* model_term that a wait for the result counts as */
    uint8_t term;         /* that pipe_cycles count to; MODEL_TERM_COUNT: none */
    float pipe_cycles;    /* of the pipe of an SM, a warp execution */
    float special_cycles; /* of the special-function pipe beside it */
} model_row;

typedef struct model_rows {
    model_row *rows; /* by pc */
    uint32_t count;
    uint16_t *operands;
    uint32_t register_count;
} model_rows;

static inline bool model_row_is_access(const model_row *row) {
    return row->kind >= ROW_LOAD && row->kind <= ROW_ATOMIC;
}
/* g NULL: latencies in round figures, and no throughputs. */
ev_status model_rows_make(const gpu *g, const vm_module *module, model_rows *out,
                          ev_error *err) EV_CHECKED;
void model_rows_free(model_rows *rows);
/* The term that a pipe's throughput counts to; MODEL_TERM_COUNT: none of its own. */
model_term model_pipe_term(vm_pipe pipe);

/* ---- schedule.c: the order in which the assembler would put the instructions ---- */

typedef struct model_schedule {
    uint32_t *block_end; /* by pc: where a block begins, the pc after its last; elsewhere 0 */
    uint32_t *order;     /* in [first, end) of a block: its pcs in the order of issue */
    uint32_t *next;      /* by pc: where the block after its own begins */
} model_schedule;

#define MODEL_WINDOW_MOST 64

typedef struct model_schedule_options {
    uint32_t window;       /* instructions looked ahead; at most MODEL_WINDOW_MOST */
    uint32_t load_latency; /* cycles that a load is taken to need */
} model_schedule_options;

ev_status model_schedule_make(const model_schedule_options *options, const vm_module *module,
                              const model_rows *rows, model_schedule *out,
                              ev_error *err) EV_CHECKED;
void model_schedule_free(model_schedule *schedule);

/* ---- scoreboard.c: when a warp's instructions issue, and what they wait for ---- */

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

/* ---- states.c: states of warps, and what blocks of code make of them ---- */

typedef struct model_states model_states;

typedef struct model_step {
    uint32_t state, block; /* 0, none: empty */
    uint32_t memory;       /* where the times of its accesses are kept */
    uint32_t next;         /* state */
    uint32_t clock, wait;  /* what the warp's grow by */
    uint32_t *uses;        /* of the outcome, by kind of block; NULL: it is a wait */
} model_step;

/* `words`: of a state's vector. */
ev_status model_states_make(uint32_t words, model_states **out, ev_error *err) EV_CHECKED;
void model_states_free(model_states *states); /* NULL is fine */
/* Whether steps are found often enough. */
bool model_states_help(const model_states *states);
/* From 1; 0: there is no room for one more. */
uint32_t model_states_number(model_states *states, const uint64_t *vector);
const uint64_t *model_states_get(const model_states *states, uint32_t state);
/* `memory`: the times of the block's `count` accesses; NULL: not known. */
model_step *model_steps_find(model_states *states, uint32_t state, uint32_t block,
                             const uint64_t *memory, uint32_t count);
/* Where the times of all steps' accesses stand. */
const uint64_t *model_steps_memory(const model_states *states);
/* Whether this is the step; `kept`: model_steps_memory. */
static inline bool model_step_is(const uint64_t *kept, const model_step *step, uint32_t state,
                                 uint32_t block, const uint64_t *memory, uint32_t count) {
    if (step->state != state || step->block != block)
        return false;
    uint64_t differ = 0;
    for (uint32_t i = 0; i < count; i++)
        differ |= kept[step->memory + i] ^ memory[i];
    return differ == 0;
}
/* Of one that was not found. */
void model_steps_add(model_states *states, const model_step *step, const uint64_t *memory,
                     uint32_t count);
/* All steps; numbers of states stay. */
void model_steps_forget(model_states *states);

/* ---- scoreboard.c, continued ---- */

typedef struct model_board model_board;

/* `dram_extra`: cycles that DRAM is further than the L2. Rows and schedule are borrowed. */
ev_status model_board_make(const model_rows *rows, const model_schedule *schedule,
                           uint64_t dram_extra, model_board **out, ev_error *err) EV_CHECKED;
void model_board_free(model_board *board); /* NULL is fine */
/* The warp executes the pcs of [first, end), straight-line code: in the schedule's order where it
 * is a whole block, else as it stands. `ready`: the warp's time for each register; `memory`: for
 * each access, by pc - first, the time until its result is there. */
void model_board_follow(model_board *board, board_warp *w, uint64_t *ready, uint32_t first,
                        uint32_t end, const uint64_t *memory, unsigned kind);
/* Accesses of a block of code that begins at `first`. */
uint32_t model_board_accesses(const model_board *board, uint32_t first);
/* The same for the block of code at `first`, where what it makes of the warp's state is known;
 * false: it is not, and nothing was done. `times`: of its accesses; *step: tried first, and what
 * was found. */
bool model_board_recall(model_board *board, board_warp *w, uint32_t first, const uint64_t *times,
                        model_step **step, unsigned kind);
/* Another one when steps were forgotten since. */
uint32_t model_board_epoch(const model_board *board);
/* A warp that has done nothing; zeroed by the caller, but for its times `ready`. */
void model_board_start(const model_board *board, board_warp *w, uint64_t *ready);
/* The warp waits until `clock`; `ready`, *step: as above. */
void model_board_wait(model_board *board, board_warp *w, uint64_t *ready, uint64_t clock,
                      model_step **step);
/* A wait that is not the scoreboard's own; by pc alone. */
void model_board_note(model_board *board, unsigned kind, uint32_t pc, model_term term,
                      uint64_t cycles);
/* Adds the cycles waited so far, by pc, by term, and, where sites are not NULL, by both. Once, at
 * the end. */
void model_board_stalls(model_board *board, const double weights[MODEL_KINDS], double *by_pc,
                        double *by_term, model_site *sites);

/* ---- cache.c: one block's share of the L1, and the sectors it touched for the first time ---- */

#define CACHE_WAYS 4
#define CACHE_LINE_BYTES 128
#define CACHE_SECTORS 4 /* of a line */

/* Multiplicative hashing (Knuth, TAOCP 3, 6.4); the upper half is well mixed. */
static inline uint32_t model_line_hash(uint64_t line) {
    return (uint32_t)(line * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}
/* How many of a line's sectors have their bit set: the count of each value in 4 bits. */
static inline unsigned model_sector_count(unsigned sectors) {
    return UINT64_C(0x4332322132212110) >> 4 * (sectors & 15) & 15;
}

typedef struct cache_line {
    uint64_t tag;     /* line number + the cache's round; 0: empty */
    uint32_t used;    /* time of the last use */
    uint32_t sectors; /* bit s: sector s is there */
} cache_line;

#define CACHE_ROUND_SHIFT 58 /* line numbers have 57 bits */

typedef struct model_cache {
    cache_line *lines; /* sets x CACHE_WAYS */
    uint32_t sets;     /* a power of two */
    uint32_t clock;
    uint64_t round; /* counts the clears, from 1, above the bits of line numbers */
} model_cache;

/* Touched lines: open addressing; low 4 bits of `mask` loads, high 4 bits stores, by sector. */
typedef struct touched_line {
    uint64_t tag;
    uint32_t round; /* of its use; of another round than the set's: empty */
    uint8_t mask;
} touched_line;

typedef struct model_touched {
    touched_line *lines;
    uint32_t capacity; /* a power of two; 0 before the first use */
    uint32_t count;
    uint32_t round; /* counts the clears */
    bool failed;    /* memory ran out */
} model_touched;

ev_status model_cache_make(uint64_t bytes, model_cache *out, ev_error *err) EV_CHECKED;
void model_cache_clear(model_cache *cache);
void model_cache_free(model_cache *cache);
/* The place of a line (address / 128); it is put there, without sectors, if it is nowhere. */
uint32_t model_cache_find(model_cache *cache, uint64_t line);
/* Whether the line's place is `place`. */
static inline bool model_cache_is_at(const model_cache *cache, uint64_t line, uint32_t place) {
    return cache->lines[place].tag == line + cache->round;
}
/* Reads sectors of a line whose place it is, a bit each: which were there. *clock: the cache's,
 * which the caller holds meanwhile. */
static inline unsigned model_cache_read(model_cache *cache, uint32_t *clock, uint32_t place,
                                        unsigned sectors) {
    cache_line *at = &cache->lines[place];
    unsigned there = at->sectors & sectors;
    at->sectors |= sectors;
    at->used = ++*clock;
    return there;
}
/* Makes room; false: there is no memory. */
bool model_touched_grow(model_touched *touched);
/* Marks sectors of one line; those marked for the first time. */
static inline unsigned model_touched_add(model_touched *t, uint64_t line, unsigned sectors,
                                         bool is_store) {
    if (t->count * 2 >= t->capacity && !model_touched_grow(t))
        return sectors;
    uint64_t tag = line + 1;
    uint32_t at = model_line_hash(tag) & (t->capacity - 1);
    while (t->lines[at].round == t->round && t->lines[at].tag != tag)
        at = (at + 1) & (t->capacity - 1);
    touched_line *l = &t->lines[at];
    if (l->round != t->round) {
        *l = (touched_line){.tag = tag, .round = t->round};
        t->count++;
    }
    unsigned shift = is_store ? CACHE_SECTORS : 0;
    unsigned first = sectors & ~((unsigned)l->mask >> shift);
    l->mask |= (uint8_t)(sectors << shift);
    return first;
}
void model_touched_clear(model_touched *touched);
void model_touched_free(model_touched *touched);

/* ---- buffers ---- */

#define MODEL_MAX_BUFFERS 32

typedef struct model_buffers {
    model_buffer list[MODEL_MAX_BUFFERS];
    size_t count, last; /* found */
} model_buffers;

static inline bool model_buffer_has(const model_buffer *buffer, uint64_t first, uint64_t bytes) {
    uint64_t at = first - buffer->address;
    return at < buffer->bytes && at + bytes <= buffer->bytes;
}

/* The index of the buffer that holds the address; MODEL_MAX_BUFFERS: none. */
static inline size_t model_buffer_of(model_buffers *b, uint64_t address) {
    size_t i = b->last;
    for (size_t n = 0; n < b->count; n++, i = i + 1 == b->count ? 0 : i + 1) {
        if (address - b->list[i].address < b->list[i].bytes) {
            b->last = i;
            return i;
        }
    }
    return MODEL_MAX_BUFFERS;
}

/* A sector begins at most 31 bytes before its buffer does. */
static inline size_t model_buffer_of_sector(model_buffers *b, uint64_t sector) {
    size_t at = model_buffer_of(b, sector * 32);
    return at == MODEL_MAX_BUFFERS ? model_buffer_of(b, sector * 32 + 31) : at;
}

/* ---- repeat.c: blocks that do again what an earlier block did, at shifted addresses ---- */

typedef struct model_log model_log; /* what a block told the observer */

/* How far a block has followed a log, and by how much it is shifted. Begins zeroed. */
typedef struct model_repeat {
    size_t batch;
    uint64_t known;                        /* a bit a buffer */
    uint64_t shift[MODEL_MAX_BUFFERS + 1]; /* in sectors */
} model_repeat;

/* Room for a batch that was read back; freed by the owner. */
typedef struct model_copy {
    uint64_t *sectors;
    size_t room;
} model_copy;

model_log *model_log_new(void);
void model_log_free(model_log *log); /* NULL is fine */
void model_log_add(model_log *log, model_buffers *buffers, const vm_batch *batch);
/* A sector that the block stored to for the first time. */
void model_log_store(model_log *log, model_buffers *buffers, uint64_t sector);
/* A sector that an atomic of the block updated; each time. */
void model_log_update(model_log *log, model_buffers *buffers, uint64_t sector);
void model_log_end(model_log *log);
/* The next batch of a block is what the log has next; false: they part here. */
bool model_log_fits(const model_log *log, model_repeat *at, const vm_batch *batch);
/* The block ended where the log does, and was shifted within the buffers. */
bool model_log_ends(const model_log *log, const model_repeat *at, model_buffers *buffers);
/* The batch `index` of what fitted, shifted back; borrows from the log and the copy. False: no
 * memory. */
bool model_log_read(const model_log *log, const model_repeat *at, size_t index, uint32_t block,
                    model_copy *copy, vm_batch *out);
size_t model_log_updated_count(const model_log *log);
uint64_t model_log_updated(const model_log *log, const model_repeat *at, size_t index);
size_t model_log_stored_count(const model_log *log);
uint64_t model_log_stored(const model_log *log, const model_repeat *at, size_t index);

/* ---- cache.c, continued: how often each sector is updated by atomics ---- */

typedef struct model_hot {
    uint64_t *sectors; /* + 1; 0: empty */
    double *counts;
    uint32_t used;
    double most;
} model_hot;

ev_status model_hot_make(model_hot *out, ev_error *err) EV_CHECKED;
void model_hot_free(model_hot *hot);
/* Past some thousand sectors new ones are not counted: they are not where all meet. */
void model_hot_add(model_hot *hot, uint64_t sector, double count);

/* ---- links.c: what a rank moves to and from its peers' memory ---- */

typedef struct model_links model_links;

typedef enum model_place {
    MODEL_PLACE_OWN,
    MODEL_PLACE_PEER, /* on the same node */
    MODEL_PLACE_FAR,  /* on another */
} model_place;

ev_status model_links_make(const model_ranks *ranks, model_links **out, ev_error *err) EV_CHECKED;
void model_links_free(model_links *links); /* NULL is fine */
/* Where a line (address / 128) is. */
model_place model_links_place(model_links *links, uint64_t line);
/* So many sectors of the line that was placed last cross the link. */
void model_links_add(model_links *links, unsigned sectors, bool is_store, double weight);
/* What the peer `index` loaded and stored of the memory of `rank`, whose links these are. */
void model_links_join(model_links *links, uint32_t rank, const model_links *peer, uint32_t index);
/* Time that the links need for all, and bytes of both directions. */
double model_links_ns(const model_links *links, const gpu *g, double *in, double *out);

/* ---- account.c: from the sums over the blocks to a time ---- */

/* Sums over the grid: each sampled block counts for as many blocks as it stands for. */
typedef struct model_sums {
    double cycles[MODEL_TERM_COUNT]; /* of an SM's unit; of ISSUE: machine instructions of warps */
    double chain;                    /* cycles of the longest warp of each block */
    double chain_wait;               /* of these, at most so many fewer if DRAM loads hit the L2 */
    double longest, longest_wait;    /* the slowest block; not a sum */
    double load_sectors, load_hits;  /* at the L1 */
    double l2_sectors;               /* loads that missed the L1, stores, atomics */
    double atomic_sectors;
    double read_bytes[MODEL_MAX_BUFFERS + 1]; /* sectors that a block read for the first time, by
                                                 buffer; last: in none of them */
    double written_bytes[MODEL_MAX_BUFFERS + 1];
    double warps;                   /* executed */
    double stall[MODEL_TERM_COUNT]; /* cycles of all warps */
} model_sums;

typedef struct model_shape {
    const gpu *g;
    uint64_t blocks, sampled;
    uint32_t live_registers, given_registers; /* before and after the kernel's own bounds */
    model_occupancy occupancy;
    const model_buffer *buffers;
    size_t buffer_count;
    double link_ns; /* that the links need for the whole grid */
    double hottest; /* requests of atomics to the sector that has most, of the whole grid */
} model_shape;

void model_account(const model_shape *shape, const model_sums *sums, model_time *out);

#endif
