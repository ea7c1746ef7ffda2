/* Looks at devices in a child process. */
#include "tuner/worker/look.h"

#include "tuner/worker/isolate.h"

#include <stdio.h>
#include <string.h>

#define SECONDS 60 /* longest time for a driver to open a GPU */

/* Runs in the child. */
static ev_status look(void *context, ev_str *out, ev_error *err) {
    device *d = NULL;
    EV_TRY(device_open(context, &d, err));
    ev_str_append_n(out, (const char *)device_properties_of(d), sizeof(device_properties));
    device_close(d);
    return EV_OK;
}

ev_status look_at_device(const char *id, device_properties *out, ev_error *err) {
    ev_str bytes = EV_STR_EMPTY;
    ev_status status = isolate_run(look, (void *)id, SECONDS, &bytes, err);
    if (status == EV_OK && bytes.length != sizeof *out)
        status = ev_fail(err, EV_INFRA, "the process that looked at %s gave no answer", id);
    if (status == EV_OK)
        memcpy(out, bytes.data, sizeof *out);
    ev_str_free(&bytes);
    return status;
}

bool look_is_gpu(const char *devices) {
    return strncmp(devices, "cuda:", 5) == 0;
}

static ev_status add_gpu(look_devices *all, const char *id, ev_error *err) {
    device_properties is;
    if (!look_is_gpu(id))
        return ev_fail(err, EV_BAD,
                       "'%s' is no GPU; several devices can only be GPUs: cuda:0,cuda:1", id);
    for (size_t i = 0; i < all->count; i++) {
        if (strcmp(all->ids[i], id) == 0)
            return ev_fail(err, EV_BAD, "%s is named twice; name each GPU once", id);
    }
    EV_TRY(look_at_device(id, &is, err));
    if (all->count == 0)
        all->first = is;
    (void)snprintf(all->models[all->count], sizeof all->models[0], "%s", is.name);
    (void)snprintf(all->ids[all->count++], sizeof all->ids[0], "%s", id);
    return EV_OK;
}

ev_status look_at_gpus(const char *devices, look_devices *out, ev_error *err) {
    *out = (look_devices){.count = 0};
    for (const char *at = devices;; at++) {
        char id[64];
        size_t length = strcspn(at, ",");
        if (length == 0 || length >= sizeof id || out->count == LOOK_MOST_GPUS)
            return ev_fail(
                err, EV_BAD,
                "--device '%s': name at most %d GPUs, with commas between: cuda:0,cuda:1", devices,
                LOOK_MOST_GPUS);
        (void)snprintf(id, sizeof id, "%.*s", (int)length, at);
        EV_TRY(add_gpu(out, id, err));
        at += length;
        if (*at == '\0')
            return EV_OK;
    }
}

bool look_is_one_model(const look_devices *gpus) {
    for (size_t i = 1; i < gpus->count; i++) {
        if (strcmp(gpus->models[i], gpus->models[0]) != 0)
            return false;
    }
    return true;
}
