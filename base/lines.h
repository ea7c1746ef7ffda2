/* Lines: a file of JSON objects, one a line, written as soon as each is known. A killed process
 * leaves the rows that it had.
 *
 * Forked children may add lines, too. NULL stands for "no file"; every call then does nothing. */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include "base/status.h"

#include <jansson.h>

typedef struct ev_lines ev_lines;

/* Truncates or creates the file. *out is NULL if `path` is. EV_BAD with the name: not writable. */
ev_status ev_lines_open(const char *path, ev_lines **out, ev_error *err) EV_CHECKED;
/* Writes `row` as one line with one system call, so lines are whole. EV_INFRA: the disk is full. */
ev_status ev_lines_add(ev_lines *lines, const json_t *row, ev_error *err) EV_CHECKED;
void ev_lines_close(ev_lines *lines);

#endif
