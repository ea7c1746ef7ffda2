/* Finds the shipped description of a GPU by the driver's whole name for it, its target and its
 * number of SMs. */
#ifndef FITNESS_MODEL_GPU_MATCH_H
#define FITNESS_MODEL_GPU_MATCH_H

#include "fitness/model/gpu.h"

/* A GPU as its driver reports it. */
typedef struct gpu_seen {
    const char *name; /* "NVIDIA A100-SXM4-80GB" */
    int sm;           /* 80 */
    int sm_count;
    uint64_t memory_bytes;
} gpu_seen;

typedef struct gpu_match {
    char id[64];    /* "a100" */
    int sm;         /* of the description */
    bool is_same;   /* the description is of this GPU model; false: of the nearest */
    char note[320]; /* if !is_same: what is missing, and the cure; else "" */
} gpu_match;

/* True if drivers give this GPU that name, with or without the vendor before it. */
bool gpu_is_named(const gpu *g, const char *name);
/* Matches among the given descriptions. false: every one is for a later target. */
bool gpu_match_among(gpu *const *all, size_t count, const gpu_seen *seen, gpu_match *out);
/* Matches among the shipped descriptions. EV_BAD: every one is for a later target. */
ev_status gpu_match_driver(const gpu_seen *seen, gpu_match *out, ev_error *err) EV_CHECKED;

#endif
