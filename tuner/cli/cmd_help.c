/* evoke help, evoke --version, and what printing JSON takes for all commands. */
#include "tuner/cli/cmd.h"

#include "base/json.h"
#include "base/stop.h"
#include "fitness/model/version.h"
#include "ir/ir.h"
#include "tuner/run/records.h"
#include "tuner/worker/protocol.h"

#include <stdlib.h>

json_t *cmd_note_stop(json_t *object) {
    if (ev_stop_asked() && object != NULL)
        (void)json_object_set_new(object, "stopped", json_true());
    return object;
}

ev_status cmd_end_stopped(ev_error *err) {
    return ev_stop_asked()
               ? ev_fail(err, EV_INFRA, "stopped by a signal; the output has the results so far")
               : EV_OK;
}

ev_status cmd_print_json(cmd_context *c, json_t *value, ev_error *err) {
    char *text = value != NULL ? ev_json_print(value, true) : NULL;
    json_decref(value);
    if (text == NULL)
        return ev_fail_memory(err, 1);
    ev_str_append(c->out, text);
    ev_str_char(c->out, '\n');
    free(text);
    return EV_OK;
}

ev_status cmd_version(cmd_context *c, ev_error *err) {
    if (cli_flag(c->args, CLI_OPT_JSON))
        return cmd_print_json(c,
                              json_pack("{s:s, s:s, s:s, s:i, s:i}", "evoke", EVOKE_VERSION, "llvm",
                                        ir_llvm_version(), "model", model_version(), "records",
                                        RECORDS_VERSION, "protocol", PROTOCOL_VERSION),
                              err);
    ev_str_append(c->out, "evoke " EVOKE_VERSION "\n");
    return EV_OK;
}

ev_status cmd_help(cmd_context *c, ev_error *err) {
    if (c->args->operand_count > 0) {
        cli_command command = CLI_HELP;
        EV_TRY(cli_find_command(c->args->operands[0], &command, err));
        if (cli_flag(c->args, CLI_OPT_MAN))
            cli_print_command_man(c->out, command);
        else
            cli_print_command_help(c->out, command);
    } else if (cli_text(c->args, CLI_OPT_COMPLETION) != NULL) {
        (void)cli_print_completion(c->out, cli_text(c->args, CLI_OPT_COMPLETION));
    } else if (cli_flag(c->args, CLI_OPT_MAN)) {
        cli_print_man(c->out);
    } else if (cli_flag(c->args, CLI_OPT_MARKDOWN)) {
        cli_print_markdown(c->out);
    } else {
        cli_print_help(c->out);
    }
    return EV_OK;
}

ev_status cmd_read_key(const cmd_context *c, sign_key **out, ev_error *err) {
    const char *path = cli_text(c->args, CLI_OPT_SIGN);
    return path != NULL ? sign_key_read(path, out, err) : EV_OK;
}
