/* Links: learns which edits need another one, and tells those that a crossover must keep. */
#include "tuner/search/links.h"

#include "tuner/search/genomes.h"

#define MOST_EDITS 12 /* of a genome that is looked into: the work grows with the square */

static json_t *edits_of(const json_t *genome) {
    return json_object_get(genome, "edits");
}

static void link_clear(edit_link *k) {
    json_decref(k->genome);
    json_decref(k->edit);
    json_decref(k->needs);
    *k = (edit_link){0};
}

void links_free(links *l) {
    for (size_t i = 0; i < l->count; i++)
        link_clear(&l->list[i]);
    *l = (links){0};
}

static bool is_known(const links *l, const json_t *genome, const json_t *edit,
                     const json_t *needs) {
    for (size_t i = 0; i < l->count; i++) {
        const edit_link *k = &l->list[i];
        if (json_equal(k->edit, edit) && json_equal(k->needs, needs) &&
            genome_same_base(k->genome, genome))
            return true;
    }
    return false;
}

static void add(links *l, const json_t *genome, json_t *edit, json_t *needs) {
    if (is_known(l, genome, edit, needs))
        return;
    edit_link *k = &l->list[l->next];
    if (l->count == LINKS_MOST)
        link_clear(k);
    else
        l->count++;
    *k = (edit_link){json_incref((json_t *)genome), json_incref(edit), json_incref(needs)};
    l->next = (l->next + 1) % LINKS_MOST;
}

static bool passes_without(const json_t *part, size_t at, links_outcome outcome,
                           const void *context) {
    json_t *rest = genome_without(part, at, at + 1);
    bool passed = false, known = rest && outcome(context, rest, &passed);
    json_decref(rest);
    return known && passed;
}

/* `part` fails, and passes with `needs`: who needs it? */
static void find_needy(links *l, const json_t *part, json_t *needs, links_outcome outcome,
                       const void *context) {
    size_t count = genome_edit_count(part);
    for (size_t i = 0; i < count; i++) {
        if (count == 1 || passes_without(part, i, outcome, context))
            add(l, part, json_array_get(edits_of(part), i), needs);
    }
}

void links_learn_from_passed(links *l, const json_t *whole, links_outcome outcome,
                             const void *context) {
    size_t count = genome_edit_count(whole);
    for (size_t i = 0; count >= 2 && count <= MOST_EDITS && i < count; i++) {
        json_t *part = genome_without(whole, i, i + 1);
        bool passed = true;
        if (part && outcome(context, part, &passed) && !passed)
            find_needy(l, part, json_array_get(edits_of(whole), i), outcome, context);
        json_decref(part);
    }
}

void links_learn_from_failed(links *l, const json_t *part, const json_t *whole,
                             links_outcome outcome, const void *context) {
    size_t count = genome_edit_count(part), extra = count + 1, missing = 0;
    if (count == 0 || count >= MOST_EDITS || genome_edit_count(whole) != count + 1 ||
        !genome_same_base(part, whole))
        return;
    for (size_t i = 0; i <= count; i++) {
        if (!genome_has_edit(part, json_array_get(edits_of(whole), i))) {
            extra = i;
            missing++;
        }
    }
    if (missing == 1)
        find_needy(l, part, json_array_get(edits_of(whole), extra), outcome, context);
}

static bool fits(const edit_link *k, const json_t *parent) {
    return parent && genome_same_base(k->genome, parent) && genome_has_edit(parent, k->edit) &&
           genome_has_edit(parent, k->needs);
}

json_t *links_of(const links *l, const json_t *first, const json_t *mate) {
    json_t *list = json_array();
    for (size_t i = 0; list && i < l->count; i++) {
        const edit_link *k = &l->list[i];
        if (!fits(k, first) && !fits(k, mate))
            continue;
        if (json_array_append_new(list, json_pack("[O,O]", k->edit, k->needs)) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}
