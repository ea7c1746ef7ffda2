/* Spare memory of the host: launches on a device mostly follow one another and want the same again,
 * so that what one took is there for the next, with its pages in place. Where several run at a
 * time, by turns, each has its own. */
#include "fitness/vm/vm_memory.h"

#include <stdlib.h>

#define ALIGN 64u
#if VM_SANITIZED /* each alone, so that what goes beyond its end is seen */
#define CHUNK 0u
#define KEPT 0u
#else
#define CHUNK (512u << 10) /* the least that is asked of the system */
#define KEPT (16u << 20)   /* the most that stays from launch to launch */
#endif

/* Its bytes follow it, ALIGN behind its begin. */
struct vm_spare_chunk {
    vm_spare_chunk *next;
    size_t bytes, used;
};

_Static_assert(sizeof(vm_spare_chunk) <= ALIGN, "a chunk's bytes begin behind it");

static vm_spare_chunk *chunk_new(size_t bytes) {
    size_t room = bytes > CHUNK ? bytes : CHUNK;
    vm_spare_chunk *c = aligned_alloc(ALIGN, ALIGN + room);
    if (c)
        *c = (vm_spare_chunk){.bytes = room};
    return c;
}

/* Chunks stand in the order in which they were made, so equal launches find equal places. */
void *vm_spare_take(vm_spare *s, size_t bytes) {
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    vm_spare_chunk **at = &s->chunks;
    while (*at && (*at)->bytes - (*at)->used < bytes)
        at = &(*at)->next;
    if (!*at)
        *at = chunk_new(bytes);
    vm_spare_chunk *c = *at;
    if (!c)
        return NULL;
    void *taken = (uint8_t *)c + ALIGN + c->used;
    c->used += bytes;
    return taken;
}

void vm_spare_leave(vm_spare *next, vm_spare *s) {
    if (next->chunks) {
        vm_spare_free(s);
        return;
    }
    size_t kept = 0;
    for (vm_spare_chunk **at = &s->chunks; *at;) {
        vm_spare_chunk *c = *at;
        c->used = 0;
        if (kept + c->bytes <= KEPT) {
            kept += c->bytes;
            at = &c->next;
        } else {
            *at = c->next;
            free(c);
        }
    }
    *next = *s;
    *s = (vm_spare){0};
}

void vm_spare_free(vm_spare *s) {
    while (s->chunks) {
        vm_spare_chunk *c = s->chunks;
        s->chunks = c->next;
        free(c);
    }
}
