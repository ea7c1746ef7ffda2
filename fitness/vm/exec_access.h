/* Where a warp's memory access goes: the lanes' pattern, the bounds of their space, its host bytes.
 *
 * An access is first located: where its lanes point, relative to their space, as one of three
 * patterns. Contiguous and uniform accesses are checked and moved as one piece. A scattered access
 * of a whole warp may still be two groups of 16 lanes or four of 8, each contiguous or uniform
 * (rows of a tile): then each group is one piece. The rest goes lane by lane. Bounds: the whole
 * range against the segment that this instruction found last, then, if that fails, each lane
 * against the list of allocations. */

typedef enum pattern { UNIFORM, CONTIGUOUS, SCATTERED } pattern;

typedef struct vm_access {
    const uint64_t *addr; /* of each lane, as in the register */
    uint64_t bias;        /* addr[i] + bias: offset in the space */
    uint64_t lo, hi;      /* range of offsets touched by the active lanes */
    uint8_t *host;        /* of offset 0 */
    pattern how;
    pattern group;  /* within a group of `lanes` lanes */
    unsigned lanes; /* of a group; 0: not made of groups */
    unsigned bytes; /* of one lane: all elements of a vector */
    uint8_t space;
    bool lane_kinds; /* lanes are in different buffers */
    vm_buffer_kind kind;
} vm_access;

/* Where lane i's bytes are. Local memory is one piece a lane. */
static inline uint64_t lane_offset(const vm_access *x, unsigned i) {
    return x->addr[i] + x->bias;
}
static inline uint8_t *lane_host(const vm_warp *w, const vm_access *x, unsigned i) {
    uint64_t at = lane_offset(x, i);
    return x->host + at + (x->space == VM_SPACE_LOCAL ? i * w->local_capacity : 0);
}

static inline const uint64_t *addresses(const ptx_insn *ip, const uint8_t *regs, uint64_t *space) {
    if (ip->a != PTX_NONE && ip->address_bits == 64)
        return CSLOT(uint64_t, ip->a);
    if (ip->a == PTX_NONE) {
        memset(space, 0, 32 * sizeof *space);
        return space;
    }
    uint32_t offset = (uint32_t)ip->imm; /* the sum has 32 bits; the offset is added again later */
    for (unsigned i = 0; i < 32; i++)
        space[i] = (uint64_t)(CSLOT(uint32_t, ip->a)[i] + offset) - (uint64_t)ip->imm;
    return space;
}

/* Is a whole warp's access made of groups of n lanes, each uniform or contiguous? If so, range too.
 * The pattern within the groups must be the same, their distances are free. */
static inline bool classify_groups(vm_access *x, unsigned n, uint64_t *low_bits) {
    const uint64_t *addr = x->addr;
    uint64_t bytes = x->bytes, differs = 0, strays = 0;
    LANES {
        uint64_t d = addr[i] - addr[i & ~(n - 1)];
        differs |= d;
        strays |= d - (i & (n - 1)) * bytes;
    }
    if (differs && strays)
        return false;
    uint64_t lo = UINT64_MAX, hi = 0, span = differs ? n * bytes : bytes;
    *low_bits = 0;
    for (unsigned i = 0; i < 32; i += n) {
        uint64_t at = addr[i] + x->bias;
        lo = at < lo ? at : lo;
        hi = at > hi ? at : hi;
        *low_bits |= at;
    }
    if (hi + span < hi) /* wraps: out of bounds, lane by lane */
        return false;
    x->lo = lo;
    x->hi = hi + span;
    x->how = SCATTERED;
    x->group = differs ? CONTIGUOUS : UNIFORM;
    x->lanes = n;
    return true;
}

/* Pattern and range; the alignment of all active lanes is in the low bits of the result. */
static inline uint64_t classify(vm_access *x, uint32_t mask) {
    const uint64_t *addr = x->addr;
    unsigned first = (unsigned)__builtin_ctz(mask);
    uint64_t base = addr[first], bytes = x->bytes;
    uint64_t differs = 0, strays = 0;
    x->lanes = 0;
    if (mask == VM_FULL) {
        LANES {
            differs |= addr[i] ^ base;
            strays |= addr[i] - base - i * bytes;
        }
        x->lo = base + x->bias;
        if (!differs || !strays) {
            x->how = differs ? CONTIGUOUS : UNIFORM;
            x->hi = x->lo + (differs ? 32 * bytes : bytes);
            return x->lo;
        }
        uint64_t bits;
        if (bytes >= 4 && x->space != VM_SPACE_LOCAL &&
            (classify_groups(x, 16, &bits) || classify_groups(x, 8, &bits)))
            return bits;
    }
    uint64_t lo = UINT64_MAX, hi = 0, low_bits = 0;
    for (unsigned i = 0; i < 32; i++) {
        uint64_t at = addr[i] + x->bias;
        bool on = mask >> i & 1;
        lo = on && at < lo ? at : lo;
        hi = on && at > hi ? at : hi;
        low_bits |= on ? at : 0;
    }
    x->lo = lo;
    x->hi = hi + bytes;
    x->how = lo == hi ? UNIFORM : SCATTERED;
    return low_bits;
}

static const ptx_insn *stop_trap(vm_warp *w) {
    w->stop = VM_STOP_TRAP;
    return NULL;
}

static __attribute__((noinline)) const ptx_insn *misaligned(vm_warp *w, const ptx_insn *ip,
                                                            const vm_access *x, uint32_t mask) {
    for (unsigned i = 0; i < 32; i++) {
        uint64_t at = lane_offset(x, i);
        if (mask >> i & 1 && at & (x->bytes - 1)) {
            uint64_t address = x->addr[i] + (uint64_t)ip->imm;
            vm_trap_raise(w, ip, VM_TRAP_MISALIGNED, i, &address,
                          "an access of %u bytes at an address that is no multiple of it",
                          x->bytes);
            break;
        }
    }
    return stop_trap(w);
}

static uint64_t space_size(const vm_warp *w, uint8_t space) {
    switch (space) {
    case VM_SPACE_SHARED:
        return w->shared_bytes;
    case VM_SPACE_LOCAL:
        return w->frame->local_least;
    case VM_SPACE_CONST:
        return w->state->module->const_bytes;
    default:
        return w->state->entry->pub.param_bytes;
    }
}

/* Each lane has a stack of its own. */
static uint64_t lane_size(const vm_warp *w, uint8_t space, unsigned lane) {
    return space == VM_SPACE_LOCAL ? w->frame->local_top[lane] : space_size(w, space);
}

static __attribute__((noinline)) bool out_of_bounds(vm_warp *w, const ptx_insn *ip,
                                                    const vm_access *x, unsigned lane) {
    static const char *const names[] = {[VM_SPACE_GLOBAL] = "global",
                                        [VM_SPACE_SHARED] = "shared",
                                        [VM_SPACE_LOCAL] = "local",
                                        [VM_SPACE_CONST] = "constant",
                                        [VM_SPACE_PARAM] = "parameter"};
    uint64_t address = x->addr[lane] + (uint64_t)ip->imm;
    if (x->space == VM_SPACE_GLOBAL)
        vm_trap_raise(w, ip, VM_TRAP_OUT_OF_BOUNDS, lane, &address, "%s of %u bytes in no buffer",
                      ip->row == PTX_OP_ST || ip->row == PTX_OP_ST_SEM ? "a write" : "an access",
                      x->bytes);
    else
        vm_trap_raise(w, ip, VM_TRAP_OUT_OF_BOUNDS, lane, &address,
                      "an access of %u bytes at offset %lld of %llu bytes of %s memory", x->bytes,
                      (long long)lane_offset(x, lane),
                      (unsigned long long)lane_size(w, x->space, lane), names[x->space]);
    return false;
}

/* Global: the range did not fit the segment found last; look it up, as a whole or lane by lane. */
static __attribute__((noinline)) bool find_segment(vm_warp *w, const ptx_insn *ip, vm_access *x,
                                                   uint32_t mask) {
    const vm_memory *m = w->state->memory;
    const vm_alloc *a =
        x->hi > x->lo ? vm_memory_find(m, VM_GLOBAL_BASE + x->lo, x->hi - x->lo) : NULL;
    if (a) {
        w->segments[ip->site] =
            (vm_segment){.lo = a->offset, .hi = a->offset + a->bytes, .kind = a->kind};
        x->kind = a->kind;
        return true;
    }
    for (unsigned i = 0; i < 32; i++)
        if (mask >> i & 1 && !vm_memory_find(m, VM_GLOBAL_BASE + lane_offset(x, i), x->bytes))
            return out_of_bounds(w, ip, x, i);
    x->how = SCATTERED;
    x->lanes = 0;
    x->lane_kinds = true;
    return true;
}

static inline bool in_bounds(vm_warp *w, const ptx_insn *ip, vm_access *x, uint32_t mask) {
    x->lane_kinds = false;
    if (x->space == VM_SPACE_GLOBAL) {
        const vm_segment *s = &w->segments[ip->site];
        x->kind = s->kind;
        if (__builtin_expect(x->lo >= s->lo && x->hi <= s->hi && x->lo < x->hi, 1))
            return true;
        return find_segment(w, ip, x, mask);
    }
    x->kind = VM_BUFFER_INOUT;
    uint64_t size = space_size(w, x->space);
    if (__builtin_expect(x->hi <= size && x->lo < x->hi, 1))
        return true;
    for (unsigned i = 0; i < 32; i++) {
        uint64_t at = lane_offset(x, i);
        size = lane_size(w, x->space, i);
        if (mask >> i & 1 && (at >= size || x->bytes > size - at))
            return out_of_bounds(w, ip, x, i);
    }
    return true;
}

static inline uint8_t *space_host(const vm_warp *w, uint8_t space) {
    switch (space) {
    case VM_SPACE_GLOBAL:
        return w->arena;
    case VM_SPACE_SHARED:
        return w->shared;
    case VM_SPACE_LOCAL:
        return w->local;
    case VM_SPACE_CONST:
        return w->state->consts;
    default:
        return (uint8_t *)(uintptr_t)w->state->launch->params;
    }
}

static inline bool locate(vm_warp *w, const ptx_insn *ip, vm_access *x, uint32_t mask) {
    x->host = space_host(w, x->space);
    uint64_t low_bits = classify(x, mask);
    if (__builtin_expect(low_bits & (x->bytes - 1), 0)) {
        misaligned(w, ip, x, mask);
        return false;
    }
    if (__builtin_expect(!in_bounds(w, ip, x, mask), 0)) {
        stop_trap(w);
        return false;
    }
    return true;
}

static inline uint64_t space_origin(uint8_t space) {
    return space == VM_SPACE_GLOBAL ? VM_GLOBAL_BASE : 0;
}
static inline uint8_t window_space(uint64_t address) {
    switch (address >> VM_WINDOW_SHIFT) {
    case 1:
        return VM_SPACE_SHARED;
    case 2:
        return VM_SPACE_LOCAL;
    case 3:
        return VM_SPACE_CONST;
    case 4:
        return VM_SPACE_PARAM;
    default:
        return VM_SPACE_GLOBAL;
    }
}

typedef bool (*access_fn)(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                          vm_access *x);

/* Generic addresses: the lanes of each space in turn; mostly there is one. */
static __attribute__((noinline)) bool each_space(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                                 uint32_t mask, vm_access *x, access_fn access) {
    while (mask) {
        unsigned first = (unsigned)__builtin_ctz(mask);
        uint64_t imm = (uint64_t)ip->imm;
        uint8_t space = window_space(x->addr[first] + imm);
        uint32_t same = 0;
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            same |= (uint32_t)(window_space(x->addr[i] + imm) == space) << i;
        }
        x->space = space;
        x->bias = imm - (space == VM_SPACE_GLOBAL ? VM_GLOBAL_BASE : window_of(space));
        if (!access(w, ip, regs, same, x))
            return false;
        mask &= ~same;
    }
    return true;
}
