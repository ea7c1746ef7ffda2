/* Genomes as JSON: their edits, and whether two have one base. */
#include "tuner/genomes.h"

size_t genome_edit_count(const json_t *genome) {
    return json_array_size(json_object_get(genome, "edits"));
}

size_t genome_find_edit(const json_t *genome, const json_t *edit) {
    size_t i = 0;
    const json_t *other = NULL;
    json_array_foreach(json_object_get(genome, "edits"), i, other) {
        if (json_equal(edit, other))
            return i;
    }
    return SIZE_MAX;
}

bool genome_has_edit(const json_t *genome, const json_t *edit) {
    return genome_find_edit(genome, edit) != SIZE_MAX;
}

bool genome_same_base(const json_t *a, const json_t *b) {
    return json_equal(json_object_get(a, "start"), json_object_get(b, "start")) &&
           (json_object_get(a, "base") != NULL) == (json_object_get(b, "base") != NULL) &&
           json_equal(json_object_get(a, "macros"), json_object_get(b, "macros"));
}
