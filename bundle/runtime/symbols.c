/* evoke/bundle.h: the variables of a kernel that the host fills before launches (__constant__ and
 * __device__ variables of the source). A launch with one that nobody filled would compute with
 * zeros, so such a launch is refused. */
#include "bundle/runtime/runtime.h"

#include <string.h>

static ev_status find_symbol(const bundle_kernel *k, const char *name, size_t *out, ev_error *err) {
    for (size_t i = 0; i < k->symbol_count; i++) {
        if (strcmp(k->symbols[i].name, name) == 0) {
            *out = i;
            return EV_OK;
        }
    }
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < k->symbol_count; i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", k->symbols[i].name);
    ev_status status = ev_fail(err, EV_BAD, "%s has no variable '%s' to fill; it has %s", k->name,
                               name, k->symbol_count > 0 ? ev_str_text(&known) : "none");
    ev_str_free(&known);
    return status;
}

void runtime_note_symbol(evoke_variant *v, runtime_loaded *l, const char *name) {
    (void)pthread_mutex_lock(v->lock);
    for (size_t i = 0; i < v->kernel->symbol_count; i++) {
        if (strcmp(v->kernel->symbols[i].name, name) == 0)
            l->filled |= UINT64_C(1) << i;
    }
    (void)pthread_mutex_unlock(v->lock);
}

/* *bytes 0: the variant has no such variable, because nothing in it reads one. */
static ev_status place_of(const cu_driver *cu, const runtime_loaded *l, const char *name,
                          CUdeviceptr *at, size_t *bytes, ev_error *err) {
    *at = 0;
    *bytes = 0;
    CUresult result = cu->cuModuleGetGlobal_v2(at, bytes, l->module, name);
    return result == CUDA_ERROR_NOT_FOUND ? EV_OK : runtime_check(cu, result, name, err);
}

ev_status runtime_check_symbols(evoke_variant *v, const cu_driver *cu, runtime_loaded *l,
                                ev_error *err) {
    if (v->kernel->symbol_count == 0)
        return EV_OK;
    (void)pthread_mutex_lock(v->lock);
    uint64_t filled = l->filled;
    (void)pthread_mutex_unlock(v->lock);
    for (size_t i = 0; i < v->kernel->symbol_count; i++) {
        const bundle_symbol *s = &v->kernel->symbols[i];
        CUdeviceptr at = 0;
        size_t bytes = 0;
        if ((filled >> i & 1) != 0)
            continue;
        EV_TRY(place_of(cu, l, s->name, &at, &bytes, err));
        if (bytes > 0)
            return ev_fail(err, EV_BAD,
                           "%s: the variable '%s' (%s, \"%s\" elements) of variant %.12s was not "
                           "filled in this context; call evoke_variant_fill before the launch",
                           v->kernel->name, s->name, s->type, s->count, v->is->sha256.hex);
        runtime_note_symbol(v, l, s->name);
    }
    return EV_OK;
}

static ev_status check_bytes(const evoke_variant *v, const bundle_symbol *s,
                             const evoke_shape *shape, size_t given, ev_error *err) {
    runtime_scope room;
    int64_t elements = 0;
    ev_type type = EV_F32;
    if (!ev_type_find(s->type, &type))
        return ev_fail(err, EV_BAD, "%s, variable %s: there is no type '%s'", v->kernel->name,
                       s->name, s->type);
    EV_TRY(runtime_scope_of(v->kernel, v->is->plan, shape, SIZE_MAX, &room, err));
    ev_status status = expr_eval_whole(s->count, &room.scope, 1, INT64_C(1) << 40, &elements, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s, elements of %s", v->kernel->name, s->name);
    uint64_t need = (uint64_t)elements * ev_type_bytes(type);
    if (given == need)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "%s: %zu bytes are given for the variable '%s', and at this shape it has %llu "
                   "(%lld %s, by \"%s\")",
                   v->kernel->name, given, s->name, (unsigned long long)need, (long long)elements,
                   s->type, s->count);
}

static ev_status fill(evoke_variant *v, const char *name, const evoke_shape *shape,
                      const void *data, size_t given, ev_error *err) {
    const cu_driver *cu = NULL;
    runtime_loaded *l = NULL;
    CUdeviceptr at = 0;
    size_t number = 0, bytes = 0;
    EV_TRY(find_symbol(v->kernel, name, &number, err));
    EV_TRY(check_bytes(v, &v->kernel->symbols[number], shape, given, err));
    EV_TRY(runtime_driver(&cu, err));
    EV_TRY(runtime_load(v, cu, &l, err));
    EV_TRY(place_of(cu, l, name, &at, &bytes, err));
    if (bytes > 0 && bytes < given)
        return ev_fail(err, EV_BAD,
                       "%s: the variable '%s' of variant %.12s has %zu bytes, and %zu are given; "
                       "the shape is larger than the source allows",
                       v->kernel->name, name, v->is->sha256.hex, bytes, given);
    if (bytes > 0)
        EV_TRY(runtime_check(cu, cu->cuMemcpyHtoD_v2(at, data, given), "cuMemcpyHtoD", err));
    runtime_note_symbol(v, l, name);
    return EV_OK;
}

evoke_status evoke_variant_fill(const evoke_variant *v, const char *name, const evoke_shape *shape,
                                const void *data, size_t bytes, evoke_error *error) {
    /* The variants are the bundle's own; the public pointer to one is const for the caller. */
    evoke_variant *own = &v->owner->variants[v->is->number];
    return runtime_status(fill(own, name, shape, data, bytes, runtime_error(error)));
}
