/* Frames of functions, and turns of warps. Private to the files of a launch. */
#ifndef FITNESS_VM_VM_FRAME_H
#define FITNESS_VM_VM_FRAME_H

#include "fitness/vm/vm_exec.h"

#define VM_SM_COUNT 132 /* value of %nsmid; blocks are assigned to SMs in turn */

vm_frame *vm_frame_take(vm_warp *w, uint32_t func);
/* Removes the lanes of `mask` from `frame` and all frames below. */
void vm_frame_leave(vm_warp *w, vm_frame *frame, uint32_t mask);
/* Marks [at, at + bytes) of a lane's local memory as not written. */
void vm_local_forget(vm_warp *w, unsigned lane, uint64_t at, uint64_t bytes);
void vm_frames_free(vm_state *s);

/* Runs a warp until all its sets wait or ended, or the budget is used up. False: trapped. */
bool vm_warp_turn(vm_warp *w, int64_t budget);
bool vm_warp_ready(const vm_warp *w);
/* Executes the exchanges whose lanes have all arrived, even at different instructions
 * (vm_reconverge.c). */
void vm_reconverge(vm_warp *w);
/* The union of the member masks of a waiting set's lanes; all lanes if there are none. */
uint32_t vm_reconverge_mask(const vm_warp *w, const vm_set *s);
/* Releases the threads at every complete barrier. */
void vm_barriers_check(vm_block *b);
/* Raises the trap of a block in which no thread can go on: divergent barrier or deadlock. */
void vm_block_stuck(vm_block *b);

#endif
