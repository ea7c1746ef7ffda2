/* Diffs of two texts, line by line, in the unified format, by the greedy algorithm of Myers, "An
 * O(ND) Difference Algorithm and Its Variations", 1986. */
#ifndef BASE_DIFF_H
#define BASE_DIFF_H

#include "base/status.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

/* How to compare lines of one kind of text. Both members may be NULL. */
typedef struct ev_diff_rules {
    /* Number of bytes of a line to compare and print; 0 leaves the line out. */
    size_t (*trim)(const char *line, size_t length);
    /* Lines with equal keys count as equal. NULL: only identical lines do. */
    uint64_t (*key)(const char *line, size_t length);
} ev_diff_rules;

/* Appends "--- OLD_NAME", "+++ NEW_NAME" and the hunks, with three lines of context. Without a
 * difference, only the names are appended. A last line without a newline is ignored. EV_INFRA: out
 * of memory. */
ev_status ev_diff(const char *old_name, const char *old_text, const char *new_name,
                  const char *new_text, const ev_diff_rules *rules, ev_str *out,
                  ev_error *err) EV_CHECKED;

#endif
