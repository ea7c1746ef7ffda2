/* The device cuda:N: GPUs through the driver. Private to this folder.
 *
 * After a kernel's fault, the driver's context is unusable. The device makes a new context,
 * allocates buffers and fills them from copies on the host, and loads each kernel again at its next
 * use. The driver may refuse a new context to a process that had a fault, and a process cannot stop
 * an endless kernel. The launch then has its outcome, the device is spent, and every later call
 * returns EV_INFRA, so that the process is replaced. */
#ifndef FITNESS_DEVICE_CUDA_CUDA_H
#define FITNESS_DEVICE_CUDA_CUDA_H

#include "base/cuda/driver.h"
#include "base/hash.h"
#include "fitness/device/cuda/cuda_clock.h"
#include "fitness/device/cuda/nvml.h"
#include "fitness/device/cuda/ptxas.h"
#include "fitness/device/device_impl.h"

#include <pthread.h>

#define CUDA_CANARY_BYTES 256

/* Finds and starts the driver, in the environment that timing needs (cuda_driver.c). EV_INFRA: as
 * cu_driver_find, or cuInit failed. */
ev_status cuda_driver_open(cu_driver *out, ev_error *err) EV_CHECKED;

typedef struct cuda_buffer {
    CUdeviceptr base; /* of the allocation: a canary, the contents, a canary */
    CUdeviceptr keep; /* INOUT, while times are taken: a copy of the initial contents; 0: none */
    uint64_t bytes;
    vm_buffer_kind kind;
    char name[64];
    uint8_t *before;  /* IN, INOUT: contents as the host wrote them */
    uint8_t *mirror;  /* contents as last read; NULL: never */
    bool is_mirrored; /* `mirror` is valid: nothing has run since */
} cuda_buffer;

/* Machine code that ptxas made of a text. */
typedef struct cuda_code {
    ev_sha256 text;
    ev_str cubin, log;
    uint64_t used; /* number of the last use; 0: none is kept here */
} cuda_code;

#define CUDA_CODES 16

typedef struct cuda_codes {
    cuda_code of[CUDA_CODES];
    uint64_t uses;
} cuda_codes;

struct cuda_device;

/* Devices of one set of ranks; a single device is a group, too. Members on one GPU share a context.
 * After a fault the contexts of all members are made anew. */
typedef struct cuda_group {
    struct cuda_device **members;
    uint32_t count, alive; /* alive: not closed */
} cuda_group;

/* Watchdog thread that ends a hold after its time limit. */
typedef struct cuda_watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool runs, over, broken; /* broken: the watchdog ended the hold */
} cuda_watch;

typedef struct cuda_device {
    device base; /* first */
    cuda_group *group;
    cu_driver cu;
    nvml *clocks;
    ptxas assembler;
    cuda_codes codes;
    int version;    /* of the driver, 12040 for CUDA 12.4; 0: not known */
    int capability; /* of the GPU, 90; candidates are compiled for that of the properties */
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
    CUdeviceptr flag_seen; /* the device address of *flag */
    CUdeviceptr flush;     /* overwritten before each cold sample */
    uint64_t flush_bytes;
    cuda_buffer *buffers; /* by handle - 1 */
    size_t count, room;
    uint8_t poison;
    uint64_t rebuilds;
    bool dead;           /* spent */
    double watchdog;     /* seconds */
    double best_clock;   /* MHz, the highest seen by the management library */
    double best_stamped; /* the same by stamps */
} cuda_device;

/* device_kernel.own of this device. */
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

/* EV_INFRA with the driver's message, unless `result` is CUDA_SUCCESS. */
ev_status cuda_check(const cuda_device *c, CUresult result, const char *what,
                     ev_error *err) EV_CHECKED;
/* Makes the device's context the thread's. EV_INFRA: the device is spent. */
ev_status cuda_enter(const cuda_device *c, ev_error *err) EV_CHECKED;
/* True if a kernel's fault ended the context. */
bool cuda_is_fault(CUresult result);

/* ---- numbers of a GPU description from the driver (cuda_numbers.c) ---- */
bool cuda_number(const device *d, gpu_key key, double *out);

/* ---- opening (cuda_device.c) ---- */
/* Opens a device without a context. `like`: a device of possibly the same model, whose twin is then
 * reused; NULL: none. */
ev_status cuda_open_bare(const char *ordinal, const cuda_device *like, cuda_device **out,
                         ev_error *err) EV_CHECKED;

/* ---- contexts (cuda_context.c) ---- */
/* Makes the devices a group, and its contexts. */
ev_status cuda_make_contexts(cuda_device *const *members, uint32_t count, ev_error *err) EV_CHECKED;
/* Leaves the group. The last member destroys the contexts and frees the members' structs. */
void cuda_leave_group(cuda_device *c);
/* After a fault: makes the group's contexts anew, and restores buffers with their contents. If the
 * driver refuses a new context, the group is spent, and the message of `fault` says so; the outcome
 * is still the fault. */
void cuda_replace_contexts(cuda_device *c, vm_trap *fault);
/* Marks the group as spent. */
void cuda_give_up(const cuda_device *c);

/* ---- machine code (cuda_code.c) ---- */
/* As ptxas_run; what it made is kept for the next time, for the last CUDA_CODES texts. `cubin` and
 * `log` are empty before. */
ev_status cuda_code_get(cuda_codes *kept, const ptxas *p, const char *ptx, int sm, ev_str *cubin,
                        ev_str *log, bool *deadly, ev_error *err) EV_CHECKED;
void cuda_codes_free(cuda_codes *kept);

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
/* Restores all buffers in a new context, with their contents. */
ev_status cuda_restore_buffers(cuda_device *c, ev_error *err) EV_CHECKED;
/* Restores INOUT contents, poisons OUT contents. */
ev_status cuda_renew_contents(cuda_device *c, ev_error *err) EV_CHECKED;
/* Checks what a kernel must not write: canaries, and with `inputs` the inputs' contents. A
 * violation sets `trap`. */
ev_status cuda_inspect(cuda_device *c, bool inputs, vm_trap *trap, ev_error *err) EV_CHECKED;

/* ---- kernels (cuda_kernel.c) ---- */
ev_status cuda_load(device *d, device_kernel *kernel, ev_error *err) EV_CHECKED;
void cuda_unload(device_kernel *kernel);
/* Copies data to a variable of the kernel's module. */
ev_status cuda_fill(device *d, device_kernel *kernel, const char *name, const vm_variable *variable,
                    const void *data, ev_error *err) EV_CHECKED;
/* Loads the kernel again if its context was replaced. */
ev_status cuda_need_kernel(cuda_device *c, const device_kernel *kernel, ev_error *err) EV_CHECKED;
/* Loads a copy in the context of a device that is not its owner. The caller unloads the module. */
ev_status cuda_load_copy(cuda_device *c, const device_kernel *kernel, CUmodule *module,
                         CUfunction *function, ev_error *err) EV_CHECKED;

/* ---- kernels of its own (cuda_own.c) ---- */
CUresult cuda_load_own(cuda_device *c);
CUresult cuda_launch_hold(const cuda_device *c);
/* Runs each own kernel, and the fills of a batch, once in this context, so that none is loaded
 * while the stream is held. Measures the timer. */
CUresult cuda_warm_own(cuda_device *c);
/* Queues stamps of all SMs; `which`: 0 before, 1 after the measured work. */
CUresult cuda_leave_stamps(const cuda_device *c, unsigned which);
/* The SM clock between the two stamps, after the stream is done. 0: not known. */
CUresult cuda_stamped_mhz(const cuda_device *c, double *mhz);

/* ---- holding the stream (cuda_hold.c) ---- */
/* EV_INFRA: an environment variable, which the message names, would make a held stream wait for
 * ever. */
ev_status cuda_may_hold(cuda_device *c, ev_error *err) EV_CHECKED;
/* Holds the stream until cuda_let_go, or until the watchdog's time is over. */
CUresult cuda_hold(cuda_device *c);
/* Releases the stream. True: the watchdog did so before, and times of the queued work are invalid.
 */
bool cuda_let_go(cuda_device *c);

/* ---- launches (cuda_run.c) ---- */
ev_status cuda_fits(const device *d, const device_kernel *k, const device_launch *l,
                    ev_error *err) EV_CHECKED;
ev_status cuda_run(device *d, const device_kernel *kernel, const device_launch *launch,
                   device_outcome *out, ev_error *err) EV_CHECKED;
/* Runs the launches one by one, up to the first with a fault, and inspects the buffers then. */
ev_status cuda_run_sequence(device *d, const device_sequence *what, device_outcome *out,
                            ev_error *err) EV_CHECKED;
/* Queues one launch. */
CUresult cuda_launch(const cuda_device *c, const device_kernel *kernel,
                     const device_launch *launch);
CUresult cuda_launch_function(const cuda_device *c, CUfunction function,
                              const device_kernel *kernel, const device_launch *launch);
/* True if the driver refused the launch at the call; cuda_fail_refused gives EV_BAD. */
bool cuda_is_refused(CUresult result);
ev_status cuda_fail_refused(const cuda_device *c, CUresult result, ev_error *err) EV_CHECKED;
/* Sleeps between two polls of a launch that has run for `waited` seconds. */
void cuda_nap(double waited);
/* Waits for the stream. CUDA_ERROR_NOT_READY: the watchdog's time is over. */
CUresult cuda_wait(cuda_device *c);
/* Turns the result of a launch or of waiting into an outcome. A candidate's fault gives EV_OK with
 * out->ok false, after the device was made anew or marked as spent. EV_INFRA: any other error. */
ev_status cuda_judge(cuda_device *c, const device_kernel *kernel, CUresult result,
                     device_outcome *out, ev_error *err) EV_CHECKED;

/* ---- ranks (cuda_ranks.c) ---- */
ev_status cuda_run_ranks(device *const *devices, const device_kernel *const *kernels,
                         const device_launch *launches, uint32_t count, device_outcome *out,
                         ev_error *err) EV_CHECKED;

/* ---- time of ranks (cuda_ranks_time.c) ---- */
ev_status cuda_time_ranks(device *const *devices, const device_sequence *what, device_rival *rival,
                          device_outcome *out, device_timing *timing, ev_error *err) EV_CHECKED;

/* ---- time (cuda_time.c) ---- */

#define CUDA_SAMPLES_MOST 60

/* While times are taken: a copy on the device of each buffer that kernels update, and its contents
 * put back, in the stream. */
CUresult cuda_keep(cuda_device *c);
CUresult cuda_put_back(const cuda_device *c);
void cuda_drop_kept(cuda_device *c);
/* The median of `n` samples, at least one, which it sorts, and its interval from their order: ranks
 * n/2 -+ 0.98 sqrt(n), the binomial's 95 %. */
double cuda_median(double *ns, uint32_t n, double *low, double *high);
/* Whether more samples would tell little more. `spread`: the width of the interval. */
bool cuda_is_enough(uint32_t count, double median, double spread, bool modelled);
ev_status cuda_time(device *d, const device_kernel *kernel, const device_launch *launch,
                    device_outcome *out, device_timing *timing, ev_error *err) EV_CHECKED;
ev_status cuda_time_sequence(device *d, const device_sequence *what, device_rival *rival,
                             device_outcome *out, device_timing *timing, ev_error *err) EV_CHECKED;

#endif
