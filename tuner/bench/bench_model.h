/* Bench of the model: a measured point of a real GPU, run through the virtual machine and the
 * timing model. */
#ifndef TUNER_BENCH_BENCH_MODEL_H
#define TUNER_BENCH_BENCH_MODEL_H

#include "fitness/model/gpu.h"
#include "tuner/bench/silicon.h"
#include "tuner/cli/cmd.h"

/* The kernels of one set, built for one GPU's compute capability, with a memory to run them in. */
typedef struct model_rig model_rig;

ev_status model_rig_new(const gpu *g, silicon_set set, model_rig **out, ev_error *err) EV_CHECKED;
void model_rig_free(model_rig *rig); /* NULL is fine */

/* Sets point->modelled. `g` is of the rig's GPU model; its numbers may differ. EV_BAD: the GPU
 * cannot run the point (threads, shared memory, device memory). */
ev_status model_rig_run(model_rig *rig, const gpu *g, silicon_point *point,
                        ev_error *err) EV_CHECKED;

/* Calls `fn` for each GPU and set of the data named on the command line, or else of the shipped
 * data. `fn` may change the GPU's description. EV_BAD: as silicon_read; an unknown description. */
typedef ev_status bench_model_fn(void *context, gpu *g, silicon_set set, silicon_point *points,
                                 size_t count, ev_error *err);
ev_status bench_model_each(const cli_args *args, bench_model_fn *fn, void *context,
                           ev_error *err) EV_CHECKED;

ev_status bench_model_sensitivity(cmd_context *c, ev_error *err) EV_CHECKED;
ev_status bench_model_registers(cmd_context *c, ev_error *err) EV_CHECKED;
ev_status bench_model_ranking(cmd_context *c, ev_error *err) EV_CHECKED;

#endif
