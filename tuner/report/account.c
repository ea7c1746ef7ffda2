/* Report, account: where the timing model sees the time of the baseline and of the winner go. Both
 * run once more at the first case of the table. */
#include "tuner/report/inside.h"

#include "base/arena.h"
#include "fitness/gates/fitness.h"
#include "kernels/task.h"
#include "tuner/run/shipped.h"
#include "tuner/worker/variant.h"

#include <stdio.h>
#include <string.h>

/* A winner's launch. */
typedef struct launch_of {
    bundle_variant variant;
    shipped shipped;
} launch_of;

static ev_status make_launch(ev_arena *arena, const task *t, const char *start, const char *genome,
                             const char *ptx, launch_of *out, ev_error *err) {
    ir_genome *read = NULL;
    const task_start *found = task_find_start(t, start);
    if (found == NULL)
        return ev_fail(err, EV_BAD, "the task %s has no start '%s' any more", t->name, start);
    out->variant = (bundle_variant){
        .ptx = ptx, .ptx_bytes = strlen(ptx), .start = found->name, .genome = genome};
    if (genome != NULL)
        EV_TRY(variant_genome(genome, "the genome of a winner", &read, err));
    ev_status status = shipped_set_launch(arena, found, read, &out->variant, err);
    ir_genome_free(read);
    EV_TRY(status);
    return shipped_make(t, &out->variant, &out->shipped, err);
}

static ev_status profile_one(stand *s, const candidate *who, const task_case *at,
                             report_account *out, ev_error *err) {
    fitness_profile_data data = {0};
    EV_TRY(fitness_profile(s->fitness, who, at, &data, err));
    const model_time *m = &data.timing.model;
    double busy = data.timing.ns - m->term_ns[MODEL_LAUNCH];
    out->ns = data.timing.ns;
    out->registers = m->occupancy.registers;
    out->warps = m->occupancy.warps_per_sm;
    out->most_warps = m->occupancy.max_warps;
    out->dram_bytes = m->dram_bytes;
    for (size_t i = 0; i < MODEL_TERM_COUNT; i++) {
        out->peak[i] = i != MODEL_LAUNCH && busy > 0 ? m->term_ns[i] / busy : 0;
        out->stall[i] = m->stall_share[i];
    }
    fitness_profile_free(&data);
    return EV_OK;
}

static ev_status profile_both(const task *t, const records_winner *w, const launch_of *baseline,
                              const launch_of *winner, const char *at, report_accounts *out,
                              ev_error *err) {
    stand s = {0};
    const task_case *found = task_find_case(t, at);
    if (found == NULL)
        return ev_fail(err, EV_BAD, "the task %s has no case '%s' any more", t->name, at);
    EV_TRY(stand_open(w->device, t, &baseline->shipped.candidate, &s, err));
    ev_status status = profile_one(&s, &baseline->shipped.candidate, found, &out->baseline, err);
    if (status == EV_OK)
        status = profile_one(&s, &winner->shipped.candidate, found, &out->winner, err);
    stand_close(&s);
    return status;
}

static ev_status account_of(const report_task *r, const char *at, report_accounts *out,
                            ev_error *err) {
    const records_winner *w = r->winner;
    const task *t = r->task;
    launch_of baseline = {0}, winner = {0};
    ev_arena *arena = ev_arena_new();
    if (arena == NULL)
        return ev_fail_memory(err, 1);
    ev_status status =
        make_launch(arena, t, t->starts[0].name, NULL, w->baseline_ptx, &baseline, err);
    if (status == EV_OK)
        status = make_launch(arena, t, w->start, w->genome, w->ptx, &winner, err);
    if (status == EV_OK)
        status = profile_both(t, w, &baseline, &winner, at, out, err);
    shipped_free(&baseline.shipped);
    shipped_free(&winner.shipped);
    ev_arena_free(arena);
    return status;
}

ev_status report_account_read(const report_task *r, report_accounts *out, ev_error *err) {
    ev_error why;
    *out = (report_accounts){0};
    (void)snprintf(out->at, sizeof out->at, "%s",
                   ev_json_text(json_array_get(r->rows->root, 0), "case", ""));
    ev_status status =
        r->task != NULL ? account_of(r, out->at, out, &why) : ev_fail(&why, EV_BAD, "%s", r->why);
    out->is_known = status == EV_OK;
    if (status == EV_OK || status == EV_BAD) {
        if (status == EV_BAD)
            (void)snprintf(out->why, sizeof out->why, "%s", why.text);
        return EV_OK;
    }
    *err = why;
    return status;
}
