/* Look: queries devices in a child process, so that this process never opens a GPU. After fork(), a
 * child of a process that has initialised the CUDA driver cannot use the driver. */
#ifndef TUNER_WORKER_LOOK_H
#define TUNER_WORKER_LOOK_H

#include "base/status.h"
#include "fitness/device/device.h"

/* Gives the properties of a device. Errors are those of device_open. */
ev_status look_at_device(const char *id, device_properties *out, ev_error *err) EV_CHECKED;

#define LOOK_MOST_GPUS 8

/* A list of GPUs such as "cuda:0,cuda:1". */
typedef struct look_devices {
    char ids[LOOK_MOST_GPUS][64];
    char models[LOOK_MOST_GPUS][128]; /* names of the models, by the driver */
    size_t count;
    device_properties first; /* properties of the first GPU */
} look_devices;

/* Whether the text names GPUs ("cuda:..."). */
bool look_is_gpu(const char *devices);
/* Queries all GPUs of a list. EV_BAD: a GPU is missing, or is named twice. */
ev_status look_at_gpus(const char *devices, look_devices *out, ev_error *err) EV_CHECKED;
/* Whether all GPUs are of one model. A search may time only on GPUs of one model. */
bool look_is_one_model(const look_devices *gpus);

#endif
