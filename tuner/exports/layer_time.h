/* Layer_time: how long the bundle's kernel takes for a layer, at the layer's own shape.
 *
 * The bundle's resolver chooses the variant, as it does for a scheduler. A time that the bundle
 * records for the GPU at exactly that shape is taken from there; otherwise the timing model runs
 * the variant at that shape now. */
#ifndef TUNER_EXPORTS_LAYER_TIME_H
#define TUNER_EXPORTS_LAYER_TIME_H

#include "base/arena.h"
#include "bundle/reader.h"
#include "tuner/exports/network.h"

#include <stdbool.h>

typedef struct layer_time {
    bool is_found;
    const char *why;         /* not found: why the bundle has no time */
    double launch_ns;        /* of one launch */
    uint64_t launches;       /* in an iteration */
    const char *kind;        /* "modelled" or "measured" */
    const char *how;         /* where the time is from, in words */
    const bundle_choice *of; /* what the resolver chose */
    const char *shape;       /* of a launch, "cin=64 cout=64": in the arena */
} layer_time;

typedef struct layer_times layer_times; /* remembers the times of equal launches */

/* Borrows bundle, arena and gpu_id, which is that of a variant. */
ev_status layer_times_open(const bundle *b, ev_arena *arena, const char *gpu_id, layer_times **out,
                           ev_error *err) EV_CHECKED;
void layer_times_close(layer_times *lt); /* NULL is fine */

/* A layer that the bundle has no time for is no error. EV_BAD: the shape lacks a number that the
 * kernel has. */
ev_status layer_times_find(layer_times *lt, const network_layer *layer, layer_time *out,
                           ev_error *err) EV_CHECKED;

/* The GPU of the bundle's variants: `asked`, or the only one. EV_BAD: there are several, or not
 * that one; the message lists them. */
ev_status layer_times_gpu(const bundle *b, const char *asked, const char **out,
                          ev_error *err) EV_CHECKED;

#endif
