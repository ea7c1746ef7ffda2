/* Code: what the model knows of a kernel's code before any launch, made once a kernel. */
#include "fitness/model/model_state.h"

#include <stdlib.h>

ev_status model_code_new(const gpu *g, const vm_module *module, const vm_entry *entry,
                         model_code **out, ev_error *err) {
    model_code *code = calloc(1, sizeof *code);
    if (code == NULL)
        return ev_fail_memory(err, sizeof *code);
    model_schedule_options options = {.window = MODEL_WINDOW_MOST,
                                      .load_latency = (uint32_t)gpu_get(g, GPU_LAT_L2)};
    code->gpu = g;
    code->module = module;
    code->entry = entry;
    ev_status status = model_insns_make(module, &code->insns, err);
    if (status == EV_OK) {
        code->live_registers = model_live_registers_of(module, &code->insns, entry);
        status = model_rows_make(g, &code->insns, &code->rows, err);
    }
    if (status == EV_OK)
        status = model_schedule_make(&options, &code->insns, &code->rows, &code->schedule, err);
    if (status != EV_OK) {
        model_code_free(code);
        return status;
    }
    *out = code;
    return EV_OK;
}

void model_code_free(model_code *code) {
    if (code == NULL)
        return;
    model_rows_free(&code->rows);
    model_schedule_free(&code->schedule);
    model_insns_free(&code->insns);
    free(code);
}

uint32_t model_code_registers(const model_code *code) {
    return model_given_registers(code->live_registers, model_register_cap(code->entry));
}
