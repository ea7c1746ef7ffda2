/* Prior: what a search expects of its arms before it has tried them, from the records of earlier
 * runs.
 *
 * The file is what `evoke edits RECORDS --json` prints: under "edits" an object for each arm, with
 * "edit" (its name), "drawn" and "valid" (counts of children). Other keys are ignored. */
#ifndef TUNER_SEARCH_PRIOR_H
#define TUNER_SEARCH_PRIOR_H

#include "base/hash.h"
#include "base/status.h"
#include "tuner/search/draw.h"

typedef struct prior {
    double odds[ARM_COUNT]; /* share of an arm's children that are expected to be new and right */
    ev_sha256 sha256;       /* of the file */
} prior;

/* Reads a prior. An arm that the file lacks, or that was never drawn, gets even odds. EV_BAD: the
 * file cannot be read, is not of that form, or names an arm that does not exist. */
ev_status prior_read(const char *path, prior *out, ev_error *err) EV_CHECKED;

#endif
