/* The CUDA driver of this machine, found at run time: the rows of driver.def that the cuda device
 * and the bundle's launches need, as function pointers. */
#ifndef BASE_CUDA_DRIVER_H
#define BASE_CUDA_DRIVER_H

#include "base/cuda/driver_types.h"
#include "base/status.h"

#define CU_NEED_MUST(row) row
#define CU_NEED_MAY(row) row
#define CU_NEED_NEVER(row)

typedef struct cu_driver {
    void *library;
#define CU_FN(symbol, name, since, scope, need, params, args)                                      \
    CU_NEED_##need(CUresult(*symbol) params;)
#include "base/cuda/driver.def"
#undef CU_FN
} cu_driver;

/* Loads libcuda.so.1 by the loader's rules and finds the functions; calls none of them. EV_INFRA:
 * no library, or a missing function (with its name). */
ev_status cu_driver_find(cu_driver *out, ev_error *err) EV_CHECKED;
void cu_driver_close(cu_driver *driver);
/* "CUDA_ERROR_ILLEGAL_ADDRESS (700, an illegal memory access was encountered)", in `text`. */
const char *cu_error_text(const cu_driver *driver, CUresult result, char *text, size_t room);

#endif
