/* The turn of a warp: the choice of the set of lanes that runs, divergence and reconvergence of
 * sets, and the barriers of a block.
 *
 * A set is a group of lanes at the same pc in the same frame. A divergent branch splits a set, and
 * `push` merges sets that stand at the same place. The set deepest in calls runs first, and among
 * equals the set at the lowest pc. Lanes that took different paths therefore reconverge where the
 * paths join, without a reconvergence stack or post-dominators (minimum-PC scheduling: Collange,
 * "Stack-less SIMT Reconvergence at Low Cost", 2011).
 *
 * The rule alone would starve a lane that another set spins on. So after SLICE instructions with
 * other sets ready, the set that has waited longest gets a slice: independent thread scheduling of
 * sm_70 and later promises that progress.
 *
 * Barriers count arrivals of threads (PTX ISA, "bar, barrier"). An aligned barrier takes all live
 * lanes of a warp at once: the sets of the warp first merge in the state VM_SET_RECONVERGING. */
#include "fitness/vm/vm_frame.h"

#include <string.h>

#define SLICE 512

static bool satisfied(const vm_warp *w, const vm_set *s) {
    return !s->apart && (s->wanted & w->live & ~s->mask) == 0;
}

static bool joinable(const vm_set *a, const vm_set *b) {
    bool waits = a->state == VM_SET_BARRIER || b->state == VM_SET_BARRIER;
    bool alike = (a->state == VM_SET_RECONVERGING) == (b->state == VM_SET_RECONVERGING);
    return a->pc == b->pc && a->frame == b->frame && !waits && alike;
}

/* A waiting set that others join looks again: its guard and masks for the new lanes. */
static vm_set *push(vm_warp *w, vm_set set) {
    for (unsigned i = 0; i < w->set_count; i++) {
        vm_set *s = &w->sets[i];
        if (!joinable(s, &set))
            continue;
        s->mask |= set.mask;
        s->wanted |= set.wanted;
        s->apart |= set.apart;
        s->state = set.state == VM_SET_READY ? VM_SET_READY : s->state;
        return s;
    }
    set.ran = w->ticks;
    w->sets[w->set_count] = set;
    return &w->sets[w->set_count++];
}

void vm_set_push(vm_warp *w, uint32_t mask, uint32_t pc, vm_frame *frame) {
    push(w, (vm_set){.mask = mask, .pc = pc, .frame = frame, .state = VM_SET_READY});
}

static bool ready(const vm_warp *w, const vm_set *s) {
    return s->state == VM_SET_READY || (s->state == VM_SET_SYNC && satisfied(w, s));
}

bool vm_warp_ready(const vm_warp *w) {
    for (unsigned i = 0; i < w->set_count; i++)
        if (ready(w, &w->sets[i]))
            return true;
    return false;
}

static bool before(const vm_set *a, const vm_set *b) {
    if (a->frame->depth != b->frame->depth)
        return a->frame->depth > b->frame->depth;
    return a->pc < b->pc;
}

/* The set to run, or -1. Forced: the one that waited longest. */
static int choose(const vm_warp *w, bool forced) {
    int best = -1;
    for (unsigned i = 0; i < w->set_count; i++) {
        const vm_set *s = &w->sets[i];
        if (!ready(w, s))
            continue;
        if (best < 0 || (forced ? s->ran < w->sets[best].ran : before(s, &w->sets[best])))
            best = (int)i;
    }
    return best;
}

/* The least pc of another ready set at the same call depth. The running set stops there, so that
 * the two can reconverge. */
static uint32_t next_reconvergence(const vm_warp *w, const vm_set *running) {
    uint32_t stop = UINT32_MAX;
    for (unsigned i = 0; i < w->set_count; i++) {
        const vm_set *s = &w->sets[i];
        if (s->frame->depth == running->frame->depth && s->pc < stop && ready(w, s))
            stop = s->pc;
    }
    return stop;
}

/* ---- barriers */

static uint32_t operand(const vm_frame *f, uint32_t slot, unsigned lane) {
    return ((const uint32_t *)(const void *)(f->regs + slot))[lane];
}

/* Which operands of a barrier instruction are its count and its predicate. */
typedef struct barrier_shape {
    uint32_t count, predicate;
    bool negated;
} barrier_shape;

static barrier_shape shape_of(const ptx_insn *ip) {
    bool reduces = ptx_op_get(ip->row)->shape == PTX_S_BARRED;
    bool counted = ip->c != PTX_NONE;
    if (!reduces)
        return (barrier_shape){.count = ip->b, .predicate = PTX_NONE};
    return (barrier_shape){.count = counted ? ip->b : PTX_NONE,
                           .predicate = counted ? ip->c : ip->b,
                           .negated = ip->negate >> (counted ? 2 : 1) & 1};
}

static void arrive(vm_warp *w, const ptx_insn *ip, vm_set *set) {
    barrier_shape shape = shape_of(ip);
    unsigned lane = (unsigned)__builtin_ctz(set->mask);
    uint32_t id = operand(set->frame, ip->a, lane);
    if (id >= VM_BARRIERS) {
        vm_trap_raise(w, ip, VM_TRAP_ILLEGAL_INSTRUCTION, lane, NULL,
                      "barrier %u: a block has 16, from 0 to 15", id);
        return;
    }
    vm_barrier *b = &w->block->barriers[id];
    uint32_t expected = shape.count == PTX_NONE ? 0 : operand(set->frame, shape.count, lane);
    unsigned lanes = (unsigned)__builtin_popcount(set->mask);
    b->expected = expected;
    b->arrived += expected && ip->flags & PTX_F_ALIGNED ? VM_LANES : lanes;
    if (shape.predicate != PTX_NONE) {
        uint32_t p = *(const uint32_t *)(const void *)(set->frame->regs + shape.predicate);
        p = (shape.negated ? ~p : p) & set->mask;
        b->count += (uint32_t)__builtin_popcount(p);
        b->some_false |= p != set->mask;
    }
    w->state->result->counters.barriers++;
    set->state = ip->flags & PTX_F_ARRIVE ? VM_SET_READY : VM_SET_BARRIER;
    set->barrier = id;
}

/* A set reached a barrier. An aligned barrier needs all live lanes of the warp in one set. */
static void stop_at_barrier(vm_warp *w, vm_set set) {
    const ptx_insn *ip = &w->code[set.pc - 1];
    set.state = VM_SET_RECONVERGING;
    vm_set *s = push(w, set);
    if (!(ip->flags & PTX_F_ALIGNED) || s->mask == w->live)
        arrive(w, ip, s);
}

static void give_result(const vm_warp *w, const vm_barrier *b, const vm_set *s) {
    const ptx_insn *ip = &w->code[s->pc - 1];
    if (ptx_op_get(ip->row)->shape != PTX_S_BARRED)
        return;
    uint8_t *slot = s->frame->regs + ip->d;
    if (ip->t == PTX_T_pred) {
        bool yes = ip->op == PTX_M_BRAND ? !b->some_false : b->count != 0;
        uint32_t *p = (uint32_t *)(void *)slot;
        *p = yes ? *p | s->mask : *p & ~s->mask;
        return;
    }
    for (unsigned i = 0; i < VM_LANES; i++)
        if (s->mask >> i & 1)
            ((uint32_t *)(void *)slot)[i] = b->count;
}

static void release(vm_block *b, unsigned id) {
    vm_barrier *barrier = &b->barriers[id];
    vm_race_barrier(b, id);
    vm_trap_settle(b->warps[0].state, b);
    for (uint32_t k = 0; k < b->warp_count; k++) {
        vm_warp *w = &b->warps[k];
        for (unsigned i = 0; i < w->set_count; i++) {
            vm_set *s = &w->sets[i];
            if (s->state != VM_SET_BARRIER || s->barrier != id)
                continue;
            give_result(w, barrier, s);
            s->state = VM_SET_READY;
        }
    }
    *barrier = (vm_barrier){0};
}

/* Lanes of the warp that wait at the barrier, each for itself. */
static uint32_t lanes_waiting(const vm_warp *w, unsigned id) {
    uint32_t lanes = 0;
    for (unsigned i = 0; i < w->set_count; i++) {
        const vm_set *s = &w->sets[i];
        bool waits = s->state == VM_SET_BARRIER && s->barrier == id;
        lanes |= waits && !(w->code[s->pc - 1].flags & PTX_F_ALIGNED) ? s->mask : 0;
    }
    return lanes;
}

/* A barrier with a count counts warps: one whose live lanes all wait arrives with all 32 (PTX ISA,
 * "bar, barrier"). Those that `arrive` has not counted. */
static uint32_t lanes_gone(const vm_block *b, unsigned id) {
    uint32_t gone = 0;
    for (uint32_t k = 0; k < b->warp_count; k++) {
        const vm_warp *w = &b->warps[k];
        if (w->live != 0 && w->live != VM_FULL && lanes_waiting(w, id) == w->live)
            gone += VM_LANES - (uint32_t)__builtin_popcount(w->live);
    }
    return gone;
}

void vm_barriers_check(vm_block *b) {
    for (unsigned id = 0; id < VM_BARRIERS; id++) {
        const vm_barrier *barrier = &b->barriers[id];
        uint32_t expected = barrier->expected ? barrier->expected : b->live_threads;
        uint32_t arrived = barrier->arrived;
        if (arrived && arrived < expected && barrier->expected)
            arrived += lanes_gone(b, id);
        if (arrived && arrived >= expected)
            release(b, id);
    }
}

/* After lanes have ended: the remaining lanes of their warp may be complete at a barrier. */
static void check_reconvergence(vm_warp *w) {
    for (unsigned i = 0; i < w->set_count; i++) {
        vm_set *s = &w->sets[i];
        if (s->state == VM_SET_RECONVERGING && s->mask == w->live)
            arrive(w, &w->code[s->pc - 1], s);
    }
    vm_reconverge(w);
    vm_barriers_check(w->block);
}

static void stop_at_exchange(vm_warp *w, vm_set set) {
    set.state = VM_SET_SYNC;
    set.wanted = w->wanted;
    set.apart = !w->wanted;
    vm_set *s = push(w, set);
    if (!ready(w, s))
        vm_reconverge(w);
}

/* ---- the turn */

static void after_run(vm_warp *w, vm_set set) {
    set.mask = w->mask;
    set.pc = w->pc;
    set.frame = w->frame;
    set.ran = w->ticks;
    set.wanted = 0;
    set.apart = false;
    switch (w->stop) {
    case VM_STOP_TURN:
        set.state = VM_SET_READY;
        push(w, set);
        break;
    case VM_STOP_SYNC:
        stop_at_exchange(w, set);
        break;
    case VM_STOP_BARRIER:
        stop_at_barrier(w, set);
        vm_barriers_check(w->block);
        break;
    case VM_STOP_GONE:
    case VM_STOP_TRAP:
        break;
    }
}

bool vm_warp_turn(vm_warp *w, int64_t budget) {
    vm_state *s = w->state;
    bool forced = false;
    w->spins = true;
    w->yields = false;
    while (budget > 0 && !w->yields) {
        int chosen = choose(w, forced);
        if (chosen < 0)
            break;
        vm_set set = w->sets[chosen];
        w->sets[chosen] = w->sets[--w->set_count];
        int64_t slice = w->set_count && budget > SLICE ? SLICE : budget;
        w->mask = set.mask;
        w->pc = set.pc;
        w->frame = set.frame;
        w->regs = set.frame->regs;
        w->stop_pc = forced ? UINT32_MAX : next_reconvergence(w, &set);
        w->budget = slice;
        w->spared = 0;
        w->ticks++;
        uint32_t live = w->live;
        s->run(w);
        if (w->stop == VM_STOP_TRAP || s->out_of_memory)
            return false;
        int64_t used = slice - w->spared - w->budget;
        forced = w->budget <= 0 && w->set_count > 0;
        budget -= (used > 0 ? used : 1) + w->spared;
        w->spins &= w->spared > 0;
        w->block->instructions += (uint64_t)(used > 0 ? used : 1);
        after_run(w, set);
        if (w->live != live)
            check_reconvergence(w);
        if (s->trapped)
            return false;
    }
    if (w->observed)
        vm_batch_flush(w);
    return true;
}
