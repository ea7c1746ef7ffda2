/* Promises that PTX leaves to the programmer, over words of global memory.
 *
 *   - Memory that a launch reads through the read-only path (ld.global.nc, ldu) is constant for the
 *     whole launch (PTX ISA, "ld.global.nc" and "ldu"). A write by any of its threads breaks the
 *     promise, before or after the read, also where a barrier orders the two: the path's cache is
 * not kept coherent.
 *   - The source of a cp.async is constant until the copy is waited for (PTX ISA, "Asynchronous
 *     Copy Operations"). A barrier alone does not end a copy.
 *
 * The plane `promises` has a mark for each word that was read so and may be written: the stamp of
 * the reading warp, its lane, the bytes. Stores look there once a launch has marked a word (the
 * flag `promised`). Marks of earlier launches have old stamps and count no more. For a read after a
 * write, the shadow entry of the write shows the stamp of its warp (exec/exec_promise.h).
 *
 * A mark of a copy only says where to look: the lists of pending copies tell whether the copy still
 * runs. */
#include "fitness/vm/vm_wave.h"

static bool of_this_launch(const vm_state *s, uint32_t mark) {
    return mark >> VM_RACE_SHIFT > s->races->launch_stamp;
}

void vm_promise_note(vm_warp *w, uint64_t word, uint32_t bytes, unsigned lane, bool copy) {
    if (!w->stamp)
        vm_race_stamp(w);
    uint32_t *mark = &w->state->memory->promises[word], old = *mark;
    uint32_t own = w->stamp << VM_RACE_SHIFT;
    w->state->races->promised = true;
    if (!of_this_launch(w->state, old))
        old = 0;
    if (old && copy && !(old & VM_PROMISE_COPY))
        return; /* a promise for the whole launch says more */
    if (old && !copy && old & VM_PROMISE_COPY)
        old = 0;
    uint32_t several = 0;
    if (old && vm_race_owner(w->state, old >> VM_RACE_SHIFT) != vm_race_self(w))
        several = VM_PROMISE_SEVERAL;
    *mark = own | lane << VM_RACE_LANE_SHIFT | (old & VM_PROMISE_KEPT) | several | bytes |
            (copy ? VM_PROMISE_COPY : 0);
}

/* ---- pending copies */

static bool copies_from(const vm_warp *w, uint64_t lo, uint64_t hi) {
    const vm_async *a = w->async;
    for (size_t i = 0; a && i < a->count; i++) {
        const vm_copy *c = &a->copies[i];
        uint64_t from = (uint64_t)(c->from - w->arena);
        if (c->read && from < hi && lo < from + c->read)
            return true;
    }
    return false;
}

/* A warp of the launch `s` with a pending copy from [lo, hi); NULL: none. `owner`: look at this one
 * only, as by vm_race_self; UINT64_MAX: at all. */
static const vm_warp *find_copy(const vm_state *s, uint64_t owner, uint64_t lo, uint64_t hi) {
    for (uint32_t i = 0; i < s->block_count; i++) {
        const vm_block *b = &s->blocks[i];
        for (uint32_t k = 0; b->active && k < b->warp_count; k++) {
            const vm_warp *w = &b->warps[k];
            if ((owner == UINT64_MAX || owner == vm_race_self(w)) && copies_from(w, lo, hi))
                return w;
        }
    }
    return NULL;
}

static const vm_warp *find_copies(const vm_session *x, uint32_t mark, uint64_t owner, uint64_t lo,
                                  uint64_t hi) {
    const vm_warp *found = NULL;
    for (uint32_t r = 0; r < x->count && !found; r++)
        found = find_copy(&x->ranks[r], mark & VM_PROMISE_SEVERAL ? UINT64_MAX : owner, lo, hi);
    return found;
}

/* The entry of a read until now, if no other warp's read is to be kept and the word has one entry.
 */
static uint32_t read_until_now(const vm_warp *w, uint32_t old, uint32_t entry) {
    uint32_t stamp = old >> VM_RACE_SHIFT, several = VM_RACE_WARPS | VM_RACE_BLOCKS;
    if (stamp <= w->state->races->first_stamp)
        return entry;
    if (old & several || vm_race_owner(w->state, stamp) != vm_race_self(w))
        return old;
    if (stamp != entry >> VM_RACE_SHIFT)
        return entry;
    return entry | (old & VM_RACE_KEPT) | ((old ^ entry) & VM_RACE_LANE ? VM_RACE_MANY : 0);
}

void vm_promise_copied(vm_warp *w, const vm_copy *c, uint32_t entry) {
    const vm_memory *m = w->state->memory;
    uint64_t first = (uint64_t)(c->from - w->arena) / 4;
    for (uint64_t k = first; c->marked && k < first + c->read / 4u; k++)
        if (m->writes[k] < VM_RACE_IN_BYTES)
            m->reads[k] = read_until_now(w, m->reads[k], entry);
}

static bool copy_over(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address,
                      uint64_t word, uint32_t bytes) {
    uint32_t *mark = &w->state->memory->promises[word];
    uint64_t lo = word * 4 + (unsigned)__builtin_ctz(bytes);
    uint64_t hi = word * 4 + 32 - (unsigned)__builtin_clz(bytes);
    uint64_t owner = vm_race_owner(w->state, *mark >> VM_RACE_SHIFT);
    const vm_warp *by = find_copies(w->state->session, *mark, owner, lo, hi);
    if (by) {
        vm_trap_raise(
            w, ip, VM_TRAP_COPY_SOURCE, lane, &address,
            "a write to what a cp.async of warp %u of block %u reads, which is not waited "
            "for",
            by->index, by->block->linear);
        return false;
    }
    return true;
}

/* ---- traps */

bool vm_promise_kept(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address, uint64_t word,
                     uint32_t bytes) {
    uint32_t mark = w->state->memory->promises[word];
    if (!(mark & bytes) || !of_this_launch(w->state, mark))
        return true;
    if (mark & VM_PROMISE_COPY)
        return copy_over(w, ip, lane, address, word, bytes);
    char reader[80];
    (void)vm_rank_name(w, mark >> VM_RACE_SHIFT, reader, sizeof reader);
    vm_trap_raise(w, ip, VM_TRAP_READ_ONLY_PATH, lane, &address,
                  "a write to what %s reads through the read-only path (ld.global.nc, ldu, a "
                  "texture) in this launch",
                  reader);
    return false;
}

static const char *path_of(const ptx_insn *ip) {
    if (ptx_shape_has(ptx_op_get(ip->row)->shape, PTX_SHAPE_TEXTURE))
        return "a texture";
    return ip->row == PTX_OP_LDU ? "ldu" : "ld.global.nc";
}

void vm_promise_written(vm_warp *w, const ptx_insn *ip, unsigned lane, uint64_t address,
                        uint32_t entry) {
    char writer[80];
    (void)vm_rank_name(w, entry >> VM_RACE_SHIFT, writer, sizeof writer);
    vm_trap_raise(w, ip, VM_TRAP_READ_ONLY_PATH, lane, &address,
                  "a read through the read-only path (%s) of what %s writes in this launch",
                  path_of(ip), writer);
}
