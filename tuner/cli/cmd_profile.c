/* evoke profile: what one launch cost, and where. */
#include "tuner/cli/cmd.h"

#include "tuner/cli/profile.h"

#include <stdlib.h>
#include <string.h>

static bool is_ptx(const char *operand) {
    size_t length = strlen(operand);
    return length > 4 && strcmp(operand + length - 4, ".ptx") == 0;
}

ev_status cmd_profile(cmd_context *c, ev_error *err) {
    const char *operand = c->args->operands[0];
    uint64_t ranks = cli_count(c->args, CLI_OPT_RANKS, 1);
    if (ranks == 0 || ranks > VM_RANKS_MOST)
        return ev_fail(err, EV_BAD, "--ranks %llu: give 1 to %u", (unsigned long long)ranks,
                       VM_RANKS_MOST);
    if (ranks > 1 && !is_ptx(operand))
        return ev_fail(err, EV_BAD,
                       "--ranks is for a FILE.ptx; the ranks of task %s share one "
                       "memory",
                       operand);
    if (is_ptx(operand) && cli_text(c->args, CLI_OPT_GENOME) != NULL)
        return ev_fail(err, EV_BAD, "--genome is of a task; name the task in place of %s", operand);
    if (ranks > 1)
        return profile_ranks(c, operand, (uint32_t)ranks, err);
    return is_ptx(operand) ? profile_ptx(c, operand, err) : profile_task(c, operand, err);
}
