/* The NVIDIA Management Library by dlopen; numbers from its API reference (docs.nvidia.com/deploy/
 * nvml-api): clock type 1 is the SM's, and the reasons below lower a clock under load. */
#include "fitness/device/cuda/nvml.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define CLOCK_SM 1u
#define SW_POWER_CAP 0x4ull
#define HW_SLOWDOWN 0x8ull
#define SW_THERMAL 0x20ull
#define HW_THERMAL 0x40ull
#define HW_POWER_BRAKE 0x80ull

struct nvml {
    void *library, *device;
    int (*shutdown)(void);
    int (*clock)(void *device, unsigned type, unsigned *mhz);
    int (*reasons)(void *device, unsigned long long *reasons);
};

static void *find(void *library, const char *name) {
    return dlsym(library, name);
}

static bool connect_to(nvml *n, const char *bus_id) {
    int (*init)(void) = NULL;
    int (*by_bus)(const char *bus_id, void **device) = NULL;
    const struct {
        const char *name;
        void *to;
    } wanted[] = {{"nvmlInit_v2", &init},
                  {"nvmlShutdown", &n->shutdown},
                  {"nvmlDeviceGetHandleByPciBusId_v2", &by_bus},
                  {"nvmlDeviceGetClockInfo", &n->clock},
                  {"nvmlDeviceGetCurrentClocksThrottleReasons", &n->reasons}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        void *found = find(n->library, wanted[i].name);
        if (found == NULL)
            return false;
        memcpy(wanted[i].to, &found, sizeof found);
    }
    if (init() != 0)
        return false;
    if (by_bus(bus_id, &n->device) == 0)
        return true;
    (void)n->shutdown();
    return false;
}

nvml *nvml_open(const char *bus_id) {
    nvml *n = calloc(1, sizeof *n);
    if (n == NULL)
        return NULL;
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (n->library != NULL && connect_to(n, bus_id))
        return n;
    if (n->library != NULL)
        (void)dlclose(n->library);
    free(n);
    return NULL;
}

void nvml_close(nvml *n) {
    if (n == NULL)
        return;
    (void)n->shutdown();
    (void)dlclose(n->library);
    free(n);
}

unsigned nvml_sm_clock(nvml *n) {
    unsigned mhz = 0;
    return n != NULL && n->clock(n->device, CLOCK_SM, &mhz) == 0 ? mhz : 0;
}

bool nvml_is_throttled(nvml *n) {
    unsigned long long reasons = 0;
    if (n == NULL || n->reasons(n->device, &reasons) != 0)
        return false;
    return (reasons & (SW_POWER_CAP | HW_SLOWDOWN | SW_THERMAL | HW_THERMAL | HW_POWER_BRAKE)) != 0;
}
