/* Stress: tries a candidate at drawn shapes and data, within the ranges where it may be used, for
 * `evoke check --stress` and for winners.
 *
 * For each drawn shape the data are fresh, and the candidate runs under several schedules and with
 * each variation of the data (kernels/variations.def). The first failure ends the stress. It is
 * then shrunk to the smallest case that still fails, as an object for task.json's `cases`.
 *
 * The drawing is a pure function of task, ranges, GPU model and seed. */
#ifndef TUNER_STRESS_STRESS_H
#define TUNER_STRESS_STRESS_H

#include "base/launch_plan.h"
#include "base/status.h"
#include "fitness/gates/fitness.h"
#include "kernels/task.h"

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#define STRESS_SHAPES 100          /* the default of stress_limits.shapes */
#define STRESS_ELEMENTS 1000000000 /* of .elements: some ten seconds */

typedef struct stress_limits {
    uint32_t shapes;   /* at most so many are drawn */
    uint64_t elements; /* of all shapes with sizes of timed cases (reach.c), about; 0: none */
    double seconds;    /* after which no more are drawn; 0: no limit */
    uint64_t seed;
} stress_limits;

/* All pointers are borrowed. */
typedef struct stress_subject {
    const task *t;
    const char *device;         /* a virtual machine, or a GPU that has a twin there */
    const candidate *baseline;  /* the first start */
    const candidate *candidate; /* with its `origin`, if it has edits */
    const char *role;           /* for the report: "start", "variant", "genome" */
    const launch_range *ranges; /* of the shapes; NULL: those of the task's cases */
    size_t range_count;
} stress_subject;

/* Draws, runs and shrinks. *row is a new reference: {"kernel", "role", "start", "device", "seed",
 * "shapes", "runs", "unfit", "verdict", "unreached"}, and of a failure "reason", "case", "output",
 * "index", "got" and "want". Returns early once ev_stop_asked. EV_BAD: the device is no virtual
 * machine and has no twin. */
ev_status stress_run(const stress_subject *subject, const stress_limits *limits, json_t **row,
                     ev_error *err) EV_CHECKED;

#endif
