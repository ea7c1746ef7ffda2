/* Tabu list: edits that, as the only new edit on one base module, left the code unchanged or made
 * it wrong. On another parent of the same base they hardly ever do better (15 of 638 such children
 * of the shipped tasks did), so that most children may not draw them again. */
#ifndef TUNER_SEARCH_TABU_H
#define TUNER_SEARCH_TABU_H

#include "ir/genome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABU_MOST 256 /* marks that a recipe holds */

typedef struct tabu_edit {
    ev_sha256 base; /* ir_genome_base_sha256 */
    uint64_t mark;  /* hash of the edit without its repairs: ir_edit_mark */
    ir_edit_kind kind;
    bool worked; /* it worked once, and is not tabu */
} tabu_edit;

typedef struct tabu_list {
    tabu_edit *list; /* oldest first */
    size_t count, capacity;
} tabu_list;

void tabu_free(tabu_list *s);
/* Notes whether the last edit of `genome`, the only new one, worked. Notes nothing when memory runs
 * out. */
void tabu_note(tabu_list *s, const ir_genome *genome, bool worked);
/* Notes whether edit `index` of `child` worked on the base of `parent`. */
void tabu_note_at(tabu_list *s, const ir_genome *parent, const ir_genome *child, size_t index,
                  bool worked);
/* Marks of the tabu edits of `genome`'s base and of the kinds [IR_EDIT_COUNT], newest first, at
 * most TABU_MOST; returns their number. */
unsigned tabu_marks(const tabu_list *s, const ir_genome *genome, const bool *kinds,
                    uint64_t marks[TABU_MOST]);

#endif
