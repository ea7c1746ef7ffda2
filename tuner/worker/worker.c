/* Worker: `evoke worker --stdio`. Opens a task and does the coordinator's jobs on it, one at a
 * time.
 *
 * A candidate may kill a worker: LLVM aborts on IR that it cannot compile. So the worker reports
 * each stage that it enters, and the guard sends a `fatal` message. After a fault on a GPU, the
 * worker may be unable to go on; then it answers, announces that it leaves, and ends. A worker owns
 * no state that cannot be rebuilt. */
#include "tuner/worker/worker.h"

#include "base/child.h"
#include "base/proc.h"
#include "fitness/gates/floor.h"
#include "tuner/worker/guard.h"
#include "tuner/worker/variant.h"

#include <assert.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BASES_KEPT 48

ev_status worker_enter(worker *w, stage s, ev_error *err) {
    guard_set_stage(s);
    message m = {.kind = MESSAGE_STAGE, .stage = {s}};
    return message_send(&w->line, &m, err);
}

ev_status worker_ask(worker *w, const message *question, message_kind other, message *answer,
                     ev_error *err) {
    message got = {.kind = MESSAGE_COUNT};
    bool any = false;
    EV_TRY(message_send(&w->line, question, err));
    EV_TRY(message_receive(&w->line, &got, &any, err));
    if (any && (got.kind == MESSAGE_GO || got.kind == other)) {
        *answer = got;
        return EV_OK;
    }
    message_free(&got);
    return ev_fail(err, EV_INFRA, "the coordinator left in the middle of a job");
}

void worker_send_error(worker *w, const ev_error *why) {
    ev_str text = EV_STR_EMPTY;
    ev_error_whole(why, &text);
    message m = {.kind = MESSAGE_ERROR,
                 .error = {.status = why->status, .text = ev_str_text(&text)}};
    ev_error gone;
    ev_status status = message_send(&w->line, &m, &gone);
    (void)status;
    ev_str_free(&text);
}

/* ---- building ---- */

void worker_build_end(worker_build *b) {
    ir_build_free(b->build);
    ir_genome_free(b->genome);
    free(b->macros);
    free(b->origin);
    ev_arena_free(b->arena);
    *b = (worker_build){0};
}

static ev_status list_macros(worker_build *b, ev_error *err) {
    size_t count = ir_genome_macro_count(b->genome);
    b->macros = calloc(count + 1, sizeof *b->macros);
    if (!b->macros)
        return ev_fail_memory(err, (count + 1) * sizeof *b->macros);
    for (size_t i = 0; i < count; i++) {
        int64_t value = ir_genome_macro_value(b->genome, i);
        b->macros[i] = (expr_name){ir_genome_macro_name(b->genome, i),
                                   {.whole = value, .real = (double)value}};
    }
    b->candidate.macros = b->macros;
    b->candidate.macro_count = count;
    return EV_OK;
}

/* The structural edits of the genome, and its launch plan: that of its start, as these change it.
 */
static ev_status take_plan(worker_build *b, ev_error *err) {
    b->candidate.plan = b->candidate.start->plan;
    if (ir_genome_prefix_count(b->genome) == 0)
        return EV_OK;
    b->arena = ev_arena_new();
    if (!b->arena)
        return ev_fail_memory(err, 1);
    EV_TRY(variant_structure(b->genome, b->arena, &b->candidate, err));
    return ir_genome_plan(b->genome, b->candidate.start->plan, b->arena, &b->candidate.plan, err);
}

/* Sets the candidate's fields from its genome: start, macros, launch plan. */
static ev_status describe_candidate(worker *w, worker_build *b, ev_error *err) {
    const char *name = ir_genome_start(b->genome);
    b->candidate.start = task_find_start(w->t, name);
    if (!b->candidate.start)
        return ev_fail(err, EV_BAD, "the task %s has no start '%s'", w->t->name, name);
    EV_TRY(take_plan(b, err));
    b->candidate.is_unmodified = ir_genome_edit_count(b->genome) == 0;
    b->candidate.is_skeleton = ir_genome_is_skeleton(b->genome);
    b->origin = malloc(sizeof *b->origin);
    if (!b->origin)
        return ev_fail_memory(err, sizeof *b->origin);
    *b->origin = (worker_origin){w, b->genome};
    b->candidate.unmodified = worker_unmodified;
    b->candidate.divided = worker_divided;
    b->candidate.unmodified_context = b->origin;
    b->candidate.aligned =
        task_bits_of_main(w->t, b->candidate.start, ir_genome_aligned(b->genome));
    b->candidate.aligned_to = IR_ARGUMENT_ALIGN;
    return list_macros(b, err);
}

ev_status worker_build_begin(worker *w, const ir_genome *genome, worker_build *out, ev_error *err) {
    worker_build b = {.genome = genome};
    ev_status status = describe_candidate(w, &b, err);
    if (status == EV_OK)
        status = bases_get(w->bases, genome, &b.base, err);
    if (status == EV_OK)
        status = ir_build_new(b.base, genome, &b.build, err);
    if (status == EV_OK)
        b.candidate.may_alias =
            task_bits_of_main(w->t, b.candidate.start, ir_base_may_alias(b.base));
    if (status == EV_OK)
        *out = b;
    else
        worker_build_end(&b);
    return status;
}

ev_status worker_build_screened(worker *w, const ir_genome *genome, const char *ptx,
                                worker_build *out, ev_error *err) {
    worker_build b = {.genome = genome};
    ev_status status = describe_candidate(w, &b, err);
    if (status != EV_OK) {
        worker_build_end(&b);
        return status;
    }
    b.candidate.ptx = ptx;
    b.candidate.ptx_bytes = strlen(ptx);
    b.candidate.was_sketched = b.candidate.was_screened = true;
    *out = b;
    return EV_OK;
}

ev_status worker_build_stage(worker *w, worker_build *b, ir_stage at, ev_error *err) {
    double before = ev_clock_cpu();
    ev_status status = ir_build_run(b->build, at, err);
    w->seconds[PART_BUILD] += ev_clock_cpu() - before;
    if (status == EV_OK && at == IR_STAGE_EDIT)
        w->bold = ir_build_bold(b->build);
    if (status == EV_OK && at == IR_STAGE_EMIT)
        b->candidate.ptx = ir_build_ptx(b->build, &b->candidate.ptx_bytes);
    return status;
}

ev_status worker_build_sketch(worker *w, worker_build *b, candidate *out, ev_sha256 *sha,
                              bool *covered, ev_error *err) {
    double before = ev_clock_cpu();
    *out = b->candidate;
    out->is_sketch = true;
    out->is_unmodified = false;
    ev_status status = ir_build_sketch(b->build, covered, err);
    if (status == EV_OK && *covered) {
        out->ptx = ir_build_sketch_ptx(b->build, &out->ptx_bytes);
        *sha = ir_build_sketch_sha256(b->build);
    }
    w->seconds[PART_BUILD] += ev_clock_cpu() - before;
    return status;
}

ev_status worker_build_all(worker *w, worker_build *b, ev_error *err) {
    for (int s = 0; s < IR_STAGE_COUNT; s++)
        EV_TRY(worker_build_stage(w, b, (ir_stage)s, err));
    return EV_OK;
}

/* ---- the base store ---- */

static ev_status want(void *context, const char *key, json_t **value, ev_error *err) {
    worker *w = context;
    message question = {.kind = MESSAGE_WANT, .want = {key}}, answer = {0};
    EV_TRY(worker_ask(w, &question, MESSAGE_MADE, &answer, err));
    *value = answer.kind == MESSAGE_MADE ? json_incref(answer.made.value) : NULL;
    message_free(&answer);
    return EV_OK;
}

static ev_status made(void *context, const char *key, json_t *value, ev_error *err) {
    worker *w = context;
    if (!value)
        return ev_fail_memory(err, 0);
    message m = {.kind = MESSAGE_MADE, .made = {.key = key, .value = value}};
    ev_status status = message_send(&w->line, &m, err);
    json_decref(value);
    return status;
}

/* ---- opening a task ---- */

void worker_close_task(worker *w) {
    fitness_close(w->fitness);
    device_close(w->device);
    bases_free(w->bases);
    task_free(w->t);
    w->fitness = NULL;
    w->device = NULL;
    w->bases = NULL;
    w->t = NULL;
}

/* Counts the places of each edit in a start.
 */
static ev_status count_sites(worker *w, const ir_genome *genome, size_t sites[IR_EDIT_COUNT],
                             ev_error *err) {
    const ir_base *base = NULL;
    EV_TRY(bases_get(w->bases, genome, &base, err));
    ir_base_sites(base, sites);
    return bases_structure_sites(w->bases, genome, sites, err);
}

/* Counts the places of each edit in the base of each start. */
static ev_status describe_starts(worker *w, ready_message *ready, ev_arena *arena, ev_error *err) {
    size_t count = w->t->start_count;
    ready->starts = EV_NEW_ARRAY(arena, ready_start, count);
    if (!ready->starts)
        return ev_fail_memory(err, count * sizeof *ready->starts);
    for (size_t i = 0; i < count; i++) {
        ir_genome *genome = ir_genome_new(w->t->starts[i].name);
        if (!genome)
            return ev_fail_memory(err, 0);
        ready->starts[i].name = w->t->starts[i].name;
        ev_status status = count_sites(w, genome, ready->starts[i].sites, err);
        ir_genome_free(genome);
        EV_TRY(status);
    }
    ready->start_count = count;
    return EV_OK;
}

static ev_status set_baseline(worker *w, unsigned splits, ev_error *err) {
    ir_genome *genome = ir_genome_new(w->t->starts[0].name);
    if (!genome)
        return ev_fail_memory(err, 0);
    worker_build b;
    EV_TRY(worker_build_begin(w, genome, &b, err));
    score ignored = {0};
    ev_status status = worker_build_all(w, &b, err);
    if (status == EV_OK)
        status = fitness_set_baseline(w->fitness, &b.candidate, splits, &ignored, err);
    worker_build_end(&b);
    return status;
}

static void add_baseline(const worker *w, const char *name, ready_message *ready) {
    double ns = fitness_baseline_ns(w->fitness, name);
    if (ns > 0)
        ready->baseline[ready->baseline_count++] = (case_time){name, ns};
}

static ev_status describe_baseline(const worker *w, ready_message *ready, ev_arena *arena,
                                   ev_error *err) {
    size_t drawn = 0;
    while (fitness_drawn_timed(w->fitness, drawn))
        drawn++;
    ready->baseline = EV_NEW_ARRAY(arena, case_time, w->t->case_count + drawn);
    if (!ready->baseline)
        return ev_fail_memory(err, (w->t->case_count + drawn) * sizeof *ready->baseline);
    for (size_t i = 0; i < w->t->case_count; i++)
        add_baseline(w, w->t->cases[i].name, ready);
    for (size_t i = 0; i < drawn; i++)
        add_baseline(w, fitness_drawn_timed(w->fitness, i)->name, ready);
    return EV_OK;
}

/* Adds the floor of a timed case, if there is one. */
static ev_status describe_floor(const worker *w, const task_case *at, ready_message *ready,
                                ev_error *err) {
    case_floor floor;
    EV_TRY(fitness_floor(w->fitness, at, &floor, err));
    if (at->use == TASK_TIME && floor.ns > 0)
        ready->floors[ready->floor_count++] = (case_time){at->name, floor.ns};
    return EV_OK;
}

/* Those of the task's cases and of the drawn ones. */
static ev_status describe_floors(const worker *w, ready_message *ready, ev_arena *arena,
                                 ev_error *err) {
    size_t drawn = 0;
    while (fitness_drawn_timed(w->fitness, drawn))
        drawn++;
    ready->floors = EV_NEW_ARRAY(arena, case_time, w->t->case_count + drawn);
    if (!ready->floors)
        return ev_fail_memory(err, (w->t->case_count + drawn) * sizeof *ready->floors);
    for (size_t i = 0; i < w->t->case_count; i++)
        EV_TRY(describe_floor(w, &w->t->cases[i], ready, err));
    for (size_t i = 0; i < drawn; i++)
        EV_TRY(describe_floor(w, fitness_drawn_timed(w->fitness, i), ready, err));
    return EV_OK;
}

static ev_status describe_drawn(const worker *w, ready_message *ready, ev_arena *arena,
                                ev_error *err) {
    const task_case *at = NULL;
    size_t count = 0;
    for (size_t i = 0; fitness_drawn_case(w->fitness, i); i++)
        count++;
    for (size_t i = 0; fitness_drawn_timed(w->fitness, i); i++)
        count++;
    ready->drawn = EV_NEW_ARRAY(arena, const char *, count + 1);
    if (!ready->drawn)
        return ev_fail_memory(err, (count + 1) * sizeof *ready->drawn);
    for (size_t i = 0; (at = fitness_drawn_case(w->fitness, i)) != NULL; i++)
        ready->drawn[ready->drawn_count++] = at->name;
    for (size_t i = 0; (at = fitness_drawn_timed(w->fitness, i)) != NULL; i++)
        ready->drawn[ready->drawn_count++] = at->name;
    return EV_OK;
}

static ev_status open_all(worker *w, const open_message *m, message *ready, ev_error *err) {
    ready_message *r = &ready->ready;
    fitness_options options = {.jobs = m->jobs};
    w->watchdog = m->watchdog;
    w->role = m->role;
    if (m->holds_never) /* the coordinator may run on another machine */
        (void)setenv(DEVICE_NO_HOLD, "1", 1);
    EV_TRY(task_open(m->task, &w->t, err));
    EV_TRY(fitness_open_device(w->t, m->device, &w->device, err));
    const device_properties *is = device_properties_of(w->device);
    EV_TRY(bases_new(w->t, is->sm, BASES_KEPT, &w->bases, err));
    bases_use_shelf(w->bases, &(bases_shelf){.context = w, .want = want, .made = made});
    EV_TRY(fitness_open(w->t, w->device, &options, &w->fitness, err));
    EV_TRY(describe_starts(w, r, ready->arena, err));
    EV_TRY(set_baseline(w, m->splits, err));
    EV_TRY(worker_draw_cases(w, m->device, err));
    EV_TRY(describe_baseline(w, r, ready->arena, err));
    EV_TRY(describe_floors(w, r, ready->arena, err));
    EV_TRY(describe_drawn(w, r, ready->arena, err));
    memcpy(r->task_sha256, w->t->sha256.hex, sizeof r->task_sha256);
    r->gpu_name = is->name;
    r->driver = is->driver;
    r->sm = (unsigned)is->sm;
    r->modelled = is->modelled;
    return EV_OK;
}

ev_status worker_open(worker *w, const open_message *m, ev_error *err) {
    worker_close_task(w);
    EV_TRY(worker_enter(w, STAGE_OPEN, err));
    message ready = {.kind = MESSAGE_READY, .arena = ev_arena_new()};
    ev_error why = {0};
    ev_status status = ready.arena ? open_all(w, m, &ready, &why) : ev_fail_memory(&why, 0);
    guard_set_stage(STAGE_IDLE);
    if (status == EV_OK) {
        status = message_send(&w->line, &ready, err);
    } else {
        worker_close_task(w);
        worker_send_error(w, &why);
        status = EV_OK;
    }
    message_free(&ready);
    return status;
}

/* ---- the loop ---- */

static ev_status send_hello(worker *w, ev_error *err) {
    message m = {.kind = MESSAGE_HELLO,
                 .hello = {PROTOCOL_VERSION, EVOKE_VERSION, ir_llvm_version()}};
    return message_send(&w->line, &m, err);
}

static ev_status answer(worker *w, const message *m, ev_error *err) {
    switch (m->kind) {
    case MESSAGE_HELLO:
        return send_hello(w, err);
    case MESSAGE_OPEN:
        return worker_open(w, &m->open, err);
    case MESSAGE_CHILD:
    case MESSAGE_SCORE:
    case MESSAGE_TIME:
    case MESSAGE_PROMOTE:
    case MESSAGE_REPLAY:
    case MESSAGE_CHECK:
        if (w->t)
            return worker_job(w, m, err);
        return ev_fail(err, EV_BAD, "the coordinator sent '%s' before 'open'",
                       message_name(m->kind));
    default:
        return ev_fail(err, EV_BAD, "the coordinator sent '%s', which is none of its messages",
                       message_name(m->kind));
    }
}

static ev_status serve(worker *w, ev_error *err) {
    while (!w->leaves) {
        message m = {0};
        bool got = false;
        ev_status status = message_receive(&w->line, &m, &got, err);
        if (status != EV_OK)
            worker_send_error(w, err); /* before this worker ends */
        if (status != EV_OK || !got)
            return status;
        status = answer(w, &m, err);
        message_free(&m);
        EV_TRY(status);
    }
    return EV_OK;
}

/* Keeps the output of libraries out of the messages: stdout becomes stderr, and messages go to a
 * private descriptor. */
static int keep_for_messages(int out) {
    if (out != STDOUT_FILENO)
        return out;
    int kept = fcntl(out, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept >= 0)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    return kept;
}

/* Keeps freed memory in the process. LLVM allocates and frees some megabytes for each variant,
 * which the kernel would take back and clear each time. */
static void keep_memory(void) {
    (void)mallopt(M_TRIM_THRESHOLD, 256 << 20);
    (void)mallopt(M_MMAP_THRESHOLD, 64 << 20);
    (void)mallopt(M_TOP_PAD, 4 << 20);
}

ev_status tune_worker(int in, int out, ev_error *err) {
    keep_memory();
    int messages = keep_for_messages(out);
    if (messages < 0)
        return ev_fail_errno(err, "cannot keep", "stdout");
    worker w = {.line = {.in = in, .out = messages}};
    struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
    (void)sigaction(SIGPIPE, &ignore, &before);
    ev_status status = guard_begin(messages, err);
    if (status == EV_OK) {
        status = serve(&w, err);
        guard_end();
    }
    (void)sigaction(SIGPIPE, &before, NULL);
    worker_close_task(&w);
    channel_free(&w.line);
    if (messages != out)
        (void)close(messages);
    return status;
}
