/* Links: learns which edits need another edit, and lists the pairs that a crossover must keep
 * together. */
#include "tuner/search/links.h"

/* edits of the largest genome that is examined: the work grows with the square */
#define MOST_EDITS 12

static void link_clear(edit_link *k) {
    ir_genome_free(k->genome);
    *k = (edit_link){0};
}

void links_free(links *l) {
    for (size_t i = 0; i < l->count; i++)
        link_clear(&l->list[i]);
    *l = (links){0};
}

static bool is_known(const links *l, const ir_genome *genome, const edit_pair *pair) {
    for (size_t i = 0; i < l->count; i++) {
        const edit_link *k = &l->list[i];
        if (ev_sha256_equal(&k->pair.edit, &pair->edit) &&
            ev_sha256_equal(&k->pair.needs, &pair->needs) && ir_genome_same_base(k->genome, genome))
            return true;
    }
    return false;
}

static void add(links *l, const ir_genome *genome, const edit_pair *pair) {
    if (is_known(l, genome, pair))
        return;
    edit_link *k = &l->list[l->next];
    if (l->count == LINKS_MOST)
        link_clear(k);
    else
        l->count++;
    *k = (edit_link){ir_genome_ref(genome), *pair};
    l->next = (l->next + 1) % LINKS_MOST;
}

static bool passes_without(const ir_genome *part, size_t at, links_outcome outcome,
                           const void *context) {
    const ir_genome *rest = ir_genome_without(part, at, at + 1);
    bool passed = false, known = rest && outcome(context, rest, &passed);
    ir_genome_free(rest);
    return known && passed;
}

/* `part` fails alone and passes with the edit `needs`. Finds the edit of `part` that needs it. */
static void find_needy(links *l, const ir_genome *part, ev_sha256 needs, links_outcome outcome,
                       const void *context) {
    size_t count = ir_genome_edit_count(part);
    for (size_t i = 0; i < count; i++) {
        edit_pair pair = {ir_genome_edit_key(part, i), needs};
        if (count == 1 || passes_without(part, i, outcome, context))
            add(l, part, &pair);
    }
}

void links_learn_from_passed(links *l, const ir_genome *whole, links_outcome outcome,
                             const void *context) {
    size_t count = ir_genome_edit_count(whole);
    for (size_t i = 0; count >= 2 && count <= MOST_EDITS && i < count; i++) {
        const ir_genome *part = ir_genome_without(whole, i, i + 1);
        bool passed = true;
        if (part && outcome(context, part, &passed) && !passed)
            find_needy(l, part, ir_genome_edit_key(whole, i), outcome, context);
        ir_genome_free(part);
    }
}

void links_learn_from_failed(links *l, const ir_genome *part, const ir_genome *whole,
                             links_outcome outcome, const void *context) {
    size_t count = ir_genome_edit_count(part), extra = count + 1, missing = 0;
    if (count == 0 || count >= MOST_EDITS || ir_genome_edit_count(whole) != count + 1 ||
        !ir_genome_same_base(part, whole))
        return;
    for (size_t i = 0; i <= count; i++) {
        ev_sha256 key = ir_genome_edit_key(whole, i);
        if (!ir_genome_holds(part, &key)) {
            extra = i;
            missing++;
        }
    }
    if (missing == 1)
        find_needy(l, part, ir_genome_edit_key(whole, extra), outcome, context);
}

static bool fits(const edit_link *k, const ir_genome *parent) {
    return parent && ir_genome_same_base(k->genome, parent) &&
           ir_genome_holds(parent, &k->pair.edit) && ir_genome_holds(parent, &k->pair.needs);
}

size_t links_of(const links *l, const ir_genome *first, const ir_genome *mate,
                edit_pair out[LINKS_MOST]) {
    size_t count = 0;
    for (size_t i = 0; i < l->count; i++) {
        if (fits(&l->list[i], first) || fits(&l->list[i], mate))
            out[count++] = l->list[i].pair;
    }
    return count;
}
