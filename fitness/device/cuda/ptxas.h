/* The assembler ptxas of an installed CUDA toolkit. It is optional, since the driver compiles PTX,
 * too. */
#ifndef FITNESS_DEVICE_CUDA_PTXAS_H
#define FITNESS_DEVICE_CUDA_PTXAS_H

#include "base/status.h"
#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

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

/* Machine code, and what ptxas says of an entry in it. */
typedef struct ptxas_code {
    ev_str cubin;
    char version[64];                /* "ptxas V13.0.88"; "ptxas": it does not say */
    uint32_t registers, spill_bytes; /* a thread; spill stores */
} ptxas_code;

/* Finds ptxas and assembles. *found false: there is none, or it does not take the text. The caller
 * frees out->cubin. */
ev_status ptxas_assemble(const char *ptx, const char *entry, int sm, bool *found, ptxas_code *out,
                         ev_error *err) EV_CHECKED;

#define PTXAS_TARGETS 8

/* Compute capabilities to assemble for. */
typedef struct ptxas_targets {
    int sm[PTXAS_TARGETS];
    size_t count;
} ptxas_targets;

/* Adds the target "sm_NN". EV_BAD: the word names no target, there are PTXAS_TARGETS already, there
 * is no ptxas, or ptxas does not know the target. EV_INFRA: ptxas cannot be run. */
ev_status ptxas_add_target(ptxas_targets *to, const char *word, ev_error *err) EV_CHECKED;
/* Assembles for each target. Writes to `objection` the first target for which ptxas refuses the
 * text or stores registers to memory, and the reason; "": no target. EV_INFRA: ptxas cannot be run.
 */
ev_status ptxas_object(const ptxas_targets *targets, const char *ptx, char *objection, size_t room,
                       ev_error *err) EV_CHECKED;

/* Of a log of `ptxas -v`: the spill stores of an entry, and its registers; 0: it does not say. */
uint32_t ptxas_spills(const char *log, const char *entry);
uint32_t ptxas_registers(const char *log, const char *entry);

#endif
