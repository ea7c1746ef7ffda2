/* What the files of the report share. */
#ifndef TUNER_REPORT_INSIDE_H
#define TUNER_REPORT_INSIDE_H

#include "base/json.h"
#include "base/status.h"
#include "base/str.h"
#include "fitness/gates/score.h"
#include "fitness/model/model.h"
#include "kernels/task.h"
#include "tuner/report/report.h"
#include "tuner/report/tallies.h"
#include "tuner/run/records.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPORT_NO_PARENT UINT64_MAX
#define REPORT_GATES 8 /* rows of report_task.stopped */

/* A child that passed all gates of the search. */
typedef struct report_child {
    uint64_t number;
    uint64_t parent; /* the faster one that passed; REPORT_NO_PARENT: none */
    double seconds;  /* since the search began */
    double ns;       /* the weighted time of the search's cases */
    double error;
    bool is_bold;
    char operators[60]; /* that made it */
} report_child;

/* Children that a gate stopped. */
typedef struct report_stopped {
    char gate[16];
    uint64_t count;
} report_stopped;

/* One task of the run. */
typedef struct report_task {
    const char *kernel;           /* borrowed */
    const records_winner *winner; /* borrowed; NULL: there is none yet */
    ev_json *rows;                /* of the final table; NULL: there is no winner yet */
    task *task;                   /* NULL: not opened; then `why` says why not */
    char why[512];
    report_child *children; /* in the order of their numbers */
    size_t count, capacity;
    uint64_t evaluations;
    double seconds;
    report_stopped stopped[REPORT_GATES];
    size_t stopped_count;
    tallies edits;
} report_task;

/* Reads the children of task `index`. `winner` NULL: it has none yet. */
ev_status report_task_read(records *r, size_t index, const char *kernel,
                           const records_winner *winner, report_task *out,
                           ev_error *err) EV_CHECKED;
void report_task_free(report_task *t);

/* Opens the task of the winner. A task that is no longer there, or is another one by now, is no
 * failure: t->why says so. EV_INFRA: memory, or the disk. */
ev_status report_task_open(report_task *t, ev_error *err) EV_CHECKED;

/* Time of the first start, unmodified, at the search's cases; 0: not known. */
double report_start_ns(const report_task *t);
/* The fastest child; a preserving one if there is any. NULL: none. */
const report_child *report_fastest(const report_task *t);
const report_child *report_find(const report_task *t, uint64_t number); /* NULL: it did not pass */

/* Marks in `on`, which has t->count elements, the children that no other child beats in both time
 * and error. Of equal ones the first is marked. EV_INFRA: out of memory. */
ev_status report_mark_front(const report_task *t, bool *on, ev_error *err) EV_CHECKED;

/* Where the model sees the time of one variant go. */
typedef struct report_account {
    double ns;
    double peak[MODEL_TERM_COUNT];  /* share of the time that a unit needs at its peak */
    double stall[MODEL_TERM_COUNT]; /* share of the warps' waiting; sums to 1 */
    double dram_bytes;
    uint32_t registers, warps, most_warps; /* a thread; an SM */
} report_account;

typedef struct report_accounts {
    bool is_known;
    char why[512]; /* why not */
    char at[96];   /* the case */
    report_account baseline, winner;
} report_accounts;

/* Runs baseline and winner at the first case of the table. A task or a device that is not there is
 * no failure: out->why says so. EV_INFRA: memory, or the device. */
ev_status report_account_read(const report_task *r, report_accounts *out, ev_error *err) EV_CHECKED;

/* ---- plots: SVG with a title and a description for screen readers ---- */

/* The best speed-up so far over evaluations, or over seconds. */
void report_plot_progress(const report_task *t, bool by_seconds, ev_str *out);
/* Time against error of all children, with the front marked. EV_INFRA: out of memory. */
ev_status report_plot_front(const report_task *t, ev_str *out, ev_error *err) EV_CHECKED;
/* Where the children of the search ended. */
void report_plot_gates(const report_task *t, ev_str *out);

/* Shares of the model's terms, of the baseline and of the winner; terms below 1 % are left out. */
void report_plot_terms(const char *title, const double baseline[MODEL_TERM_COUNT],
                       const double winner[MODEL_TERM_COUNT], ev_str *out);

/* ---- text and tables ---- */

/* Baseline, hand-tuned and tuned variant of each timed case under the roofs of the GPU. Nothing, if
 * the task is not open or declares no operations, or no description is of the GPU. EV_INFRA: out of
 * memory. */
ev_status report_plot_roofline(const report_task *t, ev_str *out, ev_error *err) EV_CHECKED;

/* ---- the winner's edits ---- */

/* The list of the edits, each with its source line, its share and its code before and after, as far
 * as these are known. EV_INFRA: memory, or a process that builds. */
ev_status report_show_edits(const report_task *t, ev_str *out, ev_error *err) EV_CHECKED;
/* Appends a unified diff without the names of its sides, shortened. */
void report_show_diff(const char *diff, ev_str *out);

/* What the winner does, where its time goes, and its roofline, of a task that is open or whose
 * `why` is set. EV_INFRA: memory, the device, or a process that builds. */
ev_status report_show_winner(const report_task *t, ev_str *out, ev_error *err) EV_CHECKED;

/* Appends text with the characters of HTML written as entities. */
void report_escape(ev_str *out, const char *text);

/* `label`: what the table is of, for screen readers. `titles`: NULL-terminated; a column whose
 * title begins with '>' has numbers. */
void report_begin_table(ev_str *out, const char *label, const char *const titles[]);
void report_end_table(ev_str *out);
void report_text_cell(ev_str *out, const char *text);
/* `value` sorts, `text` is shown. */
void report_number_cell(ev_str *out, double value, const char *text);
void report_time_cell(ev_str *out, double ns);
void report_real_cell(ev_str *out, double value, const char *format) EV_PRINTF(3, 0);
void report_count_cell(ev_str *out, uint64_t count);

/* ---- the page ---- */

typedef struct report_head {
    const char *device, *gpu_name; /* NULL: not known */
    uint64_t seed;
    const report_state *state; /* NULL: nothing is said of it */
} report_head;

void report_begin_page(const report_head *head, ev_str *out);
void report_end_page(const report_head *head, ev_str *out);

#endif
