/* A shipped GPU description for tests of the model; a failure ends the test. */
#ifndef TESTS_FITNESS_MODEL_GPU_OF_H
#define TESTS_FITNESS_MODEL_GPU_OF_H

#include "fitness/model/gpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* The caller frees it. */
static inline gpu *load_gpu(const char *id) {
    gpu *g = NULL;
    ev_error err = {.text = ""};
    if (gpu_load(id, &g, &err) != EV_OK)
        fail_msg("%s", err.text);
    return g;
}

#endif
