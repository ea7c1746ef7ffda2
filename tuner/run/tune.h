/* Tune: one run of the search over a list of tasks, from options to winners in the records.
 *
 * This process is the coordinator: it draws parents and operators and owns the records, but does no
 * LLVM work and opens no GPU. Worker processes (`evoke worker --stdio`) build and score. With a
 * budget in evaluations and modelled times, the winners depend on tasks, device, seed and budget
 * alone: neither on the number of workers nor on interruptions. */
#ifndef TUNER_RUN_TUNE_H
#define TUNER_RUN_TUNE_H

#include "base/hash.h"
#include "base/status.h"
#include "fitness/device/cuda/ptxas.h"
#include "fitness/gates/score.h"
#include "tuner/search/prior.h"
#include "tuner/search/search.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Progress of a run, told at most ten times a second. */
typedef struct tune_progress {
    const char *kernel;
    size_t task_index, task_count;
    uint64_t evaluations, budget; /* of this task; budget 0: time is the limit */
    uint64_t duplicates;
    uint64_t rejected[GATE_COUNT];
    uint64_t failed_workers;     /* workers that died or hung, and were restarted */
    double baseline_ns, best_ns; /* 0: not known yet */
    double best_error;
    double seconds;   /* since the run began */
    const char *note; /* a line for a log; NULL: none */
} tune_progress;

#define TUNE_LEAST_GAIN 0.01 /* the default of tune_options.least_gain */

typedef struct tune_options {
    const char *const *tasks; /* names or paths of task.json */
    size_t task_count;
    const char *device;   /* "vm:h200" */
    uint64_t evaluations; /* budget of each task; 0: no limit but `seconds` */
    double seconds;       /* for each task; 0: no limit but `evaluations` */
    uint64_t seed;
    strategy strategy;
    double least_gain; /* share of the best start's time that a winner has to gain; 0.01 is 1 % */
    bool bold;         /* the winner may have bold edits (ir/edits.def) */
    bool no_structure; /* no structural edit is drawn (docs/structure.md) */
    bool without[IR_EDIT_COUNT]; /* edits that are not drawn */
    ptxas_targets assemble;      /* no variant wins that ptxas refuses or spills for one of these */
    const prior *prior;          /* what is expected of the arms; NULL: nothing */
    unsigned workers;            /* 0: one for each core */
    const char *starts;          /* "all", or the name of one start */
    const char *from; /* a bundle or records to begin with (tuner/run/earlier.h); NULL: none */
    /* With one task: the shapes of a portfolio (tuner/search/portfolio.h); NULL: none. */
    const char *shapes;
    size_t most_variants; /* of the portfolio, from 1 to PORTFOLIO_MOST */
    const char *records;  /* path of the SQLite file; NULL: a temporary file */
    bool to_bundle;       /* a bundle must be able to hold the tasks' files */
    bool resume;
    const char *const *worker_argv; /* NULL-terminated; NULL: this binary with `worker --stdio` */
    /* "CMD" or "N:CMD": shell commands that each start one or N workers, in place of workers on
     * this machine. */
    const char *const *worker_commands;
    size_t worker_command_count;
    const volatile int *stop; /* non-zero, set by a signal handler: end cleanly; NULL: never */
    void (*progress)(void *context, const tune_progress *progress);
    void *progress_context;
} tune_options;

/* A row of the final table: a kernel at one timed held-out case. */
typedef struct tune_row {
    char kernel[96];
    char start[48]; /* that the winner grew from */
    char at[96];    /* case */
    char device[64];
    bool modelled;
    double baseline_ns; /* the first start, unmodified */
    double hand_ns;     /* the last start, unmodified; 0: the task has one start */
    double alone_ns;    /* the one start that was searched, unmodified; 0: all were */
    /* Intervals of 95 % of the first two; 0: not known. */
    double baseline_low_ns, baseline_high_ns, hand_low_ns, hand_high_ns;
    double best_ns;
    double floor_ns; /* of the case, by the task's work; 0: not known */
    bool at_floor;   /* the search ended since its best was near the floor of all timed cases */
    double speedup;  /* baseline_ns / best_ns */
    double error;    /* relative L2, the worst over the held-out cases */
    double tolerance;
    bool promoted;
    bool preserving;     /* the winner has no bold edit (ir/edits.def) */
    double bold_speedup; /* of the bold winner over this one; 0: there is none */
    /* The fronts of the task's search, on the search cases, neither promoted nor minimised: number
     * of variants, and the speed-up of the fastest over the baseline (0: the front is empty). */
    unsigned exact_count, tolerant_count;
    double exact_speedup, tolerant_speedup;
    double tolerant_error; /* of the fastest variant */
    char genome_sha256[EV_SHA256_HEX];
    char ptx_sha256[EV_SHA256_HEX];
} tune_row;

/* Audits of a shortcut; refuted / made is the regret of the shortcut. */
typedef struct tune_audit {
    uint64_t made, refuted;
} tune_audit;

/* Macros at which an unmodified start is wrong. */
typedef struct tune_wrong {
    char kernel[96];
    wrong_setting setting;
} tune_wrong;

typedef struct tune_report {
    uint64_t seed;
    size_t row_count;
    tune_row *rows;
    tune_wrong *wrong; /* settings that were left out of the search */
    size_t wrong_count;
    uint64_t evaluations, duplicates, rejected[GATE_COUNT];
    uint64_t recalled; /* children whose times were those of an earlier run (tune_options.from) */
    uint64_t duplicates_by[SEARCH_HASHES]; /* by the key that hit */
    uint64_t memoised_by[SEARCH_HASHES];   /* the same for SEARCH_MEMOISED */
    /* Children by origin (search_origin), and audits of the shortcut that gives it. */
    uint64_t estimated, filtered, screened;
    tune_audit memo_audits, filter_audits, screen_audits;
    uint64_t estimates_audited, estimates_beaten, estimates_missed;
    uint64_t failed_workers;
    unsigned workers;      /* screeners and timers together */
    unsigned timers;       /* workers that time on GPUs; 0: there are no such roles */
    uint64_t let_through;  /* children that were timed without shortcuts, since a timer was idle */
    double search_seconds; /* of the searches, without opening and finishing */
    double timer_seconds;  /* busy time of all timers during the searches */
    double seconds;
    double cpu_seconds;         /* of the coordinator, its workers and their compilers */
    uint64_t coordinator_bytes; /* peak resident memory of this process */
    uint64_t records_bytes;     /* final size of the records */
    json_t *portfolios;      /* [{"kernel", "shapes": [...], ...}] as finish_portfolio.c makes them,
                                without the code of the variants; NULL: none */
    json_t *genomes;         /* of the winners, by genome_sha256; NULL: there are no rows */
    double stage_seconds[8]; /* CPU by tune_stage_names, summed over workers */
    bool stopped;            /* by *stop */
} tune_report;

extern const char *const tune_stage_names[8]; /* "mutate", "build", "load", "safe", "accurate",
                                                 "timed", "promote", "coordinator" */

/* Runs the search. EV_BAD: bad task, device or start, records of another version, or --resume with
 * other tasks or another seed. EV_INFRA: workers keep dying without a candidate's fault, or the
 * disk is full. On EV_OK, free `out` by tune_report_free. */
ev_status tune_run(const tune_options *options, tune_report *out, ev_error *err) EV_CHECKED;
/* The share of the search time that timers were busy; 0: there were none. */
double tune_timer_share(const tune_report *report);
/* Timers, screeners and their work as JSON: a new reference. NULL: out of memory. */
json_t *tune_timers_json(const tune_report *report);
/* The wrong settings as a JSON array: a new reference. NULL: out of memory. */
json_t *tune_wrong_json(const tune_report *report);
void tune_report_free(tune_report *report);

#endif
