/* The assembler ptxas of a CUDA toolkit, where one is installed: never needed, since the driver
 * compiles PTX too. */
#ifndef FITNESS_DEVICE_CUDA_PTXAS_H
#define FITNESS_DEVICE_CUDA_PTXAS_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>

typedef struct ptxas {
    char path[512]; /* "": none */
    double seconds; /* that it may take */
} ptxas;

/* What EVOKE_PTXAS names ("none": none), else in PATH, else in /usr/local/cuda/bin. */
void ptxas_find(ptxas *out);
/* Machine code for compute capability `sm` to *cubin, what -v says to *log; the caller frees both.
 * EV_BAD: it refuses the text, is not there, or, *deadly, takes too long or dies of it: the
 * driver's compiler, which is the same code, would do that in this process. EV_INFRA: it cannot be
 * run. */
ev_status ptxas_run(const ptxas *p, const char *ptx, int sm, ev_str *cubin, ev_str *log,
                    bool *deadly, ev_error *err) EV_CHECKED;

#endif
