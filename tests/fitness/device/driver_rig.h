/* The stand-in for the CUDA driver through dlopen, each function by its row of driver.def. Errors
 * end the test. */
#ifndef TESTS_FITNESS_DEVICE_DRIVER_RIG_H
#define TESTS_FITNESS_DEVICE_DRIVER_RIG_H

#include "base/cuda/driver_types.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct driver {
    void *library;
#define CU_FN(symbol, name, since, scope, need, params, args) CUresult(*symbol) params;
#include "base/cuda/driver.def"
#undef CU_FN
} driver;

static driver cu;

#define OK(call) assert_int_equal((call), CUDA_SUCCESS)
#define IS(error, call) assert_int_equal((call), CUDA_ERROR_##error)

static inline void rig_find(const char *symbol, void *to) {
    void *found = dlsym(cu.library, symbol);
    if (found == NULL)
        fail_msg("libcuda.so.1 has no %s", symbol);
    memcpy(to, &found, sizeof found);
}

static inline void rig_open_driver(const char *devices) {
    (void)setenv("EVOKE_STANDIN", devices, 1);
    (void)setenv("EVOKE_STANDIN_QUIET", "1", 1);
    (void)setenv("EVOKE_STANDIN_FUEL", "200000000", 1);
    cu.library = dlopen(EVOKE_BINARY_DIR "/standin/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (cu.library == NULL)
        fail_msg("%s", dlerror());
#define CU_FN(symbol, name, since, scope, need, params, args) rig_find(#symbol, &cu.symbol);
#include "base/cuda/driver.def"
#undef CU_FN
}

static inline CUcontext context_of(CUdevice device) {
    CUcontext c = NULL;
    OK(cu.cuCtxCreate_v2(&c, 0, device));
    return c;
}

#endif
