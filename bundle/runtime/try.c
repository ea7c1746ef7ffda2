/* evoke/bundle.h: buffers with contents for a variant, and the difference of two variants' outputs:
 * what a test at start-up needs that has no data of its own. */
#include "bundle/runtime/runtime.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- contents ---- */

/* A third of the numbers are zeros, as in sparse inputs. */
static double number_at(size_t index) {
    uint32_t mixed = (uint32_t)index * UINT32_C(2654435761);
    return index % 3 == 0 ? 0 : (double)(mixed % 1000) / 1000 - 0.5;
}

static ev_status find_type(const evoke_variant *v, const char *argument, const char *name,
                           ev_type *out, ev_error *err) {
    if (ev_type_find(name, out))
        return EV_OK;
    return ev_fail(err, EV_BAD, "%s, argument %s: there is no type '%s'", v->kernel->name, argument,
                   name);
}

static ev_status fill_default(const evoke_variant *v, const evoke_argument *a, void *data,
                              size_t bytes, ev_error *err) {
    ev_type type = EV_F32;
    EV_TRY(find_type(v, a->name, a->type, &type, err));
    for (size_t i = 0; i < bytes / a->element_bytes; i++)
        ev_type_set(type, data, i, ev_type_is_float(type) ? number_at(i) : (double)i);
    return EV_OK;
}

static size_t find_argument(const bundle_kernel *k, const char *name) {
    size_t i = 0;
    while (strcmp(k->arguments[i].name, name) != 0)
        i++;
    return i;
}

/* Contents of the library's choice; a table of addresses stays empty. */
static ev_status fill(const evoke_variant *v, const evoke_shape *shape, const evoke_argument *a,
                      void *data, size_t bytes, ev_error *err) {
    runtime_scope room;
    size_t index = find_argument(v->kernel, a->name);
    if (a->kind == EVOKE_PEERS)
        return EV_OK;
    if (v->kernel->arguments[index].before == NULL)
        return fill_default(v, a, data, bytes, err);
    EV_TRY(runtime_scope_of(v->kernel, v->is->plan, shape, SIZE_MAX, &room, err));
    return runtime_fill_before(v->kernel, index, &room.scope, data, bytes, err);
}

static ev_status make_buffer(const evoke_variant *v, const cu_driver *cu, const evoke_shape *shape,
                             const evoke_argument *a, evoke_contents contents, void *context,
                             evoke_buffer *buffer, ev_error *err) {
    void *data = calloc(1, buffer->bytes);
    CUdeviceptr address = 0;
    if (data == NULL)
        return ev_fail_memory(err, buffer->bytes);
    ev_status status = EV_OK;
    if (contents != NULL)
        contents(context, a, data, buffer->bytes);
    else
        status = fill(v, shape, a, data, buffer->bytes, err);
    if (status == EV_OK)
        status = runtime_check(cu, cu->cuMemAlloc_v2(&address, buffer->bytes), "cuMemAlloc", err);
    buffer->address = address;
    if (status == EV_OK)
        status = runtime_check(cu, cu->cuMemcpyHtoD_v2(address, data, buffer->bytes),
                               "cuMemcpyHtoD", err);
    free(data);
    return status;
}

static ev_status free_buffers(const cu_driver *cu, evoke_buffer *buffers, size_t count,
                              ev_error *err) {
    ev_status status = EV_OK;
    for (size_t i = 0; i < count; i++) {
        CUresult result =
            buffers[i].address != 0 ? cu->cuMemFree_v2(buffers[i].address) : CUDA_SUCCESS;
        buffers[i].address = 0;
        if (status == EV_OK)
            status = runtime_check(cu, result, "cuMemFree", err);
    }
    return status;
}

static ev_status allocate(const evoke_variant *v, const evoke_shape *shape, evoke_contents contents,
                          void *context, size_t room, evoke_buffer *out, size_t *out_count,
                          ev_error *err) {
    evoke_argument arguments[RUNTIME_ARGUMENTS];
    evoke_buffer buffers[RUNTIME_ARGUMENTS];
    const cu_driver *cu = NULL;
    size_t count = 0;
    EV_TRY(runtime_buffers(v->kernel, shape, room, arguments, buffers, &count, err));
    EV_TRY(runtime_driver(&cu, err));
    for (size_t i = 0; i < count; i++) {
        ev_status status =
            make_buffer(v, cu, shape, &arguments[i], contents, context, &buffers[i], err);
        if (status != EV_OK) {
            ev_error ignored;
            (void)(free_buffers(cu, buffers, i + 1, &ignored) == EV_OK);
            return ev_wrap(err, status, "%s, argument %s", v->kernel->name, arguments[i].name);
        }
    }
    memcpy(out, buffers, count * sizeof *out);
    *out_count = count;
    return EV_OK;
}

evoke_status evoke_variant_allocate(const evoke_variant *v, const evoke_shape *shape,
                                    evoke_contents contents, void *context, size_t room,
                                    evoke_buffer *buffers, size_t *count, evoke_error *error) {
    return runtime_status(
        allocate(v, shape, contents, context, room, buffers, count, runtime_error(error)));
}

evoke_status evoke_buffers_free(evoke_buffer *buffers, size_t count, evoke_error *error) {
    const cu_driver *cu = NULL;
    ev_status status = runtime_driver(&cu, runtime_error(error));
    if (status == EV_OK)
        status = free_buffers(cu, buffers, count, runtime_error(error));
    return runtime_status(status);
}

/* ---- differences ---- */

typedef struct sums {
    double wrong, all; /* squares of the differences, and of what is wanted */
    uint64_t elements;
} sums;

/* Two equal numbers, two equal infinities and two NaNs differ by nothing. */
static void add_elements(ev_type type, const void *got, const void *want, size_t count, sums *s) {
    for (size_t i = 0; i < count; i++) {
        double a = ev_type_get(type, got, i), b = ev_type_get(type, want, i);
        bool same = a == b || (isnan(a) && isnan(b));
        s->wrong += same ? 0 : isfinite(a) && isfinite(b) ? (a - b) * (a - b) : INFINITY;
        s->all += isfinite(b) ? b * b : 0;
    }
    s->elements += count;
}

static ev_status add_buffer(const evoke_variant *v, const cu_driver *cu, const bundle_argument *a,
                            const evoke_buffer *got, const evoke_buffer *want, sums *s,
                            ev_error *err) {
    ev_type type = EV_F32;
    EV_TRY(find_type(v, a->name, a->type, &type, err));
    if (got->bytes != want->bytes)
        return ev_fail(err, EV_BAD, "%s: the two buffers of '%s' have %zu and %zu bytes",
                       v->kernel->name, a->name, got->bytes, want->bytes);
    void *mine = malloc(got->bytes + 1), *other = malloc(want->bytes + 1);
    ev_status status = mine != NULL && other != NULL ? EV_OK : ev_fail_memory(err, got->bytes);
    if (status == EV_OK)
        status = runtime_check(cu, cu->cuMemcpyDtoH_v2(mine, got->address, got->bytes),
                               "cuMemcpyDtoH", err);
    if (status == EV_OK)
        status = runtime_check(cu, cu->cuMemcpyDtoH_v2(other, want->address, want->bytes),
                               "cuMemcpyDtoH", err);
    if (status == EV_OK)
        add_elements(type, mine, other, got->bytes / ev_type_bytes(type), s);
    free(mine);
    free(other);
    return status;
}

static ev_status compare(const evoke_variant *v, const evoke_buffer *got, const evoke_buffer *want,
                         size_t count, evoke_difference *out, ev_error *err) {
    const bundle_kernel *k = v->kernel;
    const cu_driver *cu = NULL;
    sums s = {0};
    size_t next = 0;
    if (count != bundle_buffer_count(k))
        return ev_fail(err, EV_BAD, "%s takes %zu buffers, and %zu are given", k->name,
                       bundle_buffer_count(k), count);
    EV_TRY(runtime_driver(&cu, err));
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        if (bundle_is_scalar(a))
            continue;
        if (strcmp(a->kind, "in") != 0 && !bundle_is_peers(a))
            EV_TRY(add_buffer(v, cu, a, &got[next], &want[next], &s, err));
        next++;
    }
    double norm = sqrt(s.all);
    *out = (evoke_difference){.relative = s.wrong > 0 ? sqrt(s.wrong) / norm : 0,
                              .norm = norm,
                              .tolerance = v->is->tolerance,
                              .elements = s.elements};
    return EV_OK;
}

evoke_status evoke_variant_compare(const evoke_variant *v, const evoke_buffer *got,
                                   const evoke_buffer *want, size_t count, evoke_difference *out,
                                   evoke_error *error) {
    return runtime_status(compare(v, got, want, count, out, runtime_error(error)));
}
