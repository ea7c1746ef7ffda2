/* Helpers of the LSTM oracles: values with the scales of their errors. Private to kernels/.
 *
 * The scale of an output is its size plus the sizes of the terms of its sums, each times the
 * greatest slope on the way. Where terms cancel, a sum may be off by more than its value, and the
 * slope at the value says little about the slope at the sum that a kernel finds. So the slope is
 * the greatest within `reach` sizes of the value: by the mean value theorem, a kernel whose sums
 * are no further off than `reach` sizes has outputs no further off than `reach` scales. */
#ifndef KERNELS_ORACLES_LSTM_H
#define KERNELS_ORACLES_LSTM_H

#include <math.h>

typedef struct bounded {
    double value, scale;
} bounded;

typedef struct lstm_errors {
    double reach; /* error of a sum over its size, at most */
    double least; /* kernels may flush what is subnormal; of halves, what is subnormal is rounded */
} lstm_errors;

static inline double lstm_logistic(double x) {
    return 1.0 / (1.0 + exp(-x));
}

/* At x >= 0. tanh(x) is 2 logistic(2 x) - 1. */
static inline double lstm_logistic_slope(double x) {
    return exp(-x) / ((1.0 + exp(-x)) * (1.0 + exp(-x)));
}

/* Gate 0..3 (i, f, g, o), after its nonlinearity, of a sum and the size of its terms. */
static inline bounded lstm_gate(const lstm_errors *e, unsigned gate, double sum, double size) {
    double nearest = fmax(fabs(sum) - e->reach * size, 0); /* slopes are greatest at 0 */
    double value = gate == 2 ? tanh(sum) : lstm_logistic(sum);
    double slope = gate == 2 ? 4 * lstm_logistic_slope(2 * nearest) : lstm_logistic_slope(nearest);
    return (bounded){value, fabs(value) + slope * size + e->least};
}

/* Scale of a product of two inexact factors. */
static inline double lstm_product_scale(const lstm_errors *e, bounded a, bounded b) {
    return fabs(a.value) * b.scale + fabs(b.value) * a.scale + e->reach * a.scale * b.scale;
}

/* The cell behind a step, of the gates i, f, g and the cell before. */
static inline bounded lstm_cell(const lstm_errors *e, bounded i, bounded f, bounded g,
                                bounded before) {
    return (bounded){f.value * before.value + i.value * g.value,
                     lstm_product_scale(e, f, before) + lstm_product_scale(e, i, g) + e->least};
}

/* The output of gate o and the cell. */
static inline bounded lstm_output(const lstm_errors *e, bounded o, bounded cell) {
    bounded t = {tanh(cell.value), fabs(tanh(cell.value)) + fmin(cell.scale, 2 / e->reach)};
    return (bounded){o.value * t.value, lstm_product_scale(e, o, t) + e->least};
}

#endif
