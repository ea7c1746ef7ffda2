/* Ranks: launches side by side on memories that are peers; what reaches from one to another.
 *
 * Peers have ranges of one arena and one shadow, so an access to a peer's buffer is located and
 * checked like any other. What differs is order: between ranks only accesses of scope .sys are
 * strong for each other, and only what a fence or release of scope .sys went before tells what came
 * earlier. An entry of the shadow has no room for that, but its stamp's owner does: a ranked warp
 * takes a new stamp where the reach of its strong accesses changes. */
#include "fitness/vm/vm_wave.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REACH (VM_RACE_REACHES | VM_RACE_SYSTEM | VM_RACE_TELLS)

/* ---- order between ranks */

/* NULL: the stamp is of an earlier launch. */
static uint64_t *owner_of(const vm_state *s, uint32_t stamp) {
    const vm_races *r = s->races;
    return stamp > r->first_stamp ? &r->owners[stamp - r->first_stamp - 1] : NULL;
}

static uint64_t reach_of(const vm_warp *w, const ptx_insn *ip, bool passes) {
    if (!ip->of_system)
        return VM_RACE_REACHES;
    bool tells = w->fenced == 3 || ip->releases || passes;
    return VM_RACE_REACHES | VM_RACE_SYSTEM | (tells ? VM_RACE_TELLS : 0);
}

/* The owner of the warp's stamp, which it gets if it has none; NULL: out of memory. */
static uint64_t *own_stamp(vm_warp *w) {
    if (!w->stamp)
        vm_race_stamp(w);
    return w->state->out_of_memory ? NULL : owner_of(w->state, w->stamp);
}

void vm_rank_reach(vm_warp *w, const ptx_insn *ip, bool passes) {
    bool reads = ptx_op_get(ip->row)->shape == PTX_S_LD;
    uint64_t wanted = reach_of(w, ip, passes), *owner = own_stamp(w);
    if (!owner)
        return;
    uint64_t differs = *owner & VM_RACE_REACHES ? (*owner & REACH) ^ wanted : 0;
    if (reads) /* a read tells nothing */
        differs &= ~VM_RACE_TELLS;
    if (differs) {
        w->stamp = 0;
        owner = own_stamp(w);
    }
    if (owner && !(*owner & VM_RACE_REACHES))
        *owner |= wanted;
}

bool vm_rank_meets(const vm_warp *w, uint32_t stamp) {
    const uint64_t *owner = owner_of(w->state, stamp), *mine = owner_of(w->state, w->stamp);
    if (!owner || !mine || vm_race_rank(*owner) == w->state->rank)
        return true;
    return *owner & *mine & VM_RACE_SYSTEM;
}

bool vm_rank_tells(const vm_warp *w, uint32_t stamp) {
    const uint64_t *owner = owner_of(w->state, stamp), *mine = owner_of(w->state, w->stamp);
    if (!owner || !mine || vm_race_rank(*owner) == w->state->rank)
        return true;
    return *owner & VM_RACE_TELLS && *mine & VM_RACE_SYSTEM;
}

bool vm_rank_is_peer(const vm_warp *w, uint32_t stamp) {
    const uint64_t *owner = owner_of(w->state, stamp);
    return owner && vm_race_rank(*owner) != w->state->rank;
}

/* ---- names */

bool vm_rank_name(const vm_warp *w, uint32_t stamp, char *text, size_t bytes) {
    uint64_t owner = vm_race_owner(w->state, stamp);
    (void)snprintf(text, bytes, "warp %u of block %u", (unsigned)(owner & 31),
                   (uint32_t)(owner >> 5));
    if (w->state->session->count == 1)
        return false;
    size_t used = strlen(text);
    (void)snprintf(text + used, bytes - used, " of rank %u%s", vm_race_rank(owner),
                   stamp <= w->state->races->launch_stamp ? " in an earlier launch" : "");
    return vm_race_rank(owner) != w->state->rank;
}

void vm_rank_append_owner(const vm_state *s, uint64_t offset, char *text, size_t bytes) {
    const vm_session *x = s->session;
    const vm_memory *owner = vm_memory_owner(s->memory, offset);
    size_t used = strlen(text);
    if (!owner || (x->count == 1 && owner == s->memory))
        return;
    for (uint32_t r = 0; r < x->count; r++)
        if (x->ranks[r].memory == owner) {
            (void)snprintf(text + used, bytes - used, " of rank %u", r);
            return;
        }
    (void)snprintf(text + used, bytes - used, " of peer memory %u", vm_memory_number(owner));
}

static bool has_ended(const vm_state *s) {
    bool active = s->wave->next < s->wave->total;
    for (uint32_t i = 0; i < s->block_count; i++)
        active |= s->blocks[i].active;
    return !active;
}

#define MOST_NAMED 8

void vm_rank_name_ended(const vm_session *x, char *text, size_t bytes) {
    unsigned named = 0, ended = 0;
    text[0] = '\0';
    for (uint32_t r = 0; r < x->count; r++)
        ended += has_ended(&x->ranks[r]);
    if (!ended)
        return;
    (void)snprintf(text, bytes, "; rank%s ", ended == 1 ? "" : "s");
    for (uint32_t r = 0; r < x->count && named < MOST_NAMED; r++) {
        size_t used = strlen(text);
        if (has_ended(&x->ranks[r]))
            (void)snprintf(text + used, bytes - used, "%s%u", named++ ? ", " : "", r);
    }
    size_t used = strlen(text);
    if (ended > named)
        (void)snprintf(text + used, bytes - used, " and %u more", ended - named);
    used = strlen(text);
    (void)snprintf(text + used, bytes - used, " %s ended", ended == 1 ? "has" : "have");
}

/* ---- the launch */

static ev_status check_peers(const vm_rank *ranks, uint32_t count, ev_error *err) {
    if (count > VM_RANKS_MOST)
        return ev_fail(err, EV_BAD, "%u ranks: give at most %u", count, VM_RANKS_MOST);
    const vm_peers *peers = ranks[0].memory->peers;
    for (uint32_t i = 0; i < count && count > 1; i++) {
        if (!peers || ranks[i].memory->peers != peers)
            return ev_fail(err, EV_BAD,
                           "rank %u: its memory is no peer of rank 0's; make them with "
                           "vm_memory_new_peers",
                           i);
        for (uint32_t k = 0; k < i; k++)
            if (ranks[k].memory == ranks[i].memory)
                return ev_fail(err, EV_BAD,
                               "ranks %u and %u have the same memory; give each its own", k, i);
    }
    return EV_OK;
}

static ev_status fill_states(vm_session *x, const vm_rank *ranks, vm_result *results,
                             ev_error *err) {
    for (uint32_t i = 0; i < x->count; i++) {
        vm_state *s = &x->ranks[i];
        ev_status status = vm_state_fill(s, ranks[i].memory, ranks[i].launch, &results[i], err);
        if (status != EV_OK)
            return ev_wrap(err, status, "rank %u", i);
        s->session = x;
        s->rank = i;
    }
    return EV_OK;
}

static bool make_states(vm_session *x) {
    uint64_t seed = x->ranks[0].launch->schedule_seed;
    bool ok = vm_race_begin(x);
    ok &= vm_apart_begin(x);
    ok &= vm_stream_begin(x);
    if (seed)
        x->order = calloc(x->count, sizeof *x->order);
    ok &= !seed || x->order;
    x->rng = ev_pcg_seed(seed, 0);
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->order)
            x->order[i] = i;
        ok &= vm_state_make(&x->ranks[i]);
    }
    return ok;
}

/* The rank that trapped, or NULL. */
static const vm_state *find_trapped(const vm_session *x) {
    for (uint32_t i = 0; i < x->count; i++)
        if (x->ranks[i].trapped)
            return &x->ranks[i];
    return NULL;
}

static bool ran_out(const vm_session *x) {
    bool out = false;
    for (uint32_t i = 0; i < x->count; i++)
        out |= x->ranks[i].out_of_memory | x->ranks[i].memory->out_of_memory;
    return out;
}

static ev_status run_states(vm_session *x, vm_result *results, ev_error *err) {
    bool made = make_states(x), ok = made && vm_session_run(x) && vm_apart_settle(x);
    bool out = !made || ran_out(x);
    const vm_state *trapped = find_trapped(x);
    for (uint32_t i = 0; i < x->count; i++) {
        results[i].ok = ok && !trapped;
        if (trapped)
            results[i].trap = results[trapped->rank].trap;
        vm_state_count(&x->ranks[i]);
        vm_state_free(&x->ranks[i]);
    }
    vm_race_end(x);
    vm_apart_end(x);
    vm_stream_end(x);
    free(x->order);
    return out && !trapped
               ? ev_fail(err, EV_INFRA, "out of memory during a launch of %u ranks", x->count)
               : EV_OK;
}

ev_status vm_run_ranks(const vm_rank *ranks, uint32_t count, vm_result *results, ev_error *err) {
    assert(count);
    EV_TRY(check_peers(ranks, count, err));
    vm_session x = {.count = count, .ranks = calloc(count, sizeof *x.ranks)};
    if (!x.ranks)
        return ev_fail_memory(err, count * sizeof *x.ranks);
    ev_status status = fill_states(&x, ranks, results, err);
    if (status == EV_OK)
        status = run_states(&x, results, err);
    free(x.ranks);
    return status;
}
