/* Stores: takes the sectors of stores and atomics from what an observer is told. */
#include "fitness/device/device_stores.h"

#include <stdlib.h>
#include <string.h>

static bool make_room(device_stores *s, size_t more) {
    if (s->count + more <= s->room)
        return true;
    size_t room = s->room == 0 ? 4096 : s->room;
    while (room < s->count + more)
        room *= 2;
    uint64_t *sectors = realloc(s->sectors, room * sizeof *sectors);
    s->failed = s->failed || sectors == NULL;
    if (sectors == NULL)
        return false;
    s->sectors = sectors;
    s->room = room;
    return true;
}

static void hear_batch(void *context, const vm_batch *batch) {
    device_stores *s = context;
    for (size_t i = 0; i < batch->count; i++) {
        const vm_event *e = &batch->events[i];
        uint32_t last = e->pc + (e->count > 0 ? e->count - 1 : 0);
        if (e->sectors == 0 || !s->is_store[last] || !make_room(s, e->sectors))
            continue;
        memcpy(&s->sectors[s->count], &batch->sectors[e->first_sector],
               e->sectors * sizeof *s->sectors);
        s->count += e->sectors;
    }
}

static void hear_block(void *context, uint32_t block, uint32_t warps) {
    (void)context;
    (void)block;
    (void)warps;
}

static void hear_end(void *context, uint32_t block) {
    (void)context;
    (void)block;
}

ev_status device_stores_begin(device_stores *s, const vm_module *module, ev_error *err) {
    size_t count = vm_module_insn_count(module);
    *s = (device_stores){.is_store = calloc(count + 1, sizeof *s->is_store)};
    if (s->is_store == NULL)
        return ev_fail_memory(err, count * sizeof *s->is_store);
    for (uint32_t pc = 0; pc < count; pc++) {
        vm_insn_info info;
        vm_module_info(module, pc, &info);
        bool is_global = info.space == VM_SPACE_GLOBAL || info.space == VM_SPACE_GENERIC;
        s->is_store[pc] = is_global && (info.is_store || info.is_atomic);
    }
    s->observer = (vm_observer){
        .context = s, .block_begin = hear_block, .batch = hear_batch, .block_end = hear_end};
    return EV_OK;
}

void device_stores_end(device_stores *s) {
    free(s->is_store);
    free(s->sectors);
    *s = (device_stores){0};
}
