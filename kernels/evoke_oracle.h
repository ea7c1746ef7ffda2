/* Oracle: the trusted answer of a task, as a C function. This header needs nothing else of the
 * project. An oracle of your own is one C file that includes this header and defines
 * `evoke_oracle`.
 *
 * The caller may ask for any range of an output, so a kernel can be checked at shapes that are too
 * large to compute in full. Compute in double precision, with compensated sums where terms may
 * cancel. */
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
    const evoke_argument *arguments; /* behind those of the kernel: the task's symbols */
    size_t argument_count;           /* with the symbols */
    const char *const *shape_names;  /* the case's shape */
    const double *shape_values;
    size_t shape_count;
    size_t output;  /* index of the argument to compute */
    uint64_t first; /* its elements first .. first + count - 1 */
    uint64_t count;
    double *value; /* [count], to be filled */
    double *scale; /* [count], preset to 0: the sum of |terms| of each element, if known */
    void *scratch; /* kept between calls on the same inputs; NULL at first; the oracle allocates it
                      with malloc, the caller frees it with free */
} evoke_oracle_call;

/* 0: done; anything else: the oracle could not answer. */
typedef int evoke_oracle_fn(evoke_oracle_call *call);

#endif
