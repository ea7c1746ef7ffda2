/* Devices: finds the one that an id names, and calls it through its table. */
#include "fitness/device/device_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ev_status fail_unknown(const char *id, ev_error *err) {
    char **ids = NULL;
    size_t count = 0;
    EV_TRY(device_list(&ids, &count, err));
    char known[600] = "";
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof known; i++)
        used +=
            (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", ids[i]);
    ev_status status =
        ev_fail(err, EV_BAD, "no device '%s'; there are %s, or vm:FILE.json", id, known);
    device_list_free(ids, count);
    return status;
}

device_launch device_launch_of(const launch_geometry *at) {
    device_launch made = {.dynamic_shared = at->shared_bytes};
    memcpy(made.grid, at->grid, sizeof made.grid);
    memcpy(made.block, at->block, sizeof made.block);
    return made;
}

ev_status device_open(const char *id, device **out, ev_error *err) {
    if (strncmp(id, "vm:", 3) == 0)
        return device_vm_open(id + 3, out, err);
    if (strncmp(id, "cuda:", 5) == 0)
        return device_cuda_open(id + 5, out, err);
    return fail_unknown(id, err);
}

ev_status device_open_ranks(const char *id, uint32_t count, device **out, ev_error *err) {
    assert(count > 0);
    if (strncmp(id, "vm:", 3) == 0)
        return device_vm_open_ranks(id + 3, count, out, err);
    if (strncmp(id, "cuda:", 5) == 0)
        return device_cuda_open_ranks(id + 5, count, out, err);
    return fail_unknown(id, err);
}

void device_close(device *d) {
    if (d == NULL)
        return;
    vm_words_free(d->words);
    d->ops->close(d);
}

const device_properties *device_properties_of(const device *d) {
    return &d->properties;
}

bool device_number(const device *d, gpu_key key, double *out) {
    return d->ops->number != NULL && d->ops->number(d, key, out);
}

const gpu *device_description(const device *d) {
    return d->ops->description != NULL ? d->ops->description(d) : NULL;
}

uint64_t device_rebuilds(const device *d) {
    return d->ops->rebuilds != NULL ? d->ops->rebuilds(d) : 0;
}

bool device_is_spent(const device *d) {
    return d->ops->is_spent != NULL && d->ops->is_spent(d);
}

bool device_may_be_spent(const char *id) {
    return id != NULL && strncmp(id, "cuda:", 5) == 0;
}

/* The GPUs' ids, then the models'; false: out of memory. */
static bool list_ids(char **ids, size_t gpus, char *const *models, size_t number) {
    for (size_t i = 0; i < gpus; i++) {
        if (asprintf(&ids[i], "cuda:%zu", i) < 0) {
            ids[i] = NULL;
            return false;
        }
    }
    for (size_t i = 0; i < number; i++) {
        if (asprintf(&ids[gpus + i], "vm:%s", models[i]) < 0) {
            ids[gpus + i] = NULL;
            return false;
        }
    }
    return true;
}

ev_status device_list(char ***ids, size_t *count, ev_error *err) {
    char **models = NULL;
    size_t number = 0, gpus = device_cuda_count();
    EV_TRY(gpu_list(&models, &number, err));
    char **made = calloc(gpus + number + 1, sizeof *made);
    bool ok = made != NULL && list_ids(made, gpus, models, number);
    gpu_list_free(models, number);
    if (!ok) {
        if (made != NULL)
            device_list_free(made, gpus + number);
        return ev_fail_memory(err, (gpus + number) * sizeof *made);
    }
    *ids = made;
    *count = gpus + number;
    return EV_OK;
}

void device_list_free(char **ids, size_t count) {
    gpu_list_free(ids, count);
}

ev_status device_alloc(device *d, uint64_t bytes, vm_buffer_kind kind, const char *name,
                       device_buffer *out, ev_error *err) {
    return d->ops->alloc(d, bytes, kind, name, out, err);
}

ev_status device_alloc_odd(device *d, uint64_t bytes, uint32_t align, vm_buffer_kind kind,
                           const char *name, device_buffer *out, ev_error *err) {
    if (d->ops->alloc_odd == NULL)
        return d->ops->alloc(d, bytes, kind, name, out, err);
    return d->ops->alloc_odd(d, bytes, align, kind, name, out, err);
}

void device_clear(device *d) {
    d->ops->clear(d);
}

ev_status device_texture(device *d, device_buffer buffer, const vm_texture *texture,
                         uint64_t *handle, ev_error *err) {
    if (!d->ops->texture)
        return ev_fail(err, EV_BAD, "a texture or surface: give a device such as vm:h200");
    vm_texture made = *texture;
    made.address = device_address(d, buffer);
    return d->ops->texture(d, &made, handle, err);
}

uint64_t device_address(const device *d, device_buffer buffer) {
    return d->ops->address(d, buffer);
}

ev_status device_write(device *d, device_buffer buffer, uint64_t offset, const void *data,
                       uint64_t bytes, ev_error *err) {
    return d->ops->write(d, buffer, offset, data, bytes, err);
}

ev_status device_read(device *d, device_buffer buffer, uint64_t offset, void *data, uint64_t bytes,
                      ev_error *err) {
    return d->ops->read(d, buffer, offset, data, bytes, err);
}

void *device_host(device *d, device_buffer buffer) {
    return d->ops->host(d, buffer);
}

ev_status device_reset(device *d, uint8_t poison, ev_error *err) {
    return d->ops->reset(d, poison, err);
}

ev_status device_written(device *d, device_buffer buffer, size_t element_bytes, uint64_t first,
                         uint64_t count, uint8_t *written, uint64_t *how_many, ev_error *err) {
    return d->ops->written(d, buffer, element_bytes, first, count, written, how_many, err);
}

/* ---- kernels ---- */

static ev_status find_entry(device_kernel *kernel, const char *name, ev_error *err) {
    kernel->entry = vm_module_find(kernel->module, name);
    if (kernel->entry != NULL)
        return EV_OK;
    char known[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < vm_module_entry_count(kernel->module) && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "",
                                 vm_module_entry(kernel->module, i)->name);
    return ev_fail(err, EV_BAD, "no entry '%s' in the PTX; it has: %s",
                   name != NULL ? name : "(the only one)", used > 0 ? known : "none");
}

ev_status device_load(device *d, const char *ptx, size_t bytes, const char *entry,
                      device_kernel **out, ev_error *err) {
    device_kernel *kernel = calloc(1, sizeof *kernel);
    if (kernel == NULL)
        return ev_fail_memory(err, sizeof *kernel);
    kernel->owner = d;
    ev_status status = d->words == NULL ? vm_words_new(&d->words, err) : EV_OK;
    if (status == EV_OK)
        status =
            vm_module_load_with(d->words, VM_PLACE_ODD, ptx, bytes, "ptx", &kernel->module, err);
    if (status == EV_OK)
        status = find_entry(kernel, entry, err);
    if (status == EV_OK)
        status = d->ops->load(d, kernel, err);
    if (status != EV_OK) {
        vm_module_free(kernel->module);
        vm_module_free(kernel->odd);
        free(kernel);
        return status;
    }
    *out = kernel;
    return EV_OK;
}

/* Launches of one kernel share it. */
static ev_status load_launches(device *d, const char *ptx, size_t bytes, const launch_plan *plan,
                               device_kernel *first, ev_error *err) {
    first->launches = calloc(plan->launch_count, sizeof *first->launches);
    if (first->launches == NULL)
        return ev_fail_memory(err, plan->launch_count * sizeof *first->launches);
    first->launches[0] = first;
    for (size_t i = 1; i < plan->launch_count; i++) {
        device_kernel **to = &first->launches[i];
        const char *entry = plan->launches[i].entry;
        for (size_t k = 0; k < i && *to == NULL; k++)
            *to = strcmp(plan->launches[k].entry, entry) == 0 ? first->launches[k] : NULL;
        if (*to == NULL)
            EV_TRY(device_load(d, ptx, bytes, entry, to, err));
        first->launch_count = i + 1;
    }
    return EV_OK;
}

ev_status device_load_plan(device *d, const char *ptx, size_t bytes, const launch_plan *plan,
                           device_kernel **out, ev_error *err) {
    device_kernel *first = NULL;
    EV_TRY(device_load(d, ptx, bytes, plan->launches[0].entry, &first, err));
    ev_status status =
        plan->launch_count > 1 ? load_launches(d, ptx, bytes, plan, first, err) : EV_OK;
    if (status != EV_OK) {
        device_unload(first);
        return status;
    }
    *out = first;
    return EV_OK;
}

device_kernel *device_kernel_of(device_kernel *kernel, size_t launch) {
    if (kernel->launches == NULL)
        return kernel;
    assert(launch < kernel->launch_count);
    return kernel->launches[launch];
}

/* Whether launch `i` is the first of its kernel, and that kernel is not the plan's first. */
static bool is_own(const device_kernel *kernel, size_t i) {
    for (size_t k = 0; k < i; k++) {
        if (kernel->launches[k] == kernel->launches[i])
            return false;
    }
    return i > 0;
}

void device_unload(device_kernel *kernel) {
    if (kernel == NULL)
        return;
    for (size_t i = kernel->launch_count; i-- > 1;) {
        if (is_own(kernel, i))
            device_unload(kernel->launches[i]);
    }
    kernel->owner->ops->unload(kernel);
    vm_module_free(kernel->module);
    vm_module_free(kernel->odd);
    free(kernel->launches);
    free(kernel);
}

static ev_status fill_one(device *d, device_kernel *kernel, const char *name, const void *data,
                          uint64_t bytes, ev_error *err) {
    vm_variable v;
    if (!vm_module_variable(kernel->module, name, &v))
        return EV_OK;
    if (bytes > v.bytes)
        return ev_fail(err, EV_BAD,
                       "the variable '%s' has %llu bytes, and the host fills %llu; give a smaller "
                       "\"count\", or a larger array in the source",
                       name, (unsigned long long)v.bytes, (unsigned long long)bytes);
    if (bytes == v.bytes)
        return d->ops->fill(d, kernel, name, &v, data, err);
    char *whole = calloc(1, v.bytes);
    if (whole == NULL)
        return ev_fail_memory(err, v.bytes);
    memcpy(whole, data, bytes);
    ev_status status = d->ops->fill(d, kernel, name, &v, whole, err);
    free(whole);
    return status;
}

ev_status device_fill(device *d, device_kernel *kernel, const char *name, const void *data,
                      uint64_t bytes, ev_error *err) {
    EV_TRY(fill_one(d, kernel, name, data, bytes, err));
    for (size_t i = 1; i < kernel->launch_count; i++) {
        if (is_own(kernel, i))
            EV_TRY(fill_one(d, kernel->launches[i], name, data, bytes, err));
    }
    return EV_OK;
}

static uint32_t larger(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

device_resources device_kernel_resources(const device_kernel *kernel) {
    device_resources most = kernel->resources;
    for (size_t i = 1; i < kernel->launch_count; i++) {
        const device_resources *r = &kernel->launches[i]->resources;
        most.registers = larger(most.registers, r->registers);
        most.shared_bytes = larger(most.shared_bytes, r->shared_bytes);
        most.local_bytes = larger(most.local_bytes, r->local_bytes);
        most.spill_bytes = larger(most.spill_bytes, r->spill_bytes);
        most.max_threads = larger(most.max_threads, r->max_threads);
    }
    return most;
}

const vm_entry *device_kernel_entry(const device_kernel *kernel) {
    return kernel->entry;
}

const vm_module *device_kernel_module(const device_kernel *kernel) {
    return kernel->module;
}

bool device_kernel_may_wait(const device_kernel *kernel) {
    return kernel->may_wait;
}

static bool is_strong_load(const vm_insn_info *info) {
    return info->is_load &&
           (strstr(info->name, ".volatile") != NULL || strstr(info->name, ".relaxed") != NULL ||
            strstr(info->name, ".acquire") != NULL);
}

/* Whether some instruction of the module reads what another one defines. */
static bool is_read(const vm_module *m, const vm_insn_info *by) {
    for (uint32_t pc = 0; pc < vm_module_insn_count(m); pc++) {
        vm_insn_info info;
        vm_module_info(m, pc, &info);
        for (unsigned u = 0; u < info.use_count; u++) {
            for (unsigned d = 0; d < by->def_count; d++) {
                if (info.uses[u] == by->defs[d])
                    return true;
            }
        }
    }
    return false;
}

bool device_code_waits(const vm_module *m, uint32_t first_pc, uint32_t end_pc) {
    for (uint32_t pc = first_pc; pc < end_pc; pc++) {
        vm_insn_info info;
        vm_module_info(m, pc, &info);
        bool is_far = info.space == VM_SPACE_GLOBAL || info.space == VM_SPACE_GENERIC;
        bool may_learn = info.def_count > 0 && (info.is_atomic || is_strong_load(&info));
        if (is_far && may_learn && is_read(m, &info))
            return true;
    }
    return false;
}

/* Whether an instruction may run in the kernel. Functions stand in the code of no kernel, and any
 * kernel may call them. */
static bool may_run(const device_kernel *kernel, uint32_t pc) {
    const vm_module *m = kernel->module;
    const vm_entry *owner = NULL;
    for (size_t i = 0; i < vm_module_entry_count(m); i++) {
        const vm_entry *e = vm_module_entry(m, i);
        owner = pc >= e->first_pc && pc < e->end_pc ? e : owner;
    }
    return owner == NULL || strcmp(owner->name, kernel->entry->name) == 0;
}

bool device_kernel_waits(const device_kernel *kernel) {
    const vm_module *m = kernel->module;
    bool waits = false;
    for (uint32_t pc = 0; pc < vm_module_insn_count(m) && !waits; pc++)
        waits = may_run(kernel, pc) && device_code_waits(m, pc, pc + 1);
    return waits;
}

static bool is_atomic(const vm_insn_info *info) {
    return info->is_atomic;
}

static bool is_far_atomic(const vm_insn_info *info) {
    return info->is_atomic && (info->space == VM_SPACE_GLOBAL || info->space == VM_SPACE_GENERIC);
}

/* Real numbers are also added by loops around a compare-and-swap of their bits. */
static bool adds_real(const vm_insn_info *info) {
    bool is_real = strstr(info->name, ".f16") != NULL || strstr(info->name, ".bf16") != NULL ||
                   strstr(info->name, ".f32") != NULL || strstr(info->name, ".f64") != NULL;
    bool adds = is_real && strstr(info->name, ".add") != NULL;
    return info->is_atomic && (adds || strstr(info->name, ".cas") != NULL);
}

/* Whether an instruction that may run in the kernel is of a kind. */
static bool has_insn(const device_kernel *kernel, bool (*is_of_kind)(const vm_insn_info *)) {
    const vm_module *m = kernel->module;
    bool has = false;
    for (uint32_t pc = 0; pc < vm_module_insn_count(m) && !has; pc++) {
        vm_insn_info info;
        vm_module_info(m, pc, &info);
        has = may_run(kernel, pc) && is_of_kind(&info);
    }
    return has;
}

bool device_kernel_has_far_atomics(const device_kernel *kernel) {
    return has_insn(kernel, is_far_atomic);
}

bool device_kernel_has_atomics(const device_kernel *kernel) {
    return has_insn(kernel, is_atomic);
}

bool device_kernel_adds_reals(const device_kernel *kernel) {
    return has_insn(kernel, adds_real);
}

ev_status device_check(const device *d, const device_kernel *kernel, const device_launch *launch,
                       ev_error *err) {
    return d->ops->check(d, kernel, launch, err);
}

ev_status device_run(device *d, const device_kernel *kernel, const device_launch *launch,
                     device_outcome *out, ev_error *err) {
    EV_TRY(device_check(d, kernel, launch, err));
    return d->ops->run(d, kernel, launch, out, err);
}

static ev_status check_ranks(device *const *devices, const device_kernel *const *kernels,
                             const device_launch *launches, uint32_t count, ev_error *err) {
    assert(count > 0);
    for (uint32_t i = 0; i < count; i++) {
        const device *d = devices[i];
        if (d->ops->run_ranks == NULL || d->ops != devices[0]->ops)
            return ev_fail(err, EV_BAD,
                           "rank %u on %s: ranks run side by side on devices of one "
                           "device_open_ranks",
                           i, d->properties.id);
        ev_status status = device_check(d, kernels[i], &launches[i], err);
        if (status != EV_OK)
            return ev_wrap(err, status, "rank %u", i);
    }
    return EV_OK;
}

ev_status device_run_ranks(device *const *devices, const device_kernel *const *kernels,
                           const device_launch *launches, uint32_t count, device_outcome *out,
                           ev_error *err) {
    EV_TRY(check_ranks(devices, kernels, launches, count, err));
    return devices[0]->ops->run_ranks(devices, kernels, launches, count, out, err);
}

ev_status device_time_ranks(device *const *devices, const device_kernel *const *kernels,
                            const device_launch *launches, uint32_t count, model_reach reach,
                            device_outcome *out, device_timing *timings, ev_error *err) {
    EV_TRY(check_ranks(devices, kernels, launches, count, err));
    if (devices[0]->ops->time_ranks == NULL)
        return ev_fail(err, EV_BAD, "%s: the times of ranks are modelled; take vm:MODEL",
                       devices[0]->properties.id);
    return devices[0]->ops->time_ranks(devices, kernels, launches, count, reach, out, timings, err);
}

ev_status device_time(device *d, const device_kernel *kernel, const device_launch *launch,
                      device_outcome *out, device_timing *timing, ev_error *err) {
    EV_TRY(device_check(d, kernel, launch, err));
    return d->ops->time(d, kernel, launch, out, timing, err);
}

/* `at`: the launch that does not fit. */
static ev_status check_sequence(const device *d, const device_sequence *s, size_t *at,
                                ev_error *err) {
    assert(s->count > 0);
    for (*at = 0; *at < s->count; (*at)++)
        EV_TRY(device_check(d, s->kernels[*at], &s->launches[*at], err));
    return EV_OK;
}

ev_status device_time_sequence(device *d, const device_sequence *what, device_rival *rival,
                               device_outcome *out, device_timing *timing, ev_error *err) {
    size_t at = 0;
    *out = (device_outcome){0};
    EV_TRY(check_sequence(d, what, &out->launch, err));
    out->launch = DEVICE_ANY_LAUNCH;
    if (rival != NULL) {
        memset(&rival->timing, 0, sizeof rival->timing);
        EV_TRY(check_sequence(d, &rival->what, &at, err));
    }
    if (d->ops->time_sequence != NULL)
        return d->ops->time_sequence(d, what, rival, out, timing, err);
    if (what->count > 1)
        return ev_fail(err, EV_BAD, "%s times each of several launches by itself; use device_time",
                       d->properties.id);
    return d->ops->time(d, what->kernels[0], what->launches, out, timing, err);
}

const uint64_t *device_stored(const device *d, size_t *count) {
    return d->ops->stored(d, count);
}
