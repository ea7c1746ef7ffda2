/* Earlier: what a search begins with from an earlier result, a bundle or records (evoke tune
 * --from): genomes of the same kernel and, where nothing else differs, times.
 *
 * Genomes may come from another shape, GPU or version of Evoke. Those that do not fit the task's
 * sources any more are left out or stopped at a gate. Times are taken from records alone, of a run
 * on the same virtual machine by the same versions of Evoke and LLVM with the same task: then a
 * score is a function of the code and its launch. Measured times are always taken anew. */
#ifndef TUNER_RUN_EARLIER_H
#define TUNER_RUN_EARLIER_H

#include "base/hash.h"
#include "base/status.h"
#include "base/str.h"
#include "fitness/gates/score.h"
#include "ir/genome.h"
#include "kernels/task.h"
#include "tuner/search/search.h"

#include <stdbool.h>
#include <stddef.h>

#define EARLIER_MOST 48 /* genomes of one kernel, the promoted ones first */

typedef struct earlier earlier;

/* Reads a bundle (a folder, or a tar) or records. EV_BAD: it is neither, it is damaged, or of a
 * format that this version does not read. */
ev_status earlier_open(const char *path, earlier **out, ev_error *err) EV_CHECKED;
void earlier_free(earlier *e); /* NULL is fine */
const char *earlier_path(const earlier *e);
ev_sha256 earlier_sha256(const earlier *e);             /* of all its genomes */
bool earlier_has(const earlier *e, const char *kernel); /* whether it has a genome of the kernel */

/* Which genomes may be taken. */
typedef struct earlier_filter {
    const task *t;
    const char *start; /* "all", or the name of one; NULL: all */
    bool bold, structure;
} earlier_filter;

/* The genomes of the task's kernel, at most EARLIER_MOST in `out`, each a new reference. `skipped`
 * receives the reason of each that was left out, separated by newlines. */
ev_status earlier_genomes(const earlier *e, const earlier_filter *filter,
                          const ir_genome *out[EARLIER_MOST], size_t *count, ev_str *skipped,
                          ev_error *err) EV_CHECKED;

/* Makes the times of the task's kernel known, if they hold for this run, which `identity`
 * describes (records_create). *known: their number. */
ev_status earlier_use_times(earlier *e, const task *t, const json_t *identity, size_t *known,
                            ev_error *err) EV_CHECKED;
/* The score of a genome; *found: it is known. */
ev_status earlier_score(earlier *e, const ir_genome *genome, score *s, bool *found,
                        ev_error *err) EV_CHECKED;
/* Forgets the times: they are of another timing model. */
void earlier_drop_times(earlier *e);
/* Whether the time of a child is known by this hash of its result: genome or PTX. */
bool earlier_knows(const earlier *e, const child_result *r, search_hash by);
/* Fills in the hashes and the outcome of such a child. *s: its score. */
ev_status earlier_recall(earlier *e, child_result *r, score *s, ev_error *err) EV_CHECKED;

#endif
