/* Records: one SQLite file with all of a run: every evaluation, its genome, lineage, gate and
 * score; and the winners with their PTX. The only place that knows SQLite. */
#ifndef TUNER_RUN_RECORDS_H
#define TUNER_RUN_RECORDS_H

#include "base/hash.h"
#include "base/status.h"
#include "tuner/search/search.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDS_VERSION 2

typedef struct records records;

/* A finished task of a run: all that a bundle needs. Texts are borrowed when written, and belong to
 * the list when read. */
typedef struct records_winner {
    const char *kernel;
    const char *task_path;
    const char *task_sha256;
    const char *device;   /* "vm:h200" */
    const char *gpu_name; /* "NVIDIA H200 SXM 141GB" */
    int sm;
    const char *start;
    const char *genome; /* JSON */
    const char *genome_sha256;
    const char *ptx; /* the winner's */
    const char *ptx_sha256;
    const char *entry;
    const char *baseline_ptx; /* the first start, unchanged */
    const char *baseline_entry;
    const char *rows;     /* JSON array of the final table's rows */
    const char *score;    /* JSON of the promoting score */
    const char *edits;    /* the minimised edit list in words, a line each */
    const char *versions; /* JSON: evoke, llvm, records */
    uint64_t seed;
    bool promoted;
} records_winner;

/* One evaluation. Texts are borrowed for the call; in a callback they live until it returns.
 * An evaluation is named by (task, phase, number); in the phase "search" the number is the child's.
 */
typedef struct records_evaluation {
    size_t task;       /* index in the run's order */
    const char *phase; /* "search", "minimise" or "promote" */
    uint64_t number;
    uint32_t island, generation;
    const char *parents;               /* numbers of the parents, "3,17" */
    const char *operators;             /* what made it, "crossover,copy" */
    const json_t *genome;              /* NULL: it failed before it was drawn */
    const char *hashes[SEARCH_HASHES]; /* NULL or "": not reached */
    const char *gate;   /* the gate that stopped it, "seen" for a duplicate, "none" if it passed */
    const char *reason; /* "" when it passed */
    double ns, error;   /* 0 where not known */
    const char *score;  /* compact JSON; "": none */
    double seconds; /* since the search of this task began, rests between resumed runs left out */
} records_evaluation;

/* A new records file for the run that `identity` (a JSON object) describes; NULL path: a nameless
 * one that is gone when closed. EV_BAD: the file exists (names the cure), or cannot be made there.
 */
ev_status records_create(const char *path, const json_t *identity, records **out,
                         ev_error *err) EV_CHECKED;
/* Opens to go on. EV_BAD: no such file, no records, another version, or a run of another identity,
 * with the key that differs and both values. */
ev_status records_resume(const char *path, const json_t *identity, records **out,
                         ev_error *err) EV_CHECKED;

/* Writes one evaluation in a transaction of its own; one of the same name is replaced. EV_INFRA:
 * disk full. */
ev_status records_put(records *r, const records_evaluation *evaluation, ev_error *err) EV_CHECKED;
/* Turns a stored evaluation of a search into one that is known: a duplicate (the gate "seen"), or
 * one that ran alike (the gate "none", with that one's time and error). Its own score goes. */
ev_status records_mark_known(records *r, const records_evaluation *known, ev_error *err) EV_CHECKED;
typedef ev_status records_fn(void *context, const records_evaluation *evaluation, ev_error *err);

/* Calls `each` for the evaluations of a task's phase in order of their numbers, until it fails. */
ev_status records_each(records *r, size_t at, const char *phase, records_fn *each, void *context,
                       ev_error *err) EV_CHECKED;
/* As records_each, for one number; *found says whether it is there. */
ev_status records_get(records *r, size_t at, const char *phase, uint64_t number, records_fn *each,
                      void *context, bool *found, ev_error *err) EV_CHECKED;

/* Writes a task's winner; one that is there is replaced. `finished`: the search has had its whole
 * budget. */
ev_status records_put_winner(records *r, size_t at, const records_winner *winner, bool finished,
                             ev_error *err) EV_CHECKED;
/* Whether a task was finished. */
ev_status records_finished(records *r, size_t at, bool *out, ev_error *err) EV_CHECKED;

/* Opens for reading; the file must exist. EV_BAD: not a records file, or of another version. */
ev_status records_open_read(const char *path, records **out, ev_error *err) EV_CHECKED;
/* Bytes that the database takes. */
ev_status records_bytes(records *r, uint64_t *out, ev_error *err) EV_CHECKED;
void records_close(records *r); /* NULL is fine */

ev_status records_winners(records *r, records_winner **out, size_t *count,
                          ev_error *err) EV_CHECKED;
void records_winners_free(records_winner *winners, size_t count);

#endif
