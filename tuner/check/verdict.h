/* Verdicts of a check: which kind of regression a finding is, and what a kernel comes to. */
#ifndef TUNER_CHECK_VERDICT_H
#define TUNER_CHECK_VERDICT_H

#include "bundle/reader.h"
#include "fitness/gates/fitness.h"

#include <jansson.h>
#include <stdbool.h>

typedef enum check_verdict {
#define CHECK_VERDICT(id, name, meaning) CHECK_##id,
#include "tuner/check/verdicts.def"
#undef CHECK_VERDICT
    CHECK_VERDICT_COUNT
} check_verdict;

const char *check_verdict_name(check_verdict verdict);
const char *check_verdict_meaning(check_verdict verdict);

/* What a result at a case is held against. */
typedef struct check_record {
    const bundle_variant *v; /* NULL: nothing is recorded, of a task */
    bool is_same_model;      /* this Evoke wrote the record, for the device that ran: modelled times
                                and errors are exactly those of the record */
    bool is_same_oracle;     /* and errors are over the same answers */
    bool is_measured;        /* the times of the result */
} check_record;

#define CHECK_REASON_BYTES 600

/* Compares a result that passed with the record of the case, and says in `reason` what differs.
 * Errors count as equal within a millionth of themselves, as libraries of mathematics differ in
 * the last bit. Times of another model, or measured ones, count against a variant if it was faster
 * than the baseline and now is slower, by both intervals. */
check_verdict check_against_record(const check_record *record, const char *case_name,
                                   const fitness_verdict *now, double baseline_ns,
                                   char reason[CHECK_REASON_BYTES]);

/* True: the row tells of what was not checked, by its verdict; it is no finding. */
bool check_is_skipped(const json_t *row);

/* Marks a row as a finding: "verdict": "fail", "kind" and "reason". Bytes of the reason beyond
 * ASCII become '?', so that JSON takes it. */
void check_mark(json_t *row, check_verdict kind, const char *reason);

/* {"kernel", "verdict", and the number of findings of each kind} of each kernel, in the order of
 * their first rows; "verdict" is a check_verdict's name. A new reference, NULL: out of
 * memory. */
json_t *check_kernels(const json_t *rows, const json_t *replays, const json_t *stresses);

#endif
