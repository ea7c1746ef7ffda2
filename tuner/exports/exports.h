/* Exports: runs and bundles in the formats of other programs, for `evoke export --to`. Each format
 * is a row of tuner/exports/exports.def. */
#ifndef TUNER_EXPORTS_EXPORTS_H
#define TUNER_EXPORTS_EXPORTS_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What is asked for; all texts are borrowed, and NULL where they were not given. */
typedef struct exports_request {
    const char *bundle, *records; /* paths */
    const char *out;              /* the main file; others are named after it */
    const char *only;             /* one kernel of the records or the bundle */
    const char *network;          /* a shipped network, or a path to one (docs/exports.md) */
    const char *base;             /* the table of layer times that kernels stand in for */
    const char *job;              /* Dally's job as JSON, or DLIO's workload as YAML */
    const char *gpu;              /* id of a GPU of the bundle */
    uint64_t batch;               /* images or sequences of an iteration; 0: the network's */
    double density;   /* share of activations that a ReLU keeps; below 0: the network's */
    bool base_is_us;  /* times of `base` are microseconds; false: nanoseconds */
    bool only_faster; /* keep a time of `base` that the bundle's kernel does not beat */
    void (*warn)(const char *text); /* one line each; for stderr */
} exports_request;

typedef enum exports_source {
    EXPORTS_RECORDS,
    EXPORTS_EITHER,
    EXPORTS_NETWORK,
} exports_source;

/* Writes the files. *summary: the caller's new object with "to", "files" and "lines" (the result in
 * words), and keys of the format. EV_BAD: an input is missing or wrong; the message names the
 * option. A failure leaves older files as they were, or replaced by whole ones. */
typedef ev_status exports_fn(const exports_request *r, json_t **summary, ev_error *err);

typedef struct exports_format {
    const char *name;
    exports_source source;
    exports_fn *write;
    const char *doc;
} exports_format;

/* NULL: no such format. */
const exports_format *exports_find(const char *name);
/* The formats in the order of the table; NULL: there are no more. */
const exports_format *exports_at(size_t index);

/* Checks that the request has what the format's source asks for, and writes. */
ev_status exports_write(const exports_format *format, const exports_request *r, json_t **summary,
                        ev_error *err) EV_CHECKED;

#endif
