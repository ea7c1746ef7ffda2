/* Views of a memory: what it holds now, and beside it what one job writes.
 *
 * The memory's contents and its shadow of writes move into a file without a name (memfd_create), as
 * a shared mapping at the same address; a view maps the file privately, so the kernel copies a page
 * when the view first writes it. Two maps of a bit a byte tell what the job read from buffers that
 * may be written, and what it wrote. */
#include "fitness/vm/vm_jobs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE_BYTES ((uint64_t)1 << VM_PAGE_SHIFT)
#define PAGE_WORDS (PAGE_BYTES / 64) /* 64-bit words of a page's map */

static void *map(uint64_t bytes, int flags, int fd, uint64_t offset) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, (off_t)offset);
    return p == MAP_FAILED ? NULL : p;
}

/* ---- sharing */

static bool page_is_zero(const uint8_t *page) {
    return page[0] == 0 && memcmp(page, page + 1, PAGE_BYTES - 1) == 0;
}

/* Copies [from, from + bytes) page by page; untouched pages stay so. */
static void copy_pages(uint8_t *to, const uint8_t *from, uint64_t first, uint64_t end) {
    for (uint64_t at = first & ~(PAGE_BYTES - 1); at < end; at += PAGE_BYTES)
        if (!page_is_zero(from + at))
            memcpy(to + at, from + at, PAGE_BYTES);
}

static void copy_contents(const vm_memory *m, uint8_t *arena, uint8_t *writes) {
    for (size_t i = 0; i < m->count; i++)
        copy_pages(arena, m->arena, m->allocs[i].offset, m->allocs[i].offset + m->allocs[i].bytes);
    for (size_t i = 0; i < m->dirty_count; i++) {
        uint64_t at = (uint64_t)m->dirty_pages[i] << VM_PAGE_SHIFT;
        memcpy(writes + at, (const uint8_t *)m->writes + at, PAGE_BYTES);
    }
}

static bool move_over(void *from, uint64_t bytes, void *to) {
    return mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
}

/* False: stays as it was. */
static bool share(vm_memory *m) {
    if (m->shared)
        return true;
    int fd = memfd_create("evoke", MFD_CLOEXEC);
    if (fd < 0)
        return false;
    void *arena = NULL, *writes = NULL;
    if (ftruncate(fd, (off_t)(2 * m->reserved)) == 0) {
        arena = map(m->reserved, MAP_SHARED, fd, 0);
        writes = map(m->reserved, MAP_SHARED, fd, m->reserved);
    }
    if (arena && writes) {
        copy_contents(m, arena, writes);
        m->shared =
            move_over(arena, m->reserved, m->arena) && move_over(writes, m->reserved, m->writes);
    }
    if (m->shared) {
        m->fd = fd;
        return true;
    }
    if (arena)
        munmap(arena, m->reserved);
    if (writes)
        munmap(writes, m->reserved);
    close(fd);
    return false;
}

/* ---- views */

static void release(void *p, uint64_t bytes) {
    if (p)
        munmap(p, bytes);
}

bool vm_view_open(vm_memory *m, vm_memory *view) {
    if (!share(m))
        return false;
    *view = *m;
    int own = MAP_PRIVATE | MAP_ANONYMOUS;
    view->arena = map(m->reserved, MAP_PRIVATE, m->fd, 0);
    view->writes = map(m->reserved, MAP_PRIVATE, m->fd, m->reserved);
    view->reads = map(m->reserved, own, -1, 0);
    view->promises = map(m->reserved, own, -1, 0);
    view->dirty = map(m->reserved >> VM_PAGE_SHIFT, own, -1, 0);
    view->job_read = map(m->reserved / 8, own, -1, 0);
    view->job_written = map(m->reserved / 8, own, -1, 0);
    view->dirty_pages = NULL;
    view->dirty_count = view->dirty_capacity = 0;
    view->words = NULL;
    view->spare = (vm_spare){0};
    if (view->arena && view->writes && view->reads && view->promises && view->dirty &&
        view->job_read && view->job_written)
        return true;
    vm_view_close(view);
    return false;
}

void vm_view_close(vm_memory *v) {
    release(v->arena, v->reserved);
    release(v->writes, v->reserved);
    release(v->reads, v->reserved);
    release(v->promises, v->reserved);
    release(v->dirty, v->reserved >> VM_PAGE_SHIFT);
    release(v->job_read, v->reserved / 8);
    release(v->job_written, v->reserved / 8);
    free(v->dirty_pages);
    free(v->words);
    vm_spare_free(&v->spare);
    *v = (vm_memory){0};
}

/* ---- what the jobs did */

static bool writes_meet(const vm_memory *a, const vm_memory *b) {
    for (size_t i = 0; i < a->dirty_count; i++) {
        uint64_t first = a->dirty_pages[i] * PAGE_WORDS;
        for (uint64_t k = first; k < first + PAGE_WORDS; k++)
            if (a->job_written[k] & (b->job_written[k] | b->job_read[k]))
                return true;
    }
    return false;
}

bool vm_views_meet(const vm_memory *a, const vm_memory *b) {
    return writes_meet(a, b) || writes_meet(b, a);
}

/* 64 bytes of contents, and the shadow of their 16 words. */
static void merge_stretch(vm_memory *m, const vm_memory *view, uint64_t k) {
    uint64_t bits = view->job_written[k];
    if (bits == UINT64_MAX) {
        memcpy(m->arena + k * 64, view->arena + k * 64, 64);
    } else {
        for (uint64_t left = bits; left; left &= left - 1) {
            uint64_t at = k * 64 + (unsigned)__builtin_ctzll(left);
            m->arena[at] = view->arena[at];
        }
    }
    for (unsigned i = 0; bits && i < 16; i++)
        m->writes[k * 16 + i] |= bits >> (4 * i) & VM_RACE_WRITTEN;
}

bool vm_view_merge(vm_memory *m, const vm_memory *view) {
    for (size_t i = 0; i < view->dirty_count; i++) {
        uint64_t page = view->dirty_pages[i], first = page * PAGE_WORDS;
        vm_memory_mark_dirty(m, page << VM_PAGE_SHIFT, PAGE_BYTES);
        for (uint64_t k = first; k < first + PAGE_WORDS; k++)
            if (view->job_written[k])
                merge_stretch(m, view, k);
    }
    return !m->out_of_memory;
}
