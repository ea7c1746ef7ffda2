/* Pool: the worker processes of a run. Jobs go in, finished jobs come out, in any order.
 *
 * A worker that a candidate brings down costs that candidate its gate. A worker that ends in any
 * other way (killed, out of memory, connection lost) costs nothing but time: its job is done again
 * on a new one, a bounded number of times. */
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

/* A job, and its result. */
typedef struct pool_job {
    message_kind kind; /* CHILD, SCORE, PROMOTE, REPLAY or CHECK */
    uint64_t number;   /* the caller's */
    recipe recipe;     /* CHILD */
    fitness_bar bar;   /* PROMOTE */
    bool screened;     /* a screener passed it: the job is for a timer */
    message screening; /* then: the screener's `screened` */

    bool seen;    /* dropped, because the caller's `known` said so */
    gate stopped; /* GATE_NONE: done, see `reply` */
    char reason[600];
    message answer;            /* `done`, where there is one */
    const done_message *reply; /* in `answer`; NULL when seen or stopped before scoring */
    const ir_genome *genome; /* a reference. CHILD: as drawn; the rest: as given; NULL: not drawn */
    char *operators;
    char hashes[SEARCH_HASHES][EV_SHA256_HEX]; /* "": not reached */

    unsigned lost, late; /* workers that were lost over it, and deadlines that it missed */
    struct pool_job *next;
} pool_job;

/* A child by a recipe, which the job takes over, on failure too. NULL: out of memory. */
pool_job *pool_job_child(uint64_t number, recipe *r);
/* Of another kind. NULL: out of memory. */
pool_job *pool_job_variant(message_kind kind, uint64_t number, const ir_genome *genome);
void pool_job_free(pool_job *job); /* NULL is fine */

typedef struct pool_options {
    const char *const *argv;     /* NULL: this binary with `worker --stdio` */
    const char *const *commands; /* [workers]: what the shell runs for each, in place of argv; NULL:
                                    argv for all */
    unsigned workers;
    const char *device; /* of all workers but the timers */
    /* The first so many workers time what the others, screeners then, pass on; 0: each does all. */
    unsigned timers;
    const char *const *timer_devices; /* [timers] */
    void *context;
    /* Whether this child is known by `sha256`, which is not read for SEARCH_BY_GENOME. */
    bool (*known)(void *context, const pool_job *job, search_hash by, const char *sha256);
} pool_options;

ev_status pool_new(const pool_options *options, pool **out, ev_error *err) EV_CHECKED;
void pool_free(pool *p); /* NULL is fine; ends the workers */

/* Opens a task on all workers, the first one with all splits, and waits for that one; there must be
 * no jobs. `ready`: its answer, borrowed until the next pool_open or pool_free; NULL when a signal
 * came first. EV_BAD: what the worker said of the task or the device. */
ev_status pool_open(pool *p, const char *path, const ready_message **ready,
                    ev_error *err) EV_CHECKED;
/* Takes the job over. */
void pool_submit(pool *p, pool_job *job);
/* The next finished job, the caller's; *out is NULL after `seconds`, after a signal, or when there
 * are no jobs. EV_INFRA: workers keep dying. */
ev_status pool_wait(pool *p, double seconds, pool_job **out, ev_error *err) EV_CHECKED;
size_t pool_jobs(const pool *p); /* not yet given back */

/* Whether a timer is idle, or about to be: fewer screened jobs wait than there are timers. */
bool pool_timers_starve(const pool *p);
/* Seconds that timers have spent on screened jobs, all together. */
double pool_timer_seconds(const pool *p);

/* So far: workers that ended before they were told to, and seconds by part. */
uint64_t pool_failed_workers(const pool *p);
void pool_seconds(const pool *p, double seconds[PART_COUNT]);

#endif
