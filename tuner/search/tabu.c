/* Spent: notes what single edits came to, and lists those not worth another child. */
#include "tuner/search/tabu.h"

#include "base/json.h"
#include "tuner/search/genomes.h"

#include <stdlib.h>

void tabu_free(tabu_list *s) {
    free(s->list);
    *s = (tabu_list){0};
}

/* 0: out of memory. */
static uint64_t base_of(const json_t *genome) {
    json_t *parts = json_pack("{s:O,s:O}", "start", json_object_get(genome, "start"), "macros",
                              json_object_get(genome, "macros"));
    uint64_t base = parts ? ir_edit_mark(parts) : 0;
    json_decref(parts);
    return base;
}

static tabu_edit *find(const tabu_list *s, uint64_t base, uint64_t mark) {
    for (size_t i = 0; i < s->count; i++) {
        if (s->list[i].mark == mark && s->list[i].base == base)
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

void tabu_note(tabu_list *s, const json_t *genome, bool worked) {
    size_t count = genome_edit_count(genome);
    const json_t *edit =
        count > 0 ? json_array_get(json_object_get(genome, "edits"), count - 1) : NULL;
    ir_edit_kind kind;
    if (!edit || !ir_edit_find(ev_json_text(edit, "kind", ""), &kind))
        return;
    tabu_edit e = {base_of(genome), ir_edit_mark(edit), kind, worked};
    if (e.base == 0 || e.mark == 0)
        return;
    tabu_edit *known = find(s, e.base, e.mark);
    if (known)
        known->worked = known->worked || worked;
    else
        add(s, e);
}

bool tabu_list_of(const tabu_list *s, const json_t *genome, const bool *kinds,
                  uint64_t marks[TABU_MOST], unsigned *count) {
    uint64_t base = base_of(genome);
    *count = 0;
    for (size_t i = s->count; i-- > 0 && *count < TABU_MOST;) {
        const tabu_edit *e = &s->list[i];
        if (!e->worked && e->base == base && kinds[e->kind])
            marks[(*count)++] = e->mark;
    }
    return base != 0;
}
