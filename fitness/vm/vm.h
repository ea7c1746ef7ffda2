/* The PTX virtual machine: executes PTX text as LLVM 19 and nvcc emit it, and checks every access.
 *
 *   module   PTX text after loading: decoded once, launched often, never changed by a launch
 *   memory   the global address space of one device: allocations, their contents, their shadow
 *   launch   one grid over a module and a memory; ends with `ok` or with a trap
 *   observer what the timing model hangs on: it is told each executed stretch of each warp
 *
 * Everything is deterministic: addresses, order, results and counters depend on the arguments
 * alone. Not thread-safe within one memory; two memories are independent. Semantics: PTX ISA 8.5.
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

/* What kernels may do with a buffer, and what it holds at first. */
typedef enum vm_buffer_kind {
    VM_BUFFER_IN,      /* initialised; a write is a trap */
    VM_BUFFER_OUT,     /* uninitialised; reads before a write are a trap */
    VM_BUFFER_INOUT,   /* initialised; may be written */
    VM_BUFFER_SCRATCH, /* as OUT, but not looked at afterwards */
} vm_buffer_kind;

/* `limit_bytes`: what the device has; an allocation past it is EV_BAD. Pages are taken when
 * touched. */
ev_status vm_memory_new(uint64_t limit_bytes, vm_memory **out, ev_error *err) EV_CHECKED;
/* As vm_memory_new, and the host sees each buffer at the address that kernels know it by, if that
 * part of the process's address space is free: vm_memory_is_unified says so. */
ev_status vm_memory_new_unified(uint64_t limit_bytes, vm_memory **out, ev_error *err) EV_CHECKED;
bool vm_memory_is_unified(const vm_memory *memory);
/* `count` memories (up to VM_RANKS_MOST) that are peers, to out[0..count): their addresses are
 * distinct, and a kernel on one may access the buffers of all, as with peer access on. In all else
 * each is a memory of its own, freed with vm_memory_free. EV_BAD: more than 16 TiB in all. */
#define VM_RANKS_MOST 1024u
ev_status vm_memory_new_peers(uint64_t limit_bytes, uint32_t count, vm_memory **out,
                              ev_error *err) EV_CHECKED;
void vm_memory_free(vm_memory *memory);
/* The addresses that are a memory's own, among its peers'. */
void vm_memory_range(const vm_memory *memory, uint64_t *address, uint64_t *bytes);
/* A buffer with redzones around it, aligned to 256 bytes; contents zero. */
ev_status vm_memory_alloc(vm_memory *memory, uint64_t bytes, vm_buffer_kind kind, const char *name,
                          uint64_t *address, ev_error *err) EV_CHECKED;
/* Gives one buffer back; later ones may take its place. False: no buffer starts at `address`. */
bool vm_memory_release(vm_memory *memory, uint64_t address);
/* While hidden, a buffer is out of bounds for kernels; false: no buffer starts at `address`. */
bool vm_memory_hide(vm_memory *memory, uint64_t address, bool hidden);
/* Gives every buffer back; the next allocations get the same addresses again. */
void vm_memory_clear(vm_memory *memory);
/* The buffer's contents for the host to fill before, and to read after, a launch; NULL if no buffer
 * starts at `address`. The whole range counts as initialised for IN and INOUT kinds. */
void *vm_memory_host(vm_memory *memory, uint64_t address);
uint64_t vm_memory_bytes(const vm_memory *memory, uint64_t address);
/* Forgets all that launches wrote: shadow as after allocation; OUT and SCRATCH contents filled with
 * `poison` bytes where touched. INOUT contents are the caller's to restore. Costs the pages
 * touched. */
void vm_memory_reset(vm_memory *memory, uint8_t poison);
/* For each of `count` elements of `element_bytes` from `address`: written[i] = 1 if launches wrote
 * all its bytes since the reset. Returns how many were written. */
uint64_t vm_memory_written(const vm_memory *memory, uint64_t address, size_t element_bytes,
                           uint64_t first, uint64_t count, uint8_t *written);

/* What a memory costs the process now, in bytes of pages that it holds. */
typedef struct vm_usage {
    uint64_t contents; /* of buffers that were touched */
    uint64_t shadow;   /* of the checks: at most 2 bytes a byte of contents */
    uint64_t lists;    /* of pages that a reset must look at */
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
    uint32_t rank;        /* that it happened in; 0 where there is one */
    uint32_t line;        /* of the PTX text */
    uint32_t column;      /* bytes from 1 to the name of the instruction; 0: it stands nowhere */
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
    /* Of these, what went to buffers of peers (over a link). */
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

/* One stretch of `count` instructions from `pc`, executed in order by the lanes of `active`; only
 * its last may access memory, synchronise or branch. A wmma.load or wmma.store of more than 512
 * bytes is two requests: its second event has no other instruction. */
typedef struct vm_event {
    uint32_t pc;
    uint32_t count;
    uint32_t active;  /* lanes that executed the last instruction (its guard applied) */
    uint16_t sectors; /* global or local access: distinct 32-byte sectors, from `first_sector` */
    uint16_t lines;   /* global or local access: distinct 128-byte lines */
    /* Global, local or shared access: turns that the data stage takes over its 32 banks of 4 bytes.
     * In one turn each bank gives one word, to all lanes that ask for it (1: no conflict). Accesses
     * of 8 bytes a lane go by half warps, of 16 by quarters, and their turns add up. Local memory
     * is interleaved by lane, so that each lane has its own bank. Atomics to shared memory take a
     * turn for each lane of a bank. 0: no access to these. */
    uint16_t passes;
    uint16_t zero;         /* always: events are compared as bytes */
    uint32_t first_sector; /* index into the batch's sector list: a batch's follow one another */
} vm_event;

typedef struct vm_batch {
    uint32_t block; /* linear number in the grid */
    uint32_t warp;  /* in the block */
    const vm_event *events;
    size_t count;
    const uint64_t *sectors; /* address / 32 */
} vm_batch;

/* Called in the order of execution: a warp's batches are in its program order, and a batch ends
 * where the warp waits (barrier) or its turn ends, or when it is long. Blocks may be interleaved.
 */
typedef struct vm_observer {
    void *context;
    void (*block_begin)(void *context, uint32_t block, uint32_t warps);
    void (*batch)(void *context, const vm_batch *batch);
    void (*block_end)(void *context, uint32_t block);
} vm_observer;

typedef enum vm_checks {
    VM_CHECK_NONE = 0, /* bounds, alignment, fuel and deadlock are always on */
    /* Uninitialised reads, writes outside outputs. Registers have no shadow, so a load is where a
     * read is judged, also a load of whole words that only copies a struct with its padding, as
     * code without optimisation (-G, -O0) does: compile with -O1 or more, or zero the struct. */
    VM_CHECK_INIT = 1,
    VM_CHECK_RACES = 2,
    VM_CHECK_ALL = 3,
} vm_checks;

typedef struct vm_launch {
    const vm_module *module;
    const vm_entry *entry;
    uint32_t grid[3];
    uint32_t block[3];
    uint32_t dynamic_shared; /* bytes a block */
    const void *params;      /* entry->param_bytes, laid out as entry->params say */
    uint64_t fuel;           /* thread instructions for the whole launch; 0: 2^40 */
    vm_checks checks;
    bool host_writes;         /* the host may write to buffers during the launch: who polls one may
                                 wait for that, so only the fuel ends it */
    uint64_t schedule_seed;   /* 0: natural order; else warps and blocks are permuted by it */
    uint32_t resident_blocks; /* blocks alive at once, from the occupancy; 0: 1024 threads' worth */
    uint32_t jobs; /* threads that share the blocks, where they have nothing to do with each other;
                      0 and 1: one. Nothing but the time depends on it */
    /* What the clocks show when it begins: cycles of each SM (%clock64; %clock and %clock_hi are
     * its halves) and nanoseconds (%globaltimer and its halves). Both count on from there by what
     * the launch executes (PTX ISA, Special Registers). */
    uint64_t clock_cycles, timer_ns;
    uint64_t timer_grain;   /* ns from one value of %globaltimer to the next; 0: one */
    const uint32_t *sample; /* linear block numbers to run, ascending; NULL: all of the grid */
    size_t sample_count;
    uint64_t globals; /* address of a buffer with the .global variables (vm_module_place); 0: the
                         machine keeps them */
    const vm_observer *observer; /* NULL: none */
    /* What kernels print (printf of CUDA) goes here, a call of it at a time, in the order of
     * execution; NULL: it is dropped. */
    void (*print)(void *context, const char *text, size_t bytes);
    void *print_context;
    uint64_t
        *executions; /* NULL, or one count of warp executions per pc of the module (added to) */
} vm_launch;

typedef struct vm_result {
    bool ok;
    vm_trap trap;         /* when not ok */
    vm_counters counters; /* up to the trap when there was one */
} vm_result;

/* Runs a launch. A trap is no failure of the call: EV_OK with result->ok false. EV_BAD: the
 * geometry does not fit the machine (block too large, no threads, shared memory). EV_INFRA: out of
 * memory. */
ev_status vm_run(vm_memory *memory, const vm_launch *launch, vm_result *result,
                 ev_error *err) EV_CHECKED;

/* One of several launches that run side by side, each with a memory of its own. */
typedef struct vm_rank {
    vm_memory *memory;
    const vm_launch *launch;
} vm_rank;

/* Runs `count` launches side by side, over memories that are peers. They take turns, short ones
 * where they only wait, so flags between ranks make progress; the order of turns is fixed, and
 * permuted where rank 0 has a schedule_seed. Each has its own fuel, observer and counters; `jobs`
 * is not heeded.
 *
 * What orders accesses of one rank for another is what has scope .sys: a fence or release, a flag
 * or atomic, and the read that sees it (PTX ISA, Memory Consistency Model; an atomic without a
 * scope is .gpu, a volatile access is .sys). Between ranks all else is a race. Within a warp that
 * uses both scopes, a race of its own lanes around the change of scope may be missed.
 *
 * A trap in one rank ends all: each result then is not ok and has that trap, whose `rank` is its
 * index; a rank of which no thread runs is no reason, but those who wait for it are in a deadlock.
 * EV_BAD: memories that are no peers or given twice; else as vm_run, with the rank's number. */
ev_status vm_run_ranks(const vm_rank *ranks, uint32_t count, vm_result *results,
                       ev_error *err) EV_CHECKED;

/* The instruction set chosen at run time: "baseline", "avx2" or "avx512". */
const char *vm_isa_name(void);

#endif
