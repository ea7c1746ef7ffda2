/* Qualify, the rule: the verdict on a variant from the rows of its trial. */
#ifndef TUNER_RUN_QUALIFY_RULE_H
#define TUNER_RUN_QUALIFY_RULE_H

#include "bundle/reader_types.h"
#include "tuner/run/qualify_trial.h"

/* Largest relative excess of a variant's median over a rival's where their intervals overlap, or
 * are points. */
#define QUALIFY_SLACK 0.01

/* Whether a variant is slower than a rival, and must not be shipped. It is where its whole interval
 * lies above the rival's, or where the intervals overlap, or are points as modelled times are, and
 * its median exceeds the rival's by more than QUALIFY_SLACK. */
bool qualify_loses(const bundle_time *own, const bundle_time *rival);

/* The verdict at one case; `reason` is "" where the variant passes. */
bundle_verdict qualify_judge(const trial_row *row, const task_case *at,
                             char reason[QUALIFY_REASON_BYTES]);

/* The smaller of the speed-ups over the baseline and over the start; 0: the case was not timed. */
double qualify_gain(const bundle_trial *t);

#endif
