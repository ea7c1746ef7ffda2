/* Finish, stress: the short form of `evoke check --stress` for each variant that gate 6 promotes.
 * Bold variants have to stand the whole of it. The stress runs in a child process, so this process
 * stays without the candidate's memory, and a crash refuses the candidate alone. */
#include "tuner/run/finish_inside.h"

#include "base/arena.h"
#include "base/child.h"
#include "base/json.h"
#include "bundle/reader_types.h"
#include "tuner/run/shipped.h"
#include "tuner/stress/stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHAPES_SHORT 24
#define ELEMENTS_SHORT 50000000 /* of shapes with sizes of timed cases */
#define SECONDS_MOST 600        /* of the child; far above its work */

/* What the child needs; all borrowed. */
typedef struct stress_request {
    const finish *f;
    const pool_job *job;
    const ir_genome *genome;
    const char *machine;
} stress_request;

/* ---- in the child ---- */

/* The genome's code as a candidate, with its launch and macros. */
static ev_status make(const task *t, const ir_genome *genome, const pool_job *job, ev_arena *arena,
                      shipped *out, ev_error *err) {
    const char *ptx = job->reply->code.ptx;
    const task_start *start = task_find_start(t, ir_genome_start(genome));
    bundle_variant form = {.start = start->name, .ptx = ptx, .ptx_bytes = strlen(ptx)};
    EV_TRY(shipped_set_launch(arena, start, genome, &form, err));
    EV_TRY(shipped_make(t, &form, out, err));
    EV_TRY(shipped_take_genome(out, genome, err));
    out->candidate.aligned = task_bits_of_main(t, start, ir_genome_aligned(genome));
    out->candidate.aligned_to = out->candidate.aligned != 0 ? IR_ARGUMENT_ALIGN : 0;
    out->candidate.may_alias = job->reply->code.may_alias;
    return EV_OK;
}

static ev_status run_made(const stress_request *r, const candidate *baseline,
                          const candidate *origin, candidate *who, ev_str *out, ev_error *err) {
    const stress_limits limits = {.shapes = r->job->result.bold > 0 ? STRESS_SHAPES : SHAPES_SHORT,
                                  .elements = ELEMENTS_SHORT,
                                  .seed = r->f->c->run->options->seed};
    who->origin = origin;
    const stress_subject subject = {.t = r->f->c->t,
                                    .device = r->machine,
                                    .baseline = baseline,
                                    .candidate = who,
                                    .role = "variant"};
    json_t *row = NULL;
    EV_TRY(stress_run(&subject, &limits, &row, err));
    char *text = ev_json_print(row, true);
    json_decref(row);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_append(out, text);
    free(text);
    return ev_str_status(out, err);
}

static ev_status run_all(const stress_request *r, ev_str *out, ev_error *err) {
    const finish *f = r->f;
    shipped baseline = {0}, origin = {0}, who = {0};
    ev_arena *arena = ev_arena_new();
    if (arena == NULL)
        return ev_fail_memory(err, 1);
    ev_status status = make(f->c->t, f->baseline.genome, f->baseline.job, arena, &baseline, err);
    if (status == EV_OK)
        status = make(f->c->t, f->origin.genome, f->origin.job, arena, &origin, err);
    if (status == EV_OK)
        status = make(f->c->t, r->genome, r->job, arena, &who, err);
    if (status == EV_OK)
        status = run_made(r, &baseline.candidate, &origin.candidate, &who.candidate, out, err);
    shipped_free(&baseline);
    shipped_free(&origin);
    shipped_free(&who);
    ev_arena_free(arena);
    return status;
}

/* EV_BAD of the stress tells nothing about the candidate: the baseline does not load here. */
static ev_status run_in_child(void *context, ev_str *out, ev_error *err) {
    ev_error why = {.status = EV_OK};
    ev_status status = run_all(context, out, &why);
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    if (status == EV_OK)
        return EV_OK;
    json_t *row = json_pack("{s:s, s:s}", "verdict", "none", "reason", why.text);
    char *text = row ? ev_json_print(row, true) : NULL;
    json_decref(row);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_append(out, text);
    free(text);
    return ev_str_status(out, err);
}

/* ---- the starts ---- */

/* Builds a start on a worker, unless it is the one that was built last. Takes `genome` over. */
static ev_status build(finish *f, const ir_genome *genome, winner *to, ev_error *err) {
    if (!genome)
        return ev_fail_memory(err, 0);
    ev_sha256 wanted = ir_genome_sha256(genome), has = {{0}};
    if (to->genome)
        has = ir_genome_sha256(to->genome);
    if (to->genome && ev_sha256_equal(&wanted, &has)) {
        ir_genome_free(genome);
        return EV_OK;
    }
    finish_clear_winner(to);
    to->genome = genome;
    EV_TRY(course_do(f->c, MESSAGE_REPLAY, genome, &to->job, err));
    if (!to->job->reply || !to->job->reply->has_code)
        return ev_fail(err, EV_INFRA, "an unmodified start cannot be built again: %s",
                       to->job->result.reason);
    return EV_OK;
}

static ev_status build_starts(finish *f, const ir_genome *genome, ev_error *err) {
    EV_TRY(build(f, ir_genome_new(f->c->t->starts[0].name), &f->baseline, err));
    return build(f, ir_genome_part(genome, 0, 0), &f->origin, err);
}

/* ---- the verdict ---- */

static void refuse(const json_t *row, score *s) {
    char *found = json_dumps(json_object_get(row, "case"), JSON_SORT_KEYS);
    s->stopped = GATE_PROMOTED;
    s->ns = 0; /* a wrong candidate has no time */
    (void)snprintf(s->reason, sizeof s->reason, "stress: %.250s; in task.json the case is %.300s",
                   ev_json_text(row, "reason", ""), found ? found : "");
    free(found);
}

/* Takes the child's row; keeps its text for the record. Without a stress, a bold variant is
 * refused, and a preserving one is promoted as one that was not tried. */
static ev_status take(finish *f, const char *text, bool is_bold, score *s, ev_error *err) {
    ev_json *doc = NULL;
    EV_TRY(ev_json_parse(text, "the report of a stress", &doc, err));
    const char *verdict = ev_json_text(doc->root, "verdict", "");
    bool was_run = strcmp(verdict, "none") != 0;
    if (strcmp(verdict, "pass") != 0 && (was_run || is_bold))
        refuse(doc->root, s);
    ev_json_free(doc);
    if (!was_run)
        return EV_OK;
    free(f->stress);
    f->stress = strdup(text);
    return f->stress ? EV_OK : ev_fail_memory(err, strlen(text));
}

static const char *machine_of(const finish *f) {
    const tune_state *run = f->c->run;
    return run->gpus.count > 0 ? run->gpus.first.twin : run->options->device;
}

ev_status finish_stress(finish *f, const ir_genome *genome, const pool_job *job, score *s,
                        ev_error *err) {
    stress_request request = {f, job, genome, machine_of(f)};
    const ev_child child = {.what = "the stress",
                            .work = run_in_child,
                            .context = &request,
                            .seconds = SECONDS_MOST,
                            .death = EV_BAD};
    ev_str text = EV_STR_EMPTY;
    ev_error why = {.status = EV_OK};
    if (ir_genome_edit_count(genome) == 0 || request.machine[0] == '\0' || !job->reply->has_code)
        return EV_OK;
    EV_TRY(build_starts(f, genome, err));
    ev_status status = ev_child_run(&child, &text, &why);
    if (status == EV_OK) {
        status = take(f, ev_str_text(&text), job->result.bold > 0, s, err);
    } else if (status == EV_BAD) { /* the candidate's fault */
        s->stopped = GATE_PROMOTED;
        s->ns = 0;
        (void)snprintf(s->reason, sizeof s->reason, "stress: %.500s", why.text);
        status = EV_OK;
    } else {
        (void)ev_fail(err, status, "%s", why.text);
    }
    ev_str_free(&text);
    return status;
}
