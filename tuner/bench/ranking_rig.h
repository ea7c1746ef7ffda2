/* Ranking rig: compiles one configuration of a ranking set, runs a sample of its blocks at the
 * original size, and asks the timing model for the time of the whole launch. */
#ifndef TUNER_BENCH_RANKING_RIG_H
#define TUNER_BENCH_RANKING_RIG_H

#include "fitness/model/model.h"
#include "tuner/bench/ranking_set.h"

typedef struct ranking_rig ranking_rig;

/* Compilers of configurations. */
typedef enum ranking_compiler { RANKING_CLANG, RANKING_NVCC, RANKING_COMPILERS } ranking_compiler;

const char *ranking_compiler_name(ranking_compiler compiler);
/* The path of nvcc: by EVOKE_NVCC ("none": none), in PATH, in /usr/local/cuda/bin. False: none. */
bool ranking_find_nvcc(char path[512]);

typedef struct ranking_options {
    const char *cache; /* folder of compiled PTX, by the hash of source, macros and target; NULL:
                          none */
    const char *nvcc;  /* path; NULL: none */
} ranking_options;

/* `options` is borrowed until the rig is freed. Not for use by more than one process. */
ev_status ranking_rig_new(const ranking_options *options, ranking_rig **out,
                          ev_error *err) EV_CHECKED;
void ranking_rig_free(ranking_rig *rig); /* NULL is fine */

/* What one configuration gives. */
typedef struct ranking_result {
    model_time time;
    uint32_t live_registers; /* of a thread, before cap and rounding */
    uint32_t insns;          /* of the module */
    double build_seconds, run_seconds;
} ranking_result;

/* `sm`: the target to compile for, at most the GPU's. EV_BAD: the configuration is refused, with
 * the reason. EV_INFRA: the machine failed. */
ev_status ranking_rig_run(ranking_rig *rig, const gpu *g, ranking_kernel kernel,
                          const ir_macro *macros, size_t macro_count, ranking_compiler compiler,
                          int sm, ranking_result *out, ev_error *err) EV_CHECKED;

#endif
