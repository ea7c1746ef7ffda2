/* Handlers of loads, stores and atomics.
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
    if (ip->a == PTX_NONE)
        memset(space, 0, 32 * sizeof *space);
    else
        for (unsigned i = 0; i < 32; i++)
            space[i] = CSLOT(uint32_t, ip->a)[i];
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
        return w->frame->local_top;
    case VM_SPACE_CONST:
        return w->state->module->const_bytes;
    default:
        return w->state->entry->pub.param_bytes;
    }
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
                      (long long)lane_offset(x, lane), (unsigned long long)space_size(w, x->space),
                      names[x->space]);
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
        return w->state->module->const_image;
    default:
        return (uint8_t *)(uintptr_t)w->state->launch->params;
    }
}

/* ---- counters and events: 32-byte sectors, 128-byte lines, passes over the 32 banks */

static unsigned distinct(const uint64_t *values, unsigned count, unsigned shift, uint64_t *out) {
    uint64_t table[64];
    uint64_t used = 0;
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++) {
        uint64_t v = values[i] >> shift;
        unsigned at = (unsigned)(v ^ v >> 6) & 63;
        while (used >> at & 1 && table[at] != v)
            at = (at + 1) & 63;
        if (used >> at & 1)
            continue;
        used |= 1ull << at;
        table[at] = v;
        out[n++] = v;
    }
    return n;
}

/* The sectors of an access to global memory, at most 32. */
static unsigned list_sectors(const vm_access *x, uint32_t mask, uint64_t *out) {
    uint64_t origin = x->space == VM_SPACE_GLOBAL ? VM_GLOBAL_BASE : 0;
    if (x->how != SCATTERED) {
        unsigned n = 0;
        for (uint64_t s = (origin + x->lo) / 32; s <= (origin + x->hi - 1) / 32; s++)
            out[n++] = s;
        return n;
    }
    uint64_t at[32];
    unsigned n = 0;
    for (uint32_t left = mask; left; left &= left - 1)
        at[n++] = origin + lane_offset(x, (unsigned)__builtin_ctz(left));
    return distinct(at, n, 5, out);
}

static unsigned count_sectors(const vm_access *x, uint32_t mask) {
    if (x->how != SCATTERED)
        return (unsigned)((x->hi - 1) / 32 - x->lo / 32 + 1);
    if ((x->hi - 1) / 32 - x->lo / 32 < 64) {
        uint64_t seen = 0;
        for (uint32_t left = mask; left; left &= left - 1)
            seen |= 1ull << (lane_offset(x, (unsigned)__builtin_ctz(left)) / 32 - x->lo / 32);
        return (unsigned)__builtin_popcountll(seen);
    }
    uint64_t out[32];
    return list_sectors(x, mask, out);
}

/* Greatest number of rows that have the same bit set; at most 63 rows. */
static unsigned deepest_column(const uint32_t *rows, unsigned count) {
    uint32_t digit[6] = {0};
    for (unsigned r = 0; r < count; r++) {
        uint32_t carry = rows[r];
        for (unsigned k = 0; k < 6; k++) {
            uint32_t both = digit[k] & carry;
            digit[k] ^= carry;
            carry = both;
        }
    }
    uint32_t columns = UINT32_MAX;
    unsigned most = 0;
    for (unsigned k = 6; k-- > 0;)
        if (columns & digit[k]) {
            columns &= digit[k];
            most |= 1u << k;
        }
    return most;
}

/* Passes of lanes [from, to) as below, where all words are in a few rows of banks. */
static unsigned bank_passes_near(const vm_access *x, uint32_t mask, unsigned from, unsigned to,
                                 unsigned count) {
    uint32_t rows[63];
    uint64_t origin = x->lo / 128 * 32;
    memset(rows, 0, count * sizeof *rows);
    unsigned each = (x->bytes + 3) / 4;
    for (uint32_t left = mask & (uint32_t)(low_mask(to - from) << from); left; left &= left - 1) {
        uint64_t word = lane_offset(x, (unsigned)__builtin_ctz(left)) / 4 - origin;
        for (unsigned k = 0; k < each; k++)
            rows[(word + k) / 32] |= 1u << ((word + k) & 31);
    }
    return deepest_column(rows, count);
}

/* Passes of lanes [from, to): how many different words the busiest bank must give. */
static unsigned bank_passes(const vm_access *x, uint32_t mask, unsigned from, unsigned to) {
    uint64_t words[128];
    uint8_t count[32] = {0};
    uint64_t seen[32][4];
    unsigned most = 0, n = 0;
    uint64_t span = (x->hi - 1) / 128 - x->lo / 128 + 1;
    if (span <= 63)
        return bank_passes_near(x, mask, from, to, (unsigned)span);
    for (unsigned i = from; i < to; i++)
        if (mask >> i & 1)
            for (unsigned k = 0; k < (x->bytes + 3) / 4; k++)
                words[n++] = lane_offset(x, i) / 4 + k;
    for (unsigned i = 0; i < n; i++) {
        unsigned bank = words[i] & 31, have = count[bank];
        bool known = false;
        for (unsigned k = 0; k < have && k < 4; k++)
            known |= seen[bank][k] == words[i];
        if (known)
            continue;
        if (have < 4)
            seen[bank][have] = words[i];
        else { /* rare: look through all earlier words */
            for (unsigned j = 0; j < i; j++)
                known |= words[j] == words[i];
            if (known)
                continue;
        }
        count[bank]++;
        most = count[bank] > most ? count[bank] : most;
    }
    return most;
}

static unsigned count_passes(const vm_access *x, uint32_t mask) {
    unsigned groups = x->bytes <= 4 ? 1 : x->bytes / 4; /* 8 bytes: half warps, 16: quarters */
    if (x->how == UNIFORM)
        return 1;
    if (x->how == CONTIGUOUS)
        return x->bytes <= 4 ? 1 : groups;
    if (x->bytes <= 4 && x->hi - (x->lo & ~3ull) <= 128)
        return 1;
    if (mask == VM_FULL && x->bytes <= 4) {
        uint32_t banks = 0;
        LANES banks |= 1u << (lane_offset(x, i) / 4 & 31);
        if (banks == UINT32_MAX) /* each lane its own bank */
            return 1;
    }
    unsigned passes = 0, width = groups > 32 ? 1 : 32 / groups;
    for (unsigned from = 0; from < 32; from += width)
        passes += bank_passes(x, mask, from, from + width);
    return passes ? passes : 1;
}

static __attribute__((noinline)) void
observe_access(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask, unsigned passes) {
    uint64_t sectors[33], lines[33];
    unsigned n = 0;
    if (x->space == VM_SPACE_GLOBAL || x->space == VM_SPACE_LOCAL) {
        n = list_sectors(x, mask, sectors);
        passes = distinct(sectors, n, 2, lines);
    }
    vm_event_push(w, (uint32_t)(ip - w->code), mask, sectors, n, passes);
}

static inline void count_access(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask,
                                bool store) {
    vm_counters *c = &w->state->result->counters;
    unsigned passes = 0;
    if (x->space == VM_SPACE_GLOBAL) {
        unsigned sectors = count_sectors(x, mask);
        uint64_t bytes = (uint64_t)__builtin_popcount(mask) * x->bytes;
        if (store) {
            c->global_store_requests++;
            c->global_store_sectors += sectors;
            c->global_store_bytes += bytes;
        } else {
            c->global_load_requests++;
            c->global_load_sectors += sectors;
            c->global_load_bytes += bytes;
        }
    } else if (x->space == VM_SPACE_SHARED) {
        passes = count_passes(x, mask);
        c->shared_requests++;
        c->shared_passes += passes;
    } else if (x->space == VM_SPACE_LOCAL) {
        c->local_requests++; /* the chip interleaves lanes: equal offsets are one line */
        c->local_sectors += x->how == UNIFORM ? (x->bytes * 32 + 31) / 32 : count_sectors(x, mask);
    }
    if (__builtin_expect(w->observed, 0))
        observe_access(w, ip, x, mask, passes);
}

/* ---- shadow: a bit a byte */

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
    if (x->space == VM_SPACE_GLOBAL) {
        if (__builtin_expect(w->check_init && (x->lane_kinds || x->kind == VM_BUFFER_IN), 0) &&
            !refuse_write(w, ip, x, mask))
            return false;
        w->state->last_change = w->state->result->counters.thread_instructions;
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

/* ---- moving the bytes */

#define LOAD_AS(type, p) (*(const type *)(const void *)(p))
#define STORE_AS(type, p, v) (*(type *)(void *)(p) = (type)(v))

static inline uint64_t load_element(const uint8_t *p, unsigned bytes, bool is_signed) {
    switch (bytes) {
    case 1:
        return is_signed ? (uint64_t)(int64_t)(int8_t)*p : *p;
    case 2:
        return is_signed ? (uint64_t)(int64_t)LOAD_AS(int16_t, p) : LOAD_AS(uint16_t, p);
    case 4:
        return is_signed ? (uint64_t)(int64_t)LOAD_AS(int32_t, p) : LOAD_AS(uint32_t, p);
    default:
        return LOAD_AS(uint64_t, p);
    }
}
static inline void store_element(uint8_t *p, unsigned bytes, uint64_t v) {
    switch (bytes) {
    case 1:
        *p = (uint8_t)v;
        return;
    case 2:
        STORE_AS(uint16_t, p, v);
        return;
    case 4:
        STORE_AS(uint32_t, p, v);
        return;
    default:
        STORE_AS(uint64_t, p, v);
    }
}

static void load_lanes(const vm_warp *w, const ptx_insn *ip, uint8_t *regs, const vm_access *x,
                       uint32_t mask) {
    bool is_signed = ip->flags & PTX_F_SIGNED;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        const uint8_t *p = lane_host(w, x, i);
        for (unsigned k = 0; k < ip->count; k++, p += ip->bytes) {
            uint64_t v = load_element(p, ip->bytes, is_signed);
            if (ip->wide)
                SLOT(uint64_t, ip->v[k])[i] = v;
            else
                SLOT(uint32_t, ip->v[k])[i] = (uint32_t)v;
        }
    }
}

/* Element k of groups of n lanes; contiguous ones have one element a lane. */
static inline void load_groups(const ptx_insn *ip, uint8_t *regs, const vm_access *x, unsigned n,
                               unsigned k) {
    for (unsigned g = 0; g < 32; g += n) {
        const uint8_t *from = x->host + lane_offset(x, g) + (size_t)k * ip->bytes;
        uint8_t *to = regs + ip->v[k] + (size_t)g * ip->bytes;
        if (x->group == CONTIGUOUS) {
            memcpy(to, from, ip->bytes == 4 ? n * 4 : n * 8);
        } else if (ip->bytes == 4) {
            uint32_t v = LOAD_AS(uint32_t, from);
            for (unsigned i = 0; i < n; i++)
                ((uint32_t *)(void *)to)[i] = v;
        } else {
            uint64_t v = LOAD_AS(uint64_t, from);
            for (unsigned i = 0; i < n; i++)
                ((uint64_t *)(void *)to)[i] = v;
        }
    }
}

static inline void load_data(const vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                             const vm_access *x, uint32_t mask) {
    const uint8_t *base = x->host + x->lo;
    if (mask != VM_FULL || x->space == VM_SPACE_LOCAL || ip->bytes < 4 ||
        (ip->bytes == 4) == ip->wide) {
        load_lanes(w, ip, regs, x, mask);
        return;
    }
    unsigned count = ip->count;
    if (x->lanes && (x->group == UNIFORM || count == 1)) {
        for (unsigned k = 0; k < count; k++)
            if (x->lanes == 16)
                load_groups(ip, regs, x, 16, k);
            else
                load_groups(ip, regs, x, 8, k);
        return;
    }
    for (unsigned k = 0; k < count; k++) {
        if (ip->bytes == 4) {
            uint32_t *d = SLOT(uint32_t, ip->v[k]);
            if (x->how == UNIFORM) {
                uint32_t v = LOAD_AS(uint32_t, base + 4 * k);
                LANES d[i] = v;
            } else if (x->how == CONTIGUOUS && count == 1) {
                memcpy(d, base, 128);
            } else {
                const uint8_t *host = x->host + x->bias + 4 * k;
                const uint64_t *addr = x->addr;
                LANES d[i] = LOAD_AS(uint32_t, host + addr[i]);
            }
        } else {
            uint64_t *d = SLOT(uint64_t, ip->v[k]);
            if (x->how == UNIFORM) {
                uint64_t v = LOAD_AS(uint64_t, base + 8 * k);
                LANES d[i] = v;
            } else if (x->how == CONTIGUOUS && count == 1) {
                memcpy(d, base, 256);
            } else {
                for (unsigned i = 0; i < 32; i++)
                    d[i] = LOAD_AS(uint64_t, x->host + lane_offset(x, i) + 8 * k);
            }
        }
    }
}

static inline void store_data(const vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                              const vm_access *x, uint32_t mask) {
    if (mask == VM_FULL && x->how == CONTIGUOUS && ip->count == 1 && x->space != VM_SPACE_LOCAL &&
        ip->bytes >= 4 && (ip->bytes == 8) == ip->wide) {
        memcpy(x->host + x->lo, regs + ip->v[0], ip->bytes == 4 ? 128 : 256);
        return;
    }
    if (x->lanes && x->group == CONTIGUOUS && ip->count == 1 && (ip->bytes == 8) == ip->wide) {
        size_t each = (size_t)x->lanes * ip->bytes;
        for (unsigned g = 0; g < 32; g += x->lanes)
            memcpy(x->host + lane_offset(x, g), regs + ip->v[0] + (size_t)g * ip->bytes, each);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint8_t *p = lane_host(w, x, i);
        for (unsigned k = 0; k < ip->count; k++, p += ip->bytes)
            store_element(p, ip->bytes,
                          ip->wide ? CSLOT(uint64_t, ip->v[k])[i] : CSLOT(uint32_t, ip->v[k])[i]);
    }
}

#include "fitness/vm/exec_race.h"

/* ---- handlers */

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

static inline bool load_from(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                             vm_access *x) {
    if (!locate(w, ip, x, mask))
        return false;
    if (!check_initialised(w, ip, x, mask) || !race_load(w, ip, x, mask)) {
        stop_trap(w);
        return false;
    }
    count_access(w, ip, x, mask, false);
    load_data(w, ip, regs, x, mask);
    return true;
}
static inline bool store_to(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                            vm_access *x) {
    if (!locate(w, ip, x, mask))
        return false;
    if (!race_store(w, ip, regs, x, mask) || !note_write(w, ip, x, mask)) {
        stop_trap(w);
        return false;
    }
    count_access(w, ip, x, mask, true);
    store_data(w, ip, regs, x, mask);
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

#define MEMORY_HANDLER(name, spaceid, access)                                                      \
    HANDLER(name##_##spaceid) {                                                                    \
        uint64_t space[32];                                                                        \
        vm_access x = {.addr = addresses(ip, regs, space),                                         \
                       .bias = (uint64_t)ip->imm - space_origin(VM_SPACE_##spaceid),               \
                       .bytes = (unsigned)ip->bytes * ip->count,                                   \
                       .space = VM_SPACE_##spaceid};                                               \
        if (!access(w, ip, regs, mask, &x))                                                        \
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
MEMORY_HANDLER(load, GLOBAL, load_from)
MEMORY_HANDLER(load, SHARED, load_from)
MEMORY_HANDLER(load, LOCAL, load_from)
MEMORY_HANDLER(load, CONST, load_from)
MEMORY_HANDLER(load, PARAM, load_from)
GENERIC_HANDLER(load, load_from)
MEMORY_HANDLER(store, GLOBAL, store_to)
MEMORY_HANDLER(store, SHARED, store_to)
MEMORY_HANDLER(store, LOCAL, store_to)
GENERIC_HANDLER(store, store_to)

/* Parameters of a call live in the frame, e bytes a lane. */
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
/* Parameters of an entry: the same bytes for every lane, inside by the loader's check. */
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

/* ---- atomics: lane after lane, in order of the lanes */

typedef void (*atomic_fn)(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,
                          bool give_old);

static inline bool atomic_on(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                             vm_access *x, atomic_fn one, bool give_old) {
    if (!locate(w, ip, x, mask))
        return false;
    if (x->space != VM_SPACE_GLOBAL && x->space != VM_SPACE_SHARED) {
        out_of_bounds(w, ip, x, (unsigned)__builtin_ctz(mask));
        stop_trap(w);
        return false;
    }
    uint64_t change = w->state->last_change;
    if (!check_initialised(w, ip, x, mask) || !race_atomic(w, ip, x, mask) ||
        !note_write(w, ip, x, mask)) {
        stop_trap(w);
        return false;
    }
    uint64_t sum = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint8_t *p = lane_host(w, x, i);
        uint64_t before = load_element(p, x->bytes, false);
        one(p, ip, regs, i, give_old);
        sum |= before ^ load_element(p, x->bytes, false);
    }
    if (!sum) /* a lock that stays taken changes nothing */
        w->state->last_change = change;
    w->state->result->counters.atomics += (unsigned)__builtin_popcount(mask);
    count_access(w, ip, x, mask, true);
    return true;
}

#define ATOMIC_HANDLER(T, id, expr, give)                                                          \
    static void one_##id##_##T(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,      \
                               bool give_old) {                                                    \
        MT_##T raw = LOAD_AS(MT_##T, at);                                                          \
        CT_##T old = GET_##T(raw), b = GET_##T(CSLOT(LT(T), ip->b)[lane]);                         \
        CT_##T c = ip->c == PTX_NONE ? b : GET_##T(CSLOT(LT(T), ip->c)[lane]);                     \
        (void)old, (void)b, (void)c;                                                               \
        STORE_AS(MT_##T, at, PUT_##T(expr));                                                       \
        if (give_old)                                                                              \
            SLOT(LT(T), ip->d)[lane] = raw;                                                        \
    }                                                                                              \
    static bool each_##id##_##T(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,      \
                                vm_access *x) {                                                    \
        return atomic_on(w, ip, regs, mask, x, one_##id##_##T, give);                              \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        uint64_t space[32];                                                                        \
        vm_access x = {.addr = addresses(ip, regs, space),                                         \
                       .bytes = sizeof(MT_##T),                                                    \
                       .space = ip->space,                                                         \
                       .bias = (uint64_t)ip->imm - space_origin(ip->space)};                       \
        bool ok = ip->space == VM_SPACE_GENERIC                                                    \
                      ? each_space(w, ip, regs, mask, &x, each_##id##_##T)                         \
                      : each_##id##_##T(w, ip, regs, mask, &x);                                    \
        if (!ok)                                                                                   \
            return NULL;                                                                           \
        NEXT;                                                                                      \
    }
#define MT_b16 uint16_t
#define MT_u32 uint32_t
#define MT_s32 uint32_t
#define MT_b32 uint32_t
#define MT_u64 uint64_t
#define MT_s64 uint64_t
#define MT_b64 uint64_t
#define MT_f32 uint32_t
#define MT_f64 uint64_t
#define MT_f16 uint16_t
#define MT_bf16 uint16_t
#define MT_f16x2 uint32_t
#define MT_bf16x2 uint32_t
/* Packed atomics add each half on its own. */
typedef struct pair {
    double lo, hi;
} pair;
#define ATOMIC_PAIR(T, H, id, give)                                                                \
    static void one_##id##_##T(uint8_t *at, const ptx_insn *ip, uint8_t *regs, unsigned lane,      \
                               bool give_old) {                                                    \
        uint32_t raw = LOAD_AS(uint32_t, at), b = CSLOT(uint32_t, ip->b)[lane];                    \
        uint32_t lo = PUT_##H(GET_##H(raw) + GET_##H(b));                                          \
        uint32_t hi = PUT_##H(GET_##H(raw >> 16) + GET_##H(b >> 16));                              \
        STORE_AS(uint32_t, at, lo | hi << 16);                                                     \
        if (give_old)                                                                              \
            SLOT(uint32_t, ip->d)[lane] = raw;                                                     \
    }                                                                                              \
    static bool each_##id##_##T(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,      \
                                vm_access *x) {                                                    \
        return atomic_on(w, ip, regs, mask, x, one_##id##_##T, give);                              \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        uint64_t space[32];                                                                        \
        vm_access x = {.addr = addresses(ip, regs, space),                                         \
                       .bytes = 4,                                                                 \
                       .space = ip->space,                                                         \
                       .bias = (uint64_t)ip->imm - space_origin(ip->space)};                       \
        bool ok = ip->space == VM_SPACE_GENERIC                                                    \
                      ? each_space(w, ip, regs, mask, &x, each_##id##_##T)                         \
                      : each_##id##_##T(w, ip, regs, mask, &x);                                    \
        if (!ok)                                                                                   \
            return NULL;                                                                           \
        NEXT;                                                                                      \
    }
#define ATOM_u32(id, expr, give) ATOMIC_HANDLER(u32, id, expr, give)
#define ATOM_s32(id, expr, give) ATOMIC_HANDLER(s32, id, expr, give)
#define ATOM_b16(id, expr, give) ATOMIC_HANDLER(b16, id, expr, give)
#define ATOM_b32(id, expr, give) ATOMIC_HANDLER(b32, id, expr, give)
#define ATOM_u64(id, expr, give) ATOMIC_HANDLER(u64, id, expr, give)
#define ATOM_s64(id, expr, give) ATOMIC_HANDLER(s64, id, expr, give)
#define ATOM_b64(id, expr, give) ATOMIC_HANDLER(b64, id, expr, give)
#define ATOM_f32(id, expr, give) ATOMIC_HANDLER(f32, id, expr, give)
#define ATOM_f64(id, expr, give) ATOMIC_HANDLER(f64, id, expr, give)
#define ATOM_f16(id, expr, give) ATOMIC_HANDLER(f16, id, expr, give)
#define ATOM_bf16(id, expr, give) ATOMIC_HANDLER(bf16, id, expr, give)
#define ATOM_f16x2(id, expr, give) ATOMIC_PAIR(f16x2, f16, id, give)
#define ATOM_bf16x2(id, expr, give) ATOMIC_PAIR(bf16x2, bf16, id, give)
#define H_ATOM(T, id, expr) ATOM_##T(id, expr, true)
#define H_RED(T, id, expr) ATOM_##T(id, expr, false)
