/* Handlers of control flow, barriers and exchanges between the lanes of a warp.
 *
 * A run is a stretch of instructions executed by one set of lanes. It ends wherever the set may
 * change, and its instructions are counted then. A branch stays inside the executor as long as no
 * other set of the warp waits at or before the branch's target. */

static inline uint32_t pc_of(const vm_warp *w, const ptx_insn *ip) {
    return (uint32_t)(ip - w->code);
}

static inline const ptx_insn *leave(vm_warp *w, vm_stop stop, uint32_t pc) {
    w->stop = stop;
    w->pc = pc;
    return NULL;
}

#define GO_TO(next)                                                                                \
    do {                                                                                           \
        uint32_t to = (next);                                                                      \
        if (__builtin_expect(to >= w->stop_pc || w->budget <= 0, 0))                               \
            return leave(w, VM_STOP_TURN, to);                                                     \
        w->run_pc = w->event_pc = to;                                                              \
        NEXT_AT(w->code + to);                                                                     \
    } while (0)

static inline uint32_t guarded(const ptx_insn *ip, const uint8_t *regs, uint32_t mask) {
    if (ip->guard == PTX_NONE)
        return mask;
    uint32_t p = *CSLOT(uint32_t, ip->guard);
    return mask & (ip->negate & 0x80 ? ~p : p);
}

/* The wrapper of guarded instructions other than branches. */
static const ptx_insn *h_guard(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask) {
    uint32_t on = guarded(ip, regs, mask);
    if (on)
        return ip->body(w, ip, regs, on);
    if (__builtin_expect(w->observed, 0) && ip->site != PTX_NONE)
        vm_event_push(w, pc_of(w, ip), 0);
    NEXT;
}

/* Leaves the turn before the instruction at `pc`. */
static __attribute__((noinline)) const ptx_insn *yield(vm_warp *w, uint32_t pc) {
    vm_run_end(w, pc, 0);
    if (w->observed && pc > w->event_pc)
        vm_event_push(w, pc - 1, w->mask);
    return leave(w, VM_STOP_TURN, pc);
}

/* The wrapper of instructions that polling loops use: strong loads, atomics, tests of mbarriers. If
 * a warp has polled MOST_POLLS times and no memory changed meanwhile, its next branch gives the
 * rest of its turn to others. A change is numbered by the instruction count at the begin of its
 * run. */
#define MOST_POLLS 16
static const ptx_insn *h_poll(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask) {
    if (__builtin_expect(w->state->launch->schedule_seed != 0, 0) && vm_warp_yields(w))
        return yield(w, pc_of(w, ip));
    uint64_t change = w->state->last_change;
    bool changed =
        change != w->poll_change || change == w->state->result->counters.thread_instructions;
    w->poll_change = change;
    w->polls = changed ? 0 : w->polls + 1;
    if (w->polls >= MOST_POLLS && w->budget > 0) {
        w->polls = 0;
        w->spared = w->budget;
        w->budget = 0;
    }
    return h_guard(w, ip, regs, mask);
}

/* The wrapper of all instructions once undefined bits travel (vm_undefined.c). */
static const ptx_insn *h_undefined(vm_warp *w, const ptx_insn *ip, uint8_t *regs, uint32_t mask) {
    if (!vm_undefined_step(w, ip, regs, mask))
        return stop_trap(w);
    const ptx_insn *plain = &w->state->module->code[ip - w->code];
#ifdef TAIL_CALLS
    __attribute__((musttail)) return plain->fn(w, ip, regs, mask);
#else
    return plain->fn(w, ip, regs, mask);
#endif
}

HANDLER(BRA) {
    uint32_t taken = guarded(ip, regs, mask), pc = pc_of(w, ip);
    vm_run_end(w, pc + 1, 0);
    vm_counters *c = &w->state->result->counters;
    c->branches++;
    if (__builtin_expect(w->observed, 0))
        vm_event_push(w, pc, taken);
    if (taken == mask)
        GO_TO(ip->target);
    if (!taken)
        GO_TO(pc + 1);
    c->divergent_branches++;
    vm_set_push(w, mask & ~taken, pc + 1, w->frame);
    w->mask = taken;
    return leave(w, VM_STOP_TURN, ip->target);
}

static __attribute__((noinline)) const ptx_insn *
bad_branch(vm_warp *w, const ptx_insn *ip, unsigned lane, uint32_t index, uint32_t count) {
    vm_trap_raise(w, ip, VM_TRAP_BAD_BRANCH, lane, NULL,
                  "index %u in a table of %u targets; expected one below that", index, count);
    return stop_trap(w);
}

/* Splits the set by the lanes' targets. The scheduler chooses which set goes first. */
HANDLER(BRX) {
    uint32_t going = guarded(ip, regs, mask), pc = pc_of(w, ip);
    const ptx_branches *table = &w->state->module->branches[ip->target];
    const uint32_t *index = CSLOT(uint32_t, ip->a);
    vm_run_end(w, pc + 1, 0);
    w->state->result->counters.branches++;
    if (__builtin_expect(w->observed, 0))
        vm_event_push(w, pc, going);
    if (!going)
        GO_TO(pc + 1);
    for (uint32_t left = going; left; left &= left - 1)
        if (index[__builtin_ctz(left)] >= table->count)
            return bad_branch(w, ip, (unsigned)__builtin_ctz(left), index[__builtin_ctz(left)],
                              table->count);
    uint32_t target = table->pcs[index[__builtin_ctz(going)]], same = 0;
    uint32_t rest = mask & ~going;
    if (rest)
        vm_set_push(w, rest, pc + 1, w->frame);
    for (rest = going;;) {
        same = 0;
        for (uint32_t left = rest; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            same |= (uint32_t)(table->pcs[index[i]] == target) << i;
        }
        rest &= ~same;
        if (!rest)
            break;
        vm_set_push(w, same, target, w->frame);
        target = table->pcs[index[__builtin_ctz(rest)]];
    }
    if (same == mask)
        GO_TO(target);
    w->state->result->counters.divergent_branches++;
    w->mask = same;
    return leave(w, VM_STOP_TURN, target);
}

HANDLER(FALL) {
    (void)regs, (void)mask;
    uint32_t pc = pc_of(w, ip);
    vm_run_end(w, pc + 1, 1);
    if (__builtin_expect(pc + 1 >= w->stop_pc || w->budget <= 0, 0)) {
        if (w->observed)
            vm_event_push(w, pc, mask);
        return leave(w, VM_STOP_TURN, pc + 1);
    }
    w->run_pc = pc + 1;
    NEXT;
}

/* Removes the lanes of `gone` from this set for good. The others continue behind the instruction.
 */
static inline const ptx_insn *without(vm_warp *w, uint32_t gone, uint32_t mask, uint32_t pc) {
    if (gone == mask)
        return leave(w, VM_STOP_GONE, pc);
    w->mask = mask & ~gone;
    return leave(w, VM_STOP_TURN, pc + 1);
}

static const ptx_insn *end_lanes(vm_warp *w, const ptx_insn *ip, const uint8_t *regs,
                                 uint32_t mask) {
    uint32_t gone = guarded(ip, regs, mask), pc = pc_of(w, ip);
    vm_run_end(w, pc + 1, 0);
    if (__builtin_expect(w->observed, 0))
        vm_event_push(w, pc, gone);
    vm_lanes_exit(w, gone);
    return without(w, gone, mask, pc);
}
HANDLER(EXIT) {
    return end_lanes(w, ip, regs, mask);
}
HANDLER(RET) {
    if (w->frame->depth == 0)
        return end_lanes(w, ip, regs, mask);
    uint32_t gone = guarded(ip, regs, mask), pc = pc_of(w, ip);
    vm_run_end(w, pc + 1, 0);
    if (__builtin_expect(w->observed, 0))
        vm_event_push(w, pc, gone);
    if (!gone)
        return leave(w, VM_STOP_TURN, pc + 1);
    if (!vm_frame_return(w, ip, gone))
        return stop_trap(w);
    return without(w, gone, mask, pc);
}
HANDLER(CALL) {
    uint32_t calling = guarded(ip, regs, mask), pc = pc_of(w, ip);
    vm_run_end(w, pc + 1, 0);
    if (__builtin_expect(w->observed, 0))
        vm_event_push(w, pc, calling);
    if (!calling)
        return leave(w, VM_STOP_TURN, pc + 1);
    if (w->state->module->calls[ip->target].system != PTX_SYS_NONE) {
        if (!vm_system_call(w, ip, calling))
            return stop_trap(w);
        return leave(w, VM_STOP_TURN, pc + 1);
    }
    if (calling != mask)
        vm_set_push(w, mask & ~calling, pc + 1, w->frame);
    w->mask = calling;
    if (!vm_frame_call(w, ip, calling))
        return stop_trap(w);
    return leave(w, VM_STOP_TURN, w->pc);
}
HANDLER(TRAP) {
    (void)regs;
    vm_run_end(w, pc_of(w, ip) + 1, 0);
    vm_trap_raise(w, ip, VM_TRAP_ILLEGAL_INSTRUCTION, (unsigned)__builtin_ctz(mask), NULL,
                  "the kernel executed '%s'", ptx_op_get(ip->row)->name);
    return stop_trap(w);
}
HANDLER(SLEEP) {
    (void)regs, (void)mask;
    w->budget = 0; /* the next branch gives the turn to another warp */
    NEXT;
}
HANDLER(NOTHING) {
    (void)regs, (void)mask;
    NEXT;
}

static __attribute__((noinline)) const ptx_insn *division_by_zero(vm_warp *w, const ptx_insn *ip,
                                                                  unsigned lane) {
    vm_trap_raise(w, ip, VM_TRAP_DIVISION_BY_ZERO, lane, NULL, "an integer divided by zero");
    return stop_trap(w);
}

/* ---- the stack of a thread */

HANDLER(ALLOCA) {
    (void)regs;
    if (!vm_frame_alloca(w, ip, mask))
        return stop_trap(w);
    NEXT;
}
HANDLER(STACKSAVE) {
    for (uint32_t left = mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        if (ip->t == PTX_T_u64)
            SLOT(uint64_t, ip->d)[i] = w->frame->local_top[i];
        else
            SLOT(uint32_t, ip->d)[i] = w->frame->local_top[i];
    }
    NEXT;
}
HANDLER(STACKRESTORE) {
    (void)regs;
    if (!vm_frame_stack_restore(w, ip, mask))
        return stop_trap(w);
    NEXT;
}

/* ---- reconvergence of lanes */

static const ptx_insn *inactive(vm_warp *w, const ptx_insn *ip, unsigned lane, unsigned other) {
    vm_trap_raise(w, ip, VM_TRAP_INACTIVE_LANE, lane, NULL,
                  "lane %u takes part with lane %u, "
                  "which does not execute this instruction or is not in its mask",
                  lane, other);
    return stop_trap(w);
}

/* Leaves the run before `ip`, until the lanes of `wanted` have arrived here. Lanes that the guard
 * excludes go on; they take no part. */
static const ptx_insn *wait_for(vm_warp *w, const ptx_insn *ip, uint32_t mask, uint32_t wanted) {
    vm_run_end(w, pc_of(w, ip), 0);
    if (mask != w->mask) {
        vm_set_push(w, w->mask & ~mask, pc_of(w, ip) + 1, w->frame);
        w->mask = mask;
    }
    w->wanted = wanted;
    return leave(w, VM_STOP_SYNC, pc_of(w, ip));
}

/* The union of the lanes' member masks m. *odd: lanes that are missing from their own mask. *apart:
 * a lane names another lane here whose mask differs. Lanes of one mask are looked at together. */
static __attribute__((noinline)) uint32_t unlike_masks(const uint32_t *m, uint32_t mask,
                                                       uint32_t *odd, bool *apart) {
    uint32_t all = 0;
    for (uint32_t left = mask; left;) {
        uint32_t members = m[__builtin_ctz(left)], same = 0;
        LANES same |= (uint32_t)(m[i] == members) << i;
        same &= mask;
        all |= members;
        *odd |= same & ~members;
        *apart |= (members & mask & ~same) != 0;
        left &= ~same;
    }
    return all;
}
/* Whether all live lanes that the active lanes' member masks name have arrived here. If not, ends
 * the run: the lanes wait, or the launch traps. Lanes that name each other must have the same mask;
 * where the masks differ, the scheduler decides which lanes form a group (vm_reconverge.c). */
static inline bool all_here(vm_warp *w, const ptx_insn *ip, const uint8_t *regs, uint32_t slot,
                            uint32_t mask) {
    const uint32_t *m = CSLOT(uint32_t, slot);
    uint32_t all = m[__builtin_ctz(mask)], differs = 0, odd = mask & ~all;
    bool apart = false;
    LANES differs |= mask >> i & 1 ? m[i] ^ all : 0;
    if (__builtin_expect(differs != 0, 0)) {
        odd = 0;
        all = unlike_masks(m, mask, &odd, &apart);
    }
    if (__builtin_expect(!odd && !apart && !(all & w->live & ~mask), 1))
        return true;
    if (odd)
        inactive(w, ip, (unsigned)__builtin_ctz(odd), (unsigned)__builtin_ctz(odd));
    else
        wait_for(w, ip, mask, apart ? 0 : all & w->live);
    return false;
}
#define MEET(slot)                                                                                 \
    do {                                                                                           \
        if (!all_here(w, ip, regs, slot, mask))                                                    \
            return NULL;                                                                           \
        if (!w->check_lanes)                                                                       \
            race_sync_warp(w);                                                                     \
    } while (0)

#define EXCHANGED                                                                                  \
    do {                                                                                           \
        if (__builtin_expect(w->observed, 0))                                                      \
            vm_event_push(w, pc_of(w, ip), mask);                                                  \
    } while (0)

/* It alone orders the lanes' accesses to memory (PTX ISA, bar.warp.sync): shuffles and votes, for
 * which lanes wait as well, do not (VM_CHECK_LANES). */
HANDLER(BARWARP) {
    MEET(ip->a);
    race_sync_warp(w);
    EXCHANGED;
    NEXT;
}

/* The source lane of each lane, and whether it is in range. Out of range, the source is the lane
 * itself (PTX ISA, shfl). */
typedef struct shuffle_lanes {
    int32_t from[32], in[32];
} shuffle_lanes;
#define SHUFFLE(j_, in_)                                                                           \
    LANES {                                                                                        \
        int32_t lane = (int32_t)i, by = (int32_t)(b[i] & 31), clamp = (int32_t)(c[i] & 31);        \
        int32_t segment = (int32_t)(c[i] >> 8 & 31), least = lane & segment;                       \
        int32_t most = least | (clamp & ~segment), j = (j_);                                       \
        s->in[i] = (in_);                                                                          \
        s->from[i] = s->in[i] ? j & 31 : lane;                                                     \
        (void)least, (void)most;                                                                   \
    }
static inline void shuffle_sources(shuffle_lanes *s, uint8_t how, const uint32_t *b,
                                   const uint32_t *c) {
    switch (how) {
    case PTX_M_UP:
        SHUFFLE(lane - by, j >= most)
        return;
    case PTX_M_DOWN:
        SHUFFLE(lane + by, j <= most)
        return;
    case PTX_M_BFLY:
        SHUFFLE(lane ^ by, j <= most)
        return;
    default:
        SHUFFLE(least | (by & ~segment), j <= most)
    }
}

HANDLER(SHFL) {
    if (ip->flags & PTX_F_SYNC)
        MEET(ip->e);
    SOURCES3(u32)
    shuffle_lanes s;
    int32_t off[32];
    uint32_t result[32];
    shuffle_sources(&s, ip->op, pb, pc);
    if (mask != VM_FULL) {
        LANES off[i] = (int32_t)(mask >> i & ~(mask >> s.from[i]) & 1);
        uint32_t alone = mask_of(off);
        if (alone) {
            unsigned lane = (unsigned)__builtin_ctz(alone);
            return inactive(w, ip, lane, (unsigned)s.from[lane]);
        }
    }
    LANES result[i] = pa[s.from[i]];
    memcpy(w->tmp, result, sizeof result);
    blend32(regs + ip->d, w->tmp, mask);
    if (ip->d2 != PTX_NONE)
        put_predicate(regs, ip->d2, mask_of(s.in), mask);
    EXCHANGED;
    NEXT;
}

HANDLER(VOTE) {
    uint32_t p = predicate(ip, regs, ip->a, 0);
    if (ip->flags & PTX_F_SYNC)
        MEET(ip->b);
    uint32_t yes = p & mask;
    if (ip->t == PTX_T_pred) {
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            uint32_t who = ip->flags & PTX_F_SYNC ? CSLOT(uint32_t, ip->b)[i] & mask : mask;
            bool all = (yes & who) == who, none = (yes & who) == 0;
            bool other = ip->op == PTX_M_ANY ? !none : all || none;
            bool r = ip->op == PTX_M_ALL ? all : other;
            put_predicate(regs, ip->d, r ? VM_FULL : 0, 1u << i);
        }
    } else {
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            uint32_t who = ip->flags & PTX_F_SYNC ? CSLOT(uint32_t, ip->b)[i] : mask;
            SLOT(uint32_t, ip->d)[i] = yes & who;
        }
    }
    EXCHANGED;
    NEXT;
}

#define H_MATCH(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        MEET(ip->b);                                                                               \
        SOURCES1(T) const uint32_t *pb = CSLOT(uint32_t, ip->b);                                   \
        uint32_t result[32];                                                                       \
        for (unsigned i = 0; i < 32; i++) {                                                        \
            uint32_t same = 0, who = pb[i] & mask;                                                 \
            for (unsigned j = 0; j < 32; j++)                                                      \
                same |= (uint32_t)(who >> j & 1 && pa[j] == pa[i]) << j;                           \
            bool all = same == who;                                                                \
            result[i] = ip->row == PTX_OP_MATCH_ANY ? same : all ? who : 0;                        \
            if (ip->d2 != PTX_NONE && mask >> i & 1)                                               \
                put_predicate(regs, ip->d2, all ? VM_FULL : 0, 1u << i);                           \
        }                                                                                          \
        memcpy(w->tmp, result, sizeof result);                                                     \
        blend32(regs + ip->d, w->tmp, mask);                                                       \
        EXCHANGED;                                                                                 \
        NEXT;                                                                                      \
    }
#define H_REDUX(T, id, expr)                                                                       \
    HANDLER(id##_##T) {                                                                            \
        MEET(ip->b);                                                                               \
        SOURCES1(T) const uint32_t *pb = CSLOT(uint32_t, ip->b);                                   \
        uint32_t result[32] = {0};                                                                 \
        for (uint32_t left = mask; left; left &= left - 1) {                                       \
            unsigned i = (unsigned)__builtin_ctz(left);                                            \
            uint32_t who = pb[i] & mask;                                                           \
            CT_##T a = GET_##T(pa[__builtin_ctz(who)]);                                            \
            for (who &= who - 1; who; who &= who - 1) {                                            \
                CT_##T b = GET_##T(pa[__builtin_ctz(who)]);                                        \
                a = (CT_##T)(expr);                                                                \
            }                                                                                      \
            result[i] = PUT_##T(a);                                                                \
        }                                                                                          \
        memcpy(w->tmp, result, sizeof result);                                                     \
        blend32(regs + ip->d, w->tmp, mask);                                                       \
        EXCHANGED;                                                                                 \
        NEXT;                                                                                      \
    }
HANDLER(ELECT) {
    MEET(ip->a);
    const uint32_t *pa = CSLOT(uint32_t, ip->a);
    uint32_t chosen = 0;
    for (unsigned i = 0; i < 32; i++) {
        unsigned leader = pa[i] & mask ? (unsigned)__builtin_ctz(pa[i] & mask) : 0;
        w->tmp[i] = leader;
        chosen |= (uint32_t)(leader == i) << i;
    }
    blend32(regs + ip->d, w->tmp, mask);
    put_predicate(regs, ip->d2, chosen, mask);
    EXCHANGED;
    NEXT;
}
HANDLER(ACTIVEMASK) {
    LANES w->tmp[i] = mask;
    blend32(regs + ip->d, w->tmp, mask);
    NEXT;
}

/* ---- barriers of a block: the scheduler keeps them (vm_schedule.c) */

HANDLER(BARSYNC) {
    (void)regs, (void)mask;
    if (mask != w->mask) { /* the guard divides the set: the division is permanent */
        vm_run_end(w, pc_of(w, ip), 0);
        vm_set_push(w, w->mask & ~mask, pc_of(w, ip) + 1, w->frame);
        w->mask = mask;
        w->run_pc = pc_of(w, ip);
    }
    vm_run_end(w, pc_of(w, ip) + 1, 0);
    EXCHANGED;
    return leave(w, VM_STOP_BARRIER, pc_of(w, ip) + 1);
}
#define h_BARRED h_BARSYNC /* the scheduler computes the reduction */
HANDLER(FENCE) {
    (void)regs;
    race_fence(w, ip);
    EXCHANGED;
    NEXT;
}
