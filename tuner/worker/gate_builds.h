/* Gate builds: the builds that gate 6 runs beside a variant's own. One is the unmodified start,
 * noting the arms that it takes (ir_base_arms_ptx); the other is the variant with the facts that
 * its edits assert as checks (ir_build_check_asserts). */
#ifndef TUNER_WORKER_GATE_BUILDS_H
#define TUNER_WORKER_GATE_BUILDS_H

#include "base/status.h"
#include "base/str.h"
#include "fitness/gates/fitness.h"
#include "ir/genome.h"
#include "ir/ir.h"
#include "kernels/task.h"

/* All zeroed: no builds. */
typedef struct gate_builds {
    ev_str arms;       /* PTX; empty: no edit depends on arms */
    size_t arms_bytes; /* of the buffer for the flags */
    ev_str checked;    /* PTX; empty: no edit asserts a fact */
} gate_builds;

/* Makes the builds that `build` of the genome needs; LLVM may abort. *out is zeroed before; free it
 * by gate_builds_free, also after an error. EV_BAD: a build fails. */
ev_status gate_builds_make(const ir_base *base, const ir_genome *genome, const ir_build *build,
                           const task_start *start, gate_builds *out, ev_error *err) EV_CHECKED;
void gate_builds_free(gate_builds *b);

/* Appends the refusal, as ir_arms_missed, with what the task assumes of the start. */
ev_status gate_builds_missed(const ir_base *base, const ir_genome *genome, const task_start *start,
                             const uint8_t *taken, ev_str *why, ev_error *err) EV_CHECKED;

/* Gives the builds to the candidate, which borrows them; candidate.missed is left to the caller. */
void gate_builds_give(const gate_builds *b, candidate *out);

#endif
