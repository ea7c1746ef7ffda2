/* Tasks of somebody else, whose oracle in C is not to be built. */
#ifndef KERNELS_TASK_APART_H
#define KERNELS_TASK_APART_H

#include "kernels/task.h"

/* As task_load, but an oracle in C is neither compiled nor loaded: *had_source, and the baseline
 * becomes the oracle. The task's hash is that of the whole task. */
ev_status task_load_apart(const char *path, bool *had_source, task **out, ev_error *err) EV_CHECKED;

#endif
