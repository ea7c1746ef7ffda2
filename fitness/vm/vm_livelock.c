/* Livelock detection: proves that the resident blocks will never change anything again, and names
 * the waiting warp and the polled address.
 *
 * A rotation gives each resident block one turn. A rotation is quiet if no memory changed, no
 * block began or ended, and no clock was read; a failed compare-and-swap changes nothing. After a
 * quiet rotation the state of each block is hashed: registers, places and masks of its warps,
 * local memory, barriers. Blocks cannot influence each other in quiet rotations, so a block that
 * returns to an earlier state repeats itself for ever. When all blocks repeat, nothing can happen
 * any more. A loop that counts, computes or reads a clock never returns to the same state, however
 * long the loop runs.
 *
 * The earlier state is the one after 1, 2, 4, 8, … quiet rotations, so a period of any length is
 * found with one stored hash a block (R. P. Brent, "An improved Monte Carlo factorization
 * algorithm", 1980).
 *
 * `report` then runs each ready warp for a short time and records its loads. A warp that polls an
 * address is a deadlock; a circle without loads is a livelock. When the fuel runs out, the same
 * check with short turns looks for a proof once more; without one, the trap is VM_TRAP_FUEL. */
#include "fitness/vm/vm_wave.h"

#include <stdio.h>
#include <string.h>

#define WATCH_TURN 4096 /* warp instructions */
#define WATCH_TURNS 64
#define LAST_ROTATIONS 64 /* after the fuel, to find out why */

/* ---- the state of a block */

static uint64_t mix(uint64_t h, uint64_t value) {
    h ^= value;
    return (h << 23 | h >> 41) * 0x9e3779b97f4a7c15ull;
}

static uint64_t mix_bytes(uint64_t h, const uint8_t *bytes, size_t count) {
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        uint64_t v;
        memcpy(&v, bytes + i, sizeof v);
        h = mix(h, v);
    }
    for (; i < count; i++)
        h = mix(h, bytes[i]);
    return h;
}

/* A frame and those that the lanes of `mask` return to. Their depth is bounded by the stack. */
static uint64_t mix_frame(uint64_t h, const vm_state *s, const vm_frame *f, uint32_t mask) {
    while (f) {
        h = mix(h, (uint64_t)f->func << 32 | f->lanes);
        h = mix_bytes(h, f->regs, s->module->funcs[f->func].frame_bytes);
        if (!f->depth)
            return mask ? mix(h, f->local_top[__builtin_ctz(mask)]) : h;
        const vm_frame *parent = f->parent[__builtin_ctz(mask)];
        uint32_t same = 0;
        for (uint32_t left = mask; left; left &= left - 1) {
            unsigned i = (unsigned)__builtin_ctz(left);
            h = mix(h, f->ret_pc[i]);
            h = mix(h, (uint64_t)f->local_base[i] << 32 | f->local_top[i]);
            same |= (uint32_t)(f->parent[i] == parent) << i;
        }
        if (mask & ~same)
            h = mix_frame(h, s, f->parent[__builtin_ctz(mask & ~same)], mask & ~same);
        f = parent;
        mask = same;
    }
    return h;
}

static uint64_t mix_warp(uint64_t h, const vm_warp *w) {
    h = mix(h, (uint64_t)w->live << 32 | w->cc);
    for (unsigned i = 0; i < w->set_count; i++) {
        const vm_set *a = &w->sets[i];
        unsigned earlier = 0, twin = i;
        for (unsigned k = 0; k < w->set_count; k++) {
            earlier += w->sets[k].ran < a->ran;
            twin = k < twin && w->sets[k].frame == a->frame ? k : twin;
        }
        h = mix(h, (uint64_t)a->mask << 32 | a->pc);
        h = mix(h, (uint64_t)a->wanted << 32 | a->barrier << 8 | a->state);
        h = mix(h, earlier << 8 | twin);
        h = mix_frame(h, w->state, a->frame, a->mask);
    }
    return w->set_count ? mix_bytes(h, w->local, w->local_capacity * VM_LANES) : h;
}

static uint64_t state_of(const vm_block *b) {
    uint64_t h = b->linear;
    for (uint32_t i = 0; i < b->warp_count; i++)
        h = mix_warp(h, &b->warps[i]);
    for (unsigned i = 0; i < VM_BARRIERS; i++) {
        const vm_barrier *r = &b->barriers[i];
        h = mix(h, (uint64_t)r->arrived << 32 | r->expected);
        h = mix(h, (uint64_t)r->count << 32 | r->some_false);
    }
    return h;
}

/* ---- what a warp polls */

void vm_poll_note(vm_warp *w, const ptx_insn *ip, vm_space space, unsigned lane, uint64_t address) {
    vm_poll *p = w->state->poll;
    uint8_t shape = ptx_op_get(ip->row)->shape;
    bool shared = space == VM_SPACE_SHARED;
    if (shape == PTX_S_ST || (space != VM_SPACE_GLOBAL && !shared))
        return;
    bool strong = ip->strong || shape != PTX_S_LD;
    if (p->found && p->strong && !strong)
        return;
    *p = (vm_poll){.found = true,
                   .strong = strong,
                   .shared = shared,
                   .pc = (uint32_t)(ip - w->code),
                   .lane = lane,
                   .address = address};
}

bool vm_livelock_trace(vm_warp *w, vm_poll *out) {
    vm_state *s = w->state;
    *out = (vm_poll){0};
    bool observed = w->observed;
    w->observed = true;
    s->poll = out;
    for (unsigned i = 0; i < WATCH_TURNS && !out->found && vm_warp_ready(w); i++)
        if (!vm_warp_turn(w, WATCH_TURN))
            break;
    s->poll = NULL;
    w->observed = observed;
    return out->found;
}

void vm_livelock_name(const vm_state *s, const vm_poll *p, char *text, size_t bytes) {
    const vm_alloc *a = p->shared ? NULL : vm_memory_find(s->memory, p->address, 1);
    if (a)
        (void)snprintf(text, bytes, "'%.100s'+%llu", a->name,
                       (unsigned long long)(p->address - VM_GLOBAL_BASE - a->offset));
    if (a)
        vm_rank_append_owner(s, a->offset, text, bytes);
    else
        (void)snprintf(text, bytes, "%s+%llu", p->shared ? "shared memory" : "address 0",
                       (unsigned long long)(p->address & (VM_WINDOW(1) - 1)));
}

/* ---- the report */

/* "; blocks 8 to 15 wait for a place (2 are resident)", or nothing. */
static void name_unstarted(const vm_session *x, char *text, size_t bytes) {
    text[0] = '\0';
    for (uint32_t r = 0; r < x->count; r++) {
        const vm_state *s = &x->ranks[r];
        const vm_wave *v = s->wave;
        size_t used = strlen(text);
        if (v->next >= v->total || used + 100 > bytes)
            continue;
        char rank[24] = "";
        if (x->count > 1)
            (void)snprintf(rank, sizeof rank, " of rank %u", r);
        uint64_t left = v->total - v->next;
        uint32_t first = vm_wave_block(s, v->next), last = vm_wave_block(s, v->total - 1);
        if (left == 1)
            (void)snprintf(text + used, bytes - used, "; block %u%s waits", first, rank);
        else if (v->step == 1)
            (void)snprintf(text + used, bytes - used, "; blocks %u to %u%s wait", first, last,
                           rank);
        else
            (void)snprintf(text + used, bytes - used, "; %llu blocks%s, %u first, wait",
                           (unsigned long long)left, rank, first);
        used = strlen(text);
        (void)snprintf(text + used, bytes - used, " for a place (%u resident)", v->count);
    }
}

/* "; 3 other warps spin, 2 wait for them", or nothing. */
static void count_others(const vm_session *x, char *text, size_t bytes) {
    unsigned spin = 0, wait = 0;
    for (uint32_t r = 0; r < x->count; r++)
        for (uint32_t i = 0; i < x->ranks[r].block_count; i++) {
            const vm_block *b = &x->ranks[r].blocks[i];
            for (uint32_t k = 0; b->active && k < b->warp_count; k++) {
                bool ready = vm_warp_ready(&b->warps[k]);
                spin += ready;
                wait += !ready && b->warps[k].live;
            }
        }
    text[0] = '\0';
    if (spin > 1)
        (void)snprintf(text, bytes, "; %u other warp%s too", spin - 1,
                       spin == 2 ? " spins" : "s spin");
    size_t used = strlen(text);
    if (wait)
        (void)snprintf(text + used, bytes - used, "; %u warp%s at a barrier or for lanes", wait,
                       wait == 1 ? " waits" : "s wait");
}

static void raise_deadlock(vm_session *x, vm_warp *w, const vm_poll *p) {
    char name[160], unstarted[200], others[120], ended[120];
    vm_livelock_name(w->state, p, name, sizeof name);
    name_unstarted(x, unstarted, sizeof unstarted);
    count_others(x, others, sizeof others);
    vm_rank_name_ended(x, ended, sizeof ended);
    vm_trap_raise(w, &w->code[p->pc], VM_TRAP_DEADLOCK, p->lane, NULL,
                  "polls %s, which nothing %schanges%s%s%s", name, unstarted[0] ? "resident " : "",
                  unstarted, others, ended);
    w->state->result->trap.has_address = true;
    w->state->result->trap.address = p->address;
}

static vm_warp *first_ready(const vm_session *x) {
    for (uint32_t r = 0; r < x->count; r++)
        for (uint32_t i = 0; i < x->ranks[r].block_count; i++) {
            const vm_block *b = &x->ranks[r].blocks[i];
            for (uint32_t k = 0; b->active && k < b->warp_count; k++)
                if (vm_warp_ready(&b->warps[k]))
                    return &b->warps[k];
        }
    return NULL;
}

/* Every block repeats itself: one that polls is a deadlock, else all run in circles. */
static bool report(vm_session *x) {
    vm_warp *first = first_ready(x);
    for (uint32_t r = 0; r < x->count; r++)
        for (uint32_t i = 0; i < x->ranks[r].block_count; i++) {
            vm_block *b = &x->ranks[r].blocks[i];
            for (uint32_t k = 0; b->active && k < b->warp_count; k++) {
                vm_warp *w = &b->warps[k];
                vm_poll poll;
                if (!vm_warp_ready(w))
                    continue;
                bool polls = vm_livelock_trace(w, &poll);
                if (polls && !poll.shared && w->state->launch->host_writes && !w->state->trapped)
                    return false;
                if (polls) {
                    raise_deadlock(x, w, &poll);
                    return true;
                }
            }
        }
    /* a host that may write has perhaps just let go what polled until now: fuel ends the rest */
    if (first && first->state->launch->host_writes)
        return false;
    if (first)
        vm_trap_raise(first, &first->code[first->sets[0].pc], VM_TRAP_LIVELOCK,
                      (unsigned)__builtin_ctz(first->sets[0].mask), NULL,
                      "runs in a circle that reads and changes nothing");
    return first != NULL;
}

/* ---- rotations */

static bool was_quiet(vm_state *s) {
    vm_wave *v = s->wave;
    uint64_t now = s->result->counters.thread_instructions;
    bool quiet = s->last_change < v->instructions_then && s->happenings == v->happenings_then;
    v->instructions_then = now;
    v->happenings_then = s->happenings;
    return quiet;
}

/* Has the block come back to an earlier state? */
static bool repeats(vm_block *b, uint64_t rotation) {
    if (rotation == 1)
        b->repeats = false;
    if (b->repeats)
        return true;
    uint64_t now = state_of(b);
    b->repeats = rotation > 1 && now == b->earlier;
    if ((rotation & (rotation - 1)) == 0)
        b->earlier = now;
    return b->repeats;
}

bool vm_livelock_rotation(vm_session *x) {
    bool quiet = true, all = true;
    for (uint32_t r = 0; r < x->count; r++)
        quiet &= was_quiet(&x->ranks[r]);
    x->quiet = quiet ? x->quiet + 1 : 0;
    if (!quiet)
        return false;
    for (uint32_t r = 0; r < x->count; r++)
        for (uint32_t i = 0; i < x->ranks[r].block_count; i++) {
            vm_block *b = &x->ranks[r].blocks[i];
            all &= !b->active || repeats(b, x->quiet);
        }
    return all && report(x);
}

/* A short turn for each warp of all blocks; false: one ended, or trapped. */
static bool rotate_shortly(vm_session *x) {
    for (uint32_t r = 0; r < x->count; r++)
        for (uint32_t i = 0; i < x->ranks[r].block_count; i++) {
            vm_block *b = &x->ranks[r].blocks[i];
            for (uint32_t k = 0; b->active && k < b->warp_count; k++)
                if (vm_warp_ready(&b->warps[k]) && !vm_warp_turn(&b->warps[k], WATCH_TURN))
                    return false;
            if (b->active && !b->live_threads)
                return false;
        }
    return true;
}

bool vm_livelock_out_of_fuel(vm_session *x) {
    for (unsigned i = 0; i < LAST_ROTATIONS; i++) {
        if (!rotate_shortly(x))
            break;
        if (vm_livelock_rotation(x))
            return true;
    }
    for (uint32_t r = 0; r < x->count; r++)
        if (x->ranks[r].trapped || x->ranks[r].out_of_memory)
            return true;
    return false;
}
