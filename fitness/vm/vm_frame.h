/* Between the files of a launch: frames of functions. */
#ifndef FITNESS_VM_VM_FRAME_H
#define FITNESS_VM_VM_FRAME_H

#include "fitness/vm/vm_exec.h"

#define VM_SM_COUNT 132 /* what %nsmid says; blocks count as dealt out in turn */

vm_frame *vm_frame_take(vm_warp *w, uint32_t func);
/* Lanes of `frame` are gone, here and in all frames below. */
void vm_frame_leave(vm_warp *w, vm_frame *frame, uint32_t mask);
/* Forgets what was written to [at, at + bytes) of a lane's local memory. */
void vm_local_forget(vm_warp *w, unsigned lane, uint64_t at, uint64_t bytes);
void vm_frames_free(vm_state *s);

/* One turn of a warp: until all its sets wait or ended, or the budget is spent. False: trapped. */
bool vm_warp_turn(vm_warp *w, int64_t budget);
bool vm_warp_ready(const vm_warp *w);
/* Executes the exchanges whose lanes are all there, each at a place of its own (vm_reconverge.c).
 */
void vm_reconverge(vm_warp *w);
/* What the member masks of a waiting set's lanes name; all lanes where there are none. */
uint32_t vm_reconverge_mask(const vm_warp *w, const vm_set *s);
/* Lets go whoever waits at a barrier that is full now. */
void vm_barriers_check(vm_block *b);
/* Explains why nobody in the block can go on: divergent barrier or deadlock. */
void vm_block_stuck(vm_block *b);

#endif
