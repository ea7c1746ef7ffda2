/* The heap of kernels: malloc and free as device code calls them.
 *
 * A block goes behind the last one while there is room, else into the first gap that holds it. Each
 * is an allocation like a buffer, with a redzone behind it, so every access is checked. */
#include "fitness/vm/vm_memory.h"

#include <stdlib.h>
#include <string.h>

#define HEAP_ALIGN 16u

static uint64_t heap_base(const vm_memory *m) {
    return m->limit + VM_MODULE_BYTES;
}

static uint64_t footprint(uint64_t bytes) {
    return (bytes + HEAP_ALIGN - 1) / HEAP_ALIGN * HEAP_ALIGN + HEAP_ALIGN;
}

static size_t first_block(const vm_memory *m) {
    size_t lo = 0, hi = m->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (m->allocs[mid].offset < heap_base(m))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Offset in the heap of a gap of `need` bytes; VM_HEAP_BYTES: none. */
static uint64_t find_gap(const vm_memory *m, uint64_t need) {
    uint64_t at = 0;
    for (size_t i = first_block(m); i < m->count; i++) {
        uint64_t begin = m->allocs[i].offset - heap_base(m);
        if (begin - at >= need)
            return at;
        at = begin + footprint(m->allocs[i].bytes);
    }
    return at + need <= VM_HEAP_BYTES ? at : VM_HEAP_BYTES;
}

/* A new block has never been written, and nobody has accessed it. */
static void forget(vm_memory *m, uint64_t offset, uint64_t bytes) {
    uint64_t words = (bytes + 3) / 4;
    memset(m->writes + offset / 4, 0, words * sizeof *m->writes);
    memset(m->reads + offset / 4, 0, words * sizeof *m->reads);
}

uint64_t vm_heap_alloc(vm_memory *m, uint64_t bytes) {
    if (!bytes || bytes > VM_HEAP_BYTES)
        return 0;
    uint64_t need = footprint(bytes), at = m->heap_used;
    if (at + need > VM_HEAP_BYTES)
        at = find_gap(m, need);
    if (at == VM_HEAP_BYTES)
        return 0;
    if (!vm_memory_insert(m, heap_base(m) + at, bytes, VM_BUFFER_SCRATCH, "heap block")) {
        m->out_of_memory = true;
        return 0;
    }
    if (m->heap_used < at + need)
        m->heap_used = at + need;
    forget(m, heap_base(m) + at, bytes);
    return VM_GLOBAL_BASE + heap_base(m) + at;
}

bool vm_heap_free(vm_memory *m, uint64_t address) {
    const vm_alloc *a = vm_memory_find(m, address, 1);
    uint64_t offset = address - VM_GLOBAL_BASE;
    if (!a || a->offset != offset || vm_memory_owner(m, offset) != m || offset < heap_base(m))
        return false;
    size_t i = (size_t)(a - m->allocs);
    free(m->allocs[i].name);
    memmove(&m->allocs[i], &m->allocs[i + 1], (m->count - i - 1) * sizeof *m->allocs);
    m->count--;
    if (i == m->count) {
        const vm_alloc *last = i > first_block(m) ? &m->allocs[i - 1] : NULL;
        m->heap_used = last ? last->offset - heap_base(m) + footprint(last->bytes) : 0;
    }
    return true;
}

void vm_heap_reset(vm_memory *m) {
    while (m->count && m->allocs[m->count - 1].offset >= heap_base(m))
        free(m->allocs[--m->count].name);
    m->heap_used = 0;
}
