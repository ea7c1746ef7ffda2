/* Jobs: the blocks of a launch spread over cores, with the results of one job to the last byte.
 *
 * Each job takes chunks of the order of blocks and runs them on its own view of memory, with its
 * own shadow and counters. If in the end no job wrote what another read or wrote, and none did what
 * only one after the other can do (atomics and strong accesses in global memory, clocks, calls of
 * the machine, traps, fuel that runs out), then blocks of different jobs had nothing to do with
 * each other: each did what it would have done in the one order, and the views are put together.
 * Else all is thrown away and the launch runs by one job. Which of the two happens changes the time
 * alone. */
#include "fitness/vm/vm_jobs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS_A_JOB 8
#define MOST_JOBS 256
/* Near the end of the fuel turns get shorter: left to one job. */
#define FUEL_MARGIN (1ull << 24)

typedef struct job {
    pthread_t thread;
    bool started, ok;
    vm_memory view;
    vm_state s;
    vm_session session;
    vm_result result;
} job;

/* ---- may it be tried? */

static bool is_memory(uint8_t shape) {
    return shape == PTX_S_LD || shape == PTX_S_ST || shape == PTX_S_ATOM || shape == PTX_S_RED;
}

static bool needs_order(const vm_module *m, const ptx_insn *ip, bool *strong) {
    uint8_t shape = ptx_op_get(ip->row)->shape;
    bool orders = shape == PTX_S_ATOM || shape == PTX_S_RED || shape == PTX_S_SURED ||
                  (is_memory(shape) && ip->strong);
    *strong |= orders;
    if (orders)
        return ip->space == VM_SPACE_GLOBAL;
    return shape == PTX_S_SREG ||
           (shape == PTX_S_CALL && m->calls[ip->target].system != PTX_SYS_NONE);
}

/* Looks through the entry and all functions. *strong: there are strong accesses to any space. */
static bool may_try(const vm_state *s, bool *strong) {
    const vm_module *m = s->module;
    for (size_t f = 0; f < m->func_count; f++) {
        const ptx_func *fn = &m->funcs[f];
        if (fn->entry && fn != s->entry)
            continue;
        for (uint32_t pc = fn->pub.first_pc; pc < fn->pub.end_pc; pc++)
            if (needs_order(m, &m->code[pc], strong))
                return false;
    }
    return true;
}

/* ---- jobs */

bool vm_chunk_take(vm_wave *v) {
    vm_chunks *c = v->chunks;
    if (!c || atomic_load(&c->abandon))
        return false;
    uint64_t first = atomic_fetch_add(&c->next, c->each);
    if (first >= c->total)
        return false;
    v->next = first;
    v->end = c->total - first < c->each ? c->total : first + c->each;
    return true;
}

static void *work(void *context) {
    job *j = context;
    j->ok = vm_session_run(&j->session) && !j->s.trapped && !j->s.out_of_memory &&
            !j->view.out_of_memory && !atomic_load(&j->s.wave->chunks->abandon);
    if (!j->ok)
        atomic_store(&j->s.wave->chunks->abandon, true);
    return NULL;
}

/* A launch of its own on a view, without blocks yet. */
static bool job_open(job *j, const vm_state *s, vm_chunks *chunks, bool strong) {
    if (!vm_view_open(s->memory, &j->view))
        return false;
    j->s = (vm_state){.module = s->module,
                      .memory = &j->view,
                      .launch = s->launch,
                      .result = &j->result,
                      .entry = s->entry,
                      .globals = s->globals,
                      .fuel = s->fuel,
                      .threads = s->threads,
                      .shared_used = s->shared_used,
                      .shared_bytes = s->shared_bytes,
                      .run = s->run,
                      .tracked = true,
                      .whole_turns = strong,
                      .session = &j->session};
    j->session = (vm_session){.ranks = &j->s, .count = 1};
    if (!vm_race_begin(&j->session) || !vm_state_make(&j->s))
        return false;
    j->s.wave->chunks = chunks;
    j->s.wave->next = j->s.wave->end = 0;
    return true;
}

static void job_close(job *j) {
    if (!j->view.arena)
        return;
    vm_state_free(&j->s);
    vm_race_end(&j->session);
    vm_view_close(&j->view);
}

static bool run_all(job *list, unsigned jobs) {
    bool ok = true;
    for (unsigned i = 1; i < jobs; i++)
        list[i].started = pthread_create(&list[i].thread, NULL, work, &list[i]) == 0;
    work(&list[0]);
    for (unsigned i = 1; i < jobs; i++) {
        if (list[i].started)
            pthread_join(list[i].thread, NULL);
        else /* chunks that it would have taken went to the others */
            list[i].ok = true;
    }
    for (unsigned i = 0; i < jobs; i++)
        ok &= list[i].ok;
    return ok;
}

/* ---- putting together */

static bool apart(const job *list, unsigned jobs, uint64_t fuel) {
    uint64_t used = 0;
    for (unsigned i = 0; i < jobs; i++) {
        used += list[i].result.counters.thread_instructions;
        for (unsigned k = 0; k < i; k++)
            if (vm_views_meet(&list[i].view, &list[k].view))
                return false;
    }
    return used + FUEL_MARGIN < fuel;
}

/* Counters are 64-bit numbers, all of them sums. */
static void add_counters(vm_counters *to, const vm_counters *from) {
    _Static_assert(sizeof *to % sizeof(uint64_t) == 0, "counters are 64-bit numbers");
    uint64_t a[sizeof *to / sizeof(uint64_t)], b[sizeof *to / sizeof(uint64_t)];
    memcpy(a, to, sizeof a);
    memcpy(b, from, sizeof b);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        a[i] += b[i];
    memcpy(to, a, sizeof a);
}

static bool put_together(vm_state *s, const job *list, unsigned jobs) {
    if (!apart(list, jobs, s->fuel))
        return false;
    for (unsigned i = 0; i < jobs; i++) {
        if (!vm_view_merge(s->memory, &list[i].view))
            s->out_of_memory = true;
        add_counters(&s->result->counters, &list[i].result.counters);
        s->result->waits |= list[i].result.waits;
        for (uint32_t pc = 0; pc <= s->module->insn_count; pc++)
            s->runs[pc] += list[i].s.runs[pc];
    }
    return true;
}

bool vm_jobs_run(vm_state *s, unsigned jobs) {
    uint64_t blocks = s->wave->total;
    bool strong = false, ok = true;
    jobs = jobs < MOST_JOBS ? jobs : MOST_JOBS;
    jobs = jobs < blocks ? jobs : (unsigned)blocks;
    if (jobs < 2 || s->launch->observer || s->ranked || !may_try(s, &strong))
        return false;
    job *list = calloc(jobs, sizeof *list);
    if (!list)
        return false;
    vm_chunks chunks = {.total = blocks, .each = blocks / ((uint64_t)jobs * CHUNKS_A_JOB) + 1};
    for (unsigned i = 0; i < jobs; i++)
        ok = ok && job_open(&list[i], s, &chunks, strong);
    ok = ok && run_all(list, jobs) && put_together(s, list, jobs);
    for (unsigned i = 0; i < jobs; i++)
        job_close(&list[i]);
    free(list);
    return ok;
}
