/* The judges' machine: places buffers, packs parameters, runs, and reads the outputs back. */
#include "tests/tuner/judge/machine.h"

#include "base/type.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/ok.h"

#define POISON 0x5a

static ev_error err;

bool judge_is_output(const task_argument *a) {
    return a->kind == TASK_OUT || a->kind == TASK_INOUT;
}

bool judge_is_input(const task_argument *a) {
    return a->kind == TASK_IN || a->kind == TASK_INOUT;
}

static uint64_t bytes_of(const judge_input *in, size_t i) {
    return in->count[i] * ev_type_bytes(in->t->arguments[i].type);
}

/* ---- inputs ---- */

static bool set_argument(judge_input *in, size_t i) {
    const task_argument *a = &in->t->arguments[i];
    if (a->kind == TASK_SCALAR)
        return task_argument_value_of(in->t, a, &in->at, &in->value[i], &err) == EV_OK;
    if (task_argument_count_of(in->t, a, &in->at, &in->count[i], &err) != EV_OK)
        return false;
    in->data[i] = calloc(bytes_of(in, i) + 1, 1);
    assert_non_null(in->data[i]);
    return true;
}

bool judge_input_make(const task *t, const expr_name *shape, size_t size_count, judge_input *out) {
    assert_true(t->argument_count <= JUDGE_ARGUMENTS && size_count <= JUDGE_SIZES);
    assert_int_equal(t->symbol_count, 0);
    memset(out, 0, sizeof *out);
    out->t = t;
    memcpy(out->shape, shape, size_count * sizeof *shape);
    out->at = (task_case){.name = "judge", .use = TASK_CHECK, .shape_count = size_count};
    out->at.shape = out->shape;
    bool made = true;
    for (size_t i = 0; i < t->argument_count && made; i++)
        made = set_argument(out, i);
    if (!made)
        judge_input_free(out);
    return made;
}

void judge_input_free(judge_input *in) {
    for (size_t i = 0; i < JUDGE_ARGUMENTS; i++)
        free(in->data[i]);
    memset(in, 0, sizeof *in);
}

/* ---- kernels ---- */

judge_kernel judge_kernel_load(device *d, const char *ptx, size_t bytes, const task_start *start,
                               const launch_plan *plan) {
    judge_kernel k = {.start = start, .plan = plan != NULL ? plan : start->plan};
    ev_status status = device_load_plan(d, ptx, bytes, k.plan, &k.loaded, &err);
    assert_int_not_equal(status, EV_INFRA);
    if (status != EV_OK)
        k.loaded = NULL;
    return k;
}

void judge_kernel_free(judge_kernel *k) {
    device_unload(k->loaded);
    k->loaded = NULL;
}

/* ---- runs ---- */

static void place(device *d, const judge_input *in, device_buffer *buffers) {
    static const vm_buffer_kind kinds[] = {
        [TASK_IN] = VM_BUFFER_IN, [TASK_OUT] = VM_BUFFER_OUT, [TASK_INOUT] = VM_BUFFER_INOUT};
    device_clear(d);
    for (size_t i = 0; i < in->t->argument_count; i++) {
        const task_argument *a = &in->t->arguments[i];
        if (a->kind != TASK_SCALAR)
            OK(device_alloc(d, bytes_of(in, i), kinds[a->kind], a->name, &buffers[i], &err));
    }
    OK(device_reset(d, POISON, &err));
    for (size_t i = 0; i < in->t->argument_count; i++) {
        if (judge_is_input(&in->t->arguments[i]))
            OK(device_write(d, buffers[i], 0, in->data[i], bytes_of(in, i), &err));
    }
}

static void pack(device *d, const judge_kernel *k, const judge_input *in,
                 const device_buffer *buffers, char *params) {
    const vm_entry *entry = device_kernel_entry(k->loaded);
    assert_int_equal(entry->param_count, in->t->argument_count);
    for (size_t i = 0; i < entry->param_count; i++) {
        const task_argument *a = &in->t->arguments[i];
        char *to = params + entry->params[i].offset;
        if (a->kind != TASK_SCALAR) {
            uint64_t address = device_address(d, buffers[i]);
            memcpy(to, &address, sizeof address);
        } else if (ev_type_is_float(a->type)) {
            const expr_value *v = &in->value[i];
            ev_type_set(a->type, to, 0, v->is_real ? v->real : (double)v->whole);
        } else {
            memcpy(to, &in->value[i].whole, ev_type_bytes(a->type)); /* little-endian */
        }
    }
}

static void read_outputs(device *d, const judge_input *in, const device_buffer *buffers,
                         judge_output *out) {
    for (size_t i = 0; i < in->t->argument_count; i++) {
        if (!judge_is_output(&in->t->arguments[i]))
            continue;
        out->data[i] = malloc(bytes_of(in, i) + 1);
        assert_non_null(out->data[i]);
        OK(device_read(d, buffers[i], 0, out->data[i], bytes_of(in, i), &err));
    }
}

void judge_run(device *d, const judge_kernel *k, const judge_input *in, uint64_t fuel,
               judge_output *out) {
    device_buffer buffers[JUDGE_ARGUMENTS] = {0};
    char params[512] = {0};
    launch_geometry geometry;
    device_outcome outcome;
    *out = (judge_output){.ran = false};
    if (task_launch_of(in->t, k->start, k->plan, k->macros, k->macro_count, &in->at, &geometry,
                       &err) != EV_OK)
        return;
    assert_true(device_kernel_entry(k->loaded)->param_bytes <= sizeof params);
    place(d, in, buffers);
    pack(d, k, in, buffers, params);
    device_launch launch = device_launch_of(&geometry);
    launch.params = params;
    launch.checks = VM_CHECK_ALL;
    launch.fuel = fuel;
    ev_status status = device_run(d, k->loaded, &launch, &outcome, &err);
    assert_int_not_equal(status, EV_INFRA);
    if (status != EV_OK)
        return;
    out->ran = outcome.ok;
    out->instructions = (double)outcome.counters.thread_instructions;
    if (out->ran)
        read_outputs(d, in, buffers, out);
}

void judge_output_free(judge_output *out) {
    for (size_t i = 0; i < JUDGE_ARGUMENTS; i++)
        free(out->data[i]);
    *out = (judge_output){.ran = false};
}
