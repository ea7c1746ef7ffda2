/* evoke/bundle.h: opening, closing, and what a bundle's kernels take. */
#include "bundle/runtime/runtime.h"

#include "bundle/sign.h"

#include <stdlib.h>
#include <string.h>

#define MOST_DIMENSIONS 64
#define MOST_MACROS 64

_Static_assert(sizeof(evoke_error) == sizeof(ev_error) &&
                   offsetof(evoke_error, text) == offsetof(ev_error, text),
               "the public error is the inner one");
_Static_assert((unsigned)EVOKE_BAD == (unsigned)EV_BAD &&
                   (unsigned)EVOKE_INFRA == (unsigned)EV_INFRA,
               "the public status is the inner one");
_Static_assert(RUNTIME_NAMES >= RUNTIME_ARGUMENTS + MOST_DIMENSIONS + MOST_MACROS,
               "a scope holds every name");

#define TEXT_OF(number) #number
#define VERSION_OF(major, minor) TEXT_OF(major) "." TEXT_OF(minor)

const char *evoke_bundle_version(void) {
    return VERSION_OF(EVOKE_BUNDLE_MAJOR, EVOKE_BUNDLE_MINOR);
}

/* ---- opening ---- */

/* Numbers that a launch must hold on its stack. */
static ev_status check_sizes(const bundle_kernel *k, const bundle_variant *v, ev_error *err) {
    if (k->argument_count <= RUNTIME_ARGUMENTS && v->plan->range_count <= MOST_DIMENSIONS &&
        v->macro_count <= MOST_MACROS && k->symbol_count <= RUNTIME_SYMBOLS)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "%s: a kernel has at most %d arguments, %d numbers of a shape, %d macros and %d "
                   "variables to fill",
                   k->name, RUNTIME_ARGUMENTS, MOST_DIMENSIONS, MOST_MACROS, RUNTIME_SYMBOLS);
}

static ev_status add_variants(evoke_bundle *b, const bundle_kernel *k, const bundle_variant *list,
                              size_t count, ev_error *err) {
    for (size_t i = 0; i < count; i++) {
        const bundle_variant *v = &list[i];
        EV_TRY(check_sizes(k, v, err));
        b->variants[v->number] = (evoke_variant){
            .owner = b, .kernel = k, .is = v, .lock = &b->locks[v->number % RUNTIME_LOCKS]};
    }
    return EV_OK;
}

static ev_status add_all(evoke_bundle *b, ev_error *err) {
    b->count = bundle_variant_count(b->inside);
    b->variants = calloc(b->count + 1, sizeof *b->variants);
    if (b->variants == NULL)
        return ev_fail_memory(err, b->count * sizeof *b->variants);
    for (size_t i = 0; i < bundle_kernel_count(b->inside); i++) {
        const bundle_kernel *k = bundle_kernel_at(b->inside, i);
        EV_TRY(add_variants(b, k, k->baselines, k->baseline_count, err));
        EV_TRY(add_variants(b, k, k->variants, k->variant_count, err));
        EV_TRY(add_variants(b, k, k->starts, k->start_count, err));
    }
    return EV_OK;
}

static void free_all(evoke_bundle *b) {
    for (size_t i = 0; i < RUNTIME_LOCKS; i++)
        (void)pthread_mutex_destroy(&b->locks[i]);
    bundle_close(b->inside);
    free(b->variants);
    free(b);
}

/* Takes the inner bundle over, on a failure, too. */
static ev_status finish(bundle *inside, evoke_bundle **out, ev_error *err) {
    evoke_bundle *b = calloc(1, sizeof *b);
    if (b == NULL) {
        bundle_close(inside);
        return ev_fail_memory(err, sizeof *b);
    }
    b->inside = inside;
    for (size_t i = 0; i < RUNTIME_LOCKS; i++)
        (void)pthread_mutex_init(&b->locks[i], NULL);
    ev_status status = add_all(b, err);
    if (status == EV_OK)
        *out = b;
    else
        free_all(b);
    return status;
}

/* From the path, or where there is none, from memory. */
static ev_status open_from(const char *path, const void *data, size_t bytes,
                           const bundle_trust *trust, evoke_bundle **out, ev_error *err) {
    bundle *inside = NULL;
    if (path != NULL)
        EV_TRY(bundle_open_trusted(path, true, trust, &inside, err));
    else
        EV_TRY(bundle_open_memory_trusted(data, bytes, trust, &inside, err));
    return finish(inside, out, err);
}

evoke_status evoke_bundle_open(const char *path, evoke_bundle **out, evoke_error *error) {
    return runtime_status(open_from(path, NULL, 0, NULL, out, runtime_error(error)));
}

evoke_status evoke_bundle_open_memory(const void *data, size_t bytes, evoke_bundle **out,
                                      evoke_error *error) {
    return runtime_status(open_from(NULL, data, bytes, NULL, out, runtime_error(error)));
}

#define MOST_KEYS 64

/* Keys that were given, as the reader takes them. */
typedef struct key_room {
    char hex[MOST_KEYS][SIGN_PUBLIC_HEX];
    const char *keys[MOST_KEYS];
} key_room;

static ev_status open_signed(const char *path, const void *data, size_t bytes,
                             const char *const *keys, size_t count, evoke_bundle **out,
                             ev_error *err) {
    key_room room;
    if (count == 0 || count > MOST_KEYS)
        return ev_fail(err, EV_BAD, "give from 1 to %d keys that are trusted", MOST_KEYS);
    for (size_t i = 0; i < count; i++) {
        EV_TRY(sign_public(keys[i], room.hex[i], err));
        room.keys[i] = room.hex[i];
    }
    const bundle_trust trust = {room.keys, count};
    return open_from(path, data, bytes, &trust, out, err);
}

evoke_status evoke_bundle_open_trusted(const char *path, const char *const *keys, size_t count,
                                       evoke_bundle **out, evoke_error *error) {
    return runtime_status(open_signed(path, NULL, 0, keys, count, out, runtime_error(error)));
}

evoke_status evoke_bundle_open_memory_trusted(const void *data, size_t bytes,
                                              const char *const *keys, size_t count,
                                              evoke_bundle **out, evoke_error *error) {
    return runtime_status(open_signed(NULL, data, bytes, keys, count, out, runtime_error(error)));
}

const char *evoke_bundle_signer(const evoke_bundle *b) {
    return bundle_signer(b->inside);
}

evoke_status evoke_bundle_verify(const evoke_bundle *b, evoke_error *error) {
    return runtime_status(bundle_verify(b->inside, runtime_error(error)));
}

static bool has_loaded(const evoke_bundle *b) {
    bool has = false;
    for (size_t i = 0; i < b->count; i++)
        has = has || b->variants[i].loaded != NULL;
    return has;
}

void evoke_bundle_close(evoke_bundle *b) {
    const cu_driver *cu = NULL;
    if (b == NULL)
        return;
    if (has_loaded(b) && runtime_driver(&cu, NULL) == EV_OK)
        runtime_unload(b, cu, 0);
    free_all(b);
}

/* ---- kernels ---- */

size_t evoke_bundle_kernel_count(const evoke_bundle *b) {
    return bundle_kernel_count(b->inside);
}

const char *evoke_bundle_kernel_name(const evoke_bundle *b, size_t index) {
    return index < bundle_kernel_count(b->inside) ? bundle_kernel_at(b->inside, index)->name : NULL;
}

static ev_status find_kernel(const evoke_bundle *b, const char *kernel, const bundle_kernel **out,
                             ev_error *err) {
    *out = bundle_find(b->inside, kernel);
    if (*out != NULL)
        return EV_OK;
    (void)bundle_fail_kernel(b->inside, kernel, err);
    return EV_BAD;
}

static ev_status find_argument(const evoke_bundle *b, const char *kernel, size_t index,
                               const bundle_kernel **k, ev_error *err) {
    EV_TRY(find_kernel(b, kernel, k, err));
    if (index < (*k)->argument_count)
        return EV_OK;
    return ev_fail(err, EV_BAD, "%s has %zu arguments, and none of the number %zu", kernel,
                   (*k)->argument_count, index);
}

evoke_status evoke_bundle_argument_count(const evoke_bundle *b, const char *kernel, size_t *out,
                                         evoke_error *error) {
    const bundle_kernel *k = NULL;
    ev_status status = find_kernel(b, kernel, &k, runtime_error(error));
    if (status == EV_OK)
        *out = k->argument_count;
    return runtime_status(status);
}

static evoke_argument_kind kind_of(const bundle_argument *a) {
    static const char *const names[] = {"in", "out", "inout", "scalar", "rank", "peers"};
    size_t kind = 0;
    while (kind < EVOKE_PEERS && strcmp(names[kind], a->kind) != 0)
        kind++;
    return (evoke_argument_kind)kind;
}

static ev_status describe(const bundle_argument *a, evoke_argument *out, ev_error *err) {
    ev_type type = EV_F32;
    if (!ev_type_find(a->type, &type))
        return ev_fail(err, EV_BAD, "argument %s: there is no type '%s'", a->name, a->type);
    evoke_argument_kind kind = kind_of(a);
    uint32_t align = a->align != 0 ? a->align : BUNDLE_ALIGN;
    *out = (evoke_argument){.name = a->name,
                            .kind = kind,
                            .type = a->type,
                            .element_bytes = ev_type_bytes(type),
                            .expression = a->expression,
                            .alignment = bundle_is_scalar(a) ? 1 : align};
    return EV_OK;
}

evoke_status evoke_bundle_argument(const evoke_bundle *b, const char *kernel, size_t index,
                                   evoke_argument *out, evoke_error *error) {
    const bundle_kernel *k = NULL;
    ev_status status = find_argument(b, kernel, index, &k, runtime_error(error));
    if (status == EV_OK)
        status = describe(&k->arguments[index], out, runtime_error(error));
    return runtime_status(status);
}

evoke_status evoke_bundle_symbol_count(const evoke_bundle *b, const char *kernel, size_t *out,
                                       evoke_error *error) {
    const bundle_kernel *k = NULL;
    ev_status status = find_kernel(b, kernel, &k, runtime_error(error));
    if (status == EV_OK)
        *out = k->symbol_count;
    return runtime_status(status);
}

static ev_status describe_symbol(const bundle_kernel *k, size_t index, evoke_symbol *out,
                                 ev_error *err) {
    ev_type type = EV_F32;
    if (index >= k->symbol_count)
        return ev_fail(err, EV_BAD, "%s has %zu variables to fill, and none of the number %zu",
                       k->name, k->symbol_count, index);
    const bundle_symbol *s = &k->symbols[index];
    if (!ev_type_find(s->type, &type))
        return ev_fail(err, EV_BAD, "variable %s: there is no type '%s'", s->name, s->type);
    *out = (evoke_symbol){s->name, s->type, ev_type_bytes(type), s->count};
    return EV_OK;
}

evoke_status evoke_bundle_symbol(const evoke_bundle *b, const char *kernel, size_t index,
                                 evoke_symbol *out, evoke_error *error) {
    const bundle_kernel *k = NULL;
    ev_status status = find_kernel(b, kernel, &k, runtime_error(error));
    if (status == EV_OK)
        status = describe_symbol(k, index, out, runtime_error(error));
    return runtime_status(status);
}

/* All variants of a kernel have the same names of the shape. */
static const launch_plan *plan_of(const bundle_kernel *k) {
    const bundle_variant *v = k->baseline_count > 0 ? k->baselines : k->variants;
    return k->baseline_count + k->variant_count > 0 ? v->plan : NULL;
}

static ev_status count_elements(const bundle_kernel *k, size_t index, const evoke_shape *shape,
                                uint64_t *out, ev_error *err) {
    runtime_scope room;
    if (bundle_is_scalar(&k->arguments[index])) {
        *out = 0;
        return EV_OK;
    }
    if (plan_of(k) == NULL)
        return ev_fail(err, EV_BAD, "the bundle has no variant of %s", k->name);
    EV_TRY(runtime_scope_of(k, plan_of(k), shape, SIZE_MAX, &room, err));
    return runtime_elements(k, index, &room.scope, out, err);
}

evoke_status evoke_bundle_elements(const evoke_bundle *b, const char *kernel, size_t index,
                                   const evoke_shape *shape, uint64_t *out, evoke_error *error) {
    const bundle_kernel *k = NULL;
    ev_status status = find_argument(b, kernel, index, &k, runtime_error(error));
    if (status == EV_OK)
        status = count_elements(k, index, shape, out, runtime_error(error));
    return runtime_status(status);
}

static ev_status describe_buffer(const bundle_kernel *k, size_t index, const evoke_shape *shape,
                                 evoke_argument *argument, evoke_buffer *buffer, ev_error *err) {
    uint64_t elements = 0;
    EV_TRY(describe(&k->arguments[index], argument, err));
    EV_TRY(count_elements(k, index, shape, &elements, err));
    *buffer = (evoke_buffer){0, elements * argument->element_bytes};
    return EV_OK;
}

ev_status runtime_buffers(const bundle_kernel *k, const evoke_shape *shape, size_t room,
                          evoke_argument *arguments, evoke_buffer *buffers, size_t *count,
                          ev_error *err) {
    evoke_argument found[RUNTIME_ARGUMENTS];
    evoke_buffer sized[RUNTIME_ARGUMENTS];
    size_t need = bundle_buffer_count(k), next = 0;
    if (need > room)
        return ev_fail(err, EV_BAD, "%s takes %zu buffers, and there is room for %zu", k->name,
                       need, room);
    for (size_t i = 0; i < k->argument_count; i++) {
        if (bundle_is_scalar(&k->arguments[i]))
            continue;
        EV_TRY(describe_buffer(k, i, shape, &found[next], &sized[next], err));
        next++;
    }
    if (arguments != NULL)
        memcpy(arguments, found, need * sizeof *found);
    memcpy(buffers, sized, need * sizeof *sized);
    *count = need;
    return EV_OK;
}

evoke_status evoke_bundle_buffers(const evoke_bundle *b, const char *kernel,
                                  const evoke_shape *shape, size_t room, evoke_argument *arguments,
                                  evoke_buffer *buffers, size_t *count, evoke_error *error) {
    const bundle_kernel *k = NULL;
    ev_status status = find_kernel(b, kernel, &k, runtime_error(error));
    if (status == EV_OK)
        status = runtime_buffers(k, shape, room, arguments, buffers, count, runtime_error(error));
    return runtime_status(status);
}
