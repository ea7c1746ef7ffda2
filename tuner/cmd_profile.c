/* evoke profile: what one launch cost, and where. */
#include "tuner/cmd.h"

#include "tuner/profile.h"

#include <stdlib.h>
#include <string.h>

static bool is_ptx(const char *operand) {
    size_t length = strlen(operand);
    return length > 4 && strcmp(operand + length - 4, ".ptx") == 0;
}

ev_status cmd_profile(cmd_context *c, ev_error *err) {
    const char *operand = c->args->operands[0];
    return is_ptx(operand) ? profile_ptx(c, operand, err) : profile_task(c, operand, err);
}
