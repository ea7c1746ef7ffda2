/* Which shipped GPU description is that of a GPU which a driver knows: by its whole name, its
 * target and its number of SMs. */
#ifndef FITNESS_MODEL_GPU_MATCH_H
#define FITNESS_MODEL_GPU_MATCH_H

#include "fitness/model/gpu.h"

/* What a driver says of a GPU. */
typedef struct gpu_seen {
    const char *name; /* "NVIDIA A100-SXM4-80GB" */
    int sm;           /* 80 */
    int sm_count;
    uint64_t memory_bytes;
} gpu_seen;

typedef struct gpu_match {
    char id[64];    /* "a100" */
    int sm;         /* of the description */
    bool is_same;   /* the description is of this GPU model; false: it is the nearest */
    char note[320]; /* where it isn't: what is missing and the cure; else "" */
} gpu_match;

/* Whether the name, with or without the vendor before it, is one that drivers give this GPU. */
bool gpu_is_named(const gpu *g, const char *name);
/* Among those descriptions; false: every one is for a later target. */
bool gpu_match_among(gpu *const *all, size_t count, const gpu_seen *seen, gpu_match *out);
/* Among those that ship. EV_BAD: every description is for a later target. */
ev_status gpu_match_driver(const gpu_seen *seen, gpu_match *out, ev_error *err) EV_CHECKED;

#endif
