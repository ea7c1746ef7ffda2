/* One case of a task in the virtual machine under all its checks, and the outputs of two such runs
 * held against each other, bit by bit. Errors end the test. */
#ifndef TESTS_KERNELS_TASK_RUN_H
#define TESTS_KERNELS_TASK_RUN_H

#include "fitness/vm/vm.h"
#include "tests/kernels/task_inputs.h"
#include "tests/sanitized.h"

#include <inttypes.h>

typedef struct task_run {
    uint32_t ranks;
    vm_memory *memories[TASK_RANKS_MOST]; /* one for each rank */
    uint64_t *addresses[TASK_RANKS_MOST]; /* of the arguments that are buffers */
    vm_result result;
} task_run;

static inline vm_buffer_kind task_run_kind(task_argument_kind kind) {
    if (kind == TASK_IN)
        return VM_BUFFER_IN;
    return kind == TASK_OUT ? VM_BUFFER_OUT : VM_BUFFER_INOUT;
}

/* Bytes of a rank's part of a buffer. */
static inline uint64_t task_run_bytes(const task_inputs *in, const task_run *run, size_t i) {
    return in->arguments[i].count / run->ranks * ev_type_bytes(in->t->arguments[i].type);
}

static inline void task_run_place(const task_inputs *in, task_run *run, uint32_t rank) {
    ev_error err = {EV_OK, ""};
    run->addresses[rank] = calloc(in->t->argument_count, sizeof(uint64_t));
    assert_non_null(run->addresses[rank]);
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *a = &in->t->arguments[i];
        uint64_t bytes = task_run_bytes(in, run, i), *at = &run->addresses[rank][i];
        if (a->kind == TASK_SCALAR)
            continue;
        OK_OR_FAIL(
            vm_memory_alloc(run->memories[rank], bytes, task_run_kind(a->kind), a->name, at, &err));
        if (in->arguments[i].data)
            memcpy(vm_memory_host(run->memories[rank], *at),
                   (const char *)in->arguments[i].data + rank * bytes, bytes);
    }
}

/* Fills the tables of peers of a rank. */
static inline void task_run_tables(const task_inputs *in, const task_run *run, uint32_t rank) {
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const char *of = in->t->arguments[i].peers_of;
        uint64_t address = run->addresses[rank][i];
        uint64_t *table = of != NULL ? vm_memory_host(run->memories[rank], address) : NULL;
        for (uint32_t peer = 0; of != NULL && peer < run->ranks; peer++)
            table[peer] = run->addresses[peer][task_inputs_index(in, of)];
    }
}

/* Fills the parameters of a rank. */
static inline void task_run_fill(const task_inputs *in, const task_run *run, uint32_t rank,
                                 const vm_entry *entry, unsigned char *params) {
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *a = &in->t->arguments[i];
        unsigned char *param = params + entry->params[a->parameter].offset + a->offset;
        uint64_t address = run->addresses[rank][i];
        if (a->kind == TASK_SCALAR)
            ev_type_set(a->type, param, 0, a->is_rank ? rank : in->arguments[i].value);
        else
            memcpy(param, &address, sizeof address);
    }
}

/* ---- starts of several launches ---- */

typedef struct task_run_row {
    const task_inputs *in;
    const task_start *start;
    const vm_module *module;
    uint64_t seed;
    task_run *run;
    task_steps steps;
    uint64_t scratch[TASK_RANKS_MOST][TASK_MAX_SCRATCH]; /* addresses */
} task_run_row;

/* Writes the parameters of one of several launches. */
static inline void task_run_fill_step(const task_run_row *row, const task_step *step, uint32_t rank,
                                      const vm_entry *entry, unsigned char *params) {
    const task_inputs *in = row->in;
    assert_int_equal(entry->param_count, step->given_count);
    for (size_t i = 0; i < step->given_count; i++) {
        const task_given *g = &step->given[i];
        const task_argument *a = &in->t->arguments[g->kind == TASK_GIVEN_ARGUMENT ? g->index : 0];
        unsigned char *param = params + entry->params[i].offset;
        if (g->kind == TASK_GIVEN_VALUE)
            ev_type_set(g->type, param, 0, g->value.real);
        else if (g->kind == TASK_GIVEN_SCRATCH)
            memcpy(param, &row->scratch[rank][g->index], sizeof(uint64_t));
        else if (a->kind == TASK_SCALAR)
            ev_type_set(a->type, param, 0, a->is_rank ? rank : in->arguments[g->index].value);
        else
            memcpy(param, &row->run->addresses[rank][g->index], sizeof(uint64_t));
    }
}

/* The scratch buffers of all ranks, and their tables. */
static inline void task_run_scratch(task_run_row *row) {
    ev_error err = {EV_OK, ""};
    const launch_plan *plan = row->start->plan;
    for (size_t i = 0; i < plan->scratch_count; i++) {
        const char *of = plan->scratch[i].peers_of;
        vm_buffer_kind kind = of != NULL ? VM_BUFFER_IN : VM_BUFFER_SCRATCH;
        size_t owner = 0;
        while (of != NULL && strcmp(plan->scratch[owner].name, of) != 0)
            owner++;
        for (uint32_t r = 0; r < row->run->ranks; r++)
            OK_OR_FAIL(vm_memory_alloc(row->run->memories[r], row->steps.scratch[i], kind,
                                       plan->scratch[i].name, &row->scratch[r][i], &err));
        for (uint32_t r = 0; of != NULL && r < row->run->ranks; r++) {
            uint64_t *table = vm_memory_host(row->run->memories[r], row->scratch[r][i]);
            for (uint32_t peer = 0; peer < row->run->ranks; peer++)
                table[peer] = row->scratch[peer][owner];
        }
    }
}

static inline void task_run_step(task_run_row *row, size_t index) {
    ev_error err = {EV_OK, ""};
    task_run *run = row->run;
    const task_step *step = &row->steps.all[index];
    const char *name = row->start->plan->launches[step->launch].entry;
    const vm_entry *entry = vm_module_find(row->module, name);
    vm_launch launches[TASK_RANKS_MOST];
    vm_rank ranks[TASK_RANKS_MOST];
    vm_result results[TASK_RANKS_MOST];
    unsigned char *params[TASK_RANKS_MOST];
    bool many = run->ranks > 1;
    assert_non_null(entry);
    for (uint32_t r = 0; r < run->ranks; r++) {
        params[r] = calloc(1, entry->param_bytes + 8);
        assert_non_null(params[r]);
        task_run_fill_step(row, step, r, entry, params[r]);
        launches[r] = (vm_launch){.module = row->module,
                                  .entry = entry,
                                  .dynamic_shared = step->at.shared_bytes,
                                  .params = params[r],
                                  .checks = VM_CHECK_ALL,
                                  .schedule_seed = row->seed};
        if (many && index > 0)
            launches[r].stream |= VM_STREAM_FOLLOWS;
        if (many && index + 1 < row->steps.count)
            launches[r].stream |= VM_STREAM_GOES_ON;
        memcpy(launches[r].grid, step->at.grid, sizeof step->at.grid);
        memcpy(launches[r].block, step->at.block, sizeof step->at.block);
        ranks[r] = (vm_rank){run->memories[r], &launches[r]};
    }
    OK_OR_FAIL(vm_run_ranks(ranks, run->ranks, results, &err));
    run->result = results[0];
    for (uint32_t r = 0; r < run->ranks; r++)
        free(params[r]);
}

/* A start of several launches, up to the first that ends in a trap. */
static inline task_run task_run_steps(const task_inputs *in, const task_start *start,
                                      const vm_module *module, uint64_t schedule_seed) {
    ev_error err = {EV_OK, ""};
    task_run run = {.ranks = 1, .result = {.ok = true}};
    task_run_row row = {
        .in = in, .start = start, .module = module, .seed = schedule_seed, .run = &run};
    OK_OR_FAIL(task_ranks_of(in->t, in->c, &run.ranks, &err));
    OK_OR_FAIL(task_steps_of(in->t, start, start->plan, NULL, 0, in->c, &row.steps, &err));
    OK_OR_FAIL(vm_memory_new_peers(UINT64_C(1) << 30, run.ranks, run.memories, &err));
    for (uint32_t r = 0; r < run.ranks; r++)
        task_run_place(in, &run, r);
    for (uint32_t r = 0; r < run.ranks; r++)
        task_run_tables(in, &run, r);
    task_run_scratch(&row);
    for (size_t i = 0; i < row.steps.count && run.result.ok; i++)
        task_run_step(&row, i);
    task_steps_free(&row.steps);
    return run;
}

/* ---- a launch ---- */

static inline task_run task_run_plain(const task_inputs *in, const task_start *start,
                                      const vm_module *module, uint64_t schedule_seed) {
    ev_error err = {EV_OK, ""};
    const vm_entry *entry = vm_module_find(module, launch_plan_entry(start->plan));
    assert_non_null(entry);
    assert_int_equal(entry->param_count, in->t->parameter_count);
    task_run run = {.ranks = 1};
    OK_OR_FAIL(task_ranks_of(in->t, in->c, &run.ranks, &err));
    OK_OR_FAIL(vm_memory_new_peers(UINT64_C(1) << 30, run.ranks, run.memories, &err));
    launch_geometry geometry;
    OK_OR_FAIL(task_launch_of(in->t, start, start->plan, NULL, 0, in->c, &geometry, &err));
    vm_launch launches[TASK_RANKS_MOST];
    vm_rank ranks[TASK_RANKS_MOST];
    vm_result results[TASK_RANKS_MOST];
    unsigned char *params[TASK_RANKS_MOST];
    for (uint32_t rank = 0; rank < run.ranks; rank++)
        task_run_place(in, &run, rank);
    for (uint32_t rank = 0; rank < run.ranks; rank++) {
        params[rank] = calloc(1, entry->param_bytes + 8);
        assert_non_null(params[rank]);
        task_run_tables(in, &run, rank);
        task_run_fill(in, &run, rank, entry, params[rank]);
        launches[rank] = (vm_launch){.module = module,
                                     .entry = entry,
                                     .dynamic_shared = geometry.shared_bytes,
                                     .params = params[rank],
                                     .checks = VM_CHECK_ALL,
                                     .schedule_seed = schedule_seed};
        memcpy(launches[rank].grid, geometry.grid, sizeof geometry.grid);
        memcpy(launches[rank].block, geometry.block, sizeof geometry.block);
        ranks[rank] = (vm_rank){run.memories[rank], &launches[rank]};
    }
    OK_OR_FAIL(vm_run_ranks(ranks, run.ranks, results, &err));
    run.result = results[0];
    for (uint32_t rank = 0; rank < run.ranks; rank++)
        free(params[rank]);
    return run;
}

/* The launch, or one of several, may end in a trap: see `result`. The caller frees the run. */
static inline task_run task_run_make(const task_inputs *in, const task_start *start,
                                     const vm_module *module, uint64_t schedule_seed) {
    return task_start_has_steps(start) ? task_run_steps(in, start, module, schedule_seed)
                                       : task_run_plain(in, start, module, schedule_seed);
}

static inline void task_run_free(task_run *run) {
    for (uint32_t rank = 0; rank < run->ranks; rank++) {
        vm_memory_free(run->memories[rank]);
        free(run->addresses[rank]);
    }
}

/* The contents of an output, of all ranks one behind the other; the caller frees them. */
static inline void *task_run_output(const task_inputs *in, const task_run *run, size_t i) {
    uint64_t bytes = task_run_bytes(in, run, i);
    char *all = malloc(bytes * run->ranks + 1);
    assert_non_null(all);
    for (uint32_t rank = 0; rank < run->ranks; rank++)
        memcpy(all + rank * bytes, vm_memory_host(run->memories[rank], run->addresses[rank][i]),
               bytes);
    return all;
}

static inline void task_run_compare_output(const task_inputs *in, const task_run *a,
                                           const task_run *b, size_t i, char *says, size_t room) {
    const task_argument *argument = &in->t->arguments[i];
    size_t bytes = ev_type_bytes(argument->type);
    char *x = task_run_output(in, a, i), *y = task_run_output(in, b, i);
    for (uint64_t k = 0; k < in->arguments[i].count && !says[0]; k++)
        if (memcmp(x + k * bytes, y + k * bytes, bytes) != 0)
            (void)snprintf(says, room, "%s, %s[%" PRIu64 "]: %.9g and %.9g", in->c->name,
                           argument->name, k, ev_type_get(argument->type, x, k),
                           ev_type_get(argument->type, y, k));
    free(x);
    free(y);
}

/* "" when all outputs are the same bits. */
static inline void task_run_compare(const task_inputs *in, const task_run *a, const task_run *b,
                                    char *says, size_t room) {
    says[0] = '\0';
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *argument = &in->t->arguments[i];
        if (argument->kind == TASK_OUT || argument->kind == TASK_INOUT)
            task_run_compare_output(in, a, b, i, says, room);
    }
}

/* Visits the shipped tasks by name; with sanitizers each third of them, as the others run the same
 * code of ours, and a build without sanitizers visits all. */
static inline void each_shipped_task(void (*visit)(const char *name)) {
    char **paths = NULL;
    size_t count = 0;
    ev_error err = {EV_OK, ""};
    OK_OR_FAIL(task_list_shipped(&paths, &count, &err));
    assert_true(count >= 4);
    for (size_t i = 0; i < count; i += SANITIZED ? 5 : 1)
        visit(paths[i]);
    task_list_free(paths, count);
}

#endif
