/* Profile: one timed launch of a task's start or of a PTX file, with the counters of the virtual
 * machine and the account of the timing model. */
#ifndef TUNER_CLI_PROFILE_H
#define TUNER_CLI_PROFILE_H

#include "fitness/device/device.h"
#include "fitness/gates/fitness.h"
#include "fitness/gates/floor.h"
#include "tuner/cli/cmd.h"

/* The data of a profile. All pointers are borrowed. */
typedef struct profile {
    const char *kernel;
    const char *at; /* case; NULL: a PTX file */
    const device_properties *device;
    const vm_module *module;
    const char *path;       /* of the PTX, for messages */
    launch_geometry launch; /* of several, the longest */
    size_t steps;           /* launches of a start with steps; 0: it has none */
    uint32_t ranks;         /* that the launch runs on, of a task with ranks; else 0 */
    const device_outcome *outcome;
    const device_timing *timing;
    const uint64_t *executions; /* per pc */
    const model_site *sites;    /* per pc */
    const fitness_grid *grid;   /* NULL: a PTX file, of which all blocks run */
    case_floor floor;           /* of the case, by the task's work; zeroed: not known */
    const char *source;         /* path of the kernel's source; NULL: not known */
} profile;

/* A start or a genome at a case (--start or --genome, --case, --device). */
ev_status profile_task(cmd_context *c, const char *name_or_path, ev_error *err) EV_CHECKED;
/* A PTX file, launched as by `evoke run`. */
ev_status profile_ptx(cmd_context *c, const char *path, ev_error *err) EV_CHECKED;

/* A PTX file launched on `count` ranks side by side, and the stalls of their links. */
ev_status profile_ranks(cmd_context *c, const char *path, uint32_t count, ev_error *err) EV_CHECKED;

/* Prints as text, or with --json as one object. A trap is printed on stderr and sets exit code 1.
 */
ev_status profile_print(cmd_context *c, const profile *p, ev_error *err) EV_CHECKED;
/* Makes an object, which the caller releases. */
ev_status profile_to_json(const profile *p, size_t lines, json_t **out, ev_error *err) EV_CHECKED;

/* ---- hottest lines (profile_lines.c) ---- */

typedef struct profile_line {
    uint32_t line;       /* of the PTX, or of the source */
    uint32_t source;     /* of a PTX line: the source's; 0: not known */
    double stall;        /* share of all stall cycles */
    uint64_t executions; /* of warps */
    model_site site;     /* sums of its instructions */
    char *text;          /* the line without the blanks around it; NULL: not known */
} profile_line;

typedef struct profile_lines {
    profile_line *list; /* hottest first */
    size_t count;
} profile_lines;

/* At most `most` executed PTX lines. Free with profile_lines_free. */
ev_status profile_ptx_lines(const profile *p, size_t most, profile_lines *out,
                            ev_error *err) EV_CHECKED;
/* The same for source lines; none if the PTX has no .loc. */
ev_status profile_source_lines(const profile *p, size_t most, profile_lines *out,
                               ev_error *err) EV_CHECKED;
/* At most `most` PTX lines with memory accesses, those with the most traffic first. *all: the
 * traffic of all lines. */
ev_status profile_access_lines(const profile *p, size_t most, double *all, profile_lines *out,
                               ev_error *err) EV_CHECKED;
/* Traffic of a line: sectors, or passes over the banks if it has no sectors. */
uint64_t profile_traffic(const profile_line *line);
/* Share of the passes over the banks of shared memory beyond the necessary ones. A request needs
 * one, or one for each 4 bytes of a lane if that is more. */
double profile_conflicts(const profile *p);
void profile_lines_free(profile_lines *lines);
/* The main reasons of a line's stalls, largest first: at most `most` terms, each with at least a
 * tenth of the line's stall cycles. Returns their number. */
size_t profile_reasons(const profile_line *line, size_t most, model_term *terms);

#endif
