/* Device: one interface to the virtual machine and to a real GPU.
 *
 * A buffer is a handle; kernels get its device address. A launch ends `ok` or with a fault: a trap
 * of the VM, or an error of the driver. A fault is the candidate's; the call itself returns EV_OK.
 */
#ifndef FITNESS_DEVICE_DEVICE_H
#define FITNESS_DEVICE_DEVICE_H

#include "base/hash.h"
#include "base/launch_plan.h"
#include "base/status.h"
#include "fitness/model/model.h"
#include "fitness/vm/vm.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct device device;
typedef struct device_kernel device_kernel;
typedef uint32_t device_buffer; /* 0: none */

typedef struct device_properties {
    char id[64];    /* "vm:h200", "cuda:0" */
    char name[128]; /* "NVIDIA H200 SXM 141GB" */
    int sm;         /* 90 */
    bool modelled;  /* true: times are modelled, not measured */
    uint32_t max_threads_per_block;
    uint32_t max_shared_per_block;
    uint32_t max_registers_per_thread;
    uint64_t memory_bytes;
    char driver[64]; /* "CUDA driver 13.0"; "" without a driver */
    bool all_blocks; /* every launch runs its whole grid; samples are ignored */
    /* The virtual machine that a candidate must pass before this device runs it, "vm:h200"; "" if
     * the device checks everything itself. */
    char twin[64];
    bool twin_is_same;   /* the twin's description is of this GPU model */
    char twin_note[320]; /* if !twin_is_same: what is missing, and the cure; else "" */
    char placement[200]; /* of several ranks: where they run, and why; else "" */
} device_properties;

/* Environment variable of --no-hold. If it is set, cuda:N times launches at the pace of the host;
 * otherwise a kernel holds the queue while the host fills it. */
#define DEVICE_NO_HOLD "EVOKE_NO_HOLD"

/* Opens "vm:MODEL", "vm:FILE.json" or "cuda:N". EV_BAD: an unknown device, with the known ones.
 * EV_INFRA: no CUDA driver, or the driver fails. */
ev_status device_open(const char *id, device **out, ev_error *err) EV_CHECKED;
/* As device_open, `count` times, to out[0..count), for device_run_ranks: the kernels of these
 * devices reach each other's buffers by address. On cuda:N each device has its own GPU, from N on,
 * if there are enough GPUs of one model with peer access; otherwise several share one GPU.
 * `placement` of the properties tells which. EV_BAD: more ranks than one GPU can hold. */
ev_status device_open_ranks(const char *id, uint32_t count, device **out, ev_error *err) EV_CHECKED;
void device_close(device *d); /* NULL is fine */
const device_properties *device_properties_of(const device *d);

/* A number of the GPU description as the device itself reports it: SMs, sizes, nominal clocks.
 * false: not reported. */
bool device_number(const device *d, gpu_key key, double *out);

/* The GPU description that the device models its times by; NULL: it measures them. */
const gpu *device_description(const device *d);

/* Ids of all devices: cuda:N for each GPU of the driver, vm:MODEL for each GPU description. Free
 * with device_list_free. */
ev_status device_list(char ***ids, size_t *count, ev_error *err) EV_CHECKED;
void device_list_free(char **ids, size_t count);
/* Number of rebuilds of the device after a fault. Buffers, their contents and kernels survive a
 * rebuild; addresses may change. Times measured before a rebuild must be measured again. Always
 * 0 on the VM. */
uint64_t device_rebuilds(const device *d);
/* True if this process cannot use the device any more, after a fault or an endless kernel;
 * another process has to open the device. The faulty run returned its outcome as usual. Every
 * later call returns EV_INFRA. */
bool device_is_spent(const device *d);
/* True if a device of this id can become spent. Work of several launches then belongs in a relay of
 * processes (base/relay.h). A NULL id is fine. */
bool device_may_be_spent(const char *id);

/* ---- buffers: the same address for the same sequence of calls
 * -------------------------------------- */

ev_status device_alloc(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                       device_buffer *out, ev_error *err) EV_CHECKED;
/* As device_alloc. On the VM, the buffer's address is an odd multiple of `align`, a power of two:
 * an access that needs more alignment traps there. */
ev_status device_alloc_odd(device *d, uint64_t bytes, uint32_t align, vm_buffer_kind kind,
                           const char *name, device_buffer *out, ev_error *err) EV_CHECKED;
/* A texture or surface of a buffer's elements: sets the address, and *handle, which a kernel takes
 * as its parameter. EV_BAD: as vm_texture_new; a device other than the VM. */
ev_status device_texture(device *d, device_buffer buffer, const vm_texture *texture,
                         uint64_t *handle, ev_error *err) EV_CHECKED;
/* Frees all buffers, and the textures and surfaces of them. */
void device_clear(device *d);
uint64_t device_address(const device *d, device_buffer buffer);
/* Writes contents before the first launch after a reset. IN and INOUT buffers only. */
ev_status device_write(device *d, device_buffer buffer, uint64_t offset, const void *data,
                       uint64_t bytes, ev_error *err) EV_CHECKED;
ev_status device_read(device *d, device_buffer buffer, uint64_t offset, void *data, uint64_t bytes,
                      ev_error *err) EV_CHECKED;
/* The buffer's contents on the VM, which the host fills before a launch and reads after it; NULL on
 * other devices. Valid until device_clear. */
void *device_host(device *d, device_buffer buffer);
/* Poisons OUT buffers and marks every element as not written. Call before each launch of a new
 * candidate. */
ev_status device_reset(device *d, uint8_t poison, ev_error *err) EV_CHECKED;
/* As vm_memory_written. On a device without shadow memory, an element that differs from the poison
 * counts as written. */
ev_status device_written(device *d, device_buffer buffer, size_t element_bytes, uint64_t first,
                         uint64_t count, uint8_t *written, uint64_t *how_many,
                         ev_error *err) EV_CHECKED;

/* ---- kernels
 * ---------------------------------------------------------------------------------------- */

/* Loads a kernel. EV_BAD: the device refuses the PTX (with its message), or the entry is missing.
 */
ev_status device_load(device *d, const char *ptx, size_t bytes, const char *entry,
                      device_kernel **out, ev_error *err) EV_CHECKED;
/* Loads the kernels of all launches of a plan; *out is that of the first, and the handle of all.
 * EV_BAD: as device_load. */
ev_status device_load_plan(device *d, const char *ptx, size_t bytes, const launch_plan *plan,
                           device_kernel **out, ev_error *err) EV_CHECKED;
/* The kernel of a launch of the plan; borrowed. */
device_kernel *device_kernel_of(device_kernel *kernel, size_t launch);
void device_unload(device_kernel *kernel); /* with all kernels of its plan; NULL is fine */

/* Fills a .const or .global variable of the modules of all kernels of the plan, for the launches
 * from here on; bytes
 * behind `bytes` become zero. Nothing happens if the module has no variable of that name. EV_BAD:
 * the variable is smaller. */
ev_status device_fill(device *d, device_kernel *kernel, const char *name, const void *data,
                      uint64_t bytes, ev_error *err) EV_CHECKED;

typedef struct device_resources {
    uint32_t registers;    /* a thread; estimated on the VM */
    uint32_t shared_bytes; /* static, a block */
    uint32_t local_bytes;  /* a thread */
    uint32_t spill_bytes;  /* spill stores a thread, if the driver's compiler reports them */
    uint32_t max_threads;  /* a block, from the kernel's own bounds; 0: none */
} device_resources;

/* Of the kernel; of a plan, the most of each that one of its kernels takes. */
device_resources device_kernel_resources(const device_kernel *kernel);
/* The kernel's entry, with the layout of the parameter block that the caller packs. */
const vm_entry *device_kernel_entry(const device_kernel *kernel);
const vm_module *device_kernel_module(const device_kernel *kernel);
/* On the VM: whether blocks may learn what other blocks did, by the result of an atomic or of a
 * strong load from global memory, if an instruction reads that result. As many blocks of such a
 * kernel as the GPU holds are alive at once, so that they may wait for each other. */
bool device_kernel_may_wait(const device_kernel *kernel);
/* The same of the kernel's own code, without the other kernels of its
 * module; on any device. */
bool device_kernel_waits(const device_kernel *kernel);
/* Whether the kernel has atomics that go to global memory, as far as its text tells. */
bool device_kernel_has_far_atomics(const device_kernel *kernel);
/* The same of any memory. */
bool device_kernel_has_atomics(const device_kernel *kernel);
/* Whether the kernel may add real numbers by atomics, in global or shared memory: by an atomic sum,
 * or a compare-and-swap. The order of these additions is not defined, and decides the last bits of
 * the sums. */
bool device_kernel_adds_reals(const device_kernel *kernel);

typedef struct device_launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared;
    const void *params;
    const void *const *rank_params; /* of a group (device_group.h): the parameters of each rank */
    uint32_t ranks;                 /* of a group; 0 on other devices */
    uint64_t fuel;                  /* thread instructions; 0: the device's default */
    vm_checks checks;               /* on the VM */
    vm_approx approx;               /* on the VM */
    unsigned stream;                /* on the VM: as vm_launch.stream */
    uint64_t schedule_seed;         /* on the VM */
    uint32_t jobs;          /* on the VM, not when timed: threads that share the blocks; 0: one */
    const uint32_t *sample; /* on the VM: blocks to run; NULL: all */
    size_t sample_count;
    const double *weights; /* on the VM: as vm_launch.weights */
    uint64_t *paths;       /* on the VM: as vm_launch.paths */
    /* On the VM: gets the kernel's output, as vm_launch.print; NULL: dropped. */
    void (*print)(void *context, const char *text, size_t bytes);
    void *print_context;
    uint64_t *executions; /* on the VM: per pc; NULL: not wanted */
    double *stalls; /* on the VM, with timing: per pc share of stall cycles; NULL: not wanted */
    model_site
        *sites; /* the same by cause, with the accesses; zeroed by the caller; NULL: not wanted */
    bool notes_stores; /* on the VM, without timing: fills device_stored */
    bool follows_all;  /* on the VM, with timing: as model_follow_all */
} device_launch;

/* A launch of that geometry, with all else 0. */
device_launch device_launch_of(const launch_geometry *at);

typedef struct device_outcome {
    bool ok;
    vm_trap fault; /* when not ok */
    vm_counters counters;
    bool waits; /* on the VM: a block waited for another block */
    /* Of several launches in order: the one with the fault, or that a message of a failed call is
     * about; DEVICE_ANY_LAUNCH: one of them, in a queue. */
    size_t launch;
} device_outcome;

#define DEVICE_ANY_LAUNCH SIZE_MAX

/* Runs a launch. EV_BAD: it does not fit the device (block too large, shared memory, registers). */
ev_status device_run(device *d, const device_kernel *kernel, const device_launch *launch,
                     device_outcome *out, ev_error *err) EV_CHECKED;

/* Runs several launches side by side on the devices of one device_open_ranks. Rank i runs
 * kernels[i], loaded on any of them, with launches[i] on devices[i]. Flags and .sys atomics in each
 * other's buffers work as between GPUs with peer access; vm_run_ranks lists the checks. A fault in
 * one rank ends all. Each outcome then has that fault, and its `rank` is the failing one. On GPUs
 * it may be another rank on the same GPU, as the message says. EV_BAD: ranks that share a GPU do
 * not fit it together. */
ev_status device_run_ranks(device *const *devices, const device_kernel *const *kernels,
                           const device_launch *launches, uint32_t count, device_outcome *out,
                           ev_error *err) EV_CHECKED;

typedef struct device_timing {
    double ns;              /* median, with cold caches: the L2 is written over before each
                               launch; modelled on the VM */
    double low_ns, high_ns; /* interval of 95 %; equal to ns on the VM */
    double warm_ns;         /* median with the caches of the previous run, as published times
                               are; modelled on the VM; 0: not measured */
    uint32_t samples;       /* of the median; 1 on the VM */
    uint32_t discarded;     /* samples discarded for a lowered clock. From 40 on, kept samples may
                               have a lowered clock, too; see sm_mhz */
    double sm_mhz;    /* the SM clock during the samples, by stamps on the GPU; 0: not known */
    model_time model; /* on the VM */
} device_timing;

/* Checks a launch without running it. EV_BAD: it does not fit the device (names the limit), as
 * device_run would say. */
ev_status device_check(const device *d, const device_kernel *kernel, const device_launch *launch,
                       ev_error *err) EV_CHECKED;

/* Runs and times. On the VM: one run of the launch (its sample), modelled. `timing` is set only
 * when out->ok. */
ev_status device_time(device *d, const device_kernel *kernel, const device_launch *launch,
                      device_outcome *out, device_timing *timing, ev_error *err) EV_CHECKED;

/* Launches that run in order, each when the one before has ended, on what that one left. */
typedef struct device_sequence {
    const device_kernel *const *kernels; /* by launch */
    const device_launch *launches;
    size_t count; /* 1 or more */
} device_sequence;

/* A second sequence to compare a sequence with. Both are timed by turns in the same batches, so a
 * drift of the clock affects both. The rival uses the same inputs and outputs and has run before;
 * EV_INFRA if it now fails. */
typedef struct device_rival {
    device_sequence what;
    device_timing
        timing; /* out; without warm_ns. samples 0: not timed, on a device without drift */
} device_rival;

/* As device_time, of all launches together: buffers that are updated are put back before the first
 * one, and the L2 is written over before the first one alone. Also times the rival; NULL: none.
 * EV_BAD: as device_time, of launch out->launch or of the rival's; several launches on a device
 * with a sample of blocks, where each is timed by itself. */
ev_status device_time_sequence(device *d, const device_sequence *what, device_rival *rival,
                               device_outcome *out, device_timing *timing,
                               ev_error *err) EV_CHECKED;
/* As device_run_ranks, with a modelled time of each rank. `reach` is the distance of the peers.
 * EV_BAD: not on the VM. The time that a rank waits for another is not modelled: a rank is charged
 * for the instructions that it executed. */
ev_status device_time_ranks(device *const *devices, const device_kernel *const *kernels,
                            const device_launch *launches, uint32_t count, model_reach reach,
                            device_outcome *out, device_timing *timings, ev_error *err) EV_CHECKED;
/* Stored sectors (address / 32) of the last run, valid until the next one. After device_time each
 * sector is listed once a block; after a device_run with notes_stores, once a store. NULL and 0
 * after any other run, and on a device that does not know. */
const uint64_t *device_stored(const device *d, size_t *count);

#endif
