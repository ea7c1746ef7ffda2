/* Tasks after loading: finds their parts, and evaluates their expressions at a case. */
#include "kernels/task_private.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS (INT64_C(1) << 40)

static const char *const KINDS[] = {"in", "out", "inout", "scalar"};
static const char *const USES[] = {"check", "time", "smoke"};

const char *task_argument_kind_name(task_argument_kind kind) {
    return KINDS[kind];
}
const char *task_case_use_name(task_case_use use) {
    return USES[use];
}

bool task_variation_aliases(task_variation variation) {
    static const bool does[] = {
        false,
#define VARIATION(id, name, words, is_benign, aliases) aliases,
#include "kernels/variations.def"
#undef VARIATION
    };
    return does[variation];
}

const char *task_variation_name(task_variation variation) {
    static const char *const names[] = {
        "plain",
#define VARIATION(id, name, words, is_benign, aliases) name,
#include "kernels/variations.def"
#undef VARIATION
    };
    return names[variation];
}

void task_free(task *t) {
    if (t == NULL)
        return;
    task_box *box = (task_box *)t;
    task_oracle_close(box);
    ev_arena_free(box->arena);
    free(box);
}

const task_start *task_find_start(const task *t, const char *name) {
    for (size_t i = 0; i < t->start_count; i++) {
        if (strcmp(t->starts[i].name, name) == 0)
            return &t->starts[i];
    }
    return NULL;
}

const task_case *task_find_case(const task *t, const char *name) {
    for (size_t i = 0; i < t->case_count; i++) {
        if (strcmp(t->cases[i].name, name) == 0)
            return &t->cases[i];
    }
    return NULL;
}

/* ---- scopes ------------------------------------------------------------------------------------
 */

static void scope_add(task_scope *room, const char *name, expr_value value) {
    assert(room->scope.count < TASK_MAX_SCOPE);
    room->names[room->scope.count++] = (expr_name){name, value};
}

/* The names that expressions see: the shape's, then the scalars up to `end` that the shape does not
 * name. A scalar has its value as written, not as rounded to its type. */
static ev_status scope_of(const task *t, const task_case *c, const task_argument *end,
                          task_scope *room, ev_error *err) {
    room->scope = (expr_scope){.names = room->names};
    for (size_t i = 0; i < c->shape_count; i++)
        scope_add(room, c->shape[i].name, c->shape[i].value);
    for (size_t i = 0; i < t->argument_count && &t->arguments[i] != end; i++) {
        const task_argument *a = &t->arguments[i];
        if (a->kind != TASK_SCALAR || a->is_rank || expr_scope_find(&room->scope, a->name) != NULL)
            continue;
        expr_value value;
        ev_status status = expr_eval(a->value, &room->scope, &value, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "scalar %s", a->name);
        scope_add(room, a->name, value);
    }
    return EV_OK;
}

ev_status task_case_scope(const task *t, const task_case *c, task_scope *out, ev_error *err) {
    return scope_of(t, c, NULL, out, err);
}

/* ---- arguments ---------------------------------------------------------------------------------
 */

ev_status task_argument_count_of(const task *t, const task_argument *argument, const task_case *c,
                                 uint64_t *out, ev_error *err) {
    assert(argument->kind != TASK_SCALAR);
    task_scope room;
    int64_t count = 0;
    uint32_t ranks = 1;
    EV_TRY(task_ranks_of(t, c, &ranks, err));
    ev_status status = scope_of(t, c, NULL, &room, err);
    if (status == EV_OK)
        status = expr_eval_whole(argument->count, &room.scope, 1, MAX_ELEMENTS, &count, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, length of %s", c->name, argument->name);
    *out = (uint64_t)count * ranks;
    return EV_OK;
}

ev_status task_argument_pitch_of(const task *t, const task_argument *argument, const task_case *c,
                                 uint64_t *row, uint64_t *stride, ev_error *err) {
    task_scope room;
    int64_t own = 0, all = 0;
    *row = *stride = 0;
    if (argument->row == NULL)
        return EV_OK;
    ev_status status = scope_of(t, c, NULL, &room, err);
    if (status == EV_OK)
        status = expr_eval_whole(argument->row, &room.scope, 1, MAX_ELEMENTS, &own, err);
    if (status == EV_OK)
        status = expr_eval_whole(argument->stride, &room.scope, own, MAX_ELEMENTS, &all, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, pitch of %s", c->name, argument->name);
    *row = (uint64_t)own;
    *stride = (uint64_t)all;
    return EV_OK;
}

ev_status task_argument_value_of(const task *t, const task_argument *argument, const task_case *c,
                                 expr_value *out, ev_error *err) {
    assert(argument->kind == TASK_SCALAR);
    task_scope room;
    ev_status status = scope_of(t, c, argument, &room, err);
    if (status == EV_OK)
        status = expr_eval_as(argument->value, argument->type, &room.scope, out, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, value of %s", c->name, argument->name);
    return EV_OK;
}

const char *task_entry_name(const char *entry, size_t *length) {
    size_t end = strcspn(entry, "<"), bytes = strlen(entry), begin;
    *length = 0;
    int depth = 0;
    for (size_t i = end; i < bytes; i++) {
        depth += (entry[i] == '<') - (entry[i] == '>');
        if (depth < 0 || (depth == 0 && i + 1 < bytes) || strchr(";{}\n\"", entry[i]) != NULL)
            return entry;
    }
    while (end > 0 && entry[end - 1] == ' ')
        end--;
    for (begin = end; begin > 0 && (isalnum((unsigned char)entry[begin - 1]) ||
                                    strchr("_$", entry[begin - 1]) != NULL);)
        begin--;
    *length = depth == 0 ? end - begin : 0;
    return entry + begin;
}

uint64_t task_bits_of_parameters(const task *t, uint64_t parameters) {
    uint64_t bits = 0;
    for (size_t i = 0; i < t->argument_count && i < 64; i++)
        bits |= (parameters >> t->arguments[i].parameter & 1) << i;
    return bits;
}

/* The case's own data for an argument, else the argument's. */
typedef struct own_data {
    const corpus_generator *generator;
    const corpus_recorded *file;
    const char *const *parameters;
} own_data;

static own_data data_of(const task *t, const task_argument *argument, const task_case *c) {
    for (size_t i = 0; i < c->data_count; i++) {
        const task_data *d = &c->data[i];
        if (&t->arguments[d->argument] == argument)
            return (own_data){d->generator, d->file, d->parameters};
    }
    return (own_data){argument->generator, argument->file, argument->parameters};
}

bool task_member_is_filed(const task *t, const task_argument *member, const task_case *c) {
    return member->owner != NULL && data_of(t, member->owner, c).file != NULL;
}

bool task_generator_is_constant(const corpus_generator *generator) {
    static const char *const names[] = {"zeros", "ones", "constant"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(generator->name, names[i]) == 0)
            return true;
    }
    return false;
}

bool task_argument_hides(const task *t, const task_argument *argument) {
    if (argument->kind != TASK_INOUT || argument->begins_constant)
        return false;
    for (size_t i = 0; i < t->case_count; i++) {
        const task_case *c = &t->cases[i];
        bool is_small = c->split == CORPUS_SEARCH && c->use != TASK_TIME;
        if (is_small && (task_member_is_filed(t, argument, c) ||
                         !task_generator_is_constant(data_of(t, argument, c).generator)))
            return false;
    }
    return true;
}

bool task_warning(const task *t, size_t index, ev_str *out) {
    const task_argument *a = &t->arguments[index];
    if (!task_argument_hides(t, a))
        return false;
    ev_str_printf(
        out,
        "warning: task %s: the inout argument '%s' begins with the same number everywhere "
        "(\"%s\"), so += and = are alike; the gates also try other contents, if the baseline is "
        "right there; give it other data, or say \"initial\": \"constant\" if every caller begins "
        "so",
        t->name, a->name, a->generator->name);
    return true;
}

static ev_status parameter_values(const corpus_generator *generator, const char *const *expressions,
                                  const expr_scope *scope, double *values, ev_error *err) {
    for (size_t i = 0; i < generator->parameter_count; i++) {
        values[i] = generator->parameters[i].otherwise;
        if (expressions[i] == NULL)
            continue;
        expr_value value;
        ev_status status = expr_eval(expressions[i], scope, &value, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "parameter %s", generator->parameters[i].name);
        values[i] = value.real;
    }
    return EV_OK;
}

ev_status task_argument_data_of(const task *t, const task_argument *argument, const task_case *c,
                                uint32_t fresh, corpus_request *out, ev_error *err) {
    bool is_filed = task_member_is_filed(t, argument, c);
    const own_data own = data_of(t, is_filed ? argument->owner : argument, c);
    assert(own.generator != NULL);
    corpus_request made = {
        .generator = own.generator,
        .file = own.file,
        .type = argument->type,
        .seed = corpus_seed(c->split, t->name, c->name, argument->name, fresh + c->inputs.fresh),
    };
    EV_TRY(task_argument_count_of(t, argument, c, &made.length, err));
    *out = made;
    if (is_filed) /* checked as that of the buffer */
        return EV_OK;
    task_scope room;
    ev_status status = scope_of(t, c, NULL, &room, err);
    if (status == EV_OK)
        status = parameter_values(own.generator, own.parameters, &room.scope, made.values, err);
    if (status == EV_OK)
        status = corpus_request_check(&made, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, data of %s", c->name, argument->name);
    *out = made;
    return EV_OK;
}

double task_relative_l2(const task *t) {
    double most = -1;
    for (size_t i = 0; i < task_all_count(t); i++) {
        const task_argument *a = &t->arguments[i];
        bool is_output = a->kind == TASK_OUT || a->kind == TASK_INOUT;
        bool has_l2 = ev_type_is_float(a->type) || (!a->has_tolerance && t->tolerance.max_abs > 0);
        if (is_output && a->member_count == 0 && has_l2)
            most = fmax(most, a->has_tolerance ? a->relative_l2 : t->tolerance.relative_l2);
    }
    return most >= 0 ? most : t->tolerance.relative_l2;
}

ev_status task_depth_of(const task *t, const task_case *c, double *out, ev_error *err) {
    task_scope room;
    expr_value value;
    ev_status status = scope_of(t, c, NULL, &room, err);
    if (status == EV_OK)
        status = expr_eval(t->tolerance.depth, &room.scope, &value, err);
    if (status == EV_OK && value.real < 1)
        status = ev_fail(err, EV_BAD, "expression \"%.200s\" is %.17g; it must be at least 1",
                         t->tolerance.depth, value.real);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, depth of the tolerance", c->name);
    *out = value.real;
    return EV_OK;
}

/* ---- launches ----------------------------------------------------------------------------------
 */

static int64_t macro_value(const task_macro *macro, const expr_name *macros, size_t macro_count) {
    for (size_t i = 0; i < macro_count; i++) {
        if (strcmp(macros[i].name, macro->name) == 0)
            return macros[i].value.whole;
    }
    return macro->otherwise;
}

ev_status task_launch_scope(const task *t, const task_start *start, const expr_name *macros,
                            size_t macro_count, const task_case *c, task_scope *out,
                            ev_error *err) {
    ev_status status = scope_of(t, c, NULL, out, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "start %s, case %s", start->name, c->name);
    for (size_t i = 0; i < start->macro_count; i++) {
        int64_t chosen = macro_value(&start->macros[i], macros, macro_count);
        scope_add(out, start->macros[i].name, expr_of_whole(chosen));
    }
    return EV_OK;
}

ev_status task_launch_of(const task *t, const task_start *start, const launch_plan *plan,
                         const expr_name *macros, size_t macro_count, const task_case *c,
                         launch_geometry *out, ev_error *err) {
    assert(launch_plan_is_plain(plan));
    task_scope room;
    EV_TRY(task_launch_scope(t, start, macros, macro_count, c, &room, err));
    ev_status status = launch_plan_geometry(plan, 0, &room.scope, &LAUNCH_LIMITS_CUDA, out, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "start %s, case %s", start->name, c->name);
    return EV_OK;
}
