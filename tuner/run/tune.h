/* Tune: one run of the search over some tasks, from options to winners in the records.
 *
 * The coordinator draws parents and operators, owns the records, and loads neither LLVM work nor a
 * GPU; workers (`evoke worker --stdio`) build and score. A run's outcome depends on (tasks, device,
 * seed, evaluations) alone: not on the number of workers, not on a restart. */
#ifndef TUNER_RUN_TUNE_H
#define TUNER_RUN_TUNE_H

#include "base/hash.h"
#include "base/status.h"
#include "fitness/gates/score.h"
#include "tuner/search/search.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a progress display is told, at most ten times a second. */
typedef struct tune_progress {
    const char *kernel;
    size_t task_index, task_count;
    uint64_t evaluations, budget; /* of this task; budget 0: by the clock */
    uint64_t duplicates;
    uint64_t rejected[GATE_COUNT];
    uint64_t failed_workers;     /* died or hung, and were started again */
    double baseline_ns, best_ns; /* 0: not known yet */
    double best_error;
    double seconds;   /* since the run began */
    const char *note; /* a line worth keeping in a log; NULL: none */
} tune_progress;

typedef struct tune_options {
    const char *const *tasks; /* names or paths of task.json */
    size_t task_count;
    const char *device;   /* "vm:h200" */
    uint64_t evaluations; /* a task; 0: by seconds alone */
    double seconds;       /* a task; 0: by evaluations alone */
    uint64_t seed;
    strategy strategy;
    unsigned workers;    /* 0: one a core */
    const char *starts;  /* "all", or the name of one start */
    const char *records; /* SQLite file; NULL: a temporary one */
    bool resume;
    const char *const *worker_argv; /* NULL-ended; NULL: this binary with `worker --stdio` */
    /* "CMD" or "N:CMD": what the shell runs to have a worker, in place of workers of this machine
     */
    const char *const *worker_commands;
    size_t worker_command_count;
    const volatile int *stop; /* set to non-zero by a signal handler: end cleanly; NULL: never */
    void (*progress)(void *context, const tune_progress *progress);
    void *progress_context;
} tune_options;

/* One line of the final table: a kernel at one held-out timed case. */
typedef struct tune_row {
    char kernel[96];
    char start[48]; /* the start the winner grew from */
    char at[96];    /* case */
    char device[64];
    bool modelled;
    double baseline_ns; /* the first start, unchanged */
    double hand_ns;     /* the task's last start, unchanged; 0: it has only one */
    double best_ns;
    double speedup; /* baseline_ns / best_ns */
    double error;   /* relative L2, worst over the held-out cases */
    double tolerance;
    bool promoted;
    /* What its task's search found, on the search cases: how many on each front, and the baseline
     * over the fastest there (0: nothing). Neither promoted nor minimised. */
    unsigned exact_count, tolerant_count;
    double exact_speedup, tolerant_speedup;
    double tolerant_error; /* of the fastest */
    char genome_sha256[EV_SHA256_HEX];
    char ptx_sha256[EV_SHA256_HEX];
} tune_row;

/* Audits of a shortcut; refuted / made is the regret of the shortcut. */
typedef struct tune_audit {
    uint64_t made, refuted;
} tune_audit;

typedef struct tune_report {
    uint64_t seed;
    size_t row_count;
    tune_row *rows;
    uint64_t evaluations, duplicates, rejected[GATE_COUNT];
    uint64_t duplicates_by[SEARCH_HASHES]; /* what they were known by */
    uint64_t memoised_by[SEARCH_HASHES];   /* the same of SEARCH_MEMOISED */
    /* Children by origin (search_origin), and audits of the shortcut that gives it. */
    uint64_t estimated, filtered, screened;
    tune_audit memo_audits, filter_audits, screen_audits;
    uint64_t estimates_audited, estimates_beaten, estimates_missed;
    uint64_t failed_workers;
    unsigned workers; /* all of them; */
    unsigned timers; /* of these, timers of GPUs: the others are screeners then; 0: no such roles */
    uint64_t let_through;  /* children that were built and timed whatever was known of their speed,
                              since a timer had nothing to do */
    double search_seconds; /* of the courses, without opening and finishing */
    double timer_seconds;  /* that timers were at work in these, all together */
    double seconds;
    double cpu_seconds;         /* of the coordinator, its workers and their compilers */
    uint64_t coordinator_bytes; /* most memory that it held */
    uint64_t records_bytes;     /* what the records take at the end */
    double stage_seconds[8];    /* in the order of tune_stage_names, summed over workers */
    bool stopped;               /* by *stop */
} tune_report;

extern const char *const tune_stage_names[8]; /* "mutate", "build", "load", "safe", "accurate",
                                                 "timed", "promote", "coordinator" */

/* EV_BAD: a bad task, device, start, records of another version, or --resume with other tasks or
 * seed; EV_INFRA: workers that keep dying without a candidate's fault, disk full. */
ev_status tune_run(const tune_options *options, tune_report *out, ev_error *err) EV_CHECKED;
/* The share of the search that timers were at work; 0: there were none. */
double tune_timer_share(const tune_report *report);
json_t *tune_timers_json(const tune_report *report); /* of a search with timers; new reference */
void tune_report_free(tune_report *report);

#endif
