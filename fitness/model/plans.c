/* Plans: the result of following a batch of events, without the places of its accesses.
 *
 * Warps of a block, rounds of a loop and blocks of a grid deliver batches whose events are equal
 * byte for byte, while the sectors differ. The second such batch is decomposed once, and the
 * result is kept as its plan: stretches of instructions to follow, cycles of the memory units,
 * times of accesses to shared memory. For a later batch follow.c only looks up the sectors, in the
 * same order. Where all accesses take as long as in one of the last batches, a memo of the plan
 * gives the next state of the warp too.
 *
 * Plans are in a hash table with open addressing. Each plan also remembers its usual successor,
 * which is tried first. A plan ends at the first barrier or exit of lanes. `model_plans_help`
 * turns the lookup off for launches in which batches do not repeat. */
#include "fitness/model/plans.h"

#include <stdlib.h>
#include <string.h>

#define PLACES 256     /* a power of two */
#define PROBES 4       /* places looked at for one */
#define TRIED_OFTEN 96 /* so many tries with less than a quarter found: give up */
#define LOOKED_AT 8    /* events of a batch that choose its place */

struct model_plans {
    model_plan *places[PLACES];
    size_t seen[PLACES]; /* what batches without a plan hashed to, last */
    model_plan *begin;   /* of a warp's first batch, last time */
    uint64_t tries, hits;
};

model_plans *model_plans_new(void) {
    return calloc(1, sizeof(model_plans));
}

static void plan_free(model_plan *p) {
    if (p == NULL)
        return;
    free(p->events);
    free(p->stretches);
    free(p->accesses);
    free(p->codes);
    free(p->coded);
    free(p->times);
    free(p->slots);
    free(p->uses);
    free(p->runs);
    for (size_t i = 0; i < PLAN_MEMOS; i++) {
        free(p->memos[i].codes);
        free(p->memos[i].uses);
    }
    free(p);
}

void model_plans_free(model_plans *plans) {
    for (size_t i = 0; plans != NULL && i < PLACES; i++)
        plan_free(plans->places[i]);
    free(plans);
}

bool model_plans_help(const model_plans *plans) {
    return plans->tries < TRIED_OFTEN || plans->hits > plans->tries / 4;
}

static size_t place_of(const vm_batch *batch, uint32_t first, uint32_t end) {
    uint64_t hash = (uint64_t)first << 32 ^ end ^ batch->count;
    for (size_t i = 0; i < LOOKED_AT; i++) {
        const vm_event *e = &batch->events[batch->count * i / LOOKED_AT];
        hash = (hash ^ e->pc ^ (uint64_t)e->active << 32 ^ (uint64_t)e->passes << 20) *
               UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return (size_t)hash;
}

static bool is_plan_of(const model_plan *p, const vm_batch *batch, uint32_t first, uint32_t end) {
    return p != NULL && p->first == first && p->end == end &&
           (p->count == batch->count || (p->last != NULL && p->count < batch->count)) &&
           memcmp(p->events, batch->events, p->count * sizeof *p->events) == 0;
}

model_plan *model_plans_find(model_plans *plans, model_plan *before, const vm_batch *batch,
                             uint32_t first, uint32_t end) {
    plans->tries++;
    model_plan **likely = before != NULL ? &before->then : &plans->begin;
    bool found = is_plan_of(*likely, batch, first, end);
    size_t place = found ? 0 : place_of(batch, first, end);
    for (size_t i = 0; i < PROBES && !found; i++) {
        model_plan *p = plans->places[(place + i) & (PLACES - 1)];
        found = is_plan_of(p, batch, first, end);
        if (found)
            *likely = p;
    }
    plans->hits += found;
    return found ? *likely : NULL;
}

void model_plans_found(model_plans *plans, model_plan *before, model_plan *plan) {
    plans->tries++;
    plans->hits++;
    if (before != NULL)
        before->then = plan;
    else
        plans->begin = plan;
}

/* The first 16 bytes of an event: all but its passes and the place of its sectors. */
static inline uint64_t differ_in_head(const vm_event *a, const vm_event *b) {
    uint64_t x[2], y[2];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    return (x[0] ^ y[0]) | (x[1] ^ y[1]);
}

_Static_assert(offsetof(vm_event, passes) == 16, "as differ_in_head reads events");

/* Whether the batch's first events are the plan's, sectors moved. Where they differ, mostly the
 * last one does: it is a loop's branch. */
static bool begins_with(const vm_batch *batch, const model_plan *p) {
    if (p == NULL || p->count > batch->count || p->events[0].first_sector != 0)
        return false;
    uint32_t moved = batch->events[0].first_sector;
    uint64_t differ = differ_in_head(&batch->events[p->count - 1], &p->events[p->count - 1]);
    if (moved == 0)
        return differ == 0 && memcmp(p->events, batch->events, p->count * sizeof *p->events) == 0;
    for (size_t i = 0; i < p->count && differ == 0; i++) {
        const vm_event *a = &batch->events[i], *b = &p->events[i];
        differ = differ_in_head(a, b) | (uint64_t)(a->passes ^ b->passes) |
                 ((a->first_sector - moved) ^ b->first_sector);
    }
    return differ == 0;
}

model_plan *model_plans_like(const model_plans *plans, model_plan *before, const vm_batch *batch) {
    model_plan *likely[] = {plans->begin, NULL, NULL};
    if (before != NULL) {
        likely[0] = before->next;
        likely[1] = before->then;
        likely[2] = before;
    }
    for (size_t i = 0; i < sizeof likely / sizeof *likely; i++) {
        if (!begins_with(batch, likely[i]))
            continue;
        if (before != NULL)
            before->next = likely[i];
        return likely[i];
    }
    return NULL;
}

static bool make_room(model_plan *p, const vm_batch *batch, size_t count) {
    p->stretch_room = 2 * count + 2;
    p->events = malloc(count * sizeof *p->events);
    p->stretches = malloc(p->stretch_room * sizeof *p->stretches);
    p->accesses = malloc(count * sizeof *p->accesses);
    p->codes = malloc(count * sizeof *p->codes);
    p->coded = malloc(count * sizeof *p->coded);
    p->time_room = count;
    p->times = malloc(count * sizeof *p->times);
    p->slots = malloc(count * sizeof *p->slots);
    p->uses = malloc(p->stretch_room * sizeof *p->uses);
    p->runs = malloc(2 * p->stretch_room * sizeof *p->runs);
    if (p->events == NULL || p->stretches == NULL || p->accesses == NULL || p->codes == NULL ||
        p->coded == NULL || p->times == NULL || p->slots == NULL || p->uses == NULL ||
        p->runs == NULL)
        return false;
    memcpy(p->events, batch->events, count * sizeof *p->events);
    return true;
}

model_plan *model_plans_begin(model_plans *plans, const vm_batch *batch, size_t count,
                              uint32_t first, uint32_t end) {
    size_t at = place_of(batch, first, end), i = 0, *seen = &plans->seen[at & (PLACES - 1)];
    if (*seen != at) { /* perhaps the only one of its kind */
        *seen = at;
        return NULL;
    }
    while (i < PROBES && plans->places[(at + i) & (PLACES - 1)] != NULL)
        i++;
    model_plan *p = i < PROBES ? calloc(1, sizeof *p) : NULL;
    if (p == NULL)
        return NULL;
    p->count = count;
    p->first = first;
    p->end = end;
    if (make_room(p, batch, count)) {
        plans->places[(at + i) & (PLACES - 1)] = p;
        return p;
    }
    plan_free(p);
    return NULL;
}

static plan_read way_of(const vm_event *e, const model_row *row) {
    if (row->kind != ROW_LOAD || row->bypasses_l1 || e->sectors == 0)
        return PLAN_NO_READ;
    if (e->lines == e->sectors)
        return PLAN_READ_APART;
    if (e->lines == 1)
        return PLAN_READ_ONE;
    return PLAN_READ;
}

/* False: there is no memory, and so the plan is of no batch. */
static bool grow_times(model_plan *p) {
    size_t room = 2 * p->time_room;
    uint64_t *times = realloc(p->times, room * sizeof *times);
    p->times = times != NULL ? times : p->times;
    uint32_t *slots = realloc(p->slots, room * sizeof *slots);
    p->slots = slots != NULL ? slots : p->slots;
    if (times == NULL || slots == NULL)
        return false;
    p->time_room = room;
    return true;
}

static void add_time(model_plan *p, uint32_t slot, uint64_t time) {
    if (p->time_count == p->time_room && !grow_times(p)) {
        p->count = SIZE_MAX;
        return;
    }
    p->slots[p->time_count] = slot;
    p->times[p->time_count++] = time;
}

void model_plan_access(model_plan *p, const vm_event *e, const model_row *row, access_cost *cost,
                       uint64_t time, uint32_t slot) {
    bool has_sectors = row->kind == ROW_LOAD || row->kind == ROW_STORE || row->kind == ROW_ATOMIC;
    bool is_load = row->kind == ROW_LOAD;
    if (e->active != 0) {
        p->path[row->kind == ROW_SHARED] += cost->path;
        p->read += is_load ? e->sectors : 0;
        if (row->kind == ROW_STORE)
            model_stores_add(&p->stores, e, row);
        if (has_sectors)
            p->accesses[p->access_count++] = (plan_access){.first_sector = e->first_sector,
                                                           .sectors = e->sectors,
                                                           .time = (uint32_t)p->time_count,
                                                           .later = cost->later,
                                                           .cost = cost,
                                                           .pc = e->pc + e->count - 1,
                                                           .is_load = is_load,
                                                           .way = (uint8_t)way_of(e, row)};
    }
    add_time(p, slot, time);
}

void model_plan_skip(model_plan *p, uint32_t slot) {
    add_time(p, slot, 0);
}

void model_plan_stretch(model_plan *p, uint32_t first, uint32_t end, plan_way way) {
    if (p->stretch_count == p->stretch_room) {
        p->count = SIZE_MAX; /* of no batch */
        return;
    }
    plan_stretch made = {.first = first,
                         .end = end,
                         .way = way,
                         .times_end = (uint32_t)p->time_count,
                         .access_end = (uint32_t)p->access_count,
                         .code = (uint32_t)p->code_count};
    if (p->stretch_count > 0) {
        const plan_stretch *before = &p->stretches[p->stretch_count - 1];
        made.times = before->times_end;
        made.access = before->access_end;
    }
    for (uint32_t at = made.access; at < made.access_end;) {
        uint32_t left = made.access_end - at;
        at += left < PLAN_CODE_ACCESSES ? left : PLAN_CODE_ACCESSES;
        p->coded[p->code_count++] = at;
    }
    made.code_end = (uint32_t)p->code_count;
    p->stretches[p->stretch_count++] = made;
}

static void add_run(model_plan *p, uint32_t pc, int32_t more) {
    size_t i = 0;
    while (i < p->run_count && p->runs[i].pc != pc)
        i++;
    if (i == p->run_count)
        p->runs[p->run_count++] = (plan_run){.pc = pc};
    p->runs[i].more += more;
}

/* Rounds of a loop come to a few sums. */
void model_plan_end(model_plan *p) {
    for (const plan_stretch *s = p->stretches; s < p->stretches + p->stretch_count; s++) {
        if (s->way == PLAN_LEAVE)
            continue;
        add_run(p, s->first, 1);
        add_run(p, s->end, -1);
    }
    size_t kept = 0;
    for (size_t i = 0; i < p->run_count; i++)
        if (p->runs[i].more != 0)
            p->runs[kept++] = p->runs[i];
    p->run_count = kept;
}
