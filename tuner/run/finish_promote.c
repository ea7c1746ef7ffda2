/* Finish, promotions: puts genomes through gate 6, each once. */
#include "tuner/run/finish_inside.h"

#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Costs of a promotion, in units of the budget. A wrong genome mostly fails at the first case; a
 * correct one runs all cases and is timed. */
#define COST_WRONG 1
#define COST_RIGHT 4
#define BUDGET_WINNER 32 /* in addition, for the winner's minimisation */

static const unsigned budgets[SEARCH_FORMS] = {[SEARCH_PLAIN] = 64, [SEARCH_STRUCTURED] = 64};

search_form finish_form(const ir_genome *genome) {
    return ir_genome_prefix_count(genome) > 0 ? SEARCH_STRUCTURED : SEARCH_PLAIN;
}

bool finish_may_promote(const finish *f, search_form form) {
    return f->spent[form] < budgets[form];
}

bool finish_may_promote_any(const finish *f, bool is_winner) {
    unsigned spent = 0, most = is_winner ? BUDGET_WINNER : 0;
    for (int form = 0; form < SEARCH_FORMS; form++) {
        if (!is_winner && finish_may_promote(f, (search_form)form))
            return true;
        spent += f->spent[form];
        most += budgets[form];
    }
    return is_winner && spent < most;
}

void finish_renew(finish *f) {
    for (int form = 0; form < SEARCH_FORMS; form++) {
        if (f->spent[form] > budgets[form] / 2)
            f->spent[form] = budgets[form] / 2;
    }
}

/* Charges a promotion to its form and skeleton. Modelled times come first and are cheap, so a slow
 * candidate costs as little as a wrong one, unless all else was checked. */
static void charge(finish *f, const ir_genome *genome, verdict v, bool checks_all) {
    bool is_cheap = v == WRONG || (v == SLOW && !checks_all && !finish_is_measured(f));
    unsigned cost = is_cheap ? COST_WRONG : COST_RIGHT;
    skeleton_share *own = finish_skeleton(f, genome);
    f->spent[finish_form(genome)] += cost;
    if (own)
        own->spent += cost;
}

void finish_clear_winner(winner *w) {
    ir_genome_free(w->genome);
    pool_job_free(w->job);
    free(w->words);
    free(w->stress);
    *w = (winner){0};
}

/* ---- verdicts ---- */

/* The key of code: hash of the PTX with the macros, since macros may change the launch. */
static ev_status code_key(const ir_genome *genome, const char *ptx_sha256, ev_sha256 *key,
                          ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    ev_sha256 base = ir_genome_base_sha256(genome);
    ev_str_printf(&text, "%s %s", ptx_sha256, base.hex);
    ev_status status = ev_str_status(&text, err);
    if (status == EV_OK)
        *key = ev_sha256_of(ev_str_text(&text), text.length);
    ev_str_free(&text);
    return status;
}

/* Keeps a verdict. `ns`: time on the held-out cases. `ptx_sha256` "": the verdict holds for this
 * genome only. */
static ev_status judge_as(finish *f, const ir_genome *genome, const char *ptx_sha256, verdict v,
                          double ns, ev_error *err) {
    const memo_entry entry = {.ns = ns, .verdict = v};
    ev_sha256 key = ir_genome_sha256(genome);
    EV_TRY(memo_put(&f->judged, &key, &entry, err));
    if (!ptx_sha256[0])
        return EV_OK;
    EV_TRY(code_key(genome, ptx_sha256, &key, err));
    return memo_put(&f->judged, &key, &entry, err);
}

ev_status finish_verdict(const finish *f, const ir_genome *genome, verdict *v, double *held_out,
                         ev_error *err) {
    ev_sha256 key = ir_genome_sha256(genome);
    const memo_entry *judged = memo_find(&f->judged, &key), *scored = memo_find(&f->scored, &key);
    if (!judged && scored && scored->ptx_sha256[0]) {
        EV_TRY(code_key(genome, scored->ptx_sha256, &key, err));
        judged = memo_find(&f->judged, &key);
    }
    *v = judged ? judged->verdict : NOT_JUDGED;
    *held_out = judged ? judged->ns : 0;
    return EV_OK;
}

/* ---- refusals ----
 *
 * Two reasons are of one kind where they differ in numbers alone. */

/* Whether a number begins here: not inside a word, so "4.5e-06" is a number and the 2 of "L2" is
 * none. */
static bool begins_number(const char *text, const char *at) {
    bool inside = at > text && (isalnum((unsigned char)at[-1]) || at[-1] == '_');
    return !inside && isdigit((unsigned char)*at);
}

static const char *end_of_number(const char *at) {
    char *end = NULL;
    (void)strtod(at, &end);
    return end;
}

static bool same_kind(const char *a, const char *b) {
    const char *x = a, *y = b;
    while (*x && *y) {
        if (begins_number(a, x) && begins_number(b, y)) {
            x = end_of_number(x);
            y = end_of_number(y);
        } else if (*x++ != *y++) {
            return false;
        }
    }
    return *x == *y;
}

void tally_add(tally *t, const char *reason) {
    char text[TALLY_TEXT];
    (void)snprintf(text, sizeof text, "%s", reason);
    for (size_t i = 0; i < t->kind_count; i++) {
        if (same_kind(t->kinds[i].first, text)) {
            t->kinds[i].count++;
            return;
        }
    }
    if (t->kind_count == TALLY_KINDS) {
        t->others++;
        return;
    }
    tally_kind *kind = &t->kinds[t->kind_count++];
    (void)snprintf(kind->first, sizeof kind->first, "%s", text);
    kind->count = 1;
}

void finish_tell_refused(const finish *f) {
    char note[TALLY_TEXT + 64];
    for (size_t i = 0; i < f->refused.kind_count; i++) {
        const tally_kind *kind = &f->refused.kinds[i];
        if (kind->count == 1)
            snprintf(note, sizeof note, "not promoted: %s", kind->first);
        else
            snprintf(note, sizeof note, "not promoted, %" PRIu64 " alike: %s", kind->count,
                     kind->first);
        course_display(f->c, note);
    }
    if (f->refused.others == 0)
        return;
    snprintf(note, sizeof note, "not promoted, for other reasons: %" PRIu64, f->refused.others);
    course_display(f->c, note);
}

/* ---- gate 6 ---- */

/* Keeps the promoted variant in f->kept. Takes the job over. */
static void keep(finish *f, const ir_genome *genome, pool_job *job, const score *s) {
    finish_clear_winner(&f->kept);
    f->kept = (winner){.genome = ir_genome_ref(genome),
                       .job = job,
                       .promoted = true,
                       .score = *s,
                       .stress = f->stress};
    f->stress = NULL;
}

/* Notes a start that gate 6 found wrong at other macros than the defaults. */
static ev_status note_wrong(finish *f, const ir_genome *genome, const score *s, ev_error *err) {
    wrong_list one = {0};
    ev_status status = EV_OK;
    if (wrong_note(&one, genome, s->stopped, s->reason))
        status = course_note_wrong(f->c, &one.list[0], err);
    wrong_free(&one);
    return status;
}

static void take_score(pool_job *job, const score *s) {
    job->answer.done.score = *s; /* the record has it from there */
    child_result_take_score(&job->result, s);
}

/* Runs the stress on a variant that passed all checks of gate 6, though it may be too slow. */
static ev_status stress(finish *f, const ir_genome *genome, pool_job *job, score *s,
                        ev_error *err) {
    score before = *s;
    free(f->stress);
    f->stress = NULL;
    EV_TRY(finish_stress(f, genome, job, s, err));
    if (s->ns != before.ns)
        take_score(job, s);
    return EV_OK;
}

/* Gate 7: stops a right variant to which the assembler objects (tune_options.assemble). The variant
 * keeps its time, and its edits are not to blame for an error. Unmodified starts pass. */
static ev_status assemble(const finish *f, const ir_genome *genome, pool_job *job, score *s,
                          ev_error *err) {
    bool is_start = ir_genome_edit_count(genome) == 0 && ir_genome_macro_count(genome) == 0;
    char why[sizeof s->reason];
    if (is_start || s->ns <= 0 || !job->reply || !job->reply->has_code)
        return EV_OK;
    EV_TRY(ptxas_object(&f->c->run->options->assemble, job->reply->code.ptx, why, sizeof why, err));
    if (why[0] == '\0')
        return EV_OK;
    s->stopped = GATE_ASSEMBLED;
    (void)snprintf(s->reason, sizeof s->reason, "%s", why);
    take_score(job, s);
    return EV_OK;
}

/* What is tried on a variant that passed all checks of gate 6, though it may be too slow. */
static ev_status try_right(finish *f, const ir_genome *genome, const fitness_bar *bar,
                           pool_job *job, score *s, ev_error *err) {
    if (s->stopped != GATE_NONE && (!bar->is_last || s->ns <= 0))
        return EV_OK;
    EV_TRY(stress(f, genome, job, s, err));
    return assemble(f, genome, job, s, err);
}

/* `keeps_slow`: also a variant that is too slow is kept in f->kept. */
static ev_status judge(finish *f, const ir_genome *genome, double ns, const fitness_bar *bar,
                       bool keeps_slow, verdict *v, double *held_out, ev_error *err) {
    pool_job *job = NULL;
    EV_TRY(course_promote(f->c, genome, bar, &job, err));
    score s = {0};
    bool scored = job_score(job, &s);
    ev_status status = scored ? try_right(f, genome, bar, job, &s, err) : EV_OK;
    if (status == EV_OK)
        status = course_record(f->c, "promote", f->c->promoted++, job, err);
    /* A score has a time only if no check failed so far. A slow variant may have skipped the later
     * checks. */
    *v = WRONG;
    if (scored && s.stopped == GATE_NONE)
        *v = PROMOTED;
    else if (scored && s.ns > 0)
        *v = SLOW;
    *held_out = s.ns;
    charge(f, genome, *v, bar->is_last);
    if (status == EV_OK)
        status = judge_as(f, genome, job->result.hashes[SEARCH_BY_PTX], *v, s.ns, err);
    bool keeps = keeps_slow && *v == SLOW && s.stopped != GATE_ASSEMBLED;
    if (status == EV_OK && (*v == PROMOTED || keeps)) {
        keep(f, genome, job, &s);
        return EV_OK;
    }
    if (*v == SLOW && ns > 0)
        finish_note_transfer(f, genome, ns, s.ns);
    if (status == EV_OK && *v == WRONG && scored)
        status = note_wrong(f, genome, &s, err);
    tally_add(&f->refused, job->result.reason);
    pool_job_free(job);
    return status;
}

static bool is_same(const ir_genome *a, const ir_genome *b) {
    ev_sha256 x = ir_genome_sha256(a), y = ir_genome_sha256(b);
    return ev_sha256_equal(&x, &y);
}

ev_status finish_promote(finish *f, const ir_genome *genome, double ns, verdict *v,
                         double *held_out, ev_error *err) {
    EV_TRY(finish_verdict(f, genome, v, held_out, err));
    bool is_kept = f->kept.genome && is_same(f->kept.genome, genome);
    if (*v != NOT_JUDGED && (*v != PROMOTED || is_kept))
        return EV_OK;
    return judge(f, genome, ns, &f->bar, false, v, held_out, err);
}

ev_status finish_is_wrong(void *context, const ir_genome *genome, bool *wrong, ev_error *err) {
    finish *f = context;
    verdict v = SLOW;
    double held_out = 0;
    fitness_bar bar = f->bar;
    bar.is_last = true;
    EV_TRY(finish_verdict(f, genome, &v, &held_out, err));
    if (v == NOT_JUDGED)
        EV_TRY(judge(f, genome, 0, &bar, false, &v, &held_out, err));
    *wrong = v == WRONG;
    return EV_OK;
}

ev_status finish_judge_whole(finish *f, const ir_genome *genome, bool *right, ev_error *err) {
    verdict v = SLOW;
    double held_out = 0;
    fitness_bar bar = f->bar;
    bar.is_last = true;
    *right = false;
    EV_TRY(finish_verdict(f, genome, &v, &held_out, err));
    if (v != WRONG)
        EV_TRY(judge(f, genome, 0, &bar, true, &v, &held_out, err));
    *right = f->kept.genome && is_same(f->kept.genome, genome);
    return EV_OK;
}

ev_status finish_refuse(finish *f, const ir_genome *genome, double held_out, ev_error *err) {
    return judge_as(f, genome, "", SLOW, held_out, err);
}

bool finish_may_win(const finish *f) {
    return f->field == SEARCH_ANY || f->kept.job->result.bold == 0;
}

void finish_take(finish *f, winner *to) {
    assert(f->kept.genome);
    finish_clear_winner(to);
    *to = f->kept;
    f->kept = (winner){0};
}
