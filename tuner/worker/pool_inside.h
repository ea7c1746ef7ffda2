/* The inside of the pool, for pool*.c only. A slot is the place of one worker process. */
#ifndef TUNER_WORKER_POOL_INSIDE_H
#define TUNER_WORKER_POOL_INSIDE_H

#include "base/proc.h"
#include "tuner/worker/pool.h"

typedef enum slot_state {
    SLOT_EMPTY,    /* no process */
    SLOT_GREETING, /* waits for the message `hello` */
    SLOT_OPENING,  /* waits for the message `ready` */
    SLOT_IDLE,
    SLOT_BUSY
} slot_state;

typedef struct slot {
    slot_state state;
    worker_role role;
    const char *device; /* borrowed from the options */
    ev_proc proc;
    channel line;
    unsigned splits; /* splits on which its baseline was checked, as bits */
    uint64_t serial; /* number of the opening that the worker answers */
    stage at;        /* stage that the worker entered last */
    pool_job *job;
    double began, deadline; /* times of the job on the monotonic clock */
    bool has_last_word;
    char last_word[400];
} slot;

struct pool {
    pool_options options;
    char *self; /* path of this binary */
    const char *self_argv[4];
    slot *slots;
    char *task;      /* path of the task that is to be open; NULL: none yet */
    uint64_t serial; /* number of the latest opening; a worker may still be busy with an
                        earlier one */
    bool has_ready;
    message ready;              /* `ready` of the first worker with all splits */
    char *drawn;                /* drawn cases, from the first worker that opened the task;
                                   NULL: none has */
    json_t *shelf;              /* base store: the values that workers made, by key */
    pool_job *queue, *finished; /* lists, in order */
    size_t jobs;
    unsigned deaths; /* workers lost in a row, without a finished job between */
    uint64_t failed;
    double seconds[PART_COUNT];
    double timer_seconds; /* seconds of timers over screened jobs that have ended */
};

#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1u)
#define SPLITS_SEARCH (1u << CORPUS_SEARCH)

bool pool_needs_all_splits(const pool_job *job);
gate pool_gate_of(stage at);
void pool_append(pool_job **list, pool_job *job);
/* Removes the slot's job and gives it to the caller. */
pool_job *pool_leave(pool *p, slot *s);
/* Ends the slot's job, and makes the slot idle. */
void pool_finish(pool *p, slot *s);
/* Makes an empty slot. */
slot pool_slot(const pool *p, size_t index);

/* pool_slots.c: processes. */
ev_status pool_start(pool *p, slot *s, ev_error *err) EV_CHECKED;
void pool_send_open(pool *p, slot *s, unsigned splits);
void pool_send_job(slot *s, pool_job *job);
void pool_say(slot *s, const message *m);
/* Handles the end of a worker process, which has ended or is killed now: decides whether the
 * candidate or the machine is to blame, and starts a new worker. */
ev_status pool_bury(pool *p, slot *s, const char *why, ev_error *err) EV_CHECKED;
/* Replaces an idle worker that announced its end. Nobody is to blame. */
ev_status pool_replace(pool *p, slot *s, ev_error *err) EV_CHECKED;
ev_status pool_check_deadline(pool *p, slot *s, ev_error *err) EV_CHECKED;

/* pool_hear.c: messages. */
ev_status pool_hear(pool *p, slot *s, ev_error *err) EV_CHECKED;

#endif
