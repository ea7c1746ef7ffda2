/* CUDA device, driver: starts the driver in the environment that the device's timing needs. */
#include "fitness/device/cuda/cuda.h"

#include <stdlib.h>

static ev_status start(const cu_driver *d, ev_error *err) {
    char text[200];
    /* the compiler's log is wanted each time, and candidates are seen once */
    (void)setenv("CUDA_CACHE_DISABLE", "1", 0);
    /* kernels of ranks wait for each other, and batches for the host: none may be loaded only when
     * it is launched (the driver's default since 12.0), nor stand behind another in a hardware
     * queue */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CUresult result = d->cuInit(0);
    return result == CUDA_SUCCESS ? EV_OK
                                  : ev_fail(err, EV_INFRA, "the CUDA driver does not start: %s",
                                            cu_error_text(d, result, text, sizeof text));
}

ev_status cuda_driver_open(cu_driver *out, ev_error *err) {
    cu_driver d = {0};
    ev_error why = {0};
    if (cu_driver_find(&d, &why) != EV_OK)
        return ev_fail(err, EV_INFRA, "%s; vm:MODEL (vm:h200, say) needs none", why.text);
    ev_status status = start(&d, err);
    if (status == EV_OK)
        *out = d;
    else
        cu_driver_close(&d);
    return status;
}
