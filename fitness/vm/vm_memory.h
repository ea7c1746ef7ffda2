/* Inside of the virtual machine: global memory, its allocations and its shadow.
 *
 * Shadow: two planes, a 32-bit entry each for every 4-byte word of memory: its last write and its
 * last read. That is 2 bytes a byte; the planes are reserved as address space and cost memory only
 * where a launch touched them, in pages: the plane of writes where something was written or where
 * reads were checked, the plane of reads where races were looked for. Buffers of kind IN have none.
 * Beside it, a page of memory that was written has 5 bytes in lists for the reset.
 *
 *   entry of writes   stamp:20 how:3                    lane:5 written:4 (a bit a byte)
 *   entry of reads    stamp:20 warps:1 strong:1 many:1  lane:5 0:1 blocks:1 block:1 some:1
 *
 * A word that lanes accessed in parts has an entry for each byte in a table of fixed size
 * (vm_race.c, 640 KiB, kept from launch to launch); its stamp in the plane of writes is all ones.
 * When the table's place is needed for another word, the word gets one entry again, which says no
 * more than is sure: so races of parts may be missed where more than VM_RACE_WORDS words are
 * accessed in parts between two syncs; there is no false alarm. */
#ifndef FITNESS_VM_VM_MEMORY_H
#define FITNESS_VM_VM_MEMORY_H

#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#define VM_GLOBAL_BASE 0x700000000000ull
#define VM_REDZONE 256
#define VM_PAGE_SHIFT 12               /* what a reset costs is counted in these pages */
#define VM_MODULE_BYTES (256ull << 20) /* for the .global variables of a module */
#define VM_HEAP_BYTES (8ull << 20)     /* for malloc in kernels, above them; as on the chip */

enum {
    VM_RACE_LANE_SHIFT = 4,
    VM_RACE_LANE = 31 << VM_RACE_LANE_SHIFT,
    VM_RACE_SHIFT = 12,
    VM_RACE_STAMPS = (1 << 20) - 5, /* the greatest stamp; above it are marks of shared memory: */
    VM_RACE_COPY,                   /* a copy that was not waited for writes here */
    VM_RACE_MBARRIER,               /* an mbarrier stands here */
    VM_RACE_GAP,                    /* nothing stands here: between two variables */
    VM_RACE_WORDS = 1 << 14,        /* accessed in parts: places in the table */

    /* ---- of writes */
    VM_RACE_WRITTEN = 15, /* which bytes were ever written */
    VM_RACE_HOW_SHIFT = 9,
    VM_RACE_HOW = 7 << VM_RACE_HOW_SHIFT,

    /* ---- of reads */
    VM_RACE_SOME_READ = 1,    /* which lanes of the warp read which bytes is not known */
    VM_RACE_OF_BLOCK = 2,     /* strong for the reader's block only */
    VM_RACE_BLOCKS = 4,       /* warps of several blocks; the stamp is the oldest */
    VM_RACE_MANY = 1 << 9,    /* several lanes of that warp */
    VM_RACE_STRONG = 1 << 10, /* atomic, volatile, relaxed or stronger */
    VM_RACE_WARPS = 1 << 11,  /* several warps */
    /* By later reads: */
    VM_RACE_KEPT = VM_RACE_MANY | VM_RACE_WARPS | VM_RACE_BLOCKS | VM_RACE_SOME_READ,
};

/* How a word was written: weakly, or strongly for the writer's block or for all, and whom the write
 * tells what its warp did before it (whom it released to). */
typedef enum vm_race_how {
    VM_RACE_WEAK,
    VM_RACE_WEAK_MANY, /* several lanes of that warp */
    VM_RACE_WEAK_SOME, /* which lanes wrote which bytes is not known */
    VM_RACE_BLOCK,
    VM_RACE_BLOCK_TOLD,
    VM_RACE_ALL,
    VM_RACE_ALL_TOLD_BLOCK,
    VM_RACE_ALL_TOLD,
} vm_race_how;

#define VM_RACE_IN_BYTES                                                                           \
    (~0u << VM_RACE_SHIFT) /* entries of writes from here on: see the table                        \
                            */

/* A word's entries a byte. */
typedef struct vm_race_word {
    uint64_t key; /* 0: nothing here */
    uint32_t writes[4], reads[4];
} vm_race_word;

typedef struct vm_alloc {
    uint64_t offset, bytes; /* in the arena */
    vm_buffer_kind kind;
    bool hidden;
    char *name;
} vm_alloc;

/* What a memory instruction found last: most of the time it finds it again. */
typedef struct vm_segment {
    uint64_t lo, hi; /* addresses; lo == hi: nothing yet */
    vm_buffer_kind kind;
} vm_segment;

/* Built to look for wrong accesses of the machine itself. */
#if defined(__SANITIZE_ADDRESS__)
#define VM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VM_SANITIZED 1
#endif
#endif
#ifndef VM_SANITIZED
#define VM_SANITIZED 0
#endif

/* Host memory that launches take and leave for the next one (vm_spare.c). */
typedef struct vm_spare_chunk vm_spare_chunk;
typedef struct vm_spare {
    vm_spare_chunk *chunks;
} vm_spare;

/* Memories that see each other: each has a range of one arena and of one shadow. */
typedef struct vm_peers {
    uint64_t stride; /* bytes of a range */
    uint32_t count, alive;
    vm_memory **members; /* NULL: freed */
} vm_peers;

struct vm_memory {
    uint8_t *arena;    /* where offset 0 is; of peers: the same for all */
    uint64_t first;    /* offset of its range; 0 where it has no peers */
    uint64_t reserved; /* bytes of address space from there, the module's variables included */
    uint64_t limit;    /* offset of the module's variables */
    vm_peers *peers;   /* NULL: it stands alone */
    uint64_t used;     /* offset of the next buffer */
    bool holes;        /* below `used`, where buffers were given back */
    vm_alloc *allocs;
    size_t count, capacity;
    uint32_t *writes, *reads; /* shadow: entries of each word */
    uint8_t *dirty;           /* a byte a page: stands in dirty_pages */
    uint32_t *dirty_pages;
    size_t dirty_count, dirty_capacity;
    uint64_t module_hash; /* whose variables stand at `limit`; 0: nobody's */
    uint64_t module_bytes;
    uint64_t heap_used; /* offset in the heap behind its last block */
    uint32_t stamp;     /* races: the newest given out by any launch */
    bool out_of_memory;
    vm_spare spare;      /* of the last launch, for the next; a running one has it with it */
    vm_race_word *words; /* VM_RACE_WORDS, none taken, for launches that look for races; or NULL */
    /* ---- views (vm_view.c) */
    bool shared; /* arena and writes are mappings of `fd`, one behind the other */
    int fd;
    uint64_t *job_read, *job_written; /* of a view: a bit a byte; else NULL */
};

/* Whose range an offset is in: the memory's own, or a peer's; NULL: nobody's. */
vm_memory *vm_memory_owner(const vm_memory *m, uint64_t offset);
/* The memory's number among its peers; 0 where it has none. */
uint32_t vm_memory_number(const vm_memory *m);
/* The newest stamp of races that its launches or its peers' gave out, and what it is from now on.
 */
uint32_t vm_memory_stamp(const vm_memory *m);
void vm_memory_set_stamp(vm_memory *m, uint32_t stamp);
/* The allocation of the memory or a peer that holds [address, address + bytes), or NULL. */
const vm_alloc *vm_memory_find(const vm_memory *m, uint64_t address, uint64_t bytes);
/* The allocation of the memory or a peer nearest to an address, or NULL when there is none. */
const vm_alloc *vm_memory_nearest(const vm_memory *m, uint64_t address);
/* Puts the module's variables in place, unless they are. *address: where they begin. */
ev_status vm_memory_attach(vm_memory *m, const vm_module *module, uint64_t *address,
                           ev_error *err) EV_CHECKED;
void vm_memory_mark_dirty(vm_memory *m, uint64_t offset, uint64_t bytes);

/* ---- the heap of kernels (vm_heap.c): blocks with redzones, gone at a reset */
/* 0 where there is no room. */
uint64_t vm_heap_alloc(vm_memory *m, uint64_t bytes);
bool vm_heap_free(vm_memory *m, uint64_t address); /* false: malloc did not give it */
void vm_heap_reset(vm_memory *m);
/* ---- spare memory (vm_spare.c) */
/* `bytes` aligned to 64, whatever stands in them, until they are left; NULL when memory runs out.
 */
void *vm_spare_take(vm_spare *s, size_t bytes);
/* What a launch had goes to the next one, unless another that ran meanwhile has left its own. */
void vm_spare_leave(vm_spare *next, vm_spare *s);
void vm_spare_free(vm_spare *s);
/* In order of address; NULL when memory runs out. */
vm_alloc *vm_memory_insert(vm_memory *m, uint64_t offset, uint64_t bytes, vm_buffer_kind kind,
                           const char *name);

#endif
