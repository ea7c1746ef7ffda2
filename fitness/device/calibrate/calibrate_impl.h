/* The parts of the calibration that its files share. */
#ifndef FITNESS_DEVICE_CALIBRATE_CALIBRATE_IMPL_H
#define FITNESS_DEVICE_CALIBRATE_CALIBRATE_IMPL_H

#include "base/str.h"
#include "fitness/device/calibrate/calibrate.h"

typedef enum probe_id {
#define PROBE(id, key, figure, shape, values, results, beside, beside_results, sm, step, code,     \
              doc)                                                                                 \
    PROBE_##id,
#include "fitness/device/calibrate/probes.def"
    PROBE_COUNT
} probe_id;

typedef enum probe_figure {
#define PROBE_FIGURE(id, doc) FIGURE_##id,
#include "fitness/device/calibrate/probes.def"
} probe_figure;

typedef struct probe_shape {
    uint32_t threads; /* a block */
    bool chip;        /* on all SMs */
    uint32_t chains;  /* a thread */
} probe_shape;

extern const probe_shape calibrate_shapes[];

typedef struct probe {
    const char *name;
    gpu_key key;
    probe_figure figure;
    const probe_shape *shape;
    const char *values;
    double results;     /* a thread and step */
    const char *beside; /* name of the probe that knows the rest of the step; "-" */
    double beside_results;
    int sm;
    const char *step, *code, *doc;
} probe;

extern const probe calibrate_probes[];

/* As the kernel's parameters lie in memory. */
typedef struct probe_params {
    uint64_t cells, out, stride;
    uint32_t trips, groups;
    uint32_t ia, ib, ic, id;
    float fa, fb;
    double da, db;
    uint32_t ha, hb;
} probe_params;

#define PROBE_SHARED_BYTES 16384 /* of the array `room`, where values need it */
#define PROBE_OUT_BYTES 8        /* a thread: the sum, and cycles where they are counted */

/* The PTX of a probe's kernel with `length` steps of each chain in the loop's body; *ptx is empty
 * before. Its .version is the least that it needs. */
ev_status calibrate_kernel(const probe *p, int length, ev_str *ptx, ev_error *err) EV_CHECKED;
bool calibrate_has_value(const probe *p, char value);

#endif
