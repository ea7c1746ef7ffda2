/* Draft of a run: the launches that a program made become cases of a draft.
 *
 * A name of the shape is a size of the draft, a scalar that differs from launch to launch, or where
 * no expression of these gives it, a length, a grid or a block. */
#ifndef TUNER_INIT_DRAFT_TRACE_H
#define TUNER_INIT_DRAFT_TRACE_H

#include "tuner/init/draft.h"
#include "tuner/init/trace.h"

enum { TRACED_DIMENSIONS = 7 /* grid, block, shared */, TRACED_NAMES = 2 * DRAFT_ARGUMENTS + 32 };

/* What a buffer argument was in a launch. */
typedef struct traced_buffer {
    size_t part;       /* of the launch */
    uint64_t offset;   /* of its address in the part, in bytes */
    uint64_t elements; /* of the source's type, to the end of the part or the next argument's begin
                        */
} traced_buffer;

enum { TRACED_CASES = 64 }; /* at most */

typedef struct traced_case {
    const trace_launch *launch;
    expr_value values[TRACED_NAMES]; /* of the names of the shape */
    traced_buffer buffers[DRAFT_ARGUMENTS];
    size_t symbols[DRAFT_SYMBOLS]; /* the part of each; SIZE_MAX: not recorded */
    char **before, **after;        /* bytes of the parts; owned */
    uint64_t cost;                 /* thread instructions */
} traced_case;

typedef struct draft_trace {
    draft *d;
    traced_case *cases; /* owned */
    size_t count;
    const char *names[TRACED_NAMES];
    size_t name_count;
    bool generates;    /* cases with generated data are possible */
    double error;      /* the largest relative L2 error against what the program's kernel left */
    char differs[300]; /* where the source's kernel leaves other numbers; "": nowhere */
} draft_trace;

/* "scale<float, 4>" of the instance "_Z5scaleIfLi4EEvPfi" of the template `name`; malloc'ed. NULL:
 * it is none, or has arguments that are neither numbers nor plain types. */
char *draft_instance_of(const char *in_ptx, const char *name);

/* Takes the launches that the draft's kernel may have made; others are noted. EV_BAD: none is
 * left, or the program's kernel has other parameters. */
ev_status draft_trace_begin(draft *d, const trace *t, draft_trace *out, ev_error *err) EV_CHECKED;
void draft_trace_free(draft_trace *dt);
/* Scalars, grid, block and shared memory as the launches had them. */
void draft_trace_apply(draft_trace *dt);
/* After the probe: scalars that differ from launch to launch become names of the shape. */
void draft_trace_vary(draft_trace *dt);

/* Adds a name of the shape that begins with `wanted`, and returns it; its values are the caller's.
 * NULL: there are too many. */
const char *draft_trace_name(draft_trace *dt, const char *wanted);
/* Appends a number with as few digits as reading it back in the type allows. */
void draft_trace_real(ev_type type, double value, ev_str *out);
/* The value of an expression at a case; false: it has none, or one below 0. */
bool draft_trace_value(const draft_trace *dt, const traced_case *c, const char *expression,
                       int64_t *out);

/* Runs the recorded launches on the PTX of the source: kinds, lengths and the data's ranges, and
 * whether the outputs are those that the program's kernel left. d->trap says why it does not run.
 */
ev_status draft_replay(draft_trace *dt, const char *ptx, size_t bytes, ev_error *err) EV_CHECKED;

/* Writes the data of the cases into the folder, and appends the cases of task.json. */
ev_status draft_write_traced(draft_trace *dt, const char *folder, ev_str *out,
                             ev_error *err) EV_CHECKED;

#endif
