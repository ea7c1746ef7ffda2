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
    double value;    /* in the key's unit; 0 where it was not measured */
    double spread;   /* width of the interval behind it, as a share of the value; 0 on the VM */
    double base;     /* what the base description says */
    char why[160];   /* "" or why it was not measured: the base's number stays */
    const char *doc; /* what the micro-benchmark does */
} calibrate_row;

typedef struct calibration {
    calibrate_row *rows;
    size_t count;
    double clock_mhz; /* that cycles were counted with */
} calibration;

/* Called after each row. A failure ends the calibration. */
typedef ev_status calibrate_heard(void *context, const calibrate_row *row, ev_error *err);

typedef struct calibrate_options {
    const char *only;       /* one probe's name; NULL: all */
    calibrate_heard *heard; /* NULL: nobody */
    void *context;
    const calibration *before; /* what an earlier process came to; NULL: nothing */
} calibrate_options;

/* Runs the micro-benchmarks. `base`: what cannot be measured is taken from there. A probe that
 * fails says so in its row; a stop (base/stop.h) leaves out those that are left. EV_BAD: no probe
 * of that name. EV_INFRA: the device is gone. Where a fault
 * left the device spent, `out` ends with the row of that fault, and *again says that rows are
 * missing: another process goes on with `out` as its options' `before`. */
ev_status calibrate_run(device *d, const gpu *base, const calibrate_options *options,
                        calibration *out, bool *again, ev_error *err) EV_CHECKED;
void calibrate_free(calibration *c);

/* Writes the description to `path`: numbers of the rows as measured or modelled, those that the
 * driver knows as the driver's, all others as in `base`. `date`: "2026-01-31". */
ev_status calibrate_write(const device *d, const gpu *base, const calibration *c, const char *date,
                          const char *path, ev_error *err) EV_CHECKED;

#endif
