/* Merge: one content of several bundles, of several GPU models and several runs. */
#ifndef BUNDLE_MERGE_H
#define BUNDLE_MERGE_H

#include "base/arena.h"
#include "base/status.h"
#include "bundle/reader.h"

/* Why one of two variants for the same GPU model is left out: a row each of
 * bundle/merge_reasons.def.
 */
typedef enum merge_reason {
#define MERGE_REASON(id, words) MERGE_##id,
#include "bundle/merge_reasons.def"
#undef MERGE_REASON
    MERGE_REASON_COUNT
} merge_reason;

const char *merge_reason_words(merge_reason reason);

/* A variant that is left out, and the one that takes its place. Texts are borrowed. */
typedef struct merge_row {
    const char *kernel, *gpu;    /* the GPU's name */
    const char *kept, *left_out; /* the bundles */
    const char *sha256;          /* of the PTX that is left out */
    double kept_gain, left_gain; /* geometric means over the baseline at the cases that both time;
                                    0: there is none */
    merge_reason reason;
} merge_row;

typedef struct merged {
    bundle_content content;
    const merge_row *rows;
    size_t row_count;
} merged;

/* Merges bundles in their order; `out` borrows from them and from the arena. All variants for
 * different GPU models are kept. Of two for one model, the one that is no slower at every case that
 * both time, and may be used wherever the other may, takes the other's place; the earlier bundle's
 * wins a tie. Variants of which each is the faster at some shape are both kept. A measured variant
 * takes the place of a modelled one. Of baselines, the first for each compute capability is kept.
 * EV_BAD: the bundles have different tasks, or different files, of one name. */
ev_status bundle_merge(bundle *const *from, size_t count, ev_arena *arena, merged *out,
                       ev_error *err) EV_CHECKED;

#endif
