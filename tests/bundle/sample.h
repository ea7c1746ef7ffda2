/* A small bundle of the kernel `add` (y = 2 x) with a variant and a baseline whose PTX can run, in
 * a scratch folder. */
#ifndef TESTS_BUNDLE_SAMPLE_H
#define TESTS_BUNDLE_SAMPLE_H

#include "base/status.h"
#include "bundle/reader_types.h"

int sample_make_folder(void **state);
int sample_remove_folder(void **state);
const char *sample_path(const char *name); /* in the scratch folder; the next 3 calls keep it */

/* y[i] = 2 x[i] for i < n: parameters x, y, n (s32), scale (f32). */
extern const char SAMPLE_PTX[];
/* The same, and another text. */
extern const char SAMPLE_BASE_PTX[];

/* The parts of the sample, to be changed before sample_write_content. */
typedef struct sample {
    bundle_variant variant, baseline;
    bundle_kernel kernel;
    bundle_file file;
    bundle_content content;
} sample;

void sample_fill(sample *s);
/* The kernel then takes n and scale as fields of a struct `both` of 16 bytes, at 0 and at 8. */
void sample_use_struct(sample *s);
/* The kernel then takes x, y and n, in several launches with scratch buffers that change places:
 * y[i] = x[i] + 1 + 1 + 2 + ... + R, at a shape with N up to SAMPLE_STEPS_MOST and any R. */
#define SAMPLE_STEPS_MOST 1000
extern const launch_plan SAMPLE_STEPS; /* without ranges */
void sample_use_steps(sample *s);
/* The kernel then has ranks, as many as `ranks` of the shape: numbers of the rank, tables of peers'
 * addresses, flags with a value before each launch, and two launches, the second of which waits.
 * Its PTX cannot run. */
void sample_use_ranks(sample *s);
ev_status sample_write(const char *path, ev_error *err) EV_CHECKED;

#endif
