/* Inside of the virtual machine: global memory, its allocations and its shadow.
 *
 * The shadow has two planes for races, with one 32-bit entry for each 4-byte word of memory: its
 * last write, and its last read. That is 2 bytes a byte. The planes are reserved as address space
 * and use memory only in pages that a launch touched: the plane of writes after writes or checked
 * reads, the plane of reads under race checks. Buffers of kind IN have no shadow. A written page of
 * memory also takes 5 bytes in lists for the reset.
 *
 *   entry of writes   stamp:20 how:3                    lane:5 written:4 (a bit a byte)
 *   entry of reads    stamp:20 warps:1 strong:1 many:1  lane:5 0:1 blocks:1 block:1 some:1
 *
 * A third plane has marks for words that are promised not to change (vm_promise.c), and uses memory
 * only where such words may be written:
 *
 *   mark              stamp:20 0:1 several:1 copy:1     lane:5 bytes:4
 *
 * A word that lanes accessed in parts has an entry for each byte, in a table of fixed size
 * (vm_race.c, 640 KiB, kept from launch to launch). Its stamp in the plane of writes is all ones.
 * When another word needs the place in the table, the word gets one entry again, with only what is
 * certain. So races of parts may be missed if more than VM_RACE_WORDS words are accessed in parts
 * between two synchronisations. There is no false alarm. */
#ifndef FITNESS_VM_VM_MEMORY_H
#define FITNESS_VM_VM_MEMORY_H

#include "fitness/ptx/ptx.h"
#include "fitness/vm/vm.h"

#define VM_GLOBAL_BASE 0x700000000000ull
#define VM_REDZONE 256
#define VM_PAGE_SHIFT 12               /* a reset works on pages of this size */
#define VM_MODULE_BYTES (256ull << 20) /* for the .global variables of a module */
#define VM_HEAP_BYTES (8ull << 20)     /* for malloc in kernels, above them; as on the chip */

enum {
    VM_RACE_LANE_SHIFT = 4,
    VM_RACE_LANE = 31 << VM_RACE_LANE_SHIFT,
    VM_RACE_SHIFT = 12,
    VM_RACE_STAMPS = (1 << 20) - 5, /* the greatest stamp; above it are marks of shared memory: */
    VM_RACE_COPY,                   /* a pending copy writes here */
    VM_RACE_MBARRIER,               /* an mbarrier is here */
    VM_RACE_GAP,                    /* a gap between two variables */
    VM_RACE_WORDS = 1 << 14,        /* places of the table of words accessed in parts */

    /* ---- of writes */
    VM_RACE_WRITTEN = 15, /* which bytes were ever written */
    VM_RACE_HOW_SHIFT = 9,
    VM_RACE_HOW = 7 << VM_RACE_HOW_SHIFT,

    /* ---- of reads */
    VM_RACE_SOME_READ = 1,    /* the lanes that read each byte are not known */
    VM_RACE_OF_BLOCK = 2,     /* strong for the reader's block only */
    VM_RACE_BLOCKS = 4,       /* warps of several blocks; the stamp is the oldest */
    VM_RACE_MANY = 1 << 9,    /* several lanes of that warp */
    VM_RACE_STRONG = 1 << 10, /* atomic, volatile, relaxed or stronger */
    VM_RACE_WARPS = 1 << 11,  /* several warps */
    /* By later reads: */
    VM_RACE_KEPT = VM_RACE_MANY | VM_RACE_WARPS | VM_RACE_BLOCKS | VM_RACE_SOME_READ,

    /* ---- of promises */
    VM_PROMISE_BYTES = 15,        /* which bytes */
    VM_PROMISE_COPY = 1 << 9,     /* the source of a cp.async; else the read-only path */
    VM_PROMISE_SEVERAL = 1 << 10, /* several warps; the stamp is the last one's */
    VM_PROMISE_KEPT = VM_PROMISE_BYTES | VM_PROMISE_SEVERAL, /* by later marks */
};

/* How a word was written: weakly, or strongly for the writer's block or for all threads, and to
 * whom the write released its warp's earlier accesses. */
typedef enum vm_race_how {
    VM_RACE_WEAK,
    VM_RACE_WEAK_MANY, /* several lanes of that warp */
    VM_RACE_WEAK_SOME, /* the lanes that wrote each byte are not known */
    VM_RACE_BLOCK,
    VM_RACE_BLOCK_TOLD,
    VM_RACE_ALL,
    VM_RACE_ALL_TOLD_BLOCK,
    VM_RACE_ALL_TOLD,
} vm_race_how;

#define VM_RACE_IN_BYTES                                                                           \
    (~0u << VM_RACE_SHIFT) /* entries of writes from here on: see the table                        \
                            */

/* The byte entries of a word. */
typedef struct vm_race_word {
    uint64_t key; /* 0: free */
    uint32_t writes[4], reads[4];
} vm_race_word;

typedef struct vm_alloc {
    uint64_t offset, bytes; /* in the arena */
    vm_buffer_kind kind;
    bool hidden;
    char *name;
} vm_alloc;

/* Cache of a memory instruction: the segment that it accessed last. */
typedef struct vm_segment {
    uint64_t lo, hi; /* addresses; lo == hi: nothing yet */
    vm_buffer_kind kind;
} vm_segment;

/* 1 in a build with the address sanitizer, which checks the virtual machine itself. */
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

/* A texture or surface by its handle; handle 0: a free place. */
typedef struct vm_texture_place {
    uint64_t handle;
    vm_texture texture;
} vm_texture_place;

/* Host memory that a launch passes on to the next one (vm_spare.c). */
typedef struct vm_spare_chunk vm_spare_chunk;
typedef struct vm_spare {
    vm_spare_chunk *chunks;
} vm_spare;

/* What the launches before one leave to it (vm_stream.c). */
typedef struct vm_past vm_past;
void vm_past_free(vm_past *p); /* NULL is fine */

/* Memories of peers. Each has a range of one arena and of one shadow. */
typedef struct vm_peers {
    uint64_t stride; /* bytes of a range */
    uint32_t count, alive;
    vm_memory **members; /* NULL: freed */
    vm_past *past;       /* of a launch that another one follows; else NULL */
} vm_peers;

struct vm_memory {
    uint8_t *arena;    /* host address of offset 0; the same for all peers */
    uint64_t first;    /* offset of its range; 0 without peers */
    uint64_t reserved; /* bytes of address space from `first`, the module's variables included */
    uint64_t limit;    /* offset of the module's variables */
    vm_peers *peers;   /* NULL: no peers */
    uint64_t used;     /* offset of the next buffer */
    bool holes;        /* freed buffers left holes below `used` */
    vm_alloc *allocs;
    size_t count, capacity;
    uint32_t *writes, *reads; /* shadow: entries of each word */
    uint32_t *promises;       /* marks of each word (vm_promise.c) */
    uint8_t *dirty;           /* a byte a page; 1: the page is in dirty_pages */
    uint32_t *dirty_pages;
    size_t dirty_count, dirty_capacity;
    uint64_t module_hash; /* module whose variables are at `limit`; 0: none */
    uint64_t module_bytes;
    uint64_t heap_used; /* offset in the heap behind its last block */
    uint32_t stamp;     /* races: the newest stamp of any launch */
    bool out_of_memory;
    vm_spare spare;      /* from the last launch for the next; moved into a running launch */
    vm_race_word *words; /* VM_RACE_WORDS, all free, for launches with race checks; or NULL */
    vm_texture_place *textures;
    uint32_t texture_count, texture_capacity, texture_serial;
    /* ---- views (vm_view.c) */
    bool shared; /* arena and writes are mappings of `fd`, one behind the other */
    int fd;
    uint64_t *job_read, *job_written; /* of a view: a bit a byte; else NULL */
};

/* The memory, itself or a peer, whose range has the offset; NULL: none. */
vm_memory *vm_memory_owner(const vm_memory *m, uint64_t offset);
/* The memory's index among its peers; 0 without peers. */
uint32_t vm_memory_number(const vm_memory *m);
/* Gets and sets the newest race stamp of the memory's and its peers' launches. */
uint32_t vm_memory_stamp(const vm_memory *m);
void vm_memory_set_stamp(vm_memory *m, uint32_t stamp);
/* The allocation of the memory or a peer that holds [address, address + bytes), or NULL. */
const vm_alloc *vm_memory_find(const vm_memory *m, uint64_t address, uint64_t bytes);
/* The allocation of the memory or a peer nearest to an address, or NULL when there is none. */
const vm_alloc *vm_memory_nearest(const vm_memory *m, uint64_t address);
/* Places the module's variables, unless they are in place. *address: their begin. */
ev_status vm_memory_attach(vm_memory *m, const vm_module *module, uint64_t *address,
                           ev_error *err) EV_CHECKED;
void vm_memory_mark_dirty(vm_memory *m, uint64_t offset, uint64_t bytes);

/* ---- the heap of kernels (vm_heap.c): blocks with redzones, gone at a reset */
/* The address of a new block; 0: no room. */
uint64_t vm_heap_alloc(vm_memory *m, uint64_t bytes);
bool vm_heap_free(vm_memory *m, uint64_t address); /* false: not an address from malloc */
void vm_heap_reset(vm_memory *m);
/* ---- spare memory (vm_spare.c) */
/* Allocates `bytes` aligned to 64, uninitialised, valid until vm_spare_leave; NULL: out of memory.
 */
void *vm_spare_take(vm_spare *s, size_t bytes);
/* Passes a launch's memory to the next one, unless another launch has done so meanwhile. */
void vm_spare_leave(vm_spare *next, vm_spare *s);
void vm_spare_free(vm_spare *s);
/* Inserts an allocation in the order of addresses; NULL: out of memory. */
vm_alloc *vm_memory_insert(vm_memory *m, uint64_t offset, uint64_t bytes, vm_buffer_kind kind,
                           const char *name);

#endif
