/* Traps: names, and the one line that says what happened where. */
#include "fitness/vm/vm_wave.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const names[VM_TRAP_COUNT] = {
    [VM_TRAP_NONE] = "none",
#define VM_TRAP(id, name, meaning) [VM_TRAP_##id] = name,
#include "fitness/vm/traps.def"
#undef VM_TRAP
};

const char *vm_trap_name(vm_trap_kind kind) {
    return (unsigned)kind < VM_TRAP_COUNT ? names[kind] : "unknown";
}

void vm_trap_append(vm_trap *t, const char *format, ...) {
    size_t used = strlen(t->message);
    va_list args;
    va_start(args, format);
    vsnprintf(t->message + used, sizeof t->message - used, format, args);
    va_end(args);
}

void vm_trap_place(vm_trap *t, const vm_state *s, uint32_t block, unsigned warp, unsigned lane) {
    const uint32_t *n = s->launch->block, *g = s->launch->grid;
    uint32_t thread = warp * VM_LANES + lane;
    t->rank = s->rank;
    t->block[0] = block % g[0];
    t->block[1] = block / g[0] % g[1];
    t->block[2] = block / g[0] / g[1];
    t->thread[0] = thread % n[0];
    t->thread[1] = thread / n[0] % n[1];
    t->thread[2] = thread / n[0] / n[1];
}

void vm_trap_append_thread(vm_trap *t, const vm_state *s) {
    if (s->session->count > 1)
        vm_trap_append(t, ", in rank %u", t->rank);
    vm_trap_append(t, ", block (%u, %u, %u) thread (%u, %u, %u)", t->block[0], t->block[1],
                   t->block[2], t->thread[0], t->thread[1], t->thread[2]);
}

static void fill(vm_trap *t, const vm_warp *w, const ptx_insn *ip, vm_trap_kind kind, unsigned lane,
                 const uint64_t *address, const char *format, va_list args) {
    const vm_module *m = w->state->module;
    const ptx_cold *cold = &m->cold[ip - w->code];
    *t = (vm_trap){
        .kind = kind, .line = cold->line, .column = cold->column, .source_line = cold->source_line};
    vm_trap_place(t, w->state, w->block->linear, w->index, lane);
    snprintf(t->message, sizeof t->message, "%s:%u: %s: ", m->name, t->line, vm_trap_name(kind));
    size_t used = strlen(t->message);
    vsnprintf(t->message + used, sizeof t->message - used, format, args);
    if (address) {
        t->has_address = true;
        t->address = *address;
        vm_place_append(t->message, sizeof t->message, w, ip, lane, *address);
        if (kind == VM_TRAP_MISALIGNED)
            vm_place_append_alignment(t->message, sizeof t->message, w, ip, lane, *address);
    }
    vm_trap_append_thread(t, w->state);
    if (t->source_line)
        vm_trap_append(t, ", source line %u", t->source_line);
}

void vm_trap_raise(vm_warp *w, const ptx_insn *ip, vm_trap_kind kind, unsigned lane,
                   const uint64_t *address, const char *format, ...) {
    vm_state *s = w->state;
    if (s->trapped)
        return;
    s->trapped = true;
    ip = w->places ? w->places[lane] : ip;
    if (s->deferred.block) { /* came first */
        s->result->trap = s->deferred.trap;
        return;
    }
    va_list args;
    va_start(args, format);
    fill(&s->result->trap, w, ip, kind, lane, address, format, args);
    va_end(args);
}

/* ---- deferred */

static void fill_deferred(vm_warp *w, const ptx_insn *ip, unsigned lane, const uint64_t *address,
                          const char *format, ...) EV_PRINTF(5, 6);
static void fill_deferred(vm_warp *w, const ptx_insn *ip, unsigned lane, const uint64_t *address,
                          const char *format, ...) {
    va_list args;
    va_start(args, format);
    fill(&w->state->deferred.trap, w, ip, VM_TRAP_UNINITIALISED, lane, address, format, args);
    va_end(args);
}

void vm_trap_defer(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address, uint64_t offset,
                   unsigned bytes) {
    vm_deferred *d = &w->state->deferred;
    if (d->block)
        return;
    d->block = w->block;
    d->lo = offset;
    d->hi = offset + bytes;
    fill_deferred(w, ip, lane, &address, VM_UNINITIALISED, bytes);
}

void vm_trap_drop_deferred(vm_warp *w, uint64_t offset, unsigned bytes) {
    vm_deferred *d = &w->state->deferred;
    if (d->block == w->block && offset < d->hi && offset + bytes > d->lo)
        d->block = NULL;
}

void vm_trap_settle(vm_state *s, const vm_block *b) {
    if (s->trapped || s->deferred.block != b)
        return;
    s->trapped = true;
    s->result->trap = s->deferred.trap;
}
