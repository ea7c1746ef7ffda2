/* Tallies: what became of the children that each edit or operator had a part in. */
#ifndef TUNER_REPORT_TALLIES_H
#define TUNER_REPORT_TALLIES_H

#include "base/status.h"
#include "tuner/run/records.h"
#include "tuner/search/draw.h"

#include <stddef.h>
#include <stdint.h>

/* Every child that is no duplicate is one of: stopped, worse, neutral, better; the last three are
 * valid. Neutral and better: by time, against the faster parent. */
typedef struct tally {
    uint64_t drawn, duplicates, valid, neutral, better;
} tally;

typedef struct tallies {
    tally arms[ARM_COUNT];
    double *ns; /* by child of the task that is read; 0: stopped */
    size_t known, capacity;
} tallies;

/* Adds a child of a search; children come in the order of their numbers. EV_INFRA: out of memory.
 */
ev_status tallies_note(tallies *t, const records_evaluation *e, ev_error *err) EV_CHECKED;
/* Before the children of another task. */
void tallies_next_task(tallies *t);
void tallies_free(tallies *t);

#endif
