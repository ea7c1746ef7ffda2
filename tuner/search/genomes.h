/* Genomes as JSON, as the search, its records and its messages hold them. */
#ifndef TUNER_SEARCH_GENOMES_H
#define TUNER_SEARCH_GENOMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t genome_edit_count(const json_t *genome);
/* The index of an equal edit; SIZE_MAX: there is none. */
size_t genome_find_edit(const json_t *genome, const json_t *edit);
bool genome_has_edit(const json_t *genome, const json_t *edit);
/* Whether two genomes have the same base: start, macros and kind of base. Only then do the edits of
 * one name instructions of the other. */
bool genome_same_base(const json_t *a, const json_t *b);

/* The genome with the edits [from, to) alone, and the genome without these edits: new references.
 * NULL: out of memory. */
json_t *genome_part(const json_t *genome, size_t from, size_t to);
json_t *genome_without(const json_t *genome, size_t from, size_t to);
/* The genome with these edits in place of its own: a new reference. Takes `edits` over; NULL: not
 * `whole`, as when an edit found no room in them, or out of memory. */
json_t *genome_with_edits(const json_t *genome, json_t *edits, bool whole);
/* Whether the genome has all edits of the other, on the same base. */
bool genome_holds(const json_t *genome, const json_t *other);

#endif
