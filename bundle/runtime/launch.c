/* evoke/bundle.h: launching. Everything is checked before the driver is asked to launch. */
#include "bundle/runtime/runtime.h"

#include <stdio.h>
#include <string.h>

void runtime_set_geometry(const launch_geometry *from, evoke_geometry *to) {
    memcpy(to->grid, from->grid, sizeof to->grid);
    memcpy(to->block, from->block, sizeof to->block);
    to->shared_bytes = from->shared_bytes;
}

evoke_status evoke_variant_geometry(const evoke_variant *v, const evoke_shape *shape,
                                    evoke_geometry *out, evoke_error *error) {
    launch_geometry made;
    ev_status status = runtime_geometry(v, shape, &made, runtime_error(error));
    if (status == EV_OK)
        runtime_set_geometry(&made, out);
    return runtime_status(status);
}

static evoke_variant *own(const evoke_variant *v) {
    return runtime_own(v);
}

static ev_status launch(evoke_variant *v, const evoke_shape *shape, const evoke_buffer *buffers,
                        size_t count, CUstream stream, ev_error *err) {
    launch_geometry at;
    runtime_parameters parameters;
    runtime_loaded *l = NULL;
    const cu_driver *cu = NULL;
    EV_TRY(runtime_geometry(v, shape, &at, err));
    EV_TRY(runtime_pack(v, shape, buffers, count, 0, &parameters, err));
    EV_TRY(runtime_driver(&cu, err));
    EV_TRY(runtime_load(v, cu, &l, err));
    ev_status status = runtime_allow(v, cu, l, 0, &at, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s", v->kernel->name);
    EV_TRY(runtime_check_symbols(v, cu, l, err));
    CUresult result = cu->cuLaunchKernel(l->functions[0].function, at.grid[0], at.grid[1],
                                         at.grid[2], at.block[0], at.block[1], at.block[2],
                                         at.shared_bytes, stream, parameters.pointers, NULL);
    return runtime_check(cu, result, v->kernel->name, err);
}

evoke_status evoke_variant_launch_scratch(const evoke_variant *v, const evoke_shape *shape,
                                          const evoke_buffer *buffers, size_t buffer_count,
                                          const evoke_buffer *scratch, void *stream,
                                          evoke_error *error) {
    CUstream to = (CUstream)stream;
    ev_error *err = runtime_error(error);
    ev_status status = runtime_refuse_ranks(v->kernel, err);
    if (status != EV_OK)
        return runtime_status(status);
    if (launch_plan_is_plain(v->is->plan))
        return runtime_status(launch(own(v), shape, buffers, buffer_count, to, err));
    return runtime_status(
        runtime_launch_steps(own(v), shape, buffers, buffer_count, scratch, to, err));
}

evoke_status evoke_variant_launch(const evoke_variant *v, const evoke_shape *shape,
                                  const evoke_buffer *buffers, size_t buffer_count, void *stream,
                                  evoke_error *error) {
    return evoke_variant_launch_scratch(v, shape, buffers, buffer_count, NULL, stream, error);
}

static ev_status find_loaded(const evoke_variant *v, const cu_driver **cu, runtime_loaded **out,
                             ev_error *err) {
    EV_TRY(runtime_driver(cu, err));
    return runtime_load(own(v), *cu, out, err);
}

evoke_status evoke_variant_load(const evoke_variant *v, evoke_error *error) {
    const cu_driver *cu = NULL;
    runtime_loaded *l = NULL;
    return runtime_status(find_loaded(v, &cu, &l, runtime_error(error)));
}

evoke_status evoke_variant_symbol(const evoke_variant *v, const char *name, uint64_t *address,
                                  size_t *bytes, evoke_error *error) {
    const cu_driver *cu = NULL;
    runtime_loaded *l = NULL;
    CUdeviceptr at = 0;
    size_t length = 0;
    ev_status status = find_loaded(v, &cu, &l, runtime_error(error));
    if (status != EV_OK)
        return runtime_status(status);
    CUresult result = cu->cuModuleGetGlobal_v2(&at, &length, l->module, name);
    if (result != CUDA_ERROR_NOT_FOUND)
        status = runtime_check(cu, result, name, runtime_error(error));
    if (status == EV_OK) {
        *address = result == CUDA_SUCCESS ? at : 0;
        *bytes = result == CUDA_SUCCESS ? length : 0;
        runtime_note_symbol(own(v), l, name);
    }
    return runtime_status(status);
}

evoke_status evoke_bundle_forget(evoke_bundle *b, evoke_error *error) {
    const cu_driver *cu = NULL;
    CUcontext context = NULL;
    unsigned long long id = 0;
    ev_status status = runtime_driver(&cu, runtime_error(error));
    if (status == EV_OK)
        status = runtime_context(cu, &context, &id, runtime_error(error));
    if (status == EV_OK)
        runtime_unload(b, cu, id);
    return runtime_status(status);
}
