/* Ranking: figures of merit for a model that ranks configurations. */
#include "tuner/bench/ranking.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int sign(double difference) {
    return (difference > 0) - (difference < 0);
}

/* Order by silicon; 0: too near to each other. */
static int silicon_order(const ranking_pair *a, const ranking_pair *b, double apart) {
    double low = fmin(a->silicon, b->silicon), high = fmax(a->silicon, b->silicon);
    return high - low < apart * low ? 0 : sign(a->silicon - b->silicon);
}

/* Infinite times are equal. */
static int model_order(const ranking_pair *a, const ranking_pair *b) {
    return a->model == b->model ? 0 : sign(a->model - b->model);
}

/* Place among all by one side, the first is 0. */
static size_t place_of(const ranking_pair *all, size_t count, size_t i, bool by_model) {
    size_t place = 0;
    for (size_t k = 0; k < count; k++) {
        int order =
            by_model ? model_order(&all[k], &all[i]) : sign(all[k].silicon - all[i].silicon);
        place += order < 0 || (order == 0 && k < i);
    }
    return place;
}

/* Tau over the configurations among silicon's first `most`. */
static double tau_of(const ranking_pair *all, size_t count, size_t most, double apart) {
    double alike = 0, pairs = 0;
    for (size_t i = 0; i < count; i++) {
        if (most < count && place_of(all, count, i, false) >= most)
            continue;
        for (size_t k = 0; k < i; k++) {
            int order = silicon_order(&all[i], &all[k], apart);
            if (order == 0 || (most < count && place_of(all, count, k, false) >= most))
                continue;
            alike += order * model_order(&all[i], &all[k]);
            pairs++;
        }
    }
    return pairs > 0 ? alike / pairs : 0;
}

static size_t tenth(size_t count) {
    return (count + 9) / 10;
}

double ranking_tau(const ranking_pair *all, size_t count, double apart) {
    return tau_of(all, count, count, apart);
}

double ranking_tau_top(const ranking_pair *all, size_t count, double apart) {
    return tau_of(all, count, tenth(count), apart);
}

double ranking_recall(const ranking_pair *all, size_t count) {
    size_t found = 0, most = tenth(count);
    for (size_t i = 0; i < count; i++)
        found += place_of(all, count, i, false) < most && isfinite(all[i].model) &&
                 place_of(all, count, i, true) < most;
    return count > 0 ? (double)found / (double)most : 0;
}

double ranking_regret(const ranking_pair *all, size_t count, size_t first) {
    double best = INFINITY, picked = INFINITY, worst = 0;
    for (size_t i = 0; i < count; i++) {
        best = fmin(best, all[i].silicon);
        worst = fmax(worst, all[i].silicon);
        if (isfinite(all[i].model) && place_of(all, count, i, true) < first)
            picked = fmin(picked, all[i].silicon);
    }
    return count > 0 ? fmin(picked, worst) / best - 1 : 0;
}

static int compare_numbers(const void *a, const void *b) {
    return sign(*(const double *)a - *(const double *)b);
}

double ranking_scale(const ranking_pair *all, size_t count) {
    double *ratios = calloc(count + 1, sizeof *ratios), scale = 1;
    size_t known = 0;
    for (size_t i = 0; i < count && ratios != NULL; i++) {
        if (isfinite(all[i].model))
            ratios[known++] = all[i].silicon / all[i].model;
    }
    if (known > 0) {
        qsort(ratios, known, sizeof *ratios, compare_numbers);
        scale = (ratios[(known - 1) / 2] + ratios[known / 2]) / 2;
    }
    free(ratios);
    return scale;
}

double ranking_mape(const ranking_pair *all, size_t count, double scale) {
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(all[i].model))
            continue;
        sum += fabs(all[i].model * scale / all[i].silicon - 1);
        known++;
    }
    return known > 0 ? 100 * sum / (double)known : 0;
}
