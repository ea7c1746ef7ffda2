/* The inside of a worker, for worker*.c only: the open task and the jobs done on it. */
#ifndef TUNER_WORKER_WORKER_H
#define TUNER_WORKER_WORKER_H

#include "fitness/gates/fitness.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/protocol.h"

typedef struct worker {
    channel line;
    worker_role role; /* in the open task */
    task *t;
    device *device;
    fitness *fitness;
    bases *bases;
    double watchdog; /* CPU seconds of an evaluation */
    bool leaves;     /* the device is spent, and the coordinator was told: another worker is due */
    double seconds[PART_COUNT]; /* since the last job ended */
} worker;

/* Says which stage begins: to the coordinator and to the guard. */
ev_status worker_enter(worker *w, stage s, ev_error *err) EV_CHECKED;

/* Sends `question` and waits: the answer is `go` or of kind `other`, the caller's to free. */
ev_status worker_ask(worker *w, const message *question, message_kind other, message *answer,
                     ev_error *err) EV_CHECKED;
/* Tells the coordinator why a message, an opening or a job cannot be served. A coordinator that is
 * gone shows at the next message. */
void worker_send_error(worker *w, const ev_error *why);

void worker_close_task(worker *w);
/* One message each; a failure that the coordinator should hear of has been sent already, and what
 * is returned ends the worker. */
ev_status worker_open(worker *w, const open_message *m, ev_error *err) EV_CHECKED;
ev_status worker_job(worker *w, const message *m, ev_error *err) EV_CHECKED;

/* `evoke worker --stdio`: serves a coordinator over stdin and stdout until stdin closes. */
ev_status tune_worker(int in, int out, ev_error *err) EV_CHECKED;

/* worker_heat.c: the weights of places in a genome's base (ir_mutate), made on the first call and
 * borrowed as the base is; *out is NULL where it cannot be profiled. `context`: the worker. */
ev_status worker_heat(void *context, const ir_genome *genome, const double **out,
                      ev_error *err) EV_CHECKED;

/* worker_starts.c: has fitness draw its cases (fitness_drawn_case). */
ev_status worker_draw_cases(worker *w, const char *device_id, ev_error *err) EV_CHECKED;

/* A genome made real, stage by stage. */
typedef struct worker_build {
    const ir_genome *genome; /* a reference */
    const ir_base *base;     /* of the worker's cache: until its next use */
    ir_build *build;
    expr_name *macros;
    candidate candidate; /* after EMIT; borrows from the rest */
} worker_build;

/* Takes the reference. */
ev_status worker_build_begin(worker *w, const ir_genome *genome, worker_build *out,
                             ev_error *err) EV_CHECKED;
ev_status worker_build_stage(worker *w, worker_build *b, ir_stage at, ev_error *err) EV_CHECKED;
/* After OPTIMISE: a candidate of code made in haste (ir_build_sketch), borrowed from the build. */
ev_status worker_build_sketch(worker *w, worker_build *b, candidate *out, ev_sha256 *sha,
                              bool *covered, ev_error *err) EV_CHECKED;
/* Without a base or a build: a candidate of PTX that a screener built of `genome`. Takes the
 * reference; borrows `ptx`. */
ev_status worker_build_screened(const worker *w, const ir_genome *genome, const char *ptx,
                                worker_build *out, ev_error *err) EV_CHECKED;
/* All stages that are left. */
ev_status worker_build_all(worker *w, worker_build *b, ev_error *err) EV_CHECKED;
void worker_build_end(worker_build *b);

/* worker_starts.c: a scored candidate held against its start, which is built where that is not
 * known yet (fitness_hold_writes). */
ev_status worker_hold_writes(worker *w, const worker_build *b, score *s, ev_error *err) EV_CHECKED;

#endif
