/* Bench: Evoke's own speed, for `evoke bench`. */
#ifndef TUNER_BENCH_BENCH_H
#define TUNER_BENCH_BENCH_H

#include "fitness/device/device.h"
#include "tuner/cli/cmd.h"

#include <stddef.h>

/* Edits, verifies, optimises and emits random variants of every shipped task's first start. Prints
 * CPU milliseconds a variant, and Evoke's share beside LLVM's. */
ev_status bench_compile(cmd_context *c, ev_error *err) EV_CHECKED;
/* Thread instructions a second of the virtual machine, kernel by kernel. */
ev_status bench_vm(cmd_context *c, ev_error *err) EV_CHECKED;
/* Variants a second through a whole search over the shipped tasks. */
ev_status bench_search(cmd_context *c, ev_error *err) EV_CHECKED;
/* All strategies on the same budget, over tasks, starts and seeds. */
ev_status bench_strategies(cmd_context *c, ev_error *err) EV_CHECKED;

/* The cost of the timing model: median CPU seconds of a launch of a kernel of bench vm, on the
 * virtual machine alone and with the model, without and with shadow checks. Each kernel has two
 * rows: with repeated blocks recalled, and with all blocks followed. `only`: that kernel alone;
 * NULL: all, at most BENCH_OVERHEAD_MOST / 2. */
#define BENCH_OVERHEAD_MOST 32
typedef struct bench_overhead {
    const char *kernel;
    bool follows_all;
    double vm_seconds, model_seconds;              /* medians */
    double checked_seconds, checked_model_seconds; /* the same with all checks */
    double more, checked_more; /* median over the rounds of time with / time without the model */
    size_t rounds;
} bench_overhead;
ev_status bench_vm_overhead(device *d, const char *only, bench_overhead out[BENCH_OVERHEAD_MOST],
                            size_t *count, ev_error *err) EV_CHECKED;

/* The timing model against measurements of real GPUs: error and rank correlation. */
ev_status bench_model(cmd_context *c, ev_error *err) EV_CHECKED;

/* Random variants timed on a device and by the model: the rank correlation of both. */
ev_status bench_rank(cmd_context *c, ev_error *err) EV_CHECKED;

/* Opening, verifying and resolving made-up bundles of many variants. */
ev_status bench_bundle(cmd_context *c, ev_error *err) EV_CHECKED;

/* The tasks of a bench: that of --only, or all shipped ones. Free with task_list_free. */
ev_status bench_tasks(const cli_args *args, char ***paths, size_t *count, ev_error *err) EV_CHECKED;

/* Mean; the quantile at `share` (sorts the values); standard deviation. */
double bench_mean(const double *values, size_t count);
double bench_quantile(double *values, size_t count, double share);
double bench_deviation(const double *values, size_t count);

#endif
