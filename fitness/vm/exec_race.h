/* Races: are two accesses to a word, at least one a write, ordered?
 *
 * Two planes of shadow, a 32-bit entry a word of memory: the last write and the last read. An entry
 * is a stamp and flags. A stamp names a warp between two of its syncs; stamps grow with time, and a
 * table tells whose each is. An earlier access is ordered before this one when
 *   - its stamp is at or below the horizon: of the last barrier of the block, of the last message
 *     that the warp took (see below), or of the launch's begin;
 *   - or it is an earlier stamp of the same warp;
 *   - or the same stamp and the same lane.
 * Strong accesses (atomic, volatile, relaxed and up) do not race with each other. A strong read of
 * a word that another warp wrote strongly after a fence takes its message: all that happened until
 * now counts as ordered before the reader. That is more than the memory model grants: it may miss a
 * race, it gives no false alarm. Accesses of less than a word do not race with each other. */

#define RACE_LANE 31u
#define RACE_MANY 32u /* several lanes of that warp */
#define RACE_STRONG 64u
#define RACE_RELEASED 128u /* a write behind a fence */
#define RACE_WARPS 128u    /* reads: several warps */
#define RACE_PARTIAL 256u
#define RACE_SHIFT 9

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

static inline uint32_t own_entry(vm_warp *w, const vm_access *x, bool strong) {
    if (__builtin_expect(!w->stamp, 0))
        vm_race_stamp(w);
    return w->stamp << RACE_SHIFT | (strong ? RACE_STRONG : 0) | (x->bytes < 4 ? RACE_PARTIAL : 0);
}

/* Entries up to this one are ordered before the warp, whoever made them. Shared memory is the
 * block's own; in global memory the block's barrier orders only the block's accesses. */
static inline uint32_t horizon_of(const vm_warp *w, uint8_t space) {
    uint32_t h = w->acquired;
    if (space == VM_SPACE_SHARED && w->block->sync_stamp > h)
        h = w->block->sync_stamp;
    return ((h + 1) << RACE_SHIFT) - 1;
}

/* Does the earlier access `e` race with one by `lane` of this warp, entry `mine`? */
static bool conflicts(const vm_warp *w, uint32_t e, uint32_t mine, unsigned lane) {
    uint32_t stamp = e >> RACE_SHIFT;
    if ((e & RACE_STRONG) && (mine & RACE_STRONG))
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
    return owner >> 5 != me >> 5 || stamp > w->block->sync_stamp;
}

/* As conflicts, for the entry of reads, which may stand for several warps. */
static bool reads_conflict(const vm_warp *w, uint32_t e, uint32_t mine, unsigned lane) {
    if (!(e & RACE_WARPS))
        return conflicts(w, e, mine, lane);
    uint32_t stamp = e >> RACE_SHIFT;
    bool strong = (e & RACE_STRONG) && (mine & RACE_STRONG);
    bool partial = (e & RACE_PARTIAL) && (mine & RACE_PARTIAL);
    if (strong || partial || stamp <= w->acquired)
        return false;
    uint64_t owner = vm_race_owner(w->state, stamp), me = vm_race_self(w);
    return owner >> 5 != me >> 5 || stamp > w->block->sync_stamp;
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
    uint32_t part = old & mine & RACE_PARTIAL;
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
    uint32_t mine = own_entry(w, x, ip->strong), horizon = horizon_of(w, x->space);
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

/* All lanes, one word each: no earlier write beyond the horizon, no reads but old or own ones. */
static inline bool load_words_fast(const vm_warp *w, const vm_access *x, uint32_t mine,
                                   uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    uint32_t own = mine >> RACE_SHIFT, newest = 0, foreign = 0;
    if (x->how == CONTIGUOUS) {
        uint32_t *writes = p.writes + x->lo / 4, *reads = p.reads + x->lo / 4;
        LANES {
            uint32_t e = writes[i], r = reads[i];
            newest = e > newest ? e : newest;
            foreign |= (r > horizon) & ((r & ~RACE_LANE) != mine || (r & RACE_LANE) != i);
        }
        if (newest > horizon || foreign)
            return false;
        LANES reads[i] = mine | i;
        return true;
    }
    uint64_t word[32];
    LANES word[i] = (x->addr[i] + x->bias) >> 2;
    LANES {
        uint32_t e = p.writes[word[i]], r = p.reads[word[i]];
        newest = e > newest ? e : newest;
        foreign |= (r > horizon) & (r >> RACE_SHIFT != own);
        foreign |= (r > horizon) & ((r & (RACE_STRONG | RACE_WARPS | RACE_PARTIAL)) != 0);
    }
    if (newest > horizon || foreign)
        return false;
    uint32_t old[32];
    LANES old[i] = p.reads[word[i]];
    for (unsigned i = 0; i < 32; i++)
        p.reads[word[i]] = mine | i;
    for (unsigned i = 0; i < 32; i++) {
        uint32_t now = p.reads[word[i]];
        bool many = (now & RACE_LANE) != i || (old[i] > horizon && (old[i] & RACE_LANE) != i) ||
                    (old[i] > horizon && old[i] & RACE_MANY);
        if (many)
            p.reads[word[i]] = now | RACE_MANY;
    }
    return true;
}

static inline bool race_load(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (!races_matter(w, x))
        return true;
    uint32_t mine = own_entry(w, x, ip->strong), horizon = horizon_of(w, x->space);
    if (x->how == UNIFORM && words_of(x) == 1) {
        race_planes p = planes_of(w, x->space);
        uint32_t *read = &p.reads[x->lo / 4];
        bool several = (mask & (mask - 1)) != 0;
        if (p.writes[x->lo / 4] <= horizon && !ip->strong &&
            (*read <= horizon || *read == (mine | RACE_MANY))) {
            *read = mine | (several ? RACE_MANY : (uint32_t)__builtin_ctz(mask));
            return true;
        }
    } else if (mask == VM_FULL && x->bytes == 4 && !ip->strong &&
               load_words_fast(w, x, mine, horizon)) {
        return true;
    }
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
    uint32_t released = ip->strong && (w->fenced || ip->releases) ? RACE_RELEASED : 0;
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

static inline bool race_store(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                              const vm_access *x, uint32_t mask) {
    if (!races_matter(w, x))
        return true;
    uint32_t mine = own_entry(w, x, ip->strong), horizon = horizon_of(w, x->space);
    if (mask == VM_FULL && x->how == CONTIGUOUS && x->bytes >= 4 && !ip->strong) {
        race_planes p = planes_of(w, x->space);
        uint32_t *writes = p.writes + x->lo / 4, *reads = p.reads + x->lo / 4, newest = 0;
        unsigned n = x->bytes * 8, each = x->bytes / 4;
        for (unsigned i = 0; i < n; i++) {
            newest = writes[i] > newest ? writes[i] : newest;
            newest = reads[i] > newest ? reads[i] : newest;
        }
        if (newest <= horizon) {
            if (each == 1)
                LANES writes[i] = mine | i;
            else
                for (unsigned i = 0; i < n; i++)
                    writes[i] = mine | (i / each);
            return true;
        }
    }
    return store_lanes_race(w, ip, regs, x, mask, mine, horizon);
}

/* An atomic reads and writes, strongly; lanes of one instruction take turns. What it overwrites
 * passes its message on (a release sequence). */
static inline bool race_atomic(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (!races_matter(w, x))
        return true;
    take_messages(w, x, mask);
    uint32_t mine = own_entry(w, x, true), horizon = horizon_of(w, x->space);
    race_planes p = planes_of(w, x->space);
    uint32_t released = w->fenced || ip->releases ? RACE_RELEASED : 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t word = lane_offset(x, i) / 4;
        if (!check_lane_write(w, ip, x, i, mine, horizon))
            return false;
        for (unsigned k = 0; k < words_of(x); k++) {
            uint32_t e = p.writes[word + k], passed = e & RACE_STRONG ? e & RACE_RELEASED : 0;
            p.writes[word + k] = mine | released | passed | i;
        }
    }
    return true;
}

/* ---- what orders */

static inline void race_sync_warp(vm_warp *w) {
    w->stamp = 0;
}
static inline void race_fence(vm_warp *w) {
    w->fenced = true;
}
