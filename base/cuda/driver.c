/* Finds the CUDA driver at run time, so that the project builds and runs where there is none. */
#include "base/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

enum { MUST, MAY, NEVER };

static ev_status find(cu_driver *d, const char *symbol, int need, void *to, ev_error *err) {
    void *found = dlsym(d->library, symbol);
    if (found == NULL && need == MUST)
        return ev_fail(err, EV_INFRA, "the CUDA driver has no %s: it is too old", symbol);
    memcpy(to, &found, sizeof found);
    return EV_OK;
}

static ev_status find_all(cu_driver *d, ev_error *err) {
#define CU_FN(symbol, name, since, scope, need, params, args)                                      \
    CU_NEED_##need(EV_TRY(find(d, #symbol, need, &d->symbol, err));)
#include "base/cuda/driver.def"
#undef CU_FN
    return EV_OK;
}

ev_status cu_driver_find(cu_driver *out, ev_error *err) {
    cu_driver d = {.library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL)};
    if (d.library == NULL)
        return ev_fail(err, EV_INFRA, "no CUDA driver on this machine (%s)", dlerror());
    ev_status status = find_all(&d, err);
    if (status == EV_OK)
        *out = d;
    else
        cu_driver_close(&d);
    return status;
}

void cu_driver_close(cu_driver *d) {
    if (d->library != NULL)
        (void)dlclose(d->library);
    d->library = NULL;
}

const char *cu_error_text(const cu_driver *d, CUresult result, char *text, size_t room) {
    const char *name = NULL, *words = NULL;
    (void)d->cuGetErrorName(result, &name);
    (void)d->cuGetErrorString(result, &words);
    (void)snprintf(text, room, "%s (%d, %s)", name != NULL ? name : "an error", (int)result,
                   words != NULL ? words : "unknown to this driver");
    return text;
}
