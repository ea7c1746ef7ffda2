/* The assembler ptxas of an installed CUDA toolkit. It is optional, since the driver compiles PTX,
 * too. */
#ifndef FITNESS_DEVICE_CUDA_PTXAS_H
#define FITNESS_DEVICE_CUDA_PTXAS_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>

typedef struct ptxas {
    char path[512]; /* "": none */
    double seconds; /* time limit */
} ptxas;

/* Finds ptxas: by EVOKE_PTXAS ("none": none), in PATH, in /usr/local/cuda/bin. */
void ptxas_find(ptxas *out);
/* Assembles for compute capability `sm`: machine code to *cubin, the output of -v to *log; the
 * caller frees both. EV_BAD: no ptxas, or ptxas refuses the text, or, with *deadly set, exceeds the
 * time limit or dies of the text. The driver's compiler is the same code and would do so in this
 * process. EV_INFRA: ptxas cannot be run. */
ev_status ptxas_run(const ptxas *p, const char *ptx, int sm, ev_str *cubin, ev_str *log,
                    bool *deadly, ev_error *err) EV_CHECKED;

#endif
