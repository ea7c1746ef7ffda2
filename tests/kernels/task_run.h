/* One case of a task in the virtual machine under all its checks, and the outputs of two such runs
 * held against each other, bit by bit. Errors end the test. */
#ifndef TESTS_KERNELS_TASK_RUN_H
#define TESTS_KERNELS_TASK_RUN_H

#include "fitness/vm/vm.h"
#include "tests/kernels/task_inputs.h"

#include <inttypes.h>

typedef struct task_run {
    vm_memory *memory;
    uint64_t *addresses; /* of the arguments that are buffers */
    vm_result result;
} task_run;

static inline vm_buffer_kind task_run_kind(task_argument_kind kind) {
    if (kind == TASK_IN)
        return VM_BUFFER_IN;
    return kind == TASK_OUT ? VM_BUFFER_OUT : VM_BUFFER_INOUT;
}

static inline void task_run_fill(const task_inputs *in, task_run *run, const vm_entry *entry,
                                 unsigned char *params) {
    ev_error err = {EV_OK, ""};
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *a = &in->t->arguments[i];
        unsigned char *param = params + entry->params[a->parameter].offset + a->offset;
        if (a->kind == TASK_SCALAR) {
            ev_type_set(a->type, param, 0, in->arguments[i].value);
            continue;
        }
        uint64_t bytes = in->arguments[i].count * ev_type_bytes(a->type);
        OK_OR_FAIL(vm_memory_alloc(run->memory, bytes, task_run_kind(a->kind), a->name,
                                   &run->addresses[i], &err));
        if (in->arguments[i].data)
            memcpy(vm_memory_host(run->memory, run->addresses[i]), in->arguments[i].data, bytes);
        memcpy(param, &run->addresses[i], sizeof run->addresses[i]);
    }
}

/* The launch may end in a trap: see `result`. The caller frees the run. */
static inline task_run task_run_make(const task_inputs *in, const task_start *start,
                                     const vm_module *module, uint64_t schedule_seed) {
    ev_error err = {EV_OK, ""};
    const vm_entry *entry = vm_module_find(module, launch_plan_entry(start->plan));
    assert_non_null(entry);
    assert_int_equal(entry->param_count, in->t->parameter_count);
    task_run run = {.addresses = calloc(in->t->argument_count, sizeof(uint64_t))};
    unsigned char *params = calloc(1, entry->param_bytes + 8);
    assert_true(run.addresses && params);
    OK_OR_FAIL(vm_memory_new(UINT64_C(1) << 30, &run.memory, &err));
    task_run_fill(in, &run, entry, params);
    launch_geometry geometry;
    OK_OR_FAIL(task_launch_of(in->t, start, start->plan, NULL, 0, in->c, &geometry, &err));
    vm_launch launch = {.module = module,
                        .entry = entry,
                        .dynamic_shared = geometry.shared_bytes,
                        .params = params,
                        .checks = VM_CHECK_ALL,
                        .schedule_seed = schedule_seed};
    memcpy(launch.grid, geometry.grid, sizeof launch.grid);
    memcpy(launch.block, geometry.block, sizeof launch.block);
    OK_OR_FAIL(vm_run(run.memory, &launch, &run.result, &err));
    free(params);
    return run;
}

static inline void task_run_free(task_run *run) {
    vm_memory_free(run->memory);
    free(run->addresses);
}

/* "" when all outputs are the same bits. */
static inline void task_run_compare(const task_inputs *in, const task_run *a, const task_run *b,
                                    char *says, size_t room) {
    says[0] = '\0';
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *argument = &in->t->arguments[i];
        if (argument->kind != TASK_OUT && argument->kind != TASK_INOUT)
            continue;
        size_t bytes = ev_type_bytes(argument->type);
        const char *x = vm_memory_host(a->memory, a->addresses[i]);
        const char *y = vm_memory_host(b->memory, b->addresses[i]);
        for (uint64_t k = 0; k < in->arguments[i].count; k++)
            if (memcmp(x + k * bytes, y + k * bytes, bytes) != 0) {
                snprintf(says, room, "%s, %s[%" PRIu64 "]: %.9g and %.9g", in->c->name,
                         argument->name, k, ev_type_get(argument->type, x, k),
                         ev_type_get(argument->type, y, k));
                return;
            }
    }
}

#endif
