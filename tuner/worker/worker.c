/* Worker: `evoke worker --stdio`. Opens a task and does the coordinator's jobs on it, one at a
 * time.
 *
 * A worker may die of a candidate: LLVM aborts on what it cannot compile. So it says which stage it
 * enters, and the guard says the last word. After a fault on a GPU it may be unable to go on: it
 * answers, says that it leaves, and ends. It owns no state that matters. */
#include "tuner/worker/worker.h"

#include "base/json.h"
#include "base/proc.h"
#include "tuner/worker/guard.h"

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
    json_t *message = message_new(MESSAGE_STAGE);
    if (message)
        (void)json_object_set_new(message, "stage", json_string(stage_name(s)));
    return channel_send(&w->line, message, err);
}

ev_status worker_ask(worker *w, json_t *question, message_kind other, json_t **answer,
                     ev_error *err) {
    EV_TRY(channel_send(&w->line, question, err));
    EV_TRY(channel_receive(&w->line, answer, err));
    message_kind kind = *answer ? message_kind_of(*answer) : MESSAGE_COUNT;
    if (kind == MESSAGE_GO || kind == other)
        return EV_OK;
    json_decref(*answer);
    *answer = NULL;
    return ev_fail(err, EV_INFRA, "the coordinator left in the middle of a job");
}

/* ---- building ---- */

void worker_build_end(worker_build *b) {
    ir_build_free(b->build);
    ir_genome_free(b->genome);
    free(b->macros);
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

/* What a candidate has of its genome: start, macros, launch plan. */
static ev_status describe_candidate(const worker *w, worker_build *b, ev_error *err) {
    const char *name = ir_genome_start(b->genome);
    b->candidate.start = task_find_start(w->t, name);
    if (!b->candidate.start)
        return ev_fail(err, EV_BAD, "the task %s has no start '%s'", w->t->name, name);
    b->candidate.plan = b->candidate.start->plan;
    return list_macros(b, err);
}

ev_status worker_build_begin(worker *w, ir_genome *genome, worker_build *out, ev_error *err) {
    worker_build b = {.genome = genome};
    ev_status status = describe_candidate(w, &b, err);
    if (status == EV_OK)
        status = bases_get(w->bases, genome, &b.base, err);
    if (status == EV_OK)
        status = ir_build_new(b.base, genome, &b.build, err);
    if (status == EV_OK)
        *out = b;
    else
        worker_build_end(&b);
    return status;
}

ev_status worker_build_screened(const worker *w, ir_genome *genome, const char *ptx,
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
    if (status == EV_OK && at == IR_STAGE_EMIT)
        b->candidate.ptx = ir_build_ptx(b->build, &b->candidate.ptx_bytes);
    return status;
}

ev_status worker_build_sketch(worker *w, worker_build *b, candidate *out, ev_sha256 *sha,
                              bool *covered, ev_error *err) {
    double before = ev_clock_cpu();
    *out = b->candidate;
    out->is_sketch = true;
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

/* ---- what other workers made ---- */

static ev_status want(void *context, const char *key, json_t **value, ev_error *err) {
    worker *w = context;
    json_t *message = message_new(MESSAGE_WANT), *answer = NULL;
    if (message)
        (void)json_object_set_new(message, "key", json_string(key));
    EV_TRY(worker_ask(w, message, MESSAGE_MADE, &answer, err));
    *value = json_incref(json_object_get(answer, "value")); /* `go` has none */
    json_decref(answer);
    return EV_OK;
}

static ev_status made(void *context, const char *key, json_t *value, ev_error *err) {
    worker *w = context;
    json_t *message = value ? message_new(MESSAGE_MADE) : NULL;
    if (!message) {
        json_decref(value);
        return ev_fail_memory(err, 0);
    }
    (void)json_object_set_new(message, "key", json_string(key));
    (void)json_object_set_new(message, "value", value);
    return channel_send(&w->line, message, err);
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

/* What the coordinator needs of each start: how many places each edit has in it. */
static ev_status describe_starts(worker *w, json_t *ready, ev_error *err) {
    json_t *starts = json_array();
    for (size_t i = 0; i < w->t->start_count; i++) {
        ir_genome *genome = ir_genome_new(w->t->starts[i].name);
        const ir_base *base = NULL;
        ev_status status = genome ? bases_get(w->bases, genome, &base, err) : EV_INFRA;
        ir_genome_free(genome);
        if (status != EV_OK) {
            json_decref(starts);
            return status;
        }
        size_t sites[IR_EDIT_COUNT];
        ir_base_sites(base, sites);
        json_t *counts = json_array();
        for (size_t kind = 0; kind < IR_EDIT_COUNT; kind++)
            (void)json_array_append_new(counts, json_integer((json_int_t)sites[kind]));
        (void)json_array_append_new(
            starts, json_pack("{s:s,s:o}", "name", w->t->starts[i].name, "sites", counts));
    }
    return json_object_set_new(ready, "starts", starts) == 0 ? EV_OK : ev_fail_memory(err, 0);
}

static ev_status set_baseline(worker *w, unsigned splits, json_t *ready, ev_error *err) {
    ir_genome *genome = ir_genome_new(w->t->starts[0].name);
    if (!genome)
        return ev_fail_memory(err, 0);
    worker_build b;
    EV_TRY(worker_build_begin(w, genome, &b, err));
    score s = {0};
    ev_status status = worker_build_all(w, &b, err);
    if (status == EV_OK)
        status = fitness_set_baseline(w->fitness, &b.candidate, splits, &s, err);
    worker_build_end(&b);
    EV_TRY(status);
    json_t *times = json_object();
    for (size_t i = 0; i < w->t->case_count; i++) {
        double ns = fitness_baseline_ns(w->fitness, w->t->cases[i].name);
        if (ns > 0)
            (void)json_object_set_new(times, w->t->cases[i].name, json_real(ns));
    }
    bool ok = json_object_set_new(ready, "baseline", score_to_json(&s)) == 0;
    ok = json_object_set_new(ready, "baseline_ns", times) == 0 && ok;
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

static ev_status open_all(worker *w, const json_t *message, json_t *ready, ev_error *err) {
    fitness_options options = {.fresh = (uint32_t)ev_json_integer(message, "fresh", 0),
                               .jobs = (uint32_t)ev_json_integer(message, "jobs", 1)};
    w->watchdog = ev_json_number(message, "watchdog", 20);
    if (!worker_role_find(ev_json_text(message, "role", "?"), &w->role))
        return ev_fail(err, EV_BAD, "the coordinator named no role for the worker");
    if (json_is_true(json_object_get(message, "no_hold"))) /* it may be on another machine */
        (void)setenv(DEVICE_NO_HOLD, "1", 1);
    EV_TRY(task_open(ev_json_text(message, "task", ""), &w->t, err));
    EV_TRY(device_open(ev_json_text(message, "device", ""), &w->device, err));
    const device_properties *is = device_properties_of(w->device);
    EV_TRY(bases_new(w->t, is->sm, BASES_KEPT, &w->bases, err));
    bases_use_shelf(w->bases, &(bases_shelf){.context = w, .want = want, .made = made});
    EV_TRY(fitness_open(w->t, w->device, &options, &w->fitness, err));
    EV_TRY(describe_starts(w, ready, err));
    EV_TRY(set_baseline(w, (unsigned)ev_json_integer(message, "splits", 1), ready, err));
    EV_TRY(worker_draw_cases(w, ev_json_text(message, "device", ""), ready, err));
    bool ok = json_object_set_new(ready, "task_sha256", json_string(w->t->sha256.hex)) == 0;
    ok = json_object_set_new(ready, "gpu_name", json_string(is->name)) == 0 && ok;
    ok = json_object_set_new(ready, "sm", json_integer(is->sm)) == 0 && ok;
    ok = json_object_set_new(ready, "modelled", json_boolean(is->modelled)) == 0 && ok;
    return ok ? EV_OK : ev_fail_memory(err, 0);
}

static ev_status send_error(worker *w, const ev_error *why, ev_error *err) {
    json_t *message = message_new(MESSAGE_ERROR);
    if (message) {
        (void)json_object_set_new(message, "status",
                                  json_string(why->status == EV_BAD ? "bad" : "infra"));
        (void)json_object_set_new(message, "text", json_string(why->text));
    }
    return channel_send(&w->line, message, err);
}

ev_status worker_open(worker *w, const json_t *message, ev_error *err) {
    worker_close_task(w);
    EV_TRY(worker_enter(w, STAGE_OPEN, err));
    json_t *ready = message_new(MESSAGE_READY);
    ev_error why = {.status = EV_INFRA};
    ev_status status = ready ? open_all(w, message, ready, &why) : EV_INFRA;
    guard_set_stage(STAGE_IDLE);
    if (status == EV_OK)
        return channel_send(&w->line, ready, err);
    json_decref(ready);
    worker_close_task(w);
    why.status = status;
    return send_error(w, &why, err);
}

/* ---- the loop ---- */

static json_t *hello(void) {
    json_t *message = message_new(MESSAGE_HELLO);
    if (message) {
        (void)json_object_set_new(message, "protocol", json_integer(PROTOCOL_VERSION));
        (void)json_object_set_new(message, "evoke", json_string(EVOKE_VERSION));
        (void)json_object_set_new(message, "llvm", json_string(ir_llvm_version()));
    }
    return message;
}

static ev_status answer(worker *w, const json_t *message, ev_error *err) {
    message_kind kind = message_kind_of(message);
    switch (kind) {
    case MESSAGE_HELLO:
        return channel_send(&w->line, hello(), err);
    case MESSAGE_OPEN:
        return worker_open(w, message, err);
    case MESSAGE_CHILD:
    case MESSAGE_SCORE:
    case MESSAGE_TIME:
    case MESSAGE_PROMOTE:
    case MESSAGE_REPLAY:
    case MESSAGE_CHECK:
        if (w->t)
            return worker_job(w, kind, message, err);
        return ev_fail(err, EV_BAD, "the coordinator sent '%s' before 'open'", message_name(kind));
    default:
        return ev_fail(err, EV_BAD, "the coordinator sent '%s', which is none of its messages",
                       ev_json_text(message, "type", "(no type)"));
    }
}

static ev_status serve(worker *w, ev_error *err) {
    while (!w->leaves) {
        json_t *message = NULL;
        EV_TRY(channel_receive(&w->line, &message, err));
        if (!message)
            return EV_OK;
        ev_status status = answer(w, message, err);
        json_decref(message);
        EV_TRY(status);
    }
    return EV_OK;
}

/* What libraries print must not end up among the messages: stdout becomes stderr, and messages go
 * to a descriptor that only the worker knows. */
static int keep_for_messages(int out) {
    if (out != STDOUT_FILENO)
        return out;
    int kept = fcntl(out, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (kept >= 0)
        (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    return kept;
}

/* LLVM asks for and gives back some megabytes for each variant: what the kernel would take and
 * clear each time stays here. */
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
