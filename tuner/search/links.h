/* Linkage: pairs of edits of which one passes only beside the other. Crossover keeps such a pair
 * together.
 *
 * The evidence is a genome that passed every gate and the same genome without one edit, which did
 * not pass. Then one of the remaining edits needs the missing edit. That edit is identified if it
 * is the only remaining one, or if the genome passes without both. */
#ifndef TUNER_SEARCH_LINKS_H
#define TUNER_SEARCH_LINKS_H

#include "ir/genome.h"

#include <stdbool.h>
#include <stddef.h>

#define LINKS_MOST 32 /* the newest are kept */

/* Keys of the two edits (ir_genome_edit_key). */
typedef struct edit_pair {
    ev_sha256 edit, needs;
} edit_pair;

typedef struct edit_link {
    const ir_genome *genome; /* a reference; its base is that of both edits */
    edit_pair pair;
} edit_link;

typedef struct links {
    edit_link list[LINKS_MOST];
    size_t count, next;
} links;

/* Whether a genome passed. False: its outcome is not known, or only the filter stopped it. */
typedef bool (*links_outcome)(const void *context, const ir_genome *genome, bool *passed);

void links_free(links *l);
/* Adds the links that follow from `whole`, which passed. */
void links_learn_from_passed(links *l, const ir_genome *whole, links_outcome outcome,
                             const void *context);
/* Adds the links that follow from `part`, which did not pass, and `whole`, which did. Nothing
 * follows unless `whole` has one edit more. */
void links_learn_from_failed(links *l, const ir_genome *part, const ir_genome *whole,
                             links_outcome outcome, const void *context);
/* The links of which one of the parents holds both edits; returns their number. `mate`: NULL: there
 * is one parent. */
size_t links_of(const links *l, const ir_genome *first, const ir_genome *mate,
                edit_pair out[LINKS_MOST]);

#endif
