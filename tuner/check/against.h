/* Against: what a bundle lost in comparison with an older one, by the records of both. */
#ifndef TUNER_CHECK_AGAINST_H
#define TUNER_CHECK_AGAINST_H

#include "base/status.h"
#include "bundle/reader.h"

#include <jansson.h>

/* Appends a row to `rows` for each timed case of the older bundle: {"kernel", "gpu", "case",
 * "time_kind", "old_ns", "new_ns", "old_error", "new_error", "verdict"}, for the best variant,
 * start or baseline of both at that case and GPU model. "verdict": "same", "better", "slower"
 * (measured times: by their intervals), "less accurate", or "lost": the kernel, the GPU model or
 * the case is not in the new bundle. Numbers that are not known are left out. Variants that are
 * disabled do not count. *worse: how many rows are slower, less accurate or lost. Times that are
 * measured in one bundle and modelled in the other are not compared, and make the row "lost".
 * `slack`: a time that is longer by at most this share of the older one is "same". */
ev_status check_bundles_against(const bundle *old, const bundle *now, double slack, json_t *rows,
                                size_t *worse, ev_error *err) EV_CHECKED;

#endif
