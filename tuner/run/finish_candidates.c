/* Finish, candidates: what is to be tried next, and without which edits. */
#include "tuner/run/finish_inside.h"

#include <string.h>

candidate_entry *finish_add(finish *f, const json_t *genome, double ns, bool is_part) {
    if (ns <= 0 || ns >= f->limit_ns || f->candidate_count == FINISH_CANDIDATES)
        return NULL;
    candidate_entry *e = &f->candidates[f->candidate_count++];
    *e = (candidate_entry){.genome = json_incref((json_t *)genome), .ns = ns, .is_part = is_part};
    return e;
}

static double expected_ns(const finish *f, const candidate_entry *e) {
    for (size_t i = 0; i < f->transfer_count; i++) {
        if (genome_same_base(f->transfers[i].genome, e->genome))
            return e->ns * f->transfers[i].loss;
    }
    return e->ns;
}

candidate_entry *finish_next(finish *f) {
    candidate_entry *best = NULL;
    for (size_t i = 0; i < f->candidate_count; i++) {
        candidate_entry *e = &f->candidates[i];
        if (!e->used && (!best || expected_ns(f, e) < expected_ns(f, best)))
            best = e;
    }
    return best;
}

void finish_note_transfer(finish *f, const json_t *genome, double ns, double held_out) {
    double loss = held_out / f->bar.ns * (f->limit_ns / ns);
    if (f->bar.ns == 0 || !(loss > 1))
        return;
    for (size_t i = 0; i < f->transfer_count; i++) {
        if (genome_same_base(f->transfers[i].genome, genome)) {
            f->transfers[i].loss = loss;
            return;
        }
    }
    if (f->transfer_count < FINISH_TRANSFERS)
        f->transfers[f->transfer_count++] = (transfer){json_incref((json_t *)genome), loss};
}

/* *genome without the last edit of `wrong`, where it holds all of that; NULL: out of memory, or
 * without edits it is wrong already. */
static void take_out(json_t **genome, const json_t *wrong) {
    size_t count = genome_edit_count(wrong);
    const json_t *last = json_array_get(json_object_get(wrong, "edits"), count - 1);
    size_t at = genome_find_edit(*genome, last);
    json_t *rest = count > 0 ? genome_without(*genome, at, at + 1) : NULL;
    json_decref(*genome);
    *genome = rest;
}

ev_status finish_strip(const finish *f, json_t *genome, json_t **out, ev_error *err) {
    size_t at = 0;
    const json_t *wrong = NULL;
    json_t *rest = json_incref(genome);
    json_array_foreach(f->wrong, at, wrong) {
        while (rest && genome_holds(rest, wrong)) { /* an edit may stand there twice */
            take_out(&rest, wrong);
            if (!rest && genome_edit_count(wrong) > 0)
                return ev_fail_memory(err, 0);
        }
        if (!rest)
            break;
    }
    *out = rest;
    return EV_OK;
}
