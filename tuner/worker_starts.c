/* Worker, starts: builds the unmodified ones, from which fitness draws more cases to check, and
 * which it holds variants against. */
#include "tuner/worker.h"

#include <stdlib.h>

/* Takes `genome` over. A start that does not build is none for this GPU, and *b has no PTX; the
 * search finds that out by itself. */
static ev_status build_start(worker *w, ir_genome *genome, worker_build *b, ev_error *err) {
    if (!genome)
        return ev_fail_memory(err, 0);
    ev_error why = {0};
    ev_status status = worker_build_begin(w, genome, b, &why);
    if (status == EV_OK)
        status = worker_build_all(w, b, &why);
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    return EV_OK;
}

static ev_status add_names(const worker *w, json_t *ready, ev_error *err) {
    json_t *names = json_array();
    const task_case *at = NULL;
    bool ok = names != NULL;
    for (size_t i = 0; ok && (at = fitness_drawn_case(w->fitness, i)) != NULL; i++)
        ok = json_array_append_new(names, json_string(at->name)) == 0;
    ok = json_object_set_new(ready, "drawn", names) == 0 && ok;
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

ev_status worker_draw_cases(worker *w, json_t *ready, ev_error *err) {
    size_t count = 0;
    worker_build *builds = calloc(w->t->start_count, sizeof *builds);
    candidate *starts = calloc(w->t->start_count, sizeof *starts);
    ev_status status =
        builds && starts ? EV_OK : ev_fail_memory(err, w->t->start_count * sizeof *builds);
    for (size_t i = 0; status == EV_OK && i < w->t->start_count; i++) {
        status = build_start(w, ir_genome_new(w->t->starts[i].name), &builds[i], err);
        if (status == EV_OK && builds[i].candidate.ptx)
            starts[count++] = builds[i].candidate;
    }
    if (status == EV_OK)
        status = fitness_draw_cases(w->fitness, starts, count, err);
    if (status == EV_OK)
        status = add_names(w, ready, err);
    for (size_t i = 0; builds && i < w->t->start_count; i++)
        worker_build_end(&builds[i]);
    free(builds);
    free(starts);
    return status;
}

/* ---- what variants are held against ---- */

static ir_genome *without_edits(const ir_genome *genome) {
    ir_genome *own = ir_genome_clone(genome);
    while (own && ir_genome_edit_count(own) > 0)
        ir_genome_remove(own, ir_genome_edit_count(own) - 1);
    return own;
}

static ev_status add_reference(worker *w, const worker_build *of, ev_error *err) {
    worker_build b = {0};
    if (ir_genome_edit_count(of->genome) == 0)
        return fitness_add_reference(w->fitness, &of->candidate, err);
    ev_status status = build_start(w, without_edits(of->genome), &b, err);
    candidate unmodified = of->candidate; /* its start and macros */
    unmodified.ptx = b.candidate.ptx;
    unmodified.ptx_bytes = b.candidate.ptx_bytes;
    if (status == EV_OK)
        status = fitness_add_reference(w->fitness, &unmodified, err);
    worker_build_end(&b);
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
