/* Cmd: the commands of the binary. Each has a file cmd_NAME.c.
 *
 * A command appends its results to `out`, which main writes to stdout whatever the status. A
 * command prints everything else on stderr itself. */
#ifndef TUNER_CLI_CMD_H
#define TUNER_CLI_CMD_H

#include "base/status.h"
#include "base/str.h"
#include "bundle/sign.h"
#include "tuner/cli/cli.h"

#include <jansson.h>

typedef struct cmd_context {
    const cli_args *args;
    ev_str *out;
    int exit_code; /* 0, or 1 for a regression or a trap; counts when the status is EV_OK */
} cmd_context;

typedef ev_status cmd_fn(cmd_context *c, ev_error *err);

cmd_fn cmd_list, cmd_devices, cmd_tune, cmd_check, cmd_export, cmd_run, cmd_profile, cmd_bench,
    cmd_worker, cmd_qualify, cmd_help, cmd_explain, cmd_report, cmd_edits, cmd_doctor, cmd_version,
    cmd_calibrate, cmd_init, cmd_corpus, cmd_isa, cmd_merge, cmd_header;

/* Prints `value` as one line and releases its reference. EV_INFRA: `value` is NULL (out of memory).
 */
ev_status cmd_print_json(cmd_context *c, json_t *value, ev_error *err) EV_CHECKED;

/* The private key of --sign; NULL without one. EV_BAD: there is no such key. */
ev_status cmd_read_key(const cmd_context *c, sign_key **out, ev_error *err) EV_CHECKED;

/* For commands that a stop ends early (base/stop.h). cmd_note_stop adds "stopped": true to an
 * object if a stop was asked for. cmd_end_stopped, called after printing, then returns EV_INFRA
 * with a message. */
json_t *cmd_note_stop(json_t *object);
ev_status cmd_end_stopped(ev_error *err) EV_CHECKED;

#endif
