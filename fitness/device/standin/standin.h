/* Inside of the stand-in for the CUDA driver: a libcuda.so.1 whose devices are the PTX virtual
 * machine with a GPU description, and whose times are the timing model's.
 *
 *   handle   what a program holds: a number in disguise; never used twice, so that a stale one is
 *            told from a live one
 *   queue    all work of all streams, in the order of the calls; a stream or an event is finished
 *            when its last entry is
 *   turn     kernels of several streams run side by side, in turns
 *   buffer   device, host or managed memory: all of it stands in one memory of the machine, so that
 *            devices reach their peers and kernels reach the host's buffers
 *   clock    modelled nanoseconds, of a stream and of a device; what events read
 *   counters what kernels read of a device: its SMs' cycles and its timer
 *
 * All of the state is behind one lock, which the exports take (exports.c). A driver is process-wide
 * by its interface: this is the only state of the project that is. */
#ifndef FITNESS_DEVICE_STANDIN_STANDIN_H
#define FITNESS_DEVICE_STANDIN_STANDIN_H

#include "base/status.h"
#include "base/str.h"
#include "fitness/device/cuda/driver_types.h"
#include "fitness/model/model.h"
#include "fitness/vm/vm.h"

#include <pthread.h>
#include <stdbool.h>

#define SD_DEVICES_MOST 16

typedef enum sd_fn {
#define CU_FN(symbol, name, since, scope, need, params, args) SD_FN_##symbol,
#include "fitness/device/cuda/driver.def"
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
} sd_kind;

typedef struct sd_context sd_context;

/* First in each object. */
typedef struct sd_object {
    sd_kind kind;
    uintptr_t handle;
    sd_context *context; /* that it belongs to; NULL: none */
} sd_object;

typedef struct sd_stream {
    sd_object base;
    unsigned flags;
    int priority;
    uint64_t last;   /* its newest entry in the queue */
    double clock_ns; /* the worker's */
    uint64_t held;   /* look at the queue in which it had an entry that later ones wait for */
} sd_stream;

struct sd_context {
    sd_object base;
    int device;
    bool primary;
    unsigned flags;
    unsigned uses;  /* cuCtxAttach less cuCtxDetach */
    CUresult fault; /* what ended it; sticky */
    uint32_t peers; /* devices whose memory its kernels may touch, a bit each */
    uint64_t last;
    uint64_t held, held_by_default; /* as of a stream: any that blocks, the default one */
    size_t limits[3];
    ev_str printed; /* by kernels, and not yet on stdout */
    CUfunc_cache cache;
    sd_stream *stream;   /* the default one */
    bool filled, copied; /* a fill, a copy was given to the queue */
};

typedef struct sd_module {
    sd_object base;
    vm_module *code;
    uint64_t globals;   /* address of its .global variables; 0: it has none */
    uint64_t constants; /* address of what its .const variables are copied from; 0: it has none */
} sd_module;

/* What cuFuncSetBlockShape and its kin set, for cuLaunch. */
typedef struct sd_kept {
    unsigned block[3], shared, bytes;
    unsigned char arguments[4096];
} sd_kept;

typedef struct sd_function {
    sd_object base;
    sd_kept kept;
    sd_module *module;
    const vm_entry *entry;
    uint32_t registers;
    uint32_t dynamic_most; /* bytes of dynamic shared memory it may be launched with */
    int carveout;
    bool ran; /* a launch of it was given to the queue */
} sd_function;

typedef struct sd_event {
    sd_object base;
    unsigned flags;
    uint64_t last; /* its newest record in the queue; 0: never recorded */
    uint64_t used; /* the newest entry that speaks of it */
    double at_ns;  /* the worker's */
} sd_event;

typedef enum sd_where { SD_ON_DEVICE, SD_ON_HOST, SD_MANAGED } sd_where;

typedef struct sd_buffer {
    uint64_t address, bytes; /* as asked for */
    sd_where where;
    int device; /* whose memory; of host memory, whose context's */
    unsigned flags;
    sd_context *context;
    char *host; /* where this process sees it */
} sd_buffer;

/* %clock64 and %globaltimer between two kernels. */
typedef struct sd_counters {
    double cycles, ns;
    double then_ns; /* of the clock, when they were counted on last */
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
    struct sd_turn *next, *before; /* the ring of those that run */
    const sd_context *context;
    pthread_cond_t mine;
    bool passes; /* others may run beside it */
    bool in_ring, abandoned;
} sd_turn;

/* Until it is its turn; then nobody else runs in the machine, up to sd_turn_end or while it passes
 * the turn on. */
void sd_turn_begin(sd_turn *turn);
void sd_turn_pass(sd_turn *turn);
void sd_turn_end(sd_turn *turn);
/* It never gets a turn again. The caller has the turn, or the turn is nobody's. */
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
    uint64_t awaited; /* of WAIT: the entry that recorded the event */
    union {
        struct {
            sd_function *function;
            uint32_t grid[3], block[3], shared;
            void *params; /* its own copy */
            bool timed;
            ev_str printed;
            size_t print_most;         /* bytes of it that are kept */
            uint64_t cycles, timer_ns; /* the counters at its begin */
            uint64_t ticks;            /* that it counted the timer on by itself */
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
            CUstreamCallback status; /* is told the stream and how it fares, too */
            CUstream stream;
            void *data;
        } call;
        uint64_t address; /* of FREE */
    };
} sd_entry;

/* What the driver claims to be: a row of fitness/device/cuda/ptx_versions.def. */
typedef struct sd_version {
    int cuda;   /* as cuDriverGetVersion says it: 12040 */
    int branch; /* of the driver: 550 */
    int ptx;    /* the newest .version it takes, times ten */
} sd_version;

typedef struct sd_config {
    uint64_t fuel; /* of a launch; 0: the machine's */
    bool races;    /* checked */
    bool quiet;    /* traps aren't told on stderr */
    bool no_peers; /* no device reaches another's memory */
    bool no_peer_atomics;
    bool eager; /* CUDA_MODULE_LOADING says that modules load with all their kernels */
} sd_config;

typedef struct sd_state {
    pthread_mutex_t lock;
    bool ready;  /* cuInit succeeded */
    bool forked; /* and in the process that this one was forked from: nothing works here */
    CUresult lost;
    sd_config config;
    sd_device devices[SD_DEVICES_MOST];
    int device_count;
    vm_memory *memory;
    sd_buffer *buffers; /* by address */
    size_t buffer_count, buffer_room;
    sd_object **objects; /* by number of the handle; NULL: gone */
    size_t object_count, object_room;
    uint64_t timed_launches;
    int timed_events; /* alive: while there are any, launches are timed */
    /* the queue */
    pthread_t worker;
    bool works; /* the thread is there */
    pthread_cond_t more, done;
    sd_entry *first, **end; /* that are not done, in the order of the calls */
    uint64_t given;         /* number of the newest */
    unsigned pending;       /* entries in the list */
    uint64_t passes;        /* looks for an entry to begin */
} sd_state;

sd_state *sd_get(void);

/* Takes the lock and says what stands against the call; on any answer but CUDA_SUCCESS the lock is
 * free again. */
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
EV_PRINTF(1, 2) void sd_say(const char *format, ...); /* on stderr, unless it is to be quiet */

/* ---- injected errors (inject.c) ---- */

/* The error that EVOKE_STANDIN_FAIL wants of this call, counted; CUDA_SUCCESS: none. */
CUresult sd_injected(sd_fn fn);
bool sd_injected_hang(void); /* the last answer of sd_injected for a launch was "hang" */
double sd_clock_share(void); /* of the full SM clock, at which kernels run now */

/* ---- counters (counters.c) ---- */

/* A kernel begins at `now_ns` of its device's clock: what it sees. */
void sd_counters_begin(sd_device *d, double now_ns, sd_entry *e);
/* It ended at `now_ns`. */
void sd_counters_end(sd_device *d, double now_ns, const sd_entry *e);

/* Nanoseconds between two values of %globaltimer; 0: one. */
uint64_t sd_timer_grain(void);

/* ---- calls that wait (blocking.c) ---- */

/* Before work of a kind is given to the queue: waits for the context's work where
 * EVOKE_STANDIN_LAZY wants that. `used`: the kind has been given before; set. `loads`: modules that
 * were loaded eagerly need no wait. The lock is free meanwhile. */
void sd_block(const sd_context *c, bool *used, bool loads);

/* ---- the queue (queue.c) ---- */

/* Appends; the caller sets all but next and number. NULL: out of memory. */
sd_entry *sd_entry_new(sd_entry_kind kind, sd_stream *stream);
void sd_push(sd_entry *entry);
bool sd_is_done(uint64_t number); /* 0: nothing, which is done */
/* Until entry `number` is done; the lock is free meanwhile. */
void sd_wait(uint64_t number);
/* Until all is done that was given to the context so far. */
void sd_wait_context(const sd_context *context);
void sd_drain(void);
/* Runs one launch, whose turn it is; without the lock. */
CUresult sd_run_launch(sd_entry *entry, double *ns);

/* ---- prints (prints.c) ---- */

/* A kernel prints; `launch` is its entry. Without the lock. */
void sd_print(void *launch, const char *text, size_t bytes);
void sd_keep_printed(sd_entry *entry); /* what a launch printed goes to its context */
void sd_write_printed(void);           /* of all contexts, to stdout */

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
/* As cuModuleLoadDataEx; `room`: bytes that may be read of an image, SIZE_MAX where it says so
 * itself. */
CUresult sd_load_image(CUmodule *module, const void *image, size_t room, unsigned count,
                       const CUjit_option *options, void **values);
/* The error log, if the options ask for one, gets what the machine says of a text. */
void sd_log_error(unsigned count, const CUjit_option *options, void **values, const char *words);
void sd_log_nothing(unsigned count, const CUjit_option *options, void **values); /* empty logs */
/* Whether a text loads, on any device; if not, `err` says why. */
CUresult sd_check_text(const char *text, ev_error *err);

/* ---- fat binaries (fatbin.c) ---- */

bool sd_is_fatbin(const void *image);
/* The PTX text for the newest target that is no newer than `sm`, to be freed; `room` as above. */
CUresult sd_fatbin_text(const void *image, size_t room, int sm, char **text);

/* ---- contexts (contexts.c) ---- */
void sd_context_free(sd_context *context);

/* The implementations, one a row: the exports call them with the lock held. */
#define CU_FN(symbol, name, since, scope, need, params, args) CUresult sd_##symbol params;
#include "fitness/device/cuda/driver.def"
#undef CU_FN

#endif
