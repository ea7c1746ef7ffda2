/* Device: the one interface in front of the virtual machine and a real GPU.
 *
 * A buffer is a handle; kernels get its device address. A launch ends `ok` or with a fault (a trap
 * of the VM, an error of the driver); a fault is the candidate's and no failure of the call. */
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
    char driver[64]; /* "CUDA driver 13.0"; "" where there is none */
    bool all_blocks; /* every launch runs its whole grid: samples are not heeded */
    /* The virtual machine that a candidate has to pass before it may come here, "vm:h200"; "" where
     * none is needed, since the device checks everything itself. */
    char twin[64];
    bool twin_is_same;   /* the twin's description is of this very GPU model */
    char twin_note[320]; /* where it isn't: what is missing, and the cure; else "" */
    char placement[200]; /* of ranks: where they run, and why there; "" where there is one */
} device_properties;

/* Environment of a process whose devices time launches as the host gives them, where it is set:
 * cuda:N holds its queue while it is filled, else (--no-hold). */
#define DEVICE_NO_HOLD "EVOKE_NO_HOLD"

/* "vm:MODEL", "vm:FILE.json" or "cuda:N". EV_BAD: no such device, with those there are. EV_INFRA:
 * no CUDA driver, or it fails. */
ev_status device_open(const char *id, device **out, ev_error *err) EV_CHECKED;
/* As device_open, `count` times, to out[0..count): devices whose kernels reach each other's buffers
 * by their addresses, for device_run_ranks. On cuda:N each has a GPU of its own, from N on, where
 * there are GPUs of one model with peer access, else several share one; `placement` of the
 * properties says which. EV_BAD: more than a GPU takes. */
ev_status device_open_ranks(const char *id, uint32_t count, device **out, ev_error *err) EV_CHECKED;
void device_close(device *d); /* NULL is fine */
const device_properties *device_properties_of(const device *d);

/* What the device itself says of a number of its GPU description: SMs, sizes, clocks on paper.
 * false: nothing. */
bool device_number(const device *d, gpu_key key, double *out);

/* Ids of the devices there are: cuda:N for each GPU that a driver knows, vm:MODEL for each GPU
 * description. Free with device_list_free. */
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
/* Whether that may come to a device of this id (NULL is fine), so that work of several launches
 * belongs in a relay of processes (base/relay.h). */
bool device_may_be_spent(const char *id);

/* ---- buffers: the same address for the same sequence of calls
 * -------------------------------------- */

ev_status device_alloc(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                       device_buffer *out, ev_error *err) EV_CHECKED;
/* Frees all buffers. */
void device_clear(device *d);
uint64_t device_address(const device *d, device_buffer buffer);
/* Contents before the first launch after a reset. IN and INOUT only. */
ev_status device_write(device *d, device_buffer buffer, uint64_t offset, const void *data,
                       uint64_t bytes, ev_error *err) EV_CHECKED;
ev_status device_read(device *d, device_buffer buffer, uint64_t offset, void *data, uint64_t bytes,
                      ev_error *err) EV_CHECKED;
/* The buffer's contents where the host can see them (the VM), to fill before and read after a
 * launch; NULL on other devices. Valid until device_clear. */
void *device_host(device *d, device_buffer buffer);
/* Before each launch of a new candidate: OUT buffers poisoned, what counts as written forgotten. */
ev_status device_reset(device *d, uint8_t poison, ev_error *err) EV_CHECKED;
/* As vm_memory_written. On a device without shadow memory, an element counts as written when it
 * differs from the poison. */
ev_status device_written(device *d, device_buffer buffer, size_t element_bytes, uint64_t first,
                         uint64_t count, uint8_t *written, uint64_t *how_many,
                         ev_error *err) EV_CHECKED;

/* ---- kernels
 * ---------------------------------------------------------------------------------------- */

/* EV_BAD: the device refuses the PTX (its message), or the entry is not there. */
ev_status device_load(device *d, const char *ptx, size_t bytes, const char *entry,
                      device_kernel **out, ev_error *err) EV_CHECKED;
void device_unload(device_kernel *kernel); /* NULL is fine */

typedef struct device_resources {
    uint32_t registers;    /* a thread; estimated on the VM */
    uint32_t shared_bytes; /* static, a block */
    uint32_t local_bytes;  /* a thread */
    uint32_t spill_bytes;  /* stored a thread, where the driver's compiler says so */
    uint32_t max_threads;  /* a block, from the kernel's own bounds; 0: none */
} device_resources;

device_resources device_kernel_resources(const device_kernel *kernel);
/* The kernel's parameter list; the caller packs the parameter block by it. */
const vm_entry *device_kernel_entry(const device_kernel *kernel);
const vm_module *device_kernel_module(const device_kernel *kernel);

typedef struct device_launch {
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared;
    const void *params;
    uint64_t fuel;          /* thread instructions; 0: the device's default */
    vm_checks checks;       /* on the VM */
    uint64_t schedule_seed; /* on the VM */
    uint32_t jobs;          /* on the VM, not when timed: threads that share the blocks; 0: one */
    const uint32_t *sample; /* on the VM: blocks to run; NULL: all */
    size_t sample_count;
    /* On the VM: gets what the kernel prints, as vm_launch.print; NULL: dropped. */
    void (*print)(void *context, const char *text, size_t bytes);
    void *print_context;
    uint64_t *executions; /* on the VM: per pc; NULL: not wanted */
    double *stalls; /* on the VM, with timing: per pc share of stall cycles; NULL: not wanted */
    model_site
        *sites; /* the same, with what it waited for and accessed; zeroed; NULL: not wanted */
    bool notes_stores; /* on the VM, not when timed: device_stored knows what it stored to */
    bool follows_all;  /* on the VM, with timing: as if no block repeated another */
} device_launch;

/* A launch of that geometry, with all else 0. */
device_launch device_launch_of(const launch_geometry *at);

typedef struct device_outcome {
    bool ok;
    vm_trap fault; /* when not ok */
    vm_counters counters;
} device_outcome;

/* EV_BAD: the launch does not fit the device (block too large, shared memory, registers). */
ev_status device_run(device *d, const device_kernel *kernel, const device_launch *launch,
                     device_outcome *out, ev_error *err) EV_CHECKED;

/* Several launches side by side, one on each of the devices that device_open_ranks made: rank i
 * runs kernels[i], loaded on any of them, with launches[i], on devices[i]. Flags and .sys atomics
 * in each other's buffers work as between GPUs with peer access; see vm_run_ranks for what is
 * checked. A fault in one rank ends all: each outcome then has that fault, whose `rank` says where
 * it was; on GPUs it may be of another rank on the same GPU, as its message says. EV_BAD: ranks
 * that share a GPU do not fit it together. */
ev_status device_run_ranks(device *const *devices, const device_kernel *const *kernels,
                           const device_launch *launches, uint32_t count, device_outcome *out,
                           ev_error *err) EV_CHECKED;

typedef struct device_timing {
    double ns;              /* median; modelled on the VM */
    double low_ns, high_ns; /* interval of 95 %; equal to ns on the VM */
    double warm_ns;         /* median with caches as the last run left them; 0: not measured */
    uint32_t samples;       /* behind the median; 1 on the VM */
    uint32_t discarded;     /* taken at a lowered clock, and thrown away; from 40 on the others may
                               be no better: sm_mhz says */
    double sm_mhz;          /* the SM clock meanwhile, by stamps on the GPU; 0: not known */
    model_time model;       /* on the VM: where it went */
} device_timing;

/* EV_BAD: the launch does not fit the device (names the limit); says before it is run what
 * device_run would say. */
ev_status device_check(const device *d, const device_kernel *kernel, const device_launch *launch,
                       ev_error *err) EV_CHECKED;

/* Runs and times. On the VM: one run of the launch (its sample), modelled. `timing` is set only
 * when out->ok. */
ev_status device_time(device *d, const device_kernel *kernel, const device_launch *launch,
                      device_outcome *out, device_timing *timing, ev_error *err) EV_CHECKED;

/* What a launch is timed against, by turns with it in the same batches, so that a drift of the
 * clock meets both. It works on the same buffers, and has been run before: that it fails now is
 * EV_INFRA. */
typedef struct device_rival {
    const device_kernel *kernel;
    const device_launch *launch;
    device_timing timing; /* out, no warm_ns; samples 0: not taken, since times never drift here */
} device_rival;

/* As device_time, and times the rival too. */
ev_status device_time_against(device *d, const device_kernel *kernel, const device_launch *launch,
                              device_rival *rival, device_outcome *out, device_timing *timing,
                              ev_error *err) EV_CHECKED;
/* As device_run_ranks, with a model of each rank's time, whose peers are as far as `reach` says.
 * Only on the VM, else EV_BAD. A rank that waits for another is not modelled to wait: it is charged
 * what the machine had it execute. */
ev_status device_time_ranks(device *const *devices, const device_kernel *const *kernels,
                            const device_launch *launches, uint32_t count, model_reach reach,
                            device_outcome *out, device_timing *timings, ev_error *err) EV_CHECKED;
/* 32-byte sectors (address / 32) that the last device_time stored to, each once a block; valid
 * until the next run; after a device_run that notes stores too, but as often as they were stored
 * to. NULL, and 0, after another device_run and on a device that does not know. */
const uint64_t *device_stored(const device *d, size_t *count);

#endif
