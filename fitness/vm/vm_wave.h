/* Waves and sessions: blocks alive together, their turns, livelock detection. Private to the files
 * of a launch. */
#ifndef FITNESS_VM_VM_WAVE_H
#define FITNESS_VM_VM_WAVE_H

#include "base/pcg.h"
#include "fitness/vm/vm_frame.h"

/* Blocks alive together; each place holds one block after another. */
struct vm_wave {
    vm_block *places;
    uint32_t count;
    uint64_t next, end; /* blocks to start, as numbers in the order of blocks */
    uint64_t total;
    uint64_t step, start; /* order of blocks: (i * step + start) mod total */
    uint64_t seed;        /* 0: warps in their natural order */
    vm_chunks *chunks;    /* of a job: the source of more blocks; NULL: none */
    uint32_t *order;      /* of a block's warps */
    /* ---- for livelock detection: values at the end of the last rotation */
    uint64_t instructions_then, happenings_then;
};

/* Launches that run side by side. */
struct vm_session {
    vm_state *ranks;
    uint32_t count;
    uint64_t quiet; /* rotations since anything changed */
    vm_races races;
    vm_heard *heard; /* by rank: what it knows of each rank (vm_apart.c); NULL: not kept */
    uint32_t *known; /* the stamps in `heard` when the launches began */
    vm_past *past;   /* room for what they leave to those that follow; NULL: none do */
    uint32_t *order; /* of several ranks' turns; NULL: natural */
    ev_pcg rng;      /* permutes it */
};

/* ---- a launch's state (vm_launch.c) */
/* Fills the first fields from the launch. EV_BAD: as vm_run. */
ev_status vm_state_fill(vm_state *s, vm_memory *memory, const vm_launch *launch, vm_result *result,
                        ev_error *err) EV_CHECKED;
bool vm_state_make(vm_state *s); /* after its first fields are set; false: out of memory */
/* Sums up the counters. Call before vm_state_free. */
void vm_state_count(vm_state *s);
void vm_state_free(vm_state *s);

/* ---- blocks (vm_block.c) */
bool vm_block_make(vm_state *s, vm_block *b);
bool vm_block_start(vm_state *s, vm_block *b, uint32_t linear);
void vm_block_end(vm_state *s, vm_block *b);
void vm_block_free(vm_block *b);

/* ---- waves (vm_wave.c); false: trapped or out of memory */
bool vm_wave_begin(vm_state *s);
void vm_wave_end(vm_state *s);
/* The number of the i-th block in the order of blocks. */
uint32_t vm_wave_block(const vm_state *s, uint64_t i);
/* Runs all launches to their end. */
bool vm_session_run(vm_session *x);

/* ---- ranks (vm_ranks.c) */
/* Appends " of rank 1", the owner of an offset; nothing if there is one rank. */
void vm_rank_append_owner(const vm_state *s, uint64_t offset, char *text, size_t bytes);
/* "; ranks 1, 2 have ended", or nothing. */
void vm_rank_name_ended(const vm_session *x, char *text, size_t bytes);

/* ---- ranks that begin and end apart (vm_apart.c); nothing without VM_CHECK_BEGIN and _END */
bool vm_apart_begin(vm_session *x); /* false: out of memory */
void vm_apart_end(vm_session *x);
void vm_apart_forget(vm_session *x); /* all stamps are used up */
/* Call when all ranks have ended. False: a rank has not heard of a write into its memory; the trap
 * of the writer is raised. */
bool vm_apart_settle(vm_session *x);

/* ---- launches of ranks that follow each other (vm_stream.c) */
/* Gives the session the races and `heard` of the launches that it follows; false: it follows none.
 */
bool vm_stream_take(vm_session *x);
/* After the session has its races and `heard`; false: out of memory. */
bool vm_stream_begin(vm_session *x);
/* Leaves races and `heard` to the launches that follow; false: none do, so the caller frees them.
 */
bool vm_stream_leave(vm_session *x);
void vm_stream_end(vm_session *x);

/* ---- livelock detection (vm_livelock.c) */
/* Call after each rotation. True: no memory can ever change again; the trap is raised. */
bool vm_livelock_rotation(vm_session *x);
/* Call when the fuel is used up and memory has not changed for long. True: it is proven that the
 * launch cannot end, and the trap says why; or a rank trapped meanwhile. */
bool vm_livelock_out_of_fuel(vm_session *x);
/* Finds the read of a spinning warp by running the warp for a while; false: none. */
bool vm_livelock_trace(vm_warp *w, vm_poll *out);
/* Names the polled place: "'flags'+28". */
void vm_livelock_name(const vm_state *s, const vm_poll *p, char *text, size_t bytes);

/* Behind what vm_place_append wrote: that the alignment of the variable is the cause, if it is. */
void vm_place_append_alignment(char *text, size_t size, const vm_warp *w, const ptx_insn *ip,
                               unsigned lane, uint64_t address);

#endif
