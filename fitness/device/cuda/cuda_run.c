/* Launches on the device cuda:N: what fits, one run under the watchdog, and what an error of the
 * driver says of the candidate. */
#include "fitness/device/cuda/cuda.h"

#include "base/proc.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define GRID_X_MOST 2147483647u
#define GRID_YZ_MOST 65535u
#define BLOCK_Z_MOST 64u

/* ---- what fits ---- */

static ev_status check_geometry(const device *d, const device_kernel *k, const device_launch *l,
                                ev_error *err) {
    uint64_t threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
    const uint32_t *grid = l->grid;
    if (threads == 0 || (uint64_t)grid[0] * grid[1] * grid[2] == 0)
        return ev_fail(err, EV_BAD, "the launch has no threads (grid %u,%u,%u block %u,%u,%u)",
                       grid[0], grid[1], grid[2], l->block[0], l->block[1], l->block[2]);
    if (threads > d->properties.max_threads_per_block || l->block[2] > BLOCK_Z_MOST)
        return ev_fail(err, EV_BAD, "a block of %u,%u,%u threads; %s takes at most %u (z: %u)",
                       l->block[0], l->block[1], l->block[2], d->properties.id,
                       d->properties.max_threads_per_block, BLOCK_Z_MOST);
    if (k->entry->max_threads > 0 && threads > k->entry->max_threads)
        return ev_fail(err, EV_BAD, "a block of %llu threads; the kernel's own bound is %u",
                       (unsigned long long)threads, k->entry->max_threads);
    if (threads > k->resources.max_threads)
        return ev_fail(err, EV_BAD,
                       "a block of %llu threads with %u registers each; %s takes %u of this kernel",
                       (unsigned long long)threads, k->resources.registers, d->properties.id,
                       k->resources.max_threads);
    if (grid[0] > GRID_X_MOST || grid[1] > GRID_YZ_MOST || grid[2] > GRID_YZ_MOST)
        return ev_fail(err, EV_BAD, "a grid of %u,%u,%u blocks; at most %u,%u,%u", grid[0], grid[1],
                       grid[2], GRID_X_MOST, GRID_YZ_MOST, GRID_YZ_MOST);
    return EV_OK;
}

ev_status cuda_fits(const device *d, const device_kernel *k, const device_launch *l,
                    ev_error *err) {
    EV_TRY(check_geometry(d, k, l, err));
    uint64_t shared = (uint64_t)k->resources.shared_bytes + l->dynamic_shared;
    if (shared > d->properties.max_shared_per_block)
        return ev_fail(err, EV_BAD, "a block needs %llu bytes of shared memory; %s has %u",
                       (unsigned long long)shared, d->properties.id,
                       d->properties.max_shared_per_block);
    return EV_OK;
}

/* ---- one launch ---- */

CUresult cuda_launch_function(const cuda_device *c, CUfunction function, const device_kernel *k,
                              const device_launch *l) {
    size_t bytes = k->entry->param_bytes;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, (void *)(uintptr_t)l->params,
                     CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    return c->cu.cuLaunchKernel(function, l->grid[0], l->grid[1], l->grid[2], l->block[0],
                                l->block[1], l->block[2], l->dynamic_shared, c->stream, NULL,
                                bytes > 0 ? extra : NULL);
}

CUresult cuda_launch(const cuda_device *c, const device_kernel *k, const device_launch *l) {
    return cuda_launch_function(c, ((const cuda_kernel *)k->own)->function, k, l);
}

/* Short naps at first, since most launches end at once. */
void cuda_nap(double waited) {
    struct timespec t = {.tv_nsec = waited < 1e-3 ? 5000 : 200000};
    (void)nanosleep(&t, NULL);
}

CUresult cuda_wait(cuda_device *c) {
    CUresult result = c->cu.cuEventRecord(c->done, c->stream);
    if (result != CUDA_SUCCESS)
        return result;
    double begin = ev_clock_now(), waited = 0;
    result = c->cu.cuEventQuery(c->done);
    while (result == CUDA_ERROR_NOT_READY && waited < c->watchdog) {
        cuda_nap(waited);
        waited = ev_clock_now() - begin;
        result = c->cu.cuEventQuery(c->done);
    }
    return result;
}

static vm_trap_kind trap_of(CUresult result) {
    switch (result) {
    case CUDA_ERROR_NOT_READY:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
        return VM_TRAP_FUEL;
    case CUDA_ERROR_MISALIGNED_ADDRESS:
        return VM_TRAP_MISALIGNED;
    case CUDA_ERROR_ASSERT:
        return VM_TRAP_ASSERTION;
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
        return VM_TRAP_STACK_OVERFLOW;
    case CUDA_ERROR_INVALID_PC:
        return VM_TRAP_BAD_CALL;
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_LAUNCH_FAILED:
        return VM_TRAP_ILLEGAL_INSTRUCTION;
    default:
        return VM_TRAP_OUT_OF_BOUNDS;
    }
}

ev_status cuda_judge(cuda_device *c, const device_kernel *k, CUresult result, device_outcome *out,
                     ev_error *err) {
    char text[200];
    *out = (device_outcome){.ok = result == CUDA_SUCCESS};
    if (out->ok)
        return EV_OK;
    bool hangs = result == CUDA_ERROR_NOT_READY;
    if (!hangs && !cuda_is_fault(result)) {
        cuda_give_up(c);
        return cuda_check(c, result, k->entry->name, err);
    }
    out->fault.kind = trap_of(result);
    (void)snprintf(out->fault.message, sizeof out->fault.message, "%s on %s: %s",
                   vm_trap_name(out->fault.kind), c->base.properties.id,
                   hangs ? "the watchdog's time is over, and the kernel runs on"
                         : cu_error_text(&c->cu, result, text, sizeof text));
    if (hangs) /* nothing short of ending the process stops that kernel */
        cuda_give_up(c);
    if (!c->dead)
        cuda_replace_contexts(c, &out->fault);
    return EV_OK;
}

bool cuda_is_refused(CUresult result) {
    return result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
}

ev_status cuda_fail_refused(const cuda_device *c, CUresult result, ev_error *err) {
    char text[200];
    return ev_fail(err, EV_BAD, "%s refuses the launch: %s", c->base.properties.id,
                   cu_error_text(&c->cu, result, text, sizeof text));
}

static ev_status run_one(cuda_device *c, const device_kernel *k, const device_launch *l,
                         device_outcome *out, ev_error *err) {
    EV_TRY(cuda_need_kernel(c, k, err));
    CUresult result = cuda_launch(c, k, l);
    if (cuda_is_refused(result))
        return cuda_fail_refused(c, result, err);
    if (result == CUDA_SUCCESS)
        result = cuda_wait(c);
    return cuda_judge(c, k, result, out, err);
}

/* The buffers are inspected once, so that of many launches none costs more than its own time. */
ev_status cuda_run_sequence(device *d, const device_sequence *what, device_outcome *out,
                            ev_error *err) {
    cuda_device *c = cuda_of(d);
    EV_TRY(cuda_enter(c, err));
    for (size_t i = 0; i < c->count; i++)
        c->buffers[i].is_mirrored = false;
    for (size_t i = 0; i < what->count; i++) {
        ev_status status = run_one(c, what->kernels[i], &what->launches[i], out, err);
        out->launch = i;
        if (status != EV_OK || !out->ok)
            return status;
    }
    EV_TRY(cuda_inspect(c, true, &out->fault, err));
    out->ok = out->fault.kind == VM_TRAP_NONE;
    if (!out->ok && what->count > 1)
        out->launch = DEVICE_ANY_LAUNCH;
    return EV_OK;
}

ev_status cuda_run(device *d, const device_kernel *k, const device_launch *l, device_outcome *out,
                   ev_error *err) {
    const device_sequence one = {.kernels = &k, .launches = l, .count = 1};
    return cuda_run_sequence(d, &one, out, err);
}
