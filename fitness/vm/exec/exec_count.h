/* The cost of an access: 32-byte sectors, 128-byte lines, passes over the 32 banks of shared
 * memory. Also the counters and the observer's events. */

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

/* Sectors of an access made of groups of lanes: each group is one range. */
static unsigned list_groups(const vm_access *x, uint64_t origin, uint64_t *out) {
    unsigned n = 0;
    uint64_t span = x->group == CONTIGUOUS ? (uint64_t)x->lanes * x->bytes : x->bytes;
    for (unsigned i = 0; i < 32; i += x->lanes) {
        uint64_t lo = origin + lane_offset(x, i);
        unsigned before = n;
        for (uint64_t s = lo / 32; s <= (lo + span - 1) / 32; s++) {
            bool known = false;
            for (unsigned k = 0; k < before; k++)
                known |= out[k] == s;
            if (!known)
                out[n++] = s;
        }
    }
    return n;
}

/* Sectors of lanes that lie within 64 sectors: one bit for each sector. */
static unsigned list_near(const vm_access *x, uint32_t mask, uint64_t origin, uint64_t *out) {
    uint64_t seen = 0, first = x->lo / 32;
    unsigned n = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t sector = lane_offset(x, (unsigned)__builtin_ctz(left)) / 32;
        out[n] = origin / 32 + sector; /* the entry stays if the sector is new */
        n += (unsigned)(~seen >> (sector - first) & 1);
        seen |= 1ull << (sector - first);
    }
    return n;
}

/* Lists the sectors of an access to global memory: at most 32, and one more for each range that
 * begins inside a sector. */
static unsigned list_sectors(const vm_access *x, uint32_t mask, uint64_t *out) {
    uint64_t origin = x->space == VM_SPACE_GLOBAL ? VM_GLOBAL_BASE : 0;
    if (x->how == SCATTERED && x->lanes > 1 && mask == VM_FULL)
        return list_groups(x, origin, out);
    if (x->how != SCATTERED) {
        unsigned n = 0;
        for (uint64_t s = (origin + x->lo) / 32; s <= (origin + x->hi - 1) / 32; s++)
            out[n++] = s;
        return n;
    }
    if ((x->hi - 1) / 32 - x->lo / 32 < 64)
        return list_near(x, mask, origin, out);
    uint64_t at[32];
    unsigned n = 0;
    for (uint32_t left = mask; left; left &= left - 1) { /* neighbouring lanes mostly touch the
                                                            same sector */
        uint64_t sector = (origin + lane_offset(x, (unsigned)__builtin_ctz(left))) / 32;
        if (n == 0 || at[n - 1] != sector)
            at[n++] = sector;
    }
    return distinct(at, n, 0, out);
}

static unsigned count_lines(const uint64_t *sectors, unsigned count) {
    uint64_t lines[40];
    unsigned changes = count > 0;
    bool ascending = true;
    for (unsigned i = 1; i < count; i++) {
        ascending &= sectors[i] >= sectors[i - 1];
        changes += sectors[i] / 4 != sectors[i - 1] / 4;
    }
    return ascending ? changes : distinct(sectors, count, 2, lines);
}

/* Whether no two sectors share banks. Then no bank has to give two words. */
static bool has_banks_apart(const uint64_t *sectors, unsigned count) {
    unsigned seen = 0, twice = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned bit = 1u << (sectors[i] & 3);
        twice |= seen & bit;
        seen |= bit;
    }
    return twice == 0;
}

/* For at most four groups of lanes, which are mostly in ascending order. */
static unsigned count_group_sectors(const vm_access *x) {
    uint64_t span = x->group == CONTIGUOUS ? (uint64_t)x->lanes * x->bytes : x->bytes;
    uint64_t before = 0, out[40]; /* before: one past the last sector so far */
    unsigned n = 0;
    bool ascending = true;
    for (unsigned i = 0; i < 32; i += x->lanes) {
        uint64_t lo = lane_offset(x, i), first = lo / 32, end = (lo + span - 1) / 32 + 1;
        ascending &= end >= before;
        n += (unsigned)(end - (first > before ? first : before));
        before = end;
    }
    return ascending ? n : list_groups(x, 0, out);
}

/* For all lanes: counts the changes of sector from lane to lane. Lanes that run down have their
 * sectors listed. */
static unsigned count_far(const vm_access *x) {
    uint64_t at[32];
    unsigned changes = 1;
    bool ascending = true;
    LANES at[i] = (x->addr[i] + x->bias) / 32;
    for (unsigned i = 1; i < 32; i++) {
        ascending &= at[i] >= at[i - 1];
        changes += at[i] != at[i - 1];
    }
    uint64_t out[32];
    return ascending ? changes : distinct(at, 32, 0, out);
}

static unsigned count_sectors(const vm_access *x, uint32_t mask) {
    if (x->how != SCATTERED)
        return (unsigned)((x->hi - 1) / 32 - x->lo / 32 + 1);
    if (x->lanes > 1 && mask == VM_FULL)
        return count_group_sectors(x);
    if ((x->hi - 1) / 32 - x->lo / 32 < 64) {
        uint64_t seen = 0, first = x->lo / 32;
        if (mask == VM_FULL)
            LANES seen |= 1ull << ((x->addr[i] + x->bias) / 32 - first);
        for (uint32_t left = mask == VM_FULL ? 0 : mask; left; left &= left - 1)
            seen |= 1ull << (lane_offset(x, (unsigned)__builtin_ctz(left)) / 32 - x->lo / 32);
        return (unsigned)__builtin_popcountll(seen);
    }
    uint64_t out[32];
    return mask == VM_FULL ? count_far(x) : list_sectors(x, mask, out);
}

/* The greatest number of rows that have the same bit set. At most 63 rows. */
static unsigned deepest_column(const uint32_t *rows, unsigned count) {
    if (count == 1)
        return rows[0] != 0;
    if (count == 2)
        return rows[0] & rows[1] ? 2 : (rows[0] | rows[1]) != 0;
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

/* As passes over the lanes [from, to) below, for words that lie in a few rows of banks. */
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

/* Passes for the lanes [from, to): the number of different words that the busiest bank must give.
 */
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
        else { /* rare: compares with all earlier words */
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

/* Passes for groups of lanes with one word each, each group in one row of banks. 0: groups share
 * words in part, and the general count is needed. */
static unsigned count_group_passes(const vm_access *x) {
    uint64_t first[4];
    uint32_t rows[4];
    unsigned n = 0, words = x->group == UNIFORM ? 1 : x->lanes;
    for (unsigned i = 0; i < 32; i += x->lanes) {
        uint64_t word = lane_offset(x, i) / 4;
        unsigned turn = word & 31, same = 0;
        for (unsigned k = 0; k < n; k++) {
            uint64_t apart = word > first[k] ? word - first[k] : first[k] - word;
            if (apart && apart < words)
                return 0;
            same |= apart == 0;
        }
        if (same)
            continue;
        uint32_t row = (uint32_t)low_mask(words);
        first[n] = word;
        rows[n++] = row << turn | row >> ((32 - turn) & 31);
    }
    return deepest_column(rows, n);
}

/* Whether each lane of a half warp (8 bytes a lane) or of a quarter warp (16 bytes) has its own
 * banks. */
static bool has_lanes_apart(const vm_access *x) {
    unsigned places = 128 / x->bytes, shift = (unsigned)__builtin_ctz(x->bytes);
    uint32_t all = UINT32_MAX;
    for (unsigned from = 0; from < 32; from += places) {
        uint32_t seen = 0;
        for (unsigned i = from; i < from + places; i++)
            seen |= 1u << (lane_offset(x, i) >> shift & (places - 1));
        all &= seen;
    }
    return all == (uint32_t)low_mask(places);
}

/* Whether the active lanes of all pairs that are `apart` lanes apart read the same address. */
static bool has_equal_pairs(const vm_access *x, uint32_t mask, unsigned apart) {
    for (unsigned i = 0; i < 32; i++)
        if ((i & apart) == 0 && (mask >> i & 1) != 0 && (mask >> (i + apart) & 1) != 0 &&
            x->addr[i] != x->addr[i + apart])
            return false;
    return true;
}

/* Where neighbours, or lanes two apart, read the same address, one register's width carries the
 * words of both to the lanes. */
static bool is_paired(const vm_access *x, uint32_t mask) {
    if (x->how != SCATTERED)
        return x->how == UNIFORM;
    if (mask == VM_FULL && x->lanes > 1 && x->group == UNIFORM)
        return true;
    return has_equal_pairs(x, mask, 1) || has_equal_pairs(x, mask, 2);
}

/* Passes of 128 bytes for the lanes. 8 bytes a lane go by half warps, 16 by quarters; of paired
 * lanes that access shared memory, twice as many go at once (a statement of NVIDIA's on its
 * developer forum, "Unexpected shared memory bank conflict", of compute capability 7). */
static unsigned count_passes(const vm_access *x, uint32_t mask) {
    unsigned groups = x->bytes <= 4 ? 1 : x->bytes / 4;
    bool paired = groups > 1 && x->space == VM_SPACE_SHARED && is_paired(x, mask);
    groups = paired ? groups / 2 : groups;
    if (x->how != SCATTERED)
        return groups;
    if (x->bytes <= 4 && x->hi - (x->lo & ~3ull) <= 128)
        return 1;
    if (x->lanes >= 8 && x->bytes == 4 && mask == VM_FULL) {
        unsigned passes = count_group_passes(x);
        if (passes)
            return passes;
    }
    if (mask == VM_FULL && x->bytes <= 4) {
        uint32_t banks = 0;
        LANES banks |= 1u << (lane_offset(x, i) / 4 & 31);
        if (banks == UINT32_MAX) /* each lane has its own bank */
            return 1;
    }
    if (mask == VM_FULL && !paired && (x->bytes == 8 || x->bytes == 16) && has_lanes_apart(x))
        return groups;
    unsigned passes = 0, width = groups > 32 ? 1 : 32 / groups;
    for (unsigned from = 0; from < 32; from += width)
        passes += bank_passes(x, mask, from, from + width);
    return passes ? passes : 1;
}

/* As count_passes; reuses the count of the site's last access if the lanes' pattern is the same. */
static unsigned recall_passes(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask) {
    bool is_short = x->bytes <= 4 && x->hi - (x->lo & ~3ull) <= 128; /* counting is quick */
    if (x->how != SCATTERED || mask != VM_FULL || is_short)
        return count_passes(x, mask);
    vm_site_passes *s = &w->state->site_passes[ip->site];
    uint64_t first = x->addr[0];
    lanes8 differs = {0};
    for (unsigned i = 0; i < 32; i += 8) {
        const lanes8 *then = (const lanes8 *)(const void *)(s->apart + i);
        differs |= (*(const lanes8 *)(const void *)(x->addr + i) - first) ^ *then;
    }
    uint64_t low = lane_offset(x, 0) & 3;
    if (s->passes && !any_bit(&differs) && s->low == low && s->bytes == x->bytes)
        return s->passes;
    s->passes = count_passes(x, mask);
    s->low = low;
    s->bytes = x->bytes;
    LANES s->apart[i] = x->addr[i] - first;
    return s->passes;
}

/* The cost of an access to global memory. */
typedef struct access_cost {
    unsigned sectors, lines, passes;
} access_cost;

/* For one range of at most 128 bytes, 4 bytes a lane. */
static ALWAYS_INLINE access_cost cost_of_range(uint64_t lo, uint64_t hi, uint64_t *out) {
    unsigned n = 0;
    for (uint64_t s = lo / 32; s <= (hi - 1) / 32; s++)
        out[n++] = s;
    return (access_cost){n, (unsigned)((hi - 1) / 128 - lo / 128 + 1), 1};
}

/* For half warps that read one word each. */
static ALWAYS_INLINE access_cost cost_of_two(uint64_t a, uint64_t b, uint64_t *out) {
    out[0] = a / 32;
    out[1] = b / 32;
    bool conflict = a != b && ((a ^ b) & 124) == 0;
    return (access_cost){1 + (a / 32 != b / 32), 1 + (a / 128 != b / 128), 1 + conflict};
}

/* For any pattern. A separate function, so that the common case needs no stack for lists. */
static __attribute__((noinline)) access_cost cost_of_lanes(vm_warp *w, const ptx_insn *ip,
                                                           const vm_access *x, uint32_t mask,
                                                           uint64_t *out) {
    unsigned sectors = list_sectors(x, mask, out), lines = count_lines(out, sectors);
    if (x->space == VM_SPACE_LOCAL)
        return (access_cost){sectors, lines, x->bytes > 4 ? x->bytes / 4 : 1};
    bool apart = x->bytes <= 4 && has_banks_apart(out, sectors);
    return (access_cost){sectors, lines, apart ? 1 : recall_passes(w, ip, x, mask)};
}

/* The cost of an access to global memory; the common patterns of words come first. Lists the
 * sectors in `out`. */
static ALWAYS_INLINE access_cost cost_of(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                         uint32_t mask, uint64_t *out) {
    uint64_t to = VM_GLOBAL_BASE;
    if (x->bytes == 4 && x->how != SCATTERED)
        return cost_of_range(to + x->lo, to + x->hi, out);
    if (x->bytes == 4 && x->lanes == 16 && mask == VM_FULL) {
        uint64_t a = to + lane_offset(x, 0), b = to + lane_offset(x, 16);
        if (x->group == UNIFORM)
            return cost_of_two(a, b, out);
        if (a == b)
            return cost_of_range(a, a + 64, out);
    }
    return cost_of_lanes(w, ip, x, mask, out);
}

static __attribute__((noinline)) unsigned note_poll(vm_warp *w, const ptx_insn *ip,
                                                    const vm_access *x, uint32_t mask) {
    unsigned lane = (unsigned)__builtin_ctz(mask);
    vm_poll_note(w, ip, x->space, lane, x->addr[lane] + (uint64_t)ip->imm);
    return count_sectors(x, mask);
}

/* Tells the observer of an access to global memory, and returns its number of sectors. */
static __attribute__((noinline)) unsigned observe_access(vm_warp *w, const ptx_insn *ip,
                                                         const vm_access *x, uint32_t mask) {
    if (w->state->poll)
        return note_poll(w, ip, x, mask);
    vm_event_room(w);
    access_cost cost = {0, 0, 0};
    uint64_t *sectors = w->state->sectors + w->state->sector_count;
    if (x->space == VM_SPACE_GLOBAL)
        cost = cost_of(w, ip, x, mask, sectors);
    else if (x->space == VM_SPACE_LOCAL)
        cost = cost_of_lanes(w, ip, x, mask, sectors);
    vm_event *e = vm_event_put(w, (uint32_t)(ip - w->code), mask, cost.sectors, cost.passes);
    e->lines = (uint16_t)cost.lines;
    return cost.sectors;
}

/* The same for an access to shared memory, which has no sectors. */
static inline void observe_shared(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask,
                                  unsigned passes) {
    if (__builtin_expect(w->state->poll != NULL, 0)) {
        (void)note_poll(w, ip, x, mask);
        return;
    }
    vm_event_room(w);
    (void)vm_event_put(w, (uint32_t)(ip - w->code), mask, 0, passes);
}

/* ---- jobs: bytes that this job read and wrote, a bit a byte */

static inline void track_range(uint64_t *map, uint64_t lo, uint64_t hi) {
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

/* ---- ranks: the part of an access that goes to peers */

static void count_peers(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask,
                        bool store) {
    const vm_memory *m = w->state->memory;
    vm_counters *c = &w->state->result->counters;
    uint32_t peers = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        peers |= (uint32_t)(lane_offset(x, i) - m->first >= m->reserved) << i;
    }
    if (!peers)
        return;
    vm_access y = *x;
    y.how = peers == mask ? x->how : SCATTERED;
    unsigned sectors = count_sectors(&y, peers), lanes = (unsigned)__builtin_popcount(peers);
    uint8_t shape = ptx_op_get(ip->row)->shape;
    c->peer_atomics += shape == PTX_S_ATOM || shape == PTX_S_RED ? lanes : 0;
    *(store ? &c->peer_store_requests : &c->peer_load_requests) += 1;
    *(store ? &c->peer_store_sectors : &c->peer_load_sectors) += sectors;
    *(store ? &c->peer_store_bytes : &c->peer_load_bytes) += (uint64_t)lanes * x->bytes;
}

/* Reads of inputs are not noted: a write to an input ends the attempt anyway. */
static __attribute__((noinline)) void track_access(vm_warp *w, const ptx_insn *ip,
                                                   const vm_access *x, uint32_t mask, bool store) {
    if (w->ranked) {
        count_peers(w, ip, x, mask, store);
        return;
    }
    uint8_t shape = ptx_op_get(ip->row)->shape;
    bool may_be_input = x->lane_kinds || x->kind == VM_BUFFER_IN;
    if (ip->strong || shape == PTX_S_ATOM || shape == PTX_S_RED || (store && may_be_input))
        w->state->order_matters = true;
    if (!store && !x->lane_kinds && x->kind == VM_BUFFER_IN)
        return;
    const vm_memory *m = w->state->memory;
    uint64_t *map = store ? m->job_written : m->job_read;
    if (x->how != SCATTERED) {
        track_range(map, x->lo, x->hi);
        return;
    }
    for (uint32_t left = mask; left; left &= left - 1) {
        uint64_t at = lane_offset(x, (unsigned)__builtin_ctz(left));
        track_range(map, at, at + x->bytes);
    }
}

/* Passes of the access that the assembler makes of this one and others (ptx_join.c). */
static __attribute__((noinline)) unsigned joined_passes(vm_warp *w, const ptx_insn *ip,
                                                        const vm_access *x, uint32_t mask) {
    if (ip->joins == 4 && mask == VM_FULL && x->lanes == 16 && x->group == UNIFORM)
        return 2; /* half a warp each, of one address */
    uint8_t *kept = x->look != NULL ? &x->look->joined[ip->joins == 4] : NULL;
    if (kept != NULL && *kept != 0)
        return *kept;
    vm_access wide = *x;
    wide.bytes = 4u * ip->joins;
    unsigned passes = recall_passes(w, ip, &wide, mask);
    if (kept != NULL)
        *kept = (uint8_t)passes;
    return passes;
}

static inline void count_shared(vm_warp *w, const ptx_insn *ip, const vm_access *x, uint32_t mask,
                                unsigned passes) {
    vm_counters *c = &w->state->result->counters;
    c->shared_requests++;
    c->shared_passes += passes;
    if (__builtin_expect(w->observed, 0))
        observe_shared(w, ip, x, mask, ip->joins > 1 ? joined_passes(w, ip, x, mask) : passes);
}

/* Passes for atomics: each lane needs its bank for one pass, even if lanes share a word. */
static unsigned count_turns(const vm_access *x, uint32_t mask) {
    uint8_t turns[33] = {0};
    unsigned most = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned bank = lane_offset(x, (unsigned)__builtin_ctz(left)) / 4 & 31;
        unsigned now = ++turns[bank];
        unsigned next = x->bytes > 4 ? ++turns[bank + 1] : 0;
        now = next > now ? next : now;
        most = now > most ? now : most;
    }
    return most;
}

static ALWAYS_INLINE void count_access(vm_warp *w, const ptx_insn *ip, const vm_access *x,
                                       uint32_t mask, bool store) {
    vm_counters *c = &w->state->result->counters;
    bool observed = __builtin_expect(w->observed, 0);
    if (x->space == VM_SPACE_GLOBAL) {
        unsigned sectors = observed ? observe_access(w, ip, x, mask) : count_sectors(x, mask);
        uint64_t bytes = (uint64_t)__builtin_popcount(mask) * x->bytes;
        if (__builtin_expect(w->tracked, 0))
            track_access(w, ip, x, mask, store);
        if (store) {
            c->global_store_requests++;
            c->global_store_sectors += sectors;
            c->global_store_bytes += bytes;
            w->block->stored += sectors;
        } else {
            c->global_load_requests++;
            c->global_load_sectors += sectors;
            c->global_load_bytes += bytes;
        }
    } else if (x->space == VM_SPACE_SHARED) {
        unsigned passes = x->look ? x->look->passes : 0;
        if (!passes) /* joined_passes keeps the wider access of the same site */
            passes =
                observed && ip->joins <= 1 ? recall_passes(w, ip, x, mask) : count_passes(x, mask);
        if (x->look)
            x->look->passes = (uint8_t)passes;
        count_shared(w, ip, x, mask, passes);
    } else if (x->space == VM_SPACE_LOCAL) {
        c->local_requests++; /* the GPU interleaves the lanes, so equal offsets are one line */
        c->local_sectors += x->how == UNIFORM ? (x->bytes * 32 + 31) / 32 : count_sectors(x, mask);
        if (observed)
            (void)observe_access(w, ip, x, mask);
    } else if (observed) {
        (void)observe_access(w, ip, x, mask);
    }
}
