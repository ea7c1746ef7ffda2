/* Bisection: halves the edits of a wrong genome until the edit that makes the genome wrong is
 * found. */
#include "tuner/run/bisect.h"

#include <stdint.h>
#include <stdlib.h>

typedef struct search_for {
    const bisect_request *request;
    const ir_genome *genome; /* wrong, or not tested yet */
    bisect_result *out;
    size_t right; /* number of leading edits that are known to be right */
    size_t spent;
    bool knows_base; /* the base is known to be right without edits */
} search_for;

static ev_status is_wrong(search_for *s, const ir_genome *genome, bool *wrong, ev_error *err) {
    if (!genome)
        return ev_fail_memory(err, 0);
    s->spent++;
    ev_status status = s->request->test(s->request->context, genome, wrong, err);
    ir_genome_free(genome);
    return status;
}

static bool has_budget(const search_for *s) {
    return s->spent < s->request->budget;
}

/* Finds the least known k so that the first k edits are wrong and the first k - 1 are right.
 * SIZE_MAX: the budget was too small. */
static ev_status halve(search_for *s, size_t *k, ev_error *err) {
    size_t high = ir_genome_edit_count(s->genome);
    while (high - s->right > 1 && has_budget(s)) {
        size_t middle = s->right + (high - s->right) / 2;
        bool wrong = false;
        EV_TRY(is_wrong(s, ir_genome_part(s->genome, 0, middle), &wrong, err));
        if (wrong)
            high = middle;
        else
            s->right = middle;
    }
    s->knows_base = s->knows_base || s->right > 0;
    *k = high - s->right > 1 ? SIZE_MAX : high;
    return EV_OK;
}

/* Adds a wrong genome. Takes over the reference; NULL means that memory ran out. */
static ev_status add_wrong(search_for *s, const ir_genome *genome, ev_error *err) {
    size_t bytes = (s->out->wrong_count + 1) * sizeof(const ir_genome *);
    const ir_genome **more = genome ? realloc((void *)s->out->wrong, bytes) : NULL;
    if (!more) {
        ir_genome_free(genome);
        return ev_fail_memory(err, bytes);
    }
    s->out->wrong = more;
    more[s->out->wrong_count++] = genome;
    return EV_OK;
}

/* Notes a wrong genome of the first k edits; tests whether the last of them is wrong alone. */
static ev_status note_wrong(search_for *s, size_t k, ev_error *err) {
    bool alone = false;
    if (k > 1 && has_budget(s))
        EV_TRY(is_wrong(s, ir_genome_part_on_base(s->genome, k - 1, k), &alone, err));
    const ir_genome *part =
        alone ? ir_genome_part_on_base(s->genome, k - 1, k) : ir_genome_part(s->genome, 0, k);
    return add_wrong(s, part, err);
}

/* Tests whether the base is wrong without any edit. Called only if the first edit is to blame. */
static ev_status check_base(search_for *s, bool *wrong, ev_error *err) {
    *wrong = false;
    if (s->knows_base)
        return EV_OK;
    EV_TRY(is_wrong(s, ir_genome_part(s->genome, 0, 0), wrong, err));
    s->knows_base = true;
    if (!*wrong)
        return EV_OK;
    return add_wrong(s, ir_genome_part(s->genome, 0, 0), err);
}

static ev_status drop(search_for *s, size_t edit, ev_error *err) {
    const ir_genome *rest = ir_genome_without(s->genome, edit, edit + 1);
    if (!rest)
        return ev_fail_memory(err, 0);
    ir_genome_free(s->genome);
    s->genome = rest;
    return EV_OK;
}

/* Removes one edit. *over: nothing more can be found. *found: s->genome is right now. */
static ev_status step(search_for *s, bool *over, bool *found, ev_error *err) {
    size_t k = 0;
    EV_TRY(halve(s, &k, err));
    *over = k == SIZE_MAX;
    if (*over)
        return EV_OK;
    if (k == 1)
        EV_TRY(check_base(s, over, err));
    if (*over)
        return EV_OK;
    EV_TRY(note_wrong(s, k, err));
    EV_TRY(drop(s, k - 1, err));
    bool wrong = false;
    if (ir_genome_edit_count(s->genome) > s->right)
        EV_TRY(is_wrong(s, ir_genome_ref(s->genome), &wrong, err));
    *over = *found = !wrong;
    return EV_OK;
}

static ev_status look(search_for *s, ev_error *err) {
    bool over = false, found = false;
    if (ir_genome_edit_count(s->genome) == 0) /* the base is known to be wrong */
        return add_wrong(s, ir_genome_ref(s->genome), err);
    while (!over && has_budget(s))
        EV_TRY(step(s, &over, &found, err));
    if (found)
        s->out->rest = ir_genome_ref(s->genome);
    return EV_OK;
}

ev_status bisect_find(const bisect_request *request, bisect_result *out, ev_error *err) {
    *out = (bisect_result){0};
    search_for s = {.request = request, .genome = ir_genome_ref(request->genome), .out = out};
    ev_status status = look(&s, err);
    ir_genome_free(s.genome);
    if (status != EV_OK)
        bisect_clear(out);
    return status;
}

void bisect_clear(bisect_result *r) {
    for (size_t i = 0; i < r->wrong_count; i++)
        ir_genome_free(r->wrong[i]);
    free((void *)r->wrong);
    ir_genome_free(r->rest);
    *r = (bisect_result){0};
}
