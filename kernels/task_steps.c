/* Steps: starts of several launches. Reads "steps" and "scratch" of a start, checks them at a case,
 * and writes the launches of a plan out: in order, with their sizes and parameters.
 *
 * This is the one place that knows what a plan's launches are at a case; who checks, runs or times
 * a candidate goes through the list that it makes. */
#include "kernels/task_private.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef task_loader loader;

bool task_start_has_steps(const task_start *start) {
    return !launch_plan_is_plain(start->plan);
}

bool task_has_steps(const task *t) {
    for (size_t i = 0; i < t->start_count; i++) {
        if (task_start_has_steps(&t->starts[i]))
            return true;
    }
    return false;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

/* A start under way. */
typedef struct steps_reader {
    loader *l;
    launch_plan *plan;
    launch_rule *launches; /* of the plan */
    launch_loop *loops;
    launch_scratch *scratch;
} steps_reader;

static bool is_argument(const task *t, const char *name) {
    for (size_t i = 0; i < t->argument_count; i++) {
        if (strcmp(t->arguments[i].name, name) == 0)
            return true;
    }
    return false;
}

static bool is_scratch(const launch_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->scratch_count; i++) {
        if (strcmp(plan->scratch[i].name, name) == 0)
            return true;
    }
    return false;
}

static ev_status check_buffer(const steps_reader *r, const char *name, const char *where) {
    ev_str known = EV_STR_EMPTY;
    const task *t = r->l->t;
    if (is_argument(t, name) || is_scratch(r->plan, name))
        return EV_OK;
    for (size_t i = 0; i < t->argument_count; i++)
        ev_str_printf(&known, "%s%s", i > 0 ? ", " : "", t->arguments[i].name);
    for (size_t i = 0; i < r->plan->scratch_count; i++)
        ev_str_printf(&known, ", %s", r->plan->scratch[i].name);
    ev_status status = ev_json_fail(r->l->doc, where, r->l->err,
                                    "\"%s\" is neither an argument nor a scratch buffer; there are "
                                    "%s",
                                    name, ev_str_text(&known));
    ev_str_free(&known);
    return status;
}

/* The gates fill the table when they have placed the buffers. */
static ev_status read_table(const steps_reader *r, const json_t *value, const char *where,
                            launch_scratch *s) {
    char at[TASK_MAX_WHERE];
    loader *l = r->l;
    if (l->t->ranks == NULL)
        return ev_json_fail(
            l->doc, where, l->err,
            "a scratch buffer of kind \"peers\" is of a task with \"ranks\"; say how "
            "many ranks there are");
    s->peers_of = task_keep(l, ev_json_text(value, "of", ""));
    s->bytes = ev_arena_printf(l->arena, "(%s) * %zu", l->t->ranks, sizeof(uint64_t));
    bool is_known = false;
    for (size_t i = 0; i < r->plan->scratch_count; i++)
        is_known |= r->scratch[i].peers_of == NULL && strcmp(r->scratch[i].name, s->peers_of) == 0;
    (void)snprintf(at, sizeof at, "%s.of", where);
    if (!is_known)
        return ev_json_fail(l->doc, at, l->err,
                            "the table %s is of \"%s\", which is no scratch buffer before it; list "
                            "the buffer before its table",
                            s->name, s->peers_of);
    return EV_OK;
}

static ev_status read_scratch(steps_reader *r, const json_t *value, const char *where,
                              launch_scratch *s) {
    char at[TASK_MAX_WHERE];
    loader *l = r->l;
    ev_type type;
    const char *count = NULL;
    bool is_table = strcmp(ev_json_text(value, "kind", ""), "peers") == 0;
    EV_TRY(task_check_keys(l, value, where,
                           is_table ? &TASK_TABLE_SCRATCH_PEERS : &TASK_TABLE_SCRATCH));
    s->name = task_keep(l, ev_json_text(value, "name", ""));
    (void)snprintf(at, sizeof at, "%s.name", where);
    EV_TRY(task_check_name(l, s->name, at));
    if (is_argument(l->t, s->name) || is_scratch(r->plan, s->name))
        return ev_json_fail(l->doc, at, l->err,
                            "a second buffer or argument is named %s; choose another name",
                            s->name);
    if (is_table)
        return read_table(r, value, where, s);
    (void)snprintf(at, sizeof at, "%s.type", where);
    EV_TRY(task_read_type(l, ev_json_text(value, "type", ""), at, &type));
    (void)snprintf(at, sizeof at, "%s.count", where);
    EV_TRY(task_read_expression(l, json_object_get(value, "count"), at, &count));
    s->bytes = ev_arena_printf(l->arena, "(%s) * %zu", count, ev_type_bytes(type));
    return EV_OK;
}

static ev_status read_given(const steps_reader *r, const json_t *value, const char *where,
                            launch_given *g) {
    char at[TASK_MAX_WHERE];
    loader *l = r->l;
    if (json_is_string(value)) {
        g->name = task_keep(l, json_string_value(value));
        return check_buffer(r, g->name, where);
    }
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_GIVEN));
    (void)snprintf(at, sizeof at, "%s.type", where);
    EV_TRY(task_read_type(l, ev_json_text(value, "type", ""), at, &g->type));
    (void)snprintf(at, sizeof at, "%s.value", where);
    return task_read_expression(l, json_object_get(value, "value"), at, &g->value);
}

/* The list of a launch; the task's arguments in their order where it has none. */
static ev_status read_arguments(const steps_reader *r, const json_t *list, const char *where,
                                launch_rule *rule) {
    const task *t = r->l->t;
    size_t count = list != NULL ? json_array_size(list) : t->argument_count;
    EV_TRY(task_check_size(r->l, count, 1, TASK_MAX_ARGUMENTS, where));
    launch_given *given = EV_NEW_ARRAY(r->l->arena, launch_given, count);
    if (given == NULL)
        return ev_fail_memory(r->l->err, count * sizeof *given);
    for (size_t i = 0; i < count; i++) {
        char at[TASK_MAX_WHERE];
        (void)snprintf(at, sizeof at, "%s[%zu]", where, i);
        if (list != NULL)
            EV_TRY(read_given(r, json_array_get(list, i), at, &given[i]));
        else
            given[i].name = t->arguments[i].name;
    }
    rule->given = given;
    rule->given_count = count;
    return EV_OK;
}

static ev_status read_launch(steps_reader *r, const json_t *value, const char *where) {
    char at[TASK_MAX_WHERE];
    loader *l = r->l;
    if (r->plan->launch_count == LAUNCH_PLAN_MOST)
        return ev_json_fail(l->doc, where, l->err, "a start has %d launches at most",
                            LAUNCH_PLAN_MOST);
    launch_rule *rule = &r->launches[r->plan->launch_count++];
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_STEP));
    EV_TRY(task_read_rule(l, value, where, rule));
    rule->entry = task_keep(l, ev_json_text(value, "entry", ""));
    (void)snprintf(at, sizeof at, "%s.entry", where);
    if (strchr(rule->entry, '<') != NULL)
        return ev_json_fail(
            l->doc, at, l->err,
            "the kernel of a step is no instance of a template; write a kernel that "
            "calls the template");
    (void)snprintf(at, sizeof at, "%s.arguments", where);
    return read_arguments(r, json_object_get(value, "arguments"), at, rule);
}

static ev_status read_swaps(const steps_reader *r, const json_t *list, const char *where,
                            launch_loop *loop) {
    size_t count = json_array_size(list);
    EV_TRY(task_check_size(r->l, count, 0, TASK_MAX_ARGUMENTS, where));
    launch_pair *swaps = EV_NEW_ARRAY(r->l->arena, launch_pair, count + 1);
    if (swaps == NULL)
        return ev_fail_memory(r->l->err, (count + 1) * sizeof *swaps);
    for (size_t i = 0; i < count; i++) {
        char at[TASK_MAX_WHERE];
        const json_t *pair = json_array_get(list, i);
        (void)snprintf(at, sizeof at, "%s[%zu]", where, i);
        for (size_t side = 0; side < 2; side++) {
            const char *name = json_string_value(json_array_get(pair, side));
            if (json_array_size(pair) != 2 || name == NULL)
                return ev_json_fail(r->l->doc, at, r->l->err,
                                    "a swap is a pair of names, [\"a\", \"b\"]");
            EV_TRY(check_buffer(r, name, at));
            swaps[i].names[side] = task_keep(r->l, name);
        }
    }
    loop->swaps = swaps;
    loop->swap_count = count;
    return EV_OK;
}

static ev_status read_loop(steps_reader *r, const json_t *value, const char *where) {
    char at[TASK_MAX_WHERE];
    loader *l = r->l;
    const json_t *list = json_object_get(value, "steps");
    launch_loop *loop = &r->loops[r->plan->loop_count++];
    EV_TRY(task_check_keys(l, value, where, &TASK_TABLE_LOOP));
    (void)snprintf(at, sizeof at, "%s.repeat", where);
    EV_TRY(task_read_expression(l, json_object_get(value, "repeat"), at, &loop->turns));
    loop->counter = task_keep(l, ev_json_text(value, "counter", NULL));
    (void)snprintf(at, sizeof at, "%s.counter", where);
    if (loop->counter != NULL)
        EV_TRY(task_check_name(l, loop->counter, at));
    (void)snprintf(at, sizeof at, "%s.swap", where);
    EV_TRY(read_swaps(r, json_object_get(value, "swap"), at, loop));
    (void)snprintf(at, sizeof at, "%s.steps", where);
    EV_TRY(task_check_size(l, json_array_size(list), 1, LAUNCH_PLAN_MOST, at));
    loop->first = r->plan->launch_count;
    loop->count = json_array_size(list);
    for (size_t i = 0; i < loop->count; i++) {
        (void)snprintf(at, sizeof at, "%s.steps[%zu]", where, i);
        if (json_object_get(json_array_get(list, i), "steps") != NULL)
            return ev_json_fail(l->doc, at, l->err,
                                "steps that repeat stand in no others that do; write the inner "
                                "turns out");
        EV_TRY(read_launch(r, json_array_get(list, i), at));
    }
    return EV_OK;
}

static ev_status refuse_beside(loader *l, const json_t *start, const char *where) {
    static const char *const keys[] = {"entry", "grid", "block", "shared"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (json_object_get(start, keys[i]) != NULL)
            return ev_json_fail(l->doc, where, l->err,
                                "a start with \"steps\" has no \"%s\": each step has its own",
                                keys[i]);
    }
    for (size_t i = 0; i < l->t->argument_count; i++) {
        if (l->t->arguments[i].is_field)
            return ev_json_fail(l->doc, where, l->err,
                                "steps take no struct by value yet (%s); pass its fields",
                                l->t->arguments[i].name);
    }
    return EV_OK;
}

static ev_status read_list(steps_reader *r, const json_t *start, const char *where) {
    char at[TASK_MAX_WHERE];
    const json_t *scratch = json_object_get(start, "scratch");
    const json_t *steps = json_object_get(start, "steps");
    (void)snprintf(at, sizeof at, "%s.scratch", where);
    EV_TRY(task_check_size(r->l, json_array_size(scratch), 0, TASK_MAX_SCRATCH, at));
    for (size_t i = 0; i < json_array_size(scratch); i++) {
        (void)snprintf(at, sizeof at, "%s.scratch[%zu]", where, i);
        EV_TRY(read_scratch(r, json_array_get(scratch, i), at, &r->scratch[i]));
        r->plan->scratch_count++;
    }
    (void)snprintf(at, sizeof at, "%s.steps", where);
    EV_TRY(task_check_size(r->l, json_array_size(steps), 1, LAUNCH_PLAN_MOST, at));
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        bool repeats = json_object_get(step, "steps") != NULL;
        (void)snprintf(at, sizeof at, "%s.steps[%zu]", where, i);
        EV_TRY(repeats ? read_loop(r, step, at) : read_launch(r, step, at));
    }
    return EV_OK;
}

ev_status task_steps_read(task_loader *l, const json_t *start, const char *where,
                          launch_plan **out) {
    steps_reader r = {.l = l,
                      .plan = EV_NEW(l->arena, launch_plan),
                      .launches = EV_NEW_ARRAY(l->arena, launch_rule, LAUNCH_PLAN_MOST),
                      .loops = EV_NEW_ARRAY(l->arena, launch_loop, LAUNCH_PLAN_MOST),
                      .scratch = EV_NEW_ARRAY(l->arena, launch_scratch, TASK_MAX_SCRATCH)};
    if (r.plan == NULL || r.launches == NULL || r.loops == NULL || r.scratch == NULL)
        return ev_fail_memory(l->err, LAUNCH_PLAN_MOST * sizeof *r.launches);
    *r.plan = (launch_plan){.launches = r.launches, .loops = r.loops, .scratch = r.scratch};
    EV_TRY(refuse_beside(l, start, where));
    EV_TRY(read_list(&r, start, where));
    *out = r.plan;
    return EV_OK;
}

/* ---- the launches at a case --------------------------------------------------------------------
 */

void task_steps_free(task_steps *s) {
    free(s->all);
    free(s->given);
    *s = (task_steps){0};
}

void task_step_name(const launch_plan *plan, const task_steps *s, size_t index, char *out,
                    size_t bytes) {
    (void)snprintf(out, bytes, "launch %zu of %zu, kernel `%s`", index + 1, s->count,
                   plan->launches[s->all[index].launch].entry);
}

/* Finds the argument or the scratch buffer that a name stands for at a step. */
static void find_given(const task *t, const launch_plan *plan, const launch_step *step,
                       const char *name, task_given *out) {
    name = launch_step_buffer(plan, step, name);
    for (size_t i = 0; i < t->argument_count; i++) {
        if (strcmp(t->arguments[i].name, name) == 0)
            *out = (task_given){.kind = TASK_GIVEN_ARGUMENT, .index = i};
    }
    for (size_t i = 0; i < plan->scratch_count; i++) {
        if (strcmp(plan->scratch[i].name, name) == 0)
            *out = (task_given){.kind = TASK_GIVEN_SCRATCH, .index = i};
    }
}

static ev_status list_given(const task *t, const launch_plan *plan, const launch_step *step,
                            const expr_scope *values, task_given *out, ev_error *err) {
    const launch_rule *rule = &plan->launches[step->launch];
    for (size_t i = 0; i < rule->given_count; i++) {
        const launch_given *g = &rule->given[i];
        if (g->name != NULL) {
            find_given(t, plan, step, g->name, &out[i]);
            continue;
        }
        out[i] = (task_given){.kind = TASK_GIVEN_VALUE, .type = g->type};
        ev_status status = expr_eval_as(g->value, g->type, values, &out[i].value, err);
        if (status != EV_OK)
            return ev_wrap(err, status, "launch %zu (%.200s), argument %zu", step->launch,
                           rule->entry, i);
    }
    return EV_OK;
}

/* Adds the counter of a step's loop to the names; `own`: how many there are without it. */
static ev_status set_counter(const launch_step *step, size_t own, task_scope *room, ev_error *err) {
    room->scope.count = own;
    if (step->loop == NULL || step->loop->counter == NULL)
        return EV_OK;
    if (expr_scope_find(&room->scope, step->loop->counter) != NULL)
        return ev_fail(
            err, EV_BAD,
            "the counter %s has the name of a macro, a scalar or a shape's value; choose "
            "another name",
            step->loop->counter);
    room->names[room->scope.count++] = (expr_name){step->loop->counter, expr_of_whole(step->turn)};
    return EV_OK;
}

static ev_status fill_steps(const task *t, const launch_plan *plan, const launch_step *steps,
                            task_scope *room, task_steps *out, ev_error *err) {
    size_t own = room->scope.count;
    task_given *given = out->given;
    for (size_t i = 0; i < out->count; i++) {
        const launch_rule *rule = &plan->launches[steps[i].launch];
        task_step *to = &out->all[i];
        *to = (task_step){
            .launch = steps[i].launch, .given = given, .given_count = rule->given_count};
        EV_TRY(set_counter(&steps[i], own, room, err));
        EV_TRY(launch_plan_geometry(plan, to->launch, &room->scope, &LAUNCH_LIMITS_CUDA, &to->at,
                                    err));
        EV_TRY(list_given(t, plan, &steps[i], &room->scope, given, err));
        given += rule->given_count;
    }
    room->scope.count = own;
    for (size_t i = 0; i < plan->scratch_count; i++)
        EV_TRY(launch_plan_scratch(plan, i, &room->scope, &out->scratch[i], err));
    return EV_OK;
}

static ev_status make_steps(const task *t, const launch_plan *plan, task_scope *room,
                            task_steps *out, ev_error *err) {
    launch_step *steps = NULL;
    EV_TRY(launch_plan_steps(plan, &room->scope, &steps, &out->count, err));
    size_t given = 0;
    for (size_t i = 0; i < out->count; i++)
        given += plan->launches[steps[i].launch].given_count;
    out->all = calloc(out->count + 1, sizeof *out->all);
    out->given = calloc(given + 1, sizeof *out->given);
    ev_status status = out->all != NULL && out->given != NULL
                           ? fill_steps(t, plan, steps, room, out, err)
                           : ev_fail_memory(err, given * sizeof *out->given);
    free(steps);
    return status;
}

ev_status task_steps_of(const task *t, const task_start *start, const launch_plan *plan,
                        const expr_name *macros, size_t macro_count, const task_case *c,
                        task_steps *out, ev_error *err) {
    task_scope room;
    *out = (task_steps){0};
    assert(plan->scratch_count <= TASK_MAX_SCRATCH);
    EV_TRY(task_launch_scope(t, start, macros, macro_count, c, &room, err));
    ev_status status = make_steps(t, plan, &room, out, err);
    if (status == EV_OK)
        return EV_OK;
    task_steps_free(out);
    return ev_wrap(err, status, "start %s, case %s", start->name, c->name);
}

ev_status task_launches_least(const task *t, const task_case *c, size_t *out, ev_error *err) {
    *out = SIZE_MAX;
    for (size_t i = 0; i < t->start_count; i++) {
        const task_start *start = &t->starts[i];
        task_steps steps = {.count = 1};
        ev_error why = {.status = EV_OK};
        ev_status status = EV_OK;
        if (task_start_has_steps(start))
            status = task_steps_of(t, start, start->plan, NULL, 0, c, &steps, &why);
        if (status == EV_INFRA)
            return ev_fail(err, EV_INFRA, "%s", why.text);
        if (status == EV_OK && steps.count < *out)
            *out = steps.count;
        task_steps_free(&steps);
    }
    *out = *out == SIZE_MAX ? 1 : *out;
    return EV_OK;
}

/* ---- the main launch ----------------------------------------------------------------------------
 */

static void add_threads(const launch_plan *plan, const task_steps *s, double *threads) {
    for (size_t i = 0; i < s->count; i++) {
        const launch_geometry *l = &s->all[i].at;
        const char *entry = plan->launches[s->all[i].launch].entry;
        size_t first = 0;
        while (strcmp(plan->launches[first].entry, entry) != 0)
            first++;
        threads[first] +=
            (double)l->grid[0] * l->grid[1] * l->grid[2] * l->block[0] * l->block[1] * l->block[2];
    }
}

ev_status task_steps_choose(const task *t, const task_start *start, launch_plan *plan,
                            ev_error *err) {
    double threads[LAUNCH_PLAN_MOST] = {0};
    for (size_t i = 0; i < t->case_count; i++) {
        const task_case *c = &t->cases[i];
        task_steps steps;
        ev_error why;
        if (c->use != TASK_TIME || c->split != CORPUS_SEARCH)
            continue;
        ev_status status = task_steps_of(t, start, plan, NULL, 0, c, &steps, &why);
        if (status == EV_INFRA)
            return ev_fail(err, EV_INFRA, "%s", why.text);
        if (status == EV_BAD) /* task_check_all says it, with its place */
            continue;
        add_threads(plan, &steps, threads);
        task_steps_free(&steps);
    }
    for (size_t i = 1; i < plan->launch_count; i++)
        plan->main = threads[i] > threads[plan->main] ? i : plan->main;
    return EV_OK;
}

static bool is_swapped(const launch_plan *plan, const char *name) {
    for (size_t i = 0; i < plan->loop_count; i++) {
        for (size_t k = 0; k < plan->loops[i].swap_count; k++) {
            const char *const *names = plan->loops[i].swaps[k].names;
            if (strcmp(names[0], name) == 0 || strcmp(names[1], name) == 0)
                return true;
        }
    }
    return false;
}

/* The argument that parameter `p` of a launch is; SIZE_MAX: none, or not in every turn. */
static size_t argument_at(const task *t, const launch_plan *plan, const launch_rule *rule,
                          size_t p) {
    const launch_step plain = {0};
    task_given g = {.kind = TASK_GIVEN_VALUE};
    bool has_name = p < rule->given_count && rule->given[p].name != NULL;
    if (has_name && !is_swapped(plan, rule->given[p].name))
        find_given(t, plan, &plain, rule->given[p].name, &g);
    return g.kind == TASK_GIVEN_ARGUMENT ? g.index : SIZE_MAX;
}

void task_main_arguments(const task *t, const task_start *start, size_t *out, size_t *count) {
    const launch_plan *plan = start->plan;
    *count = plan->launches[plan->main].given_count;
    for (size_t p = 0; p < *count; p++) {
        out[p] = argument_at(t, plan, &plan->launches[plan->main], p);
        for (size_t i = 0; i < plan->launch_count; i++) {
            bool same = strcmp(plan->launches[i].entry, launch_plan_entry(plan)) == 0;
            if (same && argument_at(t, plan, &plan->launches[i], p) != out[p])
                out[p] = SIZE_MAX;
        }
    }
}

/* Whether a launch passes one buffer for parameter p and another one. */
static bool is_given_twice(const task *t, const launch_plan *plan, const launch_rule *rule,
                           size_t p) {
    const char *name = rule->given[p].name;
    size_t argument = argument_at(t, plan, rule, p);
    bool twice = false;
    if (name == NULL ||
        (argument < t->argument_count && t->arguments[argument].kind == TASK_SCALAR))
        return false;
    for (size_t q = 0; q < rule->given_count; q++)
        twice = twice ||
                (q != p && rule->given[q].name != NULL && strcmp(rule->given[q].name, name) == 0);
    return twice;
}

/* Whether a launch of the main kernel may pass one buffer for parameter p and another one. */
static bool may_overlap(const task *t, const launch_plan *plan, size_t p) {
    bool may = false;
    for (size_t i = 0; i < plan->launch_count; i++) {
        const launch_rule *rule = &plan->launches[i];
        size_t argument = argument_at(t, plan, rule, p);
        if (strcmp(rule->entry, launch_plan_entry(plan)) != 0 || p >= rule->given_count)
            continue;
        may = may || is_given_twice(t, plan, rule, p) ||
              (t->says_alias && argument < 64 && (t->aliased >> argument & 1) != 0);
    }
    return may;
}

uint64_t task_overlaps_of_main(const task *t, const task_start *start) {
    const launch_plan *plan = start->plan;
    size_t count = plan->launches[plan->main].given_count;
    uint64_t bits = 0;
    for (size_t p = 0; p < count && p < 64; p++)
        bits |= (uint64_t)may_overlap(t, plan, p) << p;
    for (size_t i = 0; count == 0 && t->says_alias && i < t->argument_count && i < 64; i++) {
        if ((t->aliased >> i & 1) != 0 && t->arguments[i].parameter < 64)
            bits |= UINT64_C(1) << t->arguments[i].parameter;
    }
    return bits;
}

uint64_t task_bits_of_main(const task *t, const task_start *start, uint64_t parameters) {
    size_t arguments[TASK_MAX_ARGUMENTS] = {0}, count = 0;
    uint64_t bits = 0;
    task_main_arguments(t, start, arguments, &count);
    if (count == 0)
        return task_bits_of_parameters(t, parameters);
    for (size_t p = 0; p < count && p < 64; p++) {
        if ((parameters >> p & 1) != 0 && arguments[p] < 64)
            bits |= UINT64_C(1) << arguments[p];
    }
    return bits;
}

/* ---- checks at a case --------------------------------------------------------------------------
 */

static ev_status bytes_of(const task *t, const launch_plan *plan, const task_steps *s,
                          const task_case *c, const char *name, uint64_t *out, ev_error *err) {
    const launch_step plain = {0};
    task_given g = {0};
    find_given(t, plan, &plain, name, &g);
    if (g.kind == TASK_GIVEN_SCRATCH) {
        *out = s->scratch[g.index];
        return EV_OK;
    }
    const task_argument *a = &t->arguments[g.index];
    *out = 0;
    if (a->kind == TASK_SCALAR)
        return ev_fail(err, EV_BAD, "%s is no buffer; swap buffers", name);
    if (a->kind == TASK_IN)
        return ev_fail(err, EV_BAD, "%s is an input, which no kernel writes; swap other buffers",
                       name);
    EV_TRY(task_argument_count_of(t, a, c, out, err));
    *out *= ev_type_bytes(a->type);
    return EV_OK;
}

ev_status task_steps_check(const task *t, const task_start *start, const task_steps *s,
                           const task_case *c, ev_error *err) {
    const launch_plan *plan = start->plan;
    for (size_t i = 0; i < plan->loop_count; i++) {
        for (size_t k = 0; k < plan->loops[i].swap_count; k++) {
            const char *const *names = plan->loops[i].swaps[k].names;
            uint64_t first = 0, second = 0;
            EV_TRY(bytes_of(t, plan, s, c, names[0], &first, err));
            EV_TRY(bytes_of(t, plan, s, c, names[1], &second, err));
            if (first != second)
                return ev_fail(err, EV_BAD,
                               "start %s, case %s: %s has %" PRIu64 " bytes and %s %" PRIu64
                               "; buffers that are swapped are equally long",
                               start->name, c->name, names[0], first, names[1], second);
        }
    }
    return EV_OK;
}
