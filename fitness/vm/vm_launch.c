/* Launches: geometry, what a launch needs while it runs, and its counters at the end. */
#include "fitness/vm/vm_jobs.h"

#include <stdlib.h>
#include <string.h>

#define MAX_SHARED (256u << 10)
#define DEFAULT_FUEL (1ull << 40)

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

/* ---- the end of a launch */

void vm_state_count(vm_state *s) {
    const vm_module *m = s->module;
    vm_counters *c = &s->result->counters;
    int64_t running = 0;
    for (uint32_t pc = 0; s->runs && pc < m->insn_count; pc++) {
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

void vm_state_free(vm_state *s) {
    vm_wave_end(s);
    if (s->pools)
        vm_frames_free(s);
    vm_spare_leave(&s->memory->spare, &s->spare);
    free(s->pools);
    free(s->runs);
    free(s->segments);
    free(s->const_copy);
    free(s->gaps);
    free(s->undefined_code);
    free(s->site_passes);
}

/* ---- the begin */

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

static void cover(bool *covered, uint64_t first, uint64_t bytes, uint64_t words) {
    for (uint64_t i = first / 4; i < (first + bytes + 3) / 4 && i < words; i++)
        covered[i] = true;
}

/* The words of shared memory in which no variable stands that the kernel can see. */
static bool find_gaps(vm_state *s) {
    const vm_module *m = s->module;
    uint64_t words = s->shared_used / 4;
    bool *covered = calloc(words + 1, sizeof *covered);
    s->gaps = malloc((words + 1) * sizeof *s->gaps);
    if (covered && s->gaps) {
        for (const ptx_var *v = m->variables; v; v = v->next)
            if (v->space == VM_SPACE_SHARED && !v->dynamic &&
                (v->func == PTX_NONE || !m->funcs[v->func].entry || &m->funcs[v->func] == s->entry))
                cover(covered, v->offset, v->bytes, words);
        cover(covered, m->dynamic_base, s->launch->dynamic_shared, words);
        for (uint64_t i = 0; i < words; i++)
            if (!covered[i])
                s->gaps[s->gap_count++] = (uint32_t)i;
    }
    free(covered);
    return covered && s->gaps;
}

static bool make_batch(vm_state *s) {
    if (!s->launch->observer)
        return true;
    s->events = vm_spare_take(&s->spare, VM_BATCH_EVENTS * sizeof *s->events);
    s->sectors =
        vm_spare_take(&s->spare, (size_t)VM_BATCH_EVENTS * VM_EVENT_SECTORS * sizeof *s->sectors);
    s->site_passes = calloc((size_t)s->module->site_count + 1, sizeof *s->site_passes);
    return s->events && s->sectors && s->site_passes;
}

bool vm_state_make(vm_state *s) {
    const vm_module *m = s->module;
    s->races = &s->session->races;
    s->ranked = s->memory->peers != NULL;
    s->spare = s->memory->spare;
    s->memory->spare = (vm_spare){0};
    s->runs = calloc((size_t)m->insn_count + 1, sizeof *s->runs);
    s->segments = calloc((size_t)m->site_count + 1, sizeof *s->segments);
    s->pools = calloc(m->func_count + 1, sizeof *s->pools);
    if (!s->runs || !s->segments || !s->pools || !take_consts(s) || !find_gaps(s) || !make_batch(s))
        s->out_of_memory = true;
    return !s->out_of_memory && vm_wave_begin(s);
}

ev_status vm_state_fill(vm_state *s, vm_memory *memory, const vm_launch *launch, vm_result *result,
                        ev_error *err) {
    EV_TRY(check_geometry(launch, err));
    const vm_module *m = launch->module;
    memset(result, 0, sizeof *result);
    *s = (vm_state){.module = m, .memory = memory, .launch = launch, .result = result};
    for (size_t i = 0; i < m->entry_count; i++)
        if (&m->funcs[m->entries[i]].pub == launch->entry)
            s->entry = &m->funcs[m->entries[i]];
    if (!s->entry)
        return ev_fail(err, EV_BAD, "%s: the entry belongs to another module", m->name);
    s->globals = launch->globals;
    if (!launch->globals)
        EV_TRY(vm_memory_attach(memory, m, &s->globals, err));
    s->fuel = launch->fuel ? launch->fuel : DEFAULT_FUEL;
    s->threads = launch->block[0] * launch->block[1] * launch->block[2];
    s->shared_used =
        launch->dynamic_shared ? m->dynamic_base + launch->dynamic_shared : s->entry->shared_span;
    s->shared_bytes = (s->shared_used + 127) / 64 * 64;
    s->run = vm_isa_run(m->isa);
    return EV_OK;
}

static ev_status run(vm_memory *memory, const vm_launch *launch, uint32_t jobs, vm_result *result,
                     bool *spread, ev_error *err) {
    vm_state s;
    vm_session session = {.ranks = &s, .count = 1};
    EV_TRY(vm_state_fill(&s, memory, launch, result, err));
    s.session = &session;
    bool ok = vm_race_begin(&session) && vm_state_make(&s);
    *spread = ok && vm_jobs_run(&s, jobs);
    result->ok = *spread || (ok && vm_session_run(&session) && !s.trapped);
    vm_state_count(&s);
    bool memory_out = (!ok && !s.trapped) || s.out_of_memory || memory->out_of_memory;
    vm_state_free(&s);
    vm_race_end(&session);
    if (memory_out && !s.trapped)
        return ev_fail(err, EV_INFRA, "%s: out of memory during the launch", launch->entry->name);
    return EV_OK;
}

ev_status vm_run(vm_memory *memory, const vm_launch *launch, vm_result *result, ev_error *err) {
    bool spread;
    return run(memory, launch, launch->jobs, result, &spread, err);
}

ev_status vm_run_by_jobs(vm_memory *memory, const vm_launch *launch, uint32_t jobs,
                         vm_result *result, bool *spread, ev_error *err) {
    return run(memory, launch, jobs, result, spread, err);
}
