/* A libnvidia-ml.so.1 beside the stand-in for the driver: clocks as EVOKE_STANDIN_CLOCKS lists
 * them. "1980,1500,1980!" is 1980 MHz when first asked, then 1500, then 1980 and held back, which
 * stays; unset: not known. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, CLOCK_SM = 1 };
#define POWER_CAP 0x4ull

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlShutdown(void);
EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
EXPORT int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz);
EXPORT int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons);

/* What it was asked last, by the process: the interface has no other place for it. */
static unsigned asked;
static bool held_back;

int nvmlInit_v2(void) {
    asked = 0;
    held_back = false;
    return SUCCESS;
}

int nvmlShutdown(void) {
    return SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device) {
    *device = &asked;
    return bus_id[0] != '\0' ? SUCCESS : INVALID_ARGUMENT;
}

int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz) {
    const char *at = getenv("EVOKE_STANDIN_CLOCKS"), *next;
    if (device != &asked || type != CLOCK_SM)
        return INVALID_ARGUMENT;
    if (at == NULL || *at == '\0')
        return NOT_SUPPORTED;
    for (unsigned i = 0; i < asked && (next = strchr(at, ',')) != NULL; i++)
        at = next + 1;
    asked++;
    char *end = NULL;
    *mhz = (unsigned)strtoul(at, &end, 10);
    held_back = *end == '!';
    return SUCCESS;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons) {
    *reasons = held_back ? POWER_CAP : 0;
    return device == &asked ? SUCCESS : INVALID_ARGUMENT;
}
