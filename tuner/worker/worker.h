/* The inside of a worker, for worker*.c only: the open task and the jobs on it. Functions return
 * EV_INFRA if the connection to the coordinator or the machine fails. */
#ifndef TUNER_WORKER_WORKER_H
#define TUNER_WORKER_WORKER_H

#include "fitness/gates/fitness.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/worker/bases.h"
#include "tuner/worker/protocol.h"

typedef struct worker {
    channel line;
    worker_role role; /* role in the open task */
    task *t;
    device *device;
    fitness *fitness;
    bases *bases;
    double watchdog; /* limit of an evaluation in CPU seconds */
    bool leaves;     /* the device is spent and the coordinator knows: a new worker will take
                        over */
    double seconds[PART_COUNT]; /* CPU seconds by part since the last job ended */
    size_t bold;                /* number of bold edits of the genome that this job built */
} worker;

/* Enters a stage: tells the coordinator and the guard. */
ev_status worker_enter(worker *w, stage s, ev_error *err) EV_CHECKED;

/* Sends `question` and waits for the answer, which is `go` or of kind `other`. The caller frees the
 * answer. */
ev_status worker_ask(worker *w, const message *question, message_kind other, message *answer,
                     ev_error *err) EV_CHECKED;
/* Tells the coordinator why a message, an opening or a job failed. A lost connection shows at the
 * next message. */
void worker_send_error(worker *w, const ev_error *why);

void worker_close_task(worker *w);
/* Each serves one message. Failures that concern the coordinator are sent to it and return EV_OK; a
 * returned failure ends the worker. */
ev_status worker_open(worker *w, const open_message *m, ev_error *err) EV_CHECKED;
ev_status worker_job(worker *w, const message *m, ev_error *err) EV_CHECKED;

/* `evoke worker --stdio`: serves a coordinator over two descriptors until `in` is closed. */
ev_status tune_worker(int in, int out, ev_error *err) EV_CHECKED;

/* worker_heat.c: the site weights of a genome's base (ir_mutate), made on the first call. *out is
 * borrowed as long as the base is; NULL: the base cannot be profiled. `context`: the worker. */
ev_status worker_heat(void *context, const ir_genome *genome, const double **out,
                      ev_error *err) EV_CHECKED;

/* worker_starts.c: lets fitness draw its cases (fitness_drawn_case). */
ev_status worker_draw_cases(worker *w, const char *device_id, ev_error *err) EV_CHECKED;

/* Whose unmodified start it is that a candidate asks for (candidate.unmodified). */
typedef struct worker_origin {
    worker *w;
    const ir_genome *genome; /* borrowed */
} worker_origin;

/* worker_starts.c: candidate.unmodified and candidate.divided; `context`: a worker_origin. */
ev_status worker_unmodified(void *context, ev_str *ptx, ev_error *err) EV_CHECKED;
ev_status worker_divided(void *context, ev_str *ptx, ev_error *err) EV_CHECKED;

/* The build of a genome, stage by stage. */
typedef struct worker_build {
    const ir_genome *genome; /* a reference */
    const ir_base *base;     /* borrowed from the worker's bases until their next use */
    ir_build *build;
    expr_name *macros;
    ev_arena *arena;       /* holds the launch plan, if structural edits changed it; else NULL */
    candidate candidate;   /* valid after EMIT; borrows from the other members */
    worker_origin *origin; /* of candidate.unmodified_context */
} worker_build;

/* Begins a build. Takes over the reference to `genome`. */
ev_status worker_build_begin(worker *w, const ir_genome *genome, worker_build *out,
                             ev_error *err) EV_CHECKED;
ev_status worker_build_stage(worker *w, worker_build *b, ir_stage at, ev_error *err) EV_CHECKED;
/* After OPTIMISE: makes a candidate of fast code (ir_build_sketch), borrowed from the build. */
ev_status worker_build_sketch(worker *w, worker_build *b, candidate *out, ev_sha256 *sha,
                              bool *covered, ev_error *err) EV_CHECKED;
/* Begins a build without a base: the candidate is PTX that a screener built of `genome`. Takes over
 * the reference; borrows `ptx`. */
ev_status worker_build_screened(worker *w, const ir_genome *genome, const char *ptx,
                                worker_build *out, ev_error *err) EV_CHECKED;
/* Runs all remaining stages. */
ev_status worker_build_all(worker *w, worker_build *b, ev_error *err) EV_CHECKED;
void worker_build_end(worker_build *b);

/* worker_starts.c: compares the written elements of a scored candidate with those of its start
 * (fitness_hold_writes). The start is built first if it is not known yet. */
ev_status worker_hold_writes(worker *w, const worker_build *b, score *s, ev_error *err) EV_CHECKED;

#endif
