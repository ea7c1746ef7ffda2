/* The parts of the timing model that its files share. */
#ifndef FITNESS_MODEL_MODEL_IMPL_H
#define FITNESS_MODEL_MODEL_IMPL_H

#include "fitness/model/model.h"

#include <stdbool.h>
#include <stdint.h>

/* Of an instruction's name, asked some ten times for each: the first characters mostly differ. */
static inline bool model_starts_with(const char *text, const char *prefix) {
    while (*prefix != '\0' && *text == *prefix) {
        text++;
        prefix++;
    }
    return *prefix == '\0';
}

/* ---- blocks.c: the straight lines of the code, and what must keep its order in each ---- */

#define MODEL_WINDOW_MOST 64

typedef struct model_insns model_insns;

/* Bit d - 1: the instruction d before or behind. */
typedef struct model_link {
    uint64_t before; /* must come before it */
    uint64_t after;  /* must come after it */
    uint64_t feeds;  /* likewise, and reads what it writes */
} model_link;

typedef struct model_blocks {
    uint32_t *block_end; /* by pc: where a block begins, the pc after its last; elsewhere 0 */
    uint32_t *next;      /* by pc: where the block after its own begins */
    model_link *links;   /* by pc */
} model_blocks;

/* False: out of memory; what is there is freed with the rest. */
bool model_blocks_make(const vm_module *module, const model_insns *insns,
                       model_blocks *out) EV_CHECKED;
void model_blocks_free(model_blocks *blocks);

/* ---- insns.c: what the model asks of each instruction, whichever the GPU ---- */

/* What a mnemonic says. */
enum {
    MODEL_MOVES = 1,
    MODEL_IS_PARAMETER = 2, /* a load of one */
    MODEL_CONVERTS_ADDRESS = 4,
    MODEL_CALLS = 8,
    MODEL_JUMPS_ANYWHERE = 16,
    MODEL_ADDS = 32,         /* two whole numbers */
    MODEL_NARROWS = 64,      /* the lower half of its result is made of lower halves */
    MODEL_TAKES_LOW = 128,   /* the lower half of what it reads */
    MODEL_EXTENDS = 256,     /* with zeros */
    MODEL_BYPASSES_L1 = 512, /* as a load */
    MODEL_IS_ORDERED = 1024, /* volatile, or with an order */
    MODEL_IS_CONSTANT = 2048,
    MODEL_ARRIVES = 4096, /* as a barrier: does not wait */
};

enum { MODEL_SPACE_GLOBAL = 1, MODEL_SPACE_SHARED = 2, MODEL_SPACE_LOCAL = 4, MODEL_SPACE_ALL = 7 };

typedef struct model_cost {
    const char *first, *last;
    size_t first_length, last_length;
    double slots, own, special, latency;
} model_cost;

typedef struct model_name {
    const char *text;
    const model_cost *cost;
    uint32_t traits;
} model_name;

typedef struct model_insn {
    uint32_t operands; /* into model_insns.operands: uses, then defs */
    uint32_t target;   /* pc of a branch or a function; UINT32_MAX: none */
    uint32_t name;     /* into model_insns.names */
    uint32_t traits;
    uint8_t use_count, def_count;
    uint8_t pipe, kind; /* vm_pipe, row_kind */
    uint8_t space;      /* vm_space */
    uint8_t access_bytes;
    uint8_t reads, writes; /* MODEL_SPACE_*: may touch, in order with others */
    bool is_access, is_branch, is_exit, is_conditional, ends_block;
} model_insn;

struct model_insns {
    model_insn *insns; /* by pc */
    uint32_t count;
    const uint16_t *operands; /* the module's */
    uint32_t operand_count, register_count;
    model_name *names;
    uint32_t name_count;
    model_blocks blocks;
};

ev_status model_insns_make(const vm_module *module, model_insns *out, ev_error *err) EV_CHECKED;
void model_insns_free(model_insns *insns);

/* ---- values.c: what each register of the PTX costs in a register file ---- */

typedef struct model_values {
    uint8_t *words; /* 32-bit registers; 0: none of its own */
    uint16_t *home; /* the register that holds its value: mostly itself */
} model_values;

/* Of the `count` instructions from `first_pc` on, which are one entry's. */
ev_status model_values_make(const vm_module *module, const model_insns *insns, uint32_t first_pc,
                            uint32_t count, model_values *out, ev_error *err) EV_CHECKED;
void model_values_free(model_values *values);

/* ---- registers.c ---- */

/* As model_live_registers, of a module that was read. */
uint32_t model_live_registers_of(const vm_module *module, const model_insns *insns,
                                 const vm_entry *entry);
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
    const uint16_t *operands;
    uint32_t register_count;
} model_rows;

static inline bool model_row_is_access(const model_row *row) {
    return row->kind >= ROW_LOAD && row->kind <= ROW_ATOMIC;
}
/* g NULL: latencies in round figures, and no throughputs. The operands are those of `insns`. */
ev_status model_rows_make(const gpu *g, const model_insns *insns, model_rows *out,
                          ev_error *err) EV_CHECKED;
/* What the assembler makes of the mnemonic. */
const model_cost *model_cost_of(const char *name);
void model_rows_free(model_rows *rows);
/* The term that a pipe's throughput counts to; MODEL_TERM_COUNT: none of its own. */
model_term model_pipe_term(vm_pipe pipe);

/* ---- schedule.c: the order in which the assembler would put the instructions ---- */

typedef struct model_schedule {
    const uint32_t *block_end, *next; /* model_blocks' */
    uint32_t *order; /* in [first, end) of a block: its pcs in the order of issue */
} model_schedule;

typedef struct model_schedule_options {
    uint32_t window;       /* instructions looked ahead; at most MODEL_WINDOW_MOST */
    uint32_t load_latency; /* cycles that a load is taken to need */
} model_schedule_options;

ev_status model_schedule_make(const model_schedule_options *options, const model_insns *insns,
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

ev_status model_states_make(model_states **out, ev_error *err) EV_CHECKED;
/* Forgets all. `words`: of a state's vector from now on. */
void model_states_begin(model_states *states, uint32_t words);
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

/* ---- cache.c: the lines that one block touched, and which of them are in its share of the L1 ----
 */

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
    uint64_t tag;    /* line number + the cache's round; of another round: empty */
    uint32_t way;    /* where its last use in the L1 is noted, if it was there */
    uint8_t there;   /* bit s: sector s is in the L1; 0: the line is not */
    uint8_t touched; /* low 4 bits loads, high 4 bits stores, by sector */
} cache_line;

#define CACHE_ROUND_SHIFT 58 /* line numbers have 57 bits */

/* Where the ways of a set stand among the words of all sets: CACHE_WAYS times of last uses, then as
 * many places of lines, of which 0 is none. */
enum { CACHE_SET_WORDS = 2 * CACHE_WAYS };

typedef struct model_cache {
    cache_line *lines;  /* [0] is none; from [1] on open addressing; the last is none */
    uint32_t line_mask; /* how many there are, a power of two, less one */
    uint32_t set_mask;  /* the same of the sets */
    uint32_t *sets;     /* of the L1 */
    uint64_t round;     /* counts the clears, from 1, above the bits of line numbers */
    uint32_t count;     /* of lines touched since */
    uint32_t most;      /* of them, before there are more places */
    uint32_t clock;     /* of uses, in all rounds */
    uint32_t began;     /* the clock at the last clear */
    bool failed;        /* memory ran out */
} model_cache;

ev_status model_cache_make(uint64_t l1_bytes, model_cache *out, ev_error *err) EV_CHECKED;
void model_cache_clear(model_cache *cache);
void model_cache_free(model_cache *cache);
/* The line of that number where its first place is another's; `hash`: of its number. */
cache_line *model_cache_seek(model_cache *cache, uint64_t line, uint32_t hash);
static inline bool model_cache_is_empty(const model_cache *cache, const cache_line *l) {
    return (l->tag ^ cache->round) >> CACHE_ROUND_SHIFT != 0;
}
/* The line of that number (address / 128), which stays where it is until the next. */
static inline cache_line *model_cache_line(model_cache *cache, uint64_t line, uint32_t hash) {
    size_t at = hash & cache->line_mask;
    cache_line *l = &cache->lines[1 + at];
    if (l->tag == line + cache->round)
        return l;
    if (!model_cache_is_empty(cache, l) || cache->count >= cache->most)
        return model_cache_seek(cache, line, hash);
    *l = (cache_line){.tag = line + cache->round};
    cache->count++;
    return l;
}
/* Puts a line into the L1, in the place of the one of its set that was used longest ago: one of an
 * earlier round, where there is any, whose place may now be another line's, and which is not
 * written to. The set is hashed, as the hardware does, so that power-of-two strides spread. */
static inline void model_cache_place(model_cache *cache, cache_line *l, uint32_t hash) {
    uint32_t way = (hash & cache->set_mask) * CACHE_SET_WORDS;
    const uint32_t *used = cache->sets + way;
    /* without branches: which one it is cannot be foreseen */
    unsigned low = used[1] < used[0], high = 2 + (used[3] < used[2]);
    unsigned oldest = used[high] < used[low] ? high : low;
    way += oldest;
    uint32_t *place = &cache->sets[way + CACHE_WAYS];
    cache->lines[used[oldest] > cache->began ? *place : 0].there = 0;
    *place = (uint32_t)(l - cache->lines);
    l->way = way;
}
/* Reads sectors of a line through the L1, a bit each: those that it did not have. */
static inline unsigned model_cache_read(model_cache *cache, cache_line *l, uint32_t hash,
                                        unsigned sectors) {
    if (l->there == 0)
        model_cache_place(cache, l, hash);
    unsigned missing = sectors & ~(unsigned)l->there;
    l->there |= (uint8_t)sectors;
    cache->sets[l->way] = ++cache->clock;
    return missing;
}
/* Whether the L1 has the sector, whose line is where it is looked for first or right after, and so
 * reads it; false: nothing was done. *clock: the cache's, which the caller holds meanwhile. */
static inline bool model_cache_hit_sector(const model_cache *cache, uint32_t *clock,
                                          uint64_t sector) {
    uint64_t line = sector / CACHE_SECTORS;
    size_t at = model_line_hash(line) & cache->line_mask;
    const cache_line *l = &cache->lines[1 + at];
    l += l->tag != line + cache->round; /* no branch: nobody foresees it */
    if (l->tag != line + cache->round || (l->there >> (sector % CACHE_SECTORS) & 1) == 0)
        return false;
    cache->sets[l->way] = ++*clock;
    return true;
}
/* The same of sectors of a line, a bit each. */
static inline bool model_cache_hit(const model_cache *cache, uint32_t *clock, uint64_t line,
                                   unsigned sectors) {
    size_t at = model_line_hash(line) & cache->line_mask;
    const cache_line *l = &cache->lines[1 + at];
    if (l->tag != line + cache->round || (sectors & ~(unsigned)l->there) != 0)
        return false;
    cache->sets[l->way] = ++*clock;
    return true;
}
/* Marks sectors of a line; those marked for the first time. */
static inline unsigned model_cache_touch(cache_line *l, unsigned sectors, bool is_store) {
    unsigned marks = is_store ? sectors << CACHE_SECTORS : sectors;
    unsigned first = marks & ~(unsigned)l->touched;
    l->touched |= (uint8_t)marks;
    return is_store ? first >> CACHE_SECTORS : first;
}

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
void model_log_free(model_log *log);  /* NULL is fine */
void model_log_clear(model_log *log); /* as new, but for the room that it has */
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
