/* Finish, candidates: chooses the next candidate, and removes edits known to be wrong. */
#include "tuner/run/finish_inside.h"

#include <assert.h>
#include <string.h>

/* Most promotions of one skeleton, its bisection among them. */
#define OF_A_SKELETON 16

static bool has(const finish *f, const ir_genome *genome) {
    ev_sha256 key = ir_genome_sha256(genome);
    for (size_t i = 0; i < f->candidate_count; i++) {
        ev_sha256 other = ir_genome_sha256(f->candidates[i].genome);
        if (ev_sha256_equal(&key, &other))
            return true;
    }
    return false;
}

candidate_entry *finish_add(finish *f, const ir_genome *genome, double ns, bool is_part) {
    if (ns <= 0 || ns >= f->limit_ns || f->candidate_count == FINISH_CANDIDATES || has(f, genome))
        return NULL;
    candidate_entry *e = &f->candidates[f->candidate_count++];
    *e = (candidate_entry){.genome = ir_genome_ref(genome), .ns = ns, .is_part = is_part};
    return e;
}

void finish_drop_candidates(finish *f) {
    for (size_t i = 0; i < f->candidate_count; i++)
        ir_genome_free(f->candidates[i].genome);
    f->candidate_count = 0;
}

const ir_genome *finish_without_bold(const ir_genome *genome, bool all) {
    const ir_genome *rest = ir_genome_ref(genome);
    for (size_t i = ir_genome_edit_count(genome); rest && i-- > 0;) {
        ir_edit_kind kind = ir_genome_edit_kind(genome, i);
        if (!(all ? ir_edit_may_be_bold(kind) : ir_edit_is_bold(kind)))
            continue;
        const ir_genome *less = ir_genome_without(rest, i, i + 1);
        ir_genome_free(rest);
        rest = less;
    }
    return rest;
}

static double expected_ns(const finish *f, const candidate_entry *e) {
    for (size_t i = 0; i < f->transfer_count; i++) {
        if (ir_genome_same_base(f->transfers[i].genome, e->genome))
            return e->ns * f->transfers[i].loss;
    }
    return e->ns;
}

bool finish_is_setting(const ir_genome *genome) {
    bool is_start = ir_genome_macro_count(genome) == 0 && ir_genome_edit_count(genome) == 0;
    return !is_start && ir_genome_prefix_count(genome) == 0 && ir_genome_is_skeleton(genome);
}

static bool is_at_one_of(const ir_genome *genome, const ir_genome *const *settings, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (ir_genome_same_macros(genome, settings[i]))
            return true;
    }
    return false;
}

/* Whether a genome is a setting that may be faster than the winner, which has other macros. */
static bool is_other_setting(const finish *f, const search_best *best) {
    const ir_genome *won = f->winner.genome;
    bool is_own = won && finish_is_setting(won) && ir_genome_same_macros(won, best->genome);
    return finish_is_setting(best->genome) && best->ns < f->limit_ns && !is_own;
}

ev_status finish_settings(const finish *f, const search_best *best, size_t count,
                          const search_best *out[FINISH_SETTINGS], size_t *found, ev_error *err) {
    const ir_genome *seen[SEARCH_ARCHIVE];
    size_t seen_count = 0;
    assert(count <= SEARCH_ARCHIVE);
    *found = 0;
    for (size_t i = 0; i < count && *found < FINISH_SETTINGS; i++) {
        verdict v = NOT_JUDGED;
        double held_out = 0;
        if (!is_other_setting(f, &best[i]) || is_at_one_of(best[i].genome, seen, seen_count))
            continue;
        EV_TRY(finish_verdict(f, best[i].genome, &v, &held_out, err));
        if (v == WRONG) /* with other knobs it may be right */
            continue;
        seen[seen_count++] = best[i].genome;
        if (v != SLOW)
            out[(*found)++] = &best[i];
    }
    return EV_OK;
}

skeleton_share *finish_skeleton(finish *f, const ir_genome *genome) {
    if (finish_form(genome) == SEARCH_PLAIN)
        return NULL;
    for (size_t i = 0; i < f->skeleton_count; i++) {
        if (ir_genome_same_base(f->skeletons[i].genome, genome))
            return &f->skeletons[i];
    }
    if (f->skeleton_count == FINISH_SKELETONS)
        return NULL;
    f->skeletons[f->skeleton_count] = (skeleton_share){.genome = ir_genome_ref(genome)};
    return &f->skeletons[f->skeleton_count++];
}

static bool may_try(finish *f, const candidate_entry *e) {
    search_form form = finish_form(e->genome);
    const skeleton_share *own = finish_skeleton(f, e->genome);
    bool has_share = form == SEARCH_PLAIN || (own && !own->refused && own->spent < OF_A_SKELETON);
    return has_share && finish_may_promote(f, form);
}

candidate_entry *finish_fastest_at(finish *f, const ir_genome *const *listed, size_t count,
                                   const ir_genome *only) {
    candidate_entry *best = NULL;
    for (size_t i = 0; i < f->candidate_count; i++) {
        candidate_entry *e = &f->candidates[i];
        bool fits =
            only ? ir_genome_same_macros(e->genome, only) : !is_at_one_of(e->genome, listed, count);
        bool is_edited = ir_genome_edit_count(e->genome) > 0 && !finish_is_setting(e->genome);
        if (fits && is_edited && !e->used && (!best || e->ns < best->ns) && may_try(f, e))
            best = e;
    }
    return best;
}

candidate_entry *finish_next(finish *f, bool any) {
    candidate_entry *best = NULL;
    for (size_t i = 0; i < f->candidate_count; i++) {
        candidate_entry *e = &f->candidates[i];
        if (!e->used && (any || may_try(f, e)) &&
            (!best || expected_ns(f, e) < expected_ns(f, best)))
            best = e;
    }
    return best;
}

void finish_note_transfer(finish *f, const ir_genome *genome, double ns, double held_out) {
    double loss = held_out / f->bar.ns * (f->limit_ns / ns);
    if (f->bar.ns == 0 || !(loss > 1))
        return;
    for (size_t i = 0; i < f->transfer_count; i++) {
        if (ir_genome_same_base(f->transfers[i].genome, genome)) {
            f->transfers[i].loss = loss;
            return;
        }
    }
    if (f->transfer_count < FINISH_TRANSFERS)
        f->transfers[f->transfer_count++] = (transfer){ir_genome_ref(genome), loss};
}

/* Removes the last edit of `wrong` from *genome, if *genome holds all edits of `wrong`. *genome
 * becomes NULL if memory runs out, or if `wrong` has no edits. */
static void take_out(const ir_genome **genome, const ir_genome *wrong) {
    size_t count = ir_genome_edit_count(wrong);
    const ir_genome *rest = NULL;
    if (count > 0) {
        ev_sha256 last = ir_genome_edit_key(wrong, count - 1);
        size_t at = ir_genome_find(*genome, &last);
        rest = ir_genome_without(*genome, at, at + 1);
    }
    ir_genome_free(*genome);
    *genome = rest;
}

/* Whether the refusal of `wrong` holds for the genome. A wrong skeleton says which structural edit
 * is to blame, whatever other structure stands beside it. */
static bool is_blamed(const ir_genome *genome, const ir_genome *wrong) {
    size_t count = ir_genome_edit_count(wrong);
    bool is_skeleton = count > 0 && ir_genome_prefix_count(wrong) == count;
    if (!is_skeleton || !ir_genome_same_macros(genome, wrong))
        return ir_genome_holds_all(genome, wrong);
    for (size_t i = 0; i < count; i++) {
        ev_sha256 key = ir_genome_edit_key(wrong, i);
        if (!ir_genome_holds(genome, &key))
            return false;
    }
    return true;
}

ev_status finish_strip(const finish *f, const ir_genome *genome, const ir_genome **out,
                       ev_error *err) {
    const ir_genome *rest = ir_genome_ref(genome);
    for (size_t i = 0; rest && i < f->wrong_count; i++) {
        if (!is_blamed(rest, f->wrong[i]))
            continue;
        take_out(&rest, f->wrong[i]);
        if (!rest && ir_genome_edit_count(f->wrong[i]) > 0)
            return ev_fail_memory(err, 0);
    }
    *out = rest;
    return EV_OK;
}
