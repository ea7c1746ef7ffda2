/* evoke run: one launch of a PTX file, its outputs and its counters. */
#include "tuner/cmd.h"

#include "tuner/launch.h"

#include <stdio.h>

static ev_status print_trap(cmd_context *c, const ptx_launch *l, const vm_trap *trap,
                            ev_error *err) {
    ev_str text = EV_STR_EMPTY;
    trap_print(trap, l->path, device_kernel_module(l->kernel), &text);
    (void)fprintf(stderr, "evoke: %s", ev_str_text(&text));
    ev_str_free(&text);
    c->exit_code = 1;
    if (!cli_flag(c->args, CLI_OPT_JSON))
        return EV_OK;
    return cmd_print_json(c, json_pack("{s:s, s:o}", "status", "trap", "trap", trap_to_json(trap)),
                          err);
}

/* Takes `outputs` over. */
static ev_status print_ok(cmd_context *c, json_t *outputs, const vm_counters *counters,
                          ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c,
                              json_pack("{s:s, s:o, s:o}", "status", "ok", "outputs", outputs,
                                        "counters", counters_to_json(counters)),
                              err);
    for (size_t i = 0; i < json_array_size(outputs); i++)
        ev_str_printf(c->out, "output %zu: %s\n", i, json_string_value(json_array_get(outputs, i)));
    json_decref(outputs);
    ev_str_char(c->out, '\n');
    return counters_print(counters, c->out, err);
}

static ev_status run_launch(cmd_context *c, ptx_launch *l, ev_error *err) {
    device_outcome outcome;
    ev_status status = device_run(l->device, l->kernel, &l->launch, &outcome, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s", l->path);
    if (!outcome.ok)
        return print_trap(c, l, &outcome.fault, err);
    json_t *outputs = json_array();
    status = ptx_launch_outputs(l, outputs, err);
    if (status == EV_OK)
        return print_ok(c, outputs, &outcome.counters, err);
    json_decref(outputs);
    return status;
}

ev_status cmd_run(cmd_context *c, ev_error *err) {
    ptx_launch l;
    EV_TRY(ptx_launch_open(c->args->operands[0], c->args, &l, err));
    ev_status status = run_launch(c, &l, err);
    ptx_launch_close(&l);
    return status;
}
