/* Worker, starts: builds the unmodified starts. Fitness draws further check cases from them, and
 * compares variants with them. Each start is built in a process of its own, so that an abort in
 * LLVM loses only that start. Skeletons with structural edits are fast code, and the worker itself
 * makes them. */
#include "tuner/worker/guard.h"
#include "tuner/worker/isolate.h"
#include "tuner/worker/worker.h"

#include <stdlib.h>

#define SECONDS 60 /* longest time for building a start */

typedef struct start_request {
    worker *w;
    ir_genome *genome; /* without edits */
} start_request;

static ev_status build_start(void *context, ev_str *out, ev_error *err) {
    const start_request *r = context;
    worker_build b = {0};
    guard_end(); /* the worker's guard must not report this child's end */
    bases_use_shelf(r->w->bases, NULL);
    EV_TRY(worker_build_begin(r->w, r->genome, &b, err));
    ev_status status = worker_build_all(r->w, &b, err);
    if (status == EV_OK)
        ev_str_append_n(out, b.candidate.ptx, b.candidate.ptx_bytes);
    worker_build_end(&b);
    return status;
}

static ev_status build_isolated(worker *w, ir_genome *genome, ev_str *out, ev_error *err) {
    start_request r = {w, genome};
    ev_error why = {0};
    ev_status status = isolate_run(build_start, &r, SECONDS, out, &why);
    return status == EV_INFRA ? ev_fail(err, EV_INFRA, "%s", why.text) : EV_OK;
}

static ev_status emit_fast(worker *w, worker_build *b, ev_str *out, ev_error *err) {
    candidate sketch;
    ev_sha256 sha;
    bool covered = false;
    for (int s = 0; s < IR_STAGE_EMIT; s++)
        EV_TRY(worker_build_stage(w, b, (ir_stage)s, err));
    EV_TRY(worker_build_sketch(w, b, &sketch, &sha, &covered, err));
    if (covered)
        ev_str_append_n(out, sketch.ptx, sketch.ptx_bytes);
    return EV_OK;
}

/* The fast code of a skeleton with structural edits, which takes a hundredth of the time of LLVM's
 * code and has the same branches and stores. The worker itself makes it, as it makes the
 * candidate's: a child process would copy each page that either of the two writes. `out` stays
 * empty if there is none. */
static ev_status build_fast(worker *w, const ir_genome *genome, ev_str *out, ev_error *err) {
    worker_build b = {0};
    ev_error why = {0};
    double before = w->seconds[PART_BUILD];
    size_t bold = w->bold;
    ev_status status = worker_build_begin(w, ir_genome_ref(genome), &b, &why);
    if (status == EV_OK)
        status = emit_fast(w, &b, out, &why);
    w->seconds[PART_BUILD] = before; /* the gate that asks counts these seconds */
    w->bold = bold;                  /* the candidate's */
    worker_build_end(&b);
    return status == EV_INFRA ? ev_fail(err, EV_INFRA, "%s", why.text) : EV_OK;
}

/* Builds a start, or takes the build of another worker. */
static ev_status build_once(worker *w, ir_genome *genome, ev_str *out, ev_error *err) {
    json_t *known = NULL;
    EV_TRY(bases_want(w->bases, "start", genome, &known, err));
    if (known) {
        ev_str_append(out, json_string_length(known) > 0 ? json_string_value(known) : "");
        json_decref(known);
        return ev_str_status(out, err);
    }
    if (ir_genome_prefix_count(genome) > 0)
        EV_TRY(build_fast(w, genome, out, err));
    if (out->length == 0)
        EV_TRY(build_isolated(w, genome, out, err));
    return bases_made(w->bases, "start", genome, json_string(ev_str_text(out)), err);
}

/* Takes `genome` over, which has no local edits. `out` stays empty if the build fails. */
static ev_status build_start_of(worker *w, ir_genome *genome, ev_str *out, ev_error *err) {
    if (!genome)
        return ev_fail_memory(err, 0);
    ev_status status = build_once(w, genome, out, err);
    ir_genome_free(genome);
    return status;
}

/* ---- drawn cases ---- */

ev_status worker_draw_cases(worker *w, const char *device_id, ev_error *err) {
    size_t count = 0;
    ev_str *ptx = calloc(w->t->start_count, sizeof *ptx);
    candidate *starts = calloc(w->t->start_count, sizeof *starts);
    ev_status status =
        ptx && starts ? EV_OK : ev_fail_memory(err, w->t->start_count * sizeof *starts);
    for (size_t i = 0; status == EV_OK && i < w->t->start_count; i++) {
        const task_start *start = &w->t->starts[i];
        if (start->is_reference) /* no bar for what grows from the others */
            continue;
        status = build_start_of(w, ir_genome_new(start->name), &ptx[i], err);
        if (status == EV_OK && ptx[i].length > 0)
            starts[count++] = (candidate){.ptx = ev_str_text(&ptx[i]),
                                          .ptx_bytes = ptx[i].length,
                                          .plan = start->plan,
                                          .start = start};
    }
    if (status == EV_OK)
        status = fitness_draw_cases(w->fitness, device_id, starts, count, err);
    for (size_t i = 0; status == EV_OK && i < count; i++)
        status = fitness_add_reference(w->fitness, &starts[i], err);
    for (size_t i = 0; ptx && i < w->t->start_count; i++)
        ev_str_free(&ptx[i]);
    free(ptx);
    free(starts);
    return status;
}

/* ---- references for variants ---- */

/* The first `count` structural edits of the genome alone, without knobs. Where there are some, the
 * light pipeline is taken, since paths and writes are all that is asked for. */
static ir_genome *first_edits(const ir_genome *genome, size_t count) {
    ir_genome *own = ir_genome_part(genome, 0, count);
    if (!own || count == 0 || ir_genome_make_light(own))
        return own;
    ir_genome_free(own);
    return NULL;
}

ev_status worker_unmodified(void *context, ev_str *ptx, ev_error *err) {
    const worker_origin *origin = context;
    return build_start_of(origin->w, ir_genome_part(origin->genome, 0, 0), ptx, err);
}

ev_status worker_divided(void *context, ev_str *ptx, ev_error *err) {
    const worker_origin *origin = context;
    size_t count = ir_genome_division_count(origin->genome);
    return build_start_of(origin->w, first_edits(origin->genome, count), ptx, err);
}

static ev_status add_reference(worker *w, const worker_build *of, ev_error *err) {
    candidate unmodified = of->candidate; /* the start, macros and prefix of the variant */
    ev_str ptx = EV_STR_EMPTY;
    ev_status status =
        build_start_of(w, first_edits(of->genome, ir_genome_prefix_count(of->genome)), &ptx, err);
    unmodified.ptx = ptx.length > 0 ? ev_str_text(&ptx) : NULL;
    unmodified.ptx_bytes = ptx.length;
    if (status == EV_OK)
        status = fitness_add_reference(w->fitness, &unmodified, err);
    ev_str_free(&ptx);
    return status;
}

ev_status worker_hold_writes(worker *w, const worker_build *b, score *s, ev_error *err) {
    bool wants = false;
    EV_TRY(fitness_hold_writes(w->fitness, &b->candidate, s, &wants, err));
    if (!wants)
        return EV_OK;
    EV_TRY(add_reference(w, b, err));
    return fitness_hold_writes(w->fitness, &b->candidate, s, &wants, err);
}
