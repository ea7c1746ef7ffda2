/* Wrong settings: values of macros at which an unmodified start fails a gate. No child is drawn at
 * such values again, with structural edits or without. */
#ifndef TUNER_SEARCH_WRONG_H
#define TUNER_SEARCH_WRONG_H

#include "fitness/gates/score.h"
#include "ir/genome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRONG_MOST 64    /* marks that a recipe holds */
#define WRONG_MACROS 160 /* bytes of the macros as text */
#define WRONG_REASON 320 /* bytes */

typedef struct wrong_setting {
    uint64_t mark; /* wrong_mark of the start at these macros */
    char start[64];
    char macros[WRONG_MACROS]; /* "BLOCK=7 TILE=3" */
    gate at;                   /* the gate that stopped the start */
    char reason[WRONG_REASON];
} wrong_setting;

typedef struct wrong_list {
    wrong_setting *list; /* oldest first */
    size_t count, capacity;
} wrong_list;

void wrong_free(wrong_list *w);
/* The mark of a genome's start and macros, whatever its edits. */
uint64_t wrong_mark(const ir_genome *genome);
/* Notes a child that `at` stopped, if it is a start at other macros than the defaults and has no
 * edit but for the pipeline, and its base is not noted. False: it is not noted, or memory ran out.
 */
bool wrong_note(wrong_list *w, const ir_genome *genome, gate at, const char *reason);
/* Whether the setting of a genome is noted. */
bool wrong_holds(const wrong_list *w, const ir_genome *genome);
/* Marks of the wrong settings, newest first; returns their number. */
unsigned wrong_marks(const wrong_list *w, uint64_t marks[WRONG_MOST]);

#endif
