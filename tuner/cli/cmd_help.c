/* evoke help, and what printing JSON takes for all commands. */
#include "tuner/cli/cmd.h"

#include "base/json.h"
#include "base/stop.h"

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

ev_status cmd_help(cmd_context *c, ev_error *err) {
    if (c->args->operand_count > 0) {
        cli_command command = CLI_HELP;
        EV_TRY(cli_find_command(c->args->operands[0], &command, err));
        cli_print_command_help(c->out, command);
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
