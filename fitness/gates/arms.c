/* Arms: the part of gate 6 that refuses edits of what no case shows.
 *
 * A variant may force a condition whose other arm no case takes, or change a value that only such
 * an arm uses, and every comparison is right. The virtual machine runs a build of the unmodified
 * start that notes the arms it takes (ir/arms.c), on the cases that gate 6 ran: the task's small
 * ones of all splits, the drawn ones, and those with varied data on which the start does not trap.
 * An edit that touches an arm which was never taken is refused, unless the edit preserves the
 * meaning or the task assumes that the arm is not taken. Cases run until no edit is left to refuse.
 */
#include "fitness/device/device_group.h"
#include "fitness/gates/fitness_impl.h"

#include <stdlib.h>
#include <string.h>

#define FUEL 1e12 /* thread instructions; the start itself ended at each of these cases */

/* The build that notes arms, and what it noted so far. */
typedef struct noting {
    fit_trial trial;
    candidate who;
    uint8_t *taken, *asked; /* now, and when the judge was asked last */
    size_t bytes;
    ev_str why; /* an edit to refuse; empty: none */
} noting;

/* Whether candidates run at the case. */
static bool is_of_gate(const fit_case *c) {
    if (!fit_case_is_full(c) || c->inputs.aligned != 0 || c->inputs.approx != VM_APPROX_WORST)
        return false;
    if (c->inputs.begins)
        return c->is_legal;
    return c->inputs.variation == FIT_PLAIN ? c->baseline.done : c->varied.is_usable;
}

/* Makes the buffer for the flags, and gives its address to the module. */
static ev_status place_buffer(fitness *f, noting *n, ev_error *err) {
    if (f->arms_bytes < n->bytes) {
        if (device_group_count(f->d) > 0)
            device_group_spread(f->d, 1); /* all ranks note in rank 0's memory */
        EV_TRY(device_alloc(f->d, n->bytes, VM_BUFFER_INOUT, "arms", &f->arms, err));
        f->arms_bytes = n->bytes;
    }
    uint64_t address = device_address(f->d, f->arms);
    EV_TRY(device_write(f->d, f->arms, 0, n->taken, n->bytes, err));
    return device_fill(f->d, n->trial.kernel, n->who.arms_variable, &address, sizeof address, err);
}

static ev_status ask(noting *n, ev_error *err) {
    memcpy(n->asked, n->taken, n->bytes);
    ev_str_clear(&n->why);
    return n->who.missed(n->who.missed_context, n->taken, &n->why, err);
}

static ev_status is_shown(const fitness *f, const fit_case *c, const candidate *who, bool *out,
                          ev_error *err) {
    *out = is_of_gate(c);
    return *out ? fit_is_launchable(f, c, who, out, err) : EV_OK;
}

/* A start that does not run in this build notes what it took before the fault. */
static ev_status run_case(fitness *f, fit_case *c, noting *n, ev_error *err) {
    const fit_run_options options = {
        .all_blocks = true, .checks = VM_CHECK_NONE, .fuel = (uint64_t)FUEL};
    fit_run run;
    EV_TRY(fit_run_case(f, c, &n->trial, &options, &run, err));
    EV_TRY(fit_restore_after(f, c, &run, err));
    EV_TRY(device_read(f->d, f->arms, 0, n->taken, n->bytes, err));
    return memcmp(n->asked, n->taken, n->bytes) != 0 ? ask(n, err) : EV_OK;
}

static ev_status run_cases(fitness *f, noting *n, ev_error *err) {
    EV_TRY(place_buffer(f, n, err));
    EV_TRY(ask(n, err));
    for (size_t i = 0; i < f->case_count && n->why.length > 0; i++) {
        bool shown = false;
        EV_TRY(is_shown(f, f->cases[i], n->trial.who, &shown, err));
        if (shown)
            EV_TRY(run_case(f, f->cases[i], n, err));
    }
    return EV_OK;
}

static ev_status run_noting(fitness *f, noting *n, score *s, ev_error *err) {
    uint32_t registers = s->registers;
    n->taken = calloc(n->bytes + 1, 1);
    n->asked = calloc(n->bytes + 1, 1);
    if (n->taken == NULL || n->asked == NULL)
        return ev_fail_memory(err, n->bytes + 1);
    EV_TRY(fit_load(f, &n->who, &n->trial.kernel, s, err));
    s->registers = registers;
    if (s->stopped != GATE_NONE)
        return EV_OK;
    ev_status status = run_cases(f, n, err);
    device_unload(n->trial.kernel);
    if (status == EV_OK && n->why.length > 0)
        fit_stop(s, GATE_PROMOTED, NULL, "%s", ev_str_text(&n->why));
    return status;
}

ev_status fit_try_arms(fitness *f, const fit_trial *trial, score *s, ev_error *err) {
    noting n = {.who = *trial->who, .bytes = trial->who->arms_bytes, .why = EV_STR_EMPTY};
    if (n.who.arms_ptx == NULL || s->stopped != GATE_NONE)
        return EV_OK;
    n.who.ptx = n.who.arms_ptx;
    n.who.ptx_bytes = n.who.arms_ptx_bytes;
    n.trial.who = &n.who;
    ev_status status = run_noting(f, &n, s, err);
    free(n.taken);
    free(n.asked);
    ev_str_free(&n.why);
    return status;
}
