/* Accuracy: the distance of an output from the trusted answer, and whether it is within the limits.
 *
 * Sums are compensated (Neumaier 1974) and taken over absolute values. An output with an unexpected
 * NaN or infinity never passes. Begin a comparison once a case, add outputs or ranges of their
 * elements, and end it. */
#ifndef FITNESS_GATES_ACCURACY_H
#define FITNESS_GATES_ACCURACY_H

#include "base/status.h"
#include "base/str.h"
#include "base/type.h"
#include "fitness/gates/score.h"

#include <stdint.h>

/* A sum and its rounding error. */
typedef struct accuracy_sum {
    double sum, lost;
} accuracy_sum;

void accuracy_sum_add(accuracy_sum *s, double term);
double accuracy_sum_of(const accuracy_sum *s);

/* Limits. 0 turns a limit off, except relative_l2: 0 then asks for an exact match. */
typedef struct accuracy_limits {
    double relative_l2;
    double scaled_max;
    double max_abs;
    double depth;       /* K of the scaled maximum; at least 1 */
    double baseline_l2; /* the baseline's own relative L2 at this case */
    bool takes_nan;     /* a NaN is right where the answer is NaN */
    /* Whole numbers that may differ from the answer. With max_abs, all may, by so much. */
    uint64_t inexact_most;
    /* An output with limits of its own may be as far off as the start's, times this; 0: it may not.
     */
    double own_factor;
    double baseline_factor; /* relative L2 at most this x baseline_l2, with a floor of one ulp */
} accuracy_limits;

/* Elements of one output, `count` of each array. */
typedef struct accuracy_part {
    ev_type type;
    const void *got;
    const double *want;
    /* The answer of outputs of 64-bit whole numbers, which `want` rounds beyond 2^53. An element of
     * which `want` is another number has no exact answer. NULL: none has. */
    const uint64_t *exact;
    const double *scale;      /* sum of |terms| an element, 0 if unknown; NULL: all unknown */
    const uint8_t *written;   /* 0: never written; NULL: all written */
    const uint8_t *must_zero; /* 1: must be exactly zero; NULL: none */
    uint64_t row, stride; /* the elements behind `row` of each `stride` are padding, which is not
                             compared and must not be written; 0: none are */
    uint64_t count;
} accuracy_part;

/* One output, compared. */
typedef struct accuracy_output {
    double relative_l2;
    /* u sqrt(K) |scale| / |want| (L2 norms): about the relative error of plain sums of its terms,
     * which is large where terms cancel; 0: no scale is known. */
    double condition;
    double max_abs; /* largest error */
    /* The largest of its own errors over their limits; over 1: it does not pass. Errors that are
     * held to one limit over all outputs do not count. */
    double beyond;
} accuracy_output;

/* One comparison under way. The relative L2 is taken output by output. */
typedef struct accuracy_check {
    accuracy_limits limits;
    double common_abs; /* largest error of the outputs without limits of their own */
    /* Of the output under way: whether it has limits of its own, these, and what was found. */
    bool has_own;
    double relative_l2, max_abs, found_abs;
    uint64_t found_inexact;
    accuracy worst;
    accuracy_sum error_squares, want_squares; /* of the output under way */
    double scale_squares; /* the same; not compensated, all terms are positive */
    /* Relative L2 may also be `conditioned` x the output's condition, or `allowed`; 0: it may not.
     * accuracy_begin_output clears both. */
    double conditioned, allowed;
    ev_type type;
    double ulp_one, ulp_least, ulp_most; /* of the type: at 1, at 0, beyond its largest number */
} accuracy_check;

void accuracy_begin(accuracy_check *check, const accuracy_limits *limits);
void accuracy_begin_output(accuracy_check *check, ev_type type);
/* Behind accuracy_begin_output: the output's own limits, in place of the check's. Whole numbers
 * must be exact unless max_abs is above 0. */
void accuracy_own(accuracy_check *check, double relative_l2, double max_abs);
void accuracy_add(accuracy_check *check, const accuracy_part *part);
accuracy_output accuracy_end_output(accuracy_check *check);
accuracy accuracy_end(const accuracy_check *check);

/* Appends one line on why `a` fails: the first metric beyond its limit. */
void accuracy_explain(const accuracy *a, const accuracy_limits *limits, ev_str *out);

#endif
