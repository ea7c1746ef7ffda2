/* The inside of a run: state shared by tune.c, course*.c, finish*.c, winner.c and tune_report.c,
 * and by no other file. Times of kernels are in ns, times of the run in seconds. Functions return
 * EV_BAD if a task, a device or an option is at fault, and EV_INFRA if processes, memory or the
 * records fail. */
#ifndef TUNER_RUN_TUNE_INSIDE_H
#define TUNER_RUN_TUNE_INSIDE_H

#include "fitness/gates/fitness.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/run/earlier.h"
#include "tuner/run/records.h"
#include "tuner/run/tune.h"
#include "tuner/search/portfolio.h"
#include "tuner/search/search.h"
#include "tuner/worker/commands.h"
#include "tuner/worker/look.h"
#include "tuner/worker/pool.h"

#include <jansson.h>

typedef struct tune_state {
    const tune_options *options;
    tune_report *report;     /* rows are appended as tasks finish */
    task **tasks;            /* [options->task_count] */
    earlier *earlier;        /* of options->from; NULL: none */
    const json_t *identity;  /* borrowed */
    portfolio_shapes shapes; /* of the only task; count 0: no portfolio */
    commands commands;
    look_devices gpus; /* count 0: none */
    const char *gpu_ids[LOOK_MOST_GPUS];
    pool *pool;
    records *records;
    struct course *course; /* the course that searches now; NULL: none */
    bool stopped;
    double began;     /* on the monotonic clock */
    double displayed; /* time of the last progress line, on the same clock */
} tune_state;

/* The name of the device in the records of winners; of several GPUs of one model, the first. */
const char *tune_device(const tune_state *run);

/* A child between its drawing and its commitment. */
typedef struct on_way {
    uint32_t island, generation;
    char parents[RECIPE_LINEAGE];
    bool let_through;    /* the flag that search_draw was given */
    double floor_share;  /* the least of floor / time over the search's timed cases; 0: not timed,
                            or no floor is known */
    bool here;           /* `result` is valid, and waits for its turn to be committed */
    child_result result; /* the child's result, if `here` */
} on_way;

/* The course of one task: its search, promotion, minimisation and winner. */
typedef struct course {
    tune_state *run;
    size_t index;
    const task *t;
    const ready_message *ready; /* the worker's description of the task; borrowed from the pool */
    search_start *starts;
    size_t start_count;
    search *search;
    on_way on_way[SEARCH_LAG];
    bool replays;          /* the records may still hold the next child */
    bool has_gap;          /* a child was missing in the records, so the search works again */
    double began, earlier; /* start of this task on the monotonic clock, and its seconds in
                              earlier runs */
    bool out_of_time;
    bool at_floor;  /* a variant is near the floor of all timed cases: the search ends */
    bool cut_short; /* a signal stopped the promotion of the best variants */
    uint64_t minimised, promoted; /* numbers of the next evaluations in the phases "minimise"
                                     and "promote" */
    double baseline_ns;           /* geometric mean over the search's timed cases */
    tune_progress progress;
} course;

/* course.c: the search. */
ev_status course_open(tune_state *run, size_t index, course *c, ev_error *err) EV_CHECKED;
ev_status course_search(course *c, ev_error *err) EV_CHECKED;
void course_close(course *c);
bool course_finished(const course *c); /* whether the search used its whole budget */
/* The baseline's time at a case in ns; 0: not timed. */
double course_baseline_ns(const course *c, const char *name);
/* The baseline's time in ns as a score counts it: the geometric mean over a split's timed cases. */
double course_baseline_mean(const course *c, corpus_split split);
double course_seconds(const course *c);
void course_display(course *c, const char *note);
/* Adds a wrong setting to the report, and shows a line. */
ev_status course_note_wrong(course *c, const wrong_setting *s, ev_error *err) EV_CHECKED;

/* course_floor.c: the floor in ns of a timed case, by the task's work; 0: not known. */
double course_floor_ns(const course *c, const char *name);
/* on_way.floor_share of a score. */
double course_floor_share(const course *c, const score *s);
/* Ends the search if the committed child is within FLOOR_NEAR of the floor on all timed cases, and
 * shows a line. A bold child counts where the winner may be bold. */
ev_status course_note_floor(course *c, uint64_t child, const on_way *w, const search_verdict *v,
                            ev_error *err) EV_CHECKED;

/* course_trials.c: evaluates single genomes after the search. */
typedef struct trial {
    bool passed;
    double ns, error;
    uint64_t bold;                  /* number of bold edits */
    char ptx_sha256[EV_SHA256_HEX]; /* "": stopped before PTX was made */
} trial;

/* Scores genomes on all workers. trials[i] is the result of genomes[i]. */
ev_status course_score(course *c, const ir_genome *const *genomes, size_t count, trial *trials,
                       ev_error *err) EV_CHECKED;
/* Runs one job to its end. The caller frees *out with pool_job_free. */
ev_status course_do(course *c, message_kind kind, const ir_genome *genome, pool_job **out,
                    ev_error *err) EV_CHECKED;
/* Runs gate 6 on a genome, as course_do. */
ev_status course_promote(course *c, const ir_genome *genome, const fitness_bar *bar, pool_job **out,
                         ev_error *err) EV_CHECKED;
/* Writes the result of a job to the records, as an evaluation of the phase "minimise" or "promote".
 */
ev_status course_record(course *c, const char *phase, uint64_t number, const pool_job *job,
                        ev_error *err) EV_CHECKED;

/* winner.c: the winner of a task's search, and its record. A winner owns a reference to its genome,
 * its job and its words. */
typedef struct winner {
    const ir_genome *genome;
    pool_job *job; /* the job of its promotion or, if nothing was promoted, of its check */
    bool promoted;
    score score;  /* valid if `promoted` */
    char *words;  /* its edits and macros in words, with the share of each in the gain; NULL:
                     not measured */
    char *stress; /* the report of its stress, JSON text; NULL: none */
} winner;

/* What the records get beside the winner. */
typedef struct winner_beside {
    const winner *bold;    /* without a genome: there is none */
    const char *portfolio; /* JSON text; NULL: none */
    const winner *members; /* of the portfolio, without the winner */
    size_t member_count;
} winner_beside;

/* Writes the winner to the records. The rows of the table are of the fastest member at each case.
 */
ev_status winner_write(course *c, const winner *w, const winner_beside *beside,
                       ev_error *err) EV_CHECKED;
/* A variant with its code as JSON, as records_winner.bold says; a new reference. NULL: out of
 * memory. */
json_t *winner_to_json(const winner *w);
/* The genome of an unmodified start; a new reference. */
ev_status winner_start_genome(const task_start *start, const ir_genome **out,
                              ev_error *err) EV_CHECKED;

/* finish.c: promote, minimise, and the winner's record. */
ev_status course_finish(course *c, ev_error *err) EV_CHECKED;

/* tune_report.c: the final table as JSON, and the winners of an earlier run read back. */
json_t *rows_to_json(const tune_row *rows, size_t count);
ev_status wrong_append(tune_report *report, const char *kernel, const wrong_setting *setting,
                       ev_error *err) EV_CHECKED;
/* Adds the portfolio of a kernel, without its code; `text`: records_winner.portfolio. */
ev_status portfolio_append(tune_report *report, const char *kernel, const char *text,
                           ev_error *err) EV_CHECKED;
/* Adds a winner's genome; `text`: records_winner.genome. */
ev_status genomes_append(tune_report *report, const char *sha256, const char *text,
                         ev_error *err) EV_CHECKED;
ev_status rows_append(tune_report *report, const tune_row *row, ev_error *err) EV_CHECKED;
ev_status rows_append_json(tune_report *report, const char *text, ev_error *err) EV_CHECKED;

/* Copies the score of a job's reply. False: the reply has no score. */
bool job_score(const pool_job *job, score *out);
/* Writes an evaluation with the result of a job and its score; NULL: it has none. */
ev_status course_put(course *c, records_evaluation *e, const pool_job *job, const score *s,
                     ev_error *err) EV_CHECKED;

#endif
