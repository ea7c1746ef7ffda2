/* Trace: the launches that a program made on the stand-in for the CUDA driver, as
 * fitness/device/standin/record.c wrote them. The trace owns all of its texts. */
#ifndef TUNER_INIT_TRACE_H
#define TUNER_INIT_TRACE_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer, or a variable of the module, that a launch can reach. */
typedef struct trace_part {
    uint64_t address, bytes;
    const char *variable; /* its name in the PTX; NULL: a buffer */
} trace_part;

typedef struct trace_launch {
    const char *folder;
    const char *kernel; /* its name in the PTX */
    uint64_t number;    /* among all launches of its process, from 1 */
    int result;         /* an error of the driver; 0: it ended well */
    uint32_t grid[3], block[3], shared;
    uint32_t (*parameters)[2]; /* offset and bytes of each */
    size_t parameter_count;
    unsigned char *values; /* of the parameters */
    size_t value_bytes;
    trace_part *parts;
    size_t part_count;
} trace_launch;

typedef struct trace {
    ev_arena *arena;
    trace_launch *launches;
    size_t count;
    size_t processes; /* that called cuInit */
    size_t recorded;  /* processes with a recorded launch */
    ev_str kernels;   /* names of the launched kernels, one a line */
    ev_str said;      /* messages of the stand-in, one a line */
    ev_str left;      /* launches that are not recorded, and why, one a line */
    bool asks_tables; /* for private tables of NVIDIA's driver, as the CUDA runtime library does */
} trace;

/* What is recorded of a program's run. */
typedef struct trace_request {
    const char *program;
    const char *const *words; /* its arguments */
    size_t word_count;
    const char *kernel; /* in the source; NULL: no launch is recorded, only names */
    uint64_t launches;  /* of each kernel and geometry, at most */
    uint64_t megabytes; /* of all buffers, before and after */
    const char *folder; /* an existing, empty one */
} trace_request;

/* Runs the program on the stand-in and reads what was recorded. EV_BAD: the program cannot be run,
 * ended with an error, or launched no kernel (of that name); the message says why. */
ev_status trace_run(const trace_request *request, trace *out, ev_error *err) EV_CHECKED;
void trace_free(trace *t);

/* Reads a folder of the stand-in. EV_BAD: a file is damaged. */
ev_status trace_read(const char *folder, trace *out, ev_error *err) EV_CHECKED;
/* The bytes of a part before the launch, or after it; malloc'ed. */
ev_status trace_read_part(const trace_launch *launch, size_t part, bool after, char **out,
                          ev_error *err) EV_CHECKED;

#endif
