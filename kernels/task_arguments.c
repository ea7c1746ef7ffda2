/* Reads the arguments and symbols of task.json. */
#include "kernels/task_private.h"

#include <stdio.h>
#include <string.h>

typedef task_loader loader;

static const char *type_at(size_t i) {
    return ev_type_name((ev_type)i);
}

static const char *const OTHER_KINDS[] = {"struct", "rank", "peers"};
#define KIND_COUNT (TASK_SCALAR + 1 + sizeof OTHER_KINDS / sizeof OTHER_KINDS[0])

static const char *kind_at(size_t i) {
    return i <= TASK_SCALAR ? task_argument_kind_name((task_argument_kind)i)
                            : OTHER_KINDS[i - TASK_SCALAR - 1];
}

ev_status task_read_type(task_loader *l, const char *word, const char *where, ev_type *out) {
    size_t index = 0;
    EV_TRY(task_find_name(l, "type", word, where, EV_TYPE_COUNT, type_at, &index));
    *out = (ev_type)index;
    return EV_OK;
}

/* The keys of an argument by its kind: required, allowed, or refused. */
static ev_status check_argument_key(loader *l, const json_t *value, const char *where,
                                    const task_argument *a, const char *key, bool needed,
                                    bool allowed) {
    char at[TASK_MAX_WHERE];
    bool given = json_object_get(value, key) != NULL;
    (void)snprintf(at, sizeof at, "%s.%s", where, key);
    if (given && !allowed)
        return ev_json_fail(l->doc, at, l->err, "an argument of kind \"%s\" has no \"%s\"",
                            task_argument_kind_name(a->kind), key);
    if (!given && needed)
        return ev_json_fail(l->doc, where, l->err, "argument %s, of kind \"%s\", needs \"%s\"",
                            a->name, task_argument_kind_name(a->kind), key);
    return EV_OK;
}

ev_status task_read_align(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *given = json_object_get(value, "align");
    uint32_t element = (uint32_t)ev_type_bytes(a->type);
    a->align = a->kind == TASK_SCALAR ? 0 : TASK_ALIGN;
    if (given == NULL)
        return EV_OK;
    json_int_t align = json_integer_value(given);
    (void)snprintf(at, sizeof at, "%s.align", where);
    if (align < element || align > TASK_ALIGN_MOST || (align & (align - 1)) != 0)
        return ev_json_fail(l->doc, at, l->err,
                            "an alignment is a power of two from the element's %u bytes to %u",
                            element, TASK_ALIGN_MOST);
    a->align = (uint32_t)align;
    return EV_OK;
}

ev_status task_read_initial(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const char *word = ev_json_text(value, "initial", NULL);
    EV_TRY(check_argument_key(l, value, where, a, "initial", false, a->kind == TASK_INOUT));
    (void)snprintf(at, sizeof at, "%s.initial", where);
    if (word == NULL)
        return EV_OK;
    if (strcmp(word, "constant") != 0)
        return ev_json_fail(l->doc, at, l->err, "\"%s\" is no promise; there is \"constant\"",
                            word);
    a->begins_constant = task_generator_is_constant(a->generator);
    if (a->begins_constant)
        return EV_OK;
    return ev_json_fail(l->doc, at, l->err,
                        "the generator \"%s\" makes no constant; promise it of zeros, ones or "
                        "constant, or leave \"initial\" out",
                        a->generator->name);
}

ev_status task_read_domain(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *given = json_object_get(value, "domain");
    task_domain *d = &a->domain;
    if (given == NULL)
        return EV_OK;
    (void)snprintf(at, sizeof at, "%s.domain", where);
    EV_TRY(task_check_keys(l, given, at, &TASK_TABLE_DOMAIN));
    const json_t *min = json_object_get(given, "min"), *max = json_object_get(given, "max");
    if (min != NULL)
        EV_TRY(task_read_expression(l, min, at, &d->min));
    if (max != NULL)
        EV_TRY(task_read_expression(l, max, at, &d->max));
    d->is_given = true;
    d->finite = json_is_true(json_object_get(given, "finite"));
    d->positive = json_is_true(json_object_get(given, "positive"));
    d->sorted = json_is_true(json_object_get(given, "sorted"));
    d->permutation = json_is_true(json_object_get(given, "permutation"));
    d->distinct = json_is_true(json_object_get(given, "distinct"));
    return task_domain_check(a, l->doc, at, l->err);
}

/* A bound of its own in place of the task's. Whole numbers have no rounding, so theirs is max_abs.
 */
ev_status task_read_tolerance(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *own = json_object_get(value, "tolerance");
    (void)snprintf(at, sizeof at, "%s.tolerance", where);
    if (own == NULL)
        return EV_OK;
    EV_TRY(task_check_keys(l, own, at, &TASK_TABLE_OWN));
    if (a->kind == TASK_IN || a->kind == TASK_SCALAR)
        return ev_json_fail(l->doc, at, l->err, "only outputs are compared");
    bool is_float = ev_type_is_float(a->type), has_l2 = json_object_get(own, "relative_l2") != NULL;
    if (is_float != has_l2)
        return ev_json_fail(l->doc, at, l->err,
                            is_float ? "an output of floats needs \"relative_l2\""
                                     : "an output of whole numbers has "
                                       "\"max_abs\" alone");
    a->has_tolerance = true;
    a->relative_l2 = is_float ? ev_json_number(own, "relative_l2", 0) : (double)INFINITY;
    a->max_abs = ev_json_number(own, "max_abs", 0);
    return a->relative_l2 >= 0 && a->max_abs >= 0
               ? EV_OK
               : ev_json_fail(l->doc, at, l->err, "a bound is negative");
}

static ev_status read_pitch(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *given = json_object_get(value, "pitch");
    bool is_output = a->kind == TASK_OUT || a->kind == TASK_INOUT;
    EV_TRY(check_argument_key(l, value, where, a, "pitch", false, is_output));
    if (given == NULL)
        return EV_OK;
    (void)snprintf(at, sizeof at, "%s.pitch", where);
    EV_TRY(task_check_keys(l, given, at, &TASK_TABLE_PITCH));
    EV_TRY(task_read_expression(l, json_object_get(given, "row"), at, &a->row));
    return task_read_expression(l, json_object_get(given, "stride"), at, &a->stride);
}

static ev_status read_argument_values(loader *l, const json_t *value, const char *where,
                                      task_argument *a) {
    bool scalar = a->kind == TASK_SCALAR, made = a->kind == TASK_IN || a->kind == TASK_INOUT;
    EV_TRY(check_argument_key(l, value, where, a, "count", !scalar, !scalar));
    EV_TRY(check_argument_key(l, value, where, a, "value", false, scalar));
    EV_TRY(check_argument_key(l, value, where, a, "data", made, made));
    EV_TRY(check_argument_key(l, value, where, a, "zero_where", false, a->kind == TASK_OUT));
    EV_TRY(check_argument_key(l, value, where, a, "align", false, !scalar));
    EV_TRY(check_argument_key(l, value, where, a, "domain", false, a->kind != TASK_OUT));
    EV_TRY(check_argument_key(l, value, where, a, "by_rank", false,
                              a->kind == TASK_OUT || a->kind == TASK_INOUT));
    a->by_rank = json_is_true(json_object_get(value, "by_rank"));
    EV_TRY(task_read_domain(l, value, where, a));
    EV_TRY(read_pitch(l, value, where, a));
    EV_TRY(task_read_tolerance(l, value, where, a));
    EV_TRY(task_read_align(l, value, where, a));
    a->value = scalar ? a->name : NULL;
    a->zero_where = task_keep(l, ev_json_text(value, "zero_where", NULL));
    char at[TASK_MAX_WHERE];
    const json_t *given = json_object_get(value, scalar ? "value" : "count");
    (void)snprintf(at, sizeof at, "%s.%s", where, scalar ? "value" : "count");
    if (given != NULL)
        EV_TRY(task_read_expression(l, given, at, scalar ? &a->value : &a->count));
    (void)snprintf(at, sizeof at, "%s.data", where);
    if (made)
        EV_TRY(task_read_data(l, json_object_get(value, "data"), at, &a->generator, &a->file,
                              a->parameters));
    return task_read_initial(l, value, where, a);
}

/* Reads an argument that is no struct. */
static ev_status read_argument(loader *l, const json_t *value, const char *where,
                               task_argument *a) {
    char at[TASK_MAX_WHERE];
    size_t index = 0;
    if (task_ranks_has_kind(value))
        return task_ranks_read_argument(l, value, where, a);
    if (task_members_has(value))
        return task_members_read(l, value, where, a);
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_ARGUMENT));
    a->name = task_keep(l, ev_json_text(value, "name", ""));
    a->doc = task_keep(l, ev_json_text(value, "doc", ""));
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(task_check_name(l, a->name, at));
    (void)snprintf(at, sizeof at, "%s.kind", where);
    EV_TRY(task_find_name(l, "kind", ev_json_text(value, "kind", ""), at, KIND_COUNT, kind_at,
                          &index));
    a->kind = (task_argument_kind)index;
    (void)snprintf(at, sizeof at, "%s.type", where);
    EV_TRY(task_read_type(l, ev_json_text(value, "type", ""), at, &a->type));
    return read_argument_values(l, value, where, a);
}

/* ---- structs ---- */

static uint32_t round_up(uint32_t bytes, uint32_t align) {
    return (bytes + align - 1) / align * align;
}

/* Bytes of a field, which are its alignment in C, too. */
static uint32_t field_bytes(const task_argument *a) {
    return a->kind == TASK_SCALAR ? (uint32_t)ev_type_bytes(a->type) : 8;
}

/* Places a field behind `end`, where the fields before it end. */
static ev_status place_field(loader *l, const json_t *value, const char *where, uint32_t end,
                             task_argument *a) {
    char at[TASK_MAX_WHERE];
    uint32_t natural = round_up(end, field_bytes(a));
    json_int_t offset = ev_json_integer(value, "offset", natural);
    (void)snprintf(at, sizeof at, "%s.offset", where);
    if (offset < end || offset > TASK_MAX_STRUCT - field_bytes(a))
        return ev_json_fail(l->doc, at, l->err,
                            "a field begins at or behind the end of the field before, %u, and ends "
                            "within %d bytes",
                            end, TASK_MAX_STRUCT);
    a->offset = (uint32_t)offset;
    return EV_OK;
}

/* Reads field `index` of a struct, and gives it the name STRUCT.FIELD. */
static ev_status read_field(loader *l, const json_t *list, size_t index, const char *where,
                            const char *owner, uint32_t end, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *value = json_array_get(list, index);
    (void)snprintf(at, sizeof at, "%s.fields[%zu]", where, index);
    if (strcmp(ev_json_text(value, "kind", ""), "struct") == 0)
        return ev_json_fail(l->doc, at, l->err,
                            "a field is no struct: list the fields of the inner struct in place of "
                            "it, with offsets");
    EV_TRY(read_argument(l, value, at, a));
    EV_TRY(place_field(l, value, at, end, a));
    a->is_field = true;
    a->name = ev_arena_printf(l->arena, "%s.%s", owner, a->name);
    return a->name != NULL ? EV_OK : ev_fail_memory(l->err, strlen(owner));
}

static ev_status check_new_name(loader *l, const task_argument *all, size_t count,
                                const char *where) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].name, all[count].name) == 0)
            return ev_json_fail(l->doc, where, l->err, "a second argument is named %s",
                                all[i].name);
    }
    return EV_OK;
}

/* Reads the fields of a struct to all[*count] and on. */
static ev_status read_struct(loader *l, const json_t *value, const char *where, task_argument *all,
                             size_t *count) {
    char at[TASK_MAX_WHERE];
    uint32_t end = 0, align = 1;
    size_t first = *count;
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_STRUCT));
    const char *name = ev_json_text(value, "name", "");
    const json_t *fields = json_object_get(value, "fields");
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(task_check_name(l, name, at));
    (void)snprintf(at, sizeof at, "%s.fields", where);
    EV_TRY(task_check_size(l, json_array_size(fields), 1, TASK_MAX_ARGUMENTS - first, at));
    for (size_t i = 0; i < json_array_size(fields); i++) {
        task_argument *a = &all[first + i];
        EV_TRY(read_field(l, fields, i, where, name, end, a));
        EV_TRY(check_new_name(l, all, first + i, at));
        end = a->offset + field_bytes(a);
        align = field_bytes(a) > align ? field_bytes(a) : align;
    }
    json_int_t bytes = ev_json_integer(value, "bytes", round_up(end, align));
    (void)snprintf(at, sizeof at, "%s.bytes", where);
    if (bytes < end || bytes > TASK_MAX_STRUCT)
        return ev_json_fail(l->doc, at, l->err, "a struct has from %u bytes, its fields', to %d",
                            end, TASK_MAX_STRUCT);
    *count += json_array_size(fields);
    for (size_t i = first; i < *count; i++)
        all[i].parameter_bytes = (uint32_t)bytes;
    return EV_OK;
}

static ev_status read_plain(loader *l, const json_t *value, const char *where, task_argument *all,
                            size_t *count) {
    if (*count == TASK_MAX_ARGUMENTS)
        return ev_json_fail(l->doc, where, l->err,
                            "the arguments and fields are more than the %d of a kernel",
                            TASK_MAX_ARGUMENTS);
    EV_TRY(read_argument(l, value, where, &all[*count]));
    if (json_object_get(value, "offset") != NULL)
        return ev_json_fail(l->doc, where, l->err,
                            "only the fields of a struct have an \"offset\"");
    EV_TRY(check_new_name(l, all, *count, where));
    ++*count;
    return EV_OK;
}

static ev_status read_arguments(loader *l, task_argument *arguments) {
    const json_t *list = json_object_get(l->doc->root, "arguments");
    size_t parameters = json_array_size(list), count = 0;
    EV_TRY(task_check_size(l, parameters, 1, TASK_MAX_ARGUMENTS, "arguments"));
    for (size_t i = 0; i < parameters; i++) {
        char where[TASK_MAX_WHERE];
        const json_t *value = json_array_get(list, i);
        bool is_struct = strcmp(ev_json_text(value, "kind", ""), "struct") == 0;
        size_t first = count;
        (void)snprintf(where, sizeof where, "arguments[%zu]", i);
        EV_TRY(is_struct ? read_struct(l, value, where, arguments, &count)
                         : read_plain(l, value, where, arguments, &count));
        for (size_t k = first; k < count; k++)
            arguments[k].parameter = i;
    }
    l->t->argument_count = count;
    l->t->parameter_count = parameters;
    return EV_OK;
}

static ev_status read_symbol(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_SYMBOL));
    a->kind = TASK_IN;
    a->name = task_keep(l, ev_json_text(value, "name", ""));
    a->doc = task_keep(l, ev_json_text(value, "doc", ""));
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(task_check_name(l, a->name, at));
    (void)snprintf(at, sizeof at, "%s.type", where);
    EV_TRY(task_read_type(l, ev_json_text(value, "type", ""), at, &a->type));
    (void)snprintf(at, sizeof at, "%s.count", where);
    EV_TRY(task_read_expression(l, json_object_get(value, "count"), at, &a->count));
    EV_TRY(task_read_domain(l, value, where, a));
    (void)snprintf(at, sizeof at, "%s.data", where);
    return task_read_data(l, json_object_get(value, "data"), at, &a->generator, &a->file,
                          a->parameters);
}

/* Reads the symbols behind the arguments. */
static ev_status read_symbols(loader *l, task_argument *arguments) {
    const json_t *list = json_object_get(l->doc->root, "symbols");
    size_t count = json_array_size(list), first = l->t->argument_count;
    EV_TRY(task_check_size(l, count, 0, TASK_MAX_SYMBOLS, "symbols"));
    for (size_t i = 0; i < count; i++) {
        char where[TASK_MAX_WHERE];
        (void)snprintf(where, sizeof where, "symbols[%zu]", i);
        EV_TRY(read_symbol(l, json_array_get(list, i), where, &arguments[first + i]));
        EV_TRY(check_new_name(l, arguments, first + i, where));
    }
    l->t->symbols = arguments + first;
    l->t->symbol_count = count;
    return EV_OK;
}

ev_status task_read_inputs(loader *l) {
    size_t count = TASK_MAX_ARGUMENTS + TASK_MAX_SYMBOLS + TASK_MAX_MEMBERS;
    task_argument *arguments = EV_NEW_ARRAY(l->arena, task_argument, count);
    l->members = EV_NEW_ARRAY(l->arena, task_argument, TASK_MAX_MEMBERS);
    if (arguments == NULL || l->members == NULL)
        return ev_fail_memory(l->err, (count + TASK_MAX_MEMBERS) * sizeof *arguments);
    l->t->arguments = arguments;
    EV_TRY(read_arguments(l, arguments));
    EV_TRY(task_alias_read(l->t, l->doc, l->err));
    EV_TRY(read_symbols(l, arguments));
    return task_members_end(l, arguments, l->t->argument_count + l->t->symbol_count);
}
