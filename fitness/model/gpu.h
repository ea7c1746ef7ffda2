/* GPU descriptions: one JSON file a GPU model in fitness/model/gpus/, each number with its source.
 */
#ifndef FITNESS_MODEL_GPU_H
#define FITNESS_MODEL_GPU_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every key of a description: one row each of fitness/model/gpu_keys.def (key, unit, range, default
 * rule, doc). A file is an object with "name", "cc" ("9.0"), and for each number
 * {"v": NUMBER or null, "src": TEXT, "verified": BOOL, "note": TEXT}. All but "v" are optional. A
 * missing or null key takes its default. "driver_names" lists the names that drivers give this
 * model, each a whole name without the vendor ("A100-SXM4-80GB"). "calibrated", an object, is the
 * origin of a description by `evoke calibrate`; the loader ignores it. */
typedef enum gpu_key {
#define GPU_KEY(id, key, unit, low, high, otherwise, doc) GPU_##id,
#include "fitness/model/gpu_keys.def"
#undef GPU_KEY
    GPU_KEY_COUNT
} gpu_key;

typedef struct gpu_number {
    double value;
    const char *source; /* the text of the description's source, "measured", or "derived: ..." */
    bool is_checked; /* the figure was read in its source ("verified"), not remembered or derived */
} gpu_number;

typedef struct gpu {
    const char *id;                  /* "h200", as in "vm:h200" */
    const char *name;                /* "NVIDIA H200 SXM 141GB" */
    const char *const *driver_names; /* names given by drivers, without the vendor: "H200" */
    size_t driver_name_count;
    int sm;                            /* compute capability x 10: 90 */
    gpu_number numbers[GPU_KEY_COUNT]; /* all present; unknown ones are derived, as `source` says */
} gpu;

/* Loads a description by id ("h200") from HOME/fitness/model/gpus, or by path (has a slash or ends
 * in .json). EV_BAD: an unknown model (with the known ones), or a bad description (line and
 * column). */
ev_status gpu_load(const char *id_or_path, gpu **out, ev_error *err) EV_CHECKED;
void gpu_free(gpu *g); /* NULL is fine */
/* Ids of the shipped descriptions, sorted. */
ev_status gpu_list(char ***ids, size_t *count, ev_error *err) EV_CHECKED;
void gpu_list_free(char **ids, size_t count);
double gpu_get(const gpu *g, gpu_key key);
const char *gpu_key_name(gpu_key key); /* "sm_count" */
const char *gpu_key_unit(gpu_key key); /* "" for a count */
const char *gpu_key_doc(gpu_key key);
void gpu_key_range(gpu_key key, double *low, double *high); /* accepted values */
bool gpu_key_find(const char *name, gpu_key *out);          /* false: no such key */

#endif
