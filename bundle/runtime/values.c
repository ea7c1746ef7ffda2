/* Values: what the manifest's expressions make of a shape: geometry, sizes, and packed parameters.
 */
#include "bundle/runtime/runtime.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WHOLE_MOST 9007199254740992.0 /* 2^53 */
#define ELEMENTS_MOST (INT64_C(1) << 40)

static void add(runtime_scope *s, const char *name, expr_value value) {
    assert(s->scope.count < RUNTIME_NAMES);
    s->names[s->scope.count++] = (expr_name){name, value};
}

/* ---- scopes ---- */

static const evoke_number *find_number(const evoke_shape *shape, const char *name) {
    for (size_t i = 0; i < shape->count; i++) {
        if (strcmp(shape->numbers[i].name, name) == 0)
            return &shape->numbers[i];
    }
    return NULL;
}

static ev_status add_shape(const bundle_kernel *k, const launch_plan *plan,
                           const evoke_shape *shape, runtime_scope *out, ev_error *err) {
    for (size_t i = 0; i < plan->range_count; i++) {
        const launch_range *range = &plan->ranges[i];
        const evoke_number *n = find_number(shape, range->name);
        if (n == NULL)
            return ev_fail(err, EV_BAD, "%s: the shape lacks '%s'", k->name, range->name);
        bool is_whole = n->value == floor(n->value) && fabs(n->value) <= WHOLE_MOST;
        if (!(range->is_real ? isfinite(n->value) : is_whole))
            return ev_fail(err, EV_BAD, "%s: '%s' of the shape is %.17g; it must be a %s number",
                           k->name, range->name, n->value, range->is_real ? "finite" : "whole");
        add(out, range->name,
            range->is_real ? expr_of_real(n->value) : expr_of_whole((int64_t)n->value));
    }
    return EV_OK;
}

ev_status runtime_scope_of(const bundle_kernel *k, const launch_plan *ranges,
                           const evoke_shape *shape, size_t end, runtime_scope *out,
                           ev_error *err) {
    out->scope = (expr_scope){.names = out->names};
    EV_TRY(add_shape(k, ranges, shape, out, err));
    for (size_t i = 0; i < k->argument_count && i < end; i++) {
        const bundle_argument *a = &k->arguments[i];
        expr_value value;
        if (!bundle_is_scalar(a) || expr_scope_find(&out->scope, a->name) != NULL)
            continue;
        ev_status status = expr_eval(a->expression, &out->scope, &value, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "%s, value of %s", k->name, a->name);
        add(out, a->name, value);
    }
    return EV_OK;
}

void runtime_add_macros(const bundle_variant *v, runtime_scope *out) {
    for (size_t i = 0; i < v->macro_count; i++) {
        const bundle_number *m = &v->macros[i];
        add(out, m->name, m->is_real ? expr_of_real(m->value) : expr_of_whole((int64_t)m->value));
    }
}

ev_status runtime_geometry(const evoke_variant *v, const evoke_shape *shape, launch_geometry *out,
                           ev_error *err) {
    runtime_scope room;
    if (!launch_plan_is_plain(v->is->plan))
        return ev_fail(err, EV_BAD,
                       "%s: the variant has several launches; evoke_variant_steps tells the sizes "
                       "of each",
                       v->kernel->name);
    EV_TRY(runtime_scope_of(v->kernel, v->is->plan, shape, SIZE_MAX, &room, err));
    runtime_add_macros(v->is, &room);
    ev_status status =
        launch_plan_geometry(v->is->plan, 0, &room.scope, &LAUNCH_LIMITS_CUDA, out, err);
    return status == EV_OK ? EV_OK : ev_wrap(err, status, "%s", v->kernel->name);
}

/* ---- parameters ---- */

ev_status runtime_elements(const bundle_kernel *k, size_t index, const expr_scope *scope,
                           uint64_t *out, ev_error *err) {
    int64_t count = 0;
    ev_status status =
        expr_eval_whole(k->arguments[index].expression, scope, 1, ELEMENTS_MOST, &count, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s, elements of %s", k->name, k->arguments[index].name);
    *out = (uint64_t)count;
    return EV_OK;
}

static ev_status type_of(const bundle_kernel *k, const bundle_argument *a, ev_type *out,
                         ev_error *err) {
    if (ev_type_find(a->type, out))
        return EV_OK;
    return ev_fail(err, EV_BAD, "%s, argument %s: there is no type '%s'", k->name, a->name,
                   a->type);
}

void runtime_set_word(ev_type type, const expr_value *value, uint64_t *word) {
    *word = 0;
    if (ev_type_is_float(type))
        ev_type_set(type, word, 0, value->real);
    else
        memcpy(word, &value->whole, ev_type_bytes(type)); /* little-endian, as GPUs are */
}

ev_status runtime_fill_before(const bundle_kernel *k, size_t index, const expr_scope *scope,
                              void *data, size_t bytes, ev_error *err) {
    const bundle_argument *a = &k->arguments[index];
    ev_type type = EV_F32;
    expr_value value;
    uint64_t word = 0;
    EV_TRY(type_of(k, a, &type, err));
    ev_status status = expr_eval_as(a->before, type, scope, &value, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s, what %s has before a launch", k->name, a->name);
    runtime_set_word(type, &value, &word);
    size_t element = ev_type_bytes(type);
    for (size_t at = 0; at + element <= bytes; at += element)
        memcpy((char *)data + at, &word, element);
    return EV_OK;
}

static ev_status pack_scalar(const bundle_kernel *k, size_t index, const launch_plan *ranges,
                             const evoke_shape *shape, uint32_t rank, uint64_t *word,
                             ev_error *err) {
    const bundle_argument *a = &k->arguments[index];
    if (bundle_is_rank(a)) { /* of 4 or 8 bytes */
        *word = rank;
        return EV_OK;
    }
    runtime_scope room;
    expr_value value;
    ev_type type = EV_F32;
    EV_TRY(type_of(k, a, &type, err));
    EV_TRY(runtime_scope_of(k, ranges, shape, index, &room, err));
    ev_status status = expr_eval_as(a->expression, type, &room.scope, &value, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "%s, value of %s", k->name, a->name);
    runtime_set_word(type, &value, word);
    return EV_OK;
}

static ev_status pack_buffer(const bundle_kernel *k, size_t index, const expr_scope *scope,
                             const evoke_buffer *b, uint64_t *word, ev_error *err) {
    const bundle_argument *a = &k->arguments[index];
    ev_type type = EV_F32;
    uint64_t elements = 0;
    EV_TRY(type_of(k, a, &type, err));
    EV_TRY(runtime_elements(k, index, scope, &elements, err));
    uint64_t need = elements * ev_type_bytes(type);
    if (b->address == 0)
        return ev_fail(err, EV_BAD, "%s: the buffer of '%s' has the address 0", k->name, a->name);
    if (b->bytes < need)
        return ev_fail(
            err, EV_BAD,
            "%s: the buffer of '%s' has %zu bytes, and the kernel uses %llu (%llu %s, by "
            "\"%s\")",
            k->name, a->name, b->bytes, (unsigned long long)need, (unsigned long long)elements,
            a->type, a->expression);
    *word = b->address;
    return EV_OK;
}

static ev_status check_count(const bundle_kernel *k, size_t given, ev_error *err) {
    size_t buffers = bundle_buffer_count(k);
    if (given == buffers)
        return EV_OK;
    return ev_fail(err, EV_BAD, "%s takes %zu buffers, and %zu are given", k->name, buffers, given);
}

/* Puts the packed words where the driver finds them: a parameter each, and fields into structs. */
static ev_status place_words(const bundle_kernel *k, runtime_parameters *out, ev_error *err) {
    size_t parameters = 0, end = 0;
    unsigned char *owner = out->structs;
    for (size_t i = 0; i < k->argument_count; i++) {
        const bundle_argument *a = &k->arguments[i];
        ev_type type = EV_F32;
        if (!a->is_field) {
            out->pointers[parameters++] = &out->words[i];
            continue;
        }
        if (bundle_begins_struct(k, i)) {
            owner = out->structs + end;
            end += ((size_t)a->struct_bytes + 15) / 16 * 16;
            if (end > sizeof out->structs)
                return ev_fail(err, EV_BAD, "%s: its structs have more than %zu bytes", k->name,
                               sizeof out->structs);
            memset(owner, 0, a->struct_bytes);
            out->pointers[parameters++] = owner;
        }
        EV_TRY(type_of(k, a, &type, err));
        memcpy(owner + a->offset, &out->words[i], bundle_is_scalar(a) ? ev_type_bytes(type) : 8);
    }
    return EV_OK;
}

ev_status runtime_pack(const evoke_variant *v, const evoke_shape *shape,
                       const evoke_buffer *buffers, size_t count, uint32_t rank,
                       runtime_parameters *out, ev_error *err) {
    const bundle_kernel *k = v->kernel;
    const launch_plan *ranges = v->is->plan;
    runtime_scope room;
    size_t next = 0;
    EV_TRY(check_count(k, count, err));
    EV_TRY(runtime_scope_of(k, ranges, shape, SIZE_MAX, &room, err));
    for (size_t i = 0; i < k->argument_count; i++) {
        if (bundle_is_scalar(&k->arguments[i]))
            EV_TRY(pack_scalar(k, i, ranges, shape, rank, &out->words[i], err));
        else
            EV_TRY(pack_buffer(k, i, &room.scope, &buffers[next++], &out->words[i], err));
    }
    EV_TRY(place_words(k, out, err));
    return bundle_check_addresses(k, v->is, out->words, err);
}
