/* Variant: builds a genome of a task outside a search, in a child process, and tells what a genome
 * says of a candidate. */
#ifndef TUNER_WORKER_VARIANT_H
#define TUNER_WORKER_VARIANT_H

#include "base/arena.h"
#include "base/status.h"
#include "base/str.h"
#include "fitness/gates/fitness.h"
#include "ir/genome.h"
#include "ir/ir.h"
#include "kernels/task.h"
#include "tuner/worker/gate_builds.h"

/* Builds the genome and appends its PTX to `ptx`. EV_BAD: the build fails, or LLVM aborts. */
ev_status variant_build(const task *t, const ir_genome *genome, int sm, ev_str *ptx,
                        ev_error *err) EV_CHECKED;
/* As variant_build. *may_alias: as candidate.may_alias. */
ev_status variant_build_told(const task *t, const ir_genome *genome, int sm, ev_str *ptx,
                             uint64_t *may_alias, ev_error *err) EV_CHECKED;
/* Makes what gate 6 runs beside the variant. *out is zeroed before; free it by gate_builds_free,
 * also after an error. EV_BAD as of variant_build. */
ev_status variant_gate_builds(const task *t, const ir_genome *genome, int sm, gate_builds *out,
                              ev_error *err) EV_CHECKED;
/* As gate_builds_missed; `taken` has `arms_bytes` bytes of gate_builds. */
ev_status variant_missed(const task *t, const ir_genome *genome, int sm, const uint8_t *taken,
                         ev_str *why, ev_error *err) EV_CHECKED;

/* As variant_build, for a start without edits at its default macros. */
ev_status variant_build_start(const task *t, const task_start *start, int sm, ev_str *ptx,
                              ev_error *err) EV_CHECKED;

/* As variant_build_start, with the source's lines as .loc directives, for a profile. */
ev_status variant_build_lined(const task *t, const task_start *start, int sm, ev_str *ptx,
                              ev_error *err) EV_CHECKED;

/* As variant_build_start, for a source file without a task. `entry`: as in task.json, with template
 * arguments or without. */
ev_status variant_build_file(const char *path, const char *entry, int sm, ev_str *ptx,
                             ev_error *err) EV_CHECKED;
/* As variant_build_file, with -DNAME=VALUE for each of the macros. */
ev_status variant_build_macros(const char *path, const char *entry, const ir_macro *macros,
                               size_t macro_count, int sm, ev_str *ptx, ev_error *err) EV_CHECKED;

/* Reads a genome from JSON text; the caller frees *out. `name`: for messages. EV_BAD: the text is
 * no genome. */
ev_status variant_genome(const char *text, const char *name, ir_genome **out,
                         ev_error *err) EV_CHECKED;
/* Sets what a genome says of the candidate's blocks: its structural edits, those that divide the
 * work, and which part of the grid works. The texts live in the arena. */
ev_status variant_structure(const ir_genome *genome, ev_arena *arena, candidate *out,
                            ev_error *err) EV_CHECKED;

#endif
