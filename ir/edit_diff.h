/* Edit diff: the IR of a genome before and after one of its edits. */
#ifndef IR_EDIT_DIFF_H
#define IR_EDIT_DIFF_H

#include "ir/ir.h"

/* As ir_diff, of the local edit `index` alone: the IR with the edits before, and with this one
 * added. */
ev_status ir_diff_edit(const ir_base *base, const ir_genome *genome, size_t index, ev_str *out,
                       ev_error *err) EV_CHECKED;

#endif
