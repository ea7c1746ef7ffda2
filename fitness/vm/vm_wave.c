/* Wave: the blocks that are resident at the same time take turns; when one ends, the next block of
 * the grid takes its place.
 *
 * The scheduling is cooperative and deterministic. `rotate` gives each resident block a turn of
 * about BLOCK_TURN warp instructions; `run_block` gives each ready warp of the block turns of
 * QUANTUM. Where several ranks run, turns are shorter, because ranks often wait for each other. A
 * block whose warps all spin gives its turn to the others at once. A turn for each rank is a
 * rotation, and livelock detection (vm_livelock.c) runs after each one.
 *
 * With a schedule seed, blocks start in the order of an affine map (i * step + start) mod total
 * with step coprime to total, which is a permutation, and warps are shuffled anew for each turn
 * (Fisher and Yates). Blocks of ranks may leave their turn behind any warp. A warp may leave its
 * turn before any atomic or strong load, and its block with it: others then come between a read and
 * the compare-and-swap that follows, so a loop that tries until no other thread came between needs
 * its second turn. Gate 6 compares the results of several seeds: different bits reveal a race.
 *
 * Fuel bounds the thread instructions of a launch. A launch out of fuel traps as VM_TRAP_FUEL. If
 * no rank changed memory in the last half of the fuel, vm_livelock.c looks for a proof that the
 * launch cannot end; a loop that merely computes for long has none, and stays VM_TRAP_FUEL. */
#include "fitness/vm/vm_jobs.h"

#include "base/divisor.h"

#include <stdlib.h>

#define QUANTUM (1 << 14)       /* warp instructions a turn */
#define BLOCK_TURN (1ull << 18) /* warp instructions until the next block's turn */
/* The same where several ranks run, which often wait for each other. */
#define RANK_QUANTUM (1 << 11)
#define RANK_BLOCK_TURN (1ull << 15)
#define LEAVING_ODDS 4  /* one in so many (leaves_turn) */
#define YIELDING_ODDS 2 /* one in so many (vm_warp_yields) */

/* ---- fuel */

/* The fuel is gone, and it is unknown whether the launch would have ended. */
static void raise_fuel(vm_state *s, vm_warp *w, const ptx_insn *at, uint64_t used) {
    vm_poll poll;
    char name[160];
    bool waits = vm_livelock_trace(w, &poll) && poll.strong;
    if (waits)
        vm_livelock_name(s, &poll, name, sizeof name);
    vm_trap_raise(w, waits ? &w->code[poll.pc] : at, VM_TRAP_FUEL,
                  waits ? poll.lane : (unsigned)__builtin_ctz(w->sets[0].mask),
                  waits ? &poll.address : NULL,
                  "%llu thread instructions without an end, which is the limit, and no memory "
                  "changed in the last half%s%s; give the loop fewer turns, or the launch a "
                  "higher limit",
                  (unsigned long long)used, waits ? "; the thread polls " : "", waits ? name : "");
}

/* Did another rank change its memory lately? Then it is no standstill. */
static bool others_change(const vm_state *s) {
    const vm_session *x = s->session;
    for (uint32_t r = 0; r < x->count; r++) {
        const vm_state *o = &x->ranks[r];
        if (o != s && o->last_change &&
            o->last_change >= o->result->counters.thread_instructions / 2)
            return true;
    }
    return false;
}

static bool fuel_left(vm_state *s, vm_warp *w) {
    uint64_t used = s->result->counters.thread_instructions;
    if (used < s->fuel)
        return true;
    const ptx_insn *at = &w->code[w->sets[0].pc];
    if (s->last_change >= s->fuel / 2)
        vm_trap_raise(w, at, VM_TRAP_FUEL, (unsigned)__builtin_ctz(w->sets[0].mask), NULL,
                      "%llu thread instructions executed, more than the launch was given",
                      (unsigned long long)used);
    else if (vm_livelock_out_of_fuel(s->session) || s->out_of_memory)
        return false;
    else if (others_change(s))
        vm_trap_raise(w, at, VM_TRAP_FUEL, (unsigned)__builtin_ctz(w->sets[0].mask), NULL,
                      "%llu thread instructions executed, more than the rank was given, while "
                      "other ranks go on",
                      (unsigned long long)used);
    else
        raise_fuel(s, w, at, used);
    return false;
}

static int64_t budget_for(const vm_state *s) {
    uint64_t left = s->fuel - s->result->counters.thread_instructions;
    uint64_t most = s->session->count > 1 ? RANK_QUANTUM : QUANTUM;
    return (int64_t)(left / VM_LANES + 1 < most ? left / VM_LANES + 1 : most);
}

/* ---- turns */

/* Each block has a stream of its own, so its warps' order does not depend on other blocks. */
static void shuffle(const vm_wave *v, vm_block *b) {
    for (uint32_t i = 0; i < b->warp_count; i++)
        v->order[i] = i;
    for (uint32_t i = b->warp_count; i > 1 && v->seed; i--) {
        uint32_t j = ev_pcg_below(&b->rng, i), t = v->order[i - 1];
        v->order[i - 1] = v->order[j];
        v->order[j] = t;
    }
}

/* May the block go on for now? Where there are ranks, one that changed nothing leaves the turn to
 * others.
 */
static bool keeps_turn(const vm_state *s, const vm_block *b, uint64_t began, uint64_t executed) {
    if (s->session->count == 1)
        return b->instructions - began <= BLOCK_TURN;
    return b->instructions - began <= RANK_BLOCK_TURN && s->last_change >= executed;
}

/* Does the block leave its turn behind this warp, which began at `executed`? Ranks in the order of
 * a seed do so at random, where memory has changed: a flag that one warp sets before the other
 * warps have stored what the flag announces is read by a peer meanwhile. Without changes none does,
 * so that rotations that change nothing stay whole (vm_livelock.c). */
static bool leaves_turn(const vm_state *s, vm_block *b, uint64_t executed) {
    bool may = s->session->count > 1 && s->wave->seed && s->last_change >= executed;
    return may && ev_pcg_below(&b->rng, LEAVING_ODDS) == 0;
}

/* At most once for each change of memory, and counted as a happening, so that rotations that change
 * nothing stay whole. A trace of what a warp polls (vm_livelock.c) is not interrupted. */
bool vm_warp_yields(vm_warp *w) {
    vm_state *s = w->state;
    bool may = s->wave->seed && !s->poll && s->last_change != w->yielded;
    if (!may || ev_pcg_below(&w->block->rng, YIELDING_ODDS) != 0)
        return false;
    w->yielded = s->last_change;
    w->yields = true;
    s->happenings++;
    return true;
}

/* One turn for each warp of the block that can run, again and again; false: trapped. Where all of
 * them only look for changes, it is others' turn to make some. */
static bool run_block(vm_state *s, vm_block *b) {
    uint64_t began = b->instructions;
    for (;;) {
        bool any = false, spins = true, leaves = false;
        const uint64_t *now = &s->result->counters.thread_instructions, executed = *now;
        shuffle(s->wave, b);
        for (uint32_t i = 0; i < b->warp_count && !leaves; i++) {
            vm_warp *w = &b->warps[s->wave->order[i]];
            uint64_t before = *now;
            if (!vm_warp_ready(w))
                continue;
            any = true;
            if (!fuel_left(s, w) || !vm_warp_turn(w, budget_for(s)))
                return false;
            spins &= w->spins;
            leaves = leaves_turn(s, b, before) ||
                     (w->yields && ev_pcg_below(&b->rng, LEAVING_ODDS) == 0);
        }
        if (!b->live_threads) {
            vm_block_end(s, b);
            return !s->trapped;
        }
        if (!any) {
            vm_block_stuck(b);
            return false;
        }
        s->result->waits |= spins;
        if (spins || leaves || !keeps_turn(s, b, began, executed))
            return true;
    }
}

static uint64_t place_at(const vm_wave *v, uint64_t i) {
    return (uint64_t)(((unsigned __int128)i * v->step + v->start) % v->total);
}

static uint32_t block_at(const vm_state *s, uint64_t place) {
    return s->launch->sample ? s->launch->sample[place] : (uint32_t)place;
}

uint32_t vm_wave_block(const vm_state *s, uint64_t i) {
    return block_at(s, place_at(s->wave, i));
}

/* Puts the next block into a place that is free; false: out of memory. */
static bool fill_place(vm_state *s, vm_block *b) {
    if (!b->warps && !vm_block_make(s, b))
        return !(s->out_of_memory = true);
    b->place = place_at(s->wave, s->wave->next++);
    uint32_t linear = block_at(s, b->place);
    b->rng = ev_pcg_seed(s->wave->seed, 2 + (uint64_t)linear);
    return vm_block_start(s, b, linear);
}

/* A job stops where order matters. */
static bool stops(const vm_state *s, const vm_block *b) {
    return s->wave->chunks && (s->order_matters || (b->active && s->whole_turns) ||
                               atomic_load(&s->wave->chunks->abandon));
}

/* A turn for each block. One that ends in its turn leaves its place to the next at once, so that as
 * few places are used as there are blocks that take long. */
static bool rotate(vm_state *s, bool *any) {
    vm_wave *v = s->wave;
    for (uint32_t i = 0; i < v->count; i++) {
        vm_block *b = &v->places[i];
        while (b->active || v->next < v->end || vm_chunk_take(v)) {
            *any = true;
            if (!b->active && !fill_place(s, b))
                return false;
            if (!run_block(s, b) || stops(s, b))
                return false;
            if (b->active)
                break;
        }
    }
    return true;
}

/* A turn for each rank. */
static bool rotate_ranks(vm_session *x, bool *any) {
    for (uint32_t i = x->order ? x->count : 1; i > 1; i--) {
        uint32_t j = ev_pcg_below(&x->rng, i), t = x->order[i - 1];
        x->order[i - 1] = x->order[j];
        x->order[j] = t;
    }
    for (uint32_t i = 0; i < x->count; i++)
        if (!rotate(&x->ranks[x->order ? x->order[i] : i], any))
            return false;
    return true;
}

bool vm_session_run(vm_session *x) {
    for (;;) {
        bool any = false;
        if (!rotate_ranks(x, &any))
            return false;
        if (!any)
            return true;
        if (vm_livelock_rotation(x))
            return false;
    }
}

/* ---- order */

/* A seed permutes blocks by an affine map and warps by a shuffle a turn. */
static void order_blocks(vm_wave *v, uint64_t seed) {
    v->step = 1;
    v->end = v->total;
    v->seed = seed;
    if (!seed)
        return;
    ev_pcg rng = ev_pcg_seed(seed, 1);
    v->start = ev_pcg_next(&rng) % v->total;
    v->step = ev_pcg_next(&rng) % v->total;
    while (v->step == 0 || ev_divisor(v->step, v->total) != 1)
        v->step = v->step % v->total + 1;
}

/* Ranks of the same seed are in different orders. */
static uint64_t seed_of(const vm_state *s) {
    uint64_t seed = s->launch->schedule_seed, mixed = seed + s->rank * 0x9e3779b97f4a7c15ull;
    return seed && mixed ? mixed : seed;
}

bool vm_wave_begin(vm_state *s) {
    const vm_launch *l = s->launch;
    vm_wave *v = calloc(1, sizeof *v);
    s->wave = v;
    if (!v)
        return !(s->out_of_memory = true);
    v->total = l->sample ? l->sample_count : (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
    if (!v->total)
        return true;
    uint64_t resident =
        l->resident_blocks ? l->resident_blocks : (1024 + s->threads - 1) / s->threads;
    v->count = (uint32_t)(resident < v->total ? resident : v->total);
    order_blocks(v, seed_of(s));
    v->places = calloc(v->count, sizeof *v->places);
    v->order = calloc(VM_LANES, sizeof *v->order);
    s->blocks = v->places;
    s->block_count = v->places ? v->count : 0;
    bool ok = v->places && v->order;
    s->out_of_memory |= !ok;
    return ok;
}

void vm_wave_end(vm_state *s) {
    vm_wave *v = s->wave;
    if (!v)
        return;
    for (uint32_t i = 0; v->places && i < v->count; i++)
        vm_block_free(&v->places[i]);
    free(v->places);
    free(v->order);
    free(v);
    s->wave = NULL;
}
