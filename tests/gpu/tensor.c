/* Runs each form of tensor.def on two devices and compares what it gives bit for bit. */
#include "tests/gpu/tensor.h"

#include "base/stop.h"

#include <stdlib.h>
#include <string.h>

#define OUT_MOST 4096

static ev_status load_and_run(device *d, const tensor_kernel *t, device_buffer input,
                              device_buffer output, ev_error *err) {
    device_kernel *k = NULL;
    device_outcome ended;
    uint64_t params[2];
    EV_TRY(device_load(d, ev_str_text(&t->ptx), t->ptx.length, "tensor", &k, err));
    params[0] = device_address(d, input);
    params[1] = device_address(d, output);
    device_launch l = {.grid = {1, 1, 1}, .block = {TENSOR_LANES, 1, 1}, .params = params};
    ev_status status = device_run(d, k, &l, &ended, err);
    device_unload(k);
    if (status == EV_OK && !ended.ok)
        return ev_fail(err, EV_BAD, "%s", ended.fault.message);
    return status;
}

static ev_status run(device *d, const tensor_kernel *t, uint8_t *result, ev_error *err) {
    device_buffer input = 0, output = 0;
    device_clear(d);
    memset(result, 0, OUT_MOST);
    EV_TRY(device_alloc(d, t->in, VM_BUFFER_IN, "input", &input, err));
    EV_TRY(device_alloc(d, t->out, VM_BUFFER_INOUT, "output", &output, err));
    EV_TRY(device_write(d, input, 0, t->input, t->in, err));
    EV_TRY(device_write(d, output, 0, result, t->out, err));
    EV_TRY(load_and_run(d, t, input, output, err));
    return device_read(d, output, 0, result, t->out, err);
}

static ev_status compare(device *d, device *vm, const tensor_kernel *t, ev_lines *lines,
                         json_t *all, ev_error *err) {
    uint8_t here[OUT_MOST], there[OUT_MOST];
    EV_TRY(run(vm, t, there, err));
    ev_error why = {0};
    ev_status status = run(d, t, here, &why);
    if (status == EV_INFRA) {
        *err = why;
        return status;
    }
    const char *list = NULL;
    if (status != EV_OK)
        list = "refused";
    else if (memcmp(here, there, t->out) != 0)
        list = "differed";
    if (list != NULL)
        (void)json_array_append_new(json_object_get(all, list), json_string(t->name));
    json_t *line =
        json_pack("{s:s, s:s}", "tensor", t->name, "outcome", list != NULL ? list : "agreed");
    status = ev_lines_add(lines, line, err);
    json_decref(line);
    return status;
}

static ev_status compare_rest(device *d, device *vm, ev_lines *lines, tensor_kernel *t, json_t *all,
                              size_t *next, size_t step, ev_error *err) {
    json_t *forms = json_object_get(all, "forms");
    ev_status status = EV_OK;
    for (; *next < tensor_count() && status == EV_OK && !ev_stop_asked() && !device_is_spent(d);
         *next += step) {
        tensor_make(*next, t);
        if (t->sm <= device_properties_of(d)->sm) {
            status = compare(d, vm, t, lines, all, err);
            (void)json_integer_set(forms, json_integer_value(forms) + 1);
        }
        ev_str_free(&t->ptx);
    }
    return status;
}

ev_status tensor_compare(device *d, device *vm, ev_lines *lines, json_t *all, size_t *next,
                         size_t step, ev_error *err) {
    tensor_kernel *t = malloc(sizeof *t);
    if (t == NULL)
        return ev_fail_memory(err, sizeof *t);
    ev_status status = compare_rest(d, vm, lines, t, all, next, step, err);
    free(t);
    return status;
}
