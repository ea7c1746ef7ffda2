/* Genomes as JSON, as the search, its records and its messages hold them. */
#ifndef TUNER_GENOMES_H
#define TUNER_GENOMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t genome_edit_count(const json_t *genome);
/* The place of an equal edit; SIZE_MAX: there is none. */
size_t genome_find_edit(const json_t *genome, const json_t *edit);
bool genome_has_edit(const json_t *genome, const json_t *edit);
/* Whether the edits of one make sense in the other: same start, same macros, same kind of base. */
bool genome_same_base(const json_t *a, const json_t *b);

#endif
