/* Domains: the values that every caller of a kernel keeps an input within, at a case. */
#include "kernels/task_private.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a domain may say ---- */

ev_status task_domain_check(const task_argument *a, const ev_json *doc, const char *where,
                            ev_error *err) {
    const task_domain *d = &a->domain;
    bool is_float = ev_type_is_float(a->type), is_scalar = a->kind == TASK_SCALAR;
    bool has_bound = d->min != NULL || d->max != NULL;
    if (is_scalar && (d->sorted || d->permutation || d->distinct))
        return ev_json_fail(doc, where, err,
                            "the scalar %s has one value; leave \"sorted\", \"permutation\" and "
                            "\"distinct\" out",
                            a->name);
    if (!is_float && d->finite)
        return ev_json_fail(doc, where, err,
                            "an integer is always finite; leave \"finite\" out of the domain of %s",
                            a->name);
    if (is_float && d->permutation)
        return ev_json_fail(doc, where, err,
                            "%s holds floats, and a permutation is of whole numbers; say "
                            "\"distinct\", or give the argument an integer type",
                            a->name);
    if (d->permutation && (has_bound || d->positive || d->sorted || d->distinct))
        return ev_json_fail(doc, where, err,
                            "a permutation holds each of 0 to count - 1 once; leave the other keys "
                            "of the domain of %s out",
                            a->name);
    return EV_OK;
}

/* ---- the range at a case ---- */

static ev_status bound_of(const char *expression, const char *name, const expr_scope *scope,
                          double *out, ev_error *err) {
    expr_value value;
    if (expression == NULL)
        return EV_OK;
    ev_status status = expr_eval(expression, scope, &value, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "\"%s\"", name);
    *out = value.real;
    return EV_OK;
}

/* A bound is a value of the argument's type, as the argument is. */
static double rounded_to(ev_type type, double bound) {
    if (!ev_type_is_float(type) || !isfinite(bound))
        return bound;
    uint64_t room = 0;
    ev_type_set(type, &room, 0, bound);
    return ev_type_get(type, &room, 0);
}

/* What the generator of an integer buffer promises of the elements. */
static ev_status add_generated(const task *t, const task_argument *argument, const task_case *c,
                               task_range *range, ev_error *err) {
    corpus_request request;
    EV_TRY(task_argument_data_of(t, argument, c, 0, &request, err));
    if (strcmp(request.generator->name, "uniform") == 0) {
        range->low = fmin(request.values[0], request.values[1]);
        range->high = fmax(request.values[0], request.values[1]);
    } else if (strcmp(request.generator->name, "dropout_indices") == 0) {
        range->low = 0;
        range->high = request.values[0] - 1;
        range->sorted = range->distinct =
            request.values[1] == 0 || request.values[1] >= (double)request.length;
    } else if (strcmp(request.generator->name, "row_offsets") == 0) {
        range->low = 0;
        range->high = request.values[0];
        range->sorted = true;
    }
    return EV_OK;
}

static ev_status permutation_of(const task *t, const task_argument *argument, const task_case *c,
                                task_range *range, ev_error *err) {
    uint64_t count = 0;
    EV_TRY(task_argument_count_of(t, argument, c, &count, err));
    range->low = 0;
    range->high = (double)count - 1;
    range->distinct = true;
    return EV_OK;
}

static ev_status add_given(const task *t, const task_argument *argument, const task_case *c,
                           task_range *range, ev_error *err) {
    const task_domain *d = &argument->domain;
    task_scope room;
    EV_TRY(task_case_scope(t, c, &room, err));
    EV_TRY(bound_of(d->min, "min", &room.scope, &range->low, err));
    EV_TRY(bound_of(d->max, "max", &room.scope, &range->high, err));
    range->low = rounded_to(argument->type, range->low);
    range->high = rounded_to(argument->type, range->high);
    if (range->low > range->high)
        return ev_fail(err, EV_BAD, "\"min\" is %g, and \"max\" is %g; swap them", range->low,
                       range->high);
    range->finite = d->finite;
    range->orders = d->finite || d->min != NULL || d->max != NULL || d->positive || d->sorted;
    range->positive = d->positive;
    range->sorted = d->sorted;
    range->distinct = d->distinct;
    range->permutation = d->permutation;
    return d->permutation ? permutation_of(t, argument, c, range, err) : EV_OK;
}

ev_status task_range_of(const task *t, const task_argument *argument, const task_case *c,
                        task_range *out, ev_error *err) {
    assert(argument->kind != TASK_OUT);
    *out = (task_range){.low = -INFINITY, .high = INFINITY};
    ev_status status = EV_OK;
    if (argument->kind != TASK_SCALAR && !ev_type_is_float(argument->type))
        status = add_generated(t, argument, c, out, err);
    if (status == EV_OK && argument->domain.is_given)
        status = add_given(t, argument, c, out, err);
    if (status != EV_OK)
        return ev_wrap(err, status, "case %s, domain of %s", c->name, argument->name);
    return EV_OK;
}

bool task_range_has(const task_range *range, double value) {
    if (isnan(value))
        return !range->orders;
    if (isinf(value) && range->finite)
        return false;
    return value >= range->low && value <= range->high && (!range->positive || value > 0);
}

/* ---- the elements that a generator made ---- */

static ev_status fail_element(const task *t, const task_argument *argument, const task_case *c,
                              uint64_t at, double value, const char *rule, ev_error *err) {
    return ev_fail(err, EV_BAD,
                   "task %s, case %s: element %" PRIu64
                   " of %s is %g, and its domain says that %s; "
                   "change its \"data\" or its \"domain\"",
                   t->name, c->name, at, argument->name, value, rule);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The second of two equal elements has no place that helps; the message names the value. */
static ev_status check_distinct(const task *t, const task_argument *argument, const task_case *c,
                                const void *data, uint64_t count, ev_error *err) {
    double *all = malloc((count + 1) * sizeof *all);
    if (all == NULL)
        return ev_fail_memory(err, (count + 1) * sizeof *all);
    for (uint64_t i = 0; i < count; i++)
        all[i] = ev_type_get(argument->type, data, i);
    qsort(all, count, sizeof *all, by_value);
    uint64_t i = 1;
    while (i < count && all[i] != all[i - 1])
        i++;
    bool is_twice = i < count;
    double value = is_twice ? all[i] : 0;
    free(all);
    if (!is_twice)
        return EV_OK;
    return ev_fail(err, EV_BAD,
                   "task %s, case %s: %s has the element %g twice, and its domain says that no two "
                   "are equal; change its \"data\" or its \"domain\"",
                   t->name, c->name, argument->name, value);
}

ev_status task_range_check(const task *t, const task_argument *argument, const task_case *c,
                           const task_range *range, const void *data, uint64_t count,
                           ev_error *err) {
    double before = -INFINITY;
    if (!argument->domain.is_given)
        return EV_OK;
    for (uint64_t i = 0; i < count; i++) {
        double value = ev_type_get(argument->type, data, i);
        if (!task_range_has(range, value))
            return fail_element(t, argument, c, i, value, "no caller passes such a value", err);
        if (range->sorted && value < before)
            return fail_element(t, argument, c, i, value, "the elements ascend", err);
        before = value;
    }
    return range->distinct ? check_distinct(t, argument, c, data, count, err) : EV_OK;
}

/* ---- arguments that overlap ---- */

ev_status task_alias_read(task *t, const ev_json *doc, ev_error *err) {
    const json_t *list = json_object_get(doc->root, "alias");
    size_t kinds[TASK_SCALAR + 1] = {0};
    t->says_alias = list != NULL;
    for (size_t i = 0; i < json_array_size(list); i++) {
        char at[TASK_MAX_WHERE];
        const char *name = json_string_value(json_array_get(list, i));
        size_t k = 0;
        (void)snprintf(at, sizeof at, "alias[%zu]", i);
        while (name != NULL && k < t->argument_count && strcmp(t->arguments[k].name, name) != 0)
            k++;
        const task_argument *a = &t->arguments[k];
        if (name == NULL || k == t->argument_count || a->kind == TASK_SCALAR)
            return ev_json_fail(doc, at, err,
                                "\"%s\" is no buffer; name some that are read and some that are "
                                "written, which may be one",
                                name != NULL ? name : "");
        t->aliased |= UINT64_C(1) << k;
        kinds[a->kind]++;
    }
    if (json_array_size(list) > 0 &&
        (kinds[TASK_IN] == 0 || kinds[TASK_OUT] + kinds[TASK_INOUT] == 0))
        return ev_json_fail(doc, "alias", err,
                            "an in and an out or inout share a buffer; name at least one of each");
    return EV_OK;
}

/* ---- free scalars ---- */

/* Whether an expression uses the name. */
static bool mentions(const char *expression, const char *name) {
    size_t length = strlen(name);
    for (const char *at = expression; at != NULL && *at != '\0';) {
        size_t word = 0;
        while (isalnum((unsigned char)at[word]) || at[word] == '_')
            word++;
        if (word == length && strncmp(at, name, length) == 0)
            return true;
        at += word > 0 ? word : 1;
    }
    return false;
}

static bool any_mentions(const char *const *expressions, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (mentions(expressions[i], name))
            return true;
    }
    return false;
}

static bool input_mentions(const task_argument *a, const char *name) {
    return mentions(a->count, name) || mentions(a->domain.min, name) ||
           mentions(a->domain.max, name) || mentions(a->value, name) || mentions(a->row, name) ||
           mentions(a->stride, name) || any_mentions(a->parameters, CORPUS_MAX_PARAMETERS, name);
}

static bool case_mentions(const task_case *c, const char *name) {
    for (size_t i = 0; i < c->data_count; i++) {
        if (any_mentions(c->data[i].parameters, CORPUS_MAX_PARAMETERS, name))
            return true;
    }
    return false;
}

static bool plan_mentions(const launch_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->launch_count; i++) {
        const launch_rule *rule = &plan->launches[i];
        if (any_mentions(rule->grid, 3, name) || any_mentions(rule->block, 3, name) ||
            mentions(rule->shared, name))
            return true;
        for (size_t k = 0; k < rule->given_count; k++) {
            if (mentions(rule->given[k].value, name))
                return true;
        }
    }
    for (size_t i = 0; i < plan->loop_count; i++) {
        if (mentions(plan->loops[i].turns, name))
            return true;
    }
    for (size_t i = 0; i < plan->scratch_count; i++) {
        if (mentions(plan->scratch[i].bytes, name))
            return true;
    }
    return false;
}

/* A field's value may be that of the shape's name without the struct's. */
static const char *name_in_shape(const task_argument *scalar) {
    const char *dot = strchr(scalar->name, '.');
    return dot != NULL ? dot + 1 : scalar->name;
}

bool task_plan_names(const launch_plan *plan, const task_argument *scalar) {
    return plan_mentions(plan, name_in_shape(scalar));
}

bool task_scalar_is_free(const task *t, const task_argument *scalar) {
    bool constant = false;
    const char *name = name_in_shape(scalar);
    const expr_names own = {&name, 1};
    ev_error ignored;
    assert(scalar->kind == TASK_SCALAR);
    if (scalar->is_rank || expr_check(scalar->value, &own, &constant, &ignored) != EV_OK ||
        mentions(t->tolerance.depth, name))
        return false;
    for (size_t i = 0; i < task_all_count(t); i++) {
        if (&t->arguments[i] != scalar && input_mentions(&t->arguments[i], name))
            return false;
    }
    for (size_t i = 0; i < t->case_count; i++) {
        if (case_mentions(&t->cases[i], name))
            return false;
    }
    for (size_t i = 0; i < t->start_count; i++) {
        if (plan_mentions(t->starts[i].plan, name))
            return false;
    }
    return true;
}

bool task_argument_has_data(const task_argument *a) {
    return a->peers_of == NULL && (a->kind == TASK_IN || a->kind == TASK_INOUT);
}
