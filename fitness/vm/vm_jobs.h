/* Blocks spread over cores: several jobs run the blocks of one launch, each on its own view. */
#ifndef FITNESS_VM_VM_JOBS_H
#define FITNESS_VM_VM_JOBS_H

#include "fitness/vm/vm_wave.h"

#include <stdatomic.h>

/* Where jobs take their blocks from, a chunk at a time. */
struct vm_chunks {
    atomic_uint_fast64_t next; /* number in the order of blocks */
    uint64_t total, each;
    atomic_bool abandon; /* one job saw what only one after the other can do */
};

/* The next chunk into the wave; false: there is none. */
bool vm_chunk_take(vm_wave *v);
/* Tries to run the launch's blocks by `jobs` threads. True: done, counters and memory are what one
 * job would have left. False: nothing was changed; run it by one. */
bool vm_jobs_run(vm_state *s, unsigned jobs);

/* As vm_run with that many jobs. *spread: they did it; else one of them did it all. */
ev_status vm_run_by_jobs(vm_memory *memory, const vm_launch *launch, uint32_t jobs,
                         vm_result *result, bool *spread, ev_error *err) EV_CHECKED;

/* ---- views of a memory (vm_view.c) */
/* As the memory is now; what is written through the view stays in it. False: the machine cannot. */
bool vm_view_open(vm_memory *m, vm_memory *view);
void vm_view_close(vm_memory *view);
/* Did one write what the other read or wrote? */
bool vm_views_meet(const vm_memory *a, const vm_memory *b);
/* Puts what was written through the view into the memory; false: out of memory. */
bool vm_view_merge(vm_memory *m, const vm_memory *view);

#endif
