/* PTX lines: how lines of PTX are compared for a diff. */
#ifndef TUNER_REPORT_PTX_LINES_H
#define TUNER_REPORT_PTX_LINES_H

#include "base/diff.h"

/* Comments and blank lines are left out. Registers and labels are numbered anew in every variant:
 * lines that differ by such numbers alone count as equal. */
extern const ev_diff_rules ptx_lines_rules;

#endif
