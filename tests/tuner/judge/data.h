/* Data of the judges: another generator than the corpora's, other seeds, within the task's domains.
 */
#ifndef TESTS_TUNER_JUDGE_DATA_H
#define TESTS_TUNER_JUDGE_DATA_H

#include "tests/tuner/judge/machine.h"

/* What the values of an input are like. */
typedef enum judge_mood {
    JUDGE_MIXED,    /* of both signs, with zeros */
    JUDGE_POSITIVE, /* in whole numbers: the upper half of the range */
    JUDGE_FEW,      /* five values, many of them equal */
    JUDGE_SPECIAL,  /* NaN, infinities, zeros of both signs, subnormal numbers; ends of the range */
    JUDGE_LARGE,    /* about 2^18; in whole numbers: sorted */
    JUDGE_SMALL,    /* about 2^-18; in whole numbers: one value */
    JUDGE_MOODS
} judge_mood;

/* Fills buffers and scalars that are no sizes. */
void judge_fill(judge_input *in, judge_mood mood, uint64_t seed);

#endif
