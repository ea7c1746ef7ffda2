/* Records: the SQLite file of a run: every evaluation with genome, lineage, gate and score, and the
 * winners with their PTX. No other file uses SQLite.
 *
 * Each function that takes an ev_error fails by EV_INFRA when the disk is full or fails, and by
 * EV_BAD when the file is no records file or is damaged. */
#ifndef TUNER_RUN_RECORDS_H
#define TUNER_RUN_RECORDS_H

#include "base/hash.h"
#include "base/status.h"
#include "tuner/search/search.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORDS_VERSION 6

typedef struct records records;

/* The winner of a task, with all that a bundle needs. Texts are borrowed by records_put_winner, and
 * owned by the list of records_winners. */
typedef struct records_winner {
    size_t task; /* its index in the order of the run; records_winners sets it */
    const char *kernel;
    const char *task_path;
    const char *task_sha256;
    const char *device;   /* "vm:h200" */
    const char *gpu_name; /* "NVIDIA H200 SXM 141GB" */
    int sm;
    const char *start;
    const char *genome; /* JSON */
    const char *genome_sha256;
    const char *ptx; /* of the winner */
    const char *ptx_sha256;
    const char *entry;
    const char *baseline_ptx; /* of the first start, unmodified */
    const char *baseline_entry;
    const char *rows;     /* JSON array of rows of the final table */
    const char *score;    /* JSON of the score of the promotion */
    const char *edits;    /* the minimised edits in words, one a line */
    const char *versions; /* JSON: evoke, llvm, records */
    uint64_t seed;
    bool promoted;
    /* The bold winner beside a preserving one (ir/edits.def), as JSON: genome, genome_sha256, ptx,
     * ptx_sha256, entry, start, score, edits in words, stress. "": none. */
    const char *bold;
    const char *stress;    /* JSON: what the stress of the winner tried (tuner/stress); "": none */
    const char *portfolio; /* JSON: the portfolio (finish_portfolio.c), the winner its first; "":
                              none */
} records_winner;

/* One evaluation. Its key is (task, phase, number); in the phase "search" the number is the
 * child's. Texts and genome are borrowed for a call, and live until a callback returns. */
typedef struct records_evaluation {
    size_t task;       /* index in the order of the run */
    const char *phase; /* "search", "minimise" or "promote" */
    uint64_t number;
    uint32_t island, generation;
    const char *parents;               /* numbers of the parents, "3,17" */
    const char *operators;             /* arms that made it, "crossover,copy" */
    const json_t *genome;              /* NULL: not drawn */
    const char *hashes[SEARCH_HASHES]; /* NULL or "": not reached */
    const char *gate;     /* that stopped it; "seen" for a duplicate, "none" if it passed */
    const char *reason;   /* "" when it passed */
    double ns, error;     /* 0 where not known */
    const char *score;    /* compact JSON; "": none */
    uint32_t bold;        /* number of bold edits (ir_build_bold); 0 also if it was not built */
    uint32_t let_through; /* 1: search_draw was told so */
    double seconds; /* since this task's search began, without the pauses between resumed runs */
} records_evaluation;

/* Makes a records file for the run that `identity` (a JSON object) describes. NULL path: a
 * temporary file that is deleted when closed. EV_BAD: the file exists, or cannot be made there. */
ev_status records_create(const char *path, const json_t *identity, records **out,
                         ev_error *err) EV_CHECKED;
/* Opens a file to continue its run. EV_BAD: there is no such file, it is of another version, or its
 * run has another identity; the message names the key that differs and both values. */
ev_status records_resume(const char *path, const json_t *identity, records **out,
                         ev_error *err) EV_CHECKED;

/* Writes one evaluation in a transaction of its own, in place of any with the same key. */
ev_status records_put(records *r, const records_evaluation *evaluation, ev_error *err) EV_CHECKED;
/* Turns a stored evaluation of a search into a duplicate (gate "seen"), or into a memoised one
 * (gate "none", with the time and error of the child with its fingerprint). Erases the stored
 * score. */
ev_status records_mark_known(records *r, const records_evaluation *known, ev_error *err) EV_CHECKED;
/* Called for each evaluation; any status but EV_OK ends the reading and is returned. */
typedef ev_status records_fn(void *context, const records_evaluation *evaluation, ev_error *err);

/* Calls `each` for the evaluations of one phase of the task `at`, in the order of their numbers. */
ev_status records_each(records *r, size_t at, const char *phase, records_fn *each, void *context,
                       ev_error *err) EV_CHECKED;
/* As records_each, for one number. *found: whether it is there. */
ev_status records_get(records *r, size_t at, const char *phase, uint64_t number, records_fn *each,
                      void *context, bool *found, ev_error *err) EV_CHECKED;

/* Writes the winner of the task `at`, in place of any earlier one. `finished`: the search had its
 * whole budget. */
ev_status records_put_winner(records *r, size_t at, const records_winner *winner, bool finished,
                             ev_error *err) EV_CHECKED;
/* Whether the task `at` was finished. */
ev_status records_finished(records *r, size_t at, bool *out, ev_error *err) EV_CHECKED;

/* The identity of the run in a file; a new reference. */
ev_status records_identity(records *r, json_t **out, ev_error *err) EV_CHECKED;

/* Opens a file for reading. EV_BAD: there is no such file, or it is of another version. */
ev_status records_open_read(const char *path, records **out, ev_error *err) EV_CHECKED;
/* Size of the database in bytes. */
ev_status records_bytes(records *r, uint64_t *out, ev_error *err) EV_CHECKED;
void records_close(records *r); /* NULL is fine */

/* All winners in the order of the tasks; free by records_winners_free. */
ev_status records_winners(records *r, records_winner **out, size_t *count,
                          ev_error *err) EV_CHECKED;
void records_winners_free(records_winner *winners, size_t count);

#endif
