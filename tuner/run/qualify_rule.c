/* The rule by which a variant passes or is disabled. */
#include "tuner/run/qualify_trial.h"

#include "base/table.h"

#include <math.h>
#include <stdio.h>

/* Whether the times are points, as modelled times are. Differences between points say nothing about
 * noise. */
static bool is_point(const bundle_time *t) {
    return t->low_ns == t->high_ns;
}

bool qualify_loses(const bundle_time *own, const bundle_time *rival) {
    bool tells = !is_point(own) || !is_point(rival);
    if (tells && own->low_ns > rival->high_ns)
        return true;
    if (tells && own->high_ns < rival->low_ns)
        return false;
    return own->ns > rival->ns * (1 + QUALIFY_SLACK);
}

static bundle_verdict failure_of(const trial_row *row) {
    if (row->unjudged)
        return BUNDLE_VERDICT_UNJUDGED;
    if (row->stopped == GATE_EMIT)
        return BUNDLE_VERDICT_REFUSED;
    return row->stopped == GATE_SAFE ? BUNDLE_VERDICT_FAULT : BUNDLE_VERDICT_WRONG;
}

static void explain_loss(const bundle_time *own, const bundle_time *rival, const char *name,
                         const task_case *at, char reason[QUALIFY_REASON_BYTES]) {
    char mine[24], other[24];
    table_time(own->ns, mine);
    table_time(rival->ns, other);
    (void)snprintf(reason, QUALIFY_REASON_BYTES, "case %s: slower than %s: %s, %s (%.1f %% longer)",
                   at->name, name, mine, other, 100 * (own->ns / rival->ns - 1));
}

bundle_verdict qualify_judge(const trial_row *row, const task_case *at,
                             char reason[QUALIFY_REASON_BYTES]) {
    if (row->unjudged || row->stopped != GATE_NONE) {
        (void)snprintf(reason, QUALIFY_REASON_BYTES, "%s", row->reason);
        return failure_of(row);
    }
    char start[160];
    reason[0] = '\0';
    if (row->variant.ns > 0 && qualify_loses(&row->variant, &row->baseline)) {
        explain_loss(&row->variant, &row->baseline, "the baseline", at, reason);
        return BUNDLE_VERDICT_SLOWER;
    }
    if (row->start_name != NULL && qualify_loses(&row->beside_start, &row->start)) {
        (void)snprintf(start, sizeof start, "the unmodified start '%.100s'", row->start_name);
        explain_loss(&row->beside_start, &row->start, start, at, reason);
        return BUNDLE_VERDICT_SLOWER;
    }
    return BUNDLE_VERDICT_PASS;
}

double qualify_gain(const bundle_trial *t) {
    if (t->variant.ns <= 0)
        return 0;
    double gain = t->baseline.ns / t->variant.ns;
    return t->start_name != NULL ? fmin(gain, t->start.ns / t->beside_start.ns) : gain;
}
