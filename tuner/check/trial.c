/* Trial: builds the candidate of a genome that a file has. */
#include "tuner/check/trial.h"

#include "base/file.h"
#include "tuner/worker/variant.h"

#include <stdlib.h>

void trial_free(trial *it) {
    shipped_free(&it->made);
    ir_genome_free(it->genome);
    gate_builds_free(&it->beside);
    ev_str_free(&it->ptx);
    ev_arena_free(it->arena);
}

static ev_status read_genome(const char *path, trial *it, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    ev_status status = variant_genome(text, path, &it->genome, err);
    free(text);
    return status;
}

ev_status trial_make(const char *path, const task *t, int sm, trial *out, ev_error *err) {
    out->t = t;
    out->sm = sm;
    EV_TRY(read_genome(path, out, err));
    const char *name = ir_genome_start(out->genome);
    const task_start *start = task_find_start(t, name);
    if (start == NULL)
        return ev_fail(err, EV_BAD, "%s: task %s has no start '%s'", path, t->name, name);
    out->arena = ev_arena_new();
    if (out->arena == NULL)
        return ev_fail_memory(err, 1);
    ev_status status = variant_build(t, out->genome, sm, &out->ptx, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s", path);
    out->form = (bundle_variant){
        .start = start->name, .ptx = ev_str_text(&out->ptx), .ptx_bytes = out->ptx.length};
    EV_TRY(shipped_set_launch(out->arena, start, out->genome, &out->form, err));
    EV_TRY(shipped_make(t, &out->form, &out->made, err));
    EV_TRY(shipped_take_genome(&out->made, out->genome, err));
    candidate *made = &out->made.candidate;
    made->aligned = task_bits_of_main(t, start, ir_genome_aligned(out->genome));
    made->aligned_to = made->aligned != 0 ? IR_ARGUMENT_ALIGN : 0;
    return EV_OK;
}

/* In candidate.missed. */
static ev_status missed(void *context, const uint8_t *taken, ev_str *why, ev_error *err) {
    const trial *it = context;
    return variant_missed(it->t, it->genome, it->sm, taken, why, err);
}

ev_status trial_add_builds(trial *it, ev_error *err) {
    candidate *made = &it->made.candidate;
    EV_TRY(variant_gate_builds(it->t, it->genome, it->sm, &it->beside, err));
    gate_builds_give(&it->beside, made);
    made->missed = missed;
    made->missed_context = it;
    return EV_OK;
}
