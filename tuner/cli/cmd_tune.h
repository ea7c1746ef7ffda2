/* The parts of evoke tune. */
#ifndef TUNER_CLI_CMD_TUNE_H
#define TUNER_CLI_CMD_TUNE_H

#include "tuner/cli/cmd.h"
#include "tuner/worker/look.h"

/* A search for each model of GPUs, side by side: each is an `evoke tune` of its own with the
 * options that this one was given, on the GPUs of its model. Files that options name get the first
 * GPU's number before their ending, "run-cuda0.sqlite". The exit code is the worst of all. */
ev_status cmd_tune_models(cmd_context *c, const look_devices *gpus, ev_error *err) EV_CHECKED;

#endif
