/* Finish: the phase after the search. Promotes the best variants, minimises the best, and writes
 * the winner.
 *
 * The unmodified starts go through gate 6 first. A variant must be faster than the best of them on
 * the held-out cases, too; otherwise the search fitted it to the search's shapes.
 *
 * A candidate goes through gate 6 unchanged. Only a candidate that passes is minimised
 * (finish_minimise.c).
 *
 * A candidate that fails gate 6 stays in the records with the reason. A wrong candidate mostly has
 * one edit that cheats where the search does not look, and much of the archive may share this edit.
 * So bisection finds the edit, and this candidate and all others with the edit are tried without
 * it. An edit that costs more on the held-out cases than all others gain is treated alike. */
#include "tuner/run/finish_inside.h"

#include "tuner/run/ablation.h"
#include "tuner/run/bisect.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BISECT_BUDGET 24 /* most promotions in the bisection of one candidate */
#define MOST_PARTS 24    /* most edits of a slow genome that are removed one by one */
#define MOST_PARTED 2    /* most slow genomes that are treated so */
#define SLOWER 0.002     /* relative loss of time from which an edit is to blame */
#define AT_SETTING 3     /* most candidates at another setting of the macros */
#define MOST_STRIPPED 16 /* most bold variants that are tried without their bold edits */

/* ---- what failed ---- */

static ev_status is_slower(void *context, const ir_genome *genome, bool *wrong, ev_error *err) {
    const finish *f = context;
    verdict v = SLOW;
    double ns = 0;
    EV_TRY(finish_promote(context, genome, 0, &v, &ns, err));
    *wrong = v == WRONG || ns > f->slow_ns;
    return EV_OK;
}

static ev_status add_scored(finish *f, const ir_genome *genome, ev_error *err) {
    double ns = 0;
    EV_TRY(finish_score(f, &genome, 1, &ns, err));
    (void)finish_add(f, genome, ns, false);
    return EV_OK;
}

static ev_status add_wrong(finish *f, const bisect_result *found, ev_error *err) {
    if (found->wrong_count == 0)
        return EV_OK;
    size_t bytes = (f->wrong_count + found->wrong_count) * sizeof(const ir_genome *);
    const ir_genome **more = realloc((void *)f->wrong, bytes);
    if (!more)
        return ev_fail_memory(err, bytes);
    f->wrong = more;
    for (size_t i = 0; i < found->wrong_count; i++)
        f->wrong[f->wrong_count++] = ir_genome_ref(found->wrong[i]);
    return EV_OK;
}

/* Finds the edits to blame, and adds the genome without them as a candidate. */
static ev_status bisect(finish *f, const ir_genome *genome, bisect_test *test, ev_error *err) {
    bisect_request request = {
        .genome = genome, .budget = BISECT_BUDGET, .test = test, .context = f};
    bisect_result found;
    EV_TRY(bisect_find(&request, &found, err));
    ev_status status = add_wrong(f, &found, err);
    if (status == EV_OK && found.rest)
        status = add_scored(f, found.rest, err);
    bisect_clear(&found);
    return status;
}

ev_status finish_blame(finish *f, const ir_genome *genome, ev_error *err) {
    size_t prefix = ir_genome_prefix_count(genome);
    bool is_wrong = false;
    if (prefix == 0 || prefix == ir_genome_edit_count(genome))
        return bisect(f, genome, finish_is_wrong, err);
    const ir_genome *skeleton = ir_genome_part(genome, 0, prefix);
    ev_status status =
        skeleton ? finish_is_wrong(f, skeleton, &is_wrong, err) : ev_fail_memory(err, 0);
    skeleton_share *own = finish_skeleton(f, genome);
    if (status == EV_OK && is_wrong && own)
        own->refused = true;
    if (status == EV_OK)
        status = bisect(f, is_wrong ? skeleton : genome, finish_is_wrong, err);
    ir_genome_free(skeleton);
    return status;
}

/* Adds the genome without each of its edits in turn as a candidate. */
static ev_status add_parts(finish *f, const ir_genome *genome, ev_error *err) {
    const ir_genome *parts[MOST_PARTS];
    double ns[MOST_PARTS] = {0};
    size_t edits = ir_genome_edit_count(genome), count = 0;
    ev_status status = EV_OK;
    for (; edits <= MOST_PARTS && count < edits && status == EV_OK; count++) {
        parts[count] = ir_genome_without(genome, count, count + 1);
        if (!parts[count])
            status = ev_fail_memory(err, 0);
    }
    if (status == EV_OK && count > 0)
        status = finish_score(f, parts, count, ns, err);
    for (size_t i = 0; i < count; i++) {
        if (status == EV_OK)
            (void)finish_add(f, parts[i], ns[i], true);
        ir_genome_free(parts[i]);
    }
    return status;
}

/* If the candidate is slower on the held-out cases than its base without edits, an edit is to
 * blame, which gains at the search's shapes only. Finds the edit by bisection. */
static ev_status learn_slow(finish *f, const candidate_entry *e, double held_out, ev_error *err) {
    verdict v = SLOW;
    double ns = 0;
    const ir_genome *base = ir_genome_part(e->genome, 0, 0);
    ev_status status = base ? finish_promote(f, base, 0, &v, &ns, err) : ev_fail_memory(err, 0);
    if (status == EV_OK && v == PROMOTED)
        status = add_scored(f, base, err);
    ir_genome_free(base);
    EV_TRY(status);
    f->slow_ns = ns * (1 + SLOWER);
    if (ns > 0 && held_out > f->slow_ns)
        return bisect(f, e->genome, is_slower, err);
    if (e->is_part || f->parted == MOST_PARTED)
        return EV_OK;
    f->parted++;
    return add_parts(f, e->genome, err);
}

/* ---- candidates ---- */

/* Makes a promoted candidate the winner. If its time was memoised or estimated, it is timed first.
 */
static ev_status win_with(finish *f, candidate_entry *e, bool *passed, ev_error *err) {
    if (e->untimed)
        EV_TRY(finish_score(f, &e->genome, 1, &e->ns, err));
    *passed = e->ns > 0 && e->ns < f->limit_ns;
    return *passed ? finish_win(f, e->genome, e->ns, err) : EV_OK;
}

static ev_status promote(finish *f, const candidate_entry *e, bool *passed, ev_error *err) {
    verdict v = SLOW;
    double held_out = 0;
    EV_TRY(finish_verdict(f, e->genome, &v, &held_out, err));
    if (v == WRONG || v == SLOW) /* equal code was judged before */
        return EV_OK;
    candidate_entry one = *e; /* a copy, since the list may grow */
    EV_TRY(finish_promote(f, one.genome, one.ns, &v, &held_out, err));
    if (v == PROMOTED)
        return finish_may_win(f) ? win_with(f, &one, passed, err) : EV_OK;
    if (v == WRONG)
        return finish_blame(f, one.genome, err);
    return learn_slow(f, &one, held_out, err);
}

/* Tries a candidate. A candidate with an edit known as wrong goes back into the list without that
 * edit, with the time that it has then. */
static ev_status try_candidate(finish *f, candidate_entry *e, bool *passed, ev_error *err) {
    const ir_genome *rest = NULL;
    ev_status status = EV_OK;
    e->used = true;
    EV_TRY(finish_strip(f, e->genome, &rest, err));
    if (rest && ir_genome_edit_count(rest) < ir_genome_edit_count(e->genome))
        status = add_scored(f, rest, err);
    else if (rest)
        status = promote(f, e, passed, err);
    ir_genome_free(rest);
    return status;
}

bool finish_is_stopped(finish *f) {
    const tune_options *o = f->c->run->options;
    if (!f->c->run->stopped && o->stop && *o->stop) {
        f->c->run->stopped = true;
        f->c->cut_short = true;
    }
    return f->c->cut_short;
}

/* Whether the budget of trials allows more: a fixed number plus a share of the search's
 * evaluations. */
static bool may_try_more(finish *f) {
    uint64_t most = 2ul * FINISH_MINIMISE_BUDGET + search_committed(f->c->search) / 4;
    return finish_may_promote_any(f, false) && f->c->minimised < most && !finish_is_stopped(f);
}

/* Measures a candidate's time again. The least of many measured times may be luck, so a candidate
 * has its turn only if it is still the best after the second measurement. */
static ev_status measure_again(finish *f, candidate_entry *e, ev_error *err) {
    trial again;
    e->confirmed = true;
    EV_TRY(course_score(f->c, &e->genome, 1, &again, err));
    e->used = !again.passed || again.ns >= f->limit_ns;
    e->ns = again.ns;
    return EV_OK;
}

/* Out of time: takes the variant that was promoted during a bisection, if any. */
static ev_status take_promoted(finish *f, bool *passed, ev_error *err) {
    candidate_entry *e = NULL;
    while (!*passed && (e = finish_next(f, true)) != NULL) {
        verdict v = SLOW;
        double held_out = 0;
        e->used = true;
        EV_TRY(finish_verdict(f, e->genome, &v, &held_out, err));
        if (v == PROMOTED)
            EV_TRY(promote(f, e, passed, err));
    }
    return EV_OK;
}

/* Adds bold variants without their bold edits. */
static ev_status add_stripped(finish *f, search_form form, ev_error *err) {
    const search_best *best = NULL;
    size_t count = search_archive(f->c->search, SEARCH_ANY, form, &best), added = 0;
    for (size_t i = 0; i < count && added < MOST_STRIPPED; i++) {
        if (best[i].bold == 0 || best[i].ns >= f->limit_ns)
            continue;
        const ir_genome *rest = finish_without_bold(best[i].genome, true);
        ev_status status = rest ? add_scored(f, rest, err) : ev_fail_memory(err, 0);
        ir_genome_free(rest);
        EV_TRY(status);
        added++;
    }
    return EV_OK;
}

static ev_status add_of_form(finish *f, search_form form, ev_error *err) {
    const search_best *best = NULL;
    size_t count = search_archive(f->c->search, f->field, form, &best);
    for (size_t i = 0; i < count; i++) {
        candidate_entry *e = finish_add(f, best[i].genome, best[i].ns, false);
        if (e)
            e->untimed = best[i].untimed;
    }
    return f->field == SEARCH_PRESERVING ? add_stripped(f, form, err) : EV_OK;
}

static ev_status add_candidates(finish *f, ev_error *err) {
    for (int form = 0; form < SEARCH_FORMS; form++)
        EV_TRY(add_of_form(f, (search_form)form, err));
    return EV_OK;
}

/* Whether `a` is faster than `b` on the held-out cases by the share `margin`, each against the
 * baseline of its own measurement. */
static bool is_faster(const score *a, const score *b, double margin) {
    bool has_baselines = a->baseline_ns > 0 && b->baseline_ns > 0;
    double of_a = has_baselines ? a->ns / a->baseline_ns : a->ns;
    double of_b = has_baselines ? b->ns / b->baseline_ns : b->ns;
    return of_a < of_b * (1 - margin);
}

/* Whether the variant promoted last is faster than the winner on the held-out cases. */
static bool beats_winner(const finish *f) {
    double margin = finish_is_measured(f) ? f->c->run->options->least_gain : SLOWER;
    return is_faster(&f->kept.score, &f->winner.score, margin);
}

/* Makes the variant promoted last the winner, and minimises it. The winner before comes back if the
 * new one is not timed below the limit, or lost its lead in minimising. */
static ev_status replace_winner(finish *f, candidate_entry *e, ev_error *err) {
    winner before = f->winner;
    double before_ns = f->winner_ns;
    bool passed = false;
    f->winner = (winner){0};
    ev_status status = win_with(f, e, &passed, err);
    if (status == EV_OK && passed && is_faster(&f->winner.score, &before.score, 0)) {
        finish_clear_winner(&before);
        return EV_OK;
    }
    finish_clear_winner(&f->winner);
    f->winner = before;
    f->winner_ns = before_ns;
    return status;
}

/* Holds the winner against the fastest settings of the macros alone, on the held-out cases. A
 * person chose their values for many shapes; edits, or one setting of several as fast, were chosen
 * at the search's few. A setting that is faster there wins. */
static ev_status try_settings(finish *f, ev_error *err) {
    const search_best *all = NULL, *settings[FINISH_SETTINGS];
    size_t count = search_archive(f->c->search, f->field, SEARCH_PLAIN, &all);
    EV_TRY(finish_settings(f, all, count, settings, &count, err));
    for (size_t i = 0; i < count && may_try_more(f) && finish_may_promote(f, SEARCH_PLAIN); i++) {
        candidate_entry one = {
            .genome = settings[i]->genome, .ns = settings[i]->ns, .untimed = settings[i]->untimed};
        verdict v = SLOW;
        double held_out = 0;
        EV_TRY(finish_promote(f, one.genome, one.ns, &v, &held_out, err));
        if (v == PROMOTED && beats_winner(f))
            EV_TRY(replace_winner(f, &one, err));
    }
    return EV_OK;
}

/* Puts a variant at another setting through gate 6, unless an edit of it is known to be wrong.
 * *done: no check failed. The variant wins if it was promoted and is faster than the winner on the
 * held-out cases. */
static ev_status try_other(finish *f, candidate_entry *e, bool *done, ev_error *err) {
    const ir_genome *rest = NULL;
    verdict v = SLOW;
    double held_out = 0;
    e->used = true;
    EV_TRY(finish_strip(f, e->genome, &rest, err));
    bool is_blamed = !rest || ir_genome_edit_count(rest) < ir_genome_edit_count(e->genome);
    ir_genome_free(rest);
    if (is_blamed)
        return EV_OK;
    EV_TRY(finish_promote(f, e->genome, e->ns, &v, &held_out, err));
    *done = v == SLOW || (v == PROMOTED && finish_may_win(f));
    return *done && v == PROMOTED && beats_winner(f) ? replace_winner(f, e, err) : EV_OK;
}

/* Tries the fastest variants at one setting until one fails no check, AT_SETTING at most. */
static ev_status try_at(finish *f, const ir_genome *setting, ev_error *err) {
    bool done = false;
    for (size_t tries = 0; !done && tries < AT_SETTING && may_try_more(f);) {
        candidate_entry *e = finish_fastest_at(f, NULL, 0, setting);
        if (!e)
            return EV_OK;
        bool again = finish_is_measured(f) && !e->confirmed;
        EV_TRY(again ? measure_again(f, e, err) : try_other(f, e, &done, err));
        tries += !again;
    }
    return EV_OK;
}

/* Holds the winner against fast variants with edits at other settings. The search prefers one
 * setting, which need not be the one that transfers to the held-out cases. `first`: what won first;
 * if that has edits, none is tried at its own setting. */
static ev_status try_others(finish *f, const ir_genome *first, ev_error *err) {
    const ir_genome *listed[FINISH_SETTINGS + 1] = {first};
    size_t own = finish_is_setting(first) ? 0 : 1;
    for (size_t i = 0; i < FINISH_SETTINGS && may_try_more(f); i++) {
        const candidate_entry *e = finish_fastest_at(f, listed, own + i, NULL);
        if (!e)
            return EV_OK;
        listed[own + i] = e->genome; /* the list keeps the reference */
        EV_TRY(try_at(f, e->genome, err));
    }
    return EV_OK;
}

static ev_status try_candidates(finish *f, ev_error *err) {
    bool passed = false;
    EV_TRY(add_candidates(f, err));
    while (!passed && may_try_more(f)) {
        candidate_entry *e = finish_next(f, false);
        if (!e)
            return EV_OK;
        if (finish_is_measured(f) && !e->confirmed)
            EV_TRY(measure_again(f, e, err));
        else
            EV_TRY(try_candidate(f, e, &passed, err));
    }
    EV_TRY(take_promoted(f, &passed, err));
    if (!passed)
        return EV_OK;
    const ir_genome *first = ir_genome_ref(f->winner.genome);
    ev_status status = try_settings(f, err);
    bool is_first_pass = f->field == SEARCH_PRESERVING || f->c->run->options->bold;
    if (status == EV_OK && is_first_pass && f->c->run->shapes.count == 0)
        status = try_others(f, first, err);
    ir_genome_free(first);
    return status;
}

/* ---- starts ---- */

/* Tries an unmodified start. The best start on the held-out cases is the winner until a variant is
 * faster. */
static ev_status try_start(finish *f, const ir_genome *genome, ev_error *err) {
    verdict v = SLOW;
    double ns = 0;
    EV_TRY(finish_promote(f, genome, 0, &v, &ns, err));
    if (v != PROMOTED)
        return EV_OK;
    if (!f->winner.genome || ns < f->winner.score.ns)
        finish_take(f, &f->winner);
    return finish_refuse(f, genome, ns, err); /* so that it is not tried again */
}

/* Tries the starts but the first, which is the baseline itself, and those that failed in the
 * search. */
static ev_status try_starts(finish *f, ev_error *err) {
    for (size_t i = 0; i < f->c->start_count; i++) {
        if (f->c->starts[i].start == &f->c->t->starts[0] || search_start_ns(f->c->search, i) <= 0)
            continue;
        const ir_genome *genome = NULL;
        EV_TRY(winner_start_genome(f->c->starts[i].start, &genome, err));
        ev_status status = try_start(f, genome, err);
        ir_genome_free(genome);
        EV_TRY(status);
    }
    f->limit_ns = f->c->baseline_ns;
    if (f->winner.genome) {
        double least = f->c->run->options->least_gain;
        f->bar = (fitness_bar){.ns = f->winner.score.ns,
                               .baseline_ns = f->winner.score.baseline_ns,
                               .least_gain = least};
        f->limit_ns = finish_reference(f, f->winner.genome) * (1 - least);
    }
    return EV_OK;
}

/* Nothing is faster: the winner is the baseline, which is not promoted. */
static ev_status keep_baseline(finish *f, ev_error *err) {
    EV_TRY(winner_start_genome(&f->c->t->starts[0], &f->winner.genome, err));
    EV_TRY(course_do(f->c, MESSAGE_CHECK, f->winner.genome, &f->winner.job, err));
    if (!f->winner.job->reply)
        return ev_fail(err, EV_BAD, "the baseline of the task %s cannot be built again: %s",
                       f->c->t->name, f->winner.job->result.reason);
    return EV_OK;
}

/* Looks for a bold variant that is faster than the winner by FINISH_BOLD_GAIN. A variant that lost
 * its bold edits in minimising, and no gain, becomes the winner itself. */
static ev_status find_bold(finish *f, ev_error *err) {
    winner preserving = f->winner;
    double winner_ns = f->winner_ns;
    f->winner = (winner){0};
    f->bar = (fitness_bar){.ns = preserving.promoted ? preserving.score.ns
                                                     : course_baseline_mean(f->c, CORPUS_HELD_OUT),
                           .baseline_ns = preserving.score.baseline_ns,
                           .least_gain = FINISH_BOLD_GAIN};
    double reference = winner_ns > 0 ? winner_ns : finish_reference(f, preserving.genome);
    f->limit_ns = reference * (1 - FINISH_BOLD_GAIN);
    f->field = SEARCH_ANY;
    finish_clear_winner(&f->kept); /* it was promoted by a lower bar */
    finish_renew(f);
    finish_drop_candidates(f);
    ev_status status = try_candidates(f, err);
    bool is_bold = f->winner.genome && f->winner.job->result.bold > 0;
    if (!f->winner.genome || is_bold) {
        f->bold = f->winner;
        f->winner = preserving;
        f->winner_ns = winner_ns;
    } else {
        finish_clear_winner(&preserving);
    }
    return status;
}

static ev_status find_winner(finish *f, ev_error *err) {
    EV_TRY(try_starts(f, err));
    EV_TRY(try_candidates(f, err));
    if (!f->winner.genome)
        EV_TRY(keep_baseline(f, err));
    if (f->c->run->shapes.count > 0)
        return f->c->cut_short ? EV_OK : finish_portfolio(f, err);
    return f->field == SEARCH_PRESERVING ? find_bold(f, err) : EV_OK;
}

/* Measures and shows the share of each of the winner's edits and macros in the gain. */
static ev_status tell_ablation(finish *f, ev_error *err) {
    minimise_request request = {.genome = f->winner.genome,
                                .ns = f->winner_ns,
                                .reference_ns = finish_reference(f, f->winner.genome),
                                .score = finish_score,
                                .context = f};
    json_t *shares = NULL;
    EV_TRY(ablation_measure(&request, &shares, err));
    const char *words = f->winner.job->reply->words;
    ev_status status =
        ablation_tell(shares, f->winner.genome, words ? words : "", &f->winner.words, err);
    json_decref(shares);
    return status;
}

ev_status course_finish(course *c, ev_error *err) {
    finish *f = calloc(1, sizeof *f);
    if (!f)
        return ev_fail_memory(err, sizeof *f);
    f->c = c;
    f->field = c->run->options->bold ? SEARCH_ANY : SEARCH_PRESERVING;
    course_display(c, "promoting and minimising");
    ev_status status = find_winner(f, err);
    finish_tell_refused(f);
    if (status == EV_OK && f->winner_ns > 0)
        status = tell_ablation(f, err);
    if (status == EV_OK)
        status = winner_write(c, &f->winner,
                              &(winner_beside){&f->bold, f->portfolio, f->members, f->member_count},
                              err);
    finish_drop_candidates(f);
    for (size_t i = 0; i < f->transfer_count; i++)
        ir_genome_free(f->transfers[i].genome);
    for (size_t i = 0; i < f->skeleton_count; i++)
        ir_genome_free(f->skeletons[i].genome);
    for (size_t i = 0; i < f->wrong_count; i++)
        ir_genome_free(f->wrong[i]);
    free((void *)f->wrong);
    memo_free(&f->scored);
    memo_free(&f->judged);
    memo_free(&f->held_out);
    finish_clear_winner(&f->kept);
    finish_clear_winner(&f->winner);
    finish_clear_winner(&f->bold);
    finish_clear_winner(&f->baseline);
    finish_clear_winner(&f->origin);
    for (size_t i = 0; i < f->member_count; i++)
        finish_clear_winner(&f->members[i]);
    free(f->stress);
    free(f->portfolio);
    free(f);
    return status;
}
