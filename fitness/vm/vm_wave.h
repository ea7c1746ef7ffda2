/* Between the files of a launch: blocks alive together, their turns, and when nothing goes on. */
#ifndef FITNESS_VM_VM_WAVE_H
#define FITNESS_VM_VM_WAVE_H

#include "base/pcg.h"
#include "fitness/vm/vm_frame.h"

/* Blocks alive together; each place holds one block after another. */
struct vm_wave {
    vm_block *places;
    uint32_t count;
    uint64_t next, end; /* numbers in the order of blocks: those to start */
    uint64_t total;
    uint64_t step, start; /* order of blocks: (i * step + start) mod total */
    uint64_t seed;        /* 0: warps in their natural order */
    vm_chunks *chunks;    /* of a job: where more blocks come from; NULL: there are no more */
    uint32_t *order;      /* of a block's warps */
    /* ---- is anything going on? as of the last rotation's end */
    uint64_t instructions_then, happenings_then;
};

/* Launches that run side by side. */
struct vm_session {
    vm_state *ranks;
    uint32_t count;
    uint64_t quiet; /* rotations since anything changed */
    vm_races races;
    uint32_t *order; /* of several ranks' turns; NULL: natural */
    ev_pcg rng;      /* permutes it */
};

/* ---- a launch's state (vm_launch.c) */
/* Its first fields, from the launch. */
ev_status vm_state_fill(vm_state *s, vm_memory *memory, const vm_launch *launch, vm_result *result,
                        ev_error *err) EV_CHECKED;
bool vm_state_make(vm_state *s); /* after its first fields are set; false: out of memory */
/* Sums up the counters; before vm_state_free. */
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
/* " of rank 1": whose memory an offset is in. Nothing where there is one rank and it is its own. */
void vm_rank_append_owner(const vm_state *s, uint64_t offset, char *text, size_t bytes);
/* "; ranks 1, 2 have ended", or nothing. */
void vm_rank_name_ended(const vm_session *x, char *text, size_t bytes);

/* ---- livelock detection (vm_livelock.c) */
/* Called after each rotation. True: nothing will ever change any more, and a trap says why. */
bool vm_livelock_rotation(vm_session *x);
/* The fuel is gone and memory has not changed for long. True: trapped, with a better reason. */
bool vm_livelock_out_of_fuel(vm_session *x);
/* What a warp reads while it spins, found by running it for a while; false: nothing. */
bool vm_livelock_trace(vm_warp *w, vm_poll *out);
/* "'flags'+28" */
void vm_livelock_name(const vm_state *s, const vm_poll *p, char *text, size_t bytes);

#endif
