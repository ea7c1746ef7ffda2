/* Diffs of two texts, line by line, in the unified format, by the greedy algorithm of Myers, "An
 * O(ND) Difference Algorithm and Its Variations", 1986. */
#ifndef BASE_DIFF_H
#define BASE_DIFF_H

#include "base/status.h"
#include "base/str.h"

#include <stddef.h>
#include <stdint.h>

/* What a kind of text wants. Both may be NULL. */
typedef struct ev_diff_rules {
    /* How much of a line is looked at and printed; 0 leaves it out. */
    size_t (*trim)(const char *line, size_t length);
    /* Lines of the same key count as the same; else only equal ones do. */
    uint64_t (*key)(const char *line, size_t length);
} ev_diff_rules;

/* Appends "--- OLD_NAME", "+++ NEW_NAME" and the hunks, with three lines of context; the names
 * alone when nothing differs. A last line without a newline is not looked at. EV_INFRA: out of
 * memory. */
ev_status ev_diff(const char *old_name, const char *old_text, const char *new_name,
                  const char *new_text, const ev_diff_rules *rules, ev_str *out,
                  ev_error *err) EV_CHECKED;

#endif
