/* Predicate: early returns become predicates, so that all threads of a block reach what stands
 * behind. Private to ir/structure. */
#ifndef IR_STRUCTURE_PREDICATE_INTERNAL_H
#define IR_STRUCTURE_PREDICATE_INTERNAL_H

#include "ir/structure/structure_internal.h"

/* Rewrites the kernel such that its tests of coordinates at the beginning send home whole blocks
 * only. A thread that would have ended takes over the place 0 in the dimensions that its failed
 * tests depend on, so what it loads is valid, and its effects are skipped. Guessed: if a thread of
 * a block passes a test, then so does the one whose places in these dimensions are 0. EV_BAD: a
 * test reads memory, or the kernel cannot be written anew. */
ev_status ir_predicate(ir_structure *s, ev_error *err) EV_CHECKED;

#endif
