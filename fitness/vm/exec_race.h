/* Races: are two accesses to a word, at least one a write, ordered?
 *
 * Two planes of shadow, a 32-bit entry a word of memory: the last write and the last read. An entry
 * is a stamp and flags. A stamp names a warp between two of its syncs; stamps grow with time, and a
 * table tells whose each is. An earlier access is ordered before this one when
 *   - its stamp is at or below the horizon: of the warp's last barrier, of the last message
 *     that the warp took (see below), or of the launch's begin;
 *   - or it is an earlier stamp of the same warp;
 *   - or the same stamp and the same lane.
 * Strong accesses (atomic, volatile, relaxed and up) do not race with each other where each is in
 * the other's scope. A strong read of
 * a word that another warp wrote strongly after a fence takes its message: all that happened until
 * now counts as ordered before the reader. That is more than the memory model grants: it may miss a
 * race, it gives no false alarm. Accesses of less than a word do not race with each other. */

#define RACE_LANE 31u
#define RACE_MANY 32u /* several lanes of that warp */
#define RACE_STRONG 64u
#define RACE_RELEASED 128u /* a write behind a fence */
#define RACE_WARPS 128u    /* reads: several warps */
#define RACE_PARTIAL 256u
#define RACE_OF_BLOCK 512u  /* strong for its own block only: scope .cta */
#define RACE_TO_BLOCK 1024u /* released to its own block only */
#define RACE_SHIFT 11

/* The loops over entries are worth it only where their counts are constants. */
#define ALWAYS_INLINE inline __attribute__((always_inline))

typedef struct race_planes {
    uint32_t *writes, *reads;
} race_planes;

static inline race_planes planes_of(const vm_warp *w, uint8_t space) {
    if (space == VM_SPACE_SHARED)
        return (race_planes){w->block->shared_races,
                             w->block->shared_races + w->state->shared_bytes / 4};
    const vm_memory *m = w->state->memory;
    return (race_planes){m->races, m->races + m->reserved / 4};
}

static inline bool races_matter(const vm_warp *w, const vm_access *x) {
    if (!w->check_races)
        return false;
    return x->space == VM_SPACE_SHARED ||
           (x->space == VM_SPACE_GLOBAL && (x->lane_kinds || x->kind != VM_BUFFER_IN));
}

static inline uint32_t own_entry(vm_warp *w, const ptx_insn *ip, const vm_access *x, bool strong) {
    if (__builtin_expect(!w->stamp, 0))
        vm_race_stamp(w);
    uint32_t strength = strong ? RACE_STRONG | (ip->of_block ? RACE_OF_BLOCK : 0) : 0;
    return w->stamp << RACE_SHIFT | strength | (x->bytes < 4 ? RACE_PARTIAL : 0);
}

/* Whether an entry's stamp was given in the warp's own block. */
static bool of_same_block(const vm_warp *w, uint32_t e) {
    return vm_race_owner(w->state, e >> RACE_SHIFT) >> 5 == vm_race_self(w) >> 5;
}

/* Both strong, and each in the other's scope. */
static bool both_strong(const vm_warp *w, uint32_t e, uint32_t mine) {
    return (e & mine & RACE_STRONG) && (!((e | mine) & RACE_OF_BLOCK) || of_same_block(w, e));
}

/* Entries up to this one are ordered before the warp, whoever made them. Shared memory is the
 * block's own; in global memory the block's barrier orders only the block's accesses. */
static inline uint32_t horizon_of(const vm_warp *w, uint8_t space) {
    uint32_t h = w->acquired;
    if (space == VM_SPACE_SHARED && w->sync_stamp > h)
        h = w->sync_stamp;
    return ((h + 1) << RACE_SHIFT) - 1;
}

/* Does the earlier access `e` race with one by `lane` of this warp, entry `mine`? */
static bool conflicts(const vm_warp *w, uint32_t e, uint32_t mine, unsigned lane) {
    uint32_t stamp = e >> RACE_SHIFT;
    if (both_strong(w, e, mine))
        return false;
    if ((e & RACE_PARTIAL) && (mine & RACE_PARTIAL))
        return false;
    if (stamp <= w->acquired)
        return false;
    if (stamp == w->stamp)
        return e & RACE_MANY || (e & RACE_LANE) != lane;
    uint64_t owner = vm_race_owner(w->state, stamp), me = vm_race_self(w);
    if (owner == me)
        return false;
    return owner >> 5 != me >> 5 || stamp > w->sync_stamp;
}

/* As conflicts, for the entry of reads, which may stand for several warps. */
static bool reads_conflict(const vm_warp *w, uint32_t e, uint32_t mine, unsigned lane) {
    if (!(e & RACE_WARPS))
        return conflicts(w, e, mine, lane);
    uint32_t stamp = e >> RACE_SHIFT;
    bool strong = both_strong(w, e, mine);
    bool partial = (e & RACE_PARTIAL) && (mine & RACE_PARTIAL);
    if (strong || partial || stamp <= w->acquired)
        return false;
    uint64_t owner = vm_race_owner(w->state, stamp), me = vm_race_self(w);
    return owner >> 5 != me >> 5 || stamp > w->sync_stamp;
}

static __attribute__((noinline)) bool race_found(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                                 unsigned lane, uint32_t e, const char *what) {
    uint64_t address = x->addr[lane] + (uint64_t)ip->imm;
    uint64_t owner = vm_race_owner(w->state, e >> RACE_SHIFT);
    vm_trap_raise(w, ip, x->space == VM_SPACE_SHARED ? VM_TRAP_RACE_SHARED : VM_TRAP_RACE_GLOBAL,
                  lane, &address, "%s by warp %u of block %u, which nothing orders", what,
                  (unsigned)(owner & 31), (unsigned)(owner >> 5));
    return false;
}

/* A strong read takes the message of a strong write that came after a fence, be it of another lane
 * of its own warp. */
static inline void take_message(vm_warp *w, uint32_t e, unsigned lane) {
    if ((e & (RACE_STRONG | RACE_RELEASED)) != (RACE_STRONG | RACE_RELEASED))
        return;
    if (e & RACE_TO_BLOCK && !of_same_block(w, e))
        return;
    if (vm_race_owner(w->state, e >> RACE_SHIFT) == vm_race_self(w)) {
        if ((e & RACE_LANE) != lane)
            w->stamp = 0;
    } else if (e >> RACE_SHIFT > w->acquired) {
        vm_race_acquire(w);
    }
}

static inline uint32_t merged_read(const vm_warp *w, uint32_t old, uint32_t mine, unsigned lane,
                                   uint32_t horizon) {
    if (old <= horizon)
        return mine | lane;
    uint32_t stamp = old >> RACE_SHIFT;
    uint32_t weak = ~(old & mine) & RACE_STRONG ? 0 : RACE_STRONG;
    uint32_t part = (old & mine & RACE_PARTIAL) | (old & RACE_OF_BLOCK);
    uint32_t base = (mine & ~(RACE_STRONG | RACE_PARTIAL | RACE_LANE)) | weak | part | lane;
    if (stamp == w->stamp)
        return base | (old & (RACE_MANY | RACE_WARPS)) |
               ((old & RACE_LANE) != lane ? RACE_MANY : 0);
    return vm_race_owner(w->state, stamp) == vm_race_self(w) && !(old & RACE_WARPS)
               ? base
               : base | RACE_WARPS;
}

static inline unsigned words_of(const vm_access *x) {
    return x->bytes < 4 ? 1 : x->bytes / 4;
}

/* ---- loads */

static void take_messages(vm_warp *w, const vm_access *x, uint32_t mask) {
    race_planes p = planes_of(w, x->space);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        for (unsigned k = 0; k < words_of(x); k++)
            take_message(w, p.writes[lane_offset(x, i) / 4 + k], i);
    }
}

static __attribute__((noinline)) bool load_lanes_race(vm_warp *w, const ptx_insn *ip,
                                                      const vm_access *x, uint32_t mask) {
    race_planes p = planes_of(w, x->space);
    if (ip->strong)
        take_messages(w, x, mask);
    uint32_t mine = own_entry(w, ip, x, ip->strong), horizon = horizon_of(w, x->space);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t word = lane_offset(x, i) / 4;
        for (unsigned k = 0; k < words_of(x); k++) {
            uint32_t e = p.writes[word + k];
            if (e > horizon && conflicts(w, e, mine, i))
                return race_found(w, ip, x, i, e, "a read of what was written");
            p.reads[word + k] = merged_read(w, p.reads[word + k], mine, i, horizon);
        }
    }
    return true;
}

/* What an earlier read leaves in the entry of a weak read of whole words: merged_read for `lane`,
 * without what it always has. `others`: RACE_WARPS where the reads of other stamps are of other
 * warps. */
static inline uint32_t kept_of_read(uint32_t old, uint32_t own, uint32_t horizon, unsigned lane,
                                    uint32_t others) {
    uint32_t kept = old >> RACE_SHIFT == own ? (old & (RACE_MANY | RACE_WARPS)) |
                                                   ((old & RACE_LANE) != lane ? RACE_MANY : 0)
                                             : others | (old & RACE_WARPS);
    return old > horizon ? kept : 0;
}

/* Of stamps seen beyond the horizon that are not the warp's own: least and greatest. */
typedef struct stamp_range {
    uint32_t lo, hi;
} stamp_range;
static inline void widen_stamps(stamp_range *s, uint32_t old, uint32_t own, uint32_t horizon) {
    uint32_t stamp = old >> RACE_SHIFT;
    bool other = (old > horizon) & (stamp != own);
    s->lo = (other & (stamp < s->lo)) ? stamp : s->lo;
    s->hi = (other & (stamp > s->hi)) ? stamp : s->hi;
}
/* False: the stamps are several, and so may be their warps. */
static inline bool whose_stamps(const vm_warp *w, stamp_range s, uint32_t *others) {
    *others = s.hi && vm_race_owner(w->state, s.hi) != vm_race_self(w) ? RACE_WARPS : 0;
    return s.lo >= s.hi;
}

/* A weak read by a group of n lanes from `first`: contiguous, each lane `each` words. */
static ALWAYS_INLINE void read_row(const vm_warp *w, uint32_t *reads, unsigned first, unsigned n,
                                   unsigned each, uint32_t mine, uint32_t horizon) {
    uint32_t own = mine >> RACE_SHIFT, others;
    unsigned shift = (unsigned)__builtin_ctz(each);
    stamp_range seen = {UINT32_MAX, 0};
    for (unsigned j = 0; j < n << shift; j++)
        widen_stamps(&seen, reads[j], own, horizon);
    if (whose_stamps(w, seen, &others)) {
        for (unsigned j = 0; j < n << shift; j++) {
            unsigned lane = first + (j >> shift);
            reads[j] = mine | lane | kept_of_read(reads[j], own, horizon, lane, others);
        }
        return;
    }
    for (unsigned j = 0; j < n << shift; j++)
        reads[j] = merged_read(w, reads[j], mine, first + (j >> shift), horizon);
}

/* The same words read by the lanes of `mask`. */
static inline void read_same(const vm_warp *w, uint32_t *reads, unsigned words, uint32_t mask,
                             uint32_t mine, uint32_t horizon) {
    unsigned first = (unsigned)__builtin_ctz(mask), last = 31 - (unsigned)__builtin_clz(mask);
    for (unsigned k = 0; k < words; k++) {
        uint32_t e = merged_read(w, reads[k], mine, first, horizon);
        reads[k] = first == last ? e : (e & ~RACE_LANE) | last | RACE_MANY;
    }
}

static ALWAYS_INLINE bool words_old(const uint32_t *entries, unsigned n, uint32_t horizon) {
    uint32_t newest = 0;
    for (unsigned j = 0; j < n; j++)
        newest = entries[j] > newest ? entries[j] : newest;
    return newest <= horizon;
}

/* Groups of n lanes, `each` words a lane; false: a write is not old, look closer. */
static ALWAYS_INLINE bool load_groups_race(const vm_warp *w, const vm_access *x, pattern how,
                                           unsigned n, unsigned each, uint32_t mine,
                                           uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    unsigned words = how == UNIFORM ? each : n * each;
    for (unsigned i = 0; i < 32; i += n)
        if (!words_old(p.writes + lane_offset(x, i) / 4, words, horizon))
            return false;
    for (unsigned i = 0; i < 32; i += n) {
        uint32_t *reads = p.reads + lane_offset(x, i) / 4;
        if (how == UNIFORM)
            read_same(w, reads, each, (uint32_t)low_mask(n) << i, mine, horizon);
        else
            read_row(w, reads, i, n, each, mine, horizon);
    }
    return true;
}

/* All lanes anywhere, one word each. */
static inline bool load_words_race(const vm_warp *w, const vm_access *x, uint32_t mine,
                                   uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    uint32_t own = mine >> RACE_SHIFT, newest = 0, others, old[32], extra[32], any = 0;
    uint64_t word[32];
    stamp_range seen = {UINT32_MAX, 0};
    LANES word[i] = (x->addr[i] + x->bias) >> 2;
    LANES {
        uint32_t e = p.writes[word[i]];
        newest = e > newest ? e : newest;
        old[i] = p.reads[word[i]];
    }
    LANES widen_stamps(&seen, old[i], own, horizon);
    if (newest > horizon || !whose_stamps(w, seen, &others))
        return false;
    for (unsigned i = 0; i < 32; i++)
        p.reads[word[i]] = mine | i;
    LANES {
        extra[i] = kept_of_read(old[i], own, horizon, i, others) |
                   ((p.reads[word[i]] & RACE_LANE) != i ? RACE_MANY : 0);
        any |= extra[i];
    }
    for (unsigned i = 0; any && i < 32; i++)
        p.reads[word[i]] |= extra[i];
    return true;
}

static inline bool load_fast(const vm_warp *w, const vm_access *x, uint32_t mask, uint32_t mine,
                             uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    unsigned each = words_of(x);
    if (x->how == UNIFORM) {
        if (!words_old(p.writes + x->lo / 4, each, horizon))
            return false;
        read_same(w, p.reads + x->lo / 4, each, mask, mine, horizon);
        return true;
    }
    if (mask != VM_FULL)
        return false;
    if (x->how == CONTIGUOUS)
        return each == 1 ? load_groups_race(w, x, CONTIGUOUS, 32, 1, mine, horizon)
                         : load_groups_race(w, x, CONTIGUOUS, 32, each, mine, horizon);
    if (x->lanes == 16 && each == 1)
        return x->group == UNIFORM ? load_groups_race(w, x, UNIFORM, 16, 1, mine, horizon)
                                   : load_groups_race(w, x, CONTIGUOUS, 16, 1, mine, horizon);
    if (x->lanes && x->group == UNIFORM)
        return load_groups_race(w, x, UNIFORM, x->lanes, each, mine, horizon);
    if (x->lanes)
        return load_groups_race(w, x, CONTIGUOUS, x->lanes, each, mine, horizon);
    return each == 1 && load_words_race(w, x, mine, horizon);
}

static inline bool race_load(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (!races_matter(w, x))
        return true;
    uint32_t mine = own_entry(w, ip, x, ip->strong), horizon = horizon_of(w, x->space);
    if (x->bytes >= 4 && !ip->strong && load_fast(w, x, mask, mine, horizon))
        return true;
    return load_lanes_race(w, ip, x, mask);
}

/* ---- stores */

/* Lanes of this very store that share a word: fine if they store the same. */
static bool same_values(const ptx_insn *ip, const uint8_t *regs, unsigned i, unsigned j) {
    for (unsigned k = 0; k < ip->count; k++)
        if (ip->wide ? CSLOT(uint64_t, ip->v[k])[i] != CSLOT(uint64_t, ip->v[k])[j]
                     : CSLOT(uint32_t, ip->v[k])[i] != CSLOT(uint32_t, ip->v[k])[j])
            return false;
    return true;
}

/* Whom a strong write tells what its warp did before. */
static inline uint32_t released_by(const vm_warp *w, const ptx_insn *ip) {
    if (w->fenced == 2 || (ip->releases && !ip->of_block))
        return RACE_RELEASED;
    return w->fenced || ip->releases ? RACE_RELEASED | RACE_TO_BLOCK : 0;
}

/* `released`, and what the entry that an atomic overwrites had released. */
static inline uint32_t passed_on(uint32_t e, uint32_t released) {
    uint32_t old = e & RACE_STRONG ? e & (RACE_RELEASED | RACE_TO_BLOCK) : 0;
    if (old == RACE_RELEASED || released == RACE_RELEASED)
        return RACE_RELEASED;
    return old | released;
}

static bool check_lane_write(vm_warp *w, const ptx_insn *ip, const vm_access *x, unsigned lane,
                             uint32_t mine, uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    uint64_t word = lane_offset(x, lane) / 4;
    for (unsigned k = 0; k < words_of(x); k++) {
        uint32_t e = p.writes[word + k], r = p.reads[word + k];
        if (e > horizon && conflicts(w, e, mine, lane))
            return race_found(w, ip, x, lane, e, "a write over what was written");
        if (r > horizon && reads_conflict(w, r, mine, lane))
            return race_found(w, ip, x, lane, r, "a write over what was read");
    }
    return true;
}

static __attribute__((noinline)) bool store_lanes_race(vm_warp *w, const ptx_insn *ip,
                                                       const uint8_t *regs, const vm_access *x,
                                                       uint32_t mask, uint32_t mine,
                                                       uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    for (uint32_t left = mask; left; left &= left - 1)
        if (!check_lane_write(w, ip, x, (unsigned)__builtin_ctz(left), mine, horizon))
            return false;
    uint32_t released = ip->strong ? released_by(w, ip) : 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t word = lane_offset(x, i) / 4;
        for (unsigned k = 0; k < words_of(x); k++)
            p.writes[word + k] = mine | released | i;
    }
    if (x->bytes < 4 || ip->strong)
        return true;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint32_t *e = &p.writes[lane_offset(x, i) / 4];
        unsigned winner = *e & RACE_LANE;
        if (winner == i)
            continue;
        if (!same_values(ip, regs, i, winner))
            return race_found(w, ip, x, i, *e, "different values written in one instruction");
        *e |= RACE_MANY;
    }
    return true;
}

/* Groups of n lanes, contiguous within each, no word in two; false: an entry is not old. */
static ALWAYS_INLINE bool store_groups_race(const vm_warp *w, const vm_access *x, unsigned n,
                                            uint32_t mine, uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    unsigned each = words_of(x), words = n * each;
    for (unsigned g = 0; g < 32; g += n) {
        uint64_t at = lane_offset(x, g) / 4;
        if (!words_old(p.writes + at, words, horizon) || !words_old(p.reads + at, words, horizon))
            return false;
    }
    for (unsigned g = 0; g < 32; g += n) {
        uint32_t *writes = p.writes + lane_offset(x, g) / 4;
        if (each == 1)
            for (unsigned i = 0; i < n; i++)
                writes[i] = mine | (g + i);
        else
            for (unsigned i = 0; i < words; i++)
                writes[i] = mine | (g + i / each);
    }
    return true;
}

static inline bool groups_apart(const vm_access *x) {
    if (!x->lanes || x->group != CONTIGUOUS)
        return false;
    uint64_t span = group_span(x);
    for (unsigned i = 0; i < 32; i += x->lanes)
        for (unsigned j = 0; j < i; j += x->lanes) {
            uint64_t a = lane_offset(x, i), b = lane_offset(x, j);
            if ((a > b ? a - b : b - a) < span)
                return false;
        }
    return true;
}

static inline bool race_store(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                              const vm_access *x, uint32_t mask) {
    if (!races_matter(w, x))
        return true;
    uint32_t mine = own_entry(w, ip, x, ip->strong), horizon = horizon_of(w, x->space);
    if (mask == VM_FULL && x->bytes >= 4 && !ip->strong) {
        if (x->how == CONTIGUOUS
                ? store_groups_race(w, x, 32, mine, horizon)
                : groups_apart(x) && (x->lanes == 16 ? store_groups_race(w, x, 16, mine, horizon)
                                                     : store_groups_race(w, x, 8, mine, horizon)))
            return true;
    }
    return store_lanes_race(w, ip, regs, x, mask, mine, horizon);
}

/* An atomic reads and writes, strongly; lanes of one instruction take turns. What it overwrites
 * passes its message on (a release sequence). */
static inline bool race_atomic(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (!races_matter(w, x))
        return true;
    take_messages(w, x, mask);
    uint32_t mine = own_entry(w, ip, x, true), horizon = horizon_of(w, x->space);
    race_planes p = planes_of(w, x->space);
    uint32_t released = released_by(w, ip);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t word = lane_offset(x, i) / 4;
        if (!check_lane_write(w, ip, x, i, mine, horizon))
            return false;
        for (unsigned k = 0; k < words_of(x); k++) {
            p.writes[word + k] = mine | passed_on(p.writes[word + k], released) | i;
        }
    }
    return true;
}

/* ---- what orders */

static inline void race_sync_warp(vm_warp *w) {
    w->stamp = 0;
}
static inline void race_fence(vm_warp *w, const ptx_insn *ip) {
    uint8_t reach = ip->of_block ? 1 : 2;
    w->fenced = reach > w->fenced ? reach : w->fenced;
}
