/* Race detection: are two accesses to the same bytes, at least one of them a write, ordered?
 *
 * The detector is a happens-before detector with epochs, like FastTrack (Flanagan and Freund,
 * "FastTrack: Efficient and Precise Dynamic Race Detection", PLDI 2009), with one scalar horizon a
 * warp in place of vector clocks. The shadow has two 32-bit entries a word of memory: the last
 * write and the last read. An entry is a stamp and flags (vm_memory.h shows the bits). A stamp
 * names one warp between two of its synchronisations. Stamps grow with time, and a table maps a
 * stamp to its warp. An earlier access is ordered before this access in three cases:
 *
 *   - its stamp is at or below the horizon: the stamp of the warp's last barrier, of the last
 * message that the warp took (see below), or of the begin of the launch;
 *   - its stamp is an earlier stamp of the same warp;
 *   - its stamp is the same, and so is its lane.
 *
 * Strong accesses (atomic, volatile, relaxed and stronger: PTX ISA, "Memory Consistency Model") do
 * not race with each other where each is in the scope of the other. A strong read that sees a
 * strong write after a fence takes the message of that write: everything until now counts as
 * ordered before the reader's stores and strong reads. Its plain loads from global memory are
 * ordered only from the next acquire fence on (or if the read acquires): before the fence, hardware
 * may give them an older value (check_fenced). A barrier passes on what one of its threads fenced.
 * The memory model grants less than all this, so the detector may miss a race, but never raises a
 * false alarm.
 *
 * A word that was accessed in parts has one entry a byte, in a separate table (vm_race.c). Such
 * accesses take the slow way: lane by lane, cell by cell, where a cell is the range of one entry.
 *
 * A read of shared memory before any write is an uninitialised read. The read is also a race if
 * another warp writes the word before the next barrier. The race is the more useful report, so the
 * trap is deferred to that barrier or to the end of the block, whichever comes first
 * (vm_trap_defer). */

static inline bool races_matter(const vm_warp *w, const vm_access *x) {
    if (!w->check_races)
        return false;
    return x->space == VM_SPACE_SHARED ||
           (x->space == VM_SPACE_GLOBAL && (x->lane_kinds || x->kind != VM_BUFFER_IN));
}

/* The access being checked. */
typedef struct race_access {
    uint32_t stamp; /* where entries have it */
    uint32_t horizon;
    bool strong, of_block; /* strong for its own block only */
    bool lone;             /* lone_stamp */
} race_access;

static inline uint32_t lane_bits(unsigned lane) {
    return lane << VM_RACE_LANE_SHIFT;
}

/* Whether an entry's stamp was given in the warp's own block. */
static bool of_same_block(const vm_warp *w, uint32_t e) {
    return vm_race_owner(w->state, e >> VM_RACE_SHIFT) >> 5 == vm_race_self(w) >> 5;
}

/* Entries up to this one are ordered before the warp, whoever made them. Shared memory is the
 * block's own; in global memory the block's barrier orders only the block's accesses. */
static inline uint32_t horizon_of(const vm_warp *w, uint8_t space) {
    uint32_t h = w->acquired;
    if (space == VM_SPACE_SHARED && w->sync_stamp > h)
        h = w->sync_stamp;
    return ((h + 1) << VM_RACE_SHIFT) - 1;
}

/* Is an entry beyond the horizon and not of this warp's stamp always another warp's of its block?
 * So it is in shared memory when the warp has had one stamp only since the barrier. */
static inline bool lone_stamp(const vm_warp *w, uint8_t space) {
    return space == VM_SPACE_SHARED && w->stamp == w->first_since_barrier;
}

static inline race_access race_access_of(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                         bool strong) {
    if (__builtin_expect(!w->stamp, 0))
        vm_race_stamp(w);
    return (race_access){.stamp = w->stamp << VM_RACE_SHIFT,
                         .horizon = horizon_of(w, x->space),
                         .strong = strong,
                         .of_block = ip->of_block,
                         .lone = lone_stamp(w, x->space)};
}

/* Is the stamp of another warp, and no barrier between? */
static bool foreign(const vm_warp *w, uint32_t stamp, bool any_warp) {
    uint64_t owner = vm_race_owner(w->state, stamp), me = vm_race_self(w);
    if (owner == me && !any_warp)
        return false;
    return owner >> 5 != me >> 5 || stamp > w->sync_stamp;
}

/* Both strong, and each in the other's scope. */
static bool both_strong(const vm_warp *w, uint32_t e, bool strong, bool of_block,
                        const race_access *a) {
    return strong && a->strong && (!(of_block || a->of_block) || of_same_block(w, e)) &&
           (!w->ranked || vm_rank_meets(w, e >> VM_RACE_SHIFT));
}

static inline vm_race_how how_of(uint32_t e) {
    return (vm_race_how)((e & VM_RACE_HOW) >> VM_RACE_HOW_SHIFT);
}

/* Of a launch that this one follows on the streams of the ranks (vm_stream.c). */
static inline bool of_earlier_launch(const vm_warp *w, uint32_t stamp) {
    return stamp <= w->state->races->launch_stamp;
}

/* Does the earlier write `e` race with an access by `lane` of this warp? */
static bool write_conflicts(const vm_warp *w, uint32_t e, const race_access *a, unsigned lane) {
    uint32_t stamp = e >> VM_RACE_SHIFT;
    vm_race_how how = how_of(e);
    if (stamp > VM_RACE_STAMPS)
        return true;
    bool of_block = how == VM_RACE_BLOCK || how == VM_RACE_BLOCK_TOLD;
    if (stamp <= w->acquired || both_strong(w, e, how >= VM_RACE_BLOCK, of_block, a))
        return false;
    if (of_earlier_launch(w, stamp))
        return !vm_stream_knew(w, stamp);
    if (stamp == w->stamp)
        return how != VM_RACE_WEAK_SOME &&
               (how == VM_RACE_WEAK_MANY || (e & VM_RACE_LANE) != lane_bits(lane));
    return foreign(w, stamp, false);
}

/* Does the earlier read `e`, which may stand for several warps', race with a write? */
static bool read_conflicts(const vm_warp *w, uint32_t e, const race_access *a, unsigned lane) {
    uint32_t stamp = e >> VM_RACE_SHIFT;
    bool of_block = e & VM_RACE_OF_BLOCK, blocks = e & VM_RACE_BLOCKS;
    bool strong = e & VM_RACE_STRONG && !(blocks && (of_block || a->of_block));
    if (stamp <= w->acquired || both_strong(w, e, strong, of_block, a))
        return false;
    if (of_earlier_launch(w, stamp))
        return !vm_stream_knew(w, stamp);
    if (stamp == w->stamp && !(e & VM_RACE_WARPS))
        return !(e & VM_RACE_SOME_READ) &&
               (e & VM_RACE_MANY || (e & VM_RACE_LANE) != lane_bits(lane));
    return blocks || foreign(w, stamp, e & VM_RACE_WARPS);
}

static __attribute__((noinline)) bool race_found(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                                 unsigned lane, uint32_t e, const char *what) {
    uint64_t address = x->addr[lane] + (uint64_t)ip->imm;
    if (e >> VM_RACE_SHIFT == VM_RACE_GAP) {
        vm_trap_raise(w, ip, VM_TRAP_OUT_OF_BOUNDS, lane, &address,
                      "an access of %u bytes between the variables of shared memory", x->bytes);
        return false;
    }
    if (e >> VM_RACE_SHIFT > VM_RACE_STAMPS) {
        bool copy = e >> VM_RACE_SHIFT == VM_RACE_COPY;
        vm_trap_raise(w, ip, VM_TRAP_RACE_SHARED, lane, &address, "%s",
                      copy ? "cp.async not waited for: a copy may still be writing these bytes"
                           : "an mbarrier stands here: only mbarrier instructions may touch it");
        return false;
    }
    char owner[80];
    bool far = vm_rank_name(w, e >> VM_RACE_SHIFT, owner, sizeof owner);
    if (x->space == VM_SPACE_SHARED)
        vm_trap_drop_deferred(w, lane_offset(x, lane), x->bytes);
    vm_trap_raise(w, ip, x->space == VM_SPACE_SHARED ? VM_TRAP_RACE_SHARED : VM_TRAP_RACE_GLOBAL,
                  lane, &address, "%s by %s, which nothing %sorders", what, owner,
                  far ? "of scope .sys " : "");
    return false;
}

/* ---- cells */

/* `count` neighbours; `keep`: bits of an entry of writes that stay. */
typedef struct race_cells {
    uint32_t *writes, *reads;
    unsigned count;
    uint32_t keep;
} race_cells;

/* The cells of lane i's word k. They may move when other cells are asked for. */
static inline race_cells cells_of(vm_warp *w, const vm_access *x, race_planes p, unsigned i,
                                  unsigned k) {
    uint64_t at = lane_offset(x, i);
    uint64_t word = at / 4 + k;
    if (__builtin_expect(x->bytes >= 4 &&
                             (p.writes[word] < VM_RACE_IN_BYTES || vm_race_join(w, x->space, word)),
                         1))
        return (race_cells){p.writes + word, p.reads + word, 1, VM_RACE_WRITTEN};
    vm_race_word *b = vm_race_split(w, x->space, word);
    unsigned first = x->bytes < 4 ? at & 3 : 0;
    return (race_cells){b->writes + first, b->reads + first, x->bytes < 4 ? x->bytes : 4, 0};
}

/* A strong read takes the message of a strong write that came after a fence, be it of another lane
 * of its own warp. */
static inline void take_message(vm_warp *w, const ptx_insn *ip, uint32_t e, unsigned lane) {
    vm_race_how how = how_of(e);
    if (w->state->heard && ip->of_system && how >= VM_RACE_BLOCK)
        vm_apart_see(w, e >> VM_RACE_SHIFT);
    if (how != VM_RACE_ALL_TOLD && how != VM_RACE_ALL_TOLD_BLOCK && how != VM_RACE_BLOCK_TOLD)
        return;
    if (how != VM_RACE_ALL_TOLD && !of_same_block(w, e))
        return;
    uint32_t stamp = e >> VM_RACE_SHIFT;
    if (w->state->heard && ip->of_system)
        vm_apart_hear(w, stamp);
    if (w->ranked && !vm_rank_tells(w, stamp))
        return;
    if (of_earlier_launch(w, stamp) && vm_stream_knew(w, stamp)) /* so it tells nothing new */
        return;
    if (vm_race_owner(w->state, stamp) == vm_race_self(w)) {
        if ((e & VM_RACE_LANE) != lane_bits(lane))
            w->stamp = 0;
    } else if (stamp > w->acquired) {
        vm_race_acquire(w);
    }
}

/* An acquire fence, or a strong read with acquire semantics: what the warp was told until now is
 * ordered before its plain loads. */
static inline void race_acquires(vm_warp *w, const ptx_insn *ip) {
    w->loads_block = w->acquired;
    if (ip->of_block)
        return;
    w->loads_all = w->acquired;
    if (ip->of_system || !w->ranked)
        w->loads_system = w->acquired;
}

static void take_messages(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    race_planes p = planes_of(w, x->space);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        for (unsigned k = 0; k < words_of(x); k++) {
            race_cells c = cells_of(w, x, p, i, k);
            for (unsigned b = 0; b < c.count; b++)
                take_message(w, ip, c.writes[b], i);
        }
    }
    if (ip->acquires)
        race_acquires(w, ip);
}

/* Called before a strong access. If there are ranks, the warp's stamp must say how far it reaches,
 * also after messages gave the warp a new stamp. An atomic passes on the message of the entry that
 * it overwrites, if this message is for other ranks. */
static __attribute__((noinline)) void
reach_and_take(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask, bool atomic) {
    race_planes p = planes_of(w, x->space);
    bool passes = false;
    vm_rank_reach(w, ip, false);
    for (uint32_t left = atomic ? mask : 0; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        for (unsigned k = 0; k < words_of(x); k++) {
            uint32_t e = cells_of(w, x, p, i, k).writes[0];
            passes |= how_of(e) == VM_RACE_ALL_TOLD && vm_rank_tells(w, e >> VM_RACE_SHIFT);
        }
    }
    take_messages(w, ip, x, mask);
    vm_rank_reach(w, ip, passes);
}

/* Whether the block's last barrier orders the access that an entry of global memory stands for. */
static inline bool before_barrier(const vm_warp *w, uint32_t e) {
    return e >> VM_RACE_SHIFT <= w->sync_stamp && !(e & VM_RACE_BLOCKS) && of_same_block(w, e);
}

/* The entry of a read after the read `old`. For warps of one block, the newest stamp is kept,
 * because barriers order the block. For several blocks, the oldest stamp is kept: no message has
 * ordered any of them, so a stamp above the horizon is above it for all. */
static inline uint32_t merged_read(const vm_warp *w, uint32_t old, const race_access *a,
                                   unsigned lane) {
    uint32_t strong = a->strong ? VM_RACE_STRONG | (a->of_block ? VM_RACE_OF_BLOCK : 0) : 0;
    uint32_t stamp = old >> VM_RACE_SHIFT;
    if (old <= a->horizon || before_barrier(w, old) ||
        (of_earlier_launch(w, stamp) && vm_stream_knew(w, stamp)))
        return a->stamp | strong | lane_bits(lane);
    uint32_t how = (old & strong & VM_RACE_STRONG) | ((old | strong) & VM_RACE_OF_BLOCK);
    uint32_t base = a->stamp | how | lane_bits(lane);
    if (stamp == w->stamp)
        return base | (old & VM_RACE_KEPT) |
               ((old & VM_RACE_LANE) != lane_bits(lane) ? VM_RACE_MANY : 0);
    if (old & VM_RACE_BLOCKS || !of_same_block(w, old))
        return (old & ~(uint32_t)VM_RACE_STRONG) | how | VM_RACE_WARPS | VM_RACE_BLOCKS;
    return vm_race_owner(w->state, stamp) == vm_race_self(w) && !(old & VM_RACE_WARPS)
               ? base
               : base | VM_RACE_WARPS;
}

/* ---- whole words, lane by lane
 *
 * For accesses without a pattern, by some lanes only, or to words that the same lanes accessed
 * since the last barrier. The result is that of the slow functions below, if no entry but the
 * lane's own is newer than the horizon. */

/* Whether the entry, of a write or a read, is a weak one of this lane and stamp alone. */
static inline bool is_own(uint32_t e, const race_access *a, unsigned lane) {
    return (e & ~(uint32_t)VM_RACE_WRITTEN) == (a->stamp | lane_bits(lane));
}

/* Has the entry another stamp of this warp? *known: one that has, of those seen. */
static inline bool of_earlier_stamp(const vm_warp *w, uint32_t e, uint32_t *known) {
    uint32_t stamp = e >> VM_RACE_SHIFT;
    if (stamp == *known)
        return true;
    if (stamp == w->stamp || stamp > VM_RACE_STAMPS ||
        vm_race_owner(w->state, stamp) != vm_race_self(w))
        return false;
    *known = stamp;
    return true;
}

/* Of `each` words a lane. */
static ALWAYS_INLINE bool writes_met(const vm_warp *w, const vm_access *x, uint32_t mask,
                                     const race_access *a, unsigned each, uint32_t *written) {
    const uint32_t *writes = planes_of(w, x->space).writes;
    uint32_t all = *written, known = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = lane_offset(x, i) / 4;
        for (unsigned k = 0; k < each; k++) {
            uint32_t e = writes[at + k];
            if (e > a->horizon && !is_own(e, a, i) && !of_earlier_stamp(w, e, &known))
                return true;
            all &= e;
        }
    }
    *written = all;
    return false;
}
/* True: the words hold no write that a weak load races with. *written loses the bits that some word
 * lacks. */
static inline bool load_is_clear(const vm_warp *w, const vm_access *x, uint32_t mask,
                                 const race_access *a, uint32_t *written) {
    return x->bytes == 4 ? !writes_met(w, x, mask, a, 1, written)
                         : !writes_met(w, x, mask, a, words_of(x), written);
}

static inline uint32_t kept_of_read(uint32_t old, uint32_t own, uint32_t horizon, unsigned lane,
                                    uint32_t others);
static ALWAYS_INLINE void read_each(const vm_warp *w, const vm_access *x, uint32_t mask,
                                    race_access a, unsigned each) {
    uint32_t *reads = planes_of(w, x->space).reads, own = a.stamp >> VM_RACE_SHIFT;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = lane_offset(x, i) / 4;
        for (unsigned k = 0; k < each; k++) {
            uint32_t old = reads[at + k], entry = a.stamp | lane_bits(i);
            reads[at + k] = a.lone || old <= a.horizon
                                ? entry | kept_of_read(old, own, a.horizon, i, VM_RACE_WARPS)
                                : merged_read(w, old, &a, i);
        }
    }
}
/* Weak reads. */
static inline void read_lanes(const vm_warp *w, const vm_access *x, uint32_t mask,
                              const race_access *a) {
    if (x->bytes == 4)
        read_each(w, x, mask, *a, 1);
    else
        read_each(w, x, mask, *a, words_of(x));
}

/* Writes or reads that a weak store may meet, of `each` words a lane. An entry of a read has to be
 * this lane's own to the last bit, of no other lane, warp or block; or the warp's alone before. */
static ALWAYS_INLINE bool accesses_met(const vm_warp *w, const vm_access *x, uint32_t mask,
                                       const race_access *a, unsigned each) {
    race_planes p = planes_of(w, x->space);
    uint32_t known = 0, several = VM_RACE_WARPS | VM_RACE_BLOCKS;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = lane_offset(x, i) / 4;
        for (unsigned k = 0; k < each; k++) {
            uint32_t e = p.writes[at + k], r = p.reads[at + k];
            if (e > a->horizon && !is_own(e, a, i) && !of_earlier_stamp(w, e, &known))
                return true;
            if (r > a->horizon && r != (a->stamp | lane_bits(i)) &&
                (r & several || !of_earlier_stamp(w, r, &known)))
                return true;
        }
    }
    return false;
}
/* True: the words hold no access that a weak store races with; false: look closer. */
static inline bool store_is_clear(const vm_warp *w, const vm_access *x, uint32_t mask,
                                  const race_access *a) {
    return x->bytes == 4 ? !accesses_met(w, x, mask, a, 1)
                         : !accesses_met(w, x, mask, a, words_of(x));
}

/* Entries of a weak store by the lanes of `mask`, of words that have one entry each; marks them as
 * written. Do lanes share words? */
static ALWAYS_INLINE bool write_each(const vm_warp *w, const vm_access *x, uint32_t mask,
                                     uint32_t stamp, unsigned each) {
    uint32_t *writes = planes_of(w, x->space).writes, shared = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t at = lane_offset(x, i) / 4;
        for (unsigned k = 0; k < each; k++)
            writes[at + k] = stamp | lane_bits(i) | VM_RACE_WRITTEN;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        shared |= (writes[lane_offset(x, i) / 4] & VM_RACE_LANE) ^ lane_bits(i);
    }
    return shared != 0;
}
static inline bool write_words(const vm_warp *w, const vm_access *x, uint32_t mask,
                               uint32_t stamp) {
    return x->bytes == 4 ? write_each(w, x, mask, stamp, 1)
                         : write_each(w, x, mask, stamp, words_of(x));
}

/* ---- loads */

/* Without VM_CHECK_PLAIN, plain loads race with plain writes alone. They take no messages. */
static inline bool reads_strongly(const vm_warp *w, const ptx_insn *ip) {
    return ip->strong || w->takes_plain;
}

static bool load_cells_race(vm_warp *w, const ptx_insn *ip, const vm_access *x, unsigned lane,
                            race_cells c, const race_access *a) {
    for (unsigned b = 0; b < c.count; b++) {
        uint32_t e = c.writes[b];
        if (e > a->horizon && write_conflicts(w, e, a, lane))
            return race_found(w, ip, x, lane, e, "a read of what was written");
        c.reads[b] = merged_read(w, c.reads[b], a, lane);
    }
    return true;
}

static __attribute__((noinline)) bool load_lanes_race(vm_warp *w, const ptx_insn *ip,
                                                      const vm_access *x, uint32_t mask) {
    race_planes p = planes_of(w, x->space);
    if (ip->strong && w->ranked)
        reach_and_take(w, ip, x, mask, false);
    else if (ip->strong)
        take_messages(w, ip, x, mask);
    race_access a = race_access_of(w, ip, x, reads_strongly(w, ip));
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        for (unsigned k = 0; k < words_of(x); k++) {
            if (!load_cells_race(w, ip, x, i, cells_of(w, x, p, i, k), &a))
                return false;
        }
    }
    return true;
}

/* The bits of an earlier read that stay in the entry of a weak read of whole words: merged_read for
 * `lane`, without the bits that it always sets. `others`: VM_RACE_WARPS if reads of other stamps
 * are of other warps. All reads are of the same block, and none is before_barrier. */
static inline uint32_t kept_of_read(uint32_t old, uint32_t own, uint32_t horizon, unsigned lane,
                                    uint32_t others) {
    uint32_t kept =
        old >> VM_RACE_SHIFT == own
            ? (old & VM_RACE_KEPT) | ((old & VM_RACE_LANE) != lane_bits(lane) ? VM_RACE_MANY : 0)
            : others | (old & VM_RACE_WARPS);
    return old > horizon ? kept : 0;
}

/* Of stamps seen beyond the horizon that are not the warp's own: least and greatest. */
typedef struct stamp_range {
    uint32_t lo, hi;
} stamp_range;
static inline void widen_stamps(stamp_range *s, uint32_t old, uint32_t own, uint32_t horizon) {
    uint32_t stamp = old >> VM_RACE_SHIFT;
    bool other = (old > horizon) & (stamp != own);
    uint32_t least = old & VM_RACE_BLOCKS ? 0 : stamp;
    s->lo = (other & (least < s->lo)) ? least : s->lo;
    s->hi = (other & (stamp > s->hi)) ? stamp : s->hi;
}
/* False: the stamps are several, and so may be their warps; or they are of other blocks; or a
 * barrier came since. */
static inline bool whose_stamps(const vm_warp *w, stamp_range s, uint32_t *others) {
    *others = 0;
    if (!s.hi)
        return true;
    if (vm_race_owner(w->state, s.hi) != vm_race_self(w))
        *others = VM_RACE_WARPS;
    return s.lo == s.hi && s.lo > w->sync_stamp && of_same_block(w, s.hi << VM_RACE_SHIFT);
}

/* From here, weak reads of whole words where no write is newer than the horizon. */

static ALWAYS_INLINE void keep_row(uint32_t *reads, unsigned first, unsigned count, unsigned shift,
                                   race_access r, uint32_t others) {
    VECTORS for (unsigned j = 0; j < count; j++) {
        unsigned lane = first + (j >> shift);
        reads[j] = r.stamp | lane_bits(lane) |
                   kept_of_read(reads[j], r.stamp >> VM_RACE_SHIFT, r.horizon, lane, others);
    }
}

/* By a group of n lanes from `first`: contiguous, each lane `each` words. */
static ALWAYS_INLINE void read_row(const vm_warp *w, uint32_t *reads, unsigned first, unsigned n,
                                   unsigned each, race_access r) {
    unsigned shift = (unsigned)__builtin_ctz(each);
    if (__builtin_expect(r.lone, 1)) {
        keep_row(reads, first, n << shift, shift, r, VM_RACE_WARPS);
        return;
    }
    uint32_t others;
    stamp_range seen = {UINT32_MAX, 0};
    VECTORS for (unsigned j = 0; j < n << shift; j++)
        widen_stamps(&seen, reads[j], r.stamp >> VM_RACE_SHIFT, r.horizon);
    if (whose_stamps(w, seen, &others)) {
        keep_row(reads, first, n << shift, shift, r, others);
        return;
    }
    for (unsigned j = 0; j < n << shift; j++)
        reads[j] = merged_read(w, reads[j], &r, first + (j >> shift));
}

/* merged_read for `last` of several lanes; `entry`: of all of them, where no other read counts. */
static inline uint32_t merged_same(const vm_warp *w, uint32_t old, uint32_t entry,
                                   const race_access *r, unsigned last) {
    uint32_t merged = merged_read(w, old, r, last);
    bool is_own = merged >> VM_RACE_SHIFT == entry >> VM_RACE_SHIFT;
    return is_own ? entry | (merged & VM_RACE_KEPT) : merged; /* else an older read is kept */
}

/* The same words read by the lanes of `mask`. */
static ALWAYS_INLINE void read_same(const vm_warp *w, uint32_t *reads, unsigned words,
                                    uint32_t mask, race_access r) {
    unsigned first = (unsigned)__builtin_ctz(mask), last = 31 - (unsigned)__builtin_clz(mask);
    uint32_t entry = r.stamp | lane_bits(last) | (first == last ? 0 : VM_RACE_MANY);
    for (unsigned k = 0; k < words; k++)
        reads[k] = r.lone ? entry | kept_of_read(reads[k], r.stamp >> VM_RACE_SHIFT, r.horizon,
                                                 last, VM_RACE_WARPS)
                          : merged_same(w, reads[k], entry, &r, last);
}

/* Groups of n lanes, `each` words a lane. */
static ALWAYS_INLINE void read_groups(const vm_warp *w, const vm_access *x, pattern how, unsigned n,
                                      unsigned each, race_access r) {
    uint32_t *plane = planes_of(w, x->space).reads;
    for (unsigned i = 0; i < 32; i += n) {
        uint32_t *reads = plane + lane_offset(x, i) / 4;
        if (how == UNIFORM)
            read_same(w, reads, each, (uint32_t)low_mask(n) << i, r);
        else
            read_row(w, reads, i, n, each, r);
    }
}

/* All lanes anywhere, one word each. False: look closer. */
static inline bool read_words(const vm_warp *w, const vm_access *x, race_access r) {
    uint32_t *reads = planes_of(w, x->space).reads;
    uint32_t own = r.stamp >> VM_RACE_SHIFT, others = VM_RACE_WARPS, old[32], extra[32], any = 0;
    uint64_t word[32];
    LANES word[i] = (x->addr[i] + x->bias) >> 2;
    LANES old[i] = reads[word[i]];
    if (!r.lone) {
        stamp_range seen = {UINT32_MAX, 0};
        LANES widen_stamps(&seen, old[i], own, r.horizon);
        if (!whose_stamps(w, seen, &others))
            return false;
    }
    for (unsigned i = 0; i < 32; i++)
        reads[word[i]] = r.stamp | lane_bits(i);
    LANES {
        extra[i] = kept_of_read(old[i], own, r.horizon, i, others) |
                   ((reads[word[i]] & VM_RACE_LANE) != lane_bits(i) ? VM_RACE_MANY : 0);
        any |= extra[i];
    }
    for (unsigned i = 0; any && i < 32; i++)
        reads[word[i]] |= extra[i];
    return true;
}

static ALWAYS_INLINE bool read_pattern(const vm_warp *w, const vm_access *x, uint32_t mask,
                                       race_access r) {
    unsigned each = words_of(x);
    if (x->how == UNIFORM)
        read_same(w, planes_of(w, x->space).reads + x->lo / 4, each, mask, r);
    else if (x->how == CONTIGUOUS && each == 1)
        read_groups(w, x, CONTIGUOUS, 32, 1, r);
    else if (x->how == CONTIGUOUS)
        read_groups(w, x, CONTIGUOUS, 32, each, r);
    else if (x->lanes == 16 && each == 1 && x->group == UNIFORM)
        read_groups(w, x, UNIFORM, 16, 1, r);
    else if (x->lanes == 16 && each == 1)
        read_groups(w, x, CONTIGUOUS, 16, 1, r);
    else if (x->lanes == 4 && each == 4)
        read_groups(w, x, CONTIGUOUS, 4, 4, r);
    else if (!x->lanes || (each == 1 && x->lanes == 1))
        return read_words(w, x, r);
    else if (x->lanes == 1 && each == 2)
        read_groups(w, x, CONTIGUOUS, 1, 2, r);
    else if (x->lanes == 1)
        read_groups(w, x, CONTIGUOUS, 1, 4, r);
    else if (x->group == UNIFORM)
        read_groups(w, x, UNIFORM, x->lanes, each, r);
    else
        read_groups(w, x, CONTIGUOUS, x->lanes, each, r);
    return true;
}

/* Whether the write is one that a flag told the warp of, without an acquire fence since. */
static bool is_unfenced(const vm_warp *w, uint32_t e) {
    uint32_t stamp = e >> VM_RACE_SHIFT;
    uint32_t ordered = of_same_block(w, e) ? w->loads_block : w->loads_all;
    if (w->ranked && vm_rank_is_peer(w, stamp))
        ordered = w->loads_system;
    if (of_earlier_launch(w, stamp) && vm_stream_knew(w, stamp))
        return false;
    return stamp > ordered && stamp <= w->acquired && foreign(w, stamp, false);
}

/* Plain loads from global memory while a flag was read and not fenced. */
static __attribute__((noinline)) bool check_fenced(vm_warp *w, const ptx_insn *ip,
                                                   const vm_access *x, uint32_t mask) {
    race_planes p = planes_of(w, x->space);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        for (unsigned k = 0; k < words_of(x); k++) {
            race_cells c = cells_of(w, x, p, i, k);
            for (unsigned b = 0; b < c.count; b++)
                if (is_unfenced(w, c.writes[b]))
                    return race_found(w, ip, x, i, c.writes[b],
                                      w->ranked && vm_rank_is_peer(w, c.writes[b] >> VM_RACE_SHIFT)
                                          ? "a flag was read without an acquire fence of scope "
                                            ".sys after it: a read of what was written"
                                          : "a flag was read without an acquire fence after it: a "
                                            "read of what was written");
        }
    }
    return true;
}

static inline bool is_fenced(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (__builtin_expect(w->acquired == w->loads_system, 1) || !w->check_fences || ip->strong ||
        x->space != VM_SPACE_GLOBAL)
        return true;
    return check_fenced(w, ip, x, mask);
}

/* ---- ranks that begin and end apart (vm_apart.c) */

/* Whether all lanes access their own rank's memory. */
static inline bool stays_home(const vm_warp *w, const vm_access *x) {
    const vm_memory *m = w->state->memory;
    return x->space != VM_SPACE_GLOBAL || (x->lo >= m->first && x->hi <= m->first + m->reserved);
}

static __attribute__((noinline)) bool check_begun(vm_warp *w, const ptx_insn *ip,
                                                  const vm_access *x, uint32_t mask) {
    for (uint32_t left = stays_home(w, x) ? 0 : mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (!vm_apart_readable(w, ip, i, VM_GLOBAL_BASE + lane_offset(x, i), lane_kind(w, x, i),
                               x->bytes))
            return false;
    }
    return true;
}

static __attribute__((noinline)) bool check_ended(vm_warp *w, const ptx_insn *ip,
                                                  const vm_access *x, uint32_t mask) {
    for (uint32_t left = stays_home(w, x) ? 0 : mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (!vm_apart_writable(w, ip, i, VM_GLOBAL_BASE + lane_offset(x, i), x->bytes))
            return false;
    }
    return true;
}

/* ---- any load */

static inline bool race_load(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (__builtin_expect(w->check_begin, 0) && !check_begun(w, ip, x, mask))
        return false;
    if (!races_matter(w, x))
        return true;
    if (!is_fenced(w, ip, x, mask))
        return false;
    row_state s = {0, VM_RACE_WRITTEN};
    bool strong = reads_strongly(w, ip);
    race_access r = race_access_of(w, ip, x, strong);
    if (x->bytes >= 4 && !strong && look_at_writes(w, x, mask, &s) && s.newest <= r.horizon &&
        read_pattern(w, x, mask, r))
        return true;
    return load_lanes_race(w, ip, x, mask);
}

/* Checks a load for races and, if `init`, for bytes that were never written. */
static __attribute__((noinline)) bool
check_load_race(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask, bool init) {
    row_state s = {0, VM_RACE_WRITTEN};
    bool strong = reads_strongly(w, ip);
    race_access r = race_access_of(w, ip, x, strong);
    if (x->bytes >= 4 && !strong && look_at_writes(w, x, mask, &s) && s.newest <= r.horizon &&
        (s.written == VM_RACE_WRITTEN || !init) && read_pattern(w, x, mask, r))
        return true;
    uint32_t written = VM_RACE_WRITTEN;
    if (x->bytes >= 4 && !strong && !x->lane_kinds && load_is_clear(w, x, mask, &r, &written) &&
        (written == VM_RACE_WRITTEN || !init)) {
        read_lanes(w, x, mask, &r);
        return true;
    }
    return load_lanes_race(w, ip, x, mask) && (!init || check_lanes_initialised(w, ip, x, mask));
}

/* check_initialised and race_load, with one pass over the entries. If both fail, the race is
 * reported, since it says more. */
static ALWAYS_INLINE bool check_load(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                     uint32_t mask) {
    bool init = needs_init(w, x);
    if (__builtin_expect(w->check_begin, 0) && !check_begun(w, ip, x, mask))
        return false;
    if (!races_matter(w, x))
        return !init || check_initialised(w, ip, x, mask);
    if (!is_fenced(w, ip, x, mask))
        return false;
    return check_load_race(w, ip, x, mask, init);
}
