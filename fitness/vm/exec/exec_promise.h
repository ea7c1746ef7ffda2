/* Promises that PTX leaves to the programmer, lane by lane: the read-only path reads only what the
 * launch does not write, and the source of an asynchronous copy stays until the copy is waited for.
 * vm_promise.c explains the marks. Buffers of kind IN need no marks, since every write there
 * traps. */

/* ---- reads */

/* Marks the words of an access that promises something of them. */
static inline void note_promises(vm_warp *w, const vm_access *x, uint32_t mask, bool copy) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = lane_offset(x, i);
        for (unsigned k = 0; k < words_of(x); k++)
            vm_promise_note(w, at / 4 + k, bytes_bits(x, at), i, copy);
    }
}

/* The entry of a write that this launch did to the lane's words; 0: there is none. */
static inline uint32_t written_now(vm_warp *w, const vm_access *x, unsigned lane) {
    race_planes p = planes_of(w, x->space);
    uint32_t newest = 0;
    for (unsigned k = 0; k < words_of(x); k++) {
        race_cells c = cells_of(w, x, p, lane, k);
        for (unsigned b = 0; b < c.count; b++)
            newest = c.writes[b] > newest ? c.writes[b] : newest;
    }
    return newest >> VM_RACE_SHIFT > w->state->races->launch_stamp ? newest : 0;
}

static __attribute__((noinline)) bool promise_lanes(vm_warp *w, const ptx_insn *ip,
                                                    const vm_access *x, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint32_t entry = written_now(w, x, i);
        if (entry) {
            vm_promise_written(w, ip, i, x->addr[i] + (uint64_t)ip->imm, entry);
            return false;
        }
    }
    note_promises(w, x, mask, false);
    return true;
}

/* Called for a load through the read-only path. */
static ALWAYS_INLINE bool promise_constant(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                           uint32_t mask) {
    return x->space != VM_SPACE_GLOBAL || !races_matter(w, x) || promise_lanes(w, ip, x, mask);
}

/* Called for the source of an asynchronous copy. */
static inline void promise_source(vm_warp *w, const vm_access *x, uint32_t mask) {
    if (races_matter(w, x))
        note_promises(w, x, mask, true);
}

/* ---- writes */

static __attribute__((noinline)) bool keeps_promises(vm_warp *w, const ptx_insn *ip,
                                                     const vm_access *x, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = lane_offset(x, i);
        for (unsigned k = 0; k < words_of(x); k++)
            if (!vm_promise_kept(w, ip, i, x->addr[i] + (uint64_t)ip->imm, at / 4 + k,
                                 bytes_bits(x, at)))
                return false;
    }
    return true;
}
