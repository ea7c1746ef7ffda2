/* Arms: the edits and the operators, by name. Apart from the drawing, since messages name arms in
 * programs that draw nothing. */
#include "tuner/search/draw.h"

#include <assert.h>
#include <string.h>

static const struct {
    const char *name;
    const char *meaning;
} operators_table[OPERATOR_COUNT] = {
#define OPERATOR(id, name, meaning) [OPERATOR_##id] = {name, meaning},
#include "tuner/search/operators.def"
#undef OPERATOR
};

const char *arm_name(unsigned arm) {
    assert(arm < ARM_COUNT);
    return arm < IR_EDIT_COUNT ? ir_edit_name((ir_edit_kind)arm)
                               : operators_table[arm - IR_EDIT_COUNT].name;
}

const char *arm_meaning(unsigned arm) {
    assert(arm < ARM_COUNT);
    return arm < IR_EDIT_COUNT ? ir_edit_describes((ir_edit_kind)arm)
                               : operators_table[arm - IR_EDIT_COUNT].meaning;
}

bool arm_find(const char *name, unsigned *out) {
    for (unsigned arm = 0; arm < ARM_COUNT; arm++) {
        if (strcmp(arm_name(arm), name) == 0) {
            *out = arm;
            return true;
        }
    }
    return false;
}
