/* Reader: opens a bundle, checks every hash, and picks the variant for a GPU and a shape.
 *
 * For a scheduler or runtime: links base only, neither LLVM nor SQLite. A bundle owns all it hands
 * out, PTX texts included, until bundle_close; it is read-only after opening. */
#ifndef BUNDLE_READER_H
#define BUNDLE_READER_H

#include "base/status.h"
#include "bundle/reader_types.h"

typedef struct bundle bundle;

/* Reads the manifest and holds every file against its hash. EV_BAD: no bundle, a schema version
 * this reader does not know, bad JSON (line and column), a missing file, a file whose hash differs
 * (named). */
ev_status bundle_open(const char *path, bundle **out, ev_error *err) EV_CHECKED;
void bundle_close(bundle *b); /* NULL is fine */

const char *bundle_path(const bundle *b);
size_t bundle_kernel_count(const bundle *b);
const bundle_kernel *bundle_kernel_at(const bundle *b, size_t index);  /* by name, ascending */
const bundle_kernel *bundle_find(const bundle *b, const char *kernel); /* NULL: none */

/* How near to the asked-for GPU a choice is: one row each of bundle/reader_rungs.def, best first.
 */
typedef enum bundle_rung {
#define BUNDLE_RUNG(id, name, meaning) BUNDLE_RUNG_##id,
#include "bundle/reader_rungs.def"
#undef BUNDLE_RUNG
    BUNDLE_RUNG_COUNT
} bundle_rung;

const char *bundle_rung_name(bundle_rung rung);
const char *bundle_rung_meaning(bundle_rung rung);

const char *bundle_verdict_name(bundle_verdict verdict);
const char *bundle_verdict_meaning(bundle_verdict verdict);

/* The qualification that counts on a GPU (its id or its driver's name; NULL: not known): the last
 * measured one, else the last modelled one. NULL: there is none. */
const bundle_qualified *bundle_qualification(const bundle_variant *v, const char *gpu);
/* Why a variant is not handed out on that GPU; NULL: it is. */
const char *bundle_disabled(const bundle_variant *v, const char *gpu);
/* Geometric mean of the speed-ups over the baseline: of the qualification that counts on that GPU,
 * else of the tuning. 1 where no time is known. */
double bundle_gain(const bundle_variant *v, const char *gpu);

typedef struct bundle_request {
    const char *kernel;
    const char *gpu; /* id ("h200") or the driver's name for it; NULL: not known */
    int sm;          /* compute capability x 10 */
    const bundle_number *shape;
    size_t shape_count;
} bundle_request;

typedef struct bundle_choice {
    const bundle_kernel *kernel;
    const bundle_variant *variant;
    bundle_rung rung;
    /* The variant that would have been chosen were it not disabled, and why it is; NULL: none. */
    const bundle_variant *passed_over;
    const char *why;
} bundle_choice;

/* The variant on the best rung that was validated for the shape; of several on one rung the one
 * with the greatest speed-up. Where there is none, or they are disabled, an unmodified start that
 * qualified on this very GPU. The baseline answers for every other shape. EV_BAD: no such kernel
 * (with those there are), a name of the shape that is missing, or nothing that the compute
 * capability can run. */
ev_status bundle_resolve(const bundle *b, const bundle_request *request, bundle_choice *out,
                         ev_error *err) EV_CHECKED;

#endif
