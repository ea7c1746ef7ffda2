/* Network: which kernel computes which part of which layer, at which shape, read from a file. The
 * shipped networks are in corpora/networks; docs/exports.md describes the file. */
#ifndef TUNER_EXPORTS_NETWORK_H
#define TUNER_EXPORTS_NETWORK_H

#include "base/arena.h"
#include "base/status.h"
#include "bundle/reader_types.h"

#include <stddef.h>
#include <stdint.h>

/* The four times of a layer in an iteration: forward, gradient of the inputs, gradient of the
 * weights, update of the weights. */
typedef enum layer_phase {
    LAYER_FORWARD,
    LAYER_INPUT_GRADIENT,
    LAYER_WEIGHT_GRADIENT,
    LAYER_UPDATE,
    LAYER_PHASES
} layer_phase;

const char *layer_phase_name(layer_phase phase); /* "fwd", "ig", "wg", "update" */

/* One time of one layer that a kernel can stand in for. */
typedef struct network_layer {
    const char *name;
    layer_phase phase;
    const char *kernel;
    bundle_number *shape;
    size_t shape_count;
    const char *split;   /* the number of the shape that launches share; NULL: one launch has all */
    uint64_t launches;   /* in an iteration, each of the shape */
    const char *without; /* the part of the layer's work that the kernel leaves out; "": none */
} network_layer;

/* A layer of a network that needs no table of published times: all its times are 0. */
typedef struct network_row {
    const char *name;
    double allreduce_bytes;
} network_row;

typedef struct network {
    const char *name, *doc;
    uint64_t batch;
    double density;
    const network_layer *layers;
    size_t layer_count;
    const network_row *rows;
    size_t row_count;
} network;

/* Reads a shipped network by its name, or a file (the text has a slash or ends in .json). `batch`
 * 0 and `density` below 0: the network's own. The arena owns the result. EV_BAD: no such network
 * (with the shipped ones), or FILE:LINE:COLUMN and what is wrong there. */
ev_status network_read(ev_arena *arena, const char *name_or_path, uint64_t batch, double density,
                       network *out, ev_error *err) EV_CHECKED;

#endif
