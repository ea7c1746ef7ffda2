/* Look: asks about devices in a child process, so that this one never opens a GPU: after fork(), a
 * child of a process that has initialised the CUDA driver cannot use it. */
#ifndef TUNER_WORKER_LOOK_H
#define TUNER_WORKER_LOOK_H

#include "base/status.h"
#include "fitness/device/device.h"

/* As device_open. */
ev_status look_at_device(const char *id, device_properties *out, ev_error *err) EV_CHECKED;

#define LOOK_MOST_GPUS 8

/* GPUs by name: "cuda:0,cuda:1". */
typedef struct look_devices {
    char ids[LOOK_MOST_GPUS][64];
    char models[LOOK_MOST_GPUS][128]; /* as the driver names them */
    size_t count;
    device_properties first; /* of the first */
} look_devices;

/* Whether the text names GPUs. */
bool look_is_gpu(const char *devices);
/* EV_BAD: one that is not there, or is named twice. */
ev_status look_at_gpus(const char *devices, look_devices *out, ev_error *err) EV_CHECKED;
/* Whether all are of one model: what a search may time on. */
bool look_is_one_model(const look_devices *gpus);

#endif
