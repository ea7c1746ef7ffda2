/* Launches: geometry, the blocks alive together and their turns, counters, the observer's batches.
 */
#include "base/pcg.h"
#include "fitness/vm/vm_frame.h"

#include <stdlib.h>
#include <string.h>

#define QUANTUM (1 << 14)       /* warp instructions a turn */
#define BLOCK_TURN (1ull << 18) /* warp instructions until the next block's turn */
#define MAX_SHARED (256u << 10)
#define DEFAULT_FUEL (1ull << 40)

/* Blocks alive together; each place holds one block after another. */
typedef struct wave {
    vm_block *places;
    uint32_t count;
    uint64_t next; /* number in the order of blocks */
    uint64_t total;
    uint64_t step, start; /* order of blocks: (i * step + start) mod total */
    ev_pcg rng;
    uint32_t *order; /* of a block's warps */
} wave;

static ev_status check_geometry(const vm_launch *l, ev_error *err) {
    const vm_entry *e = l->entry;
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1];
    if (!threads || !blocks || !l->grid[2])
        return ev_fail(err, EV_BAD,
                       "%s: a launch of %ux%ux%u blocks of %ux%ux%u threads: give at "
                       "least one of each",
                       e->name, l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
                       l->block[2]);
    if (l->block[0] > 1024 || l->block[1] > 1024 || l->block[2] > 64 || threads > 1024)
        return ev_fail(err, EV_BAD,
                       "%s: a block of %ux%ux%u threads: give at most 1024 in all and "
                       "64 in z",
                       e->name, l->block[0], l->block[1], l->block[2]);
    if (e->max_threads && threads > e->max_threads)
        return ev_fail(err, EV_BAD, "%s: a block of %llu threads: the kernel allows %u", e->name,
                       (unsigned long long)threads, e->max_threads);
    if (l->grid[1] > 65535 || l->grid[2] > 65535 || blocks * l->grid[2] > UINT32_MAX)
        return ev_fail(err, EV_BAD,
                       "%s: a grid of %ux%ux%u blocks: give at most 65535 in y and z "
                       "and 2^32 in all",
                       e->name, l->grid[0], l->grid[1], l->grid[2]);
    if ((uint64_t)e->shared_bytes + l->dynamic_shared > MAX_SHARED)
        return ev_fail(err, EV_BAD, "%s: %llu bytes of shared memory a block: give at most %u",
                       e->name, (unsigned long long)e->shared_bytes + l->dynamic_shared,
                       MAX_SHARED);
    if (e->param_bytes && !l->params)
        return ev_fail(err, EV_BAD, "%s: no parameters: the kernel takes %u bytes", e->name,
                       e->param_bytes);
    for (size_t i = 0; i < l->sample_count; i++)
        if (l->sample && l->sample[i] >= blocks * l->grid[2])
            return ev_fail(err, EV_BAD, "%s: sampled block %u is not in the grid", e->name,
                           l->sample[i]);
    return EV_OK;
}

/* ---- the observer's batches */

void vm_batch_flush(vm_warp *w) {
    vm_state *s = w->state;
    if (!s->event_count)
        return;
    vm_batch batch = {.block = w->block->linear,
                      .warp = w->index,
                      .events = s->events,
                      .count = s->event_count,
                      .sectors = s->sectors};
    s->launch->observer->batch(s->launch->observer->context, &batch);
    s->event_count = s->sector_count = 0;
}

static bool grow(void **array, size_t *capacity, size_t needed, size_t size) {
    if (needed <= *capacity)
        return true;
    size_t wanted = *capacity ? *capacity * 2 : 4096;
    void *bigger = realloc(*array, wanted * size);
    if (!bigger)
        return false;
    *array = bigger;
    *capacity = wanted;
    return true;
}

vm_event *vm_event_push(vm_warp *w, uint32_t pc, uint32_t active, const uint64_t *sectors,
                        unsigned sector_count, unsigned passes) {
    vm_state *s = w->state;
    if (!grow((void **)&s->events, &s->event_capacity, s->event_count + 1, sizeof *s->events) ||
        !grow((void **)&s->sectors, &s->sector_capacity, s->sector_count + sector_count,
              sizeof *s->sectors)) {
        s->out_of_memory = true;
        return NULL;
    }
    vm_event *e = &s->events[s->event_count++];
    *e = (vm_event){.pc = w->event_pc,
                    .count = pc - w->event_pc + 1,
                    .active = active,
                    .sectors = (uint16_t)sector_count,
                    .passes = (uint16_t)passes,
                    .first_sector = (uint32_t)s->sector_count};
    for (unsigned i = 0; i < sector_count; i++)
        s->sectors[s->sector_count++] = sectors[i];
    w->event_pc = pc + 1;
    return e;
}

/* ---- blocks */

static void place_block(vm_state *s, vm_block *b, uint32_t linear) {
    const uint32_t *g = s->launch->grid;
    b->linear = linear;
    b->id[0] = linear % g[0];
    b->id[1] = linear / g[0] % g[1];
    b->id[2] = linear / g[0] / g[1];
    b->live_threads = s->threads;
    b->instructions = 0;
    memset(b->barriers, 0, sizeof b->barriers);
    memset(b->shared, 0, s->shared_bytes);
    memset(b->shared_written, 0, s->shared_bytes / 8);
    vm_race_block(s, b);
    b->active = true;
}

static bool start_warp(vm_state *s, vm_block *b, uint32_t index) {
    vm_warp *w = &b->warps[index];
    uint32_t left = s->threads - index * VM_LANES;
    w->live = left >= VM_LANES ? VM_FULL : (1u << left) - 1;
    w->cc = 0;
    w->set_count = 0;
    w->ticks = 0;
    vm_race_warp(w);
    uint64_t local = s->entry->local_bytes;
    if (!vm_local_grow(w, local ? local : 64))
        return false;
    memset(w->local_written, 0, w->local_capacity / 8 * VM_LANES);
    vm_frame *frame = vm_frame_take(w, (uint32_t)(s->entry - s->module->funcs));
    if (!frame)
        return false;
    frame->lanes = w->live;
    vm_set_push(w, w->live, s->entry->pub.first_pc, frame);
    return true;
}

static bool start_block(vm_state *s, vm_block *b, uint32_t linear) {
    place_block(s, b, linear);
    for (uint32_t i = 0; i < b->warp_count; i++)
        if (!start_warp(s, b, i))
            return false;
    const vm_observer *o = s->launch->observer;
    if (o && o->block_begin)
        o->block_begin(o->context, linear, b->warp_count);
    return true;
}

static void end_block(vm_state *s, vm_block *b) {
    const vm_observer *o = s->launch->observer;
    if (o && o->block_end)
        o->block_end(o->context, b->linear);
    b->active = false;
    s->result->counters.blocks++;
}

static void free_block(vm_block *b) {
    for (uint32_t i = 0; b->warps && i < b->warp_count; i++) {
        free(b->warps[i].local);
        free(b->warps[i].local_written);
        free(b->warps[i].levels);
    }
    free(b->warps);
    free(b->shared);
    free(b->shared_written);
    free(b->shared_races);
}

static bool make_block(vm_state *s, vm_block *b) {
    uint64_t bytes = s->shared_bytes;
    b->warp_count = (s->threads + VM_LANES - 1) / VM_LANES;
    size_t warp_bytes = (b->warp_count * sizeof *b->warps + 63) & ~(size_t)63;
    b->warps = aligned_alloc(64, warp_bytes);
    if (!b->warps)
        return false;
    memset(b->warps, 0, warp_bytes);
    b->shared = aligned_alloc(64, bytes);
    b->shared_written = malloc(bytes / 8);
    b->shared_races = calloc(bytes / 4, 2 * sizeof *b->shared_races);
    if (!b->shared || !b->shared_written || !b->shared_races)
        return false;
    for (uint32_t i = 0; i < b->warp_count; i++) {
        vm_warp *w = &b->warps[i];
        w->state = s;
        w->block = b;
        w->index = i;
        w->code = s->module->code;
        w->arena = s->memory->arena;
        w->segments = s->segments;
        w->shared = b->shared;
        w->shared_bytes = s->shared_used;
        w->observed = s->launch->observer != NULL;
        w->check_init = s->launch->checks & VM_CHECK_INIT;
        w->check_races = s->launch->checks & VM_CHECK_RACES;
    }
    return true;
}

/* ---- fuel */

static bool fuel_left(vm_state *s, vm_warp *w, const ptx_insn *at) {
    uint64_t used = s->result->counters.thread_instructions;
    if (used < s->fuel)
        return true;
    bool still = s->last_change < s->fuel / 2;
    vm_trap_raise(w, at, still ? VM_TRAP_LIVELOCK : VM_TRAP_FUEL,
                  w->set_count ? (unsigned)__builtin_ctz(w->sets[0].mask) : 0, NULL,
                  still ? "%llu thread instructions executed and no memory changed in the last half"
                        : "%llu thread instructions executed, more than the launch was given",
                  (unsigned long long)used);
    return false;
}

static int64_t budget_for(const vm_state *s) {
    uint64_t left = s->fuel - s->result->counters.thread_instructions;
    return left / VM_LANES + 1 < QUANTUM ? (int64_t)(left / VM_LANES + 1) : QUANTUM;
}

/* ---- turns */

static void shuffle(wave *v, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        v->order[i] = i;
    for (uint32_t i = count; i > 1 && v->step != 0 && v->rng.increment; i--) {
        uint32_t j = ev_pcg_below(&v->rng, i), t = v->order[i - 1];
        v->order[i - 1] = v->order[j];
        v->order[j] = t;
    }
}

/* One turn for each warp of the block that can run, again and again; false: trapped. */
static bool run_block(vm_state *s, wave *v, vm_block *b) {
    uint64_t began = b->instructions;
    for (;;) {
        bool any = false;
        shuffle(v, b->warp_count);
        for (uint32_t i = 0; i < b->warp_count; i++) {
            vm_warp *w = &b->warps[v->order[i]];
            if (!vm_warp_ready(w))
                continue;
            any = true;
            if (!fuel_left(s, w, &w->code[w->sets[0].pc]) || !vm_warp_turn(w, budget_for(s)))
                return false;
        }
        if (!b->live_threads) {
            end_block(s, b);
            return true;
        }
        if (!any) {
            vm_block_stuck(b);
            return false;
        }
        if (b->instructions - began > BLOCK_TURN)
            return true;
    }
}

static uint32_t block_at(const vm_state *s, const wave *v, uint64_t i) {
    uint64_t k = (uint64_t)(((unsigned __int128)i * v->step + v->start) % v->total);
    return s->launch->sample ? s->launch->sample[k] : (uint32_t)k;
}

static bool run_wave(vm_state *s, wave *v) {
    bool any = true;
    while (any) {
        any = false;
        for (uint32_t i = 0; i < v->count; i++) {
            vm_block *b = &v->places[i];
            if (!b->active) {
                if (v->next == v->total)
                    continue;
                if (!b->warps && !make_block(s, b))
                    return !(s->out_of_memory = true);
                if (!start_block(s, b, block_at(s, v, v->next++)))
                    return false;
            }
            any = true;
            if (!run_block(s, v, b))
                return false;
        }
    }
    return true;
}

static uint64_t gcd(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t t = a % b;
        a = b;
        b = t;
    }
    return a;
}

/* A seed permutes blocks by an affine map and warps by a shuffle a turn. */
static void order_blocks(wave *v, uint64_t seed) {
    v->step = 1;
    if (!seed)
        return;
    v->rng = ev_pcg_seed(seed, 1);
    v->start = ev_pcg_next(&v->rng) % v->total;
    v->step = ev_pcg_next(&v->rng) % v->total;
    while (v->step == 0 || gcd(v->step, v->total) != 1)
        v->step = v->step % v->total + 1;
}

static bool run_blocks(vm_state *s) {
    const vm_launch *l = s->launch;
    wave v = {.total =
                  l->sample ? l->sample_count : (uint64_t)l->grid[0] * l->grid[1] * l->grid[2]};
    if (!v.total)
        return true;
    uint64_t resident =
        l->resident_blocks ? l->resident_blocks : (1024 + s->threads - 1) / s->threads;
    v.count = (uint32_t)(resident < v.total ? resident : v.total);
    order_blocks(&v, l->schedule_seed);
    v.places = calloc(v.count, sizeof *v.places);
    v.order = calloc(32, sizeof *v.order);
    s->blocks = v.places;
    s->block_count = v.places ? v.count : 0;
    bool ok = v.places && v.order;
    s->out_of_memory |= !ok;
    ok = ok && run_wave(s, &v);
    for (uint32_t i = 0; v.places && i < v.count; i++) {
        free_block(&v.places[i]);
    }
    free(v.places);
    free(v.order);
    return ok;
}

/* ---- the end of a launch */

static void count_pipes(vm_state *s) {
    const vm_module *m = s->module;
    vm_counters *c = &s->result->counters;
    int64_t running = 0;
    for (uint32_t pc = 0; pc < m->insn_count; pc++) {
        running += s->runs[pc];
        uint64_t n = (uint64_t)running;
        if (s->launch->executions)
            s->launch->executions[pc] += n;
        if (!n || m->code[pc].row == PTX_OP_FALL)
            continue;
        c->warp_instructions += n;
        c->warp_by_pipe[ptx_insn_pipe(m, pc)] += n;
    }
}

static void free_state(vm_state *s) {
    if (s->pools)
        vm_frames_free(s);
    free(s->pools);
    free(s->runs);
    free(s->segments);
    free(s->const_copy);
    free(s->events);
    free(s->sectors);
    vm_race_end(s);
}

/* The .const variables: the module's, or a copy with the addresses that this memory gives. */
static bool take_consts(vm_state *s) {
    const vm_module *m = s->module;
    bool relative = false;
    for (size_t i = 0; i < m->reloc_count; i++)
        relative |= m->relocs[i].in_const;
    s->consts = m->const_image;
    if (!relative)
        return true;
    s->const_copy = malloc(m->const_bytes);
    if (!s->const_copy)
        return false;
    memcpy(s->const_copy, m->const_image, m->const_bytes);
    ptx_relocate(m, true, s->globals, s->const_copy);
    s->consts = s->const_copy;
    return true;
}

ev_status vm_run(vm_memory *memory, const vm_launch *launch, vm_result *result, ev_error *err) {
    EV_TRY(check_geometry(launch, err));
    const vm_module *m = launch->module;
    memset(result, 0, sizeof *result);
    vm_state s = {.module = m, .memory = memory, .launch = launch, .result = result};
    for (size_t i = 0; i < m->entry_count; i++)
        if (&m->funcs[m->entries[i]].pub == launch->entry)
            s.entry = &m->funcs[m->entries[i]];
    if (!s.entry)
        return ev_fail(err, EV_BAD, "%s: the entry belongs to another module", m->name);
    s.globals = launch->globals;
    if (!launch->globals)
        EV_TRY(vm_memory_attach(memory, m, &s.globals, err));
    if (!take_consts(&s))
        return ev_fail_memory(err, m->const_bytes);
    s.fuel = launch->fuel ? launch->fuel : DEFAULT_FUEL;
    s.threads = launch->block[0] * launch->block[1] * launch->block[2];
    s.shared_used = launch->dynamic_shared ? m->dynamic_base + launch->dynamic_shared
                                           : launch->entry->shared_bytes;
    s.shared_bytes = (s.shared_used + 127) / 64 * 64;
    s.run = vm_isa_run(m->isa);
    s.runs = calloc((size_t)m->insn_count + 1, sizeof *s.runs);
    s.segments = calloc((size_t)m->site_count + 1, sizeof *s.segments);
    s.pools = calloc(m->func_count + 1, sizeof *s.pools);
    bool ok = s.runs && s.segments && s.pools && vm_race_begin(&s);
    s.out_of_memory = !ok;
    result->ok = ok && run_blocks(&s) && !s.trapped;
    if (s.runs)
        count_pipes(&s);
    bool memory_out = s.out_of_memory || memory->out_of_memory;
    free_state(&s);
    if (memory_out && !s.trapped)
        return ev_fail(err, EV_INFRA, "%s: out of memory during the launch", launch->entry->name);
    return EV_OK;
}
