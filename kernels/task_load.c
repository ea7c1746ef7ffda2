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

ev_status task_check_keys(task_loader *l, const json_t *object, const char *where,
                          const task_table *table) {
    return ev_json_check(l->doc, object, where, table->keys, table->count, l->err);
}

const char *task_keep(task_loader *l, const char *text) {
    return text ? ev_arena_strdup(l->arena, text) : NULL;
}

ev_status task_check_name(task_loader *l, const char *name, const char *where) {
    if (expr_is_name(name))
        return EV_OK;
    return ev_json_fail(l->doc, where, l->err,
                        "\"%s\" is no name; use letters, digits and _, not a digit first", name);
}

ev_status task_check_size(task_loader *l, size_t count, size_t low, size_t high,
                          const char *where) {
    if (count >= low && count <= high)
        return EV_OK;
    return ev_json_fail(l->doc, where, l->err, "%zu entries; there must be %zu to %zu", count, low,
                        high);
}

ev_status task_read_expression(loader *l, const json_t *value, const char *where,
                               const char **out) {
    if (json_is_string(value))
        *out = task_keep(l, json_string_value(value));
    else if (json_is_integer(value))
        *out = ev_arena_printf(l->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        *out = ev_arena_printf(l->arena, "%.17g", json_real_value(value));
    else
        return ev_json_fail(l->doc, where, l->err, "an expression must be text or a number");
    return EV_OK;
}

ev_status task_find_name(task_loader *l, const char *what, const char *name, const char *where,
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
ev_status task_read_data(task_loader *l, const json_t *value, const char *where,
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
    EV_TRY(
        task_find_name(l, "generator", name, at, corpus_generator_count(), generator_at, &index));
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

/* ---- starts ------------------------------------------------------------------------------------
 */

static ev_status read_sizes(loader *l, const json_t *start, const char *where, const char *key,
                            const char *out[3]) {
    char at[TASK_MAX_WHERE];
    const json_t *value = json_object_get(start, key);
    (void)snprintf(at, sizeof at, "%s.%s", where, key);
    out[0] = out[1] = out[2] = "1";
    if (!json_is_array(value))
        return task_read_expression(l, value, at, &out[0]);
    EV_TRY(task_check_size(l, json_array_size(value), 1, 3, at));
    for (size_t i = 0; i < json_array_size(value); i++) {
        (void)snprintf(at, sizeof at, "%s.%s[%zu]", where, key, i);
        EV_TRY(task_read_expression(l, json_array_get(value, i), at, &out[i]));
    }
    return EV_OK;
}

static ev_status read_macro_values(loader *l, const json_t *list, const char *where,
                                   task_macro *m) {
    size_t count = json_array_size(list);
    EV_TRY(task_check_size(l, count, 1, 64, where));
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
    EV_TRY(task_check_size(l, count, 0, TASK_MAX_MACROS, where));
    task_macro *macros = EV_NEW_ARRAY(l->arena, task_macro, count + 1);
    if (macros == NULL)
        return ev_fail_memory(l->err, count * sizeof *macros);
    for (size_t i = 0; i < count; i++) {
        char at[TASK_MAX_WHERE];
        const json_t *value = json_array_get(list, i);
        (void)snprintf(at, sizeof at, "%s[%zu]", where, i);
        EV_TRY(task_check_keys(l, value, at, &TASK_TABLE_MACRO));
        macros[i].name = task_keep(l, ev_json_text(value, "name", ""));
        macros[i].doc = task_keep(l, ev_json_text(value, "doc", ""));
        macros[i].otherwise = ev_json_integer(value, "default", 0);
        EV_TRY(task_check_name(l, macros[i].name, at));
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
    s->source = task_keep(l, path);
    bool there = ev_path_exists(path) && !ev_path_is_dir(path);
    free(path);
    if (!there)
        return ev_json_fail(l->doc, where, l->err,
                            "there is no file \"%s\"; sources are relative to the task file",
                            s->source);
    return EV_OK;
}

/* An entry with template arguments is an instance of the template that it names. */
static ev_status read_entry(task_loader *l, const char *entry, const char *where, launch_rule *rule,
                            task_start *s) {
    char at[TASK_MAX_WHERE];
    size_t length = 0;
    rule->entry = task_keep(l, entry);
    if (strchr(entry, '<') == NULL)
        return EV_OK;
    const char *name = task_entry_name(entry, &length);
    (void)snprintf(at, sizeof at, "%s.entry", where);
    if (length == 0)
        return ev_json_fail(l->doc, at, l->err,
                            "\"%s\" is no instance of a template, like \"scale<float, 4>\"", entry);
    s->instance = rule->entry;
    rule->entry = ev_arena_strndup(l->arena, name, length);
    return EV_OK;
}

ev_status task_read_rule(loader *l, const json_t *value, const char *where, launch_rule *rule) {
    static const char *const needed[] = {"grid", "block"};
    char at[TASK_MAX_WHERE];
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (json_object_get(value, needed[i]) == NULL)
            return ev_json_fail(l->doc, where, l->err,
                                "the key '%s' is missing; a launch has \"grid\" and \"block\"",
                                needed[i]);
    }
    EV_TRY(read_sizes(l, value, where, "grid", rule->grid));
    EV_TRY(read_sizes(l, value, where, "block", rule->block));
    rule->shared = "0";
    (void)snprintf(at, sizeof at, "%s.shared", where);
    if (json_object_get(value, "shared") != NULL)
        EV_TRY(task_read_expression(l, json_object_get(value, "shared"), at, &rule->shared));
    return EV_OK;
}

/* The macros are read, because the main launch depends on them. */
static ev_status read_steps(loader *l, const json_t *value, const char *where, task_start *s) {
    launch_plan *plan = NULL;
    EV_TRY(task_steps_read(l, value, where, &plan));
    EV_TRY(task_steps_choose(l->t, s, plan, l->err));
    s->plan = plan;
    return EV_OK;
}

/* The start's plan: its steps, or one launch. */
static ev_status read_plan(loader *l, const json_t *value, const char *where, task_start *s) {
    if (json_object_get(value, "steps") != NULL || json_object_get(value, "scratch") != NULL)
        return read_steps(l, value, where, s);
    launch_plan *plan = EV_NEW(l->arena, launch_plan);
    launch_rule *rule = EV_NEW(l->arena, launch_rule);
    if (plan == NULL || rule == NULL)
        return ev_fail_memory(l->err, sizeof *plan + sizeof *rule);
    EV_TRY(read_entry(l, ev_json_text(value, "entry", l->t->name), where, rule, s));
    EV_TRY(task_read_rule(l, value, where, rule));
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
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_START));
    s->name = task_keep(l, ev_json_text(value, "name", ""));
    s->doc = task_keep(l, ev_json_text(value, "doc", ""));
    s->is_reference = ev_json_flag(value, "reference", false);
    (void)snprintf(at, sizeof at, "%s.source", where);
    EV_TRY(read_source(l, ev_json_text(value, "source", ""), at, s));
    (void)snprintf(at, sizeof at, "%s.assume", where);
    EV_TRY(read_assumed(l, json_object_get(value, "assume"), at, s));
    (void)snprintf(at, sizeof at, "%s.macros", where);
    EV_TRY(read_macros(l, json_object_get(value, "macros"), at, s));
    return read_plan(l, value, where, s);
}

static ev_status read_starts(loader *l) {
    const json_t *list = json_object_get(l->doc->root, "starts");
    size_t count = json_array_size(list);
    EV_TRY(task_check_size(l, count, 1, 64, "starts"));
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
    const char *kept = task_keep(l, name);
    if (kept == NULL)
        return ev_fail_memory(l->err, strlen(name));
    shape[i] = (expr_name){kept, value};
    *count += i == *count;
    return EV_OK;
}

static ev_status take_shape(loader *l, const char *name, const char *where, task_case *c,
                            expr_name *shape) {
    size_t index = 0;
    EV_TRY(task_find_name(l, "shape", name, where, corpus_shape_count(), shape_at, &index));
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
        EV_TRY(task_check_name(l, name, at));
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
    for (size_t i = 0; i < task_all_count(l->t); i++) {
        const task_argument *a = &l->t->arguments[i];
        if (task_argument_has_data(a) && strcmp(a->name, name) == 0) {
            *out = i;
            return EV_OK;
        }
    }
    return ev_json_fail(l->doc, where, l->err,
                        "\"%s\" is no input of the task; name a symbol, an argument of kind in or "
                        "inout, or a field "
                        "of such a buffer as BUFFER.FIELD",
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
        EV_TRY(task_read_data(l, value, at, &d->generator, &d->file, d->parameters));
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
    EV_TRY(task_check_keys(l, object, where, &TASK_TABLE_INPUTS));
    if (c->use == TASK_TIME)
        return ev_json_fail(l->doc, where, l->err, "a timed case has no \"inputs\"; use \"check\"");
    (void)snprintf(at, sizeof at, "%s.variation", where);
    EV_TRY(task_find_name(l, "variation", ev_json_text(object, "variation", "plain"), at,
                          TASK_VARIATIONS, variation_at, &variation));
    EV_TRY(read_input(l, object, where, "power", -TASK_POWER_MOST, TASK_POWER_MOST, &power));
    EV_TRY(read_input(l, object, where, "fresh", 0, INT32_MAX, &fresh));
    EV_TRY(read_input(l, object, where, "schedule", 0, INT64_MAX, &schedule));
    c->inputs = (task_case_inputs){.variation = (task_variation)variation,
                                   .power = (int)power,
                                   .fresh = (uint32_t)fresh,
                                   .schedule = (uint64_t)schedule};
    (void)snprintf(at, sizeof at, "%s.power", where);
    bool aliases = task_variation_aliases((task_variation)variation);
    if (power != 0 && variation != TASK_SCALED && !aliases)
        return ev_json_fail(l->doc, at, l->err,
                            "only \"scaled\" and the variations with a shared buffer have a power; "
                            "remove it");
    if (power < 0 && aliases)
        return ev_json_fail(
            l->doc, at, l->err,
            "the power of this variation is the number of a pair of arguments; give one "
            "from 0 on");
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
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_CASE));
    c->name = task_keep(l, ev_json_text(value, "name", ""));
    (void)snprintf(at, sizeof at, "%s.split", where);
    EV_TRY(task_find_name(l, "split", ev_json_text(value, "split", ""), at, CORPUS_SPLIT_COUNT,
                          split_at, &index));
    c->split = (corpus_split)index;
    (void)snprintf(at, sizeof at, "%s.use", where);
    EV_TRY(task_find_name(l, "use", ev_json_text(value, "use", ""), at, TASK_SMOKE + 1, use_at,
                          &index));
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
    EV_TRY(task_check_size(l, count, 1, 4096, "cases"));
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
    EV_TRY(task_check_keys(l, value, "tolerance", &TASK_TABLE_TOLERANCE));
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
    EV_TRY(task_check_keys(l, root, "", &TASK_TABLE_TASK));
    char *folder = ev_path_dir(path);
    if (folder == NULL)
        return ev_fail_memory(l->err, strlen(path));
    l->t->folder = task_keep(l, folder);
    free(folder);
    l->t->path = task_keep(l, path);
    l->t->json = task_keep(l, l->doc->text);
    l->t->name = task_keep(l, ev_json_text(root, "name", ""));
    l->t->family = task_keep(l, ev_json_text(root, "family", ""));
    l->t->doc = task_keep(l, ev_json_text(root, "doc", ""));
    return task_check_name(l, l->t->name, "name");
}

ev_status task_read_all(task_box *box, const char *path, const ev_json *doc, ev_error *err) {
    loader l = {.doc = doc, .arena = box->arena, .t = &box->public, .err = err};
    EV_TRY(read_head(&l, path));
    EV_TRY(task_ranks_read(&l));
    EV_TRY(task_read_inputs(&l));
    EV_TRY(read_cases(&l));
    EV_TRY(read_starts(&l));
    EV_TRY(read_tolerance(&l));
    EV_TRY(task_work_read(&l));
    if (ev_arena_failed(box->arena))
        return ev_fail_memory(err, ev_arena_bytes(box->arena));
    EV_TRY(task_check_all(&box->public, doc, err));
    EV_TRY(task_oracle_set(box, ev_json_text(doc->root, "oracle", ""), doc, err));
    if (ev_arena_failed(box->arena))
        return ev_fail_memory(err, ev_arena_bytes(box->arena));
    EV_TRY(task_headers_find(&l));
    return task_identity_set(&box->public, err);
}
