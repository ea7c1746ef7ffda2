/* Reads what a manifest says of a kernel's arguments and of the variables that the host fills. A
 * launch relies on each word of it, so that an unknown one is refused here and not there. */
#include "bundle/read.h"

#include "base/type.h"
#include "bundle/manifest.h"

#include <string.h>

static bool is_kind(const char *kind) {
    static const char *const kinds[] = {"in", "out", "inout", "scalar", "rank", "peers"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kind, kinds[i]) == 0)
            return true;
    }
    return false;
}

static ev_status fail(const reading *r, const char *where, const char *key, const char *text,
                      const char *what) {
    return ev_json_fail(r->doc, reading_join(r, where, key), r->err, "\"%.100s\" %s", text, what);
}

/* The type and the name of an argument, of a field of a struct ("p.n") or of a symbol. */
static ev_status check_names(const reading *r, const char *where, const char *name,
                             const char *type, bool is_field) {
    ev_type ignored = EV_F32;
    bool is_whole = is_field ? expr_name_length(name) == strlen(name) : expr_is_name(name);
    if (!is_whole)
        return fail(r, where, "name", name,
                    "is no name; use letters, digits and _, not a digit first");
    if (!ev_type_find(type, &ignored))
        return fail(r, where, "type", type, "is no type of elements");
    return EV_OK;
}

/* Reads what makes argument `index` a field. A field lies within its struct, and all fields agree
 * on the struct's size. */
static ev_status read_field(const reading *r, const json_t *value, const char *where,
                            const bundle_kernel *k, size_t index, bundle_argument *a) {
    const json_t *offset = json_object_get(value, "offset");
    const json_t *bytes = json_object_get(value, "struct_bytes");
    ev_type type = EV_F32;
    if (offset == NULL && bytes == NULL)
        return EV_OK;
    json_int_t own = 8; /* a buffer's address */
    if (bundle_is_scalar(a))
        own = ev_type_find(a->type, &type) ? (json_int_t)ev_type_bytes(type) : 1;
    json_int_t at = json_integer_value(offset), all = json_integer_value(bytes);
    const char *dot = strchr(a->name, '.');
    if (offset == NULL || dot == NULL || at < 0 || all < own ||
        all > (json_int_t)BUNDLE_STRUCT_MOST || at > all - own)
        return ev_json_fail(r->doc, where, r->err,
                            "a field has the name STRUCT.FIELD, an \"offset\", and lies within the "
                            "\"struct_bytes\" of its struct, at most %u",
                            BUNDLE_STRUCT_MOST);
    a->is_field = true;
    a->offset = (uint32_t)at;
    a->struct_bytes = (uint32_t)all;
    if (!bundle_begins_struct(k, index) && a[-1].struct_bytes != a->struct_bytes)
        return ev_json_fail(r->doc, where, r->err, "the fields of a struct disagree on its bytes");
    return EV_OK;
}

static ev_status check_argument(const reading *r, const char *where, const bundle_argument *all,
                                size_t index) {
    const bundle_argument *a = &all[index];
    EV_TRY(check_names(r, where, a->name, a->type, a->is_field));
    if (!is_kind(a->kind))
        return fail(r, where, "kind", a->kind,
                    "is no kind; it is in, out, inout, scalar, rank or peers");
    if (!reading_is_alignment(a->align))
        return ev_json_fail(r->doc, reading_join(r, where, "align"), r->err,
                            "an alignment is a power of two up to 4096");
    for (size_t i = 0; i < index; i++) {
        if (strcmp(all[i].name, a->name) == 0)
            return fail(r, where, "name", a->name, "is there twice");
    }
    return EV_OK;
}

static ev_status read_arguments(const reading *r, const json_t *kernel, const char *where,
                                bundle_kernel *out) {
    const json_t *array = json_object_get(kernel, "arguments");
    out->argument_count = json_array_size(array);
    if (out->argument_count > MOST_NAMES)
        return ev_json_fail(r->doc, reading_join(r, where, "arguments"), r->err,
                            "a kernel has at most %d arguments", MOST_NAMES);
    bundle_argument *all = EV_NEW_ARRAY(r->arena, bundle_argument, out->argument_count + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, out->argument_count * sizeof *all);
    out->arguments = all;
    for (size_t i = 0; i < out->argument_count; i++) {
        const json_t *a = json_array_get(array, i);
        const char *place = reading_member(r, where, "arguments", i);
        EV_TRY(manifest_check(r->doc, MANIFEST_ARGUMENT, a, place, r->err));
        json_int_t align = ev_json_integer(a, "align", BUNDLE_ALIGN);
        all[i] = (bundle_argument){.name = ev_json_text(a, "name", ""),
                                   .kind = ev_json_text(a, "kind", ""),
                                   .type = ev_json_text(a, "type", ""),
                                   .expression = ev_json_text(a, "expression", ""),
                                   .align = reading_is_alignment(align) ? (uint32_t)align : 0,
                                   .of = ev_json_text(a, "of", NULL),
                                   .before = ev_json_text(a, "before", NULL),
                                   .by_rank = ev_json_flag(a, "by_rank", false)};
        EV_TRY(read_field(r, a, place, out, i, &all[i]));
        EV_TRY(check_argument(r, place, all, i));
    }
    return EV_OK;
}

static ev_status read_symbols(const reading *r, const json_t *kernel, const char *where,
                              bundle_kernel *out) {
    const json_t *array = json_object_get(kernel, "symbols");
    out->symbol_count = json_array_size(array);
    bundle_symbol *all = EV_NEW_ARRAY(r->arena, bundle_symbol, out->symbol_count + 1);
    if (all == NULL)
        return ev_fail_memory(r->err, out->symbol_count * sizeof *all);
    out->symbols = all;
    for (size_t i = 0; i < out->symbol_count; i++) {
        const json_t *v = json_array_get(array, i);
        const char *place = reading_member(r, where, "symbols", i);
        EV_TRY(manifest_check(r->doc, MANIFEST_SYMBOL, v, place, r->err));
        all[i] = (bundle_symbol){ev_json_text(v, "name", ""), ev_json_text(v, "type", ""),
                                 ev_json_text(v, "count", "")};
        EV_TRY(check_names(r, place, all[i].name, all[i].type, false));
    }
    return EV_OK;
}

ev_status reading_arguments(const reading *r, const json_t *kernel, const char *where,
                            bundle_kernel *out) {
    EV_TRY(read_arguments(r, kernel, where, out));
    EV_TRY(reading_rank_arguments(r, where, out));
    return read_symbols(r, kernel, where, out);
}

/* ---- expressions ---- */

static ev_status check_expression(const reading *r, const char *where, const char *key,
                                  const char *text, const expr_names *names) {
    bool ignored = false;
    ev_error why = {.status = EV_OK};
    if (expr_check(text, names, &ignored, &why) == EV_OK)
        return EV_OK;
    return ev_json_fail(r->doc, reading_join(r, where, key), r->err, "%s", why.text);
}

/* Scalars use the shape and the scalars before them; buffers and symbols use all of these. */
ev_status reading_expressions(const reading *r, const char *where, const bundle_kernel *k) {
    const char *names[2 * MOST_NAMES];
    size_t count = 0;
    if (k->baseline_count == 0 || k->baselines[0].plan->range_count == 0)
        return EV_OK;
    const launch_plan *shape = k->baselines[0].plan;
    for (size_t i = 0; i < shape->range_count && i < MOST_NAMES; i++)
        names[count++] = shape->ranges[i].name;
    for (int scalars = 1; scalars >= 0; scalars--) {
        for (size_t i = 0; i < k->argument_count; i++) {
            const bundle_argument *a = &k->arguments[i];
            const expr_names known = {names, count};
            if (bundle_is_scalar(a) != (scalars == 1))
                continue;
            EV_TRY(check_expression(r, reading_member(r, where, "arguments", i), "expression",
                                    a->expression, &known));
            if (bundle_is_scalar(a))
                names[count++] = a->name;
            if (a->before != NULL)
                EV_TRY(check_expression(r, reading_member(r, where, "arguments", i), "before",
                                        a->before, &known));
        }
    }
    if (k->ranks != NULL)
        EV_TRY(check_expression(r, reading_join(r, where, "ranks"), "count", k->ranks->count,
                                &(expr_names){names, count}));
    for (size_t i = 0; i < k->symbol_count; i++)
        EV_TRY(check_expression(r, reading_member(r, where, "symbols", i), "count",
                                k->symbols[i].count, &(expr_names){names, count}));
    return EV_OK;
}
