/* Finish, minimising: reduces the winner to as few edits as keep its gain.
 *
 * Gate 6 costs as much as few trials, and minimising takes dozens of trials, so only promoted
 * variants are minimised. The result goes through gate 6 again, and must keep its gain on the
 * held-out cases, too. A variant minimised by its time on the search cases mostly passes. If it
 * does not, some of the removed edits gain on the held-out cases, and the fewest such edits are
 * added back. */
#include "tuner/run/finish_inside.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_GAIN 0.98    /* share of a gain that minimising must keep */
#define KEEP_MEASURED 0.9 /* the same on the held-out cases, if times are measured */
/* A winner without an edit that rounds may be slower by this share than with it: changed bits need
 * a reason. */
#define ROUNDING_LOSS 0.02

bool finish_is_measured(const finish *f) {
    return look_is_gpu(f->c->run->options->device);
}

/* ---- the gain on the held-out cases ---- */

/* The best held-out time of an unmodified start; the baseline's if no start is faster. */
static double held_out_reference(const finish *f) {
    if (f->bar.ns > 0)
        return f->bar.ns;
    return f->winner.score.baseline_ns > 0 ? f->winner.score.baseline_ns
                                           : course_baseline_mean(f->c, CORPUS_HELD_OUT);
}

static bool keeps_gain(const finish *f, double held_out) {
    double keep = finish_is_measured(f) ? KEEP_MEASURED : KEEP_GAIN;
    double reference = held_out_reference(f), gain = reference - f->winner.score.ns;
    return held_out > 0 && held_out <= reference - keep * gain;
}

/* The geometric mean of the times in a `check` reply; 0: a case failed. */
static double mean_of_check(const pool_job *job) {
    size_t count = job->reply ? job->reply->case_count : 0;
    double logs = 0;
    for (size_t i = 0; i < count; i++) {
        const case_check *at = &job->reply->cases[i];
        if (!at->ok || at->ns <= 0)
            return 0;
        logs += log(at->ns);
    }
    return count > 0 ? exp(logs / (double)count) : 0;
}

/* The genome's time on the held-out cases alone, measured once. */
static ev_status look_at_held_out(finish *f, const ir_genome *genome, double *ns, ev_error *err) {
    ev_sha256 key = ir_genome_sha256(genome);
    const memo_entry *known = memo_find(&f->held_out, &key);
    if (known) {
        *ns = known->ns;
        return EV_OK;
    }
    pool_job *job = NULL;
    EV_TRY(course_do(f->c, MESSAGE_CHECK, genome, &job, err));
    *ns = mean_of_check(job);
    pool_job_free(job);
    return memo_put(&f->held_out, &key, &(memo_entry){.ns = *ns}, err);
}

/* ---- what may stand ---- */

static ev_status pays_held_out(void *context, const ir_genome *genome, bool *good, ev_error *err) {
    finish *f = context;
    double ns = 0;
    EV_TRY(look_at_held_out(f, genome, &ns, err));
    *good = keeps_gain(f, ns);
    return EV_OK;
}

/* Whether the genome passes gate 6. */
static ev_status stands(void *context, const ir_genome *genome, bool *good, ev_error *err) {
    finish *f = context;
    verdict v = SLOW;
    double ns = 0;
    *good = false;
    if (!finish_may_promote_any(f, true))
        return EV_OK;
    EV_TRY(finish_promote(f, genome, 0, &v, &ns, err));
    *good = v == PROMOTED && keeps_gain(f, ns) && finish_may_win(f);
    return EV_OK;
}

/* ---- minimising ---- */

/* A genome to minimise, and how. */
typedef struct shrinking {
    const ir_genome *genome; /* borrowed */
    double ns;
    minimise_confirm *confirm;
    const ir_genome *core; /* borrowed */
} shrinking;

/* Minimises. *small: as minimise_genome's `out`. *done: the result passed gate 6, or cannot become
 * smaller. */
static ev_status shrink(finish *f, const shrinking *s, const ir_genome **small, bool *done,
                        ev_error *err) {
    double small_ns = 0;
    minimise_request request = {.genome = s->genome,
                                .ns = s->ns,
                                .reference_ns = finish_reference(f, s->genome),
                                .keep = KEEP_GAIN,
                                .budget = FINISH_MINIMISE_BUDGET,
                                .score = finish_score,
                                .confirm = s->confirm,
                                .core = s->core,
                                .context = f};
    EV_TRY(minimise_genome(&request, small, &small_ns, err));
    bool smaller = ir_genome_edit_count(*small) < ir_genome_edit_count(s->genome), good = false;
    ev_status status = smaller ? stands(f, *small, &good, err) : EV_OK;
    if (status == EV_OK && good) {
        finish_take(f, &f->winner);
        f->winner_ns = small_ns;
    }
    *done = !smaller || good;
    return status;
}

/* Minimises the winner. If neither the result by search time nor the result with the held-out edits
 * passes gate 6, each step of a last attempt is tested by gate 6. */
static ev_status shrink_winner(finish *f, const ir_genome *genome, double ns, ev_error *err) {
    const ir_genome *small = NULL, *larger = NULL, *sure = NULL;
    bool done = false;
    shrinking by = {genome, ns, NULL, NULL};
    ev_status status = shrink(f, &by, &small, &done, err);
    if (status == EV_OK && !done) {
        by = (shrinking){genome, ns, pays_held_out, small};
        status = shrink(f, &by, &larger, &done, err);
    }
    if (status == EV_OK && !done) {
        by = (shrinking){genome, ns, stands, NULL};
        status = shrink(f, &by, &sure, &done, err);
    }
    ir_genome_free(small);
    ir_genome_free(larger);
    ir_genome_free(sure);
    return status;
}

/* ---- edits that round ---- */

/* Limits on the time of a winner that lost edits that round. */
typedef struct time_limits {
    double search, held_out;
} time_limits;

/* Removes the last edit before `*at` that may round, and that costs no more than the limit on the
 * search cases. *out: a new reference; NULL: there is none. */
static ev_status drop_one(finish *f, const ir_genome *genome, size_t *at, double limit, double *ns,
                          const ir_genome **out, ev_error *err) {
    *out = NULL;
    while ((*at)-- > 0) {
        if (!ir_edit_may_round(ir_genome_edit_kind(genome, *at)))
            continue;
        const ir_genome *rest = ir_genome_without(genome, *at, *at + 1);
        ev_status status = rest ? finish_score(f, &rest, 1, ns, err) : ev_fail_memory(err, 0);
        if (status == EV_OK && *ns > 0 && *ns <= limit) {
            *out = rest;
            return EV_OK;
        }
        ir_genome_free(rest);
        EV_TRY(status);
    }
    *at = 0;
    return EV_OK;
}

/* Puts a genome through gate 6, and makes it the winner if its time is within the limit. */
static ev_status take_if_promoted(finish *f, const ir_genome *genome, double ns, double limit,
                                  bool *taken, ev_error *err) {
    verdict v = SLOW;
    double held_out = 0;
    *taken = false;
    if (!finish_may_promote_any(f, true))
        return EV_OK;
    EV_TRY(finish_promote(f, genome, ns, &v, &held_out, err));
    if (v != PROMOTED || held_out > limit || !finish_may_win(f))
        return EV_OK;
    finish_take(f, &f->winner);
    f->winner_ns = ns;
    *taken = true;
    return EV_OK;
}

/* Drops the winner's edits that round. `at_once`: as many as the search cases allow, and gate 6 at
 * the end; else gate 6 after each. *taken: the winner changed. */
static ev_status drop_rounding(finish *f, const time_limits *most, bool at_once, bool *taken,
                               ev_error *err) {
    const ir_genome *now = ir_genome_ref(f->winner.genome);
    size_t at = ir_genome_edit_count(now), dropped = 0;
    double ns = 0, now_ns = 0;
    ev_status status = EV_OK;
    *taken = false;
    while (status == EV_OK && at > 0) {
        const ir_genome *rest = NULL;
        bool stays = at_once;
        status = drop_one(f, now, &at, most->search, &ns, &rest, err);
        if (!rest)
            break;
        if (!at_once)
            status = take_if_promoted(f, rest, ns, most->held_out, &stays, err);
        *taken = *taken || (stays && !at_once);
        ir_genome_free(stays ? now : rest);
        now = stays ? rest : now;
        now_ns = stays ? ns : now_ns;
        dropped += stays;
    }
    if (status == EV_OK && at_once && dropped > 0)
        status = take_if_promoted(f, now, now_ns, most->held_out, taken, err);
    ir_genome_free(now);
    return status;
}

/* Drops edits that change bits for a gain that is too small to be worth that. */
static ev_status prefer_exact(finish *f, ev_error *err) {
    const time_limits most = {f->winner_ns * (1 + ROUNDING_LOSS),
                              f->winner.score.ns * (1 + ROUNDING_LOSS)};
    bool taken = false;
    EV_TRY(drop_rounding(f, &most, true, &taken, err));
    return taken ? EV_OK : drop_rounding(f, &most, false, &taken, err);
}

ev_status finish_win(finish *f, const ir_genome *genome, double ns, ev_error *err) {
    finish_take(f, &f->winner);
    f->winner_ns = ns;
    if (f->c->cut_short)
        return EV_OK;
    EV_TRY(shrink_winner(f, genome, ns, err));
    return prefer_exact(f, err);
}
