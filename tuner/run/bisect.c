/* Blame: halves the edits of a wrong genome until the one that makes it wrong is found. */
#include "tuner/run/bisect.h"

#include "tuner/search/genomes.h"

#include <stdint.h>

typedef struct search_for {
    const bisect_request *request;
    json_t *genome; /* wrong, or not known */
    json_t *wrong;
    size_t right; /* so many edits from the first on are right */
    size_t spent;
    bool knows_base; /* that it is right without any edit */
} search_for;

static ev_status is_wrong(search_for *s, json_t *genome, bool *wrong, ev_error *err) {
    if (!genome)
        return ev_fail_memory(err, 0);
    s->spent++;
    ev_status status = s->request->test(s->request->context, genome, wrong, err);
    json_decref(genome);
    return status;
}

static bool has_budget(const search_for *s) {
    return s->spent < s->request->budget;
}

/* *k: the first k edits are wrong, and one less are right; SIZE_MAX: the budget was too small. */
static ev_status halve(search_for *s, size_t *k, ev_error *err) {
    size_t high = genome_edit_count(s->genome);
    while (high - s->right > 1 && has_budget(s)) {
        size_t middle = s->right + (high - s->right) / 2;
        bool wrong = false;
        EV_TRY(is_wrong(s, genome_part(s->genome, 0, middle), &wrong, err));
        if (wrong)
            high = middle;
        else
            s->right = middle;
    }
    s->knows_base = s->knows_base || s->right > 0;
    *k = high - s->right > 1 ? SIZE_MAX : high;
    return EV_OK;
}

/* The first k edits are wrong; is it the last of them alone? */
static ev_status note_wrong(search_for *s, size_t k, ev_error *err) {
    bool alone = false;
    if (k > 1 && has_budget(s))
        EV_TRY(is_wrong(s, genome_part(s->genome, k - 1, k), &alone, err));
    json_t *part = genome_part(s->genome, alone ? k - 1 : 0, k);
    return json_array_append_new(s->wrong, part) == 0 ? EV_OK : ev_fail_memory(err, 0);
}

/* Whether the base is wrong without any edit; only asked for when its first edit is to blame. */
static ev_status check_base(search_for *s, bool *wrong, ev_error *err) {
    *wrong = false;
    if (s->knows_base)
        return EV_OK;
    EV_TRY(is_wrong(s, genome_part(s->genome, 0, 0), wrong, err));
    s->knows_base = true;
    if (!*wrong)
        return EV_OK;
    bool ok = json_array_append_new(s->wrong, genome_part(s->genome, 0, 0)) == 0;
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

static ev_status drop(search_for *s, size_t edit, ev_error *err) {
    json_t *rest = genome_without(s->genome, edit, edit + 1);
    if (!rest)
        return ev_fail_memory(err, 0);
    json_decref(s->genome);
    s->genome = rest;
    return EV_OK;
}

/* Takes out one edit. *over: there is no more to find; *found: as s->genome is right. */
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
    if (genome_edit_count(s->genome) > s->right)
        EV_TRY(is_wrong(s, json_incref(s->genome), &wrong, err));
    *over = *found = !wrong;
    return EV_OK;
}

static ev_status look(search_for *s, bisect_result *out, ev_error *err) {
    if (!s->wrong)
        return ev_fail_memory(err, 0);
    bool over = false, found = false;
    if (genome_edit_count(s->genome) == 0) /* as it is known to be */
        return json_array_append(s->wrong, s->genome) == 0 ? EV_OK : ev_fail_memory(err, 0);
    while (!over && has_budget(s))
        EV_TRY(step(s, &over, &found, err));
    if (found)
        out->rest = json_incref(s->genome);
    return EV_OK;
}

ev_status bisect_find(const bisect_request *request, bisect_result *out, ev_error *err) {
    search_for s = {.request = request,
                    .genome = json_incref((json_t *)request->genome),
                    .wrong = json_array()};
    *out = (bisect_result){0};
    ev_status status = look(&s, out, err);
    json_decref(s.genome);
    if (status == EV_OK) {
        out->wrong = s.wrong;
        return EV_OK;
    }
    json_decref(s.wrong);
    bisect_clear(out);
    return status;
}

void bisect_clear(bisect_result *r) {
    json_decref(r->rest);
    json_decref(r->wrong);
    *r = (bisect_result){0};
}
