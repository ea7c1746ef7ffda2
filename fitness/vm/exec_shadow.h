/* Shadow of what was written, a bit a byte: uninitialised reads, and writes outside the outputs. */

static inline uint64_t *written_bits(const vm_warp *w, const vm_access *x) {
    if (x->space == VM_SPACE_GLOBAL)
        return w->state->memory->written;
    return x->space == VM_SPACE_SHARED ? w->block->shared_written : w->local_written;
}

/* Bits [at, at + n) of a bitmap, n < 64, not across a word where at is a multiple of n. */
static inline bool bits_set(const uint64_t *map, uint64_t at, unsigned n) {
    uint64_t want = low_mask(n) << (at & 63);
    return (map[at >> 6] & want) == want;
}
static inline bool range_set(const uint64_t *map, uint64_t lo, uint64_t hi) {
    uint64_t first = lo >> 6, last = (hi - 1) >> 6;
    uint64_t head = ~0ull << (lo & 63), tail = ~0ull >> (63 - ((hi - 1) & 63));
    if (first == last)
        return (~map[first] & head & tail) == 0;
    uint64_t missing = (~map[first] & head) | (~map[last] & tail);
    for (uint64_t i = first + 1; i < last; i++)
        missing |= ~map[i];
    return missing == 0;
}
static inline void set_range(uint64_t *map, uint64_t lo, uint64_t hi) {
    uint64_t first = lo >> 6, last = (hi - 1) >> 6;
    uint64_t head = ~0ull << (lo & 63), tail = ~0ull >> (63 - ((hi - 1) & 63));
    if (first == last) {
        map[first] |= head & tail;
        return;
    }
    map[first] |= head;
    map[last] |= tail;
    for (uint64_t i = first + 1; i < last; i++)
        map[i] = ~0ull;
}

/* Bytes of one group, and where it begins. */
static inline uint64_t group_span(const vm_access *x) {
    return x->group == UNIFORM ? x->bytes : (uint64_t)x->lanes * x->bytes;
}
static inline bool groups_set(const uint64_t *map, const vm_access *x) {
    bool all = true;
    for (unsigned i = 0; i < 32; i += x->lanes) {
        uint64_t at = lane_offset(x, i);
        all &= range_set(map, at, at + group_span(x));
    }
    return all;
}
/* Lanes that are off look where the first one does. */
static inline bool lanes_set(const uint64_t *map, const vm_access *x, uint32_t mask) {
    uint64_t first = x->addr[__builtin_ctz(mask)], want = low_mask(x->bytes), missing = 0;
    LANES {
        uint64_t at = (mask >> i & 1 ? x->addr[i] : first) + x->bias;
        missing |= ~(map[at >> 6] >> (at & 63)) & want;
    }
    return !missing;
}

static inline uint64_t shadow_offset(const vm_warp *w, const vm_access *x, unsigned i) {
    return lane_offset(x, i) + (x->space == VM_SPACE_LOCAL ? i * w->local_capacity : 0);
}

static vm_buffer_kind lane_kind(const vm_warp *w, const vm_access *x, unsigned i) {
    if (!x->lane_kinds)
        return x->kind;
    const vm_alloc *a =
        vm_memory_find(w->state->memory, VM_GLOBAL_BASE + lane_offset(x, i), x->bytes);
    return a ? a->kind : VM_BUFFER_IN;
}

static inline bool kind_needs_init(vm_buffer_kind kind) {
    return kind == VM_BUFFER_OUT || kind == VM_BUFFER_SCRATCH;
}

static __attribute__((noinline)) bool check_lanes_initialised(vm_warp *w, const ptx_insn *ip,
                                                              const vm_access *x, uint32_t mask) {
    const uint64_t *map = written_bits(w, x);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (x->space == VM_SPACE_GLOBAL && !kind_needs_init(lane_kind(w, x, i)))
            continue;
        if (bits_set(map, shadow_offset(w, x, i), x->bytes))
            continue;
        uint64_t address = x->addr[i] + (uint64_t)ip->imm;
        vm_trap_raise(w, ip, VM_TRAP_UNINITIALISED, i, &address,
                      "a read of %u bytes that nothing has written", x->bytes);
        return false;
    }
    return true;
}

static inline bool check_initialised(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                     uint32_t mask) {
    if (!w->check_init || x->space == VM_SPACE_CONST || x->space == VM_SPACE_PARAM)
        return true;
    if (x->space == VM_SPACE_GLOBAL && !x->lane_kinds && !kind_needs_init(x->kind))
        return true;
    if (x->how != SCATTERED && x->space != VM_SPACE_LOCAL &&
        range_set(written_bits(w, x), x->lo, x->hi))
        return true;
    if (x->lanes ? groups_set(written_bits(w, x), x)
                 : x->how == SCATTERED && x->space != VM_SPACE_LOCAL && !x->lane_kinds &&
                       lanes_set(written_bits(w, x), x, mask))
        return true;
    return check_lanes_initialised(w, ip, x, mask);
}

static __attribute__((noinline)) bool refuse_write(vm_warp *w, const ptx_insn *ip,
                                                   const vm_access *x, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (lane_kind(w, x, i) != VM_BUFFER_IN)
            continue;
        uint64_t address = x->addr[i] + (uint64_t)ip->imm;
        vm_trap_raise(w, ip, VM_TRAP_READ_ONLY_WRITE, i, &address,
                      "a write of %u bytes to a buffer that is no output", x->bytes);
        return false;
    }
    return true;
}

/* May these lanes write there? Marks the bytes written and their pages dirty. */
static inline bool note_write(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    vm_memory *m = w->state->memory;
    if (x->space != VM_SPACE_LOCAL)
        w->state->last_change = w->state->result->counters.thread_instructions;
    if (x->space == VM_SPACE_GLOBAL) {
        if (__builtin_expect(w->check_init && (x->lane_kinds || x->kind == VM_BUFFER_IN), 0) &&
            !refuse_write(w, ip, x, mask))
            return false;
        if (x->how != SCATTERED || (x->hi - 1) >> VM_PAGE_SHIFT == x->lo >> VM_PAGE_SHIFT) {
            uint64_t page = x->lo >> VM_PAGE_SHIFT;
            if (__builtin_expect(!m->dirty[page] || !m->dirty[(x->hi - 1) >> VM_PAGE_SHIFT], 0))
                vm_memory_mark_dirty(m, x->lo, x->hi - x->lo);
        } else {
            for (uint32_t left = mask; left; left &= left - 1) {
                uint64_t at = lane_offset(x, (unsigned)__builtin_ctz(left));
                if (!m->dirty[at >> VM_PAGE_SHIFT])
                    vm_memory_mark_dirty(m, at, x->bytes);
            }
        }
    }
    uint64_t *map = written_bits(w, x);
    if (x->how != SCATTERED && x->space != VM_SPACE_LOCAL) {
        set_range(map, x->lo, x->hi);
        return true;
    }
    if (x->lanes) {
        for (unsigned i = 0; i < 32; i += x->lanes) {
            uint64_t at = lane_offset(x, i);
            set_range(map, at, at + group_span(x));
        }
        return true;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t at = shadow_offset(w, x, (unsigned)__builtin_ctz(left));
        map[at >> 6] |= low_mask(x->bytes) << (at & 63);
    }
    return true;
}
