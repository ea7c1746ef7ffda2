/* The rig of the model's tests: makes PTX of a body, launches it with the model, and compares
 * times. */
#include "tests/fitness/model/model_rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void set(gpu *g, gpu_key key, double value) {
    g->numbers[key].value = value;
}

gpu *load_small(const char *id) {
    gpu *g = load_gpu(id);
    set(g, GPU_SM_COUNT, SMS);
    set(g, GPU_SHARED_GBS, 1e6); /* nothing but the banks */
    return g;
}

static char *text_of(const subject *s) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out,
            ".version 8.0\n.target sm_80\n.address_size 64\n"
            ".visible .entry k(.param .u64 in, .param .u64 out)\n%s{\n"
            ".reg .pred %%p<9>;\n.reg .b32 %%r<99>;\n.reg .f32 %%f<99>;\n.reg .f64 %%d<20>;\n"
            ".reg .b64 %%rd<20>;\n.reg .b16 %%h<9>;\n.shared .align 16 .b8 s[4096];\n"
            "ld.param.u64 %%rd1, [in];\nld.param.u64 %%rd2, [out];\n"
            "mov.u32 %%r1, %%tid.x;\nmov.u32 %%r2, %%ctaid.x;\nmov.u32 %%r3, %%ntid.x;\n"
            "mad.lo.s32 %%r4, %%r2, %%r3, %%r1;\n%s\nret;\n}\n",
            s->bounds != NULL ? s->bounds : "", s->body);
    (void)fclose(out);
    return text;
}

model_time time_of(const gpu *g, const subject *s) {
    ev_error err = {.text = ""};
    char *text = text_of(s);
    vm_module *module = NULL;
    vm_memory *memory[2] = {NULL, NULL};
    if (vm_module_load(text, strlen(text), "test", &module, &err) != EV_OK)
        fail_msg("%s in\n%s", err.text, text);
    assert_int_equal(vm_memory_new_peers(1u << 27, 2, memory, &err), EV_OK);
    model_buffer buffers[2], ranges[2];
    uint64_t params[2];
    if (s->before > 0)
        assert_int_equal(
            vm_memory_alloc(memory[s->peer], s->before, VM_BUFFER_IN, "before", &params[0], &err),
            EV_OK);
    for (int i = 0; i < 2; i++) {
        vm_memory *of = memory[i == 0 ? s->peer : 0];
        assert_int_equal(vm_memory_alloc(of, BUFFER_BYTES, VM_BUFFER_INOUT, "b", &params[i], &err),
                         EV_OK);
        buffers[i] = (model_buffer){params[i], BUFFER_BYTES};
        vm_memory_range(memory[i], &ranges[i].address, &ranges[i].bytes);
    }
    vm_launch l = {.module = module,
                   .entry = vm_module_find(module, NULL),
                   .grid = {s->grid, 1, 1},
                   .block = {s->block, 1, 1},
                   .dynamic_shared = s->shared,
                   .params = params};
    model *m = NULL;
    assert_int_equal(model_new(g, &l, &m, &err), EV_OK);
    model_set_buffers(m, buffers + s->peer, 2 - (size_t)s->peer);
    model_ranks ranks = {.memory = ranges, .count = 2, .self = 0, .reach = s->reach};
    if (s->peer)
        assert_int_equal(model_set_ranks(m, &ranks, &err), EV_OK);
    l.observer = model_observer(m);
    vm_result results[1];
    vm_rank rank = {.memory = memory[0], .launch = &l};
    if (vm_run_ranks(&rank, 1, results, &err) != EV_OK || !results[0].ok)
        fail_msg("%s in\n%s", err.text[0] ? err.text : results[0].trap.message, text);
    model_time time;
    assert_int_equal(model_finish(m, &results[0], &time, &err), EV_OK);
    model_free(m);
    vm_memory_free(memory[0]);
    vm_memory_free(memory[1]);
    vm_module_free(module);
    free(text);
    return time;
}

double cycles(const gpu *g, const model_time *t) {
    return (t->ns - t->term_ns[MODEL_LAUNCH]) * gpu_get(g, GPU_BOOST_MHZ) * 1e-3;
}

double cycles_of(const gpu *g, const subject *s) {
    model_time t = time_of(g, s);
    return cycles(g, &t);
}

void assert_ratio(const char *what, double a, double b, double expected, double within) {
    double is = a / b;
    if (!(fabs(is / expected - 1) <= within))
        fail_msg("%s: %g against %g is a ratio of %.4f, expected %.4f", what, a, b, is, expected);
}

char *loop_of(const char *before, const char *inner, int copies, int rounds) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    fprintf(out, "%smov.u32 %%r9, 0;\nL:\n", before);
    for (int i = 0; i < copies; i++)
        fputs(inner, out);
    fprintf(out, "add.u32 %%r9, %%r9, 1;\nsetp.lt.u32 %%p1, %%r9, %d;\n@%%p1 bra L;\n", rounds);
    (void)fclose(out);
    return text;
}

double more_cycles(const gpu *g, const char *before, const char *inner, uint32_t grid,
                   uint32_t block, int copies) {
    double at[2];
    for (int i = 0; i < 2; i++) {
        char *body = loop_of(before, inner, copies * (i + 2), ROUNDS);
        subject s = {.body = body, .grid = grid, .block = block};
        at[i] = cycles_of(g, &s);
        free(body);
    }
    return (at[1] - at[0]) / ROUNDS / copies;
}
