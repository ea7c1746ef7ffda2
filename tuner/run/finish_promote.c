/* Finish, promotions: genomes at gate 6, each judged once. */
#include "tuner/run/finish_inside.h"

#include "base/json.h"
#include "base/str.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is wrong is mostly seen at the first case; what is right runs all of them, and is timed. */
#define COST_WRONG 1
#define COST_RIGHT 4
#define BUDGET 64
#define BUDGET_WINNER 32 /* more, when it is minimised */

bool finish_may_promote(const finish *f, bool is_winner) {
    return f->spent < BUDGET + (is_winner ? BUDGET_WINNER : 0);
}

void finish_clear_winner(winner *w) {
    json_decref(w->genome);
    pool_job_free(w->job);
    free(w->words);
    *w = (winner){0};
}

/* ---- verdicts ---- */

/* The same PTX may be launched otherwise: by other macros. malloc'ed; NULL: out of memory. */
static char *code_key(const json_t *genome, const char *ptx_sha256) {
    json_t *base = genome_part(genome, 0, 0);
    char *text = base ? ev_json_print(base, true) : NULL;
    json_decref(base);
    ev_str key = EV_STR_EMPTY;
    if (text)
        ev_str_printf(&key, "%s %s", ptx_sha256, text);
    free(text);
    return text ? ev_str_take(&key) : NULL;
}

/* `ns`: on the held-out cases. */
static ev_status judge_as(finish *f, const json_t *genome, const char *ptx_sha256, verdict v,
                          double ns, ev_error *err) {
    json_t *row = json_pack("[i,f]", v, ns);
    char *text = ev_json_print(genome, true);
    bool ok = row && text && json_object_set(f->judged, text, row) == 0;
    free(text);
    char *key = ok && ptx_sha256[0] ? code_key(genome, ptx_sha256) : NULL;
    if (ok && ptx_sha256[0])
        ok = key && json_object_set(f->judged, key, row) == 0;
    free(key);
    json_decref(row);
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

ev_status finish_verdict(const finish *f, const json_t *genome, verdict *v, double *held_out,
                         ev_error *err) {
    char *text = ev_json_print(genome, true);
    if (!text)
        return ev_fail_memory(err, 0);
    const json_t *row = json_object_get(f->judged, text);
    const char *sha = json_string_value(json_array_get(json_object_get(f->scored, text), 1));
    free(text);
    char *key = !row && sha && sha[0] ? code_key(genome, sha) : NULL;
    if (!row && sha && sha[0] && !key)
        return ev_fail_memory(err, 0);
    if (key)
        row = json_object_get(f->judged, key);
    free(key);
    *v = (verdict)json_integer_value(json_array_get(row, 0));
    *held_out = json_real_value(json_array_get(row, 1));
    return EV_OK;
}

/* ---- refusals ----
 *
 * Two reasons are of one kind where they differ in numbers alone. */

/* A number begins where no word goes on: "4.5e-06" is one, the 2 of "L2" is none. */
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

/* Takes the job over. */
static void keep(finish *f, json_t *genome, pool_job *job, const score *s) {
    finish_clear_winner(&f->kept);
    f->kept = (winner){.genome = json_incref(genome), .job = job, .promoted = true, .score = *s};
}

static ev_status judge(finish *f, json_t *genome, double ns, const fitness_bar *bar, verdict *v,
                       double *held_out, ev_error *err) {
    pool_job *job = NULL;
    EV_TRY(course_promote(f->c, genome, bar, &job, err));
    score s = {0};
    bool scored = job_score(job, &s);
    ev_status status =
        course_record(f->c, "promote", f->c->promoted++, job, scored ? &s : NULL, err);
    /* It has a time only if nothing wrong was seen: what is slow may not have been looked at
     * further. */
    *v = WRONG;
    if (scored && s.stopped == GATE_NONE)
        *v = PROMOTED;
    else if (scored && s.ns > 0)
        *v = SLOW;
    *held_out = s.ns;
    f->spent += *v == WRONG ? COST_WRONG : COST_RIGHT;
    if (status == EV_OK)
        status = judge_as(f, genome, job->hashes[SEARCH_BY_PTX], *v, s.ns, err);
    if (status == EV_OK && *v == PROMOTED) {
        keep(f, genome, job, &s);
        return EV_OK;
    }
    if (*v == SLOW && ns > 0)
        finish_note_transfer(f, genome, ns, s.ns);
    tally_add(&f->refused, scored ? s.reason : job->reason);
    pool_job_free(job);
    return status;
}

ev_status finish_promote(finish *f, json_t *genome, double ns, verdict *v, double *held_out,
                         ev_error *err) {
    EV_TRY(finish_verdict(f, genome, v, held_out, err));
    bool is_kept = f->kept.genome && json_equal(f->kept.genome, genome);
    if (*v && (*v != PROMOTED || is_kept))
        return EV_OK;
    return judge(f, genome, ns, &f->bar, v, held_out, err);
}

ev_status finish_is_wrong(void *context, json_t *genome, bool *wrong, ev_error *err) {
    finish *f = context;
    verdict v = SLOW;
    double held_out = 0;
    fitness_bar bar = f->bar;
    bar.is_last = true;
    EV_TRY(finish_verdict(f, genome, &v, &held_out, err));
    if (!v)
        EV_TRY(judge(f, genome, 0, &bar, &v, &held_out, err));
    *wrong = v == WRONG;
    return EV_OK;
}

ev_status finish_refuse(finish *f, const json_t *genome, double held_out, ev_error *err) {
    return judge_as(f, genome, "", SLOW, held_out, err);
}

void finish_take(finish *f, winner *to) {
    assert(f->kept.genome);
    finish_clear_winner(to);
    *to = f->kept;
    f->kept = (winner){0};
}
