/* Loads task.json: checks the document against the key tables, then copies all texts into the
 * task's arena. */
#include "kernels/task_private.h"

#include "base/file.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef task_loader loader;

/* ---- pieces ------------------------------------------------------------------------------------
 */

static ev_status check_keys(loader *l, const json_t *object, const char *where,
                            const task_table *table) {
    return ev_json_check(l->doc, object, where, table->keys, table->count, l->err);
}

static const char *keep(loader *l, const char *text) {
    return text ? ev_arena_strdup(l->arena, text) : NULL;
}

static ev_status check_name(loader *l, const char *name, const char *where) {
    if (expr_is_name(name))
        return EV_OK;
    return ev_json_fail(l->doc, where, l->err,
                        "\"%s\" is no name; use letters, digits and _, not a digit first", name);
}

static ev_status check_size(loader *l, size_t count, size_t low, size_t high, const char *where) {
    if (count >= low && count <= high)
        return EV_OK;
    return ev_json_fail(l->doc, where, l->err, "%zu entries; there must be %zu to %zu", count, low,
                        high);
}

ev_status task_read_expression(loader *l, const json_t *value, const char *where,
                               const char **out) {
    if (json_is_string(value))
        *out = keep(l, json_string_value(value));
    else if (json_is_integer(value))
        *out = ev_arena_printf(l->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        *out = ev_arena_printf(l->arena, "%.17g", json_real_value(value));
    else
        return ev_json_fail(l->doc, where, l->err, "an expression must be text or a number");
    return EV_OK;
}

/* The index of a word in a list of names. The message of a failure lists all names. */
static ev_status find_name(loader *l, const char *what, const char *name, const char *where,
                           size_t count, const char *(*name_at)(size_t), size_t *out) {
    ev_str known = EV_STR_EMPTY;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name_at(i), name) == 0) {
            ev_str_free(&known);
            *out = i;
            return EV_OK;
        }
        ev_str_printf(&known, "%s%s", i ? ", " : "", name_at(i));
    }
    ev_status status = ev_json_fail(l->doc, where, l->err, "unknown %s \"%s\"; there are: %s", what,
                                    name, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

static const char *type_at(size_t i) {
    return ev_type_name((ev_type)i);
}
static const char *kind_at(size_t i) {
    return task_argument_kind_name((task_argument_kind)i);
}
static const char *use_at(size_t i) {
    return task_case_use_name((task_case_use)i);
}
static const char *split_at(size_t i) {
    return corpus_split_name((corpus_split)i);
}
static const char *generator_at(size_t i) {
    return corpus_generator_at(i)->name;
}
static const char *variation_at(size_t i) {
    return task_variation_name((task_variation)i);
}
static const char *shape_at(size_t i) {
    return corpus_shape_at(i)->name;
}

/* ---- data --------------------------------------------------------------------------------------
 */

/* Reads a generator's parameters, which have a key table of their own. */
static ev_status read_data(loader *l, const json_t *value, const char *where,
                           const corpus_generator **generator, const corpus_recorded **file,
                           const char **parameters) {
    char at[TASK_MAX_WHERE];
    const char *name = ev_json_text(value, "generator", NULL);
    if (json_object_get(value, "file") != NULL) {
        *generator = corpus_generator_file();
        return task_recorded_read(l, value, where, file);
    }
    if (name == NULL)
        return ev_json_fail(l->doc, where, l->err,
                            "data must be an object with \"generator\": NAME or \"file\": PATH");
    (void)snprintf(at, sizeof at, "%s.generator", where);
    size_t index = 0;
    EV_TRY(find_name(l, "generator", name, at, corpus_generator_count(), generator_at, &index));
    const corpus_generator *g = corpus_generator_at(index);
    ev_json_key keys[CORPUS_MAX_PARAMETERS + 1];
    keys[0] = (ev_json_key){"generator", EV_JSON_STRING, true, "its name"};
    for (size_t i = 0; i < g->parameter_count; i++)
        keys[i + 1] = (ev_json_key){g->parameters[i].name, EV_JSON_ANY,
                                    isnan(g->parameters[i].otherwise), g->parameters[i].doc};
    EV_TRY(ev_json_check(l->doc, value, where, keys, g->parameter_count + 1, l->err));
    for (size_t i = 0; i < g->parameter_count; i++) {
        const json_t *given = json_object_get(value, g->parameters[i].name);
        (void)snprintf(at, sizeof at, "%s.%s", where, g->parameters[i].name);
        if (given != NULL)
            EV_TRY(task_read_expression(l, given, at, &parameters[i]));
    }
    *generator = g;
    return EV_OK;
}

/* ---- arguments ---------------------------------------------------------------------------------
 */

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

static ev_status read_align(loader *l, const json_t *value, const char *where, task_argument *a) {
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

static ev_status read_initial(loader *l, const json_t *value, const char *where, task_argument *a) {
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

static ev_status read_domain(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *given = json_object_get(value, "domain");
    task_domain *d = &a->domain;
    if (given == NULL)
        return EV_OK;
    (void)snprintf(at, sizeof at, "%s.domain", where);
    EV_TRY(check_keys(l, given, at, &TASK_TABLE_DOMAIN));
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

static ev_status read_pitch(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    const json_t *given = json_object_get(value, "pitch");
    bool is_output = a->kind == TASK_OUT || a->kind == TASK_INOUT;
    EV_TRY(check_argument_key(l, value, where, a, "pitch", false, is_output));
    if (given == NULL)
        return EV_OK;
    (void)snprintf(at, sizeof at, "%s.pitch", where);
    EV_TRY(check_keys(l, given, at, &TASK_TABLE_PITCH));
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
    EV_TRY(read_domain(l, value, where, a));
    EV_TRY(read_pitch(l, value, where, a));
    EV_TRY(read_align(l, value, where, a));
    a->value = scalar ? a->name : NULL;
    a->zero_where = keep(l, ev_json_text(value, "zero_where", NULL));
    char at[TASK_MAX_WHERE];
    const json_t *given = json_object_get(value, scalar ? "value" : "count");
    (void)snprintf(at, sizeof at, "%s.%s", where, scalar ? "value" : "count");
    if (given != NULL)
        EV_TRY(task_read_expression(l, given, at, scalar ? &a->value : &a->count));
    (void)snprintf(at, sizeof at, "%s.data", where);
    if (made)
        EV_TRY(read_data(l, json_object_get(value, "data"), at, &a->generator, &a->file,
                         a->parameters));
    return read_initial(l, value, where, a);
}

static ev_status read_argument(loader *l, const json_t *value, const char *where,
                               task_argument *a) {
    char at[TASK_MAX_WHERE];
    size_t index = 0;
    EV_TRY(check_keys(l, value, where, &TASK_TABLE_ARGUMENT));
    a->name = keep(l, ev_json_text(value, "name", ""));
    a->doc = keep(l, ev_json_text(value, "doc", ""));
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(check_name(l, a->name, at));
    (void)snprintf(at, sizeof at, "%s.kind", where);
    EV_TRY(find_name(l, "kind", ev_json_text(value, "kind", ""), at, TASK_SCALAR + 1, kind_at,
                     &index));
    a->kind = (task_argument_kind)index;
    (void)snprintf(at, sizeof at, "%s.type", where);
    EV_TRY(
        find_name(l, "type", ev_json_text(value, "type", ""), at, EV_TYPE_COUNT, type_at, &index));
    a->type = (ev_type)index;
    return read_argument_values(l, value, where, a);
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

static ev_status read_arguments(loader *l, task_argument *arguments) {
    const json_t *list = json_object_get(l->doc->root, "arguments");
    size_t count = json_array_size(list);
    EV_TRY(check_size(l, count, 1, TASK_MAX_ARGUMENTS, "arguments"));
    for (size_t i = 0; i < count; i++) {
        char where[TASK_MAX_WHERE];
        (void)snprintf(where, sizeof where, "arguments[%zu]", i);
        EV_TRY(read_argument(l, json_array_get(list, i), where, &arguments[i]));
        EV_TRY(check_new_name(l, arguments, i, where));
    }
    l->t->argument_count = count;
    return EV_OK;
}

static ev_status read_symbol(loader *l, const json_t *value, const char *where, task_argument *a) {
    char at[TASK_MAX_WHERE];
    size_t index = 0;
    EV_TRY(check_keys(l, value, where, &TASK_TABLE_SYMBOL));
    a->kind = TASK_IN;
    a->name = keep(l, ev_json_text(value, "name", ""));
    a->doc = keep(l, ev_json_text(value, "doc", ""));
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(check_name(l, a->name, at));
    (void)snprintf(at, sizeof at, "%s.type", where);
    EV_TRY(
        find_name(l, "type", ev_json_text(value, "type", ""), at, EV_TYPE_COUNT, type_at, &index));
    a->type = (ev_type)index;
    (void)snprintf(at, sizeof at, "%s.count", where);
    EV_TRY(task_read_expression(l, json_object_get(value, "count"), at, &a->count));
    EV_TRY(read_domain(l, value, where, a));
    (void)snprintf(at, sizeof at, "%s.data", where);
    return read_data(l, json_object_get(value, "data"), at, &a->generator, &a->file, a->parameters);
}

/* Reads the symbols behind the arguments. */
static ev_status read_symbols(loader *l, task_argument *arguments) {
    const json_t *list = json_object_get(l->doc->root, "symbols");
    size_t count = json_array_size(list), first = l->t->argument_count;
    EV_TRY(check_size(l, count, 0, TASK_MAX_SYMBOLS, "symbols"));
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

static ev_status read_inputs(loader *l) {
    size_t count = TASK_MAX_ARGUMENTS + TASK_MAX_SYMBOLS;
    task_argument *arguments = EV_NEW_ARRAY(l->arena, task_argument, count);
    if (arguments == NULL)
        return ev_fail_memory(l->err, count * sizeof *arguments);
    l->t->arguments = arguments;
    EV_TRY(read_arguments(l, arguments));
    EV_TRY(task_alias_read(l->t, l->doc, l->err));
    return read_symbols(l, arguments);
}

/* ---- starts ------------------------------------------------------------------------------------
 */

static ev_status read_rule(loader *l, const json_t *start, const char *where, const char *key,
                           const char *out[3]) {
    char at[TASK_MAX_WHERE];
    const json_t *value = json_object_get(start, key);
    (void)snprintf(at, sizeof at, "%s.%s", where, key);
    out[0] = out[1] = out[2] = "1";
    if (!json_is_array(value))
        return task_read_expression(l, value, at, &out[0]);
    EV_TRY(check_size(l, json_array_size(value), 1, 3, at));
    for (size_t i = 0; i < json_array_size(value); i++) {
        (void)snprintf(at, sizeof at, "%s.%s[%zu]", where, key, i);
        EV_TRY(task_read_expression(l, json_array_get(value, i), at, &out[i]));
    }
    return EV_OK;
}

static ev_status read_macro_values(loader *l, const json_t *list, const char *where,
                                   task_macro *m) {
    size_t count = json_array_size(list);
    EV_TRY(check_size(l, count, 1, 64, where));
    int64_t *values = EV_NEW_ARRAY(l->arena, int64_t, count);
    if (values == NULL)
        return ev_fail_memory(l->err, count * sizeof *values);
    bool found = false;
    for (size_t i = 0; i < count; i++) {
        char at[TASK_MAX_WHERE];
        const json_t *value = json_array_get(list, i);
        (void)snprintf(at, sizeof at, "%s[%zu]", where, i);
        if (!json_is_integer(value))
            return ev_json_fail(l->doc, at, l->err, "a macro's value must be an integer");
        values[i] = json_integer_value(value);
        found |= values[i] == m->otherwise;
    }
    m->values = values;
    m->value_count = count;
    if (!found)
        return ev_json_fail(l->doc, where, l->err,
                            "the default %" PRId64 " of %s is not among its values; add it",
                            m->otherwise, m->name);
    return EV_OK;
}

static ev_status read_macros(loader *l, const json_t *list, const char *where, task_start *s) {
    size_t count = json_array_size(list);
    EV_TRY(check_size(l, count, 0, TASK_MAX_MACROS, where));
    task_macro *macros = EV_NEW_ARRAY(l->arena, task_macro, count + 1);
    if (macros == NULL)
        return ev_fail_memory(l->err, count * sizeof *macros);
    for (size_t i = 0; i < count; i++) {
        char at[TASK_MAX_WHERE];
        const json_t *value = json_array_get(list, i);
        (void)snprintf(at, sizeof at, "%s[%zu]", where, i);
        EV_TRY(check_keys(l, value, at, &TASK_TABLE_MACRO));
        macros[i].name = keep(l, ev_json_text(value, "name", ""));
        macros[i].doc = keep(l, ev_json_text(value, "doc", ""));
        macros[i].otherwise = ev_json_integer(value, "default", 0);
        EV_TRY(check_name(l, macros[i].name, at));
        for (size_t j = 0; j < i; j++) {
            if (strcmp(macros[j].name, macros[i].name) == 0)
                return ev_json_fail(l->doc, at, l->err, "a second macro is named %s",
                                    macros[i].name);
        }
        (void)snprintf(at, sizeof at, "%s[%zu].values", where, i);
        EV_TRY(read_macro_values(l, json_object_get(value, "values"), at, &macros[i]));
    }
    s->macros = macros;
    s->macro_count = count;
    return EV_OK;
}

static ev_status read_source(loader *l, const char *name, const char *where, task_start *s) {
    static const char *const endings[] = {".cu", ".ll", ".bc"};
    bool known = false;
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        size_t length = strlen(name), end = strlen(endings[i]);
        known |= length > end && strcmp(name + length - end, endings[i]) == 0;
    }
    if (!known)
        return ev_json_fail(l->doc, where, l->err, "source \"%s\" must end in .cu, .ll or .bc",
                            name);
    char *path = ev_path_join(l->t->folder, name);
    if (path == NULL)
        return ev_fail_memory(l->err, strlen(name));
    s->source = keep(l, path);
    bool there = ev_path_exists(path) && !ev_path_is_dir(path);
    free(path);
    if (!there)
        return ev_json_fail(l->doc, where, l->err,
                            "there is no file \"%s\"; sources are relative to the task file",
                            s->source);
    return EV_OK;
}

/* The start's plan: one launch. */
static ev_status read_plan(loader *l, const json_t *value, const char *where, task_start *s) {
    char at[TASK_MAX_WHERE];
    launch_plan *plan = EV_NEW(l->arena, launch_plan);
    launch_rule *rule = EV_NEW(l->arena, launch_rule);
    if (plan == NULL || rule == NULL)
        return ev_fail_memory(l->err, sizeof *plan + sizeof *rule);
    rule->entry = keep(l, ev_json_text(value, "entry", l->t->name));
    rule->shared = "0";
    EV_TRY(read_rule(l, value, where, "grid", rule->grid));
    EV_TRY(read_rule(l, value, where, "block", rule->block));
    (void)snprintf(at, sizeof at, "%s.shared", where);
    if (json_object_get(value, "shared") != NULL)
        EV_TRY(task_read_expression(l, json_object_get(value, "shared"), at, &rule->shared));
    *plan = (launch_plan){.launches = rule, .launch_count = 1};
    s->plan = plan;
    return EV_OK;
}

static ev_status count_lines(const char *path, size_t *out, ev_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    EV_TRY(ev_file_read(path, &text, &bytes, err));
    size_t lines = bytes > 0 && text[bytes - 1] != '\n';
    for (size_t i = 0; i < bytes; i++)
        lines += text[i] == '\n';
    free(text);
    *out = lines;
    return EV_OK;
}

static ev_status read_assumed(loader *l, const json_t *list, const char *where, task_start *s) {
    size_t count = json_array_size(list), lines = 0;
    uint32_t *assumed = EV_NEW_ARRAY(l->arena, uint32_t, count + 1);
    if (assumed == NULL)
        return ev_fail_memory(l->err, (count + 1) * sizeof *assumed);
    if (count > 0)
        EV_TRY(count_lines(s->source, &lines, l->err));
    for (size_t i = 0; i < count; i++) {
        char at[TASK_MAX_WHERE];
        const json_t *value = json_array_get(list, i);
        json_int_t line = json_integer_value(value);
        (void)snprintf(at, sizeof at, "%s[%zu]", where, i);
        if (!json_is_integer(value) || line < 1 || line > (json_int_t)lines)
            return ev_json_fail(
                l->doc, at, l->err,
                "an assumption is the number of a source line, from 1 to the %zu of "
                "%s",
                lines, s->source);
        assumed[i] = (uint32_t)line;
    }
    s->assumed = assumed;
    s->assumed_count = count;
    return EV_OK;
}

static ev_status read_start(loader *l, const json_t *value, const char *where, task_start *s) {
    char at[TASK_MAX_WHERE];
    EV_TRY(check_keys(l, value, where, &TASK_TABLE_START));
    s->name = keep(l, ev_json_text(value, "name", ""));
    s->doc = keep(l, ev_json_text(value, "doc", ""));
    s->is_reference = ev_json_flag(value, "reference", false);
    (void)snprintf(at, sizeof at, "%s.source", where);
    EV_TRY(read_source(l, ev_json_text(value, "source", ""), at, s));
    EV_TRY(read_plan(l, value, where, s));
    (void)snprintf(at, sizeof at, "%s.assume", where);
    EV_TRY(read_assumed(l, json_object_get(value, "assume"), at, s));
    (void)snprintf(at, sizeof at, "%s.macros", where);
    return read_macros(l, json_object_get(value, "macros"), at, s);
}

static ev_status read_starts(loader *l) {
    const json_t *list = json_object_get(l->doc->root, "starts");
    size_t count = json_array_size(list);
    EV_TRY(check_size(l, count, 1, 64, "starts"));
    task_start *starts = EV_NEW_ARRAY(l->arena, task_start, count);
    if (starts == NULL)
        return ev_fail_memory(l->err, count * sizeof *starts);
    l->t->starts = starts;
    for (size_t i = 0; i < count; i++) {
        char where[TASK_MAX_WHERE];
        (void)snprintf(where, sizeof where, "starts[%zu]", i);
        EV_TRY(read_start(l, json_array_get(list, i), where, &starts[i]));
        l->t->start_count = i;
        if (task_find_start(l->t, starts[i].name) != NULL)
            return ev_json_fail(l->doc, where, l->err, "a second start is named \"%s\"",
                                starts[i].name);
        l->t->start_count = i + 1;
    }
    return EV_OK;
}

/* ---- cases -------------------------------------------------------------------------------------
 */

/* Sets a name of a shape, or replaces its value. */
static ev_status set_shape(loader *l, expr_name *shape, size_t *count, const char *name,
                           expr_value value, const char *where) {
    size_t i = 0;
    while (i < *count && strcmp(shape[i].name, name) != 0)
        i++;
    if (i == TASK_MAX_SHAPE)
        return ev_json_fail(l->doc, where, l->err, "a shape may have %d names at most",
                            TASK_MAX_SHAPE);
    const char *kept = keep(l, name);
    if (kept == NULL)
        return ev_fail_memory(l->err, strlen(name));
    shape[i] = (expr_name){kept, value};
    *count += i == *count;
    return EV_OK;
}

static ev_status take_shape(loader *l, const char *name, const char *where, task_case *c,
                            expr_name *shape) {
    size_t index = 0;
    EV_TRY(find_name(l, "shape", name, where, corpus_shape_count(), shape_at, &index));
    const corpus_shape *from = corpus_shape_at(index);
    c->from = from->name;
    for (size_t i = 0; i < from->count; i++)
        EV_TRY(set_shape(l, shape, &c->shape_count, from->keys[i], expr_of_whole(from->values[i]),
                         where));
    return EV_OK;
}

static ev_status read_shape_object(loader *l, const json_t *object, const char *where, task_case *c,
                                   expr_name *shape) {
    const char *name = NULL;
    json_t *value = NULL;
    char at[TASK_MAX_WHERE];
    (void)snprintf(at, sizeof at, "%s.from", where);
    const json_t *from = json_object_get(object, "from");
    if (from != NULL && !json_is_string(from))
        return ev_json_fail(l->doc, at, l->err, "\"from\" must be the name of a shape");
    if (from != NULL)
        EV_TRY(take_shape(l, json_string_value(from), at, c, shape));
    json_object_foreach((json_t *)object, name, value) {
        if (strcmp(name, "from") == 0)
            continue;
        (void)snprintf(at, sizeof at, "%s.%s", where, name);
        EV_TRY(check_name(l, name, at));
        if (!json_is_number(value))
            return ev_json_fail(l->doc, at, l->err, "a shape's value must be a number");
        expr_value number = json_is_integer(value) ? expr_of_whole(json_integer_value(value))
                                                   : expr_of_real(json_real_value(value));
        EV_TRY(set_shape(l, shape, &c->shape_count, name, number, at));
    }
    return EV_OK;
}

static ev_status read_shape(loader *l, const json_t *value, const char *where, task_case *c) {
    expr_name *shape = EV_NEW_ARRAY(l->arena, expr_name, TASK_MAX_SHAPE);
    if (shape == NULL)
        return ev_fail_memory(l->err, TASK_MAX_SHAPE * sizeof *shape);
    c->shape = shape;
    if (json_is_string(value))
        return take_shape(l, json_string_value(value), where, c, shape);
    if (json_is_object(value))
        return read_shape_object(l, value, where, c, shape);
    return ev_json_fail(l->doc, where, l->err,
                        "a shape is an object of numbers or the name of a shape");
}

static ev_status find_input(loader *l, const char *name, const char *where, size_t *out) {
    for (size_t i = 0; i < l->t->argument_count + l->t->symbol_count; i++) {
        const task_argument *a = &l->t->arguments[i];
        if (strcmp(a->name, name) == 0 && (a->kind == TASK_IN || a->kind == TASK_INOUT)) {
            *out = i;
            return EV_OK;
        }
    }
    return ev_json_fail(
        l->doc, where, l->err,
        "\"%s\" is no input of the task; name a symbol, or an argument of kind in or "
        "inout",
        name);
}

static ev_status read_case_data(loader *l, const json_t *object, const char *where, task_case *c) {
    const char *name = NULL;
    json_t *value = NULL;
    size_t count = json_object_size(object);
    task_data *data = EV_NEW_ARRAY(l->arena, task_data, count + 1);
    if (data == NULL)
        return ev_fail_memory(l->err, count * sizeof *data);
    json_object_foreach((json_t *)object, name, value) {
        char at[TASK_MAX_WHERE];
        task_data *d = &data[c->data_count];
        (void)snprintf(at, sizeof at, "%s.%s", where, name);
        EV_TRY(find_input(l, name, at, &d->argument));
        EV_TRY(read_data(l, value, at, &d->generator, &d->file, d->parameters));
        c->data_count++;
    }
    c->data = data;
    return EV_OK;
}

/* Reads a whole number from `low` to `high`. */
static ev_status read_input(loader *l, const json_t *object, const char *where, const char *name,
                            int64_t low, int64_t high, int64_t *out) {
    char at[TASK_MAX_WHERE];
    *out = ev_json_integer(object, name, 0);
    (void)snprintf(at, sizeof at, "%s.%s", where, name);
    if (*out >= low && *out <= high)
        return EV_OK;
    return ev_json_fail(l->doc, at, l->err, "%" PRId64 " must be from %" PRId64 " to %" PRId64,
                        *out, low, high);
}

static ev_status read_case_inputs(loader *l, const json_t *object, const char *where,
                                  task_case *c) {
    char at[TASK_MAX_WHERE];
    size_t variation = 0;
    int64_t fresh = 0, power = 0, schedule = 0;
    if (object == NULL)
        return EV_OK;
    EV_TRY(check_keys(l, object, where, &TASK_TABLE_INPUTS));
    if (c->use == TASK_TIME)
        return ev_json_fail(l->doc, where, l->err, "a timed case has no \"inputs\"; use \"check\"");
    (void)snprintf(at, sizeof at, "%s.variation", where);
    EV_TRY(find_name(l, "variation", ev_json_text(object, "variation", "plain"), at,
                     TASK_VARIATIONS, variation_at, &variation));
    EV_TRY(read_input(l, object, where, "power", -TASK_POWER_MOST, TASK_POWER_MOST, &power));
    EV_TRY(read_input(l, object, where, "fresh", 0, INT32_MAX, &fresh));
    EV_TRY(read_input(l, object, where, "schedule", 0, INT64_MAX, &schedule));
    c->inputs = (task_case_inputs){.variation = (task_variation)variation,
                                   .power = (int)power,
                                   .fresh = (uint32_t)fresh,
                                   .schedule = (uint64_t)schedule};
    (void)snprintf(at, sizeof at, "%s.power", where);
    if (power != 0 && variation != TASK_SCALED)
        return ev_json_fail(l->doc, at, l->err,
                            "only the variation \"scaled\" has a power; remove it");
    return EV_OK;
}

static ev_status read_case_weight(loader *l, const json_t *value, const char *where, task_case *c) {
    c->weight = ev_json_number(value, "weight", 1);
    if (json_object_get(value, "weight") != NULL && c->use != TASK_TIME)
        return ev_json_fail(l->doc, where, l->err, "only a case of use \"time\" has a weight");
    if (!(c->weight > 0))
        return ev_json_fail(l->doc, where, l->err, "a weight is above 0");
    return EV_OK;
}

static ev_status read_case(loader *l, const json_t *value, const char *where, task_case *c) {
    char at[TASK_MAX_WHERE];
    size_t index = 0;
    EV_TRY(check_keys(l, value, where, &TASK_TABLE_CASE));
    c->name = keep(l, ev_json_text(value, "name", ""));
    (void)snprintf(at, sizeof at, "%s.split", where);
    EV_TRY(find_name(l, "split", ev_json_text(value, "split", ""), at, CORPUS_SPLIT_COUNT, split_at,
                     &index));
    c->split = (corpus_split)index;
    (void)snprintf(at, sizeof at, "%s.use", where);
    EV_TRY(find_name(l, "use", ev_json_text(value, "use", ""), at, TASK_SMOKE + 1, use_at, &index));
    c->use = (task_case_use)index;
    (void)snprintf(at, sizeof at, "%s.shape", where);
    EV_TRY(read_shape(l, json_object_get(value, "shape"), at, c));
    (void)snprintf(at, sizeof at, "%s.data", where);
    EV_TRY(read_case_data(l, json_object_get(value, "data"), at, c));
    (void)snprintf(at, sizeof at, "%s.weight", where);
    EV_TRY(read_case_weight(l, value, at, c));
    (void)snprintf(at, sizeof at, "%s.inputs", where);
    return read_case_inputs(l, json_object_get(value, "inputs"), at, c);
}

static ev_status read_cases(loader *l) {
    const json_t *list = json_object_get(l->doc->root, "cases");
    size_t count = json_array_size(list);
    EV_TRY(check_size(l, count, 1, 4096, "cases"));
    task_case *cases = EV_NEW_ARRAY(l->arena, task_case, count);
    if (cases == NULL)
        return ev_fail_memory(l->err, count * sizeof *cases);
    l->t->cases = cases;
    for (size_t i = 0; i < count; i++) {
        char where[TASK_MAX_WHERE];
        (void)snprintf(where, sizeof where, "cases[%zu]", i);
        EV_TRY(read_case(l, json_array_get(list, i), where, &cases[i]));
        l->t->case_count = i;
        (void)snprintf(where, sizeof where, "cases[%zu].name", i);
        if (task_find_case(l->t, cases[i].name) != NULL)
            return ev_json_fail(l->doc, where, l->err, "a second case is named \"%s\"",
                                cases[i].name);
        l->t->case_count = i + 1;
    }
    return EV_OK;
}

/* ---- tolerance ---------------------------------------------------------------------------------
 */

static ev_status read_tolerance(loader *l) {
    const json_t *value = json_object_get(l->doc->root, "tolerance");
    task_tolerance *to = &l->t->tolerance;
    EV_TRY(check_keys(l, value, "tolerance", &TASK_TABLE_TOLERANCE));
    to->relative_l2 = ev_json_number(value, "relative_l2", 0);
    to->scaled_max = ev_json_number(value, "scaled_max", 0);
    to->max_abs = ev_json_number(value, "max_abs", 0);
    to->baseline_factor = ev_json_number(value, "baseline_factor", 0);
    to->depth = "1";
    if (json_object_get(value, "depth") != NULL)
        EV_TRY(task_read_expression(l, json_object_get(value, "depth"), "tolerance.depth",
                                    &to->depth));
    if (to->relative_l2 < 0 || to->scaled_max < 0 || to->max_abs < 0 || to->baseline_factor < 0)
        return ev_json_fail(l->doc, "tolerance", l->err, "a bound is negative");
    return EV_OK;
}

/* ---- loading -----------------------------------------------------------------------------------
 */

static ev_status read_head(loader *l, const char *path) {
    const json_t *root = l->doc->root;
    EV_TRY(check_keys(l, root, "", &TASK_TABLE_TASK));
    char *folder = ev_path_dir(path);
    if (folder == NULL)
        return ev_fail_memory(l->err, strlen(path));
    l->t->folder = keep(l, folder);
    free(folder);
    l->t->path = keep(l, path);
    l->t->json = keep(l, l->doc->text);
    l->t->name = keep(l, ev_json_text(root, "name", ""));
    l->t->family = keep(l, ev_json_text(root, "family", ""));
    l->t->doc = keep(l, ev_json_text(root, "doc", ""));
    return check_name(l, l->t->name, "name");
}

ev_status task_read_all(task_box *box, const char *path, const ev_json *doc, ev_error *err) {
    loader l = {doc, box->arena, &box->public, err};
    EV_TRY(read_head(&l, path));
    EV_TRY(read_inputs(&l));
    EV_TRY(read_starts(&l));
    EV_TRY(read_cases(&l));
    EV_TRY(read_tolerance(&l));
    EV_TRY(task_work_read(&l));
    if (ev_arena_failed(box->arena))
        return ev_fail_memory(err, ev_arena_bytes(box->arena));
    EV_TRY(task_check_all(&box->public, doc, err));
    EV_TRY(task_oracle_set(box, ev_json_text(doc->root, "oracle", ""), doc, err));
    if (ev_arena_failed(box->arena))
        return ev_fail_memory(err, ev_arena_bytes(box->arena));
    return task_identity_set(&box->public, err);
}
