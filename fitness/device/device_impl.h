/* The implementation of the device interface: one table of functions for each kind of device. */
#ifndef FITNESS_DEVICE_DEVICE_IMPL_H
#define FITNESS_DEVICE_DEVICE_IMPL_H

#include "fitness/device/device.h"

typedef struct device_ops {
    void (*close)(device *d);
    ev_status (*alloc)(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                       device_buffer *out, ev_error *err);
    /* As alloc, at an odd multiple of `align`. NULL: as alloc, wherever the device places it. */
    ev_status (*alloc_odd)(device *d, uint64_t bytes, uint32_t align, vm_buffer_kind kind,
                           const char *name, device_buffer *out, ev_error *err);
    /* The texture has its address. NULL: the device has none. */
    ev_status (*texture)(device *d, const vm_texture *texture, uint64_t *handle, ev_error *err);
    void (*clear)(device *d);
    uint64_t (*address)(const device *d, device_buffer buffer);
    ev_status (*write)(device *d, device_buffer buffer, uint64_t offset, const void *data,
                       uint64_t bytes, ev_error *err);
    ev_status (*read)(device *d, device_buffer buffer, uint64_t offset, void *data, uint64_t bytes,
                      ev_error *err);
    void *(*host)(device *d, device_buffer buffer);
    ev_status (*reset)(device *d, uint8_t poison, ev_error *err);
    ev_status (*written)(device *d, device_buffer buffer, size_t element_bytes, uint64_t first,
                         uint64_t count, uint8_t *written, uint64_t *how_many, ev_error *err);
    ev_status (*load)(device *d, device_kernel *kernel,
                      ev_error *err); /* module and entry are set */
    void (*unload)(device_kernel *kernel);
    /* `data` has variable->bytes. */
    ev_status (*fill)(device *d, device_kernel *kernel, const char *name,
                      const vm_variable *variable, const void *data, ev_error *err);
    ev_status (*check)(const device *d, const device_kernel *kernel, const device_launch *launch,
                       ev_error *err);
    ev_status (*run)(device *d, const device_kernel *kernel, const device_launch *launch,
                     device_outcome *out, ev_error *err);
    /* All devices have this table. NULL: one rank at a time. */
    ev_status (*run_ranks)(device *const *devices, const device_kernel *const *kernels,
                           const device_launch *launches, uint32_t count, device_outcome *out,
                           ev_error *err);
    ev_status (*time)(device *d, const device_kernel *kernel, const device_launch *launch,
                      device_outcome *out, device_timing *timing, ev_error *err);
    /* `rival` may be NULL; the caller zeroes its timing. NULL: times do not drift, and each launch
     * is timed by itself. */
    ev_status (*time_sequence)(device *d, const device_sequence *what, device_rival *rival,
                               device_outcome *out, device_timing *timing, ev_error *err);
    /* NULL: times of ranks are not modelled. */
    ev_status (*time_ranks)(device *const *devices, const device_kernel *const *kernels,
                            const device_launch *launches, uint32_t count, model_reach reach,
                            device_outcome *out, device_timing *timings, ev_error *err);
    /* As time_sequence, of launches that have rank_params and as many ranks each, which run on the
     * first of the devices side by side. NULL: times of ranks are not measured. */
    ev_status (*time_ranks_sequence)(device *const *devices, const device_sequence *what,
                                     device_rival *rival, device_outcome *out,
                                     device_timing *timing, ev_error *err);
    const uint64_t *(*stored)(const device *d, size_t *count);
    bool (*number)(const device *d, gpu_key key, double *out); /* NULL: none */
    const gpu *(*description)(const device *d);                /* NULL: none */
    uint64_t (*rebuilds)(const device *d);                     /* NULL: never */
    bool (*is_spent)(const device *d);                         /* NULL: never */
} device_ops;

/* First in each device's own struct. */
struct device {
    const device_ops *ops;
    device_properties properties;
    vm_words *words; /* of the modules that are loaded; NULL before the first */
};

struct device_kernel {
    device *owner;
    vm_module *module;
    const vm_entry *entry;
    /* On the VM, for launches without timing: the same with .global variables at odd multiples of
     * their alignment. NULL: the module has none. */
    vm_module *odd;
    const vm_entry *odd_entry;
    device_resources resources;
    bool may_wait; /* device_kernel_may_wait */
    void *own;     /* private to the device */
    /* Of a plan with several launches: the kernel of each, the first among them. NULL: of one. */
    device_kernel **launches;
    size_t launch_count;
};

/* Whether the instructions of a range may learn what other blocks did. */
bool device_code_waits(const vm_module *m, uint32_t first_pc, uint32_t end_pc);

/* `model`: the id without "vm:". */
ev_status device_vm_open(const char *model, device **out, ev_error *err) EV_CHECKED;
ev_status device_vm_open_ranks(const char *model, uint32_t count, device **out,
                               ev_error *err) EV_CHECKED;
/* `ordinal`: the id without "cuda:". */
ev_status device_cuda_open(const char *ordinal, device **out, ev_error *err) EV_CHECKED;
ev_status device_cuda_open_ranks(const char *ordinal, uint32_t count, device **out,
                                 ev_error *err) EV_CHECKED;
size_t device_cuda_count(void); /* 0 without a driver */

#endif
