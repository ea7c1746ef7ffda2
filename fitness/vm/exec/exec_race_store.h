/* Races of stores: is a write ordered after the writes and reads of the same bytes before it?
 * Continues exec_race.h, which has the terms, the entries and the loads. */

/* ---- stores */

/* Lanes of this very store that share a word: fine if they store the same. */
static bool same_values(const ptx_insn *ip, const uint8_t *regs, unsigned i, unsigned j) {
    for (unsigned k = 0; k < ip->count; k++)
        if (ip->wide ? CSLOT(uint64_t, ip->v[k])[i] != CSLOT(uint64_t, ip->v[k])[j]
                     : CSLOT(uint32_t, ip->v[k])[i] != CSLOT(uint32_t, ip->v[k])[j])
            return false;
    return true;
}

/* The scope and extent of the message of a strong write: which threads learn which accesses of its
 * warp. `passed`: the message of the entry that an atomic overwrites, which the atomic passes on (a
 * release sequence). */
static inline vm_race_how strong_how(const vm_warp *w, const ptx_insn *ip, vm_race_how passed) {
    bool all = w->fenced >= 2 || (ip->releases && !ip->of_block) || passed == VM_RACE_ALL_TOLD;
    bool block = w->fenced || ip->releases || passed == VM_RACE_ALL_TOLD_BLOCK ||
                 passed == VM_RACE_BLOCK_TOLD;
    if (ip->of_block)
        return all || block ? VM_RACE_BLOCK_TOLD : VM_RACE_BLOCK;
    vm_race_how nearer = block ? VM_RACE_ALL_TOLD_BLOCK : VM_RACE_ALL;
    return all ? VM_RACE_ALL_TOLD : nearer;
}

/* An entry of reads names one warp; it need not be the one that the write meets. */
static const char *over_what(uint32_t read) {
    if (read & VM_RACE_BLOCKS)
        return "a write over what several blocks read, first";
    return read & VM_RACE_WARPS ? "a write over what several warps read, last"
                                : "a write over what was read";
}

/* Whether the lane's plain store leaves memory as it is, where the launch takes such stores. */
static bool is_no_change(const vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                         const vm_access *x, unsigned lane) {
    if (!w->takes_same || ip->strong || !regs)
        return false;
    const uint8_t *there = lane_host(w, x, lane);
    for (unsigned k = 0; k < ip->count; k++) {
        const void *value = ip->wide ? (const void *)&CSLOT(uint64_t, ip->v[k])[lane]
                                     : (const void *)&CSLOT(uint32_t, ip->v[k])[lane];
        if (memcmp(there + (size_t)k * ip->bytes, value, ip->bytes) != 0)
            return false;
    }
    return true;
}

/* `regs`: of a store; NULL: of an atomic. */
static bool check_lane_write(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                             const vm_access *x, unsigned lane, const race_access *a) {
    race_planes p = planes_of(w, x->space);
    for (unsigned k = 0; k < words_of(x); k++) {
        race_cells c = cells_of(w, x, p, lane, k);
        for (unsigned b = 0; b < c.count; b++) {
            uint32_t e = c.writes[b], r = c.reads[b];
            if (e > a->horizon && write_conflicts(w, e, a, lane) &&
                !is_no_change(w, ip, regs, x, lane))
                return race_found(w, ip, x, lane, e, "a write over what was written");
            if (r > a->horizon && read_conflicts(w, r, a, lane))
                return race_found(w, ip, x, lane, r, over_what(r));
        }
    }
    return true;
}

static void write_lane(vm_warp *w, const vm_access *x, unsigned lane, uint32_t entry) {
    race_planes p = planes_of(w, x->space);
    for (unsigned k = 0; k < words_of(x); k++) {
        race_cells c = cells_of(w, x, p, lane, k);
        for (unsigned b = 0; b < c.count; b++)
            c.writes[b] = entry | lane_bits(lane) | (c.writes[b] & c.keep);
    }
}

/* The lanes of this weak store that share a word. */
static __attribute__((noinline)) bool check_sharing(vm_warp *w, const ptx_insn *ip,
                                                    const uint8_t *regs, const vm_access *x,
                                                    uint32_t mask) {
    race_planes p = planes_of(w, x->space);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint32_t *e = cells_of(w, x, p, i, 0).writes;
        unsigned winner = (*e & VM_RACE_LANE) >> VM_RACE_LANE_SHIFT;
        if (winner == i)
            continue;
        if (!same_values(ip, regs, i, winner))
            return race_found(w, ip, x, i, *e, "different values written in one instruction");
        *e |= VM_RACE_WEAK_MANY << VM_RACE_HOW_SHIFT;
    }
    return true;
}

static __attribute__((noinline)) bool store_lanes_race(vm_warp *w, const ptx_insn *ip,
                                                       const uint8_t *regs, const vm_access *x,
                                                       uint32_t mask, race_access a) {
    if (ip->strong && w->ranked) {
        vm_rank_reach(w, ip, false);
        a = race_access_of(w, ip, x, true);
    }
    for (uint32_t left = mask; left; left &= left - 1)
        if (!check_lane_write(w, ip, regs, x, (unsigned)__builtin_ctz(left), &a))
            return false;
    uint32_t how = ip->strong ? strong_how(w, ip, VM_RACE_WEAK) : VM_RACE_WEAK;
    for (uint32_t left = mask; left; left &= left - 1)
        write_lane(w, x, (unsigned)__builtin_ctz(left), a.stamp | how << VM_RACE_HOW_SHIFT);
    return ip->strong || check_sharing(w, ip, regs, x, mask);
}

static ALWAYS_INLINE bool words_old(const uint32_t *entries, unsigned n, uint32_t horizon) {
    uint32_t newest = 0;
    VECTORS for (unsigned j = 0; j < n; j++) newest = entries[j] > newest ? entries[j] : newest;
    return newest <= horizon;
}

/* Or of the same lane in the same stamp, weak and alone: `keep`, the bits that tell. */
static ALWAYS_INLINE bool words_own(const uint32_t *entries, unsigned n, unsigned shift,
                                    unsigned first, uint32_t keep, uint32_t stamp,
                                    uint32_t horizon) {
    uint32_t met = 0;
    VECTORS for (unsigned j = 0; j < n; j++) {
        uint32_t e = entries[j], own = stamp | lane_bits(first + (j >> shift));
        met |= (uint32_t)((e > horizon) & ((e & keep) != own));
    }
    return !met;
}

/* Groups of n lanes, contiguous within each, no word in two; false: an entry is not old. Marks
 * the words as written. */
static ALWAYS_INLINE bool store_groups_race(const vm_warp *w, const vm_access *x, unsigned n,
                                            unsigned each, uint32_t mine, uint32_t horizon) {
    race_planes p = planes_of(w, x->space);
    unsigned words = n * each, shift = (unsigned)__builtin_ctz(each);
    const uint32_t all = ~0u, but_written = ~(uint32_t)VM_RACE_WRITTEN;
    for (unsigned g = 0; g < 32; g += n) {
        uint64_t at = lane_offset(x, g) / 4;
        if (!words_old(p.writes + at, words, horizon) &&
            !words_own(p.writes + at, words, shift, g, but_written, mine, horizon))
            return false;
        if (!words_old(p.reads + at, words, horizon) &&
            !words_own(p.reads + at, words, shift, g, all, mine, horizon))
            return false;
    }
    mine |= VM_RACE_WRITTEN;
    for (unsigned g = 0; g < 32; g += n) {
        uint32_t *writes = p.writes + lane_offset(x, g) / 4;
        VECTORS for (unsigned i = 0; i < words; i++) writes[i] = mine | lane_bits(g + (i >> shift));
    }
    return true;
}

static inline bool groups_apart(const vm_access *x) {
    if (!x->lanes || x->group != CONTIGUOUS)
        return false;
    uint64_t span = (uint64_t)x->lanes * x->bytes, low = 0;
    for (unsigned i = x->lanes; i < 32; i += x->lanes) /* mostly they ascend */
        low |= lane_offset(x, i) < lane_offset(x, i - x->lanes) + span;
    if (!low || x->lanes == 1)
        return !low;
    for (unsigned i = 0; i < 32; i += x->lanes)
        for (unsigned j = 0; j < i; j += x->lanes) {
            uint64_t a = lane_offset(x, i), b = lane_offset(x, j);
            if ((a > b ? a - b : b - a) < span)
                return false;
        }
    return true;
}

/* A full warp's weak store of whole words in rows; false: look closer. */
static inline bool store_rows_race(const vm_warp *w, const vm_access *x, uint32_t mine,
                                   uint32_t horizon) {
    if (x->how == CONTIGUOUS)
        return x->bytes == 4 ? store_groups_race(w, x, 32, 1, mine, horizon)
                             : store_groups_race(w, x, 32, words_of(x), mine, horizon);
    if (!groups_apart(x))
        return false;
    if (x->lanes == 1 && words_of(x) == 4)
        return store_groups_race(w, x, 1, 4, mine, horizon);
    if (x->lanes == 1)
        return words_of(x) == 2 ? store_groups_race(w, x, 1, 2, mine, horizon)
                                : store_groups_race(w, x, 1, 1, mine, horizon);
    if (x->lanes == 4)
        return x->bytes == 16 ? store_groups_race(w, x, 4, 4, mine, horizon)
                              : store_groups_race(w, x, 4, 2, mine, horizon);
    return x->lanes == 16 ? store_groups_race(w, x, 16, words_of(x), mine, horizon)
                          : store_groups_race(w, x, 8, words_of(x), mine, horizon);
}

/* *marked: it marked the words as written. */
static __attribute__((noinline)) bool check_store_race(vm_warp *w, const ptx_insn *ip,
                                                       const uint8_t *regs, const vm_access *x,
                                                       uint32_t mask, bool *marked) {
    race_access a = race_access_of(w, ip, x, ip->strong);
    *marked = x->bytes >= 4 && !ip->strong;
    if (*marked && mask == VM_FULL && store_rows_race(w, x, a.stamp, a.horizon))
        return true;
    if (*marked && store_is_clear(w, x, mask, &a))
        return !write_words(w, x, mask, a.stamp) || check_sharing(w, ip, regs, x, mask);
    *marked = false;
    return store_lanes_race(w, ip, regs, x, mask, a);
}

static inline bool race_store(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                              const vm_access *x, uint32_t mask) {
    bool marked;
    if (__builtin_expect(w->check_end, 0) && !check_ended(w, ip, x, mask))
        return false;
    return !races_matter(w, x) || check_store_race(w, ip, regs, x, mask, &marked);
}

/* race_store and note_write in one look at the entries. */
static ALWAYS_INLINE bool check_store(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                                      const vm_access *x, uint32_t mask) {
    bool marked = false;
    if (__builtin_expect(w->check_end, 0) && !check_ended(w, ip, x, mask))
        return false;
    if (races_matter(w, x) && !check_store_race(w, ip, regs, x, mask, &marked))
        return false;
    return marked ? allow_write(w, ip, x, mask) : note_write(w, ip, x, mask);
}

/* An atomic is a strong read and a strong write. The lanes of one instruction take turns. An atomic
 * passes on the message of the entry that it overwrites (a release sequence). */
static inline bool race_atomic(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    if (!races_matter(w, x))
        return true;
    if (__builtin_expect(w->check_end, 0) && !check_ended(w, ip, x, mask))
        return false;
    if (w->ranked)
        reach_and_take(w, ip, x, mask, true);
    else
        take_messages(w, ip, x, mask);
    race_access a = race_access_of(w, ip, x, true);
    race_planes p = planes_of(w, x->space);
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (!check_lane_write(w, ip, NULL, x, i, &a))
            return false;
        for (unsigned k = 0; k < words_of(x); k++) {
            race_cells c = cells_of(w, x, p, i, k);
            for (unsigned b = 0; b < c.count; b++) {
                uint32_t how = strong_how(w, ip, how_of(c.writes[b]));
                c.writes[b] =
                    a.stamp | how << VM_RACE_HOW_SHIFT | lane_bits(i) | (c.writes[b] & c.keep);
            }
        }
    }
    return true;
}

/* ---- ordering */

static inline void race_sync_warp(vm_warp *w) {
    w->stamp = 0;
}
static inline void race_fence(vm_warp *w, const ptx_insn *ip) {
    uint8_t far = ip->of_system ? 3 : 2, reach = ip->of_block ? 1 : far;
    w->fenced = reach > w->fenced ? reach : w->fenced;
    race_acquires(w, ip);
}
