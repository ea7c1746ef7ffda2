/* libFuzzer target: any text either loads or is refused with a message; what loads runs or traps.
 */
#include "fitness/vm/vm.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A texture of two dimensions with a linear filter, or a surface; 0: out of memory. */
static uint64_t texture_of(vm_memory *memory, uint64_t address, bool surface) {
    ev_error err;
    uint64_t handle = 0;
    const vm_texture t = {.address = address,
                          .width = 16,
                          .height = 16,
                          .row_bytes = 64,
                          .channel = EV_F32,
                          .channels = 1,
                          .surface = surface,
                          .sampler = {.linear = true, .normalised = true, .modes = {0, 2, 1}}};
    return vm_texture_new(memory, &t, &handle, &err) == EV_OK ? handle : 0;
}

/* The first two of each four parameters point to one small buffer, the third is a texture of it and
 * the fourth a surface; most kernels soon trap. */
static void run(const vm_module *m, const vm_entry *entry) {
    vm_memory *memory = NULL;
    ev_error err;
    uint64_t address;
    if (entry->param_bytes > 1 << 16 || vm_memory_new(1 << 20, &memory, &err) != EV_OK)
        return;
    uint64_t *params = calloc(entry->param_bytes / 8 + 1, 8);
    if (params &&
        vm_memory_alloc(memory, 4096, VM_BUFFER_INOUT, "buffer", &address, &err) == EV_OK) {
        uint64_t values[4] = {address, address, texture_of(memory, address, false),
                              texture_of(memory, address, true)};
        for (uint32_t i = 0; i < entry->param_bytes / 8; i++)
            params[i] = values[i % 4];
        vm_launch launch = {.module = m,
                            .entry = entry,
                            .grid = {2, 1, 1},
                            .block = {40, 1, 1},
                            .params = params,
                            .checks = VM_CHECK_ALL,
                            .fuel = 20000};
        vm_result result;
        (void)!vm_run(memory, &launch, &result, &err);
    }
    free(params);
    vm_memory_free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    vm_module *m = NULL;
    ev_error err;
    if (vm_module_load((const char *)data, size, "fuzz.ptx", &m, &err) != EV_OK)
        return 0;
    for (size_t i = 0; i < vm_module_entry_count(m) && i < 4; i++)
        run(m, vm_module_entry(m, i));
    for (uint32_t pc = 0; pc < vm_module_insn_count(m); pc++) {
        vm_insn_info info;
        vm_module_info(m, pc, &info);
        free(vm_module_disassemble(m, pc));
    }
    vm_module_free(m);
    return 0;
}
