/* Qualify, the rule: what a trial's rows say of a variant. */
#ifndef TUNER_RUN_QUALIFY_RULE_H
#define TUNER_RUN_QUALIFY_RULE_H

#include "bundle/reader_types.h"
#include "tuner/run/qualify_trial.h"

/* Where the intervals meet, or there are none, a median that is longer by more than this share
 * loses. */
#define QUALIFY_SLACK 0.01

/* Nothing slower than what was there may be handed out. A variant loses to a rival where its whole
 * interval is above the rival's, or where they meet, or are points as modelled times are, and
 * its median is longer by more than QUALIFY_SLACK. */
bool qualify_loses(const bundle_time *own, const bundle_time *rival);

/* The verdict at one case; `reason` is "" for a pass. */
bundle_verdict qualify_judge(const trial_row *row, const task_case *at,
                             char reason[QUALIFY_REASON_BYTES]);

/* The least speed-up over the baseline and the start at a case; 0: it was not timed. */
double qualify_gain(const bundle_trial *t);

#endif
