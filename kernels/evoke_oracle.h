/* The trusted answer of a task, as a C function. Needs nothing else of the project: a user's own
 * oracle is one C file that includes this header and defines `evoke_oracle`.
 *
 * Any range of an output can be asked for, so that a kernel can be checked at shapes too large to
 * compute in full. Compute in double precision, with compensated sums where terms may cancel. */
#ifndef KERNELS_EVOKE_ORACLE_H
#define KERNELS_EVOKE_ORACLE_H

#include <stddef.h>
#include <stdint.h>

/* One argument of the kernel, in the task's order, as it was before the launch. */
typedef struct evoke_argument {
    const char *name;
    const char *type; /* "f32", "s32", ... */
    const void *data; /* buffers: the elements (of an `out` buffer: NULL); scalars: NULL */
    uint64_t count;   /* buffers: elements */
    double value;     /* scalars */
} evoke_argument;

typedef struct evoke_oracle_call {
    const evoke_argument *arguments;
    size_t argument_count;
    const char *const *shape_names; /* the case's shape */
    const double *shape_values;
    size_t shape_count;
    size_t output;  /* which argument is asked for */
    uint64_t first; /* elements first .. first + count - 1 of it */
    uint64_t count;
    double *value; /* [count], to be filled */
    double *scale; /* [count], preset to 0: the sum of |terms| of each element, where it is known */
    void *scratch; /* kept between calls on the same inputs; NULL at first; malloc'ed by the oracle,
                      freed by the caller with free() */
} evoke_oracle_call;

/* 0: done; anything else: the oracle could not answer. */
typedef int evoke_oracle_fn(evoke_oracle_call *call);

#endif
