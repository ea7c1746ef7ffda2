/* Pool: the worker processes of a run. Jobs go in, and finished jobs come out in any order.
 *
 * If a candidate brings a worker down, the candidate fails at the gate of that stage. If a worker
 * ends for any other reason (killed, out of memory, connection lost), its job is repeated on a new
 * worker, a bounded number of times. Times are in seconds of the monotonic clock. */
#ifndef TUNER_WORKER_POOL_H
#define TUNER_WORKER_POOL_H

#include "base/hash.h"
#include "base/status.h"
#include "fitness/gates/score.h"
#include "tuner/search/search.h"
#include "tuner/worker/protocol.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct pool pool;

/* A job and its result. The job owns its recipe, its messages and its result's genome. */
typedef struct pool_job {
    message_kind kind; /* CHILD, SCORE, PROMOTE, REPLAY or CHECK */
    uint64_t number;   /* number for the caller's use */
    recipe recipe;     /* CHILD */
    fitness_bar bar;   /* PROMOTE */
    bool screened;     /* a screener passed the variant, and the job waits for a timer */
    message screening; /* the screener's `screened` message, if `screened` */

    /* For CHILD, the origin is SEARCH_DUPLICATE if the caller's `known` returned true. For other
     * kinds, the genome is the one given. */
    child_result result;
    message answer;            /* the `done` message, if there is one */
    const done_message *reply; /* points into `answer`; NULL: a duplicate, or stopped before
                                  the score */

    unsigned lost, late; /* workers lost over this job, and deadlines missed */
    struct pool_job *next;
} pool_job;

/* Makes a job for a child. Takes the recipe over, also on failure. NULL: out of memory. */
pool_job *pool_job_child(uint64_t number, recipe *r);
/* Makes a job of another kind. NULL: out of memory. */
pool_job *pool_job_variant(message_kind kind, uint64_t number, const ir_genome *genome);
void pool_job_free(pool_job *job); /* NULL is fine */

typedef struct pool_options {
    const char *const *argv;     /* NULL: this binary with the arguments `worker --stdio` */
    const char *const *commands; /* [workers]: shell command of each worker, in place of argv;
                                    NULL: argv for all */
    unsigned workers;
    const char *device; /* device of all workers but the timers */
    /* Number of timers, which are the first workers. They time the variants that the others
     * (screeners) pass on. 0: each worker does all. */
    unsigned timers;
    const char *const *timer_devices; /* [timers] */
    void *context;
    /* Whether the child is known by a hash of job->result. */
    bool (*known)(void *context, const pool_job *job, search_hash by);
} pool_options;

ev_status pool_new(const pool_options *options, pool **out, ev_error *err) EV_CHECKED;
void pool_free(pool *p); /* NULL is fine. Ends the workers. */

/* Opens a task on all workers, the first of them with all splits, and waits for the first. There
 * must be no jobs. *ready: the worker's answer, borrowed until the next pool_open or pool_free;
 * NULL: a signal came first. EV_BAD: the task or the device is at fault, with the worker's message.
 */
ev_status pool_open(pool *p, const char *path, const ready_message **ready,
                    ev_error *err) EV_CHECKED;
/* Queues a job. Takes the job over. */
void pool_submit(pool *p, pool_job *job);
/* Gives the next finished job to the caller. *out is NULL after `seconds`, after a signal, or if
 * there are no jobs. EV_INFRA: workers keep dying. */
ev_status pool_wait(pool *p, double seconds, pool_job **out, ev_error *err) EV_CHECKED;
size_t pool_jobs(const pool *p); /* number of jobs submitted and not yet returned */

/* Whether a timer is idle or soon will be: fewer screened jobs wait than there are timers. */
bool pool_timers_starve(const pool *p);
/* Seconds that all timers together have spent on screened jobs. */
double pool_timer_seconds(const pool *p);

/* Totals so far: workers that ended unasked, and CPU seconds by part of an evaluation. */
uint64_t pool_failed_workers(const pool *p);
void pool_seconds(const pool *p, double seconds[PART_COUNT]);

#endif
