/* Profile: one timed launch of a task's start or of a PTX file, and everything the machine and the
 * timing model say of it. */
#ifndef TUNER_PROFILE_H
#define TUNER_PROFILE_H

#include "fitness/device.h"
#include "tuner/cmd.h"

/* What is printed. All borrowed. */
typedef struct profile {
    const char *kernel;
    const char *at; /* case; NULL: a PTX file */
    const device_properties *device;
    const vm_module *module;
    const char *path; /* of the PTX, for messages */
    uint32_t grid[3], block[3], dynamic_shared;
    const device_outcome *outcome;
    const device_timing *timing;
    const uint64_t *executions; /* per pc */
    const double *stalls;       /* per pc */
} profile;

/* A start at a case (--start, --case, --device). */
ev_status profile_task(cmd_context *c, const char *name_or_path, ev_error *err) EV_CHECKED;
/* A PTX file, launched as by `evoke run`. */
ev_status profile_ptx(cmd_context *c, const char *path, ev_error *err) EV_CHECKED;

/* As text, or with --json as one object; a trap is told on stderr and sets exit code 1. */
ev_status profile_print(cmd_context *c, const profile *p, ev_error *err) EV_CHECKED;

#endif
