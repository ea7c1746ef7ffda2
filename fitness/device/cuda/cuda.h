/* Inside of the device cuda:N: GPUs through the driver.
 *
 * After a fault of a kernel the driver's context is of no use any more: it is made anew, buffers
 * are allocated and filled again from the copies kept on the host, and kernels are loaded again
 * when they are next wanted. The driver may refuse that to a process that had a fault, and a kernel
 * that does not end cannot be stopped from within the process: then the launch is answered, the
 * device is spent, and every later call fails as infrastructure, so that the process is replaced.
 */
#ifndef FITNESS_DEVICE_CUDA_CUDA_H
#define FITNESS_DEVICE_CUDA_CUDA_H

#include "fitness/device/cuda/cuda_clock.h"
#include "fitness/device/cuda/driver.h"
#include "fitness/device/cuda/nvml.h"
#include "fitness/device/cuda/ptxas.h"
#include "fitness/device/device_impl.h"

#include <pthread.h>

#define CUDA_CANARY_BYTES 256

typedef struct cuda_buffer {
    CUdeviceptr base; /* of the allocation: a canary, the contents, a canary */
    CUdeviceptr keep; /* of INOUT buffers, while times are taken: the contents as before; 0: none */
    uint64_t bytes;
    vm_buffer_kind kind;
    char name[64];
    uint8_t *before;  /* IN, INOUT: contents as the host wrote them */
    uint8_t *mirror;  /* contents as last read; NULL: never */
    bool is_mirrored; /* and nothing has run since */
} cuda_buffer;

struct cuda_device;

/* Devices that are ranks of each other; one alone is a group too. Those on one GPU share a context,
 * and after a fault the contexts of all are made anew. */
typedef struct cuda_group {
    struct cuda_device **members;
    uint32_t count, alive; /* alive: not closed */
} cuda_group;

/* Ends a hold that lasts, from a thread of its own. */
typedef struct cuda_watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool runs, over, broken; /* broken: it had to end the hold */
} cuda_watch;

typedef struct cuda_device {
    device base; /* first */
    cuda_group *group;
    cu_driver cu;
    nvml *clocks;
    ptxas assembler;
    int version;    /* of the driver, 12040 for CUDA 12.4; 0: not known */
    int capability; /* 90; the properties' is what candidates are compiled for */
    CUdevice ordinal;
    CUcontext context;
    CUstream stream;
    CUevent done;
    CUmodule own_module;
    CUfunction hold; /* waits until the host writes to *flag */
    CUfunction stamp, grain;
    double timer_grain; /* ns of a step of %globaltimer in this context; 0: not yet measured */
    cuda_watch watch;
    bool never_holds;
    unsigned holds_broken;
    CUdeviceptr stamps; /* two tables */
    unsigned stamp_blocks;
    volatile uint32_t *flag;
    CUdeviceptr flag_seen; /* the same, as kernels know it */
    CUdeviceptr flush;     /* written over before each cold sample */
    uint64_t flush_bytes;
    cuda_buffer *buffers; /* by handle - 1 */
    size_t count, room;
    uint8_t poison;
    uint64_t rebuilds;
    bool dead;           /* given up */
    double watchdog;     /* seconds */
    double best_clock;   /* MHz, the highest seen, as the management library says */
    double best_stamped; /* the same by stamps */
} cuda_device;

/* What is behind device_kernel.own. */
typedef struct cuda_kernel {
    CUmodule module;
    CUfunction function;
    ev_str cubin;      /* machine code that it was loaded from; empty: PTX */
    uint64_t rebuilds; /* of the device when it was loaded */
} cuda_kernel;

static inline cuda_device *cuda_of(device *d) {
    return (cuda_device *)d;
}

static inline const cuda_device *cuda_of_const(const device *d) {
    return (const cuda_device *)d;
}

/* EV_INFRA with the driver's words, unless `result` is CUDA_SUCCESS. */
ev_status cuda_check(const cuda_device *c, CUresult result, const char *what,
                     ev_error *err) EV_CHECKED;
/* The device is usable; makes its context the thread's. */
ev_status cuda_enter(const cuda_device *c, ev_error *err) EV_CHECKED;
/* Whether a kernel's own doing ended the context. */
bool cuda_is_fault(CUresult result);

/* ---- what the driver knows of a GPU description (cuda_numbers.c) ---- */
bool cuda_number(const device *d, gpu_key key, double *out);

/* ---- opening (cuda_device.c) ---- */
/* Without a context. `like`: a device that is perhaps the same model, with the same twin; NULL:
 * none. */
ev_status cuda_open_bare(const char *ordinal, const cuda_device *like, cuda_device **out,
                         ev_error *err) EV_CHECKED;

/* ---- contexts (cuda_context.c) ---- */
/* Makes the devices a group, with its contexts. */
ev_status cuda_make_contexts(cuda_device *const *members, uint32_t count, ev_error *err) EV_CHECKED;
/* The last to leave takes the contexts along, and frees the others' structs. */
void cuda_leave_group(cuda_device *c);
/* After a fault: the group's contexts anew, buffers with their contents. Where the driver gives no
 * new context to a process that had a fault, the group is given up, and the fault says so: it is
 * still the fault that counts. */
void cuda_replace_contexts(cuda_device *c, vm_trap *fault);
/* The group is of no use to this process any more. */
void cuda_give_up(const cuda_device *c);

/* ---- buffers (cuda_buffers.c) ---- */
ev_status cuda_alloc(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                     device_buffer *out, ev_error *err) EV_CHECKED;
void cuda_clear(device *d);
uint64_t cuda_address(const device *d, device_buffer buffer);
ev_status cuda_write(device *d, device_buffer buffer, uint64_t offset, const void *data,
                     uint64_t bytes, ev_error *err) EV_CHECKED;
ev_status cuda_read(device *d, device_buffer buffer, uint64_t offset, void *data, uint64_t bytes,
                    ev_error *err) EV_CHECKED;
ev_status cuda_reset(device *d, uint8_t poison, ev_error *err) EV_CHECKED;
ev_status cuda_written(device *d, device_buffer buffer, size_t element_bytes, uint64_t first,
                       uint64_t count, uint8_t *written, uint64_t *how_many,
                       ev_error *err) EV_CHECKED;
void *cuda_host(device *d, device_buffer buffer); /* NULL */
/* All buffers in a new context, with their contents. */
ev_status cuda_restore_buffers(cuda_device *c, ev_error *err) EV_CHECKED;
/* INOUT as before, OUT poisoned. */
ev_status cuda_renew_contents(cuda_device *c, ev_error *err) EV_CHECKED;
/* What a kernel must not have touched: canaries, and with `inputs` the inputs' contents. Sets
 * `trap` where it has. */
ev_status cuda_inspect(cuda_device *c, bool inputs, vm_trap *trap, ev_error *err) EV_CHECKED;

/* ---- kernels (cuda_kernel.c) ---- */
ev_status cuda_load(device *d, device_kernel *kernel, ev_error *err) EV_CHECKED;
void cuda_unload(device_kernel *kernel);
/* Loads it again if the context is another than it was loaded in. */
ev_status cuda_need_kernel(cuda_device *c, const device_kernel *kernel, ev_error *err) EV_CHECKED;
/* Once more, in the context of a device that is not its owner; the caller unloads the module. */
ev_status cuda_load_copy(cuda_device *c, const device_kernel *kernel, CUmodule *module,
                         CUfunction *function, ev_error *err) EV_CHECKED;

/* ---- kernels of its own (cuda_own.c) ---- */
CUresult cuda_load_own(cuda_device *c);
CUresult cuda_launch_hold(const cuda_device *c);
/* Runs each of them, and the fills of a batch, once in this context, so that none is loaded behind
 * a held stream; measures the timer. */
CUresult cuda_warm_own(cuda_device *c);
/* Stamps of all SMs, when the stream comes to it: `which` 0 before, 1 after what is looked at. */
CUresult cuda_leave_stamps(const cuda_device *c, unsigned which);
/* Between the two; the stream is done. 0: not known. */
CUresult cuda_stamped_mhz(const cuda_device *c, double *mhz);

/* ---- holding the stream (cuda_hold.c) ---- */
/* EV_INFRA: the environment has what would make a held stream wait for ever; names it. */
ev_status cuda_may_hold(cuda_device *c, ev_error *err) EV_CHECKED;
/* The stream does nothing until cuda_let_go, or until a watchdog's time is over. */
CUresult cuda_hold(cuda_device *c);
/* True: the watchdog had to, so that what was queued is worth no time. */
bool cuda_let_go(cuda_device *c);

/* ---- launches (cuda_run.c) ---- */
ev_status cuda_fits(const device *d, const device_kernel *k, const device_launch *l,
                    ev_error *err) EV_CHECKED;
ev_status cuda_run(device *d, const device_kernel *kernel, const device_launch *launch,
                   device_outcome *out, ev_error *err) EV_CHECKED;
/* Gives one launch to the stream. */
CUresult cuda_launch(const cuda_device *c, const device_kernel *kernel,
                     const device_launch *launch);
CUresult cuda_launch_function(const cuda_device *c, CUfunction function,
                              const device_kernel *kernel, const device_launch *launch);
/* Refusals by the driver at the call: the launch, not the kernel, is at fault. EV_BAD. */
bool cuda_is_refused(CUresult result);
ev_status cuda_fail_refused(const cuda_device *c, CUresult result, ev_error *err) EV_CHECKED;
/* Between two looks at what was launched `waited` seconds ago. */
void cuda_nap(double waited);
/* Until the stream is done, or the watchdog's time is over: CUDA_ERROR_NOT_READY. */
CUresult cuda_wait(cuda_device *c);
/* What `result` of a launch or of waiting for it means: EV_OK with out->ok false for the
 * candidate's fault (the device is then made anew, or given up), else EV_INFRA. */
ev_status cuda_judge(cuda_device *c, const device_kernel *kernel, CUresult result,
                     device_outcome *out, ev_error *err) EV_CHECKED;

/* ---- ranks (cuda_ranks.c) ---- */
ev_status cuda_run_ranks(device *const *devices, const device_kernel *const *kernels,
                         const device_launch *launches, uint32_t count, device_outcome *out,
                         ev_error *err) EV_CHECKED;

/* ---- time (cuda_time.c) ---- */
ev_status cuda_time(device *d, const device_kernel *kernel, const device_launch *launch,
                    device_rival *rival, device_outcome *out, device_timing *timing,
                    ev_error *err) EV_CHECKED;

#endif
