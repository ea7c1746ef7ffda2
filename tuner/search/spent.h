/* Spent edits: those that alone, on one base module, came to nothing: the code stayed its parent's,
 * or went wrong. They hardly do otherwise on another parent of that base (of 638 such children of
 * the shipped tasks 15 did), so they are not drawn again, save in a part of the children. */
#ifndef TUNER_SEARCH_SPENT_H
#define TUNER_SEARCH_SPENT_H

#include "ir/genome.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SPENT_MOST 256 /* that a child is told of */

typedef struct spent_edit {
    uint64_t base, mark; /* of start and macros; of the edit: ir_edit_mark */
    ir_edit_kind kind;
    bool worked; /* once, which is enough to try it again */
} spent_edit;

typedef struct spent {
    spent_edit *list; /* in the order in which they were met */
    size_t count, capacity;
} spent;

void spent_free(spent *s);
/* The last edit of `genome`, made alone, came to nothing, or it worked. What there is no memory for
 * is not noted. */
void spent_note(spent *s, const json_t *genome, bool worked);
/* Marks of the spent edits of `genome`'s base whose kinds `kinds` [IR_EDIT_COUNT] holds, the newest
 * first. False: out of memory. */
bool spent_of(const spent *s, const json_t *genome, const bool *kinds, uint64_t marks[SPENT_MOST],
              unsigned *count);

#endif
