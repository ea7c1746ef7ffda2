/* Kernels, rigs and timed runs, shared by the files of `evoke bench vm`. */
#ifndef TUNER_BENCH_BENCH_VM_H
#define TUNER_BENCH_BENCH_VM_H

#include "base/table.h"
#include "fitness/device/device.h"
#include "tuner/bench/bench.h"

#define BENCH_MOST_RUNS 32

typedef struct bench_kernel {
    const char *name, *doc;
    size_t elements, out_elements; /* words of a and b each, and of c */
    uint32_t grid[3], block[3];
    int32_t n;
} bench_kernel;

const bench_kernel *bench_vm_kernels(size_t *count);
const bench_kernel *bench_vm_kernel(const char *name); /* NULL: there is none */
/* Appends the kernel's PTX for sm_`sm` to *ptx. */
ev_status bench_vm_build(const bench_kernel *k, int sm, ev_str *ptx, ev_error *err) EV_CHECKED;
/* Fills words that are small positive floats, and well spread as integers. */
void bench_vm_words(uint32_t *words, size_t count, uint64_t seed);

/* A kernel on the device with its buffers; `device` is set by the caller. */
typedef struct bench_rig {
    device *device;
    device_kernel *kernel;
    device_buffer out;
    size_t out_bytes;
    uint64_t params[4]; /* a, b, c, n: pointers of 8 bytes, then 4 bytes */
} bench_rig;

ev_status bench_rig_fill(bench_rig *r, const bench_kernel *k, const ev_str *ptx,
                         ev_error *err) EV_CHECKED;
void bench_rig_clear(bench_rig *r); /* frees all buffers of the device */

/* Mode of a run. */
typedef struct bench_kind {
    const char *name;
    vm_checks checks;
    bool modelled, follows_all;
    uint32_t jobs; /* above 0: seconds are elapsed time; 0: CPU time */
} bench_kind;

typedef struct bench_measure {
    double seconds[BENCH_MOST_RUNS];
    size_t runs;
    uint64_t instructions; /* of threads, in one run */
} bench_measure;

/* Runs once more and adds the time to `m`. EV_BAD: the kernel traps. */
ev_status bench_rig_run(bench_rig *r, const bench_kernel *k, const bench_kind *kind,
                        bench_measure *m, ev_error *err) EV_CHECKED;
/* True if `total` seconds in that many runs are too few for a median. */
bool bench_wants_more(size_t runs, double total);
/* Runs once to touch the pages, uncounted, and then until bench_wants_more is false. */
ev_status bench_rig_measure(bench_rig *r, const bench_kernel *k, const bench_kind *kind,
                            bench_measure *m, ev_error *err) EV_CHECKED;

/* ---- the other parts of bench vm (bench_vm_parts.c) */
/* Names of the parts: "load, jobs, ..." */
void bench_vm_name_parts(ev_str *out);
bool bench_vm_is_part(const char *name);
/* Measures the part of that name (NULL: all). Results go into `json` under the part's name, and as
 * a table to `text`. */
ev_status bench_vm_parts(device *d, const cli_args *args, const char *only, json_t *json,
                         ev_str *text, ev_error *err) EV_CHECKED;

#endif
