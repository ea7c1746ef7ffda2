/* Inside of the stand-in for the CUDA driver: a libcuda.so.1 whose devices are the PTX virtual
 * machine with a GPU description, and whose times are the timing model's.
 *
 *   handle   a number cast to a pointer; never used twice, so a stale handle is recognised
 *   queue    all work of all streams, in the order of the calls; a stream or an event is finished
 *            when its last entry is
 *   turn     kernels of several streams run side by side, in turns
 *   buffer   device, host or managed memory; all buffers are in one vm_memory, so that devices
 * reach their peers and kernels reach the host's buffers clock    modelled nanoseconds of a stream
 * and of a device; read by events counters SM cycles and timer of a device; read by kernels
 *
 * One lock, which the exports take (exports.c), protects all state. The interface of a driver is
 * process-wide; this is the only process-wide state of the project. */
#ifndef FITNESS_DEVICE_STANDIN_STANDIN_H
#define FITNESS_DEVICE_STANDIN_STANDIN_H

#include "base/cuda/driver_types.h"
#include "base/status.h"
#include "base/str.h"
#include "fitness/model/model.h"
#include "fitness/vm/vm.h"

#include <pthread.h>
#include <stdbool.h>

#define SD_DEVICES_MOST 16

typedef enum sd_fn {
#define CU_FN(symbol, name, since, scope, need, params, args) SD_FN_##symbol,
#include "base/cuda/driver.def"
#undef CU_FN
    SD_FN_LAUNCH, /* a kernel's turn in the queue */
    SD_FN_COUNT
} sd_fn;

typedef enum sd_scope { SD_ANY, SD_INIT, SD_HERE, SD_LIVE } sd_scope;

/* ---- objects behind handles (state.c) ---- */

typedef enum sd_kind {
    SD_CONTEXT = 1,
    SD_MODULE,
    SD_FUNCTION,
    SD_STREAM,
    SD_EVENT,
    SD_LINK,
    SD_ARRAY,
    SD_REFERENCE,
} sd_kind;

typedef struct sd_context sd_context;

/* First in each object. */
typedef struct sd_object {
    sd_kind kind;
    uintptr_t handle;
    sd_context *context; /* its context; NULL: none */
} sd_object;

typedef struct sd_stream {
    sd_object base;
    unsigned flags;
    int priority;
    uint64_t last;   /* its newest entry in the queue */
    double clock_ns; /* used by the worker */
    uint64_t held;   /* pass over the queue in which an entry of it held later ones back */
} sd_stream;

struct sd_context {
    sd_object base;
    int device;
    bool primary;
    unsigned flags;
    unsigned uses;  /* cuCtxAttach less cuCtxDetach */
    CUresult fault; /* the error that ended it; sticky */
    uint32_t peers; /* devices whose memory its kernels may access, a bit each */
    uint64_t last;
    uint64_t held, held_by_default; /* as of a stream: by any blocking stream, by the default one */
    size_t limits[3];
    ev_str printed; /* output of kernels that is not yet on stdout */
    CUfunc_cache cache;
    sd_stream *stream;   /* the default one */
    bool filled, copied; /* a fill, a copy was queued before */
};

typedef struct sd_module {
    sd_object base;
    vm_module *code;
    uint64_t globals;   /* address of its .global variables; 0: none */
    uint64_t constants; /* address of the source of its .const variables; 0: none */
} sd_module;

/* Settings by cuFuncSetBlockShape and similar functions, for cuLaunch. */
typedef struct sd_kept {
    unsigned block[3], shared, bytes;
    unsigned char arguments[4096];
} sd_kept;

typedef struct sd_function {
    sd_object base;
    sd_kept kept;
    sd_module *module;
    const vm_entry *entry;
    model_code *code; /* NULL until its first timed launch; who has the turn makes it */
    uint32_t registers;
    uint32_t dynamic_most; /* limit of its dynamic shared memory, in bytes */
    int carveout;
    bool ran; /* a launch of it was queued before */
} sd_function;

typedef struct sd_event {
    sd_object base;
    unsigned flags;
    uint64_t last; /* its newest record in the queue; 0: never recorded */
    uint64_t used; /* the newest entry that uses it */
    double at_ns;  /* used by the worker */
} sd_event;

typedef struct sd_array {
    sd_object base;
    CUarrayDescriptor3D what; /* as the program asked */
    vm_texture shape;         /* its elements, without a sampler */
} sd_array;

/* A texture or surface reference: a variable of a module. */
typedef struct sd_reference {
    sd_object base;
    const sd_module *module;
    bool surface, bound;
    uint64_t variable; /* its address */
    uint64_t object;   /* the handle in it */
    CUresourceDesc resource;
    CUtextureDesc sampler;
    CUarray_format format; /* of memory that is bound */
    unsigned channels;
} sd_reference;
/* Releases its texture, too. */
void sd_reference_free(sd_reference *r);

typedef enum sd_where { SD_ON_DEVICE, SD_ON_HOST, SD_MANAGED } sd_where;

typedef struct sd_buffer {
    uint64_t address, bytes; /* as requested */
    sd_where where;
    int device; /* of its memory; for host memory, of its context */
    unsigned flags;
    sd_context *context;
    char *host; /* its address in this process */
} sd_buffer;

/* %clock64 and %globaltimer between two kernels. */
typedef struct sd_counters {
    double cycles, ns;
    double then_ns; /* the clock at their last update */
} sd_counters;

typedef struct sd_device {
    gpu *g;
    uint64_t bytes, used;
    sd_context *primary;
    unsigned retained, flags;
    double clock_ns; /* the worker's */
    sd_counters counters;
} sd_device;

/* ---- turns of kernels that run side by side (turns.c) ---- */

typedef struct sd_turn {
    struct sd_turn *next, *before; /* in the ring of running kernels */
    const sd_context *context;
    pthread_cond_t mine;
    bool passes; /* others may run beside it */
    bool in_ring, abandoned;
} sd_turn;

/* sd_turn_begin waits for the turn. Until sd_turn_end, no other kernel runs in the virtual machine,
 * except during sd_turn_pass, which passes the turn on and waits for it again. */
void sd_turn_begin(sd_turn *turn);
void sd_turn_pass(sd_turn *turn);
void sd_turn_end(sd_turn *turn);
/* Gives the turn up for ever. The caller has the turn, or no kernel has it. */
void sd_turn_abandon(sd_turn *turn);

/* ---- the queue (queue.c) ---- */

typedef enum sd_entry_kind {
    SD_DO_LAUNCH,
    SD_DO_COPY,
    SD_DO_FILL,
    SD_DO_RECORD,
    SD_DO_CALL,
    SD_DO_FREE,
    SD_DO_WAIT
} sd_entry_kind;

typedef struct sd_entry {
    struct sd_entry *next;
    sd_entry_kind kind;
    uint64_t number; /* from 1 */
    bool runs;
    sd_stream *stream;
    uint64_t awaited; /* WAIT: the entry that recorded the event */
    union {
        struct {
            sd_function *function;
            uint32_t grid[3], block[3], shared;
            void *params; /* its own copy */
            bool timed;
            ev_str printed;
            size_t print_most;         /* limit of `printed`, in bytes */
            uint64_t cycles, timer_ns; /* the counters at its begin */
            uint64_t ticks;            /* by which the kernel itself advanced the timer */
            sd_turn turn;
        } launch;
        struct {
            void *to;
            const void *from;
            size_t bytes;
            double gbs; /* modelled rate */
        } copy;
        struct {
            void *to;
            unsigned value, width; /* bytes of one element */
            size_t count;
        } fill;
        sd_event *event; /* of RECORD and WAIT */
        struct {
            CUhostFn function;       /* one of the two */
            CUstreamCallback status; /* also gets the stream and its status */
            CUstream stream;
            void *data;
        } call;
        uint64_t address; /* of FREE */
    };
} sd_entry;

/* The claimed driver: a row of base/ptx/versions.def. */
typedef struct sd_version {
    int cuda;   /* by cuDriverGetVersion: 12040 */
    int branch; /* of the driver: 550 */
    int ptx;    /* the newest accepted .version, times ten */
} sd_version;

typedef struct sd_config {
    uint64_t fuel; /* of a launch; 0: the machine's */
    bool races;    /* checked */
    bool quiet;    /* traps are not reported on stderr */
    bool no_peers; /* no device reaches another's memory */
    bool no_peer_atomics;
    bool eager; /* CUDA_MODULE_LOADING asks for eager loading */
} sd_config;

typedef struct sd_state {
    pthread_mutex_t lock;
    bool ready;  /* cuInit succeeded */
    bool forked; /* cuInit succeeded in the parent of this forked process: every call fails here */
    CUresult lost;
    sd_config config;
    sd_device devices[SD_DEVICES_MOST];
    int device_count;
    vm_memory *memory;
    sd_buffer *buffers; /* by address */
    size_t buffer_count, buffer_room;
    sd_object **objects; /* by number of the handle; NULL: freed */
    size_t object_count, object_room;
    uint64_t timed_launches;
    int timed_events; /* live events; while there are any, launches are timed */
    /* the queue */
    pthread_t worker;
    bool works; /* the thread exists */
    pthread_cond_t more, done;
    sd_entry *first, **end; /* unfinished entries, in the order of the calls */
    uint64_t given;         /* number of the newest entry */
    unsigned pending;       /* entries in the list */
    uint64_t passes;        /* passes over the queue for an entry to begin */
} sd_state;

sd_state *sd_get(void);

/* Takes the lock and checks the preconditions of the call. On any result but CUDA_SUCCESS the lock
 * is released again. */
CUresult sd_enter(sd_fn fn, sd_scope scope);
CUresult sd_leave(CUresult result); /* frees the lock */
CUresult sd_start(void);            /* cuInit */
const sd_version *sd_driver(void);  /* by EVOKE_STANDIN_DRIVER, or the newest */

/* A zeroed object of `bytes` with a new handle; NULL: out of memory. */
void *sd_new(sd_kind kind, size_t bytes, sd_context *context);
/* The live object behind a handle, or NULL. */
void *sd_find(const void *handle, sd_kind kind);
void sd_drop(void *object);
/* The next object of a kind in the order of handles after number *at (0 at first); NULL: no more.
 */
void *sd_next(sd_kind kind, size_t *at);
sd_context *sd_current(void); /* of this thread; NULL: none */
bool sd_is_device(CUdevice device);
sd_device *sd_device_of(const sd_context *context);
/* By handle, or the current context's default one; NULL: no such stream. */
sd_stream *sd_stream_of(CUstream stream);
EV_PRINTF(1, 2) void sd_say(const char *format, ...); /* on stderr, unless EVOKE_STANDIN_QUIET */

/* ---- injected errors (inject.c) ---- */

/* Counts the call, and returns the error that EVOKE_STANDIN_FAIL asks for; CUDA_SUCCESS: none. */
CUresult sd_injected(sd_fn fn);
bool sd_injected_hang(void); /* the last answer of sd_injected for a launch was "hang" */
double sd_clock_share(void); /* present SM clock, as a share of the full one */

/* ---- counters (counters.c) ---- */

/* A kernel begins at `now_ns` of its device's clock: sets the counters that it reads. */
void sd_counters_begin(sd_device *d, double now_ns, sd_entry *e);
/* The kernel ended at `now_ns`. */
void sd_counters_end(sd_device *d, double now_ns, const sd_entry *e);

/* Nanoseconds between two values of %globaltimer; 0: one. */
uint64_t sd_timer_grain(void);

/* ---- calls that wait (blocking.c) ---- */

/* Call before work of a kind is queued. Waits for the context's work if EVOKE_STANDIN_LAZY asks for
 * it. *used: this kind was queued before; is set. `loads`: eagerly loaded modules need no wait. The
 * lock is released while waiting. */
void sd_block(const sd_context *c, bool *used, bool loads);

/* ---- the queue (queue.c) ---- */

/* Makes an entry; the caller sets all members but next and number, then calls sd_push. NULL: out of
 * memory. */
sd_entry *sd_entry_new(sd_entry_kind kind, sd_stream *stream);
void sd_push(sd_entry *entry);
bool sd_is_done(uint64_t number); /* entry 0 is always done */
/* Waits until entry `number` is done. The lock is released while waiting. */
void sd_wait(uint64_t number);
/* Waits until all entries queued for the context so far are done. */
void sd_wait_context(const sd_context *context);
void sd_drain(void);
/* Runs one launch that has the turn. Called without the lock. */
CUresult sd_run_launch(sd_entry *entry, double *ns);

/* ---- prints (prints.c) ---- */

/* Takes a kernel's output; `launch` is its entry. Called without the lock. */
void sd_print(void *launch, const char *text, size_t bytes);
void sd_keep_printed(sd_entry *entry); /* moves a launch's output to its context */
void sd_write_printed(void);           /* of all contexts, to stdout */

/* ---- recorded launches (record.c) ---- */

typedef struct sd_recording sd_recording;

bool sd_records(void); /* launches are recorded */
/* cuInit succeeded. */
void sd_record_begin(void);
/* Appends a line to a file of the process's record; nothing, unless launches are recorded. */
EV_PRINTF(2, 3) void sd_record_line(const char *file, const char *format, ...);
/* Around a launch, on the queue's thread and without the lock. NULL: it is not recorded. */
sd_recording *sd_record_before(const sd_entry *entry);
/* `result`: of the launch. Frees the recording. */
void sd_record_after(sd_recording *recording, const sd_entry *entry, CUresult result);

/* ---- memory (memory.c) ---- */

CUresult sd_alloc(sd_context *context, sd_where where, uint64_t bytes, unsigned flags,
                  const char *name, sd_buffer **out);
void sd_free(uint64_t address);
/* The buffer that holds [address, address + bytes), or NULL. */
sd_buffer *sd_buffer_at(uint64_t address, uint64_t bytes);
sd_buffer *sd_buffer_by_host(const void *host, uint64_t bytes);
void sd_free_all(const sd_context *context);

/* ---- modules (modules.c) ---- */

void sd_module_free(sd_module *module);
/* As cuModuleLoadDataEx. `room`: readable bytes of the image; SIZE_MAX: the image states its size.
 */
CUresult sd_load_image(CUmodule *module, const void *image, size_t room, unsigned count,
                       const CUjit_option *options, void **values);
/* Writes a message to the error log, if the options ask for one. */
void sd_log_error(unsigned count, const CUjit_option *options, void **values, const char *words);
void sd_log_nothing(unsigned count, const CUjit_option *options, void **values); /* empty logs */
/* Checks that a text loads, on any device; if not, `err` has the reason. */
CUresult sd_check_text(const char *text, ev_error *err);

/* ---- fat binaries (fatbin.c) ---- */

bool sd_is_fatbin(const void *image);
/* The PTX text for the newest target up to `sm`; the caller frees it. `room`: as of sd_load_image.
 */
CUresult sd_fatbin_text(const void *image, size_t room, int sm, char **text);

/* ---- contexts (contexts.c) ---- */
void sd_context_free(sd_context *context);

/* The implementations, one a row. The exports call them with the lock held. */
#define CU_FN(symbol, name, since, scope, need, params, args) CUresult sd_##symbol params;
#include "base/cuda/driver.def"
#undef CU_FN

#endif
