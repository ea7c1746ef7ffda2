/* Genomes as JSON: their edits, parts of them, and whether two have one base. */
#include "tuner/search/genomes.h"

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

json_t *genome_with_edits(const json_t *genome, json_t *edits, bool whole) {
    json_t *copy = whole ? json_copy((json_t *)genome) : NULL;
    if (copy && json_object_set(copy, "edits", edits) != 0) {
        json_decref(copy);
        copy = NULL;
    }
    json_decref(edits);
    return copy;
}

/* The edits within [from, to), or the others. */
static json_t *choose(const json_t *genome, size_t from, size_t to, bool within) {
    json_t *edits = json_array();
    const json_t *all = json_object_get(genome, "edits");
    bool ok = edits != NULL;
    for (size_t i = 0; ok && i < json_array_size(all); i++) {
        if ((i >= from && i < to) == within)
            ok = json_array_append(edits, json_array_get(all, i)) == 0;
    }
    return genome_with_edits(genome, edits, ok);
}

json_t *genome_part(const json_t *genome, size_t from, size_t to) {
    return choose(genome, from, to, true);
}

json_t *genome_without(const json_t *genome, size_t from, size_t to) {
    return choose(genome, from, to, false);
}

bool genome_holds(const json_t *genome, const json_t *other) {
    if (!genome_same_base(genome, other))
        return false;
    size_t at = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(other, "edits"), at, edit) {
        if (!genome_has_edit(genome, edit))
            return false;
    }
    return true;
}
