/* Matrix instructions on a device against the virtual machine: the same bits for the same
 * registers, or memory. */
#ifndef TESTS_GPU_TENSOR_H
#define TESTS_GPU_TENSOR_H

#include "base/lines.h"
#include "base/str.h"
#include "fitness/device/device.h"

#include <jansson.h>

#define TENSOR_LANES 32

/* One kernel of one warp: what it reads is at its first parameter, what it writes at the second. */
typedef struct tensor_kernel {
    int sm;
    char name[120]; /* the instruction */
    ev_str ptx;
    size_t in, out; /* bytes */
    uint64_t input[1024];
} tensor_kernel;

/* How many kernels there are, for all generations. */
size_t tensor_count(void);
/* The caller frees out->ptx. */
void tensor_make(size_t index, tensor_kernel *k);
/* Goes on with every step-th kernel from *next, adding to `all`, {"forms", "differed", "refused"},
 * the latter two as lists of instructions; those that the device's generation does not have are
 * left out, and those after a stop (base/stop.h) or after a fault that left the device spent. Each
 * is added to `lines`.
 */
ev_status tensor_compare(device *d, device *vm, ev_lines *lines, json_t *all, size_t *next,
                         size_t step, ev_error *err) EV_CHECKED;

#endif
