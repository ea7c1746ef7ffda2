/* Checks of a whole task. All expressions that a run will evaluate are evaluated once at loading,
 * so that a mistake shows at once and with its place. */
#include "kernels/task_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_BYTES (UINT64_C(1) << 42) /* limit for all buffers of a case: more than any GPU has */

/* Puts the place of `where` in front of a message. */
static ev_status place(const ev_json *doc, const char *where, ev_status status, ev_error *err) {
    if (status != EV_BAD)
        return status;
    char text[sizeof err->text];
    memcpy(text, err->text, sizeof text);
    return ev_json_fail(doc, where, err, "%s", text);
}

/* The place of a buffer, symbol or member in the document, with one of its keys. */
static void where_of(const task *t, size_t index, const char *key, char *out, size_t bytes) {
    const task_argument *owner = t->arguments[index].owner;
    bool is_symbol = owner == NULL && index >= t->argument_count;
    if (owner != NULL)
        (void)snprintf(out, bytes, "arguments[%zu].fields[%zu].%s", owner->parameter,
                       index - owner->first_member, key);
    else
        (void)snprintf(out, bytes, "%s[%zu].%s", is_symbol ? "symbols" : "arguments",
                       is_symbol ? index - t->argument_count : index, key);
}

static ev_status check_buffer(const task *t, const ev_json *doc, size_t index, size_t case_index,
                              uint64_t *bytes, ev_error *err) {
    const task_argument *argument = &t->arguments[index];
    const task_case *c = &t->cases[case_index];
    char where[TASK_MAX_WHERE];
    uint64_t count = 0;
    where_of(t, index, "count", where, sizeof where);
    EV_TRY(place(doc, where, task_argument_count_of(t, argument, c, &count, err), err));
    if (argument->owner == NULL)
        *bytes += count * ev_type_bytes(argument->type); /* both far below 2^60 */
    uint64_t row = 0, stride = 0;
    where_of(t, index, "pitch", where, sizeof where);
    EV_TRY(place(doc, where, task_argument_pitch_of(t, argument, c, &row, &stride, err), err));
    if (argument->kind == TASK_OUT)
        return EV_OK;
    corpus_request request;
    where_of(t, index, "data", where, sizeof where);
    for (size_t i = 0; i < c->data_count; i++) {
        if (c->data[i].argument == index)
            (void)snprintf(where, sizeof where, "cases[%zu].data", case_index);
    }
    return place(doc, where, task_argument_data_of(t, argument, c, 0, &request, err), err);
}

static ev_status check_zero_where(const task *t, const ev_json *doc, size_t index,
                                  const task_case *c, ev_error *err) {
    const task_argument *argument = &t->arguments[index];
    char where[TASK_MAX_WHERE];
    (void)snprintf(where, sizeof where, "arguments[%zu].zero_where", index);
    for (size_t i = 0; i < t->argument_count; i++) {
        const task_argument *mask = &t->arguments[i];
        if (strcmp(mask->name, argument->zero_where) != 0 || mask->kind == TASK_SCALAR)
            continue;
        uint64_t have = 0, want = 0;
        EV_TRY(task_argument_count_of(t, mask, c, &have, err));
        EV_TRY(task_argument_count_of(t, argument, c, &want, err));
        if (have == want && mask->kind != TASK_OUT)
            return EV_OK;
        return ev_json_fail(doc, where, err,
                            "case %s: %s has %" PRIu64 " elements and %s %" PRIu64
                            "; a mask must be an input as long as the output",
                            c->name, mask->name, have, argument->name, want);
    }
    return ev_json_fail(doc, where, err, "there is no buffer \"%s\"; name an input",
                        argument->zero_where);
}

/* Evaluates the domain at a case, and holds a scalar's value against it. The elements of buffers
 * are checked when a case is made. */
static ev_status check_domain(const task *t, const ev_json *doc, size_t index, const task_case *c,
                              ev_error *err) {
    const task_argument *argument = &t->arguments[index];
    char where[TASK_MAX_WHERE];
    task_range range;
    expr_value value;
    if (!argument->domain.is_given)
        return EV_OK;
    where_of(t, index, "domain", where, sizeof where);
    EV_TRY(place(doc, where, task_range_of(t, argument, c, &range, err), err));
    if (argument->kind != TASK_SCALAR)
        return EV_OK;
    EV_TRY(task_argument_value_of(t, argument, c, &value, err));
    if (task_range_has(&range, value.real))
        return EV_OK;
    return ev_json_fail(doc, where, err,
                        "case %s: the scalar %s is %g, outside its domain (%s%g to %g); change the "
                        "case or the domain",
                        c->name, argument->name, value.real, range.positive ? "above 0, " : "",
                        range.low, range.high);
}

static ev_status check_case(const task *t, const ev_json *doc, size_t index, ev_error *err) {
    const task_case *c = &t->cases[index];
    char where[TASK_MAX_WHERE];
    uint64_t bytes = 0;
    for (size_t i = 0; i < task_all_count(t); i++) {
        const task_argument *argument = &t->arguments[i];
        if (argument->kind == TASK_SCALAR) {
            expr_value value;
            (void)snprintf(where, sizeof where, "arguments[%zu].value", i);
            EV_TRY(place(doc, where, task_argument_value_of(t, argument, c, &value, err), err));
        } else {
            EV_TRY(check_buffer(t, doc, i, index, &bytes, err));
        }
        EV_TRY(check_domain(t, doc, i, c, err));
        if (argument->zero_where != NULL)
            EV_TRY(check_zero_where(t, doc, i, c, err));
    }
    (void)snprintf(where, sizeof where, "cases[%zu].shape", index);
    if (bytes > MAX_BYTES)
        return ev_json_fail(doc, where, err,
                            "case %s: its buffers take %" PRIu64
                            " bytes, more than any GPU has; make the shape smaller",
                            c->name, bytes);
    double depth = 0;
    return place(doc, "tolerance.depth", task_depth_of(t, c, &depth, err), err);
}

/* The place of a launch that cannot be evaluated: each expression of a plain plan has its own. */
static ev_status check_sizes(const task *t, const ev_json *doc, size_t start_index,
                             const expr_name *macros, size_t macro_count, const task_case *c,
                             ev_error *err) {
    static const char *const names[] = {"grid", "block", "shared"};
    const task_start *start = &t->starts[start_index];
    char where[TASK_MAX_WHERE];
    task_scope room;
    (void)snprintf(where, sizeof where, "starts[%zu]", start_index);
    EV_TRY(place(doc, where, task_launch_scope(t, start, macros, macro_count, c, &room, err), err));
    for (int field = LAUNCH_GRID; field <= LAUNCH_SHARED; field++) {
        for (int axis = 0; axis < (field == LAUNCH_SHARED ? 1 : 3); axis++) {
            uint32_t value = 0;
            (void)snprintf(where, sizeof where, "starts[%zu].%s[%d]", start_index, names[field],
                           axis);
            ev_status status = launch_plan_eval(start->plan, 0, (launch_field)field, axis,
                                                &room.scope, &LAUNCH_LIMITS_CUDA, &value, err);
            if (status != EV_OK)
                status = ev_wrap(err, status, "start %s, case %s", start->name, c->name);
            EV_TRY(place(doc, where, status, err));
        }
    }
    return EV_OK;
}

static ev_status check_launch(const task *t, const ev_json *doc, size_t start_index,
                              const expr_name *macros, size_t macro_count, const task_case *c,
                              ev_error *err) {
    const task_start *start = &t->starts[start_index];
    bool has_steps = task_start_has_steps(start);
    char where[TASK_MAX_WHERE];
    task_steps steps;
    if (!has_steps)
        EV_TRY(check_sizes(t, doc, start_index, macros, macro_count, c, err));
    (void)snprintf(where, sizeof where, "starts[%zu].%s", start_index,
                   has_steps ? "steps" : "block");
    EV_TRY(place(doc, where,
                 task_steps_of(t, start, start->plan, macros, macro_count, c, &steps, err), err));
    ev_status status = place(doc, where, task_steps_check(t, start, &steps, c, err), err);
    task_steps_free(&steps);
    return status;
}

/* Checks the launch plan at the defaults, and at each value of each macro with the others at their
 * defaults. */
static ev_status check_start(const task *t, const ev_json *doc, size_t index, const task_case *c,
                             ev_error *err) {
    const task_start *start = &t->starts[index];
    EV_TRY(check_launch(t, doc, index, NULL, 0, c, err));
    for (size_t m = 0; m < start->macro_count; m++) {
        const task_macro *macro = &start->macros[m];
        for (size_t v = 0; v < macro->value_count; v++) {
            expr_name chosen = {macro->name, expr_of_whole(macro->values[v])};
            EV_TRY(check_launch(t, doc, index, &chosen, 1, c, err));
        }
    }
    return EV_OK;
}

/* Checks that the baseline is no reference. */
static ev_status check_baseline(const task *t, const ev_json *doc, ev_error *err) {
    if (!t->starts[0].is_reference)
        return EV_OK;
    return ev_json_fail(doc, "starts[0].reference", err,
                        "the first start is the baseline, where a search begins; make a later one "
                        "the reference");
}

/* Checks the entries, which no case shows. */
static ev_status check_plans(const task *t, const ev_json *doc, ev_error *err) {
    for (size_t s = 0; s < t->start_count; s++) {
        char where[TASK_MAX_WHERE];
        bool has_steps = task_start_has_steps(&t->starts[s]);
        (void)snprintf(where, sizeof where, "starts[%zu].%s", s, has_steps ? "steps" : "entry");
        EV_TRY(place(doc, where, launch_plan_check(t->starts[s].plan, NULL, err), err));
    }
    return EV_OK;
}

/* Checks that a macro's name is no other name of the launch plan's expressions. */
static ev_status check_macro_names(const task *t, const ev_json *doc, ev_error *err) {
    for (size_t s = 0; s < t->start_count; s++) {
        for (size_t m = 0; m < t->starts[s].macro_count; m++) {
            const char *name = t->starts[s].macros[m].name;
            bool taken = false;
            for (size_t i = 0; i < t->argument_count; i++)
                taken |= strcmp(t->arguments[i].name, name) == 0;
            for (size_t c = 0; c < t->case_count; c++) {
                expr_scope shape = {t->cases[c].shape, t->cases[c].shape_count};
                taken |= expr_scope_find(&shape, name) != NULL;
            }
            char where[TASK_MAX_WHERE];
            (void)snprintf(where, sizeof where, "starts[%zu].macros[%zu].name", s, m);
            if (taken)
                return ev_json_fail(doc, where, err,
                                    "the macro %s has the name of an argument or of a shape's "
                                    "value; rename one of them",
                                    name);
        }
    }
    return EV_OK;
}

/* Each pair is tried. */
static ev_status check_pairs(const task *t, const ev_json *doc, ev_error *err) {
    size_t in = 0, out = 0;
    for (size_t i = 0; t->says_alias && i < t->argument_count; i++) {
        if ((t->aliased >> i & 1) == 0)
            continue;
        in += t->arguments[i].kind == TASK_IN;
        out += t->arguments[i].kind != TASK_IN;
    }
    if (in * out <= TASK_PAIRS_MOST)
        return EV_OK;
    return ev_json_fail(doc, "alias", err,
                        "%zu inputs and %zu outputs are %zu pairs, and at most %d are tried; name "
                        "those that callers pass in one buffer",
                        in, out, in * out, TASK_PAIRS_MOST);
}

/* Checks that the aliased arguments agree with the first of them in type and length. */
static ev_status check_alias(const task *t, const ev_json *doc, const task_case *c, ev_error *err) {
    const task_argument *first = NULL;
    uint64_t wanted = 0, count = 0;
    for (size_t i = 0; i < t->argument_count; i++) {
        const task_argument *a = &t->arguments[i];
        if ((t->aliased >> i & 1) == 0)
            continue;
        EV_TRY(task_argument_count_of(t, a, c, &count, err));
        wanted = first == NULL ? count : wanted;
        first = first == NULL ? a : first;
        if (a->type != first->type || count != wanted)
            return ev_json_fail(doc, "alias", err,
                                "case %s: %s has %" PRIu64 " elements of %s, and %s %" PRIu64
                                " of %s; name arguments of one type and length",
                                c->name, first->name, wanted, ev_type_name(first->type), a->name,
                                count, ev_type_name(a->type));
    }
    return EV_OK;
}

static ev_status check_uses(const task *t, const ev_json *doc, ev_error *err) {
    for (int use = TASK_CHECK; use <= TASK_SMOKE; use++) {
        bool found = false;
        for (size_t i = 0; i < t->case_count; i++)
            found |= t->cases[i].split == CORPUS_SEARCH && t->cases[i].use == (task_case_use)use;
        if (!found)
            return ev_json_fail(doc, "cases", err,
                                "no case has split \"search\" and use \"%s\"; a search needs one",
                                task_case_use_name((task_case_use)use));
    }
    return EV_OK;
}

static ev_status check_outputs(const task *t, const ev_json *doc, ev_error *err) {
    for (size_t i = 0; i < t->argument_count; i++) {
        if (t->arguments[i].kind == TASK_OUT || t->arguments[i].kind == TASK_INOUT)
            return EV_OK;
    }
    return ev_json_fail(doc, "arguments", err,
                        "no argument is of kind \"out\" or \"inout\"; a kernel must give something "
                        "back");
}

ev_status task_check_all(const task *t, const ev_json *doc, ev_error *err) {
    EV_TRY(check_outputs(t, doc, err));
    EV_TRY(task_ranks_check(t, doc, err));
    EV_TRY(task_members_check(t, doc, err));
    EV_TRY(check_baseline(t, doc, err));
    EV_TRY(check_uses(t, doc, err));
    EV_TRY(check_macro_names(t, doc, err));
    EV_TRY(check_pairs(t, doc, err));
    for (size_t i = 0; i < t->case_count; i++) {
        EV_TRY(check_case(t, doc, i, err));
        EV_TRY(check_alias(t, doc, &t->cases[i], err));
        EV_TRY(task_work_check(t, doc, &t->cases[i], err));
        for (size_t s = 0; s < t->start_count; s++)
            EV_TRY(check_start(t, doc, s, &t->cases[i], err));
    }
    return check_plans(t, doc, err);
}
