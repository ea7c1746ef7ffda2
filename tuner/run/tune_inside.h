/* The inside of a run, for tune.c, course*.c, finish*.c, winner.c and tune_report.c only. */
#ifndef TUNER_RUN_TUNE_INSIDE_H
#define TUNER_RUN_TUNE_INSIDE_H

#include "fitness/gates/fitness.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/run/records.h"
#include "tuner/run/tune.h"
#include "tuner/search/search.h"
#include "tuner/worker/commands.h"
#include "tuner/worker/look.h"
#include "tuner/worker/pool.h"

#include <jansson.h>

typedef struct tune_state {
    const tune_options *options;
    tune_report *report; /* grows */
    task **tasks;        /* [options->task_count] */
    commands commands;
    look_devices gpus; /* count 0: none */
    const char *gpu_ids[LOOK_MOST_GPUS];
    pool *pool;
    records *records;
    struct course *course; /* that is searching now; NULL: none */
    bool stopped;
    double began;     /* on the monotonic clock */
    double displayed; /* when progress was last told */
} tune_state;

/* The device that winners are told to be of: of several GPUs of one model the first. */
const char *tune_device(const tune_state *run);

/* A child whose result is here, waiting for its turn to be committed. */
typedef struct arrival {
    bool here;
    const ir_genome *genome;
    char *operators;
    char hashes[SEARCH_HASHES][EV_SHA256_HEX];
    search_origin origin;
    gate stopped;
    double ns, error;
    small_run small;
    bool screen_overruled;
} arrival;

/* What its record needs of a child on its way. */
typedef struct on_way {
    uint32_t island, generation;
    char parents[RECIPE_LINEAGE];
    bool let_through; /* as search_draw was told */
} on_way;

/* One task's search and what follows it. */
typedef struct course {
    tune_state *run;
    size_t index;
    const task *t;
    const ready_message *ready; /* what the worker said of the task; the pool's */
    search_start *starts;
    size_t start_count;
    search *search;
    on_way on_way[SEARCH_LAG];
    arrival arrivals[SEARCH_LAG];
    bool replays;          /* the records may hold the next child already */
    bool has_gap;          /* a child was not in the records: the search is at work again */
    double began, earlier; /* this task's clock, and its seconds in earlier runs */
    bool out_of_time;
    bool cut_short;               /* stopped while its best were promoted */
    uint64_t minimised, promoted; /* numbers of the next evaluation in these phases */
    double baseline_ns;           /* on the search cases */
    tune_progress progress;
} course;

/* course.c: the search. */
ev_status course_open(tune_state *run, size_t index, course *c, ev_error *err) EV_CHECKED;
ev_status course_search(course *c, ev_error *err) EV_CHECKED;
void course_close(course *c);
bool course_finished(const course *c); /* it had its whole budget */
/* The baseline's time at a case; 0: not timed. */
double course_baseline_ns(const course *c, const char *name);
/* The baseline's time as a score counts it: the geometric mean over a split's timed cases. */
double course_baseline_mean(const course *c, corpus_split split);
double course_seconds(const course *c);
void course_display(course *c, const char *note);

/* course_trials.c: genomes that are looked at after the search. */
typedef struct trial {
    bool passed;
    double ns, error;
    char ptx_sha256[EV_SHA256_HEX]; /* "": not reached */
} trial;

/* Scores genomes on all workers; trials[i] is genomes[i]'s. */
ev_status course_score(course *c, const ir_genome *const *genomes, size_t count, trial *trials,
                       ev_error *err) EV_CHECKED;
/* One job, to its end; *out is the caller's. */
ev_status course_do(course *c, message_kind kind, const ir_genome *genome, pool_job **out,
                    ev_error *err) EV_CHECKED;
/* Gate 6, as course_do. */
ev_status course_promote(course *c, const ir_genome *genome, const fitness_bar *bar, pool_job **out,
                         ev_error *err) EV_CHECKED;
/* Writes a job's evaluation of phase "minimise" or "promote" to the records. */
ev_status course_record(course *c, const char *phase, uint64_t number, const pool_job *job,
                        const score *s, ev_error *err) EV_CHECKED;

/* winner.c: what a task's search ends with. */
typedef struct winner {
    const ir_genome *genome;
    pool_job *job; /* its promotion or, when nothing was promoted, its check */
    bool promoted;
    score score; /* when promoted */
    char *words; /* its edits and macros in words, with their shares; NULL: not measured */
} winner;

ev_status winner_write(course *c, const winner *w, ev_error *err) EV_CHECKED;
/* The genome of an unmodified start; a new reference. */
ev_status winner_start_genome(const task_start *start, const ir_genome **out,
                              ev_error *err) EV_CHECKED;

/* finish.c: promote, minimise, and the winner's record. */
ev_status course_finish(course *c, ev_error *err) EV_CHECKED;

/* tune_report.c: the final table as JSON, and the winners of an earlier run. */
json_t *rows_to_json(const tune_row *rows, size_t count);
ev_status rows_append(tune_report *report, const tune_row *row, ev_error *err) EV_CHECKED;
ev_status rows_append_json(tune_report *report, const char *text, ev_error *err) EV_CHECKED;

/* The score in a job's reply; false if there is none. */
bool job_score(const pool_job *job, score *out);
/* Writes an evaluation of this task to the records: `e` but for task, genome, score and seconds.
 * `genome`, `s`: NULL: none. */
ev_status course_put(course *c, records_evaluation e, const ir_genome *genome, const score *s,
                     bool let_through, ev_error *err) EV_CHECKED;

#endif
