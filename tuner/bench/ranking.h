/* Ranking: how well modelled times rank configurations of one kernel, against measured times. */
#ifndef TUNER_BENCH_RANKING_H
#define TUNER_BENCH_RANKING_H

#include <stddef.h>

/* Times of one configuration, in one unit. A configuration that the model refuses has the modelled
 * time INFINITY: it ranks last. */
typedef struct ranking_pair {
    double silicon, model;
} ranking_pair;

/* Kendall's tau over the pairs of configurations whose measured times differ by at least the share
 * `apart` of the smaller one: (ordered alike - ordered otherwise) / pairs. Equal modelled times
 * count as neither. 0: there is no such pair. */
double ranking_tau(const ranking_pair *all, size_t count, double apart);
/* The same within the tenth that silicon runs fastest, rounded up. */
double ranking_tau_top(const ranking_pair *all, size_t count, double apart);
/* Share of the tenth that silicon runs fastest, rounded up, which is in the model's first tenth. */
double ranking_recall(const ranking_pair *all, size_t count);
/* Silicon's time of the best among the model's `first` configurations, over silicon's best, minus
 * one; silicon's worst time if these are all refused. Of equal modelled times, the earlier
 * configuration comes first. */
double ranking_regret(const ranking_pair *all, size_t count, size_t first);
/* The factor that modelled times are off by: the median of silicon / model, without those refused.
 * 1: all are refused. */
double ranking_scale(const ranking_pair *all, size_t count);
/* Mean of |model * scale / silicon - 1| without those refused, in percent. */
double ranking_mape(const ranking_pair *all, size_t count, double scale);

#endif
