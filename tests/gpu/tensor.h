/* Matrix instructions on a device against the virtual machine: the same bits for the same
 * registers. */
#ifndef TESTS_GPU_TENSOR_H
#define TESTS_GPU_TENSOR_H

#include "fitness/device.h"

#include <jansson.h>

/* {"forms", "differed", "refused"}, the latter two as lists of instructions; those that the
 * device's generation does not have are left out. NULL with `err` when a device failed. */
json_t *tensor_compare(device *d, device *vm, ev_error *err);

#endif
