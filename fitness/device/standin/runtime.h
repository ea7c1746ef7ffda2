/* Inside of the stand-in for the CUDA runtime library: a libcudart.so on top of the driver that the
 * loader finds. It is for programs that link the library as a shared one (nvcc -cudart shared).
 * NVIDIA's own library needs private tables of NVIDIA's driver, which the stand-in for the driver
 * lacks.
 *
 * RUNTIME_VERSION is 12 or 13: the library is compiled once for each.
 *
 * Errors of the runtime have the numbers of the driver's, except for those below. */
#ifndef FITNESS_DEVICE_STANDIN_RUNTIME_H
#define FITNESS_DEVICE_STANDIN_RUNTIME_H

#include "base/cuda/driver_types.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RT_EXPORT __attribute__((visibility("default")))

enum {
    RT_INVALID_CONFIGURATION = 9,
    RT_INVALID_SYMBOL = 13,
    RT_INVALID_DIRECTION = 21,
    RT_INSUFFICIENT_DRIVER = 35,
    RT_INVALID_FUNCTION = 98,
};

typedef unsigned rt_error; /* cudaError_t; unsigned as the driver's enum is */

typedef struct rt_dim3 {
    unsigned x, y, z;
} rt_dim3;

/* The driver's functions, as the loader binds them. */
#define CU_FN(symbol, name, since, scope, need, params, args) CUresult symbol params;
#include "base/cuda/driver.def"
#undef CU_FN

/* Makes the thread's device current, unless the program made a context current itself. */
rt_error rt_ready(void);
/* Keeps an error for cudaGetLastError, and returns it. */
rt_error rt_keep(rt_error result);
/* The kernel behind a function of the host. */
rt_error rt_function(const void *host, CUfunction *out);
/* The variable of the device behind one of the host. */
rt_error rt_variable(const void *host, CUdeviceptr *address, size_t *bytes);

/* Whether cudaMemcpyDefault's question for a side is answered by "device". */
bool rt_is_device(const void *pointer);

#endif
