/* Finish: after the search: minimises the best, promotes it, writes the winner.
 *
 * The unmodified starts go through gate 6 first: what the search found has to be faster than the
 * best of them on the held-out cases too, or it was fitted to the search's shapes.
 *
 * A candidate that fails gate 6 stays in the records with the reason. What fails there is mostly
 * one edit that cheats where the search does not look, so candidates that hold all of a failed
 * one's edits are passed over, and what is left of the failed one without any one of its edits is
 * tried as well. */
#include "tuner/tune_inside.h"

#include "base/json.h"
#include "tuner/minimise.h"
#include "tuner/shares.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_PROMOTIONS 16
#define KEEP_GAIN 0.98
#define LEAST_GAIN 0.002    /* over the best unmodified start, for edits to be worth having */
#define MINIMISE_BUDGET 240 /* trials for one candidate */
#define MOST_PARTS 24       /* edits of a wrong genome that are looked at one by one */
#define MOST_CANDIDATES (SEARCH_ARCHIVE + 256)

typedef struct candidate_entry {
    json_t *genome;
    double ns;
    bool used, confirmed;
} candidate_entry;

/* What one of a base (a start at one setting of its macros) lost on the held-out cases, its others
 * are expected to lose too. */
typedef struct transfer {
    json_t *genome; /* any of the base */
    double loss;    /* held-out time over the best start's there, by the same on the search cases */
} transfer;

typedef struct finish {
    course *c;
    candidate_entry candidates[MOST_CANDIDATES];
    size_t candidate_count;
    transfer transfers[MOST_PROMOTIONS];
    size_t transfer_count;
    json_t *wrong;  /* genomes that gate 6 found wrong: so is what holds all their edits */
    json_t *slow;   /* that were right, and not faster */
    json_t *scored; /* times of trials by genome; 0: stopped at a gate */
    unsigned tried;
    double bar_ns; /* the best unmodified start on the held-out cases; 0: none was promoted */
    double bar_baseline_ns; /* the baseline when that was measured; 0: it was not then */
    double limit_ns;        /* a candidate has to be below it on the search cases */
    winner winner;
    double winner_ns; /* on the search cases; 0: it is an unmodified start */
} finish;

/* ---- candidates ---- */

static void add_candidate(finish *f, const json_t *genome, double ns) {
    if (f->candidate_count < MOST_CANDIDATES)
        f->candidates[f->candidate_count++] =
            (candidate_entry){.genome = json_incref((json_t *)genome), .ns = ns};
}

/* Whether the genome has all of a failed one's edits on the same base. */
static bool holds_failed(const json_t *genome, const json_t *failed) {
    if (!genome_same_base(genome, failed))
        return false;
    size_t at = 0;
    const json_t *edit = NULL;
    json_array_foreach(json_object_get(failed, "edits"), at, edit) {
        if (!genome_has_edit(genome, edit))
            return false;
    }
    return true;
}

static bool is_hopeless(const finish *f, const json_t *genome) {
    size_t at = 0;
    const json_t *other = NULL;
    json_array_foreach(f->wrong, at, other) {
        if (holds_failed(genome, other))
            return true;
    }
    json_array_foreach(f->slow, at, other) {
        if (json_equal(genome, other))
            return true;
    }
    return false;
}

static double expected_ns(const finish *f, const candidate_entry *e) {
    for (size_t i = 0; i < f->transfer_count; i++) {
        if (genome_same_base(f->transfers[i].genome, e->genome))
            return e->ns * f->transfers[i].loss;
    }
    return e->ns;
}

/* The one not used that is expected to be the fastest; the first added among equals. */
static candidate_entry *next_candidate(finish *f) {
    candidate_entry *best = NULL;
    for (size_t i = 0; i < f->candidate_count; i++) {
        candidate_entry *e = &f->candidates[i];
        if (!e->used && (!best || expected_ns(f, e) < expected_ns(f, best)))
            best = e;
    }
    return best;
}

/* After a candidate that was right and slow: `ns` on the search cases, `held_out` there. */
static void note_transfer(finish *f, const json_t *genome, double ns, double held_out) {
    double loss = held_out / f->bar_ns * (f->limit_ns / ns);
    if (f->bar_ns == 0 || !(loss > 1))
        return;
    for (size_t i = 0; i < f->transfer_count; i++) {
        if (genome_same_base(f->transfers[i].genome, genome)) {
            f->transfers[i].loss = loss;
            return;
        }
    }
    if (f->transfer_count < MOST_PROMOTIONS)
        f->transfers[f->transfer_count++] = (transfer){json_incref((json_t *)genome), loss};
}

/* ---- minimising ---- */

/* Those of the genomes that have no time yet, with where they stand. */
typedef struct unscored {
    json_t **genomes;
    char **keys;
    size_t *at, count;
} unscored;

static void unscored_free(unscored *u) {
    for (size_t i = 0; u->keys && i < u->count; i++)
        free(u->keys[i]);
    free(u->keys);
    free(u->genomes);
    free(u->at);
}

/* Fills in the times that are known. */
static ev_status find_unscored(const finish *f, json_t *const *genomes, size_t count, double *ns,
                               unscored *u, ev_error *err) {
    *u = (unscored){.genomes = calloc(count + 1, sizeof(json_t *)),
                    .keys = calloc(count + 1, sizeof(char *)),
                    .at = calloc(count + 1, sizeof *u->at)};
    if (!u->genomes || !u->keys || !u->at)
        return ev_fail_memory(err, (count + 1) * sizeof *u->at);
    for (size_t i = 0; i < count; i++) {
        char *key = ev_json_print(genomes[i], true);
        if (!key)
            return ev_fail_memory(err, 0);
        const json_t *known = json_object_get(f->scored, key);
        if (known) {
            ns[i] = json_real_value(known);
            free(key);
            continue;
        }
        u->genomes[u->count] = genomes[i];
        u->keys[u->count] = key;
        u->at[u->count++] = i;
    }
    return EV_OK;
}

static ev_status score_unscored(finish *f, const unscored *u, double *ns, ev_error *err) {
    trial *trials = calloc(u->count + 1, sizeof *trials);
    if (!trials)
        return ev_fail_memory(err, (u->count + 1) * sizeof *trials);
    ev_status status = course_score(f->c, u->genomes, u->count, trials, err);
    for (size_t i = 0; status == EV_OK && i < u->count; i++) {
        ns[u->at[i]] = trials[i].passed ? trials[i].ns : 0;
        if (json_object_set_new(f->scored, u->keys[i], json_real(ns[u->at[i]])) != 0)
            status = ev_fail_memory(err, 0);
    }
    free(trials);
    return status;
}

static ev_status score_for_minimise(void *context, json_t *const *genomes, size_t count, double *ns,
                                    ev_error *err) {
    finish *f = context;
    unscored u;
    ev_status status = find_unscored(f, genomes, count, ns, &u, err);
    if (status == EV_OK && u.count > 0)
        status = score_unscored(f, &u, ns, err);
    unscored_free(&u);
    return status;
}

/* The time that a genome's gain is counted from: its start's, unmodified; where that did not pass,
 * the baseline's. */
static double reference_of(const finish *f, const json_t *genome) {
    const char *start = ev_json_text(genome, "start", "");
    for (size_t i = 0; i < f->c->start_count; i++) {
        double ns = search_start_ns(f->c->search, i);
        if (strcmp(f->c->starts[i].start->name, start) == 0 && ns > 0)
            return ns;
    }
    return f->c->baseline_ns;
}

static ev_status minimise(finish *f, const candidate_entry *e, json_t **out, double *ns,
                          ev_error *err) {
    minimise_request request = {.genome = e->genome,
                                .ns = e->ns,
                                .reference_ns = reference_of(f, e->genome),
                                .keep = KEEP_GAIN,
                                .budget = MINIMISE_BUDGET,
                                .score = score_for_minimise,
                                .context = f};
    return minimise_genome(&request, out, ns, err);
}

/* ---- promoting ---- */

typedef enum verdict { PROMOTED, WRONG, SLOW } verdict;

/* More edits than a start has want a gain over it, there where the search has not looked. Where
 * times are measured, both were by turns with the baseline: what that drifted since, the bar did.
 */
static void hold_against_bar(const finish *f, score *s) {
    bool drifts = s->baseline_ns > 0 && f->bar_baseline_ns > 0;
    double bar = drifts ? f->bar_ns * s->baseline_ns / f->bar_baseline_ns : f->bar_ns;
    if (s->stopped != GATE_NONE || bar == 0 || s->ns < bar * (1 - LEAST_GAIN))
        return;
    s->stopped = GATE_PROMOTED;
    snprintf(
        s->reason, sizeof s->reason,
        "not faster than the best unmodified start on the held-out cases: %.1f ns, start %.1f ns",
        s->ns, bar);
}

/* Gate 6, and its record. `ns`: on the search cases; 0: not of interest. Where it is PROMOTED, the
 * job and its score are given out. */
static ev_status promote(finish *f, json_t *genome, double ns, verdict *v, winner *out,
                         ev_error *err) {
    pool_job *job = NULL;
    EV_TRY(course_do(f->c, MESSAGE_PROMOTE, genome, &job, err));
    score s = {0};
    bool scored = job_score(job, &s);
    if (scored)
        hold_against_bar(f, &s);
    ev_status status =
        course_record(f->c, "promote", f->c->promoted++, job, scored ? &s : NULL, err);
    /* It has a time only if all was right. */
    *v = scored && s.stopped == GATE_NONE ? PROMOTED : scored && s.ns > 0 ? SLOW : WRONG;
    if (status == EV_OK && *v == PROMOTED) {
        *out = (winner){.genome = json_incref(genome), .job = job, .promoted = true, .score = s};
        return EV_OK;
    }
    if (*v == SLOW && ns > 0)
        note_transfer(f, genome, ns, s.ns);
    char note[300];
    snprintf(note, sizeof note, "not promoted: %.260s", scored ? s.reason : job->reason);
    course_display(f->c, note);
    pool_job_free(job);
    if (status == EV_OK && json_array_append(*v == SLOW ? f->slow : f->wrong, genome) != 0)
        status = ev_fail_memory(err, 0);
    return status;
}

static void clear_winner(winner *w) {
    json_decref(w->genome);
    pool_job_free(w->job);
    free(w->words);
    *w = (winner){0};
}

/* The genome with one edit alone (`keep`), or without that one; for each of its edits. A list;
 * NULL: out of memory. */
static json_t *parts_of(const json_t *genome, bool keep) {
    json_t *list = json_array();
    size_t count = json_array_size(json_object_get(genome, "edits"));
    for (size_t i = 0; list && i < count; i++) {
        json_t *part = json_deep_copy(genome);
        json_t *edits = json_object_get(part, "edits");
        for (size_t k = count; part && k-- > 0;) {
            if ((k == i) != keep)
                (void)json_array_remove(edits, k);
        }
        if (json_array_append_new(list, part) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

/* Scores the parts of a wrong genome; `ns` [MOST_PARTS]; 0: stopped at a gate. */
static ev_status score_parts(finish *f, json_t *list, double *ns, ev_error *err) {
    json_t *genomes[MOST_PARTS];
    size_t count = json_array_size(list);
    assert(count <= MOST_PARTS);
    for (size_t i = 0; i < count; i++)
        genomes[i] = json_array_get(list, i);
    return score_for_minimise(f, genomes, count, ns, err);
}

/* Which edits of a wrong genome are wrong by themselves: much of the archive may hold them. One
 * that is right is a candidate like any other. */
static ev_status blame_edits(finish *f, json_t *singles, ev_error *err) {
    double ns[MOST_PARTS] = {0};
    EV_TRY(score_parts(f, singles, ns, err));
    for (size_t i = 0; i < json_array_size(singles); i++) {
        json_t *single = json_array_get(singles, i);
        verdict v = SLOW;
        winner right = {0};
        if (ns[i] > 0 && !is_hopeless(f, single))
            EV_TRY(promote(f, single, ns[i], &v, &right, err));
        clear_winner(&right);
        if (v == PROMOTED)
            add_candidate(f, single, ns[i]);
    }
    return EV_OK;
}

/* What is left without any one edit may be right. */
static ev_status add_reduced(finish *f, json_t *reduced, ev_error *err) {
    double ns[MOST_PARTS] = {0};
    EV_TRY(score_parts(f, reduced, ns, err));
    for (size_t i = 0; i < json_array_size(reduced); i++) {
        if (ns[i] > 0 && ns[i] < f->limit_ns)
            add_candidate(f, json_array_get(reduced, i), ns[i]);
    }
    return EV_OK;
}

/* One that is right and slow at other shapes may do without an edit; in a wrong one the edits that
 * are wrong are looked for first. */
static ev_status learn_from(finish *f, const json_t *genome, verdict v, ev_error *err) {
    size_t count = json_array_size(json_object_get(genome, "edits"));
    if (count < 2 || count > MOST_PARTS)
        return EV_OK;
    json_t *singles = parts_of(genome, true), *reduced = parts_of(genome, false);
    ev_status status = singles && reduced ? EV_OK : ev_fail_memory(err, 0);
    if (status == EV_OK && v == WRONG)
        status = blame_edits(f, singles, err);
    if (status == EV_OK)
        status = add_reduced(f, reduced, err);
    json_decref(singles);
    json_decref(reduced);
    return status;
}

static ev_status try_candidate(finish *f, const candidate_entry *e, bool *passed, ev_error *err) {
    json_t *small = NULL;
    double ns = 0;
    EV_TRY(minimise(f, e, &small, &ns, err));
    ev_status status = EV_OK;
    verdict v = SLOW;
    winner found = {0};
    if (!is_hopeless(f, small)) {
        f->tried++;
        status = promote(f, small, ns, &v, &found, err);
        if (status == EV_OK && v != PROMOTED)
            status = learn_from(f, small, v, err);
    }
    *passed = status == EV_OK && v == PROMOTED;
    if (*passed) {
        clear_winner(&f->winner);
        f->winner = found;
        f->winner_ns = ns;
    }
    json_decref(small);
    return status;
}

/* Trials after a search: a fixed number and a share of its own evaluations. */
static bool may_try_more(const finish *f) {
    uint64_t most = 2 * MINIMISE_BUDGET + search_committed(f->c->search) / 4;
    return f->tried < MOST_PROMOTIONS && f->c->minimised < most;
}

/* A time that was measured may have been luck, and the best of many the more so: only who is still
 * the best when measured again has its turn. */
static ev_status measure_again(finish *f, candidate_entry *e, ev_error *err) {
    trial again;
    e->confirmed = true;
    EV_TRY(course_score(f->c, &e->genome, 1, &again, err));
    e->used = !again.passed || again.ns >= f->limit_ns;
    e->ns = again.ns;
    return EV_OK;
}

static bool is_measured(const finish *f) {
    return strncmp(f->c->run->options->device, "cuda:", 5) == 0;
}

static ev_status try_candidates(finish *f, bool *passed, ev_error *err) {
    const search_best *best = NULL;
    size_t count = search_archive(f->c->search, &best);
    for (size_t i = 0; i < count; i++) {
        if (best[i].ns < f->limit_ns)
            add_candidate(f, best[i].genome, best[i].ns);
    }
    while (!*passed && may_try_more(f)) {
        candidate_entry *e = next_candidate(f);
        if (!e)
            return EV_OK;
        if (is_measured(f) && !e->confirmed) {
            EV_TRY(measure_again(f, e, err));
            continue;
        }
        e->used = true;
        if (!is_hopeless(f, e->genome))
            EV_TRY(try_candidate(f, e, passed, err));
    }
    return EV_OK;
}

/* An unmodified start; the best of them on the held-out cases is the winner until one is faster. */
static ev_status try_start(finish *f, json_t *genome, ev_error *err) {
    verdict v = SLOW;
    winner found = {0};
    EV_TRY(promote(f, genome, 0, &v, &found, err));
    if (v != PROMOTED)
        return EV_OK;
    if (json_array_append(f->slow, genome) != 0) /* not to be tried again */
        return ev_fail_memory(err, 0);
    bool first = !f->winner.genome;
    if (first || found.score.ns < f->winner.score.ns) {
        clear_winner(&f->winner);
        f->winner = found;
    } else {
        clear_winner(&found);
    }
    return EV_OK;
}

/* The task's first start is the baseline itself, and one that does not pass the search's gates is
 * no use. */
static ev_status try_starts(finish *f, ev_error *err) {
    for (size_t i = 0; i < f->c->start_count; i++) {
        if (f->c->starts[i].start == &f->c->t->starts[0] || search_start_ns(f->c->search, i) <= 0)
            continue;
        json_t *genome = NULL;
        EV_TRY(winner_start_genome(f->c->starts[i].start, &genome, err));
        ev_status status = try_start(f, genome, err);
        json_decref(genome);
        EV_TRY(status);
    }
    f->limit_ns = f->c->baseline_ns;
    if (f->winner.genome) {
        f->bar_ns = f->winner.score.ns;
        f->bar_baseline_ns = f->winner.score.baseline_ns;
        f->limit_ns = reference_of(f, f->winner.genome) * (1 - LEAST_GAIN);
    }
    return EV_OK;
}

/* Nothing is better: the winner is the baseline, not promoted. */
static ev_status keep_baseline(finish *f, ev_error *err) {
    EV_TRY(winner_start_genome(&f->c->t->starts[0], &f->winner.genome, err));
    EV_TRY(course_do(f->c, MESSAGE_CHECK, f->winner.genome, &f->winner.job, err));
    if (!f->winner.job->reply)
        return ev_fail(err, EV_BAD, "the baseline of the task %s cannot be built again: %s",
                       f->c->t->name, f->winner.job->reason);
    return EV_OK;
}

static ev_status find_winner(finish *f, ev_error *err) {
    bool passed = false;
    f->wrong = json_array();
    f->slow = json_array();
    f->scored = json_object();
    if (!f->wrong || !f->slow || !f->scored)
        return ev_fail_memory(err, 0);
    EV_TRY(try_starts(f, err));
    EV_TRY(try_candidates(f, &passed, err));
    return f->winner.genome ? EV_OK : keep_baseline(f, err);
}

/* What each of the winner's edits and macros is worth. */
static ev_status tell_shares(finish *f, ev_error *err) {
    minimise_request request = {.genome = f->winner.genome,
                                .ns = f->winner_ns,
                                .reference_ns = reference_of(f, f->winner.genome),
                                .score = score_for_minimise,
                                .context = f};
    json_t *shares = NULL;
    EV_TRY(shares_measure(&request, &shares, err));
    const char *words = ev_json_text(f->winner.job->reply, "words", "");
    ev_status status = shares_tell(shares, f->winner.genome, words, &f->winner.words, err);
    json_decref(shares);
    return status;
}

ev_status course_finish(course *c, ev_error *err) {
    finish *f = calloc(1, sizeof *f);
    if (!f)
        return ev_fail_memory(err, sizeof *f);
    f->c = c;
    course_display(c, "minimising and promoting");
    ev_status status = find_winner(f, err);
    if (status == EV_OK && f->winner_ns > 0)
        status = tell_shares(f, err);
    if (status == EV_OK)
        status = winner_write(c, &f->winner, err);
    for (size_t i = 0; i < f->candidate_count; i++)
        json_decref(f->candidates[i].genome);
    for (size_t i = 0; i < f->transfer_count; i++)
        json_decref(f->transfers[i].genome);
    json_decref(f->wrong);
    json_decref(f->slow);
    json_decref(f->scored);
    clear_winner(&f->winner);
    free(f);
    return status;
}
