/* Calibration: measures the numbers of a GPU description with micro-benchmarks on a device, and
 * writes a description in the same format. All times come from device_time, so the same
 * micro-benchmarks run on cuda:N and on vm:MODEL. On vm:MODEL the results must equal the
 * description's own numbers: a test of the model against itself.
 * fitness/device/calibrate/probes.def lists the micro-benchmarks. */
#ifndef FITNESS_DEVICE_CALIBRATE_CALIBRATE_H
#define FITNESS_DEVICE_CALIBRATE_CALIBRATE_H

#include "fitness/device/device.h"
#include "fitness/model/gpu.h"

#include <stdbool.h>
#include <stddef.h>

/* One micro-benchmark's figure. */
typedef struct calibrate_row {
    const char *probe; /* its name in the table */
    gpu_key key;
    double value;    /* in the key's unit; 0: not measured */
    double spread;   /* width of its 95 % interval, as a share of the value; 0 on the VM */
    double base;     /* the number of the base description */
    char why[160];   /* why it was not measured, so that the base's number stays; else "" */
    const char *doc; /* describes the micro-benchmark */
} calibrate_row;

typedef struct calibration {
    calibrate_row *rows;
    size_t count;
    double clock_mhz; /* clock by which cycles were computed */
} calibration;

/* Called after each row. A failure ends the calibration. */
typedef ev_status calibrate_heard(void *context, const calibrate_row *row, ev_error *err);

typedef struct calibrate_options {
    const char *only;       /* one probe's name; NULL: all */
    calibrate_heard *heard; /* may be NULL */
    void *context;
    const calibration *before; /* rows of an earlier process; NULL: none */
} calibrate_options;

/* Runs the micro-benchmarks. Numbers that cannot be measured come from `base`. A failing probe has
 * the reason in its row. A stop (base/stop.h) ends the calibration early. If a fault leaves the
 * device spent, `out` ends with the row of that fault, and *again is set: another process continues
 * with `out` as `before`. EV_BAD: no probe of that name. EV_INFRA: the device is gone. */
ev_status calibrate_run(device *d, const gpu *base, const calibrate_options *options,
                        calibration *out, bool *again, ev_error *err) EV_CHECKED;
void calibrate_free(calibration *c);

/* Writes the description to `path`: numbers of the rows, numbers from the driver, all others as in
 * `base`, each with its source. `date`: "2026-01-31". */
ev_status calibrate_write(const device *d, const gpu *base, const calibration *c, const char *date,
                          const char *path, ev_error *err) EV_CHECKED;

#endif
