/* Addresses of a warp's memory access: finds the pattern of the lanes, checks the bounds of their
 * space, and gives the bytes on the host.
 *
 * An access is first located: the lanes' offsets in their space are classified as contiguous,
 * uniform or scattered. Contiguous and uniform accesses are checked and moved as one piece. A
 * scattered access of a whole warp may consist of two groups of 16 lanes or four of 8, each
 * contiguous or uniform (rows of a tile); then each group is one piece. Otherwise each lane is a
 * group of its own. Accesses narrower than a word, or by some of the lanes only, go lane by lane.
 * The bounds check compares the whole range with the segment that this instruction found last. If
 * that fails, each lane is looked up in the list of allocations. */

typedef enum pattern { UNIFORM, CONTIGUOUS, SCATTERED } pattern;

typedef struct vm_access {
    const uint64_t *addr; /* address of each lane, as in the register */
    uint64_t bias;        /* addr[i] + bias is the offset in the space */
    uint64_t lo, hi;      /* range of offsets that the active lanes touch */
    uint8_t *host;        /* host address of offset 0 */
    pattern how;
    pattern group;  /* pattern within a group of `lanes` lanes */
    unsigned lanes; /* lanes of a group: 16, 8, 4 or 1; 0: there are no groups */
    unsigned bytes; /* bytes of one lane: all elements of a vector */
    uint8_t space;
    bool lane_kinds; /* the lanes access different buffers */
    vm_buffer_kind kind;
    vm_look *look; /* keeps the passes of this access; NULL: not kept */
} vm_access;

/* The offset and the host address of lane i's bytes. In local memory each lane has its own piece.
 */
static inline uint64_t lane_offset(const vm_access *x, unsigned i) {
    return x->addr[i] + x->bias;
}
static inline uint8_t *lane_host(const vm_warp *w, const vm_access *x, unsigned i) {
    uint64_t at = lane_offset(x, i);
    return x->host + at + (x->space == VM_SPACE_LOCAL ? i * w->local_capacity : 0);
}

static ALWAYS_INLINE const uint64_t *addresses(const ptx_insn *ip, const uint8_t *regs,
                                               uint64_t *space) {
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

/* The range of a whole warp's access whose groups of n lanes are each uniform or contiguous.
 * *low_bits: OR of all lanes' offsets, for the alignment. False: the range wraps, so it is out of
 * bounds. */
static inline bool range_of_groups(vm_access *x, unsigned n, bool contiguous, uint64_t *low_bits) {
    uint64_t lo = UINT64_MAX, hi = 0, span = contiguous ? (uint64_t)n * x->bytes : x->bytes;
    *low_bits = 0;
    for (unsigned i = 0; i < 32; i += n) {
        uint64_t at = x->addr[i] + x->bias;
        lo = at < lo ? at : lo;
        hi = at > hi ? at : hi;
        *low_bits |= at;
    }
    if (hi + span < hi)
        return false;
    x->lo = lo;
    x->hi = hi + span;
    x->how = SCATTERED;
    x->group = contiguous ? CONTIGUOUS : UNIFORM;
    x->lanes = n;
    return true;
}

/* The addresses of eight lanes. The compiler splits the vector into the host's widths. */
typedef uint64_t lanes8 __attribute__((vector_size(64), aligned(8), may_alias));

static ALWAYS_INLINE bool any_bit(const lanes8 *v) {
#if defined(__clang__)
    return __builtin_reduce_or(*v != 0) != 0; /* the comparison becomes one test instruction */
#else
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; i++)
        bits |= (*v)[i];
    return bits != 0;
#endif
}

/* The same, signed: hosts compare signed numbers fast. */
typedef int64_t signed8 __attribute__((vector_size(64), aligned(8), may_alias));

/* Least and greatest offset of the lanes of `mask`, and the OR of their offsets. */
typedef struct lanes_range {
    uint64_t lo, hi, bits;
} lanes_range;
static ALWAYS_INLINE lanes_range range_of_mask(const vm_access *x, uint32_t mask) {
    const signed8 bit = {1, 2, 4, 8, 16, 32, 64, 128};
    const uint64_t sign = 1ull << 63; /* turns unsigned order into signed order */
    const signed8 most = (signed8){0} + INT64_MAX, least = (signed8){0} + INT64_MIN;
    signed8 lo = most, hi = least, bits = {0};
    for (unsigned i = 0; i < 32; i += 8) {
        lanes8 at = *(const lanes8 *)(const void *)(x->addr + i) + (x->bias ^ sign);
        signed8 on = (signed8)((bit & (int64_t)(mask >> i & 255)) == bit), a = (signed8)at & on;
        signed8 low = a | (most & ~on), high = a | (least & ~on);
        signed8 lower = (signed8)(low < lo), higher = (signed8)(high > hi);
        lo = (low & lower) | (lo & ~lower);
        hi = (high & higher) | (hi & ~higher);
        bits |= a;
    }
    lanes_range r = {UINT64_MAX, 0, 0};
    for (unsigned i = 0; i < 8; i++) {
        uint64_t low = (uint64_t)lo[i] ^ sign, high = (uint64_t)hi[i] ^ sign;
        r.lo = low < r.lo ? low : r.lo;
        r.hi = high > r.hi ? high : r.hi;
        r.bits |= (uint64_t)bits[i];
    }
    return r;
}

/* As range_of_groups, with a group for each lane. */
static ALWAYS_INLINE bool range_of_lanes(vm_access *x, uint64_t *low_bits) {
    lanes_range r = range_of_mask(x, VM_FULL);
    *low_bits = r.bits;
    if (r.hi + x->bytes < r.hi)
        return false;
    x->lo = r.lo;
    x->hi = r.hi + x->bytes;
    x->how = SCATTERED;
    x->group = CONTIGUOUS;
    x->lanes = 1;
    return true;
}

/* How the lanes of a group stand to its first lane. */
typedef struct group_look {
    bool differ; /* a lane has another offset: the group is not uniform */
    bool stray;  /* a lane does not follow the lane before it: the group is not contiguous */
} group_look;
static ALWAYS_INLINE group_look look_at_groups(const uint64_t *addr, unsigned n, unsigned bytes) {
    const lanes8 order = {0, 1, 2, 3, 4, 5, 6, 7};
    unsigned shift = (unsigned)__builtin_ctz(bytes);
    lanes8 differs = {0}, strays = {0};
    for (unsigned i = 0; i < 32; i += 8) {
        unsigned first = i & ~(n - 1);
        uint64_t a = addr[first], b = addr[n == 4 ? i + 4 : first];
        lanes8 d = *(const lanes8 *)(const void *)(addr + i) - (lanes8){a, a, a, a, b, b, b, b};
        differs |= d;
        strays |= d ^ (((order & (uint64_t)(n - 1)) + (uint64_t)(i - first)) << shift);
    }
    return (group_look){any_bit(&differs), any_bit(&strays)};
}

/* Finds pattern and range of a whole warp's access. Half warps are classified first; the pattern of
 * the warp follows from theirs. False: no pattern, so the access goes lane by lane. */
static inline bool classify_full(vm_access *x, uint64_t *low_bits) {
    const uint64_t *addr = x->addr;
    unsigned bytes = x->bytes;
    uint64_t apart = addr[16] - addr[0];
    group_look half = look_at_groups(addr, 16, bytes);
    bool uniform = !half.differ && !apart;
    if (uniform || (!half.stray && apart == 16ull * bytes)) {
        x->how = uniform ? UNIFORM : CONTIGUOUS;
        x->lo = addr[0] + x->bias;
        x->hi = x->lo + (uniform ? bytes : 32ull * bytes);
        *low_bits = x->lo;
        return true;
    }
    if (bytes < 4 || x->space == VM_SPACE_LOCAL)
        return false;
    if (!half.differ || !half.stray)
        return range_of_groups(x, 16, half.differ, low_bits);
    group_look quarter = look_at_groups(addr, 8, bytes);
    if (!quarter.differ || !quarter.stray)
        return range_of_groups(x, 8, quarter.differ, low_bits);
    if (bytes >= 8 && !look_at_groups(addr, 4, bytes).stray)
        return range_of_groups(x, 4, true, low_bits);
    return range_of_lanes(x, low_bits);
}

/* Finds pattern and range. Returns the OR of the active lanes' offsets, for the alignment. */
static __attribute__((noinline)) uint64_t classify(vm_access *x, uint32_t mask) {
    uint64_t low_bits = 0;
    x->group = CONTIGUOUS;
    x->lanes = 0;
    if (mask == VM_FULL && classify_full(x, &low_bits))
        return low_bits;
    lanes_range r = range_of_mask(x, mask);
    x->lo = r.lo;
    x->hi = r.hi + x->bytes;
    x->how = r.lo == r.hi ? UNIFORM : SCATTERED;
    return r.bits;
}

static const ptx_insn *stop_trap(vm_warp *w) {
    w->stop = w->again ? VM_STOP_TURN : VM_STOP_TRAP;
    w->again = false;
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

static inline uint64_t space_size(const vm_warp *w, uint8_t space) {
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

/* The size of a space for a lane. In local memory each lane has a stack of its own. */
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

/* Global memory: the range is not in the segment found last. Looks the range up as a whole, then
 * lane by lane. */
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

/* Other spaces: checks each lane for itself. */
static __attribute__((noinline)) bool lanes_in_bounds(vm_warp *w, const ptx_insn *ip,
                                                      const vm_access *x, uint32_t mask) {
    for (unsigned i = 0; i < 32; i++) {
        uint64_t at = lane_offset(x, i), size = lane_size(w, x->space, i);
        if (mask >> i & 1 && (at >= size || x->bytes > size - at))
            return out_of_bounds(w, ip, x, i);
    }
    return true;
}

static ALWAYS_INLINE bool in_bounds(vm_warp *w, const ptx_insn *ip, vm_access *x, uint32_t mask) {
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
    return lanes_in_bounds(w, ip, x, mask);
}

static ALWAYS_INLINE uint8_t *space_host(const vm_warp *w, uint8_t space) {
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

/* Reuses the look of an earlier access, moved by the difference of the two offsets. False: the
 * access must be classified anew. */
static ALWAYS_INLINE bool look_again(vm_warp *w, const ptx_insn *ip, vm_access *x, uint32_t mask) {
    vm_look *k = &w->looks[ip->look];
    uint64_t by = x->bias - k->bias, lo = k->lo + by, hi = k->hi + by;
    if (!ip->looked || mask != k->mask || lo >= hi || by & (x->bytes - 1))
        return false;
    x->how = (pattern)k->how;
    x->group = (pattern)k->group;
    x->lanes = k->lanes;
    x->lo = lo;
    x->hi = hi;
    x->look = by & 3 ? NULL : k; /* a move by whole words keeps the number of passes over the
                                    banks */
    return true;
}
static ALWAYS_INLINE void keep_look(vm_warp *w, const ptx_insn *ip, vm_access *x, uint32_t mask) {
    vm_look *k = &w->looks[ip->look];
    *k = (vm_look){.mask = mask,
                   .how = (uint8_t)x->how,
                   .group = (uint8_t)x->group,
                   .lanes = (uint8_t)x->lanes,
                   .lo = x->lo,
                   .hi = x->hi,
                   .bias = x->bias};
    x->look = k;
}

/* Tells the compiler the space, so that a handler for one space has no branches for the others. */
static ALWAYS_INLINE void assume_space(const vm_access *x, uint8_t space) {
    if (x->space != space)
        __builtin_unreachable();
}

/* As locate, for a load or store. */
static ALWAYS_INLINE bool locate_lanes(vm_warp *w, const ptx_insn *ip, vm_access *x, uint32_t mask,
                                       uint8_t space) {
    x->host = space_host(w, space);
    if (!look_again(w, ip, x, mask)) {
        if (__builtin_expect(classify(x, mask) & (x->bytes - 1), 0)) {
            misaligned(w, ip, x, mask);
            return false;
        }
        keep_look(w, ip, x, mask);
    }
    assume_space(x, space);
    if (__builtin_expect(!in_bounds(w, ip, x, mask), 0)) {
        stop_trap(w);
        return false;
    }
    return true;
}

static inline bool locate(vm_warp *w, const ptx_insn *ip, vm_access *x, uint32_t mask) {
    x->look = NULL;
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
typedef bool (*access_fn)(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                          vm_access *x);

/* Generic addresses: calls `access` for the lanes of each space in turn. Most accesses use one
 * space. */
static __attribute__((noinline)) bool each_space(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                                 uint32_t mask, vm_access *x, access_fn access) {
    while (mask) {
        unsigned first = (unsigned)__builtin_ctz(mask);
        uint64_t imm = (uint64_t)ip->imm;
        uint8_t space = ptx_window_space(x->addr[first] + imm);
        uint32_t same = 0;
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            same |= (uint32_t)(ptx_window_space(x->addr[i] + imm) == space) << i;
        }
        x->space = space;
        x->bias = imm - (space == VM_SPACE_GLOBAL ? VM_GLOBAL_BASE : window_of(space));
        if (!access(w, ip, regs, same, x))
            return false;
        mask &= ~same;
    }
    return true;
}
