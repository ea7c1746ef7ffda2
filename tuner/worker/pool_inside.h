/* The inside of the pool, for pool*.c only. */
#ifndef TUNER_WORKER_POOL_INSIDE_H
#define TUNER_WORKER_POOL_INSIDE_H

#include "base/proc.h"
#include "tuner/worker/pool.h"

typedef enum slot_state {
    SLOT_EMPTY,    /* no process */
    SLOT_GREETING, /* waits for hello */
    SLOT_OPENING,  /* waits for ready */
    SLOT_IDLE,
    SLOT_BUSY
} slot_state;

typedef struct slot {
    slot_state state;
    worker_role role;
    const char *device; /* borrowed from the options */
    ev_proc proc;
    channel line;
    unsigned splits; /* that its baseline was held against */
    uint64_t serial; /* of the opening that it answers */
    stage at;        /* that it entered last */
    pool_job *job;
    double began, deadline; /* of the job, on the monotonic clock */
    bool has_last_word;
    char last_word[400];
} slot;

struct pool {
    pool_options options;
    char *self; /* path of this binary */
    const char *self_argv[4];
    slot *slots;
    char *task;      /* that is to be open; NULL: none yet */
    uint64_t serial; /* of the openings: a worker may still be at the one before */
    bool has_ready;
    message ready;              /* `ready` of the first worker with all splits */
    char *drawn;                /* the cases that the first to open it drew; NULL: none opened it */
    json_t *shelf;              /* base store: the values that workers made, by key */
    pool_job *queue, *finished; /* in order */
    size_t jobs;
    unsigned deaths; /* in a row, without a finished job between */
    uint64_t failed;
    double seconds[PART_COUNT];
    double timer_seconds; /* of timers, over screened jobs that have ended */
};

#define SPLITS_ALL ((1u << CORPUS_SPLIT_COUNT) - 1u)
#define SPLITS_SEARCH (1u << CORPUS_SEARCH)

bool pool_needs_all_splits(const pool_job *job);
gate pool_gate_of(stage at);
void pool_append(pool_job **list, pool_job *job);
/* The slot gives up its job, which is the caller's now. */
pool_job *pool_leave(pool *p, slot *s);
/* The job is over; gives the slot back. */
void pool_finish(pool *p, slot *s);
/* An empty slot. */
slot pool_slot(const pool *p, size_t index);

/* pool_slots.c: processes. */
ev_status pool_start(pool *p, slot *s, ev_error *err) EV_CHECKED;
void pool_send_open(pool *p, slot *s, unsigned splits);
void pool_send_job(slot *s, pool_job *job);
void pool_say(slot *s, const message *m);
/* The process has ended, or is to end now: blames candidate or machine, and starts anew. */
ev_status pool_bury(pool *p, slot *s, const char *why, ev_error *err) EV_CHECKED;
/* The idle worker said that it ends: another one takes its place, and nobody is to blame. */
ev_status pool_replace(pool *p, slot *s, ev_error *err) EV_CHECKED;
ev_status pool_check_deadline(pool *p, slot *s, ev_error *err) EV_CHECKED;

/* pool_hear.c: messages. */
ev_status pool_hear(pool *p, slot *s, ev_error *err) EV_CHECKED;

#endif
