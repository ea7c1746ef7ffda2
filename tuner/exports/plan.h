/* Plan: a network's table with the bundle's kernels standing in for layers, before and after, and
 * the account of each time. Dally, Chakra and DLIO are written from it. */
#ifndef TUNER_EXPORTS_PLAN_H
#define TUNER_EXPORTS_PLAN_H

#include "base/str.h"
#include "bundle/reader.h"
#include "tuner/exports/exports.h"
#include "tuner/exports/workload.h"

typedef struct plan {
    const exports_request *request;
    ev_arena *arena;
    bundle *bundle;
    const char *gpu; /* id */
    network network;
    workload before, after;
    double before_ns, after_ns; /* compute of an iteration */
    size_t taken;               /* times from the bundle */
    size_t kept;                /* other times that are not 0 */
    size_t slower;              /* of those taken */
    size_t measured;            /* of those taken */
    size_t absent;              /* entries of the network whose layer the table lacks */
    json_t *layers;             /* the account: an object for each time */
} plan;

/* Free by plan_free, also after a failure. EV_BAD: an input is missing or wrong, the bundle has
 * none of the network's kernels, or the table none of its layers. */
ev_status plan_make(const exports_request *r, plan *out, ev_error *err) EV_CHECKED;
void plan_free(plan *p);
/* Warns on request->warn of what a reader of the export has to know: modelled times above all. */
void plan_warn(const plan *p);

/* What the times from the bundle are: "modelled", "measured", "mixed"; "published": there are none.
 */
const char *plan_kind(const plan *p);
/* after_ns / before_ns; 1 where both are 0, 0 where before_ns alone is 0. */
double plan_factor(const plan *p);

/* Writes FILE.notes.json beside r->out: every time with its source, the totals, and the share of
 * communication before and after. Takes `more` (may be NULL), keys of the format. The path is
 * appended to the summary's files. */
ev_status plan_write_notes(const plan *p, const char *format, json_t *more, json_t *files,
                           ev_error *err) EV_CHECKED;
/* r->out without its ending, and `ending`; in the arena; NULL: out of memory. */
const char *plan_beside(const plan *p, const char *ending);
/* The summary: {"to", "files", "lines", ...}. Takes `files`. NULL: out of memory. */
json_t *plan_summary(const plan *p, const char *format, json_t *files);

#endif
