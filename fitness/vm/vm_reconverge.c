/* Reconvergence at different places: warp exchanges between sets of lanes that stand at different
 * instructions.
 *
 * A lane at an instruction with a member mask "waits until all non-exited threads corresponding to
 * membermask have executed [it] with the same qualifiers and same membermask value" (PTX ISA,
 * shfl.sync, vote.sync, match.sync, redux.sync, elect.sync, bar.warp.sync). The lanes may stand at
 * different instructions of the text, because compilers copy the tail of a loop into both arms of
 * a branch. Where all lanes of a mask stand at one place, the executor does the exchange, and this
 * file is not needed.
 *
 * Otherwise `find_complete` looks for a mask whose lanes all wait. `gather` copies the operands of
 * these lanes into one frame of a temporary instruction, `execute` runs the usual handler once for
 * all of them, and `scatter` copies each lane's result to that lane's own destination. Each lane
 * then continues behind its own instruction. Before sm_70 all lanes of the mask must stand at the
 * same place, so the case is a trap there. */
#include "fitness/vm/vm_frame.h"

#include <string.h>

#define SLOT_BYTES (VM_LANES * 8)

enum { AT_A, AT_B, AT_C, AT_E, AT_D, AT_D2, AT_COUNT };

typedef struct meeting {
    uint8_t regs[AT_COUNT][SLOT_BYTES] __attribute__((aligned(64)));
    ptx_insn insn[2]; /* the exchange, and what ends the run behind it */
    const ptx_insn *at[VM_LANES];
} meeting;

/* Slot of the member mask; PTX_NONE: the instruction has none. */
static uint32_t mask_slot(const ptx_insn *ip) {
    switch (ptx_op_get(ip->row)->shape) {
    case PTX_S_SHFL:
        return ip->flags & PTX_F_SYNC ? ip->e : PTX_NONE;
    case PTX_S_VOTE:
        return ip->flags & PTX_F_SYNC ? ip->b : PTX_NONE;
    case PTX_S_MATCH:
    case PTX_S_REDUX:
        return ip->b;
    case PTX_S_ELECT:
    case PTX_S_BARWARP:
        return ip->a;
    default:
        return PTX_NONE;
    }
}

static bool same_exchange(const ptx_insn *a, const ptx_insn *b) {
    return a->row == b->row && a->op == b->op && a->t == b->t;
}

static uint32_t mask_of_lane(const vm_set *s, uint32_t slot, unsigned lane) {
    return ((const uint32_t *)(const void *)(s->frame->regs + slot))[lane];
}

uint32_t vm_reconverge_mask(const vm_warp *w, const vm_set *s) {
    uint32_t slot = mask_slot(&w->code[s->pc]), all = 0;
    for (uint32_t left = s->mask; left && slot != PTX_NONE; left &= left - 1)
        all |= mask_of_lane(s, slot, (unsigned)__builtin_ctz(left));
    return slot == PTX_NONE ? VM_FULL : all;
}

/* Lanes of the set that wait at an exchange like `ip` with exactly this mask. */
static uint32_t waiting_with(const vm_warp *w, const vm_set *s, const ptx_insn *ip, uint32_t mask) {
    const ptx_insn *at = &w->code[s->pc];
    if (s->state != VM_SET_SYNC || !same_exchange(at, ip))
        return 0;
    uint32_t slot = mask_slot(at), there = 0;
    for (uint32_t left = s->mask & mask; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        there |= (uint32_t)(mask_of_lane(s, slot, i) == mask) << i;
    }
    return there;
}

/* All that live of `mask`, if they are there; else 0. */
static uint32_t complete(const vm_warp *w, const ptx_insn *ip, uint32_t mask) {
    uint32_t there = 0;
    for (unsigned k = 0; k < w->set_count; k++)
        there |= waiting_with(w, &w->sets[k], ip, mask);
    return there == (mask & w->live) ? there : 0;
}

/* A mask of the set's whose lanes are all there; *lanes: those. False: there is none. */
static bool find_complete(const vm_warp *w, const vm_set *s, uint32_t *lanes) {
    const ptx_insn *ip = &w->code[s->pc];
    uint32_t slot = mask_slot(ip);
    if (s->state != VM_SET_SYNC || slot == PTX_NONE)
        return false;
    for (uint32_t left = s->mask; left;) {
        uint32_t mask = mask_of_lane(s, slot, (unsigned)__builtin_ctz(left));
        uint32_t with = waiting_with(w, s, ip, mask);
        *lanes = with ? complete(w, ip, mask) : 0;
        if (*lanes)
            return true;
        left &= ~with & (left - 1);
    }
    return false;
}

/* ---- operands */

static void copy_lanes(uint8_t *to, const uint8_t *from, uint32_t lanes, unsigned bytes) {
    for (uint32_t left = lanes; left; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctz(left);
        size_t at = (size_t)i * bytes;
        memcpy(to + at, from + at, bytes);
    }
}

static void copy_predicate(uint8_t *to, const uint8_t *from, uint32_t lanes, bool negated) {
    uint32_t p, old;
    memcpy(&p, from, sizeof p);
    memcpy(&old, to, sizeof old);
    old = (old & ~lanes) | ((negated ? ~p : p) & lanes);
    memcpy(to, &old, sizeof old);
}

static void gather(meeting *m, const vm_set *s, const ptx_insn *ip, uint32_t lanes) {
    const uint32_t slots[] = {ip->a, ip->b, ip->c, ip->e};
    bool votes = ptx_op_get(ip->row)->shape == PTX_S_VOTE;
    for (unsigned k = AT_A; k <= AT_E; k++) {
        unsigned bytes = k == AT_A && ptx_type_bits((ptx_type)ip->t) == 64 ? 8 : 4;
        if (slots[k] == PTX_NONE)
            continue;
        if (k == AT_A && votes)
            copy_predicate(m->regs[k], s->frame->regs + slots[k], lanes, ip->negate & 1);
        else
            copy_lanes(m->regs[k], s->frame->regs + slots[k], lanes, bytes);
    }
    for (uint32_t left = lanes; left; left &= left - 1)
        m->at[__builtin_ctz(left)] = ip;
}

static void scatter(const meeting *m, const vm_set *s, const ptx_insn *ip, uint32_t lanes) {
    if (ip->d != PTX_NONE && ip->row == PTX_OP_VOTE_SYNC)
        copy_predicate(s->frame->regs + ip->d, m->regs[AT_D], lanes, false);
    else if (ip->d != PTX_NONE)
        copy_lanes(s->frame->regs + ip->d, m->regs[AT_D], lanes, 4);
    if (ip->d2 != PTX_NONE)
        copy_predicate(s->frame->regs + ip->d2, m->regs[AT_D2], lanes, false);
}

static const ptx_insn *end_of_exchange(vm_warp *w, const ptx_insn *ip, uint8_t *regs,
                                       uint32_t mask) {
    (void)w, (void)ip, (void)regs, (void)mask;
    return NULL;
}

/* The same instruction with its operands in the meeting's registers. */
static void make_insn(meeting *m, const ptx_insn *like) {
    uint32_t *slots[] = {&m->insn[0].a, &m->insn[0].b, &m->insn[0].c,
                         &m->insn[0].e, &m->insn[0].d, &m->insn[0].d2};
    m->insn[0] = *like;
    m->insn[0].negate = 0;
    for (uint32_t k = 0; k < AT_COUNT; k++)
        *slots[k] = k * SLOT_BYTES;
    m->insn[1] = (ptx_insn){.fn = end_of_exchange, .body = end_of_exchange};
}

/* ---- the exchange */

/* Counts it for these lanes and lets them go on behind it; the others of the set go on waiting. */
static void let_go(vm_warp *w, vm_set *s, uint32_t lanes) {
    vm_state *state = w->state;
    state->runs[s->pc]++;
    state->runs[s->pc + 1]--;
    state->result->counters.thread_instructions += (unsigned)__builtin_popcount(lanes);
    w->block->instructions++;
    if (w->observed) {
        w->event_pc = s->pc;
        vm_event_push(w, s->pc, lanes);
    }
    s->mask &= ~lanes;
    s->wanted = vm_reconverge_mask(w, s);
}

static bool execute(vm_warp *w, meeting *m, uint32_t lanes) {
    bool observed = w->observed;
    w->observed = false;
    w->places = m->at;
    w->mask = lanes;
    w->regs = m->regs[0];
    (void)m->insn[0].body(w, &m->insn[0], m->regs[0], lanes);
    w->places = NULL;
    w->observed = observed;
    return !w->state->trapped;
}

static bool refuse_apart(vm_warp *w, const vm_set *s, uint32_t lanes) {
    vm_trap_raise(w, &w->code[s->pc], VM_TRAP_INACTIVE_LANE, (unsigned)__builtin_ctz(s->mask), NULL,
                  "lanes %08x execute this instruction, and lanes %08x, which their mask names, "
                  "execute one at another place: before sm_70 all must come here together",
                  s->mask & lanes, lanes & ~s->mask);
    return false;
}

static bool exchange(vm_warp *w, const vm_set *first, uint32_t lanes) {
    meeting m = {0};
    vm_set parts[VM_LANES];
    unsigned count = 0;
    const ptx_insn *ip = &w->code[first->pc];
    uint32_t mask =
        mask_of_lane(first, mask_slot(ip), (unsigned)__builtin_ctz(first->mask & lanes));
    if (w->state->module->sm < 70 && (lanes & ~first->mask))
        return refuse_apart(w, first, lanes);
    make_insn(&m, ip);
    for (unsigned k = 0; k < w->set_count; k++) {
        vm_set part = w->sets[k];
        part.mask = waiting_with(w, &part, ip, mask);
        if (part.mask)
            gather(&m, &part, &w->code[part.pc], part.mask);
    }
    if (!execute(w, &m, lanes))
        return false;
    for (unsigned k = w->set_count; k-- > 0;) {
        vm_set part = w->sets[k];
        part.mask = waiting_with(w, &part, ip, mask);
        if (!part.mask)
            continue;
        parts[count++] = part;
        let_go(w, &w->sets[k], part.mask);
        if (!w->sets[k].mask)
            w->sets[k] = w->sets[--w->set_count];
    }
    for (unsigned k = 0; k < count; k++)
        scatter(&m, &parts[k], &w->code[parts[k].pc], parts[k].mask);
    for (unsigned k = 0; k < count; k++)
        vm_set_push(w, parts[k].mask, parts[k].pc + 1, parts[k].frame);
    return true;
}

void vm_reconverge(vm_warp *w) {
    uint32_t lanes;
    for (unsigned i = 0; i < w->set_count;) {
        if (!find_complete(w, &w->sets[i], &lanes))
            i++;
        else if (exchange(w, &w->sets[i], lanes))
            i = 0;
        else
            return;
    }
}
