/* Barrier deadlock: describes a block in which no thread can continue, by who arrived where and
 * who is missing.
 *
 * The scheduler calls `vm_block_stuck` when no warp of a block is ready and threads are still
 * alive. Every live set of lanes then waits, at a barrier or at an exchange with a member mask.
 * The report depends on the first waiting set: a warp divided between two barriers is
 * VM_TRAP_DIVERGENT_BARRIER, every other case is VM_TRAP_DEADLOCK with the names of the missing
 * threads. PTX ISA, "bar, barrier" and the .sync instructions say which threads each must wait
 * for. */
#include "fitness/vm/vm_frame.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define MOST_NAMED 3

static bool waits_at(const vm_set *s, uint32_t barrier) {
    return s->state == VM_SET_BARRIER && s->barrier == barrier;
}

static uint32_t line_of(const vm_warp *w, const vm_set *s) {
    return w->state->module->cold[s->state == VM_SET_SYNC ? s->pc : s->pc - 1].line;
}

/* "lanes 0000ffff of warp 1 wait at barrier 2 (line 17)" */
static void name_set(const vm_warp *w, const vm_set *s, char *text, size_t bytes) {
    char who[48];
    if (s->mask == w->live)
        (void)snprintf(who, sizeof who, "warp %u waits", w->index);
    else
        (void)snprintf(who, sizeof who, "lanes %08x of warp %u wait", s->mask, w->index);
    if (s->state == VM_SET_SYNC)
        (void)snprintf(text, bytes, "%s for lanes %08x with mask %08x (line %u)", who,
                       vm_reconverge_mask(w, s) & w->live & ~s->mask, vm_reconverge_mask(w, s),
                       line_of(w, s));
    else if (s->state == VM_SET_BARRIER)
        (void)snprintf(text, bytes, "%s at barrier %u (line %u)", who, s->barrier, line_of(w, s));
    else
        (void)snprintf(text, bytes, "%s for the rest of its warp (line %u)", who, line_of(w, s));
}

/* Appends up to MOST_NAMED sets that do not wait at `barrier`, and how many more there are. Of all
 * warps, or of the lanes of `mask` of one. */
static void name_missing(const vm_block *b, uint32_t barrier, const vm_warp *only, uint32_t mask,
                         char *text, size_t bytes) {
    unsigned named = 0, more = 0;
    text[0] = '\0';
    for (uint32_t k = 0; k < b->warp_count; k++) {
        const vm_warp *w = &b->warps[k];
        for (unsigned i = 0; i < w->set_count && (!only || only == w); i++) {
            const vm_set *s = &w->sets[i];
            if (only ? !(s->mask & mask) : waits_at(s, barrier))
                continue;
            size_t used = strlen(text);
            if (named == MOST_NAMED) {
                more++;
                continue;
            }
            (void)snprintf(text + used, bytes - used, "%s", named++ ? ", " : "");
            used = strlen(text);
            name_set(w, s, text + used, bytes - used);
        }
    }
    size_t used = strlen(text);
    if (more)
        (void)snprintf(text + used, bytes - used, " and %u more", more);
}

/* "warps 0, 2 arrived" */
static void name_arrived(const vm_block *b, uint32_t barrier, char *text, size_t bytes) {
    unsigned named = 0, more = 0;
    (void)snprintf(text, bytes, "warp ");
    for (uint32_t k = 0; k < b->warp_count; k++) {
        bool here = false;
        for (unsigned i = 0; i < b->warps[k].set_count; i++)
            here |= waits_at(&b->warps[k].sets[i], barrier);
        if (here && named == MOST_NAMED)
            more++;
        if (!here || named == MOST_NAMED)
            continue;
        size_t used = strlen(text);
        (void)snprintf(text + used, bytes - used, "%s%u", named++ ? ", " : "", k);
    }
    size_t used = strlen(text);
    if (more)
        (void)snprintf(text + used, bytes - used, " and %u more", more);
}

/* A warp whose lanes stand at two barriers. */
static const vm_warp *parted_warp(const vm_block *b) {
    for (uint32_t k = 0; k < b->warp_count; k++) {
        const vm_warp *w = &b->warps[k];
        unsigned at_barriers = 0;
        for (unsigned i = 0; i < w->set_count; i++)
            at_barriers += w->sets[i].state != VM_SET_SYNC;
        if (at_barriers > 1)
            return w;
    }
    return NULL;
}

static void raise_barrier(vm_block *b, vm_warp *w, const vm_set *s, unsigned lane) {
    const vm_barrier *r = &b->barriers[s->barrier];
    char arrived[80], missing[320];
    name_arrived(b, s->barrier, arrived, sizeof arrived);
    name_missing(b, s->barrier, NULL, 0, missing, sizeof missing);
    vm_trap_raise(w, &w->code[s->pc - 1], VM_TRAP_DEADLOCK, lane, NULL,
                  "barrier %u waits for %u threads and %u arrived (%s); %s%s", s->barrier,
                  r->expected ? r->expected : b->live_threads, r->arrived, arrived,
                  missing[0] ? "missing: " : "nobody is left to come", missing);
}

static uint32_t mask_of_lane(const vm_warp *w, const vm_set *s, unsigned lane) {
    vm_set one = *s;
    one.mask = 1u << lane;
    return vm_reconverge_mask(w, &one);
}

/* Lanes at one exchange that name each other in masks that differ. */
static void raise_masks(vm_warp *w, const vm_set *s, unsigned lane) {
    uint32_t mask = mask_of_lane(w, s, lane);
    unsigned other = lane;
    for (uint32_t left = s->mask & mask; left && mask_of_lane(w, s, other) == mask;
         left &= left - 1)
        other = (unsigned)__builtin_ctz(left);
    vm_trap_raise(w, &w->code[s->pc], VM_TRAP_DEADLOCK, lane, NULL,
                  "lanes %08x wait for each other with masks that differ: lane %u has %08x, lane "
                  "%u has %08x; expected the same mask in all lanes that it names",
                  s->mask, lane, mask, other, mask_of_lane(w, s, other));
}

/* Lanes that wait for others of their warp, at an exchange or at a barrier of whole warps. */
static void raise_lanes(const vm_block *b, vm_warp *w, const vm_set *s, unsigned lane) {
    bool sync = s->state == VM_SET_SYNC;
    uint32_t mask = sync ? vm_reconverge_mask(w, s) : VM_FULL, wanted = mask & w->live & ~s->mask;
    char missing[320], how[80] = "";
    name_missing(b, 0, w, wanted, missing, sizeof missing);
    if (sync)
        (void)snprintf(how, sizeof how, " to execute the same instruction with mask %08x", mask);
    vm_trap_raise(w, &w->code[sync ? s->pc : s->pc - 1], VM_TRAP_DEADLOCK, lane, NULL,
                  "lanes %08x wait for lanes %08x%s: %s", s->mask, wanted, how, missing);
}

static void raise_parted(vm_warp *w) {
    const vm_set *two[2] = {NULL, NULL};
    for (unsigned i = 0, n = 0; i < w->set_count && n < 2; i++)
        if (w->sets[i].state != VM_SET_SYNC)
            two[n++] = &w->sets[i];
    assert(two[0] && two[1]);
    w->frame = two[0]->frame;
    vm_trap_raise(w, &w->code[two[0]->pc - 1], VM_TRAP_DIVERGENT_BARRIER,
                  (unsigned)__builtin_ctz(two[0]->mask), NULL,
                  "lanes %08x of a warp wait at this barrier while lanes %08x wait at line %u",
                  two[0]->mask, two[1]->mask, line_of(w, two[1]));
}

void vm_block_stuck(vm_block *b) {
    const vm_warp *parted = parted_warp(b);
    vm_warp *w = NULL;
    for (uint32_t k = 0; k < b->warp_count && !w; k++)
        if (b->warps[k].set_count && (!parted || &b->warps[k] == parted))
            w = &b->warps[k];
    if (!w)
        return;
    const vm_set *s = &w->sets[0];
    unsigned lane = (unsigned)__builtin_ctz(s->mask);
    w->frame = s->frame;
    if (parted)
        raise_parted(w);
    else if (s->state == VM_SET_BARRIER)
        raise_barrier(b, w, s, lane);
    else if (s->state == VM_SET_SYNC && s->apart)
        raise_masks(w, s, lane);
    else
        raise_lanes(b, w, s, lane);
}
