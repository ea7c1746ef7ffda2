/* evoke worker: serves a coordinator over stdin and stdout. */
#include "tuner/cli/cmd.h"

#include "tuner/worker/worker.h"

#include <unistd.h>

ev_status cmd_worker(cmd_context *c, ev_error *err) {
    if (!cli_flag(c->args, CLI_OPT_STDIO))
        return ev_fail(err, EV_BAD,
                       "worker needs --stdio; a coordinator starts it: evoke worker --stdio");
    return tune_worker(STDIN_FILENO, STDOUT_FILENO, err);
}
