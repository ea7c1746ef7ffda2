/* Global memory: one reserved range of addresses, its buffers with redzones, and their shadow. */
#include "fitness/vm/vm_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MOST_BYTES (1ull << 42)

static void *reserve_at(uint64_t wanted, uint64_t bytes) {
    void *p = mmap((void *)(uintptr_t)wanted, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void *reserve(uint64_t bytes) {
    return reserve_at(0, bytes);
}

static uint64_t round_up(uint64_t value, uint64_t to) {
    return (value + to - 1) / to * to;
}

/* The arena and the shadow of `bytes`; false: errno says why, and vm_memory_free gives back what
 * was taken. */
static bool reserve_planes(vm_memory *m, uint64_t bytes, uint64_t wanted) {
    m->arena = reserve_at(wanted, bytes);
    m->writes = reserve(bytes);
    m->reads = reserve(bytes);
    m->promises = reserve(bytes);
    m->dirty = reserve(bytes >> VM_PAGE_SHIFT);
    if (m->arena)
        (void)madvise(m->arena, bytes, MADV_HUGEPAGE);
    return m->arena && m->writes && m->reads && m->promises && m->dirty;
}

static ev_status memory_make(uint64_t limit_bytes, vm_memory **out, ev_error *err) {
    if (limit_bytes > MOST_BYTES)
        return ev_fail(err, EV_BAD, "a device memory of %llu bytes: give at most 4 TiB",
                       (unsigned long long)limit_bytes);
    vm_memory *m = calloc(1, sizeof *m);
    if (!m)
        return ev_fail_memory(err, sizeof *m);
    m->limit = round_up(limit_bytes + (1 << 20), 1 << 16);
    m->reserved = m->limit + VM_MODULE_BYTES + VM_HEAP_BYTES;
    m->used = VM_REDZONE;
    *out = m;
    return EV_OK;
}

static ev_status memory_new(uint64_t limit_bytes, uint64_t wanted, vm_memory **out, ev_error *err) {
    vm_memory *m = NULL;
    EV_TRY(memory_make(limit_bytes, &m, err));
    if (!reserve_planes(m, m->reserved, wanted)) {
        vm_memory_free(m);
        return ev_fail_errno(err, "reserve", "device memory");
    }
    *out = m;
    return EV_OK;
}

ev_status vm_memory_new(uint64_t limit_bytes, vm_memory **out, ev_error *err) {
    return memory_new(limit_bytes, 0, out, err);
}

ev_status vm_memory_new_unified(uint64_t limit_bytes, vm_memory **out, ev_error *err) {
    return memory_new(limit_bytes, VM_GLOBAL_BASE, out, err);
}

void vm_memory_range(const vm_memory *m, uint64_t *address, uint64_t *bytes) {
    *address = VM_GLOBAL_BASE + m->first;
    *bytes = m->reserved;
}

bool vm_memory_is_unified(const vm_memory *m) {
    return (uintptr_t)m->arena == VM_GLOBAL_BASE;
}

static void release(void *p, uint64_t bytes) {
    if (p)
        munmap(p, bytes);
}

static void free_names(vm_memory *m) {
    for (size_t i = 0; i < m->count; i++)
        free(m->allocs[i].name);
    m->count = 0;
}

static void release_planes(vm_memory *m, uint64_t bytes) {
    release(m->arena, bytes);
    release(m->writes, bytes);
    release(m->reads, bytes);
    release(m->promises, bytes);
    release(m->dirty, bytes >> VM_PAGE_SHIFT);
}

/* The last of them gives back what they share. */
static void leave_peers(vm_memory *m) {
    vm_peers *p = m->peers;
    p->members[vm_memory_number(m)] = NULL;
    if (--p->alive)
        return;
    release_planes(m, p->stride * p->count);
    vm_past_free(p->past);
    free(p->members);
    free(p);
}

void vm_memory_free(vm_memory *m) {
    if (!m)
        return;
    free_names(m);
    if (m->peers)
        leave_peers(m);
    else
        release_planes(m, m->reserved);
    if (m->shared)
        close(m->fd);
    free(m->allocs);
    free(m->dirty_pages);
    free(m->words);
    free(m->textures);
    vm_spare_free(&m->spare);
    free(m);
}

/* ---- peers */

vm_memory *vm_memory_owner(const vm_memory *m, uint64_t offset) {
    const vm_peers *p = m->peers;
    if (!p)
        return (vm_memory *)m;
    return offset < p->stride * p->count ? p->members[offset / p->stride] : NULL;
}

uint32_t vm_memory_number(const vm_memory *m) {
    return m->peers ? (uint32_t)(m->first / m->peers->stride) : 0;
}

uint32_t vm_memory_stamp(const vm_memory *m) {
    uint32_t newest = m->stamp;
    for (uint32_t i = 0; m->peers && i < m->peers->count; i++)
        if (m->peers->members[i] && m->peers->members[i]->stamp > newest)
            newest = m->peers->members[i]->stamp;
    return newest;
}

void vm_memory_set_stamp(vm_memory *m, uint32_t stamp) {
    m->stamp = stamp;
    for (uint32_t i = 0; m->peers && i < m->peers->count; i++)
        if (m->peers->members[i])
            m->peers->members[i]->stamp = stamp;
}

static vm_peers *peers_make(uint32_t count, uint64_t reserved) {
    vm_peers *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    *p = (vm_peers){.stride = round_up(reserved, 1 << 21), .count = count};
    p->members = calloc(count, sizeof(vm_memory *));
    if (p->members)
        return p;
    free(p);
    return NULL;
}

/* Gives the i-th memory its range; the first one has reserved them all. */
static void join_peers(vm_memory *m, vm_peers *p, uint32_t i) {
    const vm_memory *first = i ? p->members[0] : m;
    m->peers = p;
    m->first = i * p->stride;
    m->limit += m->first;
    m->used += m->first;
    m->arena = first->arena;
    m->writes = first->writes;
    m->reads = first->reads;
    m->promises = first->promises;
    m->dirty = first->dirty;
    p->members[i] = m;
    p->alive++;
}

static ev_status fill_peers(uint64_t limit_bytes, vm_peers *p, vm_memory **out, ev_error *err) {
    for (uint32_t i = 0; i < p->count; i++) {
        EV_TRY(memory_make(limit_bytes, &out[i], err));
        bool ok = i || reserve_planes(out[i], p->stride * p->count, 0);
        join_peers(out[i], p, i);
        if (!ok)
            return ev_fail_errno(err, "reserve", "device memory");
    }
    return EV_OK;
}

ev_status vm_memory_new_peers(uint64_t limit_bytes, uint32_t count, vm_memory **out,
                              ev_error *err) {
    assert(count);
    memset(out, 0, count * sizeof *out);
    if (count > VM_RANKS_MOST || limit_bytes > 4 * MOST_BYTES / count - (1ull << 30))
        return ev_fail(err, EV_BAD,
                       "%u device memories of %llu bytes: give at most %u, and 16 TiB in all",
                       count, (unsigned long long)limit_bytes, VM_RANKS_MOST);
    vm_memory *one = NULL;
    EV_TRY(memory_make(limit_bytes, &one, err));
    vm_peers *p = peers_make(count, one->reserved);
    free(one);
    if (!p)
        return ev_fail_memory(err, sizeof *p);
    ev_status status = fill_peers(limit_bytes, p, out, err);
    if (status == EV_OK)
        return EV_OK;
    bool none = p->alive == 0;
    for (uint32_t i = 0; i < count; i++)
        vm_memory_free(out[i]);
    if (none) {
        free(p->members);
        free(p);
    }
    memset(out, 0, count * sizeof *out);
    return status;
}

/* Inserts in order of address; buffers come in order, the module's variables stand above them. */
vm_alloc *vm_memory_insert(vm_memory *m, uint64_t offset, uint64_t bytes, vm_buffer_kind kind,
                           const char *name) {
    if (m->count == m->capacity) {
        size_t wanted = m->capacity ? m->capacity * 2 : 16;
        vm_alloc *bigger = realloc(m->allocs, wanted * sizeof *bigger);
        if (!bigger)
            return NULL;
        m->allocs = bigger;
        m->capacity = wanted;
    }
    char *copy = strdup(name);
    if (!copy)
        return NULL;
    size_t at = m->count;
    while (at && m->allocs[at - 1].offset > offset) {
        m->allocs[at] = m->allocs[at - 1];
        at--;
    }
    m->allocs[at] = (vm_alloc){.offset = offset, .bytes = bytes, .kind = kind, .name = copy};
    m->count++;
    return &m->allocs[at];
}

/* The first hole that takes `bytes` with redzones; 0: none. */
static uint64_t find_hole(const vm_memory *m, uint64_t bytes) {
    uint64_t from = m->first + VM_REDZONE;
    for (size_t i = 0; i < m->count && m->allocs[i].offset < m->used; i++) {
        const vm_alloc *a = &m->allocs[i];
        if (a->offset >= from && a->offset - from >= bytes + VM_REDZONE)
            return from;
        from = round_up(a->offset + a->bytes + VM_REDZONE, 256);
    }
    return 0;
}

static ev_status alloc_in_hole(vm_memory *m, uint64_t offset, uint64_t bytes, vm_buffer_kind kind,
                               const char *name, uint64_t *address, ev_error *err) {
    if (!vm_memory_insert(m, offset, bytes, kind, name ? name : "buffer"))
        return ev_fail_memory(err, sizeof(vm_alloc));
    *address = VM_GLOBAL_BASE + offset;
    return EV_OK;
}

/* At `offset`, behind all other buffers. */
static ev_status alloc_behind(vm_memory *m, uint64_t offset, uint64_t bytes, vm_buffer_kind kind,
                              const char *name, uint64_t *address, ev_error *err) {
    if (bytes > m->limit || offset + bytes + VM_REDZONE > m->limit)
        return ev_fail(err, EV_BAD,
                       "buffer '%s' of %llu bytes: the device has %llu bytes left; choose a "
                       "smaller shape or a bigger device",
                       name, (unsigned long long)bytes, (unsigned long long)(m->limit - m->used));
    vm_alloc *a = vm_memory_insert(m, offset, bytes, kind, name ? name : "buffer");
    if (!a)
        return ev_fail_memory(err, sizeof *a);
    *address = VM_GLOBAL_BASE + offset;
    m->used = round_up(offset + bytes + VM_REDZONE, 256);
    return EV_OK;
}

ev_status vm_memory_alloc_odd(vm_memory *m, uint64_t bytes, uint32_t align, vm_buffer_kind kind,
                              const char *name, uint64_t *address, ev_error *err) {
    assert(align && !(align & (align - 1)) && align <= 4096);
    uint64_t offset = round_up(m->used, align);
    offset += offset / align % 2 ? 0 : align;
    return alloc_behind(m, offset, bytes, kind, name, address, err);
}

ev_status vm_memory_alloc(vm_memory *m, uint64_t bytes, vm_buffer_kind kind, const char *name,
                          uint64_t *address, ev_error *err) {
    uint64_t hole = m->holes && bytes <= m->limit ? find_hole(m, bytes) : 0;
    if (hole)
        return alloc_in_hole(m, hole, bytes, kind, name, address, err);
    return alloc_behind(m, m->used, bytes, kind, name, address, err);
}

const vm_alloc *vm_memory_find(const vm_memory *m, uint64_t address, uint64_t bytes) {
    uint64_t offset = address - VM_GLOBAL_BASE;
    m = vm_memory_owner(m, offset);
    size_t lo = 0, hi = m ? m->count : 0;
    while (lo < hi) { /* the last allocation that begins at or below */
        size_t mid = (lo + hi) / 2;
        if (m->allocs[mid].offset <= offset)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (!lo)
        return NULL;
    const vm_alloc *a = &m->allocs[lo - 1];
    bool inside = offset - a->offset <= a->bytes && bytes <= a->bytes - (offset - a->offset);
    return inside && !a->hidden ? a : NULL;
}

static uint64_t distance(const vm_alloc *a, uint64_t offset) {
    if (offset < a->offset)
        return a->offset - offset;
    return offset < a->offset + a->bytes ? 0 : offset - (a->offset + a->bytes);
}

static const vm_alloc *nearest(const vm_memory *m, const vm_alloc *best, uint64_t offset) {
    for (size_t i = 0; i < m->count; i++)
        if (!best || distance(&m->allocs[i], offset) < distance(best, offset))
            best = &m->allocs[i];
    return best;
}

const vm_alloc *vm_memory_nearest(const vm_memory *m, uint64_t address) {
    const vm_alloc *best = nearest(m, NULL, address - VM_GLOBAL_BASE);
    for (uint32_t i = 0; m->peers && i < m->peers->count; i++)
        if (m->peers->members[i])
            best = nearest(m->peers->members[i], best, address - VM_GLOBAL_BASE);
    return best;
}

/* By its first byte, hidden or not; m->count: none. */
static size_t index_of(const vm_memory *m, uint64_t address) {
    size_t lo = 0, hi = m->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (VM_GLOBAL_BASE + m->allocs[mid].offset < address)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->count && VM_GLOBAL_BASE + m->allocs[lo].offset == address ? lo : m->count;
}

static const vm_alloc *starting_at(const vm_memory *m, uint64_t address) {
    size_t i = index_of(m, address);
    return i < m->count ? &m->allocs[i] : NULL;
}

bool vm_memory_hide(vm_memory *m, uint64_t address, bool hidden) {
    size_t i = index_of(m, address);
    if (i < m->count)
        m->allocs[i].hidden = hidden;
    return i < m->count;
}

void *vm_memory_host(vm_memory *m, uint64_t address) {
    const vm_alloc *a = starting_at(m, address);
    return a ? m->arena + a->offset : NULL;
}

uint64_t vm_memory_bytes(const vm_memory *m, uint64_t address) {
    const vm_alloc *a = starting_at(m, address);
    return a ? a->bytes : 0;
}

void vm_memory_mark_dirty(vm_memory *m, uint64_t offset, uint64_t bytes) {
    m = vm_memory_owner(m, offset);
    for (uint64_t page = offset >> VM_PAGE_SHIFT; page <= (offset + bytes - 1) >> VM_PAGE_SHIFT;
         page++) {
        if (m->dirty[page])
            continue;
        if (m->dirty_count == m->dirty_capacity) {
            size_t wanted = m->dirty_capacity ? m->dirty_capacity * 2 : 256;
            uint32_t *bigger = realloc(m->dirty_pages, wanted * sizeof *bigger);
            if (!bigger) {
                m->out_of_memory = true;
                return;
            }
            m->dirty_pages = bigger;
            m->dirty_capacity = wanted;
        }
        m->dirty[page] = 1;
        m->dirty_pages[m->dirty_count++] = (uint32_t)page;
    }
}

static void poison_page(vm_memory *m, uint64_t page, uint8_t poison) {
    uint64_t lo = page << VM_PAGE_SHIFT, hi = lo + (1 << VM_PAGE_SHIFT);
    for (size_t i = 0; i < m->count; i++) {
        const vm_alloc *a = &m->allocs[i];
        uint64_t from = a->offset > lo ? a->offset : lo;
        uint64_t to = a->offset + a->bytes < hi ? a->offset + a->bytes : hi;
        if (from < to && (a->kind == VM_BUFFER_OUT || a->kind == VM_BUFFER_SCRATCH))
            memset(m->arena + from, poison, to - from);
    }
}

void vm_memory_reset(vm_memory *m, uint8_t poison) {
    for (size_t i = 0; i < m->dirty_count; i++) {
        uint64_t page = m->dirty_pages[i];
        poison_page(m, page, poison);
        memset(m->writes + (page << VM_PAGE_SHIFT) / 4, 0, 1 << VM_PAGE_SHIFT);
        m->dirty[page] = 0;
        if (page << VM_PAGE_SHIFT >= m->limit)
            m->module_hash = 0; /* the next launch puts the variables back */
    }
    m->dirty_count = 0;
    vm_heap_reset(m);
}

/* Takes the module's variables out of the list of allocations. */
static void detach(vm_memory *m) {
    vm_heap_reset(m);
    while (m->count && m->allocs[m->count - 1].offset >= m->limit)
        free(m->allocs[--m->count].name);
    m->module_hash = 0;
    m->module_bytes = 0;
}

/* Host writes leave no trace in the shadow. */
static void clear_contents(vm_memory *m, const vm_alloc *a) {
    uint64_t from = round_up(a->offset, 4096);
    uint64_t to = (a->offset + a->bytes) / 4096 * 4096;
    if (a->bytes < 1 << 16 || from >= to) {
        memset(m->arena + a->offset, 0, a->bytes);
        return;
    }
    memset(m->arena + a->offset, 0, from - a->offset);
    memset(m->arena + to, 0, a->offset + a->bytes - to);
    madvise(m->arena + from, to - from, m->shared ? MADV_REMOVE : MADV_DONTNEED);
}

void vm_memory_clear(vm_memory *m) {
    vm_memory_reset(m, 0);
    for (size_t i = 0; i < m->count; i++)
        clear_contents(m, &m->allocs[i]);
    detach(m);
    free_names(m);
    m->used = m->first + VM_REDZONE;
    m->holes = false;
    m->texture_count = m->texture_serial = 0;
}

bool vm_memory_release(vm_memory *m, uint64_t address) {
    size_t at = index_of(m, address);
    if (at == m->count || m->allocs[at].offset >= m->limit)
        return false;
    vm_alloc gone = m->allocs[at];
    clear_contents(m, &gone);
    uint64_t first = gone.offset / 4, last = (gone.offset + gone.bytes + 3) / 4;
    for (uint64_t page = gone.offset >> VM_PAGE_SHIFT;
         page <= (gone.offset + gone.bytes) >> VM_PAGE_SHIFT; page++) {
        uint64_t lo = (page << VM_PAGE_SHIFT) / 4, hi = lo + (1 << VM_PAGE_SHIFT) / 4;
        for (uint64_t w = lo > first ? lo : first; m->dirty[page] && w < hi && w < last; w++)
            m->writes[w] = 0;
    }
    free(gone.name);
    memmove(&m->allocs[at], &m->allocs[at + 1], (m->count - at - 1) * sizeof gone);
    m->count--;
    bool top = round_up(gone.offset + gone.bytes + VM_REDZONE, 256) == m->used;
    m->used = top ? gone.offset : m->used;
    m->holes |= !top;
    return true;
}

static bool all_written(const vm_memory *m, uint64_t offset, size_t bytes) {
    for (uint64_t i = offset; i < offset + bytes; i++)
        if (!(m->writes[i / 4] >> (i % 4) & 1))
            return false;
    return true;
}

uint64_t vm_memory_written(const vm_memory *m, uint64_t address, size_t element_bytes,
                           uint64_t first, uint64_t count, uint8_t *written) {
    uint64_t offset = address - VM_GLOBAL_BASE + first * element_bytes;
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; i++) {
        bool yes = all_written(m, offset + i * element_bytes, element_bytes);
        if (written)
            written[i] = yes;
        total += yes;
    }
    return total;
}

/* An allocation for each variable, lowest first. */
static ev_status insert_variables(vm_memory *m, const vm_module *module, ev_error *err) {
    size_t count = 0, left;
    for (const ptx_var *v = module->variables; v; v = v->next)
        count += v->space == VM_SPACE_GLOBAL;
    const ptx_var **list = calloc(count + 1, sizeof(const ptx_var *));
    if (!list)
        return ev_fail_memory(err, count * sizeof *list);
    left = count;
    for (const ptx_var *v = module->variables; v; v = v->next)
        if (v->space == VM_SPACE_GLOBAL)
            list[--left] = v;
    bool ok = true;
    for (size_t i = 0; i < count && ok; i++)
        ok = vm_memory_insert(m, m->limit + list[i]->offset, list[i]->bytes, VM_BUFFER_INOUT,
                              list[i]->name) != NULL;
    free(list);
    return ok ? EV_OK : ev_fail_memory(err, sizeof(vm_alloc));
}

/* Tells modules and their initial contents apart. */
static uint64_t identity_of(const vm_module *module) {
    return module->text_hash ^ module->fill_hash;
}

ev_status vm_memory_attach(vm_memory *m, const vm_module *module, uint64_t *address,
                           ev_error *err) {
    *address = VM_GLOBAL_BASE + m->limit;
    if (m->module_hash == identity_of(module) || (!module->global_bytes && !m->module_bytes)) {
        m->module_hash = identity_of(module);
        return EV_OK;
    }
    if (module->global_bytes > VM_MODULE_BYTES - VM_REDZONE)
        return ev_fail(err, EV_BAD, "%s: %llu bytes of .global variables; give at most 256 MiB",
                       module->name, (unsigned long long)module->global_bytes);
    detach(m);
    if (!module->global_bytes) {
        m->module_hash = identity_of(module);
        return EV_OK;
    }
    EV_TRY(insert_variables(m, module, err));
    vm_module_place(module, *address, m->arena + m->limit);
    m->module_bytes = module->global_bytes;
    m->module_hash = identity_of(module);
    return EV_OK;
}

/* ---- what it costs */

/* Bytes of [from, from + bytes) that are in memory. */
static uint64_t resident(const void *from, uint64_t bytes) {
    unsigned char in[4096];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), count = 0;
    uintptr_t at = (uintptr_t)from / page * page, end = (uintptr_t)from + bytes;
    while (at < end) {
        uint64_t pages = (end - at + page - 1) / page;
        pages = pages < sizeof in ? pages : sizeof in;
        if (mincore((void *)at, pages * page, in))
            return count;
        for (uint64_t i = 0; i < pages; i++)
            count += in[i] & 1 ? page : 0;
        at += pages * page;
    }
    return count;
}

/* Of offsets [lo, hi): the contents and the planes. */
static void add_usage(const vm_memory *m, uint64_t lo, uint64_t hi, vm_usage *out) {
    out->contents += resident(m->arena + lo, hi - lo);
    out->shadow += resident(m->writes + lo / 4, hi - lo) + resident(m->reads + lo / 4, hi - lo) +
                   resident(m->promises + lo / 4, hi - lo);
    out->lists += resident(m->dirty + (lo >> VM_PAGE_SHIFT), (hi - lo) >> VM_PAGE_SHIFT);
}

void vm_memory_usage(const vm_memory *m, vm_usage *out) {
    *out = (vm_usage){.lists = m->dirty_capacity * sizeof *m->dirty_pages};
    add_usage(m, m->first, m->used, out);
    add_usage(m, m->limit, m->first + m->reserved, out);
}
