/* Tabu list: notes whether single edits worked, and lists those that did not. */
#include "tuner/search/tabu.h"

#include <stdlib.h>

void tabu_free(tabu_list *s) {
    free(s->list);
    *s = (tabu_list){0};
}

static tabu_edit *find(const tabu_list *s, const tabu_edit *like) {
    for (size_t i = 0; i < s->count; i++) {
        if (s->list[i].mark == like->mark && ev_sha256_equal(&s->list[i].base, &like->base))
            return &s->list[i];
    }
    return NULL;
}

static void add(tabu_list *s, tabu_edit e) {
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 256;
        tabu_edit *more = realloc(s->list, capacity * sizeof *more);
        if (!more)
            return;
        s->list = more;
        s->capacity = capacity;
    }
    s->list[s->count++] = e;
}

void tabu_note(tabu_list *s, const ir_genome *genome, bool worked) {
    size_t count = ir_genome_edit_count(genome);
    if (count > 0)
        tabu_note_at(s, genome, genome, count - 1, worked);
}

void tabu_note_at(tabu_list *s, const ir_genome *parent, const ir_genome *child, size_t index,
                  bool worked) {
    tabu_edit e = {ir_genome_base_sha256(parent), ir_genome_edit_mark(child, index),
                   ir_genome_edit_kind(child, index), worked};
    if (e.mark == 0)
        return;
    tabu_edit *known = find(s, &e);
    if (known)
        known->worked = known->worked || worked;
    else
        add(s, e);
}

unsigned tabu_marks(const tabu_list *s, const ir_genome *genome, const bool *kinds,
                    uint64_t marks[TABU_MOST]) {
    ev_sha256 base = ir_genome_base_sha256(genome);
    unsigned count = 0;
    for (size_t i = s->count; i-- > 0 && count < TABU_MOST;) {
        const tabu_edit *e = &s->list[i];
        if (!e->worked && kinds[e->kind] && ev_sha256_equal(&e->base, &base))
            marks[count++] = e->mark;
    }
    return count;
}
