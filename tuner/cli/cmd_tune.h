/* The parts of evoke tune. */
#ifndef TUNER_CLI_CMD_TUNE_H
#define TUNER_CLI_CMD_TUNE_H

#include "ir/genome.h"
#include "tuner/cli/cmd.h"
#include "tuner/worker/look.h"

/* Runs a search for each GPU model, side by side. Each search is a child `evoke tune` with the same
 * options on the GPUs of its model. Files named by options get the number of the first GPU before
 * their suffix: "run-cuda0.sqlite". The exit code is the worst of all. */
ev_status cmd_tune_models(cmd_context *c, const look_devices *gpus, ev_error *err) EV_CHECKED;

/* The edits that --without leaves out. EV_BAD: a name that no edit has. */
ev_status cmd_without(const cli_args *args, bool without[IR_EDIT_COUNT], ev_error *err) EV_CHECKED;

#endif
