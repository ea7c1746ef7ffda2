/* Lines: a file that gets one JSON object a line as soon as each is known, so that a process that
 * is killed leaves what it had.
 *
 * Forked children may add to it too. Every call takes NULL for "no file" and does nothing then. */
#ifndef BASE_LINES_H
#define BASE_LINES_H

#include "base/status.h"

#include <jansson.h>

typedef struct ev_lines ev_lines;

/* Begins the file anew; *out is NULL where `path` is. EV_BAD: it cannot be written, with its name.
 */
ev_status ev_lines_open(const char *path, ev_lines **out, ev_error *err) EV_CHECKED;
/* Writes `row` as one line by one call, so that lines are whole. EV_INFRA: the disk is full. */
ev_status ev_lines_add(ev_lines *lines, const json_t *row, ev_error *err) EV_CHECKED;
void ev_lines_close(ev_lines *lines);

#endif
