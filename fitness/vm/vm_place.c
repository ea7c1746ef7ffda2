/* Places: which variable, buffer or parameter an address belongs to, for the messages of traps. */
#include "fitness/vm/vm_wave.h"

#include <stdio.h>
#include <string.h>

/* Something that has a name and stands in a space. */
typedef struct place {
    const char *what, *name; /* "buffer", its name; NULL: nameless */
    uint64_t start, bytes;
    int64_t at;     /* the address, as `start` counts */
    uint32_t align; /* of a variable; 0: of no variable */
} place;

static void append(char *text, size_t size, const char *format, ...) EV_PRINTF(3, 4);
static void append(char *text, size_t size, const char *format, ...) {
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, size - used, format, args);
    va_end(args);
}

/* Bytes between an address and a place; addresses below 0 are negative numbers. */
static uint64_t distance(const place *p, int64_t at) {
    int64_t start = (int64_t)p->start, end = start + (int64_t)p->bytes;
    if (at < start)
        return (uint64_t)(start - at);
    if (at < end)
        return 0;
    return (uint64_t)(at - end) + 1;
}

static void keep_nearer(place *best, place p, int64_t at) {
    if (!best->what || distance(&p, at) < distance(best, at))
        *best = p;
}

/* Of the variables that the running function can see, the nearest; those that `func` declares are
 * laid out from `base` on. */
static void nearest_variable(place *best, const vm_module *m, vm_space space, uint32_t func,
                             uint64_t base, const char *what, int64_t at) {
    for (const ptx_var *v = m->variables; v; v = v->next)
        if (v->space == space && !v->dynamic && v->func == func)
            keep_nearer(best, (place){what, v->name, base + v->offset, v->bytes, 0, v->align}, at);
}

static place shared_place(const vm_warp *w, uint32_t func, int64_t at) {
    const vm_state *s = w->state;
    uint32_t entry = (uint32_t)(s->entry - s->module->funcs);
    place best = {0};
    uint64_t dynamic = s->launch->dynamic_shared;
    nearest_variable(&best, s->module, VM_SPACE_SHARED, PTX_NONE, 0, "shared variable", at);
    nearest_variable(&best, s->module, VM_SPACE_SHARED, entry, 0, "shared variable", at);
    if (func != entry)
        nearest_variable(&best, s->module, VM_SPACE_SHARED, func, 0, "shared variable", at);
    if (dynamic)
        keep_nearer(&best,
                    (place){"dynamic shared memory", NULL, s->module->dynamic_base, dynamic, 0, 0},
                    at);
    return best;
}

static place parameter_place(const vm_warp *w, int64_t at) {
    const vm_entry *e = &w->state->entry->pub;
    place best = {0};
    for (size_t i = 0; i < e->param_count; i++)
        keep_nearer(
            &best,
            (place){"parameter", e->params[i].name, e->params[i].offset, e->params[i].bytes, 0, 0},
            at);
    return best;
}

static place global_place(const vm_state *s, uint64_t address) {
    const vm_alloc *a = vm_memory_nearest(s->memory, address);
    place best = {0};
    if (!a)
        return best;
    uint64_t limit = vm_memory_owner(s->memory, a->offset)->limit;
    if (a->offset >= limit && a->offset < limit + VM_MODULE_BYTES)
        best = (place){"global variable", a->name, VM_GLOBAL_BASE + a->offset, a->bytes, 0, 0};
    else if (s->module->global_bytes && VM_GLOBAL_BASE + a->offset == s->globals)
        nearest_variable(&best, s->module, VM_SPACE_GLOBAL, PTX_NONE, s->globals, "global variable",
                         (int64_t)address);
    else
        best = (place){"buffer", a->name, VM_GLOBAL_BASE + a->offset, a->bytes, 0, 0};
    return best;
}

static vm_space space_of(const ptx_insn *ip, uint64_t address) {
    vm_space space = ptx_window_space(address);
    bool generic = ip->space == VM_SPACE_NONE || ip->space == VM_SPACE_GENERIC;
    return space != VM_SPACE_GLOBAL || generic ? space : (vm_space)ip->space;
}

static const char *const windows[] = {[VM_SPACE_GLOBAL] = "global",
                                      [VM_SPACE_SHARED] = "shared",
                                      [VM_SPACE_LOCAL] = "local",
                                      [VM_SPACE_CONST] = "constant",
                                      [VM_SPACE_PARAM] = "parameter"};

static place find_place(const vm_warp *w, const ptx_insn *ip, vm_space space, unsigned lane,
                        uint64_t address) {
    const vm_module *m = w->state->module;
    bool window = address >> VM_WINDOW_SHIFT >= 1 && address >> VM_WINDOW_SHIFT <= 4;
    int64_t at = (int64_t)(window ? address & (VM_WINDOW(1) - 1) : address);
    if (!window && address <= UINT32_MAX) /* a 32-bit address just below 0 */
        at = (int32_t)address;
    uint32_t func = m->cold[ip - w->code].func;
    place best = {0};
    switch (space) {
    case VM_SPACE_SHARED:
        best = shared_place(w, func, at);
        break;
    case VM_SPACE_LOCAL:
        nearest_variable(&best, m, VM_SPACE_LOCAL, func, w->frame->local_base[lane],
                         "local variable", at);
        break;
    case VM_SPACE_CONST:
        nearest_variable(&best, m, VM_SPACE_CONST, PTX_NONE, 0, "constant variable", at);
        break;
    case VM_SPACE_PARAM:
        best = parameter_place(w, at);
        break;
    default:
        best = global_place(w->state, address);
        at = (int64_t)address;
    }
    best.at = at;
    return best;
}

static bool in_global(const vm_memory *m, uint64_t address) {
    uint64_t offset = address - VM_GLOBAL_BASE;
    return address >= VM_GLOBAL_BASE &&
           (m->peers ? vm_memory_owner(m, offset) != NULL : offset < m->reserved);
}

/* Where the place is, and its name. */
static void append_place(char *text, size_t size, const place *p) {
    const char *before = p->name ? " '" : "", *after = p->name ? "'" : "", *name = p->name;
    if (p->at < (int64_t)p->start)
        append(text, size, ", %lld bytes before ", (long long)((int64_t)p->start - p->at));
    else
        append(text, size, ", offset %lld in ", (long long)(p->at - (int64_t)p->start));
    append(text, size, "%s%s%s%s", p->what, before, name ? name : "", after);
    if (distance(p, p->at) != 0)
        append(text, size, " of %llu bytes", (unsigned long long)p->bytes);
}

void vm_place_append(char *text, size_t size, const vm_warp *w, const ptx_insn *ip, unsigned lane,
                     uint64_t address) {
    vm_space space = space_of(ip, address);
    append(text, size, " at address 0x%llx", (unsigned long long)address);
    bool known = space != VM_SPACE_GLOBAL || in_global(w->state->memory, address);
    if (ip->space == VM_SPACE_GENERIC)
        append(text, size, known ? " in the window of %s memory" : " in no window of a memory",
               windows[space]);
    place p = find_place(w, ip, space, lane, address);
    if (!known || !p.what)
        return;
    append_place(text, size, &p);
    if (space == VM_SPACE_GLOBAL)
        vm_rank_append_owner(w->state, p.start - VM_GLOBAL_BASE, text, size);
}

/* The largest power of two that divides it. */
static uint64_t alignment_of(uint64_t number) {
    return number ? number & -number : UINT64_MAX;
}

void vm_place_append_alignment(char *text, size_t size, const vm_warp *w, const ptx_insn *ip,
                               unsigned lane, uint64_t address) {
    place p = find_place(w, ip, space_of(ip, address), lane, address);
    if (p.what && p.align && distance(&p, p.at) == 0 &&
        alignment_of((uint64_t)p.at - p.start) > alignment_of((uint64_t)p.at))
        append(text, size, ", whose alignment is %u (__align__ in its declaration gives more)",
               p.align);
}

void vm_place_append_global(char *text, size_t size, const vm_state *s, uint64_t address) {
    place p = global_place(s, address);
    append(text, size, " at address 0x%llx", (unsigned long long)address);
    if (!p.what)
        return;
    p.at = (int64_t)address;
    append_place(text, size, &p);
    vm_rank_append_owner(s, p.start - VM_GLOBAL_BASE, text, size);
}
