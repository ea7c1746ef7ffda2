/* Handlers of loads and stores.
 *
 * Handlers in other files (atomics, asynchronous copies, matrix loads) use the same functions. They
 * fill a vm_access with the lanes' addresses, the bias that turns addresses into offsets in the
 * space, the bytes of one lane, and the space. Then they call, in this order:
 *   locate             finds pattern, alignment, bounds; sets w->stop itself
 *   race_load, race_store or race_atomic
 *   check_initialised  before a read
 *   note_write         before a write: marks bytes as written and pages as dirty
 *   count_access       counters and the observer's event; once a request
 *   load_data, store_data or lane_host: the bytes
 * Each check returns false after a trap. The caller then sets w->stop (stop_trap), except after
 * locate.
 * check_load is race_load and check_initialised; check_store is race_store and note_write.
 * each_space splits a generic access by space and calls an access_fn for the lanes of each. */

#include "fitness/vm/exec/exec_access.h"

#include "fitness/vm/exec/exec_count.h"

#include "fitness/vm/exec/exec_move.h"

#include "fitness/vm/exec/exec_shadow.h"

#include "fitness/vm/exec/exec_race.h"

#include "fitness/vm/exec/exec_race_store.h"

#include "fitness/vm/exec/exec_promise.h"

/* `constant`: a load through the read-only path. */
static ALWAYS_INLINE bool load_in(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                                  vm_access *x, uint8_t space, bool constant) {
    if (!locate_lanes(w, ip, x, mask, space))
        return false;
    assume_space(x, space);
    if ((constant && !promise_constant(w, ip, x, mask)) || !check_load(w, ip, x, mask)) {
        stop_trap(w);
        return false;
    }
    assume_space(x, space);
    count_access(w, ip, x, mask, false);
    assume_space(x, space);
    load_data(w, ip, regs, x, mask);
    return true;
}
static ALWAYS_INLINE bool store_in(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                                   vm_access *x, uint8_t space) {
    if (!locate_lanes(w, ip, x, mask, space))
        return false;
    assume_space(x, space);
    if (!check_store(w, ip, regs, x, mask)) {
        stop_trap(w);
        return false;
    }
    assume_space(x, space);
    count_access(w, ip, x, mask, true);
    assume_space(x, space);
    store_data(w, ip, regs, x, mask);
    return true;
}

static __attribute__((noinline)) bool load_from(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                                uint32_t mask, vm_access *x) {
    return load_in(w, ip, regs, mask, x, x->space, false);
}
static __attribute__((noinline)) bool load_constant(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                                    uint32_t mask, vm_access *x) {
    return load_in(w, ip, regs, mask, x, x->space, true);
}
static __attribute__((noinline)) bool store_to(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                               uint32_t mask, vm_access *x) {
    return store_in(w, ip, regs, mask, x, x->space);
}
/* The common spaces have handlers of their own. */
#define load_GLOBAL(w, ip, regs, mask, x) load_in(w, ip, regs, mask, x, VM_SPACE_GLOBAL, false)
#define load_SHARED(w, ip, regs, mask, x) load_in(w, ip, regs, mask, x, VM_SPACE_SHARED, false)
#define constant_GLOBAL(w, ip, regs, mask, x) load_in(w, ip, regs, mask, x, VM_SPACE_GLOBAL, true)
#define store_GLOBAL(w, ip, regs, mask, x) store_in(w, ip, regs, mask, x, VM_SPACE_GLOBAL)
#define store_SHARED(w, ip, regs, mask, x) store_in(w, ip, regs, mask, x, VM_SPACE_SHARED)

#define MEMORY_HANDLER(name, spaceid, access)                                                      \
    HANDLER(name##_##spaceid) {                                                                    \
        uint64_t space[32];                                                                        \
        vm_access x;                                                                               \
        x.addr = addresses(ip, regs, space);                                                       \
        x.bias = (uint64_t)ip->imm - space_origin(VM_SPACE_##spaceid);                             \
        x.bytes = (unsigned)ip->bytes * ip->count;                                                 \
        x.space = VM_SPACE_##spaceid;                                                              \
        if (__builtin_expect(!access(w, ip, regs, mask, &x), 0))                                   \
            return NULL;                                                                           \
        NEXT;                                                                                      \
    }
#define GENERIC_HANDLER(name, access)                                                              \
    HANDLER(name##_GENERIC) {                                                                      \
        uint64_t space[32];                                                                        \
        vm_access x = {.addr = addresses(ip, regs, space),                                         \
                       .bytes = (unsigned)ip->bytes * ip->count};                                  \
        if (!each_space(w, ip, regs, mask, &x, access))                                            \
            return NULL;                                                                           \
        NEXT;                                                                                      \
    }
MEMORY_HANDLER(load, GLOBAL, load_GLOBAL)
MEMORY_HANDLER(load, SHARED, load_SHARED)
MEMORY_HANDLER(load, LOCAL, load_from)
MEMORY_HANDLER(load, CONST, load_from)
MEMORY_HANDLER(load, PARAM, load_from)
GENERIC_HANDLER(load, load_from)
MEMORY_HANDLER(constant, GLOBAL, constant_GLOBAL)
GENERIC_HANDLER(constant, load_constant)
MEMORY_HANDLER(store, GLOBAL, store_GLOBAL)
MEMORY_HANDLER(store, SHARED, store_SHARED)
MEMORY_HANDLER(store, LOCAL, store_to)
GENERIC_HANDLER(store, store_to)

/* Parameters of a call are in the frame, e bytes a lane. */
HANDLER(load_FRAME) {
    bool is_signed = ip->flags & PTX_F_SIGNED;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        const uint8_t *p = regs + ip->a + (uint64_t)i * ip->e + ip->imm;
        for (unsigned k = 0; k < ip->count; k++, p += ip->bytes) {
            uint64_t v = load_element(p, ip->bytes, is_signed);
            if (ip->wide)
                SLOT(uint64_t, ip->v[k])[i] = v;
            else
                SLOT(uint32_t, ip->v[k])[i] = (uint32_t)v;
        }
    }
    NEXT;
}
HANDLER(store_FRAME) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint8_t *p = regs + ip->a + (uint64_t)i * ip->e + ip->imm;
        for (unsigned k = 0; k < ip->count; k++, p += ip->bytes)
            store_element(p, ip->bytes,
                          ip->wide ? CSLOT(uint64_t, ip->v[k])[i] : CSLOT(uint32_t, ip->v[k])[i]);
    }
    NEXT;
}
/* Parameters of an entry: the same bytes for every lane. The loader has checked that the offset is
 * inside. */
HANDLER(load_ENTRY) {
    const uint8_t *p = (const uint8_t *)w->state->launch->params + ip->imm;
    for (unsigned k = 0; k < ip->count; k++, p += ip->bytes) {
        uint64_t v = load_element(p, ip->bytes, ip->flags & PTX_F_SIGNED);
        if (ip->wide) {
            uint64_t *d = SLOT(uint64_t, ip->v[k]);
            LANES d[i] = mask >> i & 1 ? v : d[i];
        } else {
            uint32_t *d = SLOT(uint32_t, ip->v[k]), v32 = (uint32_t)v;
            LANES d[i] = mask >> i & 1 ? v32 : d[i];
        }
    }
    NEXT;
}
