/* Blocks spread over cores: several jobs run the blocks of one launch, each on its own view. */
#ifndef FITNESS_VM_VM_JOBS_H
#define FITNESS_VM_VM_JOBS_H

#include "fitness/vm/vm_wave.h"

#include <stdatomic.h>

/* The source of the jobs' blocks, a chunk at a time. */
struct vm_chunks {
    atomic_uint_fast64_t next; /* number in the order of blocks */
    uint64_t total, each;
    atomic_bool abandon; /* one job found that the result depends on the order of blocks */
};

/* Takes the next chunk into the wave; false: none is left. */
bool vm_chunk_take(vm_wave *v);
/* Tries to run the launch's blocks by `jobs` threads. True: done, with the counters and memory of a
 * run by one job. False: nothing was changed; run by one job. */
bool vm_jobs_run(vm_state *s, unsigned jobs);

/* As vm_run, with that many jobs. *spread: several jobs ran the blocks; else one did. */
ev_status vm_run_by_jobs(vm_memory *memory, const vm_launch *launch, uint32_t jobs,
                         vm_result *result, bool *spread, ev_error *err) EV_CHECKED;

/* ---- views of a memory (vm_view.c) */
/* Opens a view of the memory as it is now. Writes through the view stay in the view. False: the
 * host does not support views. */
bool vm_view_open(vm_memory *m, vm_memory *view);
void vm_view_close(vm_memory *view);
/* True if one view wrote bytes that the other read or wrote. */
bool vm_views_meet(const vm_memory *a, const vm_memory *b);
/* Copies the view's writes into the memory; false: out of memory. */
bool vm_view_merge(vm_memory *m, const vm_memory *view);

#endif
