/* Handlers of asynchronous copies and of mbarriers (PTX ISA, cp.async and mbarrier).
 *
 * An mbarrier is 64 bits of shared memory, which are opaque to programs:
 *
 *   bits 0..19   pending arrivals in this phase
 *   bits 20..39  arrivals that the next phase expects
 *   bits 40..60  pending bytes in this phase (tx-count), signed
 *   bit 61       parity of this phase
 *   bit 62       only in a state: its arrival had .noComplete, and its pending count is defined
 *   bit 63       set: marks a state among other numbers
 *
 * The state that an arrival returns is this word before the arrival. A phase ends when no arrival
 * and no byte is pending. Then the parity flips, and the waiting threads go on. For the race check,
 * an arrival ends the warp's stamp, and a thread that sees the end of a phase counts all stamps up
 * to that moment as ordered before it. vm_async.c keeps the lists of mbarriers and copies. */

/* A shadow entry of a write: an access by another thread that meets it stops as a race. */
#define MARK(stamp) ((uint32_t)(stamp) << VM_RACE_SHIFT | VM_RACE_WRITTEN)

static inline void memory_changed(const vm_warp *w) {
    w->state->last_change = w->state->result->counters.thread_instructions;
}

/* ---- copies */

/* The number of bytes that each lane reads from its source. False: a lane reads more than it
 * writes. */
static bool copy_limits(vm_warp *w, const ptx_insn *ip, const uint8_t *regs, uint32_t mask,
                        uint8_t *limits) {
    memset(limits, ip->bytes, 32);
    if (ip->b == PTX_NONE)
        return true;
    uint32_t none = ip->op ? predicate(ip, regs, ip->b, 1) : 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint32_t read = none >> i & 1 ? 0 : ip->bytes;
        uint32_t n = ip->op ? read : CSLOT(uint32_t, ip->b)[i];
        if (n > ip->bytes) {
            vm_trap_raise(w, ip, VM_TRAP_ILLEGAL_INSTRUCTION, i, NULL,
                          "cp.async of %u bytes is to read %u: at most as many", ip->bytes, n);
            return false;
        }
        limits[i] = (uint8_t)n;
    }
    return true;
}

/* The lanes of `mask` with the same limit as the first lane. */
static uint32_t same_limit(const uint8_t *limits, uint32_t mask) {
    uint32_t same = 0;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        same |= (uint32_t)(limits[i] == limits[__builtin_ctz(mask)]) << i;
    }
    return same;
}

/* Checks the load from the source: each lane for the bytes that it reads. The whole counts as one
 * access. */
static bool read_sources(vm_warp *w, const ptx_insn *ip, vm_access *x, const uint8_t *limits,
                         uint32_t mask) {
    uint32_t reading = 0;
    for (unsigned i = 0; i < 32; i++)
        reading |= (uint32_t)(limits[i] != 0) << i;
    reading &= mask;
    if (!reading) {
        if (w->observed)
            vm_event_push(w, pc_of(w, ip), mask);
        return true;
    }
    if (classify(x, reading) & (ip->bytes - 1u)) {
        misaligned(w, ip, x, reading);
        return false;
    }
    for (uint32_t left = reading, same; left; left &= ~same) {
        same = same_limit(limits, left);
        x->bytes = limits[__builtin_ctz(same)];
        if (!locate(w, ip, x, same))
            return false;
        if (!check_initialised(w, ip, x, same) || !race_load(w, ip, x, same)) {
            stop_trap(w);
            return false;
        }
        promise_source(w, x, same);
    }
    x->bytes = ip->bytes;
    (void)classify(x, reading);
    count_access(w, ip, x, reading, false);
    return true;
}

/* The shadow entry of what the warp does now; 0: races are not checked. */
static uint32_t entry_now(vm_warp *w) {
    if (!w->check_races)
        return 0;
    if (!w->stamp)
        vm_race_stamp(w);
    return w->stamp << VM_RACE_SHIFT;
}

/* Claims the destination in shared memory for the lanes until they wait. */
static bool claim(vm_warp *w, const ptx_insn *ip, const vm_access *y, uint32_t mask) {
    if (!note_write(w, ip, y, mask))
        return false;
    if (!races_matter(w, y))
        return true;
    race_access a = race_access_of(w, ip, y, false);
    uint32_t *writes = planes_of(w, y->space).writes;
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (!check_lane_write(w, ip, NULL, y, i, &a))
            return false;
        for (unsigned k = 0; k < words_of(y); k++)
            writes[lane_offset(y, i) / 4 + k] = MARK(VM_RACE_COPY);
    }
    return true;
}

static bool start_copies(vm_warp *w, const ptx_insn *ip, const vm_access *x, const vm_access *y,
                         const uint8_t *limits, uint32_t mask) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        vm_copy copy = {.from = limits[i] ? lane_host(w, x, i) : w->arena,
                        .to = (uint32_t)lane_offset(y, i),
                        .bytes = ip->bytes,
                        .read = limits[i],
                        .lane = (uint8_t)i,
                        .marked = races_matter(w, x)};
        if (!vm_copy_add(w, copy))
            return false;
    }
    vm_counters *c = &w->state->result->counters;
    c->shared_requests++;
    c->shared_passes += count_passes(y, mask);
    return true;
}

/* What createpolicy makes. PTX calls the policy opaque; this is read off the code of ptxas 13.0,
 * and programs pass such numbers as constants (0x12f0000000000000, evict_first). A GPU stops at
 * others.
 *
 *   bits 60..63  1
 *   bit 59       0: a share of all addresses, in sixteenths; 1: the addresses of a range
 *   bits 57..58  priority: unchanged, first, last, normal
 *   bit 56       priority of the others: unchanged, first
 *   bits 52..55  the share, less one; of a range: the size of its granules
 *   bits 37..50  of a range: its first granule and its granules */
static bool is_policy(uint64_t policy) {
    uint64_t of_range = ((1ull << 51) - 1) & ~((1ull << 37) - 1);
    uint64_t free_bits =
        0x1full << 52 | 3ull << 57 | (policy >> 59 & 1 ? of_range | 1ull << 59 : 0);
    return (policy & ~free_bits) == 1ull << 60;
}

static bool check_policies(vm_warp *w, const ptx_insn *ip, const uint8_t *regs, uint32_t mask) {
    for (uint32_t left = ip->c == PTX_NONE ? 0 : mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t policy = CSLOT(uint64_t, ip->c)[i];
        if (!is_policy(policy)) {
            vm_trap_raise(w, ip, VM_TRAP_ILLEGAL_INSTRUCTION, i, NULL,
                          "%#llx is no cache policy: pass what createpolicy gives, such as "
                          "0x12f0000000000000 for evict_first",
                          (unsigned long long)policy);
            return false;
        }
    }
    return true;
}

HANDLER(CPASYNC) {
    uint64_t space[32], from[32], offset = (uint64_t)(int64_t)(int32_t)ip->v[1];
    uint8_t limits[32];
    if (!copy_limits(w, ip, regs, mask, limits) || !check_policies(w, ip, regs, mask))
        return stop_trap(w);
    /* Messages add the instruction's offset, which belongs to the destination, so it is subtracted
     * here. */
    for (unsigned i = 0; i < 32; i++)
        from[i] = (ip->e == 64 ? CSLOT(uint64_t, ip->v[0])[i] : CSLOT(uint32_t, ip->v[0])[i]) +
                  offset - (uint64_t)ip->imm;
    vm_access y = {.addr = addresses(ip, regs, space),
                   .bias = (uint64_t)ip->imm,
                   .bytes = ip->bytes,
                   .space = VM_SPACE_SHARED};
    vm_access x = {.addr = from,
                   .bias = (uint64_t)ip->imm - VM_GLOBAL_BASE,
                   .host = w->arena,
                   .bytes = ip->bytes,
                   .space = VM_SPACE_GLOBAL};
    if (!locate(w, ip, &y, mask) || !read_sources(w, ip, &x, limits, mask))
        return NULL;
    if (!claim(w, ip, &y, mask) || !start_copies(w, ip, &x, &y, limits, mask))
        return stop_trap(w);
    NEXT;
}
HANDLER(CPCOMMIT) {
    (void)regs;
    vm_copies_commit(w, mask);
    NEXT;
}
HANDLER(CPWAIT) {
    (void)regs;
    bool all = ip->row == PTX_OP_CP_WAIT_ALL || ip->imm >= UINT32_MAX;
    if (w->async && w->async->count)
        memory_changed(w);
    vm_copies_wait(w, mask, all ? UINT32_MAX : (uint32_t)ip->imm, entry_now(w));
    NEXT;
}

/* ---- mbarriers */

#define MB_MOST ((1u << 20) - 1) /* the largest value of a count */
#define MB_MARK (1ull << 63)
#define MB_COUNTED (1ull << 62)

typedef struct mb_state {
    uint32_t pending, expected;
    int32_t bytes;
    bool parity;
} mb_state;

static mb_state mb_unpack(uint64_t word) {
    int32_t bytes = (int32_t)(word >> 40 & 0x1fffff);
    return (mb_state){.pending = word & MB_MOST,
                      .expected = word >> 20 & MB_MOST,
                      .bytes = bytes & 1 << 20 ? bytes - (1 << 21) : bytes,
                      .parity = word >> 61 & 1};
}
static uint64_t mb_pack(mb_state s) {
    return MB_MARK | (uint64_t)s.parity << 61 | (uint64_t)(s.bytes & 0x1fffff) << 40 |
           (uint64_t)s.expected << 20 | s.pending;
}

static bool mb_fault(vm_warp *w, const ptx_insn *ip, unsigned lane, const char *what, uint32_t n) {
    vm_trap_raise(w, ip, VM_TRAP_BAD_MBARRIER, lane, NULL, "%s (%u)", what, n);
    return false;
}

/* Finds the mbarrier that the lane points to, and checks that its init is ordered before the lane.
 * NULL after a trap. */
static vm_mbarrier *mb_find(vm_warp *w, const ptx_insn *ip, const vm_access *x, unsigned lane) {
    vm_mbarrier *b = vm_mbarrier_find(w->block, (uint32_t)lane_offset(x, lane));
    if (!b) {
        uint64_t address = x->addr[lane] + (uint64_t)ip->imm;
        vm_trap_raise(w, ip, VM_TRAP_UNINITIALISED, lane, &address,
                      "no mbarrier here: mbarrier.init comes first");
        return NULL;
    }
    if (w->check_races && write_conflicts(w, b->made, &(race_access){0}, lane)) {
        race_found(w, ip, x, lane, b->made, "a use of an mbarrier that was made");
        return NULL;
    }
    return b;
}

static inline uint64_t *mb_word(const vm_warp *w, const vm_access *x, unsigned lane) {
    return (uint64_t *)(void *)lane_host(w, x, lane);
}

/* Writes the state back, and ends the phase if nothing is pending. */
static void mb_settle(vm_warp *w, vm_mbarrier *b, uint64_t *word, mb_state s) {
    if (s.pending == 0 && s.bytes == 0) {
        s.parity = !s.parity;
        s.pending = s.expected;
        b->stamp = w->state->races->stamp;
        vm_copies_release(w->block, b->offset);
    }
    *word = mb_pack(s);
    memory_changed(w);
}

static bool mb_add_bytes(vm_warp *w, const ptx_insn *ip, unsigned lane, mb_state *s, int64_t n) {
    int64_t bytes = s->bytes + n;
    if (bytes > (int64_t)MB_MOST || bytes < -(int64_t)MB_MOST)
        return mb_fault(w, ip, lane, "more bytes to come than the 2^20 - 1 that an mbarrier counts",
                        (uint32_t)(n < 0 ? -n : n));
    s->bytes = (int32_t)bytes;
    return true;
}

static bool mb_arrive(vm_warp *w, const ptx_insn *ip, uint8_t *regs, const vm_access *x,
                      unsigned lane, uint32_t count, uint32_t bytes) {
    vm_mbarrier *b = mb_find(w, ip, x, lane);
    if (!b)
        return false;
    uint64_t *word = mb_word(w, x, lane), before = *word;
    mb_state s = mb_unpack(before);
    bool drop = ip->row >= PTX_OP_MB_DROP && ip->row <= PTX_OP_MB_DROP_TX;
    bool partial = ip->row == PTX_OP_MB_ARRIVE_NC || ip->row == PTX_OP_MB_DROP_NC;
    if (!mb_add_bytes(w, ip, lane, &s, bytes))
        return false;
    if (count == 0 || count > s.pending)
        return mb_fault(w, ip, lane,
                        count ? "more arrivals than the phase still expects" : "no arrival", count);
    if (drop && count > s.expected)
        return mb_fault(w, ip, lane, "more arrivals dropped than are expected", count);
    s.expected -= drop ? count : 0;
    s.pending -= count;
    if (partial && s.pending == 0 && s.bytes == 0)
        return mb_fault(w, ip, lane, "arrivals with .noComplete that complete the phase", count);
    if (ip->op != PTX_M_ARRIVE_RELAXED)
        w->stamp = 0; /* this arrival does not order what the warp does later */
    mb_settle(w, b, word, s);
    if (ip->d != PTX_NONE)
        SLOT(uint64_t, ip->d)[lane] = before | (partial ? MB_COUNTED : 0);
    return true;
}

typedef bool (*mb_fn)(vm_warp *w, const ptx_insn *ip, uint8_t *regs, const vm_access *x,
                      unsigned lane);
#define MB_LANE(id)                                                                                \
    static bool lane_##id(vm_warp *w, const ptx_insn *ip, uint8_t *regs, const vm_access *x,       \
                          unsigned lane)
#define MB_OPERAND (CSLOT(uint32_t, ip->b)[lane])

MB_LANE(MB_INIT) {
    uint32_t offset = (uint32_t)lane_offset(x, lane), count = MB_OPERAND;
    if (count == 0 || count > MB_MOST)
        return mb_fault(w, ip, lane, "an mbarrier expects from 1 to 2^20 - 1 arrivals", count);
    if (vm_mbarrier_find(w->block, offset))
        return mb_fault(w, ip, lane, "an mbarrier stands here already: mbarrier.inval comes first",
                        count);
    if (w->check_races) {
        race_access a = race_access_of(w, ip, x, false);
        if (!check_lane_write(w, ip, NULL, x, lane, &a))
            return false;
    }
    vm_mbarrier *b = vm_mbarrier_add(w->block, offset);
    if (!b)
        return false;
    b->made = entry_now(w) | lane_bits(lane);
    *mb_word(w, x, lane) = mb_pack((mb_state){.pending = count, .expected = count});
    for (unsigned k = 0; k < 2; k++)
        w->block->shared_writes[offset / 4 + k] = w->check_races ? MARK(VM_RACE_MBARRIER) : 0;
    memory_changed(w);
    return true;
}
MB_LANE(MB_INVAL) {
    (void)regs;
    vm_mbarrier *b = mb_find(w, ip, x, lane);
    if (!b)
        return false;
    for (unsigned k = 0; k < 2; k++) /* the old contents count as not initialised */
        w->block->shared_writes[b->offset / 4 + k] = entry_now(w) | lane_bits(lane);
    memory_changed(w);
    vm_mbarrier_remove(w->block, b);
    return true;
}
MB_LANE(MB_ARRIVE) {
    return mb_arrive(w, ip, regs, x, lane, 1, 0);
}
MB_LANE(MB_ARRIVE_N) {
    return mb_arrive(w, ip, regs, x, lane, MB_OPERAND, 0);
}
MB_LANE(MB_ARRIVE_TX) {
    return mb_arrive(w, ip, regs, x, lane, 1, MB_OPERAND);
}
#define lane_MB_ARRIVE_NC lane_MB_ARRIVE_N
#define lane_MB_DROP lane_MB_ARRIVE
#define lane_MB_DROP_N lane_MB_ARRIVE_N
#define lane_MB_DROP_NC lane_MB_ARRIVE_N
#define lane_MB_DROP_TX lane_MB_ARRIVE_TX

static bool mb_give(vm_warp *w, const ptx_insn *ip, uint8_t *regs, const vm_access *x,
                    const vm_mbarrier *b, unsigned lane, bool over) {
    put_predicate(regs, ip->d, over ? VM_FULL : 0, 1u << lane);
    if (!over) {
        w->budget = 0; /* the next branch gives the turn to the warps that are waited for */
        if (w->state->poll)
            vm_poll_note(w, ip, VM_SPACE_SHARED, lane, x->addr[lane] + (uint64_t)ip->imm);
    } else if (ip->op != PTX_M_WAIT_RELAXED && b->stamp > w->acquired) {
        w->acquired = b->stamp;
        w->loads_block = b->stamp > w->loads_block ? b->stamp : w->loads_block;
        w->loads_all = b->stamp > w->loads_all ? b->stamp : w->loads_all;
        w->loads_system = b->stamp > w->loads_system ? b->stamp : w->loads_system;
        w->stamp = 0;
    }
    return true;
}
MB_LANE(MB_TEST) {
    uint64_t token = CSLOT(uint64_t, ip->b)[lane];
    const vm_mbarrier *b = mb_find(w, ip, x, lane);
    if (!b)
        return false;
    if (!(token & MB_MARK))
        return mb_fault(w, ip, lane, "a state that no arrival gave", (uint32_t)token);
    bool over = mb_unpack(*mb_word(w, x, lane)).parity != mb_unpack(token).parity;
    return mb_give(w, ip, regs, x, b, lane, over);
}
MB_LANE(MB_TEST_PARITY) {
    const vm_mbarrier *b = mb_find(w, ip, x, lane);
    if (!b)
        return false;
    bool over = mb_unpack(*mb_word(w, x, lane)).parity != (MB_OPERAND & 1);
    return mb_give(w, ip, regs, x, b, lane, over);
}
#define lane_MB_TRY lane_MB_TEST
#define lane_MB_TRY_PARITY lane_MB_TEST_PARITY

static bool mb_count_bytes(vm_warp *w, const ptx_insn *ip, const vm_access *x, unsigned lane,
                           int64_t n) {
    vm_mbarrier *b = mb_find(w, ip, x, lane);
    mb_state s = b ? mb_unpack(*mb_word(w, x, lane)) : (mb_state){0};
    if (!b || !mb_add_bytes(w, ip, lane, &s, n))
        return false;
    mb_settle(w, b, mb_word(w, x, lane), s);
    return true;
}
MB_LANE(MB_EXPECT) {
    return mb_count_bytes(w, ip, x, lane, MB_OPERAND);
}
MB_LANE(MB_COMPLETE) {
    return mb_count_bytes(w, ip, x, lane, -(int64_t)MB_OPERAND);
}
/* The arrival of the copies themselves. It is expected in addition to the other arrivals, or with
 * .noinc counts as one of them. */
MB_LANE(CP_ARRIVE) {
    vm_mbarrier *b = mb_find(w, ip, x, lane);
    if (!b)
        return false;
    vm_copies_bind(w, lane, b->offset, entry_now(w));
    if (ip->op == PTX_M_NOINC)
        return mb_arrive(w, ip, regs, x, lane, 1, 0);
    w->stamp = 0;
    return true;
}

static inline bool mb_lanes(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,
                            vm_access *x, mb_fn one) {
    if (!locate(w, ip, x, mask))
        return false;
    if (x->space != VM_SPACE_SHARED) {
        unsigned lane = (unsigned)__builtin_ctz(mask);
        uint64_t address = x->addr[lane] + (uint64_t)ip->imm;
        vm_trap_raise(w, ip, VM_TRAP_OUT_OF_BOUNDS, lane, &address,
                      "an mbarrier outside shared memory");
        stop_trap(w);
        return false;
    }
    for (uint32_t left = mask; left; left &= left - 1)
        if (!one(w, ip, regs, x, (unsigned)__builtin_ctz(left))) {
            stop_trap(w);
            return false;
        }
    return true;
}
#define H_MBARRIER(T, id, expr)                                                                    \
    static bool each_##id(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask,            \
                          vm_access *x) {                                                          \
        return mb_lanes(w, ip, regs, mask, x, lane_##id);                                          \
    }                                                                                              \
    HANDLER(id##_##T) {                                                                            \
        uint64_t space[32];                                                                        \
        vm_access x = {.addr = addresses(ip, regs, space),                                         \
                       .bytes = 8,                                                                 \
                       .space = ip->space,                                                         \
                       .bias = (uint64_t)ip->imm};                                                 \
        if (ip->space == VM_SPACE_GENERIC ? !each_space(w, ip, regs, mask, &x, each_##id)          \
                                          : !each_##id(w, ip, regs, mask, &x))                     \
            return NULL;                                                                           \
        EXCHANGED;                                                                                 \
        NEXT;                                                                                      \
    }
HANDLER(MBPENDING) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        uint64_t token = CSLOT(uint64_t, ip->a)[i];
        if (!(token & MB_MARK) || !(token & MB_COUNTED)) {
            mb_fault(w, ip, i,
                     token & MB_MARK ? "a state whose arrival was without .noComplete: its pending "
                                       "count is undefined"
                                     : "a state that no arrival gave",
                     (uint32_t)token);
            return stop_trap(w);
        }
        SLOT(uint32_t, ip->d)[i] = mb_unpack(token).pending;
    }
    NEXT;
}
