/* Finish, portfolio: the few variants that together take the least weighted time over the shapes of
 * `evoke tune --shapes`.
 *
 * The records hold the time of every child at each timed shape, so one search has timed many
 * specialists that are no winner by the mean. `gather` reads these times. `settle` chooses members
 * (tuner/search/portfolio.h) and puts each through all checks of gate 6 and the stress. A member
 * that is wrong leaves the list, and the choice is made again, until all members are right. Then
 * each member is minimised by its time at the shapes where it is the fastest.
 *
 * Gate 6 does not ask a member to be faster than the starts at the mean of the held-out cases. It
 * has to be faster at a shape of the portfolio, by the records and once more when it is chosen. */
#include "tuner/run/finish_inside.h"

#include "base/json.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRIES 32       /* most candidates that are put through gate 6 */
#define MOST_BLAMED 3  /* most wrong candidates that are bisected */
#define KEEP_GAIN 0.98 /* share of a gain that minimising must keep */

/* Where a candidate is in the records. */
typedef struct source {
    const char *phase;
    uint64_t number;
} source;

/* A candidate that gate 6 found right. */
typedef struct right_one {
    size_t row; /* its index in the list */
    winner winner;
    score times; /* on the search's cases */
} right_one;

typedef struct folio {
    finish *f;
    const portfolio_shapes *shapes;
    double baseline_ns[PORTFOLIO_SHAPES];
    double hand_ns[PORTFOLIO_SHAPES]; /* of the last start; 0: not known */
    double base_ns[PORTFOLIO_SHAPES]; /* the faster of both */
    source *sources;
    portfolio_times *times;
    size_t count, room;
    right_one right[TRIES];
    size_t right_count, tries, blamed;
    size_t members[PORTFOLIO_MOST]; /* indices in `right` */
    size_t member_count;
} folio;

static portfolio_problem problem_of(const folio *o) {
    const tune_options *options = o->f->c->run->options;
    return (portfolio_problem){.list = o->times,
                               .count = o->count,
                               .weights = o->shapes->weights,
                               .base_ns = o->base_ns,
                               .shapes = o->shapes->count,
                               .most = options->most_variants,
                               .least_gain = options->least_gain};
}

/* ---- times ---- */

static const score_case *case_of(const score *s, const char *name) {
    for (size_t i = 0; i < s->case_count; i++) {
        if (strcmp(s->cases[i].name, name) == 0)
            return &s->cases[i];
    }
    return NULL;
}

static double time_of(const folio *o, const score *s, size_t shape) {
    const score_case *at = case_of(s, o->shapes->at[shape]->name);
    return at != NULL && s->stopped == GATE_NONE ? at->ns : 0;
}

static ev_status take_score(void *context, const records_evaluation *e, ev_error *err) {
    ev_json *doc = NULL;
    score *to = context;
    to->stopped = GATE_SEEN;
    if (e->score[0] == '\0')
        return EV_OK;
    EV_TRY(ev_json_parse(e->score, "the records", &doc, err));
    ev_status status = score_from_json(doc->root, to, err);
    ev_json_free(doc);
    return status;
}

/* Scores genomes on the search's cases. One that did not pass is stopped at a gate. */
static ev_status score_whole(const finish *f, const ir_genome *const *genomes, size_t count,
                             score *out, ev_error *err) {
    course *c = f->c;
    uint64_t first = c->minimised;
    trial *trials = calloc(count + 1, sizeof *trials);
    if (!trials)
        return ev_fail_memory(err, (count + 1) * sizeof *trials);
    ev_status status = course_score(c, genomes, count, trials, err);
    free(trials);
    for (size_t i = 0; i < count && status == EV_OK; i++) {
        bool found = false;
        out[i] = (score){.stopped = GATE_SEEN};
        status = records_get(c->run->records, c->index, "minimise", first + i, take_score, &out[i],
                             &found, err);
    }
    return status;
}

static ev_status set_base(folio *o, ev_error *err) {
    const course *c = o->f->c;
    const task *t = c->t;
    const ir_genome *hand = NULL;
    score s = {.stopped = GATE_SEEN};
    if (t->start_count > 1)
        EV_TRY(winner_start_genome(&t->starts[t->start_count - 1], &hand, err));
    ev_status status = hand ? score_whole(o->f, &hand, 1, &s, err) : EV_OK;
    ir_genome_free(hand);
    for (size_t i = 0; i < o->shapes->count; i++) {
        o->baseline_ns[i] = course_baseline_ns(c, o->shapes->at[i]->name);
        o->hand_ns[i] = time_of(o, &s, i);
        o->base_ns[i] =
            o->hand_ns[i] > 0 ? fmin(o->baseline_ns[i], o->hand_ns[i]) : o->baseline_ns[i];
    }
    return status;
}

/* ---- the list ---- */

static ev_status add_row(folio *o, const source *from, const portfolio_times *times,
                         ev_error *err) {
    if (o->count == o->room) {
        size_t room = o->room > 0 ? 2 * o->room : 256;
        source *sources = realloc(o->sources, room * sizeof *sources);
        if (!sources)
            return ev_fail_memory(err, room * sizeof *sources);
        o->sources = sources;
        portfolio_times *list = realloc(o->times, room * sizeof *list);
        if (!list)
            return ev_fail_memory(err, room * sizeof *list);
        o->times = list;
        o->room = room;
    }
    o->sources[o->count] = *from;
    o->times[o->count++] = *times;
    return EV_OK;
}

typedef struct gathering {
    folio *o;
    const char *phase;
} gathering;

/* Adds an evaluation that passed and is faster than the starts at some shape. */
static ev_status take_row(void *context, const records_evaluation *e, ev_error *err) {
    const gathering *g = context;
    folio *o = g->o;
    bool may_win = e->bold == 0 || o->f->field == SEARCH_ANY;
    portfolio_times times = {.edits = json_array_size(json_object_get(e->genome, "edits"))};
    bool gains = false;
    score *s = NULL;
    if (!may_win || !e->genome || strcmp(e->gate, gate_name(GATE_NONE)) != 0)
        return EV_OK;
    if (!(s = calloc(1, sizeof *s)))
        return ev_fail_memory(err, sizeof *s);
    ev_status status = take_score(s, e, err);
    for (size_t i = 0; i < o->shapes->count; i++) {
        times.ns[i] = time_of(o, s, i);
        gains = gains || (times.ns[i] > 0 && times.ns[i] < o->base_ns[i]);
    }
    free(s);
    const source from = {g->phase, e->number};
    return status == EV_OK && gains ? add_row(o, &from, &times, err) : status;
}

static ev_status gather(folio *o, ev_error *err) {
    static const char *const phases[] = {"search", "minimise"};
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        gathering g = {o, phases[i]};
        EV_TRY(records_each(o->f->c->run->records, o->f->c->index, phases[i], take_row, &g, err));
    }
    return EV_OK;
}

static ev_status take_genome(void *context, const records_evaluation *e, ev_error *err) {
    const ir_genome **out = context;
    ir_genome *genome = NULL;
    EV_TRY(ir_genome_from_json(e->genome, &genome, err));
    *out = genome;
    return EV_OK;
}

static ev_status genome_of(const folio *o, size_t row, const ir_genome **out, ev_error *err) {
    const source *from = &o->sources[row];
    bool found = false;
    EV_TRY(records_get(o->f->c->run->records, o->f->c->index, from->phase, from->number,
                       take_genome, out, &found, err));
    return found ? EV_OK : ev_fail(err, EV_INFRA, "the records lost an evaluation");
}

/* ---- gate 6 ---- */

static right_one *find_right(folio *o, size_t row) {
    for (size_t i = 0; i < o->right_count; i++) {
        if (o->right[i].row == row)
            return &o->right[i];
    }
    return NULL;
}

/* Whether it holds an edit that is to blame for refusals. */
static ev_status is_blamed(const folio *o, const ir_genome *genome, bool *blamed, ev_error *err) {
    const ir_genome *rest = NULL;
    EV_TRY(finish_strip(o->f, genome, &rest, err));
    *blamed = !rest || ir_genome_edit_count(rest) < ir_genome_edit_count(genome);
    ir_genome_free(rest);
    return EV_OK;
}

/* Judges a genome, and times it. *to is the caller's if it is right. */
static ev_status judge_one(folio *o, const ir_genome *genome, right_one *to, bool *right,
                           ev_error *err) {
    o->tries++;
    EV_TRY(finish_judge_whole(o->f, genome, right, err));
    if (!*right)
        return EV_OK;
    EV_TRY(score_whole(o->f, &genome, 1, &to->times, err));
    *right = to->times.stopped == GATE_NONE && finish_may_win(o->f);
    if (!*right)
        return EV_OK;
    finish_take(o->f, &to->winner);
    to->winner.promoted = true;
    to->winner.score.stopped = GATE_NONE; /* it may be slow at other shapes */
    to->winner.score.reason[0] = '\0';
    return EV_OK;
}

static ev_status try_genome(folio *o, size_t row, const ir_genome *genome, ev_error *err) {
    bool right = false, blamed = false;
    right_one *to = &o->right[o->right_count];
    EV_TRY(is_blamed(o, genome, &blamed, err));
    *to = (right_one){.row = row};
    if (!blamed)
        EV_TRY(judge_one(o, genome, to, &right, err));
    if (!blamed && !right && ir_genome_edit_count(genome) > 0 && o->blamed++ < MOST_BLAMED)
        EV_TRY(finish_blame(o->f, genome, err));
    if (!right) {
        o->times[row].is_out = true;
        return EV_OK;
    }
    for (size_t i = 0; i < o->shapes->count; i++) /* a measured time differs from the first */
        o->times[row].ns[i] = time_of(o, &to->times, i);
    o->right_count++;
    return EV_OK;
}

/* The first chosen row that was not judged; SIZE_MAX: all were. */
static size_t first_open(folio *o, const size_t *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!find_right(o, rows[i]))
            return rows[i];
    }
    return SIZE_MAX;
}

/* The tries are used up: only what was judged may be chosen. */
static void close_list(folio *o) {
    for (size_t i = 0; i < o->count; i++)
        o->times[i].is_out = o->times[i].is_out || !find_right(o, i);
}

static ev_status settle(folio *o, ev_error *err) {
    size_t rows[PORTFOLIO_MOST], open = 0, count = 0;
    for (;;) {
        if (o->tries >= TRIES || finish_is_stopped(o->f))
            close_list(o);
        portfolio_problem p = problem_of(o);
        count = portfolio_choose(&p, rows);
        open = first_open(o, rows, count);
        if (open == SIZE_MAX)
            break;
        const ir_genome *genome = NULL;
        EV_TRY(genome_of(o, open, &genome, err));
        ev_status status = try_genome(o, open, genome, err);
        ir_genome_free(genome);
        EV_TRY(status);
    }
    o->member_count = count;
    for (size_t i = 0; i < count; i++)
        o->members[i] = (size_t)(find_right(o, rows[i]) - o->right);
    return EV_OK;
}

/* ---- which member a shape gets ---- */

/* The index in o->members of the fastest member at a shape; SIZE_MAX: the starts are faster. */
static size_t member_at(const folio *o, size_t shape) {
    size_t best = SIZE_MAX;
    double least = o->base_ns[shape];
    for (size_t i = 0; i < o->member_count; i++) {
        double ns = time_of(o, &o->right[o->members[i]].times, shape);
        if (ns > 0 && ns < least) {
            least = ns;
            best = i;
        }
    }
    return best;
}

/* ---- minimising ---- */

/* The shapes of one member. */
typedef struct share {
    const folio *o;
    bool is_own[PORTFOLIO_SHAPES];
} share;

/* The weighted time over the member's own shapes; 0: it failed at one. */
static double share_ns(const share *of, const score *s) {
    double sum = 0;
    for (size_t i = 0; i < of->o->shapes->count; i++) {
        double ns = of->is_own[i] ? time_of(of->o, s, i) : 0;
        if (of->is_own[i] && ns <= 0)
            return 0;
        sum += of->o->shapes->weights[i] * ns;
    }
    return sum;
}

static double share_base_ns(const share *of) {
    double sum = 0;
    for (size_t i = 0; i < of->o->shapes->count; i++)
        sum += of->is_own[i] ? of->o->shapes->weights[i] * of->o->base_ns[i] : 0;
    return sum;
}

static ev_status score_share(void *context, const ir_genome *const *genomes, size_t count,
                             double *ns, ev_error *err) {
    const share *of = context;
    score *scores = calloc(count + 1, sizeof *scores);
    if (!scores)
        return ev_fail_memory(err, (count + 1) * sizeof *scores);
    ev_status status = score_whole(of->o->f, genomes, count, scores, err);
    for (size_t i = 0; i < count && status == EV_OK; i++)
        ns[i] = share_ns(of, &scores[i]);
    free(scores);
    return status;
}

/* Puts a smaller genome in the place of a member, if it is right and keeps the gain. */
static ev_status replace(folio *o, right_one *member, const ir_genome *small, const share *of,
                         ev_error *err) {
    bool right = false;
    right_one now = {.row = member->row};
    EV_TRY(judge_one(o, small, &now, &right, err));
    double base = share_base_ns(of), ns = right ? share_ns(of, &now.times) : 0;
    bool keeps = ns > 0 && ns <= base - KEEP_GAIN * (base - share_ns(of, &member->times));
    if (keeps) {
        finish_clear_winner(&member->winner);
        *member = now;
    } else {
        finish_clear_winner(&now.winner);
    }
    return EV_OK;
}

static ev_status shrink(folio *o, size_t index, ev_error *err) {
    right_one *member = &o->right[o->members[index]];
    share of = {.o = o};
    const ir_genome *small = NULL;
    double small_ns = 0;
    for (size_t i = 0; i < o->shapes->count; i++)
        of.is_own[i] = member_at(o, i) == index;
    minimise_request request = {.genome = member->winner.genome,
                                .ns = share_ns(&of, &member->times),
                                .reference_ns = share_base_ns(&of),
                                .keep = KEEP_GAIN,
                                .budget = FINISH_MINIMISE_BUDGET,
                                .score = score_share,
                                .context = &of};
    if (!(request.ns > 0)) /* it shares each shape with a member as fast */
        return EV_OK;
    EV_TRY(minimise_genome(&request, &small, &small_ns, err));
    bool smaller = ir_genome_edit_count(small) < ir_genome_edit_count(request.genome);
    ev_status status = smaller ? replace(o, member, small, &of, err) : EV_OK;
    ir_genome_free(small);
    return status;
}

/* ---- the result ---- */

static json_t *shape_json(const folio *o, size_t shape) {
    size_t best = member_at(o, shape);
    bool has = best != SIZE_MAX;
    double ns = has ? time_of(o, &o->right[o->members[best]].times, shape) : o->base_ns[shape];
    json_t *json = json_pack("{s:s, s:f, s:f, s:f, s:i}", "case", o->shapes->at[shape]->name,
                             "weight", o->shapes->weights[shape], "baseline_ns",
                             o->baseline_ns[shape], "best_ns", ns, "variant", has ? (int)best : -1);
    if (json && o->hand_ns[shape] > 0)
        (void)json_object_set_new(json, "hand_ns", json_real(o->hand_ns[shape]));
    return json;
}

/* A member with its times at the shapes. */
static json_t *member_json(const folio *o, const right_one *member) {
    json_t *json = winner_to_json(&member->winner), *times = json_array();
    for (size_t i = 0; i < o->shapes->count; i++) {
        const score_case *at = case_of(&member->times, o->shapes->at[i]->name);
        if (at != NULL && at->ns > 0)
            (void)json_array_append_new(
                times, json_pack("{s:s, s:f, s:f, s:f, s:f}", "case", at->name, "ns", at->ns,
                                 "low_ns", at->low_ns, "high_ns", at->high_ns, "error", at->error));
    }
    if (!json || json_object_set(json, "times", times) != 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(times);
    return json;
}

static double total_of(const json_t *shapes, const char *key) {
    double sum = 0;
    for (size_t i = 0; i < json_array_size(shapes); i++) {
        const json_t *at = json_array_get(shapes, i);
        sum += ev_json_number(at, "weight", 0) * ev_json_number(at, key, 0);
    }
    return sum;
}

static ev_status write_text(const folio *o, char **out, ev_error *err) {
    json_t *shapes = json_array(), *variants = json_array();
    bool ok = shapes && variants;
    for (size_t i = 0; ok && i < o->shapes->count; i++)
        ok = json_array_append_new(shapes, shape_json(o, i)) == 0;
    for (size_t i = 0; ok && i < o->member_count; i++)
        ok = json_array_append_new(variants, member_json(o, &o->right[o->members[i]])) == 0;
    json_t *json = json_pack("{s:s, s:f, s:f, s:O, s:O}", "time_kind",
                             o->f->c->ready->modelled ? "modelled" : "measured", "baseline_ns",
                             total_of(shapes, "baseline_ns"), "ns", total_of(shapes, "best_ns"),
                             "shapes", shapes, "variants", variants);
    *out = ok && json ? ev_json_print(json, true) : NULL;
    json_decref(json);
    json_decref(shapes);
    json_decref(variants);
    return *out ? EV_OK : ev_fail_memory(err, 0);
}

/* Makes the first member the winner, and keeps the others. */
static void crown(folio *o) {
    finish *f = o->f;
    right_one *first = &o->right[o->members[0]];
    finish_clear_winner(&f->winner);
    f->winner = first->winner;
    first->winner = (winner){0};
    for (size_t i = 1; i < o->member_count; i++) {
        right_one *other = &o->right[o->members[i]];
        f->members[f->member_count++] = other->winner;
        other->winner = (winner){0};
    }
    f->winner_ns = ir_genome_edit_count(f->winner.genome) > 0 ? first->times.ns : 0;
}

static ev_status choose_and_shrink(folio *o, ev_error *err) {
    EV_TRY(set_base(o, err));
    EV_TRY(gather(o, err));
    EV_TRY(settle(o, err));
    for (size_t i = 0; i < o->member_count && !finish_is_stopped(o->f); i++)
        EV_TRY(shrink(o, i, err));
    if (o->member_count == 0)
        return EV_OK;
    EV_TRY(write_text(o, &o->f->portfolio, err));
    crown(o);
    return EV_OK;
}

ev_status finish_portfolio(finish *f, ev_error *err) {
    folio *o = calloc(1, sizeof *o);
    if (!o)
        return ev_fail_memory(err, sizeof *o);
    o->f = f;
    o->shapes = &f->c->run->shapes;
    course_display(f->c, "choosing the portfolio");
    ev_status status = choose_and_shrink(o, err);
    if (status == EV_OK && o->member_count == 0)
        course_display(f->c, "no variant is faster than the starts at a shape of the portfolio");
    for (size_t i = 0; i < o->right_count; i++)
        finish_clear_winner(&o->right[i].winner);
    free(o->sources);
    free(o->times);
    free(o);
    return status;
}
