/* Links: edits that fail without another one, "fails alone, passes with X". Crossover keeps them
 * together.
 *
 * Evidence is a genome that passed every gate and the same without one edit, which did not: some
 * edit that is left needs the missing one. Which, is known where only one is left, or where the
 * genome passes without both. */
#ifndef TUNER_SEARCH_LINKS_H
#define TUNER_SEARCH_LINKS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#define LINKS_MOST 32 /* the newest are kept */

typedef struct edit_link {
    json_t *genome;       /* where it was seen: start, macros and base of both edits; a reference */
    json_t *edit, *needs; /* references */
} edit_link;

typedef struct links {
    edit_link list[LINKS_MOST];
    size_t count, next;
} links;

/* What became of a genome; false: it is not known, or only the filter spoke. */
typedef bool (*links_outcome)(const void *context, const json_t *genome, bool *passed);

void links_free(links *l);
/* `whole` passed; adds what follows for each of its edits. */
void links_learn_from_passed(links *l, const json_t *whole, links_outcome outcome,
                             const void *context);
/* `part` did not pass; `whole`, which did, may have one edit more. */
void links_learn_from_failed(links *l, const json_t *part, const json_t *whole,
                             links_outcome outcome, const void *context);
/* Those whose two edits one of the parents holds: [[edit, needs], ...], a new reference; NULL: out
 * of memory. */
json_t *links_of(const links *l, const json_t *first, const json_t *mate);

#endif
