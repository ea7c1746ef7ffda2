/* Trials: parent and child share a page of plain values. The child writes the page as it goes, so
 * that its findings survive its death. */
#include "tuner/run/qualify_trial.h"

#include "base/proc.h"
#include "base/str.h"
#include "tuner/worker/isolate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHILD_SECONDS 3600
#define ATTEMPTS 2

/* Who is to blame if the child dies. */
typedef enum phase { PHASE_MACHINE, PHASE_VARIANT, PHASE_START } phase;

typedef struct board {
    phase at;
    size_t at_case;
    trial_result result;
} board;

typedef struct child {
    const trial_job *job;
    board *board;
} child;

static void *share(size_t bytes, ev_error *err) {
    void *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (room != MAP_FAILED)
        return room;
    (void)ev_fail_memory(err, bytes);
    return NULL;
}

/* ---- in the child: beside the baseline ---- */

static bool is_over(const trial_job *j) {
    return j->until > 0 && ev_clock_now() > j->until;
}

static void set_reason(trial_row *row, const char *reason) {
    (void)snprintf(row->reason, sizeof row->reason, "%.*s", QUALIFY_REASON_BYTES - 1, reason);
}

static void fill_row(const fitness_verdict *v, const task_case *at, trial_row *row) {
    row->stopped = v->stopped;
    row->error = v->error;
    set_reason(row, v->reason);
    if (v->stopped != GATE_NONE || at->use != TASK_TIME || v->ns <= 0)
        return;
    row->variant = (bundle_time){v->ns, v->low_ns, v->high_ns};
    row->baseline = (bundle_time){v->baseline_ns, v->baseline_low_ns, v->baseline_high_ns};
}

/* Tries the variant at a case where the baseline runs. EV_BAD: the launch does not fit. A failure
 * of the machine is the variant's doing where the device can no longer be used. */
static ev_status try_variant(const child *c, const stand *s, const task_case *at, trial_row *row,
                             ev_error *err) {
    fitness_verdict *v = calloc(1, sizeof *v);
    ev_error why = {.status = EV_OK};
    if (v == NULL)
        return ev_fail_memory(err, sizeof *v);
    c->board->at = PHASE_VARIANT;
    ev_status status = fitness_check(s->fitness, c->job->variant, at, v, &why);
    if (status == EV_OK) {
        fill_row(v, at, row);
    } else if (status == EV_BAD) {
        row->stopped = GATE_EMIT;
        set_reason(row, why.text);
    } else {
        *err = why;
    }
    free(v);
    if (status != EV_INFRA || !device_is_spent(s->device))
        c->board->at = PHASE_MACHINE;
    if (status == EV_INFRA)
        return status;
    row->done = true;
    return EV_OK;
}

static ev_status try_case(const child *c, const stand *s, size_t i, ev_error *err) {
    trial_row *row = &c->board->result.rows[i];
    ev_error why = {.status = EV_OK};
    c->board->at_case = i;
    ev_status status = fitness_check_baseline(s->fitness, c->job->cases[i], &why);
    if (status == EV_OK)
        return try_variant(c, s, c->job->cases[i], row, err);
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    set_reason(row, why.text);
    row->unjudged = row->done = true;
    return EV_OK;
}

static bool is_failed(const trial_row *row) {
    return row->unjudged || row->stopped != GATE_NONE;
}

static ev_status note_resources(const child *c, device *d, ev_error *err) {
    const candidate *v = c->job->variant;
    device_kernel *kernel = NULL;
    EV_TRY(device_load_plan(d, v->ptx, v->ptx_bytes, v->plan, &kernel, err));
    c->board->result.resources = device_kernel_resources(kernel);
    device_unload(kernel);
    return EV_OK;
}

/* *on: every case passed, and there is time left. */
static ev_status try_cases(const child *c, const stand *s, bool *on, ev_error *err) {
    for (size_t i = 0; i < c->job->count; i++) {
        if (is_over(c->job))
            return EV_OK;
        EV_TRY(try_case(c, s, i, err));
        if (is_failed(&c->board->result.rows[i])) {
            c->board->result.complete = true;
            return EV_OK;
        }
    }
    *on = true;
    return note_resources(c, s->device, err);
}

/* Runs the baseline. A baseline that fails before the first case counts as failed at that case. */
static ev_status stand_on_baseline(const child *c, stand *s, ev_error *err) {
    trial_row *first = &c->board->result.rows[0];
    ev_error why = {.status = EV_OK};
    ev_status status = stand_open(c->job->device_id, c->job->t, c->job->baseline, s, &why);
    if (status == EV_INFRA)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    if (status == EV_BAD) {
        set_reason(first, why.text);
        first->unjudged = first->done = true;
        c->board->result.complete = true;
    }
    return EV_OK;
}

static ev_status against_baseline(const child *c, bool *on, ev_error *err) {
    stand s = {0};
    EV_TRY(stand_on_baseline(c, &s, err));
    ev_status status = s.fitness != NULL ? try_cases(c, &s, on, err) : EV_OK;
    stand_close(&s);
    return status;
}

/* ---- in the child: beside a start ---- */

/* Keeps the rival that is the fastest beside the variant: of the starts, and of the references. */
static void keep_rival(const fitness_verdict *v, const trial_rival *rival, trial_row *row) {
    const char **name = rival->is_reference ? &row->reference_name : &row->start_name;
    bundle_time *beside = rival->is_reference ? &row->beside_reference : &row->beside_start;
    bundle_time *own = rival->is_reference ? &row->reference : &row->start;
    if (*name != NULL && v->baseline_ns / v->ns >= own->ns / beside->ns)
        return;
    *name = rival->name;
    *beside = (bundle_time){v->ns, v->low_ns, v->high_ns};
    *own = (bundle_time){v->baseline_ns, v->baseline_low_ns, v->baseline_high_ns};
}

/* Races a start at one case. A start that fails is no rival. */
static ev_status race_case(const child *c, fitness *f, const trial_rival *rival, size_t i,
                           ev_error *err) {
    fitness_verdict *v = calloc(1, sizeof *v);
    if (v == NULL)
        return ev_fail_memory(err, sizeof *v);
    ev_status status = fitness_check_baseline(f, c->job->cases[i], err);
    if (status == EV_OK)
        status = fitness_check(f, c->job->variant, c->job->cases[i], v, err);
    if (status == EV_OK && v->ok && v->ns > 0 && v->baseline_ns > 0)
        keep_rival(v, rival, &c->board->result.rows[i]);
    free(v);
    return status == EV_BAD ? EV_OK : status;
}

/* Whether the variant is the start itself, which is no rival. */
static bool is_same(const candidate *a, const candidate *b) {
    bool same = a->start == b->start && a->ptx_bytes == b->ptx_bytes &&
                memcmp(a->ptx, b->ptx, a->ptx_bytes) == 0;
    for (size_t i = 0; i < a->macro_count && same; i++) {
        for (size_t k = 0; k < a->start->macro_count; k++) {
            const task_macro *m = &a->start->macros[k];
            if (strcmp(m->name, a->macros[i].name) == 0)
                same = same && m->otherwise == a->macros[i].value.whole;
        }
    }
    return same;
}

static ev_status race(const child *c, const trial_rival *rival, bool *over, ev_error *err) {
    stand s = {0};
    ev_status status = stand_open(c->job->device_id, c->job->t, &rival->candidate, &s, err);
    for (size_t i = 0; i < c->job->count && status == EV_OK && !*over; i++) {
        *over = is_over(c->job);
        if (!*over && c->job->cases[i]->use == TASK_TIME)
            status = race_case(c, s.fitness, rival, i, err);
    }
    stand_close(&s);
    return status == EV_BAD ? EV_OK : status;
}

static ev_status try_all(void *context, ev_str *out, ev_error *err) {
    const child *c = context;
    bool on = false, over = false;
    (void)out;
    EV_TRY(against_baseline(c, &on, err));
    c->board->at = PHASE_START;
    for (size_t i = 0; i < c->job->rival_count && on && !over; i++) {
        if (!is_same(c->job->variant, &c->job->rivals[i].candidate))
            EV_TRY(race(c, &c->job->rivals[i], &over, err));
    }
    c->board->result.complete = c->board->result.complete || (on && !over);
    return EV_OK;
}

/* ---- in the parent ---- */

static bool has_failed(const trial_result *r, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (r->rows[i].done && is_failed(&r->rows[i]))
            return true;
    }
    return false;
}

/* The variant brought the process down each time. */
static void blame(board *shared, const char *how) {
    trial_row *row = &shared->result.rows[shared->at_case];
    row->stopped = GATE_SAFE;
    row->done = shared->result.complete = true;
    (void)snprintf(row->reason, sizeof row->reason,
                   "its process was lost, %d times of %d, while the baseline runs: %.300s",
                   ATTEMPTS, ATTEMPTS, how);
}

/* Runs the child once. A failure on the page stands, however the child ended. A start that brings
 * the child down leaves the earlier findings. */
static ev_status run_once(const child *c, size_t bytes, ev_error *err) {
    ev_str none = EV_STR_EMPTY;
    memset(c->board, 0, bytes);
    for (size_t i = 0; i < c->job->count; i++)
        c->board->result.rows[i].stopped = GATE_NONE;
    ev_status status = isolate_run(try_all, (void *)(uintptr_t)c, CHILD_SECONDS, &none, err);
    ev_str_free(&none);
    if (status != EV_OK &&
        (has_failed(&c->board->result, c->job->count) || c->board->at == PHASE_START)) {
        c->board->result.complete = true;
        return EV_OK;
    }
    return status;
}

static ev_status run_attempts(const child *c, size_t bytes, ev_error *err) {
    ev_error why = {.status = EV_OK};
    ev_status status = EV_INFRA;
    for (int i = 0; i < ATTEMPTS && status != EV_OK; i++)
        status = run_once(c, bytes, &why);
    if (status == EV_OK)
        return EV_OK;
    if (c->board->at != PHASE_VARIANT)
        return ev_fail(err, EV_INFRA, "%s", why.text);
    blame(c->board, why.text);
    return EV_OK;
}

ev_status trial_run(const trial_job *job, trial_result **out, ev_error *err) {
    size_t rows = job->count * sizeof(trial_row), bytes = sizeof(board) + rows;
    board *shared = share(bytes, err);
    trial_result *kept = malloc(sizeof *kept + rows);
    ev_status status = shared == NULL || kept == NULL ? ev_fail_memory(err, bytes) : EV_OK;
    if (status == EV_OK)
        status = run_attempts(&(child){job, shared}, bytes, err);
    if (status == EV_OK) {
        memcpy(kept, &shared->result, sizeof *kept + rows);
        *out = kept;
    } else {
        free(kept);
    }
    if (shared != NULL)
        (void)munmap(shared, bytes);
    return status;
}

/* ---- the device ---- */

typedef struct look {
    const char *device_id;
    trial_gpu *gpu;
} look;

static ev_status note_driver_names(const device *d, trial_gpu *out, ev_error *err) {
    gpu *g = NULL;
    EV_TRY(shipped_gpu_model(d, &g, err));
    for (size_t i = 0; g != NULL && i < g->driver_name_count && i < TRIAL_DRIVER_NAMES; i++)
        (void)snprintf(out->driver_names[out->driver_name_count++], sizeof out->driver_names[0],
                       "%s", g->driver_names[i]);
    gpu_free(g);
    return EV_OK;
}

static ev_status look_work(void *context, ev_str *out, ev_error *err) {
    const look *l = context;
    device *d = NULL;
    (void)out;
    EV_TRY(device_open(l->device_id, &d, err));
    const device_properties *p = device_properties_of(d);
    l->gpu->sm = p->sm;
    l->gpu->modelled = p->modelled;
    (void)snprintf(l->gpu->name, sizeof l->gpu->name, "%s", p->name);
    (void)snprintf(l->gpu->driver, sizeof l->gpu->driver, "%s", p->driver);
    ev_status status = shipped_gpu_id(d, l->gpu->id, err);
    if (status == EV_OK)
        status = shipped_gpu_sms(d, &l->gpu->sms, err);
    if (status == EV_OK)
        status = note_driver_names(d, l->gpu, err);
    device_close(d);
    return status;
}

ev_status trial_look(const char *device_id, trial_gpu *out, ev_error *err) {
    trial_gpu *shared = share(sizeof *shared, err);
    if (shared == NULL)
        return EV_INFRA;
    ev_str none = EV_STR_EMPTY;
    ev_status status =
        isolate_run(look_work, &(look){device_id, shared}, CHILD_SECONDS, &none, err);
    ev_str_free(&none);
    if (status == EV_OK)
        *out = *shared;
    (void)munmap(shared, sizeof *shared);
    return status;
}
