/* The PTX virtual machine: executes PTX text as LLVM 19 and nvcc emit it, and checks every access.
 *
 *   module   PTX text after loading: decoded once, launched often, never changed by a launch
 *   memory   the global address space of one device: allocations, their contents, their shadow
 *   launch   one grid over a module and a memory; ends with `ok` or with a trap
 *   observer callbacks for the timing model: each executed stretch of each warp
 *
 * Everything is deterministic: addresses, order, results and counters depend only on the arguments.
 * One memory is not thread-safe; two memories are independent. Semantics: PTX ISA 8.5.
 */
#ifndef FITNESS_VM_VM_H
#define FITNESS_VM_VM_H

#include "fitness/ptx/module.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- memory -----------------------------------------------------------------------------------
 */

typedef struct vm_memory vm_memory;

/* How kernels may use a buffer, and its initial contents. */
typedef enum vm_buffer_kind {
    VM_BUFFER_IN,      /* initialised; a write is a trap */
    VM_BUFFER_OUT,     /* uninitialised; a read before a write is a trap */
    VM_BUFFER_INOUT,   /* initialised; may be written */
    VM_BUFFER_SCRATCH, /* as OUT, but not an output */
} vm_buffer_kind;

/* `limit_bytes`: the memory of the device; an allocation beyond it is EV_BAD. The host allocates a
 * page when it is first touched. */
ev_status vm_memory_new(uint64_t limit_bytes, vm_memory **out, ev_error *err) EV_CHECKED;
/* As vm_memory_new, but the host sees each buffer at the address that kernels use, if that part of
 * the process's address space is free; vm_memory_is_unified tells. */
ev_status vm_memory_new_unified(uint64_t limit_bytes, vm_memory **out, ev_error *err) EV_CHECKED;
bool vm_memory_is_unified(const vm_memory *memory);
/* Makes `count` memories (up to VM_RANKS_MOST) that are peers, to out[0..count). Their addresses
 * are distinct, and a kernel on one may access the buffers of all, as with peer access enabled.
 * Otherwise the memories are independent; free each with vm_memory_free. EV_BAD: more than 16 TiB
 * in all. */
#define VM_RANKS_MOST 1024u
ev_status vm_memory_new_peers(uint64_t limit_bytes, uint32_t count, vm_memory **out,
                              ev_error *err) EV_CHECKED;
void vm_memory_free(vm_memory *memory);
/* The address range of a memory, distinct from its peers' ranges. */
void vm_memory_range(const vm_memory *memory, uint64_t *address, uint64_t *bytes);
/* Allocates a zeroed buffer with redzones around it, aligned to 256 bytes. EV_BAD: beyond the
 * limit. */
ev_status vm_memory_alloc(vm_memory *memory, uint64_t bytes, vm_buffer_kind kind, const char *name,
                          uint64_t *address, ev_error *err) EV_CHECKED;
/* As vm_memory_alloc, but at an odd multiple of `align`, a power of two up to 4096. */
ev_status vm_memory_alloc_odd(vm_memory *memory, uint64_t bytes, uint32_t align,
                              vm_buffer_kind kind, const char *name, uint64_t *address,
                              ev_error *err) EV_CHECKED;
/* Frees one buffer; later ones may reuse its place. false: no buffer starts at `address`. */
bool vm_memory_release(vm_memory *memory, uint64_t address);
/* A hidden buffer is out of bounds for kernels. false: no buffer starts at `address`. */
bool vm_memory_hide(vm_memory *memory, uint64_t address, bool hidden);
/* Frees every buffer. The next allocations get the same addresses again. */
void vm_memory_clear(vm_memory *memory);
/* The buffer's contents, which the host fills before a launch and reads after it; NULL: no buffer
 * starts at `address`. The whole range of an IN or INOUT buffer counts as initialised. */
void *vm_memory_host(vm_memory *memory, uint64_t address);
uint64_t vm_memory_bytes(const vm_memory *memory, uint64_t address);
/* Resets the memory between candidates. The shadow is as after allocation, and touched pages of OUT
 * and SCRATCH buffers are filled with `poison` bytes. The caller restores INOUT contents. The time
 * is proportional to the touched pages. */
void vm_memory_reset(vm_memory *memory, uint8_t poison);
/* Sets written[i] to 1 if launches wrote all bytes of element `first` + i since the reset, for
 * `count` elements of `element_bytes` each, counted from `address`. Returns the number of written
 * ones. */
uint64_t vm_memory_written(const vm_memory *memory, uint64_t address, size_t element_bytes,
                           uint64_t first, uint64_t count, uint8_t *written);

/* ---- textures and surfaces: geometry, format and sampler over bytes of a memory
 *
 * A kernel gets a handle, a number of 64 bits. Elements stand in rows, rows in slices; a slice is a
 * layer, a face of a cube, or a step of the third dimension. (On hardware the order in an array is
 * hidden.) PTX ISA, Texture Instructions; CUDA C++ Programming Guide, Texture Fetching. */

typedef struct vm_sampler {
    bool linear;      /* the filter; else the nearest element */
    bool normalised;  /* coordinates from 0 to 1 */
    uint8_t modes[3]; /* ptx_address_mode of each coordinate: 0 wrap, 1 clamp, 2 mirror, 3 border */
    float border[4];  /* what lies outside, with mode 3 */
} vm_sampler;

typedef struct vm_texture {
    uint64_t address;              /* of the first element */
    uint32_t width, height, depth; /* elements; 0: no such dimension */
    uint32_t layers;               /* of a cube: faces; 0: no layers */
    bool cube;
    uint64_t row_bytes, slice_bytes;
    ev_type channel;  /* 8, 16 or 32 bits; f16 or f32 */
    uint8_t channels; /* 1, 2 or 4 */
    bool surface;     /* for suld and sust; has no sampler */
    bool linear;      /* plain memory, which only integers fetch; outside lie zeros */
    bool as_float;    /* integers of 8 or 16 bits are read as floats of [0, 1] or [-1, 1] */
    vm_sampler sampler;
} vm_texture;

/* *handle: of a texture or surface until vm_texture_release or vm_memory_clear. EV_BAD: elements
 * beside the buffers, unaligned rows, a format that textures do not have. */
ev_status vm_texture_new(vm_memory *memory, const vm_texture *texture, uint64_t *handle,
                         ev_error *err) EV_CHECKED;
/* NULL: no texture or surface has this handle. */
const vm_texture *vm_texture_get(const vm_memory *memory, uint64_t handle);
bool vm_texture_release(vm_memory *memory, uint64_t handle); /* false: no such handle */

/* Bytes of pages that a memory holds in the process. */
typedef struct vm_usage {
    uint64_t contents; /* touched buffers */
    uint64_t shadow;   /* of the checks: at most 2 bytes a byte of contents */
    uint64_t lists;    /* lists of the pages that a reset visits */
} vm_usage;
void vm_memory_usage(const vm_memory *memory, vm_usage *out);

/* ---- launches ---------------------------------------------------------------------------------
 */

typedef enum vm_trap_kind {
    VM_TRAP_NONE = 0,
#define VM_TRAP(id, name, meaning) VM_TRAP_##id,
#include "fitness/vm/traps.def"
#undef VM_TRAP
    VM_TRAP_COUNT
} vm_trap_kind;

const char *vm_trap_name(vm_trap_kind kind); /* "none" for VM_TRAP_NONE */

typedef struct vm_trap {
    vm_trap_kind kind;
    uint32_t rank;        /* of the failing launch; 0 for a single one */
    uint32_t line;        /* of the PTX text */
    uint32_t column;      /* of the instruction's name, from 1, in bytes; 0: not in the text */
    uint32_t source_line; /* from .loc; 0: none */
    uint32_t block[3];
    uint32_t thread[3];
    bool has_address;
    uint64_t address;
    char message[600]; /* one line: what, where, nearest allocation and offset */
} vm_trap;

/* Counters of a launch. Requests are warp-wide. Transactions are 32-byte sectors. */
typedef struct vm_counters {
    uint64_t thread_instructions;
    uint64_t warp_instructions;
    uint64_t warp_by_pipe[VM_PIPE_COUNT];
    uint64_t global_load_requests, global_load_sectors, global_load_bytes;
    uint64_t global_store_requests, global_store_sectors, global_store_bytes;
    /* The part of these that accessed peers' buffers (over a link). */
    uint64_t peer_load_requests, peer_load_sectors, peer_load_bytes;
    uint64_t peer_store_requests, peer_store_sectors, peer_store_bytes;
    uint64_t peer_atomics; /* lanes; their requests, sectors and bytes are among the stores */
    uint64_t shared_requests, shared_passes; /* passes - requests = bank conflicts */
    uint64_t local_requests, local_sectors;
    uint64_t atomics;
    uint64_t barriers; /* warp arrivals */
    uint64_t branches, divergent_branches;
    uint64_t blocks; /* executed */
} vm_counters;

/* One stretch of `count` instructions from `pc`, executed in order by the lanes of `active`. Only
 * the last of them may access memory, synchronise or branch. A wmma.load or wmma.store of more than
 * 512 bytes is two requests, and its second event has that instruction alone; so are the rows of
 * elements that a texture's linear filter reads, and the textures of lanes that name several. */
typedef struct vm_event {
    uint32_t pc;
    uint32_t count;
    uint32_t active;  /* lanes that executed the last instruction (its guard applied) */
    uint16_t sectors; /* global or local access: distinct 32-byte sectors, from `first_sector` */
    uint16_t lines;   /* global or local access: distinct 128-byte lines */
    /* Passes of a global, local or shared access over the 32 banks of 4 bytes. In one pass, each
     * bank gives one word to all lanes that read it (1: no conflict). Accesses of 8 bytes a lane go
     * by half warps, of 16 by quarters, and their passes add up; if all lanes i and i ^ 1, or i and
     * i ^ 2, access the same address of shared memory, two groups go at once. Local memory is
     * interleaved by lane, so each lane has its own bank. Atomics to shared memory take a pass for
     * each lane of a bank. 0: no such access. */
    uint16_t passes;
    uint16_t zero; /* always 0: events are compared as bytes */
    uint32_t
        first_sector; /* index into the batch's sectors, which are in the order of its events */
} vm_event;

typedef struct vm_batch {
    uint32_t block; /* linear number in the grid */
    uint32_t warp;  /* in the block */
    const vm_event *events;
    size_t count;
    const uint64_t *sectors; /* address / 32 */
} vm_batch;

/* Callbacks in the order of execution. A warp's batches are in its program order. A batch ends
 * where the warp waits (barrier), where its turn ends, or at a length limit. Blocks may be
 * interleaved. */
typedef struct vm_observer {
    void *context;
    void (*block_begin)(void *context, uint32_t block, uint32_t warps);
    void (*batch)(void *context, const vm_batch *batch);
    void (*block_end)(void *context, uint32_t block);
} vm_observer;

enum {
    VM_CHECK_NONE = 0, /* bounds, alignment, fuel and deadlock are always on */
    /* Uninitialised reads, writes outside outputs. The check is at the load, except of local
     * memory, whose undefined bits travel with values and trap where they decide a branch, an
     * address or what others see: code without optimisation copies padding (vm_undefined.c). */
    VM_CHECK_INIT = 1,
    VM_CHECK_RACES = 2,
    /* With RACES, in a launch without ranks: a plain load of what a flag announced, although no
     * acquire fence came after the flag's read. Hardware may then give the load an older value. */
    VM_CHECK_FENCES = 4,
    /* With RACES, in a launch of several ranks that begin and end apart (vm_apart.c): */
    VM_CHECK_BEGIN = 8, /* a plain read of what a peer has before its launch, when the reader has
                           no message of scope .sys from it yet */
    VM_CHECK_END = 16,  /* a write into a peer's memory that no message of scope .sys told the peer
                           of before it ended */
    /* With RACES: shuffles and votes order no memory between the lanes of a warp. Without this bit
     * they do, as bar.warp.sync does. */
    VM_CHECK_LANES = 32,
    /* With RACES: a plain load of what other threads change by atomics or other strong writes.
     * Without this bit plain loads count as relaxed ones of scope .gpu: many programs begin with
     * one what a compare-and-swap ends. */
    VM_CHECK_PLAIN = 64,
    /* With RACES: a plain store, over what another thread wrote, of the value that is there. */
    VM_CHECK_SAME = 128,
    /* What many programs do. A task's baseline may, and its variants then, too. */
    VM_CHECK_WAIVABLE = VM_CHECK_FENCES | VM_CHECK_LANES | VM_CHECK_PLAIN | VM_CHECK_SAME,
    VM_CHECK_ALL = VM_CHECK_INIT | VM_CHECK_RACES | VM_CHECK_WAIVABLE,
};
typedef unsigned vm_checks; /* bits VM_CHECK_* */

/* A launch of several ranks as one of a row of launches that the ranks' streams run. A stream
 * orders the launches of its own rank; between ranks, only messages of scope .sys order accesses,
 * also of different launches (vm_stream.c). The same of all ranks. */
enum {
    VM_STREAM_FOLLOWS = 1, /* it follows the last launch on these memories, which had GOES_ON */
    VM_STREAM_GOES_ON = 2, /* another one follows: what a peer was not told yet, it may be told
                              then, so VM_CHECK_END looks at the end of the last one */
};

/* What approximate instructions (.approx, .full) give; ptx_approx.def has their bounds. */
typedef enum vm_approx {
    VM_APPROX_NEAREST, /* the exact value, rounded */
    VM_APPROX_WORST,   /* off by a hash of the operands, anywhere within the bound */
    VM_APPROX_TURNED,  /* as far off as WORST, to the other side */
    VM_APPROX_COUNT
} vm_approx;

/* Warp instructions that weigh as much as a written sector: an SM issues four in a cycle, and its
 * share of the DRAM moves a sector in two (H200: 3.7 TB/s, 132 SMs, 1.98 GHz). */
#define VM_PATH_SECTOR 8

typedef struct vm_launch {
    const vm_module *module;
    const vm_entry *entry;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared; /* bytes a block */
    const void *params;      /* entry->param_bytes, laid out as entry->params say */
    uint64_t fuel;           /* thread instructions for the whole launch; 0: 2^40 */
    vm_checks checks;
    vm_approx approx;
    unsigned stream;        /* of several ranks: bits VM_STREAM_*; 0: a launch alone */
    bool host_writes;       /* the host may write to buffers during the launch. A thread that polls
                               may then wait for the host, so only the fuel ends it */
    uint64_t schedule_seed; /* 0: natural order; else a permutation of warps and blocks */
    uint32_t resident_blocks; /* blocks alive at once, from the occupancy; 0: 1024 threads' worth */
    uint32_t jobs; /* host threads that share the blocks, if the blocks are independent; 0 and 1:
                      one. Only the run time depends on it */
    /* Clocks at the begin of the launch: cycles of each SM (%clock64; %clock and %clock_hi are its
     * halves) and nanoseconds (%globaltimer and its halves). Both advance by what the launch
     * executes (PTX ISA, Special Registers). */
    uint64_t clock_cycles, timer_ns;
    uint64_t timer_grain;   /* ns from one value of %globaltimer to the next; 0: one */
    const uint32_t *sample; /* linear block numbers to run, ascending; NULL: all of the grid */
    size_t sample_count;
    uint64_t globals; /* address of a buffer with the .global variables (vm_module_place); 0: the
                         virtual machine allocates them */
    const vm_observer *observer; /* NULL: none */
    /* Gets the output of printf, one call at a time, in the order of execution; NULL: dropped. */
    void (*print)(void *context, const char *text, size_t bytes);
    void *print_context;
    uint64_t
        *executions; /* NULL, or one count of warp executions per pc of the module (added to) */
    /* NULL, or the path length of each block that ended, by the block's place in the grid or in
     * `sample`: warp instructions, and VM_PATH_SECTOR for each sector that it wrote to global
     * memory. Blocks whose threads only skip their stores execute nearly as many instructions as
     * those that write. */
    uint64_t *paths;
    /* For the observer: how many blocks of the grid each one of `sample` stands for; NULL: not
     * known. */
    const double *weights;
} vm_launch;

typedef struct vm_result {
    bool ok;
    vm_trap trap;         /* when not ok */
    vm_counters counters; /* up to the trap, if any */
    bool waits;           /* a block waited for another block's write to memory */
} vm_result;

/* Runs a launch. After a trap the call returns EV_OK with result->ok false. EV_BAD: the geometry
 * does not fit (block too large, no threads, too much shared memory). EV_INFRA: out of memory. */
ev_status vm_run(vm_memory *memory, const vm_launch *launch, vm_result *result,
                 ev_error *err) EV_CHECKED;

/* One of several launches that run side by side, each with a memory of its own. */
typedef struct vm_rank {
    vm_memory *memory;
    const vm_launch *launch;
} vm_rank;

/* Runs `count` launches side by side, over memories that are peers. The ranks take turns; the turn
 * of a rank that only waits is short, so flags between ranks make progress. The order of turns is
 * fixed, and permuted if rank 0 has a schedule_seed. Each rank has its own fuel, observer and
 * counters. `jobs` is ignored.
 *
 * Between ranks, only scope .sys orders accesses: a fence or release, a flag or atomic, and the
 * read that observes it (PTX ISA, Memory Consistency Model; an atomic without a scope is .gpu, a
 * volatile access is .sys). Any other conflict between ranks is a race. Within a warp that uses
 * both scopes, a race of its own lanes around the change of scope may be missed.
 *
 * The inputs of all ranks count as ready, and their memory as untouched until all have ended, as
 * behind a barrier of all GPUs before and after; VM_CHECK_BEGIN and VM_CHECK_END are for ranks
 * without these barriers.
 *
 * A trap in one rank ends all ranks. Each result then is not ok and has that trap, whose `rank` is
 * the index of the failing rank. A rank that ended is no trap, but ranks that wait for it are in a
 * deadlock. EV_BAD: memories that are no peers or given twice; else as vm_run, with the rank's
 * number. */
ev_status vm_run_ranks(const vm_rank *ranks, uint32_t count, vm_result *results,
                       ev_error *err) EV_CHECKED;

/* The host's instruction set, chosen at run time: "baseline", "avx2" or "avx512". */
const char *vm_isa_name(void);

#endif
