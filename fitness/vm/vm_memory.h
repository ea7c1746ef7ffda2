/* Inside of the virtual machine: global memory, its allocations and its shadow. */
#ifndef FITNESS_VM_VM_MEMORY_H
#define FITNESS_VM_VM_MEMORY_H

#include "fitness/vm/ptx.h"

#define VM_GLOBAL_BASE 0x700000000000ull
#define VM_REDZONE 256
#define VM_PAGE_SHIFT 12               /* what a reset costs is counted in these pages */
#define VM_MODULE_BYTES (256ull << 20) /* for the .global variables of a module */
#define VM_HEAP_BYTES (8ull << 20)     /* for malloc in kernels, above them; as on the chip */

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

struct vm_memory {
    uint8_t *arena;
    uint64_t reserved; /* bytes of address space, the module's variables included */
    uint64_t limit;
    uint64_t used; /* offset of the next buffer */
    bool holes;    /* below `used`, where buffers were given back */
    vm_alloc *allocs;
    size_t count, capacity;
    uint64_t *written; /* a bit a byte: written since the reset */
    uint32_t *races;   /* two words a 4-byte word: last write, last read */
    uint8_t *dirty;    /* a byte a page: stands in dirty_pages */
    uint32_t *dirty_pages;
    size_t dirty_count, dirty_capacity;
    uint64_t module_hash; /* whose variables stand at `limit`; 0: nobody's */
    uint64_t module_bytes;
    uint64_t heap_used; /* offset in the heap behind its last block */
    uint32_t stamp;     /* races: the newest given out by any launch */
    bool out_of_memory;
};

/* The allocation that holds [address, address + bytes), or NULL. */
const vm_alloc *vm_memory_find(const vm_memory *m, uint64_t address, uint64_t bytes);
/* The allocation nearest to an address, or NULL when there is none. */
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
/* In order of address; NULL when memory runs out. */
vm_alloc *vm_memory_insert(vm_memory *m, uint64_t offset, uint64_t bytes, vm_buffer_kind kind,
                           const char *name);

#endif
